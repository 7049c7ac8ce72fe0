//! A tool that needs consent must have an action.

#[sayso::tool(risk = "high", consequence = "It is gone.")]
async fn pay(amount: u32) -> Result<(), String> {
    Ok(())
}

fn main() {}
