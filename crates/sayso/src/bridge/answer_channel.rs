//! The channel through which the framework learns the answer to a question.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use tokio::sync::oneshot;

use crate::consent::ConsentRefusal;
use crate::error::Error;

/// Permission to run a tool: the call was announced and, if needed, the person said yes. Only a bridge creates one:
///
/// ```compile_fail,E0451
/// let forged = sayso::bridge::Permission { arguments: None };
/// ```
///
/// If the person was asked, it contains the arguments:
///
/// ```
/// # testing::example_with_listener!(hub, _session, {
/// # let (reporter, task) = sayso::callbacks::SessionReporterBuilder::new(&hub).open();
/// # let _task = tokio::spawn(task);
/// # use sayso::callbacks::Callbacks;
/// // A listener is connected here and says yes.
/// reporter.on_chain_start("c1", "Pay Ben.")?;
/// let permission = reporter.on_tool_start("t1", "send", r#"{"to":"Ben"}"#).await.unwrap();
/// assert_eq!(permission.arguments(), Some(r#"{"to":"Ben"}"#));
/// # });
/// ```
#[derive(Debug)]
#[must_use = "the tool was already announced"]
pub struct Permission {
    pub(super) arguments: Option<String>,
}

impl Permission {
    /// Returns the arguments to which the person said yes, as JSON. The tool must run with exactly these. `None` if nobody was asked.
    pub fn arguments(&self) -> Option<&str> {
        self.arguments.as_deref()
    }
}

/// The reason why there is no permission. In every case the tool must not run.
///
/// ```
/// assert_eq!(sayso::bridge::Denial::Abandoned.to_string(), "the session ended before a decision");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Denial {
    /// The person said no, or there is no answer.
    #[error("{0}")]
    Refused(ConsentRefusal),
    /// The question or the call was rejected: it violates a rule, or the session is over.
    #[error(transparent)]
    Error(Error),
    /// There was no decision: the session or the task that drives it has ended.
    #[error("the session ended before a decision")]
    Abandoned,
}

/// The sending side of an answer. Dropping it sends [`Denial::Abandoned`], because no decision counts as no.
///
/// ```
/// use sayso::bridge::{AnswerSender, Denial, Permission};
///
/// // As a channel.
/// let (sender, answer) = AnswerSender::<Permission>::channel();
/// drop(sender);
/// assert_eq!(answer.wait().unwrap_err(), Denial::Abandoned);
///
/// // As a callback.
/// let _sender = AnswerSender::<Permission>::callback(|answer| println!("{answer:?}"));
/// ```
pub struct AnswerSender<T>(Option<AnswerTarget<T>>);

type AnswerCallback<T> = Box<dyn FnOnce(Result<T, Denial>) + Send>;

enum AnswerTarget<T> {
    Channel(oneshot::Sender<Result<T, Denial>>),
    Callback(AnswerCallback<T>),
}

impl<T> AnswerSender<T> {
    /// Creates a sender and the future that waits for its answer.
    pub fn channel() -> (Self, PendingAnswer<T>) {
        let (sender, receiver) = oneshot::channel();
        (Self(Some(AnswerTarget::Channel(sender))), PendingAnswer(receiver))
    }

    /// Creates a sender that calls a function, on the thread that drives the session. The function should only pass the answer on.
    pub fn callback(callback: impl FnOnce(Result<T, Denial>) + Send + 'static) -> Self {
        Self(Some(AnswerTarget::Callback(Box::new(callback))))
    }

    /// Whether nobody is waiting for the answer any more.
    pub(super) fn is_closed(&self) -> bool {
        matches!(&self.0, Some(AnswerTarget::Channel(sender)) if sender.is_closed())
    }

    /// Waits until nobody is waiting for the answer any more.
    pub(crate) async fn closed(&mut self) {
        match &mut self.0 {
            Some(AnswerTarget::Channel(sender)) => sender.closed().await,
            // A callback cannot be cancelled.
            Some(AnswerTarget::Callback(_)) | None => std::future::pending().await,
        }
    }

    /// Sends the answer. Returns whether somebody received it.
    pub(crate) fn send(mut self, answer: Result<T, Denial>) -> bool {
        match self.0.take() {
            None => false,
            Some(AnswerTarget::Channel(sender)) => sender.send(answer).is_ok(),
            Some(AnswerTarget::Callback(callback)) => {
                callback(answer);
                true
            }
        }
    }
}

impl<T> Drop for AnswerSender<T> {
    fn drop(&mut self) {
        // The receiver of a channel notices that the channel is closed.
        if let Some(AnswerTarget::Callback(callback)) = self.0.take() {
            callback(Err(Denial::Abandoned));
        }
    }
}

impl<T> fmt::Debug for AnswerSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerSender")
    }
}

/// A future that waits for an answer. A thread without a runtime can use [`wait`](Self::wait). Dropping it withdraws the question, and
/// the tool is not announced.
///
/// ```
/// # testing::run_example!({
/// use sayso::bridge::{AnswerSender, PendingAnswer, Permission};
///
/// async fn run(answer: PendingAnswer<Permission>) -> String {
///     match answer.await {
///         Ok(permission) => format!("Running with {:?}.", permission.arguments()),
///         Err(denial) => format!("Not running: {denial}."),
///     }
/// }
/// let (sender, answer) = AnswerSender::channel();
/// drop(sender);
/// assert_eq!(run(answer).await, "Not running: the session ended before a decision.");
/// # });
/// ```
#[derive(Debug)]
#[must_use = "the tool must not run before there is an answer"]
pub struct PendingAnswer<T>(oneshot::Receiver<Result<T, Denial>>);

impl<T> PendingAnswer<T> {
    /// Creates an answer that is already a denial.
    pub(crate) fn denied(denial: Denial) -> Self {
        let (reply, answer) = AnswerSender::channel();
        reply.send(Err(denial));
        answer
    }

    /// Blocks this thread until there is an answer. A person may take minutes. Do not call it on a thread of the runtime that drives
    /// the session, because that would deadlock; await the answer there.
    pub fn wait(self) -> Result<T, Denial> {
        let waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut answer = pin!(self);
        loop {
            if let Poll::Ready(answer) = answer.as_mut().poll(&mut context) {
                return answer;
            }
            std::thread::park();
        }
    }
}

impl<T> Future for PendingAnswer<T> {
    type Output = Result<T, Denial>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|answer| answer.unwrap_or(Err(Denial::Abandoned)))
    }
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
