//! Who is asked hears what is done.

#[sayso::tool(risk = "high", consequence = "It is gone.")]
async fn pay(amount: u32) -> Result<(), String> {
    Ok(())
}

fn main() {}
