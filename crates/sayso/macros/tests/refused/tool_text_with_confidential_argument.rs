//! A text must not contain confidential or skipped arguments.

#[sayso::tool(irreversible, action = "Pay with {pin}.", consequence = "It is gone.", confidential(pin))]
async fn pay(pin: &str) -> Result<(), String> {
    Ok(())
}

#[sayso::tool(irreversible, action = "Pay {amount}.", consequence = "It is gone.", skip(amount))]
async fn pays(amount: u32) -> Result<(), String> {
    Ok(())
}

fn main() {}
