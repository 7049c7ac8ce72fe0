//! An argument must have a type to which an answer can be bound.

struct Connection;

#[sayso::tool(irreversible, action = "Pay.", consequence = "It is gone.")]
async fn pay(by: Connection) -> Result<(), String> {
    Ok(())
}

fn main() {}
