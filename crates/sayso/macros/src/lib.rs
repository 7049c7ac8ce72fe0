//! The attribute `#[sayso::tool]`.
//!
//! - `attributes`: parses the keys of the attribute and checks their combination.
//! - `function`: checks the function and reads its arguments.
//! - `placeholders`: finds the arguments in texts.
//! - `expand`: generates the decorated function.

mod attributes;
mod expand;
mod function;
mod placeholders;

use proc_macro::TokenStream;

/// Makes an async function a tool: it asks for consent if needed, announces itself, runs, and reports its outcome.
///
/// The author writes only the function. If it returns `Result<T, E>`, its caller gets `Result<T, CallError<E>>`.
///
/// ```no_run
/// # #[derive(Debug)] struct BankError;
/// # impl std::fmt::Display for BankError {
/// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("the bank is closed") }
/// # }
/// #[sayso::tool(
///     risk = "high",
///     irreversible,
///     action = "Transfer {amount} euros from {from} to {to}.",
///     consequence = "The money leaves your account at once.",
///     timeout = "30s"
/// )]
/// async fn transfer(from: &str, to: &str, amount: u32) -> Result<u64, BankError> {
///     Ok(4711)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sayso::Error> {
/// # let hub = sayso::Hub::connect("http://127.0.0.1:8787").open().await?;
/// let session = hub.session("Pay Ben.").start().await?;
/// match sayso::within(&session, transfer("checking", "Ben", 5)).await {
///     Ok(receipt) => session.finish(format!("Paid; the receipt is {receipt}.")).await,
///     Err(error) => session.cancel(format!("Nothing was paid: {error}.")).await,
/// }
/// # }
/// ```
///
/// # The session
///
/// If the first argument (after `self`) is a `&Session`, it is the session and not an argument of the tool. Otherwise the tool uses
/// the current session, which [`within`](../sayso/fn.within.html) or the middleware sets. Without a session the tool does not run,
/// and the error is `Error::NoSession`. The session is also the current one inside the body, so tools can call tools.
///
/// # Keys
///
/// | key | meaning |
/// |---|---|
/// | `risk = "low"`, `"medium"`, `"high"` | how much harm the tool can do; the default is high for an irreversible tool and low otherwise |
/// | `irreversible` | the action cannot be undone |
/// | `action = "…"` | what the tool does, with arguments as `{name}` or `{name:?}` |
/// | `consequence = "…"` | the consequence of the action, with arguments |
/// | `done = "…"` | the text on success, with arguments |
/// | `name = "…"` | the tool's name; the default is the function's name |
/// | `timeout = "30s"` | the time limit, in `ms`, `s`, `m` or `h` |
/// | `answer_timeout = "2m"` | how long the person has to answer; the default is five minutes |
/// | `shown(name, …)` | binds the answer to the `Display` text of these arguments, for types that do not implement `Argument` |
/// | `confidential(name, …)` | binds the answer to a salted hash of these arguments; no text may contain them |
/// | `skip(name, …)` | does not bind the answer to these arguments or `self`; only for what does not affect the action, such as a connection |
///
/// A high-risk or irreversible tool asks for consent. The answer is bound to all arguments except skipped ones. Each of them must
/// implement `Argument`, unless it is listed in `shown`. Except for confidential arguments, the person must hear everything that the
/// answer is bound to, so arguments that neither `action` nor `consequence` contains are added to the question. A format such as
/// `{amount:.0}` is rejected, because it could show a value other than the one that the tool receives.
#[proc_macro_attribute]
pub fn tool(attributes: TokenStream, function: TokenStream) -> TokenStream {
    expand::tool(attributes.into(), &function.into()).into()
}
