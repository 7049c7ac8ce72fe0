//! A tool that needs consent must have a consequence.

#[sayso::tool(irreversible, action = "Pay {amount}.")]
async fn pay(amount: u32) -> Result<(), String> {
    Ok(())
}

fn main() {}
