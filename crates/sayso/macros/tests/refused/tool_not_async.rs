//! A tool waits.

#[sayso::tool]
fn pay() -> Result<(), String> {
    Ok(())
}

fn main() {}
