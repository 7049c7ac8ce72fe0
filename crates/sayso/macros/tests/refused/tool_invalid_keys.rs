//! Each key has its own syntax, is set at most once, and refers to existing arguments.

#[sayso::tool(timeout = "30 seconds")]
async fn invalid_duration() -> Result<(), String> {
    Ok(())
}

#[sayso::tool(action = 5)]
async fn number_instead_of_text() -> Result<(), String> {
    Ok(())
}

#[sayso::tool(irreversible = "yes", action = "Pay.", consequence = "It is gone.")]
async fn flag_with_a_value() -> Result<(), String> {
    Ok(())
}

#[sayso::tool(name = "one", name = "two")]
async fn duplicate_key() -> Result<(), String> {
    Ok(())
}

#[sayso::tool(skip(bank))]
async fn unknown_argument() -> Result<(), String> {
    Ok(())
}

#[sayso::tool(action = "Pay {")]
async fn unmatched_brace() -> Result<(), String> {
    Ok(())
}

#[sayso::tool(irreversible, action = "Pay.", consequence = "It is gone.")]
async fn unnamed((amount, to): (u32, &str)) -> Result<(), String> {
    Ok(())
}

fn main() {}
