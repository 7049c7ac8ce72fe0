//! Calls of tools: said before they are made, and always said to have ended.

use std::fmt;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use aaep::ToolCallId;
use seal::json::Scribe;

use super::Session;
use super::say::short;
use crate::consent::{Risk, danger};
use crate::desk::{LEFT, Order};
use crate::error::{CallError, Error};
use crate::member;
use crate::redact::Cleaner;
use crate::track::{Intent, english, left};
use crate::words::{Words, human};

/// More bytes of a tool's error are not looked at.
const ENOUGH: usize = 64 * 1024;

/// A call that needs no consent and has not been made.
///
/// ```
/// # testing::example!(hub, session, {
/// let weather = async { Ok::<_, std::io::Error>("rain") };
/// let call = session.tool("weather").says("Asking for the weather.").with("Oslo, tomorrow");
/// assert_eq!(call.run(weather).await.unwrap(), "rain");
/// # session.finish("It rains.").await?;
/// # });
/// ```
#[must_use = "nothing is said before it is started or run"]
pub struct Call<'s> {
    session: &'s Session,
    tool: String,
    details: Box<CallDetails>,
    limit: Option<Duration>,
}

/// What is said of a call when it is made (§4.3.1).
#[derive(Clone, Debug)]
pub(crate) struct CallDetails {
    pub(crate) words: Option<Words>,
    pub(crate) description: Option<Words>,
    pub(crate) arguments: Option<Words>,
    pub(crate) expected_duration: Option<Duration>,
    pub(crate) risk: Risk,
}

impl CallDetails {
    pub(crate) fn new(risk: Risk) -> Self {
        Self { words: None, description: None, arguments: None, expected_duration: None, risk }
    }

    /// Writes them; `default` stands for words that are not there.
    pub(crate) fn write(&self, out: &mut Scribe, cleaner: &Cleaner, default: &Words, is_irreversible: bool) {
        danger(out, self.risk, is_irreversible);
        let words = self.words.as_ref().unwrap_or(default);
        words.write(out, cleaner);
        words.write_beside_optional(out, cleaner, "description", self.description.as_ref());
        words.write_beside_optional(out, cleaner, "args_summary", self.arguments.as_ref());
        member::optional_millis(out, "expected_duration_ms", self.expected_duration);
    }
}

/// Setters of everything that has [`CallDetails`] in its field `details`.
macro_rules! call_details {
    ($type:ty) => {
        impl $type {
            setters! {
                /// What the tool does in general. Words in one language only are the same in all languages of the call.
                description(description: impl Into<crate::Words>) => details.description = Some(description.into());

                /// The arguments in words. Words in one language only are the same in all languages of the call.
                with(arguments: impl Into<crate::Words>) => details.arguments = Some(arguments.into());

                /// How long the call should take.
                expected_duration(duration: std::time::Duration) => details.expected_duration = Some(duration);
            }
        }
    };
}
pub(crate) use call_details;

call_details!(Call<'_>);

impl<'s> Call<'s> {
    pub(crate) fn new(session: &'s Session, tool: String, details: Box<CallDetails>) -> Self {
        Self { session, tool, details, limit: None }
    }

    setters! {
        /// What this call does.
        says(words: impl Into<Words>) => details.words = Some(words.into());

        /// It could do some harm. What could do much is asked for.
        medium_risk() => details.risk = Risk::Medium;

        /// How long [`run`](Self::run) lets it take.
        within(limit: Duration) => limit = Some(limit);
    }

    /// Says that the tool runs from now on.
    pub async fn start(self) -> Result<Tool<'s>, Error> {
        let default = Words::new(format!("{}.", human(&self.tool)));
        let write = |out: &mut Scribe| self.details.write(out, &self.session.cleaner, &default, false);
        Tool::open(self.session, self.tool, write, false).await
    }

    /// Says that the tool runs, runs it, and says how it ended. It is dropped when its time is over, or when the person
    /// stops the session.
    pub async fn run<T, E: fmt::Display>(
        self,
        tool: impl Future<Output = Result<T, E>>,
    ) -> Result<T, CallError<E>> {
        let limit = self.limit;
        self.start().await?.run(tool, limit).await
    }
}

debug_tuple!(Call<'_>, tool);

/// A call that is open: it has been said that the tool runs, and must be said how it ended. One that is dropped is said to
/// have been left.
///
/// ```
/// # testing::example!(hub, session, {
/// let tool = session.tool("weather").says("Looking at the sky.").start().await?;
/// match std::fs::read_to_string("no/such/station") {
///     Ok(weather) => tool.done(weather).await?,
///     Err(why) => tool.failed(why.to_string()).await?,
/// }
/// # session.fail("The weather is not known.").await?;
/// # });
/// ```
#[must_use = "a tool that is dropped is said to have been left in the middle"]
pub struct Tool<'s> {
    session: &'s Session,
    name: String,
    call: ToolCallId,
    since: Instant,
    open: bool,
    /// What [`run`](Self::run) says when it is done.
    success: Option<Box<Words>>,
}

