//! Each key has its own syntax, is set at most once, and refers to existing arguments.

#[sayso::tool(timeout = "30 seconds")]
async fn late() -> Result<(), String> {
    Ok(())
}

#[sayso::tool(action = 5)]
async fn number() -> Result<(), String> {
    Ok(())
}

#[sayso::tool(irreversible = "yes", action = "Pay.", consequence = "It is gone.")]
async fn sure() -> Result<(), String> {
    Ok(())
}

#[sayso::tool(name = "one", name = "two")]
async fn twice() -> Result<(), String> {
    Ok(())
}

#[sayso::tool(skip(bank))]
async fn nowhere() -> Result<(), String> {
    Ok(())
}

#[sayso::tool(action = "Pay {")]
async fn open() -> Result<(), String> {
    Ok(())
}

#[sayso::tool(irreversible, action = "Pay.", consequence = "It is gone.")]
async fn unnamed((amount, to): (u32, &str)) -> Result<(), String> {
    Ok(())
}

fn main() {}
