//! Whether a tool failed must be told.

#[sayso::tool]
async fn pay() {}

#[sayso::tool]
async fn pays() -> u32 {
    5
}

fn main() {}
