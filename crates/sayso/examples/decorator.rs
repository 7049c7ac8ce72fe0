//! Tools that ask, announce themselves and report by themselves: their author writes the functions, and nothing else.
//!
//! `cargo run -p sayso --features embedded --example decorator` has a hub of its own, to which nobody listens: so nobody can be asked, and that
//! means no. With `SAYSO_URL` (and `SAYSO_TOKEN`) it speaks to a `sayso serve`.

use std::{env, fmt};

use sayso::{CallError, Error, Hub};

/// Needs nobody's consent, and is announced all the same.
#[sayso::tool(action = "Look up the balance of {account}.", within = "10s")]
async fn balance(account: &str) -> Result<u32, Bank> {
    tokio::task::yield_now().await; // This is where the bank would be asked.
    if account == "checking" { Ok(700) } else { Err(Bank::NoSuchAccount) }
}

/// Is never called before a person has said yes to exactly these arguments.
#[sayso::tool(
    risk = "high",
    irreversible,
    action = "Transfer {amount} euro from {from} to {to}.",
    consequence = "The money leaves {from} at once and cannot be called back.",
    done = "{amount} euro have arrived at {to}.",
    within = "30s"
)]
async fn transfer(from: &str, to: &str, amount: u32) -> Result<u32, Bank> {
    tokio::task::yield_now().await; // This is where the bank would be told.
    Ok(4711)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let hub = match env::var("SAYSO_URL") {
        Err(_) => Hub::embedded().agent("bank").open()?,
        Ok(url) => match env::var("SAYSO_TOKEN") {
            Ok(token) => Hub::connect(url).token(token).open().await?,
            Err(_) => Hub::connect(url).open().await?,
        },
    };
    let session = hub.session("Move 500 euro to my savings.").start().await?;
    // The tools find the session by themselves.
    match sayso::within(&session, save(500)).await {
        Ok(said) => {
            println!("{said}");
            session.finish(said).await?;
        }
        Err(why) => {
            println!("Nothing was moved: {why}.");
            // Why not was heard already, when it was refused or failed.
            session.cancel("Nothing was moved.").await?;
        }
    }
    hub.close().await;
    Ok(())
}

async fn save(amount: u32) -> Result<String, CallError<Bank>> {
    let there = balance("checking").await?;
    let receipt = transfer("checking", "savings", amount.min(there)).await?;
    Ok(format!("The receipt is {receipt}."))
}

#[derive(Debug)]
enum Bank {
    NoSuchAccount,
}

impl fmt::Display for Bank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchAccount => f.write_str("there is no such account"),
        }
    }
}
