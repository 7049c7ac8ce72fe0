//! An agent without a framework. Its own loop reports what it does, and asks before it pays.
//!
//! `cargo run -p sayso --features embedded --example manual_loop` uses a hub of its own without listeners. Nobody can be asked, which
//! counts as a no. With `SAYSO_URL` (and `SAYSO_TOKEN`) it connects to a `sayso serve`.

use std::env;

use sayso::{Action, Answer, CallError, Error, ErrorCategory, Failure, Hub, Session};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let hub = match env::var_os("SAYSO_URL") {
        None => Hub::embedded().agent("bank").agent_name("Bill payer").open()?,
        Some(_) => Hub::from_env().agent_name("Bill payer").open().await?,
    };
    let session = hub.session("Pay my electricity bill.").start().await?;
    match pay(session).await {
        Ok(output) => println!("{output}"),
        Err(error) => println!("The request failed: {error}."),
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
            Err(error) => {
                let failure = Failure::new(format!("The bill could not be found: {error}"))
                    .category(ErrorCategory::Transient);
                session.fail(failure).await?;
                return Ok("There is no bill.".to_owned());
            }
        };

    // The model's text is reported as it arrives.
    for token in ["The bill", " is 5", "0 eu", "ros. It is", " due today."] {
        session.output(token).await?;
    }

    let action = Action::new("pay", format!(r#"{{"bill":"{bill}","amount":"50.00"}}"#))
        .says("Pay 50 euros to the electricity company.")
        .consequence("The money leaves your account at once.")
        .irreversible();
    let output = match session.ask(action).await? {
        Answer::Refused(refusal) => format!("Nothing was paid: {refusal}."),
        // `send_money` can only be called with the person's yes to exactly this payment.
        Answer::Granted(granted) => match session.call(granted, send_money).await {
            Ok(receipt) => format!("The bill is paid; the receipt is {receipt}."),
            Err(CallError::Session(error)) => return Err(error),
            Err(error) => format!("The payment failed: {error}."),
        },
    };
    session.finish(output.as_str()).await?;
    Ok(output)
}

async fn find_bill() -> Result<String, std::io::Error> {
    tokio::task::yield_now().await; // Search the mail here.
    Ok("2026-11".to_owned())
}

async fn send_money(_arguments: String) -> Result<u32, std::io::Error> {
    tokio::task::yield_now().await; // Send the payment to the bank here.
    Ok(4711)
}
