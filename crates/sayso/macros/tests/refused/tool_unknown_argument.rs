//! Only arguments are said.

#[sayso::tool(action = "Pay {amont} to {to}.")]
async fn pay(amount: u32, to: &str) -> Result<(), String> {
    Ok(())
}

fn main() {}
