//! A text must not round an argument.

#[sayso::tool(irreversible, action = "Pay {amount:.0}.", consequence = "It is gone.")]
async fn pay(amount: f64) -> Result<(), String> {
    Ok(())
}

fn main() {}
