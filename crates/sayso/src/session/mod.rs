//! A session: one request of a person, from its start to one honest end.
//!
//! - `builder`: a session before its start.
//! - `options`: members that every event can have.
//! - `tool`: calls of tools, from saying that one runs to saying how it ended.
//! - `say`: what is said with more than words: progress, states, handing off.
//! - `output`: what its model writes.
//! - `ending`: how a session ends.

mod builder;
mod ending;
mod options;
mod output;
mod say;
mod tool;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aaep::event::EventType;
use seal::json::Scribe;

pub use builder::SessionBuilder;
#[cfg_attr(not(feature = "tower"), allow(unreachable_pub, reason = "the middleware exports it"))]
pub use ending::Ending;
pub use ending::{Cancellation, Cause, Completion, Failure};
pub use options::EventOptions;
pub use output::Output;
pub(crate) use say::short;
pub use say::{HandOff, Progress, State, StateChange, Target};
pub use tool::{Call, Tool};
pub(crate) use tool::{CallDetails, call_details};

use crate::ambient::Current;
use crate::consent::{Action, Answer, Granted, Refused, Risk};
use crate::desk::{Asking, LEFT, Started};
use crate::error::{CallError, Error, Malformed, Stop};
use crate::line::{Outcome, Reply};
use crate::member::{self, Document};
use crate::question::{Clarified, Question};
use crate::redact::Cleaner;
use crate::track::{Intent, Last, OutputForm, Piece};
use crate::words::Words;
pub(crate) use options::Rendered;

/// No more bytes of an output go to the hub at once.
const AT_ONCE: usize = 64 * 1024;

/// A session that is open. Every method says something to whoever listens, and returns when that holds; the changes of
/// state that the protocol wants are said by themselves.
///
/// A session ends by [`finish`](Self::finish), [`fail`](Self::fail) or [`cancel`](Self::cancel), each of which takes it.
/// One that is dropped before, by a panic, a timeout or for whatever reason, has its tools and outputs closed and listeners
/// are told that its agent stopped in the middle. A session with an open tool cannot be ended:
///
/// ```compile_fail,E0505
/// async fn too_early(session: sayso::Session) -> Result<(), sayso::Error> {
///     let tool = session.tool("weather").says("Looking at the sky.").start().await?;
///     session.finish("Done.").await?;
///     tool.done("It rains.").await
/// }
/// ```
///
/// and nothing can be said after the end:
///
/// ```compile_fail,E0382
/// async fn too_late(session: sayso::Session) -> Result<(), sayso::Error> {
///     session.finish("Done.").await?;
///     session.think("One more thing.").await
/// }
/// ```
///
/// So it is said from its start to its end:
///
/// ```
/// # testing::example!(hub, {
/// let session = hub.session("Do I need an umbrella?").start().await?;
/// session.think("Looking at the sky.").await?;
/// session.output("Yes, it rains.").await?;
/// session.finish("You need an umbrella.").await?;
/// # });
/// ```
#[must_use = "a session that is dropped is ended as left in the middle"]
pub struct Session {
    started: Started,
    cleaner: Cleaner,
    options: Rendered,
    calls: Arc<AtomicU64>,
    /// Whether it is in the language of the library's own words.
    english: bool,
}

impl Session {
    fn new(started: Started, cleaner: Cleaner, options: Rendered, language: &str) -> Self {
        let english = language.split('-').next().is_some_and(|tag| tag.eq_ignore_ascii_case("en"));
        Self { started, cleaner, options, calls: Arc::default(), english }
    }

    /// The same session, for who does not own it: letting go of this ends nothing.
    pub(crate) fn handle(&self) -> Self {
        let Started { id, stop, orders, at, .. } = &self.started;
        let started =
            Started { id: id.clone(), stop: stop.clone(), orders: orders.clone(), at: *at, ended: true };
        let (cleaner, options) = (self.cleaner.clone(), self.options.clone());
        Self { started, cleaner, options, calls: self.calls.clone(), english: self.english }
    }

    /// The same session, whose events have these members in place of those of
    /// [`SessionBuilder::options`]. It does not end the session.
    pub fn with(&self, options: EventOptions) -> Result<Current, Error> {
        let options = options.render(&self.cleaner)?;
        Ok(Current::of(Self { options, ..self.handle() }))
    }

    /// Its id.
    pub fn id(&self) -> &str {
        self.started.id.as_str()
    }

    /// The agent thinks, about this.
    pub async fn think(&self, words: impl Into<Words>) -> Result<(), Error> {
        self.enter(StateChange::to(State::Thinking, words)).await
    }

    /// The agent decides between ways to go on.
    pub async fn decide(&self, words: impl Into<Words>) -> Result<(), Error> {
        self.enter(StateChange::to(State::Deciding, words)).await
    }

