//! Calls of tools: said before they are made, and always said to have ended.

use std::fmt;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use seal::json::{Tape, Writer};

use super::Session;
use super::say::short;
use crate::consent::{Risk, danger};
use crate::desk::{LEFT, Order};
use crate::error::{CallError, Error};
use crate::track::{Intent, english, left};
use crate::words::{Words, human};

/// More bytes of a tool's error are not looked at.
const ENOUGH: usize = 64 * 1024;

/// A call that needs no consent and has not been made.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sayso::Error> {
/// # let hub = sayso::Hub::embedded().open()?;
/// # let session = hub.session("Pay Ben.").start().await?;
/// let weather = async { Ok::<_, std::io::Error>("rain") };
/// let call = session.tool("weather").says("Asking for the weather.").with("Oslo, tomorrow");
/// assert_eq!(call.run(weather).await.unwrap(), "rain");
/// # session.finish("It rains.").await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is said before it is started or run"]
pub struct Call<'s> {
    session: &'s Session,
    tool: String,
    words: Option<Words>,
    arguments: Option<Words>,
    risk: Risk,
    limit: Option<Duration>,
}

impl<'s> Call<'s> {
    pub(super) fn new(session: &'s Session, tool: String) -> Self {
        Self { session, tool, words: None, arguments: None, risk: Risk::Low, limit: None }
    }

    /// What this call does.
    pub fn says(mut self, words: impl Into<Words>) -> Self {
        self.words = Some(words.into());
        self
    }

    /// The arguments in words; in one language only, they are the same in all.
    pub fn with(mut self, arguments: impl Into<Words>) -> Self {
        self.arguments = Some(arguments.into());
        self
    }

    /// It could do some harm. What could do much is asked for.
    pub fn medium_risk(mut self) -> Self {
        self.risk = Risk::Medium;
        self
    }

    /// How long [`run`](Self::run) lets it take.
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Says that the tool runs from now on.
    pub async fn start(self) -> Result<Tool<'s>, Error> {
        let cleaner = &self.session.cleaner;
        let mut out = Writer::default();
        out.open_object();
        danger(&mut out, self.risk, false);
        let words = self.words.unwrap_or_else(|| Words::new(format!("{}.", human(&self.tool))));
        words.write(&mut out, cleaner);
        if let Some(arguments) = &self.arguments {
            words.write_beside(&mut out, cleaner, "args_summary", arguments);
        }
        out.close_object();
        Tool::open(self.session, self.tool, &out.finish(), false).await
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

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Call").field(&self.tool).finish()
    }
}

/// A call that is open: it has been said that the tool runs, and must be said how it ended. One that is dropped is said to
/// have been left.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sayso::Error> {
/// # let hub = sayso::Hub::embedded().open()?;
/// # let session = hub.session("Pay Ben.").start().await?;
/// let tool = session.tool("weather").says("Looking at the sky.").start().await?;
/// match std::fs::read_to_string("no/such/station") {
///     Ok(weather) => tool.done(weather).await?,
///     Err(why) => tool.failed(why.to_string()).await?,
/// }
/// # session.fail("The weather is not known.").await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a tool that is dropped is said to have been left in the middle"]
pub struct Tool<'s> {
    session: &'s Session,
    name: String,
    call: String,
    since: Instant,
    open: bool,
    /// What [`run`](Self::run) says when it is done.
    success: Option<Box<Words>>,
}

impl<'s> Tool<'s> {
    /// Says that a tool runs, by a yes or without; `payload` is an object of all but the type, the tool and the call.
    pub(super) async fn open(
        session: &'s Session,
        tool: String,
        payload: &str,
        spends: bool,
    ) -> Result<Self, Error> {
        let call = format!("call_{}", session.calls.fetch_add(1, Ordering::Relaxed) + 1);
        let event = Session::event("aaep:agent.tool.invoked", |out| {
            for (name, text) in [("tool", &tool), ("tool_call_id", &call)] {
                out.key(name);
                out.text(text);
            }
            let mut tape = Tape::default();
            if let Ok(doc) = tape.read(payload) {
                for (name, value) in doc.root().members() {
                    out.key(&name.text().unwrap_or_default());
                    out.raw(value.source());
                }
            }
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

    #[cfg(feature = "rig")]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// It did what it should.
    pub async fn done(self, words: impl Into<Words>) -> Result<(), Error> {
        self.close("success", &words.into(), None).await
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
                let words = self.success.take().map(|words| *words);
                let words = words.unwrap_or_else(|| Words::ours(format!("{} is done.", human(&self.name))));
                self.close("success", &words, None).await?;
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
        let event = Session::event("aaep:agent.tool.completed", |out| {
            for (name, text) in [("tool", &*self.name), ("tool_call_id", &self.call), ("status", status)] {
                out.key(name);
                out.text(text);
            }
            words.write(out, &self.session.cleaner);
            if let Some(error) = error {
                words.write_beside(out, &self.session.cleaner, "error_message", error);
            }
            if words.are_ours() && !self.session.english {
                english(out);
            }
            out.key("duration_ms");
            out.integer(i64::try_from(self.since.elapsed().as_millis()).unwrap_or(i64::MAX));
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
