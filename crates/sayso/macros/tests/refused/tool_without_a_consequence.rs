//! Who is asked hears what comes of it.

#[sayso::tool(irreversible, action = "Pay {amount}.")]
async fn pay(amount: u32) -> Result<(), String> {
    Ok(())
}

fn main() {}