    /// It is in that state from now on, in these words. The states of tools, outputs and hand-offs are entered and left by themselves
    /// when there is one, without words: this is for who has something to say of them. What is entered so lasts until something
    /// else is entered, asked or handed off.
    pub async fn enter(&self, change: StateChange) -> Result<(), Error> {
        let to = change.state.named();
        let words = change.words.cleaned(&self.cleaner);
        let event = self.event("aaep:agent.state.changed", |out| {
            member::text(out, "to_state", to.as_str());
            words.write(out);
            member::optional_millis(out, "expected_duration_ms", change.expected_duration);
        });
        let instead = self.event("aaep:agent.progress.updated", |out| {
            say::progress(&words, |_| {}, out, &self.cleaner);
        });
        drop(words);
        self.say(Intent::State { to, event, instead }).await.map(drop)
    }

    /// A long task has moved on.
    pub async fn progress(&self, progress: Progress) -> Result<(), Error> {
        let event = self.event("aaep:agent.progress.updated", |out| progress.write(out, &self.cleaner));
        self.say(Intent::Event(Some(event))).await.map(drop)
    }

    /// A tool that may be called without asking. What is irreversible or of high risk is [asked](Self::ask) for.
    pub fn tool(&self, name: impl Into<String>) -> Call<'_> {
        Call::new(self, name.into(), Box::new(CallDetails::new(Risk::Low)))
    }

    /// Text of the model as it comes, cut wherever it is cut. Listeners get it in the pieces that they want. What may be the
    /// beginning of a secret is held until the rest is there. [`Output`] is for a whole text at once, or for one in another
    /// language than the session's.
    ///
    /// ```
    /// # testing::example!(hub, session, {
    /// for piece in ["It rai", "ns in ", "Oslo."] {
    ///     session.output(piece).await?;
    /// }
    /// # session.finish("It rains.").await?;
    /// # });
    /// ```
    pub async fn output(&self, output: impl Into<Output>) -> Result<(), Error> {
        let Output { text, language, content_type, whole } = output.into();
        let form = OutputForm::new(language, content_type);
        let mut rest = text.as_str();
        while !rest.is_empty() || whole {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(AT_ONCE));
            let complete = whole && after.is_empty();
            let text = Piece::Text(piece.to_owned());
            self.say(Intent::Output { text, form: form.clone(), complete }).await?;
            if complete {
                break;
            }
            rest = after;
        }
        Ok(())
    }

    /// The same as bytes, which may be cut in the middle of a character. What is no UTF-8 is heard as U+FFFD, as everywhere.
    pub async fn output_bytes(&self, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        for piece in bytes.as_ref().chunks(AT_ONCE) {
            let text = Piece::Bytes(piece.to_owned());
            self.say(Intent::Output { text, form: None, complete: false }).await?;
        }
        Ok(())
    }

    /// The output is whole. It is also when the agent goes on to something else.
    pub async fn output_done(&self) -> Result<(), Error> {
        self.say(Intent::OUTPUT_DONE).await.map(drop)
    }

    /// Asks the person, and waits. A future that is dropped takes the question back.
    ///
    /// ```
    /// # testing::heard!(hub, session, {
    /// # let action = sending();
    /// // Somebody listens here, and says yes.
    /// let answer = session.ask(action).await?;
    /// assert!(matches!(answer, sayso::Answer::Granted(_)));
    /// # session.cancel("Nothing was sent.").await?;
    /// # });
    /// ```
    pub async fn ask(&self, action: Action) -> Result<Answer, Error> {
        let body = action.body(&self.cleaner, &self.options)?;
        let outcome = self.asked(body, false).await?;
        action.answered(&self.started.id, &outcome)
    }

    /// Spends a consent: says that the call is made, makes it with the arguments that were consented to, and says how it
    /// ended. If the person stops the session meanwhile, the tool's future is dropped.
    ///
    /// ```
    /// # testing::heard!(hub, session, {
    /// # let granted = granted(&session).await;
    /// let send = async |arguments: String| Ok::<_, std::io::Error>(format!("sent with {arguments}"));
    /// let sent = session.call(granted, send).await;
    /// assert_eq!(sent.unwrap(), r#"sent with {"to":"Ben"}"#);
    /// # session.finish("It is sent.").await?;
    /// # });
    /// ```
    pub async fn call<T, E, F>(
        &self,
        granted: Granted,
        tool: impl FnOnce(String) -> F,
    ) -> Result<T, CallError<E>>
    where
        E: std::fmt::Display,
        F: Future<Output = Result<T, E>>,
    {
        let (open, arguments) = self.spend(granted).await?;
        open.run(tool(arguments), None).await
    }

    /// Spends a consent and says that the call is made; making it, and saying how it ended, is left to the caller.
    pub async fn begin(&self, granted: Granted) -> Result<Tool<'_>, Error> {
        self.spend(granted).await.map(|(open, _)| open)
    }

    /// Asks, and spends the yes at once.
    pub(crate) async fn ask_and_begin(&self, action: Action) -> Result<Result<Tool<'_>, Refused>, Error> {
        match self.ask(action).await? {
            Answer::Granted(granted) => self.begin(granted).await.map(Ok),
            Answer::Refused(why) => Ok(Err(why)),
        }
    }

    async fn spend(&self, granted: Granted) -> Result<(Tool<'_>, String), Error> {
        let action = granted.spend(&self.started.id)?;
        let tool = action.tool.clone();
        let open = Tool::open(self, tool, |out| action.write_call(out, &self.cleaner), true).await?;
        Ok((open, action.arguments))
    }

    /// Asks what was meant, and waits. A future that is dropped takes the question back.
    ///
    /// ```
    /// # testing::heard!(hub, session, {
    /// use sayso::{Clarified, Question};
    /// // Somebody listens here, and says that it is Ben Adams.
    /// let question = Question::new("Which Ben?").choice("ben_a", "Ben Adams").choice("ben_o", "Ben Okri");
    /// assert_eq!(session.clarify(question).await?, Clarified::Text("ben_a".to_owned()));
    /// # session.cancel("Nothing was sent.").await?;
    /// # });
    /// ```
    pub async fn clarify(&self, question: Question) -> Result<Clarified, Error> {
        let body = question.body(&self.cleaner, &self.options);
        let outcome = self.asked(body, true).await?;
        Clarified::of(outcome)
    }

    /// Asks that somebody else goes on. The session is still to be ended.
    pub async fn hand_off(&self, hand_off: HandOff) -> Result<(), Error> {
        let context = hand_off.context()?;
        let write = |out: &mut Scribe| hand_off.write(out, context.as_deref(), &self.cleaner);
        let event = self.event("aaep:agent.handoff.requested", write);
        self.say(Intent::HandOff(event)).await.map(drop)
    }

    /// It did what was asked.
    pub async fn finish(self, completion: impl Into<Completion>) -> Result<(), Error> {
        let completion = completion.into();
        let event = self.event("aaep:agent.session.completed", |out| {
            completion.write(out, &self.cleaner);
            member::millis(out, "duration_ms", self.started.at.elapsed());
            member::count(out, "tool_invocations_count", self.calls.load(Ordering::Relaxed));
        });
        self.end(event).await
    }

    /// It failed.
    pub async fn fail(self, failure: impl Into<Failure>) -> Result<(), Error> {
        let failure = failure.into();
        let event = self.event("aaep:agent.session.errored", |out| failure.write(out, &self.cleaner));
        self.end(event).await
    }

    /// The agent ends it before it is done.
    pub async fn cancel(self, cancellation: impl Into<Cancellation>) -> Result<(), Error> {
        let cancellation = cancellation.into();
        let event = self.event("aaep:agent.session.cancelled", |out| cancellation.write(out, &self.cleaner));
        self.end(event).await
    }

    /// Waits until the session is over by another's word than the agent's: the person stops it, most of all. Whatever the
    /// agent does meanwhile should be dropped then; [`Session::call`] and [`Call::run`] do so.
    ///
    /// ```
    /// # testing::person!();
    /// # testing::example!({
    /// # let hub = sayso::Hub::embedded().listen("127.0.0.1:0").open()?;
    /// # let mut person = Person::listen(&hub).await;
    /// # let session = hub.session("Pay Ben.").start().await?;
    /// # person.stops(session.id()).await;
    /// // Somebody listens here, and stops it.
    /// tokio::select! {
    ///     stop = session.stopped() => assert_eq!(stop, sayso::Stop::Person),
    ///     () = std::future::pending() => println!("The agent did its work."),
    /// }
    /// # });
    /// ```
    pub async fn stopped(&self) -> Stop {
        let mut stop = self.started.stop.clone();
        stop.wait_for(Option::is_some).await.ok().and_then(|stop| *stop).unwrap_or(Stop::Other)
    }

    fn event(&self, kind: &str, payload: impl FnOnce(&mut Scribe)) -> Document {
        member::object(|out| {
            out.plain("type", kind);
            self.options.write(EventType::of(kind).is_critical(), out);
            payload(out);
        })
    }

    async fn say(&self, intent: Intent) -> Result<Reply, Error> {
        if let Some(stop) = *self.started.stop.borrow() {
            return Err(Error::Stopped(stop));
        }
        let said = self.started.orders.say(&self.started.id, intent).await;
        match (said, *self.started.stop.borrow()) {
            (Err(Error::Stopped(_)), Some(stop)) => Err(Error::Stopped(stop)),
            (said, _) => said,
        }
    }

    async fn asked(&self, body: Document, clarify: bool) -> Result<Outcome, Error> {
        let asking = Asking(&self.started);
        let outcome = self.say(Intent::Ask { body, clarify }).await;
        // There is nothing to take back.
        std::mem::forget(asking);
        match outcome? {
            Reply::Resolved(outcome) => Ok(outcome),
            other => Err(Error::Malformed(Malformed::Hub(format!("the hub told no outcome: {other:?}")))),
        }
    }

    async fn end(mut self, event: Document) -> Result<(), Error> {
        // Ordered before it is awaited: a future that is dropped from here on takes nothing back.
        self.started.ended = true;
        self.say(Intent::End { last: Last::Said(event), why: LEFT }).await.map(drop)
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Session").field(&self.id()).finish()
    }
}
