//! Where nobody is asked, nobody hears of a consequence.

#[sayso::tool(risk = "medium", action = "Pay.", consequence = "It is gone.")]
async fn pay() -> Result<(), String> {
    Ok(())
}

fn main() {}
