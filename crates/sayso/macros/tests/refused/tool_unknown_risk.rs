//! There are three risks.

#[sayso::tool(risk = "huge")]
async fn pay() -> Result<(), String> {
    Ok(())
}

fn main() {}
