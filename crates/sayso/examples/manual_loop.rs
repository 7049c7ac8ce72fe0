//! An agent without a framework: its own loop says what it does, and asks before it pays.
//!
//! `cargo run -p sayso --features embedded --example manual_loop` has a hub of its own, to which nobody listens: so nobody can be asked, and
//! that means no. With `SAYSO_URL` (and `SAYSO_TOKEN`) it speaks to a `sayso serve`.

use std::env;

use sayso::{Action, Answer, CallError, Cause, Error, Failure, Hub, Session};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let hub = match env::var("SAYSO_URL") {
        Err(_) => Hub::embedded().agent("bank").open()?,
        Ok(url) => {
            let connect = Hub::connect(url);
            match env::var("SAYSO_TOKEN") {
                Ok(token) => connect.token(token).open().await?,
                Err(_) => connect.open().await?,
            }
        }
    };
    let session = hub.session("Pay my electricity bill.").start().await?;
    match pay(session).await {
        Ok(said) => println!("{said}"),
        Err(error) => println!("It came to nothing: {error}."),
    }
    hub.close().await;
    Ok(())
}

async fn pay(session: Session) -> Result<String, Error> {
    session.think("Looking for the bill.").await?;
    let bill =
        match session.tool("find_bill").says("Searching your mail for the bill.").run(find_bill()).await {
            Ok(bill) => bill,
            Err(CallError::Session(error)) => return Err(error),
            Err(why) => {
                let failure =
                    Failure::new(format!("The bill could not be found: {why}")).cause(Cause::Transient);
                session.fail(failure).await?;
                return Ok("There is no bill.".to_owned());
            }
        };

    // A model's words go in as they come.
    for token in ["The bill", " is 5", "0 eu", "ro. It is", " due today."] {
        session.output(token).await?;
    }

    let action = Action::new("pay", format!(r#"{{"bill":"{bill}","amount":"50.00"}}"#))
        .says("Pay 50 euro to the electricity company.")
        .consequence("The money leaves your account at once.")
        .irreversible();
    let said = match session.ask(action).await? {
        Answer::Refused(why) => format!("Nothing was paid: {why}."),
        // The only way to call `pay` is with the person's yes to exactly this payment.
        Answer::Granted(granted) => match session.call(granted, send_money).await {
            Ok(receipt) => format!("The bill is paid; the receipt is {receipt}."),
            Err(CallError::Session(error)) => return Err(error),
            Err(why) => format!("The payment failed: {why}."),
        },
    };
    session.finish(said.as_str()).await?;
    Ok(said)
}

async fn find_bill() -> Result<String, std::io::Error> {
    tokio::task::yield_now().await; // This is where the mail would be searched.
    Ok("2026-11".to_owned())
}

async fn send_money(_arguments: String) -> Result<u32, std::io::Error> {
    tokio::task::yield_now().await; // This is where the bank would be asked.
    Ok(4711)
}
