//! A tool must return a `Result`.

#[sayso::tool]
async fn pay() {}

#[sayso::tool]
async fn pays() -> u32 {
    5
}

fn main() {}
