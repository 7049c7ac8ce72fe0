//! A session: one task that a person requested, from its start to exactly one end.
//!
//! - `builder`: a session before its start.
//! - `options`: optional members of all events.
//! - `tool`: tool calls, from their announcement to their outcome.
//! - `updates`: progress, state changes and hand-offs.
//! - `output`: text that the agent's model writes.
//! - `ending`: how a session ends.
//! - `producers`: several agents in one session.

mod builder;
mod ending;
mod options;
mod output;
mod producers;
mod tool;
mod updates;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aaep::event::EventType;
use seal::json::TapeWriter;

pub use builder::SessionBuilder;
#[cfg_attr(not(feature = "tower"), allow(unreachable_pub, reason = "the middleware exports it"))]
pub use ending::SessionEnding;
pub use ending::{Cancellation, Completion, ErrorCategory, Failure};
pub use options::EventOptions;
pub use output::OutputText;
pub use producers::{Invitation, Producer, ProducerSession};
pub use tool::{ToolCall, ToolCallBuilder};
pub(crate) use tool::{ToolCallDetails, tool_call_details_setters};
pub(crate) use updates::truncate_text;
pub use updates::{HandOff, HandOffOutcome, HandOffTarget, ProgressUpdate, ReportedState, StateChange};

use crate::clarification::{ClarificationAnswer, ClarificationRequest};
use crate::consent::{Action, Answer, ConsentRefusal, Granted, Risk};
use crate::current_session::CurrentSession;
use crate::dispatcher::{ABANDONED_TOOL_SUMMARY, OpenSession, ProgressMark, QuestionGuard};
use crate::error::{CallError, Error, MalformedInput, StopReason};
use crate::localized_text::{LocalizedText, humanize_name};
use crate::member::{self, Document};
use crate::redact::CountingRedactor;
use crate::session_state::{FinalEvent, Intent, OutputFormat, OutputPiece};
use crate::transport::{CallReply, ReplyOutcome};
pub(crate) use options::RenderedOptions;

/// The maximum number of bytes of an output in one call to the hub.
const MAX_OUTPUT_CHUNK_BYTES: usize = 64 * 1024;

/// An open session. Each method reports something to the listeners and returns when the hub has stored it. State changes that
/// the protocol requires are sent automatically.
///
/// [`finish`](Self::finish), [`fail`](Self::fail) and [`cancel`](Self::cancel) end a session and consume it. If a session is
/// dropped earlier, for example by a panic or a timeout, its tools and outputs are closed and listeners hear that the agent
/// stopped before it was done. A session with an open tool call cannot be ended:
///
/// ```compile_fail,E0505
/// async fn too_early(session: sayso::Session) -> Result<(), sayso::Error> {
///     let tool = session.tool("weather").says("Looking at the sky.").start().await?;
///     session.finish("Done.").await?;
///     tool.succeed("It is raining.").await
/// }
/// ```
///
/// Nothing can be reported after the end:
///
/// ```compile_fail,E0382
/// async fn too_late(session: sayso::Session) -> Result<(), sayso::Error> {
///     session.finish("Done.").await?;
///     session.think("One more thing.").await
/// }
/// ```
///
/// A session from its start to its end:
///
/// ```
/// # testing::run_example!(hub, {
/// let session = hub.session("Do I need an umbrella?").start().await?;
/// session.think("Looking at the sky.").await?;
/// session.output("Yes, it is raining.").await?;
/// session.finish("You need an umbrella.").await?;
/// # });
/// ```
#[must_use = "dropping a session ends it as abandoned"]
pub struct Session {
    inner: OpenSession,
    redactor: CountingRedactor,
    options: RenderedOptions,
    tool_call_count: Arc<AtomicU64>,
    /// Whether the session's language is English, the language of the library's own texts.
    is_english: bool,
    /// The author's own states and their words.
    states: Arc<[(String, LocalizedText)]>,
    /// The shortest time between two progress updates that differ little.
    progress_interval: Duration,
}

/// The default of [`SessionBuilder::progress_interval`].
const DEFAULT_PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