impl<'s> Tool<'s> {
    /// Says that a tool runs, by a yes or without; `payload` writes all but the type, the tool and the call.
    pub(super) async fn open(
        session: &'s Session,
        tool: String,
        payload: impl FnOnce(&mut Scribe),
        spends: bool,
    ) -> Result<Self, Error> {
        let call = ToolCallId::numbered(session.calls.fetch_add(1, Ordering::Relaxed) + 1);
        let event = session.event("aaep:agent.tool.invoked", |out| {
            member::text(out, "tool", &tool);
            member::text(out, "tool_call_id", call.as_str());
            payload(out);
        });
        // Made before it is said: if this future is dropped meanwhile, the call is closed all the same.
        let open = Self { session, name: tool, call, since: Instant::now(), open: true, success: None };
        let intent = Intent::Invoke { call: open.call.clone(), tool: open.name.clone(), event, spends };
        match session.say(intent).await {
            Ok(_) => Ok(open),
            Err(error) => {
                open.forget();
                Err(error)
            }
        }
    }

    /// It did what it should.
    pub async fn done(self, words: impl Into<Words>) -> Result<(), Error> {
        self.close("success", &words.into(), None).await
    }

    /// It did what it should, and there is no more to say.
    pub(crate) async fn plainly_done(self) -> Result<(), Error> {
        let words = Words::ours(format!("{} is done.", human(&self.name)));
        self.done(words).await
    }

    /// It failed, for this reason. Listeners hear that it did, and why.
    pub async fn failed(self, why: impl Into<Words>) -> Result<(), Error> {
        let why = self.reason(&why.into());
        // In another language, or in several, the author's own words are all there is to say.
        let words = if self.session.english && why.is_one_text() {
            Words::new(format!("{} failed: {}", human(&self.name), why.normal()))
        } else {
            why.clone()
        };
        self.close("error", &words, Some(&why)).await
    }

    /// It failed, in these words, and for this reason. A reason in one language only is the same in all languages of the words.
    pub async fn failed_as(self, words: impl Into<Words>, why: impl Into<Words>) -> Result<(), Error> {
        let why = self.reason(&why.into());
        self.close("error", &words.into(), Some(&why)).await
    }

    /// Why it failed, without secrets and no longer than the protocol allows.
    fn reason(&self, why: &Words) -> Words {
        why.each(&|why| {
            // Of the beginning of a secret that is cut in two, nothing is left once it is short.
            let start = why.get(..why.floor_char_boundary(ENOUGH)).unwrap_or_default();
            short(&self.session.cleaner.clean(start)).into_owned()
        })
    }

    /// It took too long.
    pub async fn timed_out(self) -> Result<(), Error> {
        let why = Words::ours(format!("{} took too long.", human(&self.name)));
        self.close("timeout", &why, Some(&why)).await
    }

    /// In other words than that it is done.
    pub(crate) fn success(mut self, words: Option<Words>) -> Self {
        self.success = words.map(Box::new);
        self
    }

    pub(crate) async fn run<T, E: fmt::Display>(
        mut self,
        tool: impl Future<Output = Result<T, E>>,
        limit: Option<Duration>,
    ) -> Result<T, CallError<E>> {
        let session = self.session;
        let ended = tokio::select! {
            ended = within(limit, tool) => ended,
            stop = session.stopped() => {
                self.forget();
                return Err(Error::Stopped(stop).into());
            }
        };
        match ended {
            Some(Ok(value)) => {
                match self.success.take() {
                    Some(words) => self.done(*words).await?,
                    None => self.plainly_done().await?,
                }
                Ok(value)
            }
            Some(Err(error)) => {
                self.failed(error.to_string()).await?;
                Err(CallError::Tool(error))
            }
            None => {
                self.timed_out().await?;
                Err(CallError::TimedOut)
            }
        }
    }

    async fn close(mut self, status: &str, words: &Words, error: Option<&Words>) -> Result<(), Error> {
        let event = self.session.event("aaep:agent.tool.completed", |out| {
            member::all(
                out,
                &[("tool", &self.name), ("tool_call_id", self.call.as_str()), ("status", status)],
            );
            words.write(out, &self.session.cleaner);
            words.write_beside_optional(out, &self.session.cleaner, "error_message", error);
            if words.ours && !self.session.english {
                english(out);
            }
            member::millis(out, "duration_ms", self.since.elapsed());
        });
        let said = self.session.say(Intent::Complete { call: self.call.clone(), event }).await;
        // What was refused is still open, and is closed in plain words when it is dropped.
        self.open = said.is_err();
        said.map(drop)
    }

    /// There is nothing to close.
    fn forget(mut self) {
        self.open = false;
    }
}

impl Drop for Tool<'_> {
    fn drop(&mut self) {
        if self.open {
            let event = left(&self.name, &self.call, LEFT);
            let intent = Intent::Complete { call: self.call.clone(), event };
            let session = self.session.started.id.clone();
            self.session.started.orders.order(Order::Do { session, intent, reply: None });
        }
    }
}

impl fmt::Debug for Tool<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {}", self.name, self.call)
    }
}

/// `None` when the time is over.
async fn within<T>(limit: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match limit {
        None => Some(work.await),
        Some(limit) => tokio::time::timeout(limit, work).await.ok(),
    }
}
