//! How the native side learns what came of a question.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use tokio::sync::oneshot;

use crate::consent::Refused;
use crate::error::Error;

/// A tool may run: listeners have been told that it does, and where that is needed the person has said yes. There is no other
/// way to have one than to ask:
///
/// ```compile_fail,E0451
/// let forged = sayso::bridge::Allowed { arguments: None };
/// ```
///
/// One for which the person was asked has the arguments with it:
///
/// ```
/// # testing::heard!(hub, _session, {
/// # let (narrator, telling) = sayso::callbacks::Narration::on(&hub).open();
/// # let _telling = tokio::spawn(telling);
/// # use sayso::callbacks::Callbacks;
/// // Somebody listens here, and says yes.
/// narrator.on_chain_start("c1", "Pay Ben.")?;
/// let allowed = narrator.on_tool_start("t1", "send", r#"{"to":"Ben"}"#).await.unwrap();
/// assert_eq!(allowed.arguments(), Some(r#"{"to":"Ben"}"#));
/// # });
/// ```
#[derive(Debug)]
#[must_use = "the tool is said to run from now on"]
pub struct Allowed {
    pub(super) arguments: Option<String>,
}

impl Allowed {
    /// The arguments to which the person said yes, as JSON: the tool runs with exactly these. None where nobody was asked.
    pub fn arguments(&self) -> Option<&str> {
        self.arguments.as_deref()
    }
}

/// Why there is no yes. Whatever it is, the tool must not run.
///
/// ```
/// assert_eq!(sayso::bridge::Denied::Left.to_string(), "nobody was left to decide");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Denied {
    /// The answer is no, or there is none.
    #[error("{0}")]
    Refused(Refused),
    /// It could not be asked or told: it breaks a rule, or the session is over.
    #[error(transparent)]
    Error(Error),
    /// Nobody was left to decide: the session ended, or whoever drives it is gone.
    #[error("nobody was left to decide")]
    Left,
}

/// Where an answer goes. One that is dropped tells [`Denied::Left`]: undecided means no.
///
/// ```
/// use sayso::bridge::{Allowed, Denied, Reply};
///
/// // For whoever waits.
/// let (reply, gate) = Reply::<Allowed>::gate();
/// drop(reply);
/// assert_eq!(gate.wait().unwrap_err(), Denied::Left);
///
/// // For whoever is called.
/// let _reply = Reply::<Allowed>::call(|verdict| println!("{verdict:?}"));
/// ```
pub struct Reply<T>(Option<To<T>>);

type Told<T> = Box<dyn FnOnce(Result<T, Denied>) + Send>;

enum To<T> {
    Gate(oneshot::Sender<Result<T, Denied>>),
    Call(Told<T>),
}

impl<T> Reply<T> {
    /// A reply, and what waits for it.
    pub fn gate() -> (Self, Gate<T>) {
        let (tell, told) = oneshot::channel();
        (Self(Some(To::Gate(tell))), Gate(told))
    }

    /// A reply that calls this, on the thread that drives the session: it should only pass it on.
    pub fn call(told: impl FnOnce(Result<T, Denied>) + Send + 'static) -> Self {
        Self(Some(To::Call(Box::new(told))))
    }

    /// Whether nobody waits any more.
    pub(super) fn is_in_vain(&self) -> bool {
        matches!(&self.0, Some(To::Gate(tell)) if tell.is_closed())
    }

    /// Until nobody waits any more.
    pub(crate) async fn left(&mut self) {
        match &mut self.0 {
            Some(To::Gate(tell)) => tell.closed().await,
            // Who is called cannot say so.
            Some(To::Call(_)) | None => std::future::pending().await,
        }
    }

    /// Whether somebody has been told.
    pub(crate) fn tell(mut self, answer: Result<T, Denied>) -> bool {
        match self.0.take() {
            None => false,
            Some(To::Gate(tell)) => tell.send(answer).is_ok(),
            Some(To::Call(told)) => {
                told(answer);
                true
            }
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        // A gate learns it from the end of its channel.
        if let Some(To::Call(told)) = self.0.take() {
            told(Err(Denied::Left));
        }
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

/// Waits for an answer: a future, or for a thread that has none, [`wait`](Self::wait). Who drops it waits no more: the
/// question is taken back, and the tool is not said to run.
///
/// ```
/// # testing::example!({
/// use sayso::bridge::{Allowed, Gate, Reply};
///
/// async fn run(gate: Gate<Allowed>) -> String {
///     match gate.await {
///         Ok(allowed) => format!("Running with {:?}.", allowed.arguments()),
///         Err(why) => format!("Not running: {why}."),
///     }
/// }
/// let (reply, gate) = Reply::gate();
/// drop(reply);
/// assert_eq!(run(gate).await, "Not running: nobody was left to decide.");
/// # });
/// ```
#[derive(Debug)]
#[must_use = "the tool must not run before the answer is there"]
pub struct Gate<T>(oneshot::Receiver<Result<T, Denied>>);

impl<T> Gate<T> {
    /// One that was answered at once.
    pub(crate) fn denied(why: Denied) -> Self {
        let (reply, gate) = Reply::gate();
        reply.tell(Err(why));
        gate
    }

    /// Blocks this thread until the answer is there. A person may take minutes. On a thread of the runtime that drives the
    /// session nobody would be left to bring the answer: await it there.
    pub fn wait(self) -> Result<T, Denied> {
        let waker = Waker::from(Arc::new(Parked(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut gate = pin!(self);
        loop {
            if let Poll::Ready(answer) = gate.as_mut().poll(&mut context) {
                return answer;
            }
            std::thread::park();
        }
    }
}

impl<T> Future for Gate<T> {
    type Output = Result<T, Denied>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|told| told.unwrap_or(Err(Denied::Left)))
    }
}

struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
