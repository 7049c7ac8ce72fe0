//! A method that needs consent must skip `self`.

struct Bank;

impl Bank {
    #[sayso::tool(irreversible, action = "Pay.", consequence = "It is gone.")]
    async fn pay(&self) -> Result<(), String> {
        Ok(())
    }
}

fn main() {}
