//! Tools that ask, announce themselves and report their outcome. The author writes only the functions.
//!
//! `cargo run -p sayso --features embedded --example decorator` uses a hub of its own without listeners. Nobody can be asked, which
//! counts as a no. With `SAYSO_URL` (and `SAYSO_TOKEN`) it connects to a `sayso serve`.

use std::{env, fmt};

use sayso::{CallError, Error, Hub};

/// Needs no consent, but is announced.
#[sayso::tool(action = "Look up the balance of {account}.", timeout = "10s")]
async fn balance(account: &str) -> Result<u32, BankError> {
    tokio::task::yield_now().await; // Query the bank here.
    if account == "checking" { Ok(700) } else { Err(BankError::NoSuchAccount) }
}

/// Runs only after the person said yes to exactly these arguments.
#[sayso::tool(
    risk = "high",
    irreversible,
    action = "Transfer {amount} euros from {from} to {to}.",
    consequence = "The money leaves {from} at once, and the transfer cannot be reversed.",
    done = "{amount} euros have arrived in {to}.",
    timeout = "30s"
)]
async fn transfer(from: &str, to: &str, amount: u32) -> Result<u32, BankError> {
    tokio::task::yield_now().await; // Send the transfer to the bank here.
    Ok(4711)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let hub = match env::var_os("SAYSO_URL") {
        None => Hub::embedded().agent("bank").agent_name("Bank assistant").open()?,
        Some(_) => Hub::from_env().agent_name("Bank assistant").open().await?,
    };
    let session = hub.session("Move 500 euros to my savings.").start().await?;
    // The tools find the current session on their own.
    match sayso::within(&session, save(500)).await {
        Ok(output) => {
            println!("{output}");
            session.finish(output).await?;
        }
        Err(error) => {
            println!("Nothing was moved: {error}.");
            // Listeners already heard the reason when the call was refused or failed.
            session.cancel("Nothing was moved.").await?;
        }
    }
    hub.close().await;
    Ok(())
}

async fn save(amount: u32) -> Result<String, CallError<BankError>> {
    let available = balance("checking").await?;
    let receipt = transfer("checking", "savings", amount.min(available)).await?;
    Ok(format!("The receipt is {receipt}."))
}

#[derive(Debug)]
enum BankError {
    NoSuchAccount,
}

impl fmt::Display for BankError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchAccount => f.write_str("there is no such account"),
        }
    }
}
