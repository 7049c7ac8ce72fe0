//! A placeholder must name an argument.

#[sayso::tool(action = "Pay {amont} to {to}.")]
async fn pay(amount: u32, to: &str) -> Result<(), String> {
    Ok(())
}

fn main() {}
