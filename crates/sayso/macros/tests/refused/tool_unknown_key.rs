//! An unknown key is an error.

#[sayso::tool(danger = "high")]
async fn pay() -> Result<(), String> {
    Ok(())
}

fn main() {}
