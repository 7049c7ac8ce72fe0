//! An answer is bound to what it can be bound to.

struct Connection;

#[sayso::tool(irreversible, action = "Pay.", consequence = "It is gone.")]
async fn pay(by: Connection) -> Result<(), String> {
    Ok(())
}

fn main() {}