impl Session {
    fn new(inner: OpenSession, redactor: CountingRedactor, options: RenderedOptions, language: &str) -> Self {
        let is_english = language.split('-').next().is_some_and(|tag| tag.eq_ignore_ascii_case("en"));
        Self {
            inner,
            redactor,
            options,
            tool_call_count: Arc::default(),
            is_english,
            states: Arc::default(),
            progress_interval: DEFAULT_PROGRESS_INTERVAL,
        }
    }

    /// Returns a handle to the same session. Dropping the handle does not end the session.
    pub(crate) fn non_owning(&self) -> Self {
        let OpenSession { key, stop, commands, started_at, .. } = &self.inner;
        let inner = OpenSession {
            key: key.clone(),
            stop: stop.clone(),
            commands: commands.clone(),
            started_at: *started_at,
            // Dropping the handle must not end the session.
            is_ended: true,
        };
        let (redactor, options) = (self.redactor.clone(), self.options.clone());
        Self {
            inner,
            redactor,
            options,
            tool_call_count: self.tool_call_count.clone(),
            is_english: self.is_english,
            states: self.states.clone(),
            progress_interval: self.progress_interval,
        }
    }

    /// Returns a handle to the same session whose events carry these options instead of those of [`SessionBuilder::options`]. The
    /// handle cannot end the session.
    pub fn with_options(&self, options: EventOptions) -> Result<CurrentSession, Error> {
        let options = options.render(&self.redactor)?;
        Ok(CurrentSession::from_handle(Self { options, ..self.non_owning() }))
    }

    /// Returns the session's id.
    pub fn id(&self) -> &str {
        self.inner.key.session.as_str()
    }

    /// Reports that the agent is thinking, and about what.
    pub async fn think(&self, text: impl Into<LocalizedText>) -> Result<(), Error> {
        self.change_state(StateChange::new(ReportedState::Thinking, text)).await
    }

    /// Reports that the agent is deciding between alternatives.
    pub async fn decide(&self, text: impl Into<LocalizedText>) -> Result<(), Error> {
        self.change_state(StateChange::new(ReportedState::Deciding, text)).await
    }

    /// Reports a state change. States for tools, outputs and hand-offs are reported automatically, but without a summary; call
    /// this to report such a state with one. The state lasts until another one is entered, a question is asked or the session
    /// is handed off.
    pub async fn change_state(&self, change: StateChange) -> Result<(), Error> {
        let StateChange { state: to, summary, expected_duration } = change;
        let words = self.states.iter().find(|(name, _)| name == to.as_str()).map(|(_, words)| words);
        // The hub adds the author's words for a state, but every event needs a text.
        let summary =
            summary.or_else(|| words.is_none().then(|| format!("{}.", humanize_name(to.as_str())).into()));
        let summary = summary.as_ref().map(|summary| summary.redacted(&self.redactor));
        let event = self.build_event("aaep:agent.state.changed", |out| {
            member::text(out, "to_state", to.as_str());
            if let Some(summary) = &summary {
                summary.write_summaries(out);
            }
            member::optional_millis(out, "expected_duration_ms", expected_duration);
        });
        // While a question is open, the change is reported as progress.
        let progress_event = self.build_event("aaep:agent.progress.updated", |out| {
            if let Some(summary) = summary.or_else(|| Some(words?.redacted(&self.redactor))) {
                updates::write_progress(&summary, None, |_| {}, out, &self.redactor);
            }
        });
        self.send_intent(Intent::State { to, event, progress_event }).await.map(drop)
    }

