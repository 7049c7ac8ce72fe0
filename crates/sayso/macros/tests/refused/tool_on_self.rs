//! No answer is bound to what a method is called on.

struct Bank;

impl Bank {
    #[sayso::tool(irreversible, action = "Pay.", consequence = "It is gone.")]
    async fn pay(&self) -> Result<(), String> {
        Ok(())
    }
}

fn main() {}
