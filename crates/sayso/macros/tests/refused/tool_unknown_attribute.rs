//! What is not known is not passed over.

#[sayso::tool(danger = "high")]
async fn pay() -> Result<(), String> {
    Ok(())
}

fn main() {}