    /// Reports progress of a long task, as often as you like.
    ///
    /// An update that differs by less than five percent from the one before it, and has the same words, waits until a second has passed
    /// ([`SessionBuilder::progress_interval`]). The next such update replaces it. Anything else that you report sends it first, so the
    /// last update is sent, unless the process exits before it ends the session. This function does not wait for it. Updates without a percentage or a number of steps are sent at
    /// once, and so are critical ones and those with extensions.
    pub async fn progress(&self, progress: ProgressUpdate) -> Result<(), Error> {
        let event =
            self.build_event("aaep:agent.progress.updated", |out| progress.write(out, &self.redactor));
        let percent = progress.known_percent().filter(|_| self.options.allow_merging());
        let intent = match percent {
            Some(percent) => {
                let mark = ProgressMark::new(&event, percent, self.progress_interval);
                Intent::Progress(event, mark)
            }
            None => Intent::Event(Some(event)),
        };
        self.send_intent(intent).await.map(drop)
    }

    /// Returns a builder for a tool call that needs no consent. For an irreversible or high-risk call, [`ask`](Self::ask) first.
    pub fn tool(&self, name: impl Into<String>) -> ToolCallBuilder<'_> {
        ToolCallBuilder::new(self, name.into(), Box::new(ToolCallDetails::new(Risk::Low)))
    }

    /// Reports text from the model as it arrives. It may be split anywhere; listeners receive it in the chunks that they asked
    /// for. Text that may be the start of a secret is held back until the rest has arrived. Use [`OutputText`] for a complete
    /// text, or for text in a language other than the session's.
    ///
    /// ```
    /// # testing::run_example!(hub, session, {
    /// for piece in ["It is rai", "ning in ", "Oslo."] {
    ///     session.output(piece).await?;
    /// }
    /// # session.finish("It is raining.").await?;
    /// # });
    /// ```
    pub async fn output(&self, output: impl Into<OutputText>) -> Result<(), Error> {
        let OutputText { text, output_id, language, content_type, coalesce_hint, is_complete } =
            output.into();
        let format = OutputFormat::new(language, content_type);
        let mut rest = text.as_str();
        while !rest.is_empty() || is_complete {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(MAX_OUTPUT_CHUNK_BYTES));
            let is_last = is_complete && after.is_empty();
            let text = OutputPiece::Text(piece.to_owned());
            let (output_id, format) = (output_id.clone(), format.clone());
            let hint = coalesce_hint.clone().filter(|_| after.is_empty());
            self.send_intent(Intent::Output { text, output_id, format, hint, is_complete: is_last }).await?;
            if is_last {
                break;
            }
            rest = after;
        }
        Ok(())
    }

    /// Reports output as bytes, which may be split inside a character. Invalid UTF-8 becomes U+FFFD.
    pub async fn output_bytes(&self, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        for piece in bytes.as_ref().chunks(MAX_OUTPUT_CHUNK_BYTES) {
            let text = OutputPiece::Bytes(piece.to_owned());
            let (output_id, format, hint) = (None, None, None);
            self.send_intent(Intent::Output { text, output_id, format, hint, is_complete: false }).await?;
        }
        Ok(())
    }

    /// Marks the open output as complete. This also happens when the agent enters a state, starts a tool, asks, hands off or ends
    /// the session.
    pub async fn finish_output(&self) -> Result<(), Error> {
        self.send_intent(Intent::FINISH_OUTPUT).await.map(drop)
    }

    /// Asks the person for consent and waits for the answer. Dropping the future withdraws the question.
    ///
    /// ```
    /// # testing::example_with_listener!(hub, session, {
    /// # let action = sample_action();
    /// // A listener is connected here and says yes.
    /// let answer = session.ask(action).await?;
    /// assert!(matches!(answer, sayso::Answer::Granted(_)));
    /// # session.cancel("Nothing was sent.").await?;
    /// # });
    /// ```
    pub async fn ask(&self, action: Action) -> Result<Answer, Error> {
        let body = action.to_request_body(&self.redactor, &self.options)?;
        let outcome = self.ask_and_wait(body, false).await?;
        action.into_answer(&self.inner.key.session, outcome)
    }

    /// Spends a grant: announces the call, makes it with the arguments that the person agreed to, and reports its outcome. If the
    /// person stops the session in the meantime, the tool's future is dropped.
    ///
    /// ```
    /// # testing::example_with_listener!(hub, session, {
    /// # let granted = ask_and_expect_granted(&session).await;
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
        let (tool_call, arguments) = self.spend(granted).await?;
        tool_call.run(tool(arguments), None).await
    }

    /// Spends a grant and announces the call. The caller makes the call and reports its outcome.
    pub async fn start_call(&self, granted: Granted) -> Result<ToolCall<'_>, Error> {
        self.spend(granted).await.map(|(tool_call, _)| tool_call)
    }

    /// Asks for consent and spends it immediately.
    pub(crate) async fn ask_and_start(
        &self,
        action: Action,
    ) -> Result<Result<ToolCall<'_>, ConsentRefusal>, Error> {
        match self.ask(action).await? {
            Answer::Granted(granted) => self.start_call(granted).await.map(Ok),
            Answer::Refused(refusal) => Ok(Err(refusal)),
        }
    }

    async fn spend(&self, granted: Granted) -> Result<(ToolCall<'_>, String), Error> {
        let action = granted.spend(&self.inner.key.session)?;
        let tool = action.tool.clone();
        let write = |out: &mut TapeWriter| action.write_call(out, &self.redactor);
        let tool_call = ToolCall::open(self, tool, action.details.call_id.clone(), write, true).await?;
        Ok((tool_call, action.arguments))
    }

    /// Asks what the person meant and waits for the answer. Dropping the future withdraws the question.
    ///
    /// ```
    /// # testing::example_with_listener!(hub, session, {
    /// use sayso::{ClarificationAnswer, ClarificationRequest};
    /// // A listener is connected here and chooses Ben Adams.
    /// let question = ClarificationRequest::new("Which Ben?").choice("ben_a", "Ben Adams").choice("ben_o", "Ben Okri");
    /// assert_eq!(session.clarify(question).await?, ClarificationAnswer::Text("ben_a".to_owned()));
    /// # session.cancel("Nothing was sent.").await?;
    /// # });
    /// ```
    pub async fn clarify(&self, question: ClarificationRequest) -> Result<ClarificationAnswer, Error> {
        let body = question.to_request_body(&self.redactor, &self.options);
        let outcome = self.ask_and_wait(body, true).await?;
        ClarificationAnswer::from_outcome(outcome)
    }

    /// Asks somebody else to take over and waits for the outcome. Dropping the future withdraws the request. Whatever the outcome,
    /// the session must still be ended: with [`finish`](Self::finish) if somebody took over, otherwise with
    /// [`cancel`](Self::cancel), unless the agent can continue (§4.4.3).
    pub async fn hand_off(&self, hand_off: HandOff) -> Result<HandOffOutcome, Error> {
        let body = self.build_hand_off(&hand_off, |out| hand_off.write_timeout(out))?;
        let outcome = self.send_and_wait(Intent::HandOff { body }).await?;
        // A hub that does not know hand-offs would have refused the call.
        Ok(outcome.hand_off.unwrap_or(HandOffOutcome::Withdrawn))
    }

    /// Tells listeners that somebody else takes over, without waiting for anybody. Use it if the recipient does not listen through
    /// the hub.
    pub async fn announce_hand_off(&self, hand_off: HandOff) -> Result<(), Error> {
        let event = self.build_hand_off(&hand_off, |_| {})?;
        self.send_intent(Intent::AnnounceHandOff(event)).await.map(drop)
    }

    fn build_hand_off(
        &self,
        hand_off: &HandOff,
        write_more: impl FnOnce(&mut TapeWriter),
    ) -> Result<Document, Error> {
        let context = hand_off.context()?;
        Ok(self.build_event("aaep:agent.handoff.requested", |out| {
            hand_off.write(out, context.as_deref(), &self.redactor);
            write_more(out);
        }))
    }

    /// Ends the session: the task is done.
    pub async fn finish(self, completion: impl Into<Completion>) -> Result<(), Error> {
        let completion = completion.into();
        let event = self.build_event("aaep:agent.session.completed", |out| {
            completion.write(out, &self.redactor);
            member::millis(out, "duration_ms", self.inner.started_at.elapsed());
            member::count(out, "tool_invocations_count", self.tool_call_count.load(Ordering::Relaxed));
        });
        self.end(event).await
    }

    /// Ends the session: the task failed.
    pub async fn fail(self, failure: impl Into<Failure>) -> Result<(), Error> {
        let failure = failure.into();
        let event = self.build_event("aaep:agent.session.errored", |out| failure.write(out, &self.redactor));
        self.end(event).await
    }

    /// Ends the session before the task is done.
    pub async fn cancel(self, cancellation: impl Into<Cancellation>) -> Result<(), Error> {
        let cancellation = cancellation.into();
        let event =
            self.build_event("aaep:agent.session.cancelled", |out| cancellation.write(out, &self.redactor));
        self.end(event).await
    }

    /// Waits until somebody other than the agent ends the session, usually the person. The agent should then drop its current
    /// work; [`Session::call`] and [`ToolCallBuilder::run`] do this.
    ///
    /// ```
    /// # testing::declare_test_listener!();
    /// # testing::run_example!({
    /// # let hub = sayso::Hub::embedded().listen("127.0.0.1:0").open()?;
    /// # let mut person = TestListener::connect(&hub).await;
    /// # let session = hub.session("Pay Ben.").start().await?;
    /// # person.stop_session(session.id()).await;
    /// // A listener is connected here and stops the session.
    /// tokio::select! {
    ///     stop = session.stopped() => assert_eq!(stop, sayso::StopReason::Person),
    ///     () = std::future::pending() => println!("The agent did its work."),
    /// }
    /// # });
    /// ```
    pub async fn stopped(&self) -> StopReason {
        self.watch_stop().await
    }

    /// Like [`stopped`](Self::stopped), with a future that does not borrow the session. It also completes when the agent ends the
    /// session, with [`StopReason::Other`].
    pub fn watch_stop(&self) -> impl Future<Output = StopReason> + Send + use<> {
        let mut stop = self.inner.stop.clone();
        async move {
            stop.wait_for(Option::is_some).await.ok().and_then(|stop| *stop).unwrap_or(StopReason::Other)
        }
    }

    fn build_event(&self, kind: &str, payload: impl FnOnce(&mut TapeWriter)) -> Document {
        member::object(|out| {
            out.plain_member("type", kind);
            self.options.write_with_urgency(EventType::parse(kind).is_critical(), out);
            payload(out);
        })
    }

    async fn send_intent(&self, intent: Intent) -> Result<CallReply, Error> {
        if let Some(stop) = *self.inner.stop.borrow() {
            return Err(Error::Stopped(stop));
        }
        let result = self.inner.commands.send_intent(&self.inner.key, intent).await;
        match (result, *self.inner.stop.borrow()) {
            (Err(Error::Stopped(_)), Some(stop)) => Err(Error::Stopped(stop)),
            (result, _) => result,
        }
    }

    async fn ask_and_wait(&self, body: Document, is_clarification: bool) -> Result<ReplyOutcome, Error> {
        self.send_and_wait(Intent::Ask { body, is_clarification }).await
    }

    /// Sends a question or a hand-off and waits for its outcome. Dropping the future withdraws it.
    async fn send_and_wait(&self, intent: Intent) -> Result<ReplyOutcome, Error> {
        let guard = QuestionGuard(&self.inner);
        let outcome = self.send_intent(intent).await;
        // The question is no longer open, so there is nothing to withdraw.
        std::mem::forget(guard);
        match outcome? {
            CallReply::QuestionResolved(outcome) => Ok(outcome),
            other => {
                Err(Error::Malformed(MalformedInput::Hub(format!("the hub sent no outcome: {other:?}"))))
            }
        }
    }

    async fn end(mut self, event: Document) -> Result<(), Error> {
        // Set before the await, so that dropping this future does not abandon the session as well.
        self.inner.is_ended = true;
        self.send_intent(Intent::End {
            final_event: FinalEvent::ByAgent(event),
            open_tool_summary: ABANDONED_TOOL_SUMMARY,
        })
        .await
        .map(drop)
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Session").field(&self.id()).finish()
    }
}
