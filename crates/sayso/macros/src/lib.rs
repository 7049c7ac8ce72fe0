//! The attribute `#[sayso::tool]`.
//!
//! - `attributes`: what stands in the brackets, and what of it does not go together.
//! - `function`: what the function must be, and its arguments.
//! - `words`: texts with arguments in them.
//! - `expand`: the function that comes of it.

mod attributes;
mod expand;
mod function;
mod words;

use proc_macro::TokenStream;

/// Makes an async function a tool: it asks first where it must, announces itself, runs, and reports how it ended.
///
/// The author writes the function, and nothing else. Whoever calls it gets `Result<T, CallError<E>>` where the function itself
/// returns `Result<T, E>`.
///
/// ```no_run
/// # #[derive(Debug)] struct Bank;
/// # impl std::fmt::Display for Bank {
/// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("the bank is closed") }
/// # }
/// #[sayso::tool(
///     risk = "high",
///     irreversible,
///     action = "Transfer {amount} euro from {from} to {to}.",
///     consequence = "The money is gone at once.",
///     within = "30s"
/// )]
/// async fn transfer(from: &str, to: &str, amount: u32) -> Result<u64, Bank> {
///     Ok(4711)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sayso::Error> {
/// # let hub = sayso::Hub::connect("http://127.0.0.1:8787").open().await?;
/// let session = hub.session("Pay Ben.").start().await?;
/// match sayso::within(&session, transfer("checking", "Ben", 5)).await {
///     Ok(receipt) => session.finish(format!("Paid; the receipt is {receipt}.")).await,
///     Err(why) => session.cancel(format!("Nothing was paid: {why}.")).await,
/// }
/// # }
/// ```
///
/// # The session
///
/// If the first argument (after `self`) is a `&Session`, that is the session, and no argument of the tool. Else it is the one
/// that is carried to here, by [`within`](../sayso/fn.within.html) or by the middleware; without one nothing is done, and the
/// error is `Error::NoSession`. The body in turn has its session carried to it, so tools call tools.
///
/// # In the brackets
///
/// | | |
/// |---|---|
/// | `risk = "low"`, `"medium"`, `"high"` | how much harm it could do; if nothing is said, high for what is irreversible and low for the rest |
/// | `irreversible` | it can never be undone |
/// | `action = "…"` | what it does, with arguments as `{name}` or `{name:?}` |
/// | `consequence = "…"` | what comes of it, likewise |
/// | `done = "…"` | what is told when it is done, likewise |
/// | `name = "…"` | the tool's name; the function's if nothing is said |
/// | `within = "30s"` | how long it may take, in `ms`, `s`, `m` or `h` |
/// | `answer_within = "2m"` | how long the person has to answer; five minutes if nothing is said |
/// | `shown(name, …)` | these are bound to the answer as they are displayed, for types that are no `Argument` |
/// | `confidential(name, …)` | these are bound to the answer as a salted hash, and are not said |
/// | `skip(name, …)` | these are no part of what is done, like a connection; also `self` |
///
/// What is of high risk or irreversible is asked for: the answer is bound to all arguments but the skipped ones, each of which
/// is an `Argument`. Arguments that neither `action` nor `consequence` says are added to the question, for nobody consents to
/// what was not said. Each argument is said, bound and handed to the body as one and the same value; a format like `{amount:.0}`
/// is refused, because it could say another.
#[proc_macro_attribute]
pub fn tool(attributes: TokenStream, function: TokenStream) -> TokenStream {
    expand::tool(attributes.into(), &function.into()).into()
}
