//! A tool must be async.

#[sayso::tool]
fn pay() -> Result<(), String> {
    Ok(())
}

fn main() {}
