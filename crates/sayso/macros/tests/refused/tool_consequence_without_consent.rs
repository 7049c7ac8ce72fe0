//! A tool that does not ask for consent must not have a consequence.

#[sayso::tool(risk = "medium", action = "Pay.", consequence = "It is gone.")]
async fn pay() -> Result<(), String> {
    Ok(())
}

fn main() {}
