//! The risk must be low, medium or high.

#[sayso::tool(risk = "huge")]
async fn pay() -> Result<(), String> {
    Ok(())
}

fn main() {}
