//! One ACP session as a session of the hub: narrates its updates and asks its permission requests.
//!
//! - **Calls.** Agents announce a call before they ask for it. A call is therefore reported after a short time without a question
//!   ([`HOLD_TIME`]), or at once when its result arrives.
//! - **Questions.** An option to allow once and one to reject once make a confirmation, which binds the answer to the call. Any
//!   other options are offered as choices, so that nothing lasting is chosen unless the person picked it.
//! - **Changes.** If the agent changes a call while or after the person is asked, listeners hear an alarm, and an open question is
//!   left to the editor.
//! - Only a person's answer counts. A question that expires, or that nobody could hear, is left to the editor.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use sayso::{
    Action, Answer, ClarificationAnswer, ClarificationRequest, Error, OutputText, ProgressUpdate,
    ReportedState, ResolvedBy, Session, StateChange, StopReason, ToolCall,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::bound_call::BoundCall;
use super::message::{
    OptionKind, PermissionOption, PermissionRequest, PlanEntry, SessionUpdate, ToolCallUpdate, ToolContent,
    ToolStatus,
};
use super::permission_table::{Closure, Ticket};
use super::proxy::Proxy;
use super::queue::QueuedItem;
use super::wording::{self, ToolFacts, ToolKind, shorten};
use crate::phrases::{GateText, Language, Phrase, around, texts};

/// How long the report of a new call is delayed, because the agent may ask for permission first.
pub(super) const HOLD_TIME: Duration = Duration::from_millis(700);
/// How long a listener has to answer. Afterwards only the editor can.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_mins(10);
/// Maximum number of calls of a session that the gate remembers. The hub allows as many open ones.
pub(super) const MAX_TOOLS: usize = 256;
/// The media type of the agent's messages.
const MARKDOWN: &str = "text/markdown";

/// An update about a session.
#[derive(Debug)]
pub(super) enum SessionNews {
    /// The person sent another prompt.
    Prompt(String),
    /// The agent reports something.
    Update(SessionUpdate),
    /// The agent asks for permission.
    Permission(Box<OfferedRequest>),
    /// The turn is over, with its stop reason or an error.
    TurnEnded(Result<String, String>),
    /// This many reports were left out, because the hub was too slow.
    Gap(u64),
    /// The session is over.
    End(AcpSessionEnd),
}

/// A permission request that a listener may answer.
#[derive(Debug)]
pub(super) struct OfferedRequest {
    /// The request.
    pub(super) request: PermissionRequest,
    /// Its ticket.
    pub(super) ticket: Ticket,
    /// Says when a listener can no longer answer.
    pub(super) closed: oneshot::Receiver<Closure>,
}

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AcpSessionEnd {
    /// The editor closed it, or the connection.
    Editor,
    /// The agent exited with this code.
    AgentExited(u8),
}

/// Why the driver stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DriverEnd {
    /// The session is over.
    Closed,
    /// A person stopped the session.
    StoppedByPerson,
    /// The hub is gone, or has ended the session.
    Lost,
}

/// Everything that the driver needs besides the session.
#[derive(Clone)]
pub(super) struct DriverContext {
    /// The connection between editor and agent.
    pub(super) proxy: Arc<Proxy>,
    /// Whether thoughts are narrated.
    pub(super) narrates_thoughts: bool,
    /// The ACP session.
    pub(super) acp_session: String,
}

/// Drives a session until it is over.
pub(super) async fn run(
    session: Session,
    mut news: mpsc::UnboundedReceiver<QueuedItem<SessionNews>>,
    context: DriverContext,
) -> DriverEnd {
    let proxy = context.proxy.clone();
    let acp_session = context.acp_session.clone();
    let end = SessionDriver::new(&session, context).run(&mut news).await;
    match end {
        Ok(end) => {
            let ended = match end {
                AcpSessionEnd::Editor => session.finish(GateText::from(&texts::EDITOR_CLOSED)).await,
                AcpSessionEnd::AgentExited(0) => session.finish(GateText::from(&texts::AGENT_ENDED)).await,
                AcpSessionEnd::AgentExited(code) => {
                    session.fail(texts::AGENT_EXITED.with(&[&code.to_string()])).await
                }
            };
            if let Err(error) = ended {
                proxy.log(&format!("the end of the session could not be reported: {error}"));
            }
            DriverEnd::Closed
        }
        Err(StopReason::Person) => {
            proxy.cancel_turn(&acp_session).await;
            DriverEnd::StoppedByPerson
        }
        Err(_) => DriverEnd::Lost,
    }
}

struct SessionDriver<'s> {
    session: &'s Session,
    context: DriverContext,
    tools: HashMap<String, Tool<'s>>,
    questions: Vec<Question<'s>>,
    plan: Vec<String>,
    message_id: Option<String>,
    thought_count: u64,
    is_thought_open: bool,
}

type Question<'s> = Pin<Box<dyn Future<Output = SettledQuestion> + Send + 's>>;

/// A question that is no longer open.
struct SettledQuestion {
    ticket: Ticket,
    tool: String,
    options: Vec<PermissionOption>,
    outcome: Outcome,
}

enum Outcome {
    Closed(Closure),
    Answered(Result<Answer, Error>),
    Chosen(Result<ClarificationAnswer, Error>),
}

/// A call by the agent.
#[derive(Default)]
struct Tool<'s> {
    facts: ToolFacts,
    /// The call as the person was asked about it.
    asked: Option<BoundCall>,
    /// The open question.
    open_question: Option<Ticket>,
    /// The reported call.
    call: Option<ToolCall<'s>>,
    /// When the call is reported, unless the agent asks for it first.
    report_at: Option<Instant>,
    content: Vec<ToolContent>,
    raw_output: Option<String>,
    is_refused: bool,
    is_done: bool,
    has_alarm: bool,
}

impl<'s> SessionDriver<'s> {
    fn new(session: &'s Session, context: DriverContext) -> Self {
        Self {
            session,
            context,
            tools: HashMap::new(),
            questions: Vec::new(),
            plan: Vec::new(),
            message_id: None,
            thought_count: 0,
            is_thought_open: false,
        }
    }

    async fn run(
        mut self,
        news: &mut mpsc::UnboundedReceiver<QueuedItem<SessionNews>>,
    ) -> Result<AcpSessionEnd, StopReason> {
        loop {
            let report_at = self.tools.values().filter_map(|tool| tool.report_at).min();
            let hold = async {
                match report_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let has_questions = !self.questions.is_empty();
            let session = self.session;
            let result = tokio::select! {
                biased;
                stop = session.stopped() => return Err(stop),
                settled = poll_fn(|context| poll_questions(&mut self.questions, context)), if has_questions => self.settle(settled).await,
                item = news.recv() => match item.map(QueuedItem::into_item) {
                    None => return Ok(AcpSessionEnd::Editor),
                    Some(SessionNews::End(end)) => {
                        let _ = self.close_turn().await;
                        return Ok(end);
                    }
                    Some(item) => self.handle(item).await,
                },
                () = hold => self.report_held(Instant::now()).await,
            };
            match result {
                Ok(()) => {}
                Err(Error::Stopped(stop)) => return Err(stop),
                Err(Error::Unreachable(_)) => return Err(StopReason::Unreachable),
                Err(error) => self.context.proxy.log(&format!("not narrated: {error}")),
            }
        }
    }

    async fn handle(&mut self, news: SessionNews) -> Result<(), Error> {
        if !matches!(news, SessionNews::Update(SessionUpdate::Thought(_))) {
            self.finish_thought().await?;
        }
        match news {
            SessionNews::Prompt(text) => {
                let text = wording::with_short(&texts::WORKING_ON, &text, 300);
                self.session.change_state(StateChange::new(ReportedState::Thinking, text)).await
            }
            SessionNews::Update(update) => self.handle_update(update).await,
            SessionNews::Permission(offered) => self.ask(*offered).await,
            SessionNews::TurnEnded(result) => {
                self.close_turn().await?;
                let text = match result {
                    Ok(reason) => wording::stop_text(&reason),
                    Err(message) => wording::with_short(&texts::AGENT_ERROR, &message, 300),
                };
                self.session.change_state(StateChange::new(ReportedState::Idle, text)).await
            }
            SessionNews::Gap(count) => {
                let text =
                    format!("{count} reports from the agent were left out, because the hub was too slow.");
                self.session.output(OutputText::complete(text)).await
            }
            SessionNews::End(_) => Ok(()),
        }
    }

    async fn handle_update(&mut self, update: SessionUpdate) -> Result<(), Error> {
        match update {
            SessionUpdate::Message { text, message_id } => {
                if message_id.is_some() && message_id != self.message_id {
                    self.session.finish_output().await?;
                }
                self.message_id = message_id;
                self.session.output(OutputText::new(text).content_type(MARKDOWN)).await
            }
            SessionUpdate::MessageContent(kind) => {
                self.session.progress(ProgressUpdate::new(wording::content_text(kind))).await
            }
            SessionUpdate::Thought(text) if self.context.narrates_thoughts => self.write_thought(text).await,
            SessionUpdate::Thought(_) => Ok(()),
            SessionUpdate::ToolCall(update) => self.update_tool(update).await,
            SessionUpdate::Plan(entries) => self.report_plan(&entries).await,
            SessionUpdate::Mode(mode) => {
                let text = wording::with_short(&texts::MODE_IS, &mode, 100);
                self.session.progress(ProgressUpdate::new(text)).await
            }
        }
    }

    async fn write_thought(&mut self, text: String) -> Result<(), Error> {
        let text = if self.is_thought_open { text } else { format!("Thinking: {text}") };
        if !self.is_thought_open {
            self.thought_count += 1;
            self.is_thought_open = true;
        }
        self.session.output(OutputText::new(text).output_id(self.thought_id())?).await
    }

    async fn finish_thought(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_thought_open) {
            return Ok(());
        }
        self.session.output(OutputText::complete("").output_id(self.thought_id())?).await
    }

    fn thought_id(&self) -> String {
        format!("out_thought{}", self.thought_count)
    }

    async fn report_plan(&mut self, entries: &[PlanEntry]) -> Result<(), Error> {
        if entries.is_empty() {
            return Ok(());
        }
        let plan: Vec<_> = entries.iter().map(|entry| entry.content.clone()).collect();
        let text = wording::plan_text(entries, plan != self.plan);
        self.plan = plan;
        let (done, total) = (entries.iter().filter(|entry| entry.is_completed).count(), entries.len());
        let step = (done + 1).min(total);
        let progress = ProgressUpdate::new(text).step(step as u64, total as u64);
        self.session.progress(progress).await
    }

    /// Reports calls that were held back, and completes the text of the turn.
    async fn close_turn(&mut self) -> Result<(), Error> {
        self.finish_thought().await?;
        let later = Instant::now() + HOLD_TIME * 2;
        self.report_held(later).await?;
        self.tools.retain(|_, tool| !tool.is_done);
        self.session.finish_output().await
    }

    async fn update_tool(&mut self, update: ToolCallUpdate) -> Result<(), Error> {
        let id = update.id.clone();
        if !self.make_room(&id) {
            return Ok(());
        }
        let tool = self.tools.entry(id.clone()).or_default();
        let difference = tool
            .asked
            .as_ref()
            .and_then(|asked| asked.find_difference(update.title.as_deref(), update.raw_input.as_deref()));
        let status = update.status;
        tool.merge(update);
        if let Some(difference) = difference {
            self.report_change(&id, &difference).await?;
        }
        let Some(tool) = self.tools.get_mut(&id).filter(|tool| !tool.is_done) else { return Ok(()) };
        match status {
            Some(ToolStatus::Completed | ToolStatus::Failed) => {
                self.report_result(&id, status == Some(ToolStatus::Completed)).await
            }
            _ if tool.call.is_none() && tool.open_question.is_none() && !tool.is_refused => {
                tool.report_at.get_or_insert_with(|| Instant::now() + HOLD_TIME);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Makes room for one more call. Returns whether there is any.
    fn make_room(&mut self, id: &str) -> bool {
        if self.tools.len() >= MAX_TOOLS && !self.tools.contains_key(id) {
            self.tools.retain(|_, tool| !tool.is_done);
        }
        let has_room = self.tools.len() < MAX_TOOLS || self.tools.contains_key(id);
        if !has_room {
            self.context.proxy.log(&format!("not narrated: more than {MAX_TOOLS} calls are open"));
        }
        has_room
    }

    /// Reports that the agent changed a call that the person was asked about.
    async fn report_change(&mut self, id: &str, difference: &str) -> Result<(), Error> {
        let Some(tool) = self.tools.get_mut(id) else { return Ok(()) };
        if std::mem::replace(&mut tool.has_alarm, true) {
            return Ok(());
        }
        let difference = shorten(difference, 100, Language::English);
        let now = tool.facts.report(&tool.facts.to_call());
        let text = match tool.open_question.take() {
            Some(ticket) => {
                self.context.proxy.leave_to_editor(ticket);
                GateText::new(|language| {
                    texts::CHANGED_WHILE_ASKED.fill(language, &[&difference, now.text(language)])
                })
            }
            None if tool.is_refused => return Ok(()),
            None => GateText::new(|language| {
                texts::CHANGED_AFTER.fill(language, &[&difference, now.text(language)])
            }),
        };
        self.report_alarm(&text).await
    }

    /// Reports something that a listener must hear: a check that failed. Unlike progress, it is never left out.
    async fn report_alarm(&mut self, text: &GateText) -> Result<(), Error> {
        let check = self.session.tool("consent_check").says(GateText::from(&texts::CHECKING)).start();
        let warning = around(&texts::WARNING, text);
        check.await?.fail_with_summary(warning, text.english()).await
    }

    /// Reports the calls whose hold time is over.
    async fn report_held(&mut self, now: Instant) -> Result<(), Error> {
        let mut due: Vec<_> = self
            .tools
            .iter()
            .filter(|(_, tool)| tool.report_at.is_some_and(|at| at <= now))
            .map(|(id, tool)| (tool.report_at, id.clone()))
            .collect();
        due.sort_unstable();
        for (_, id) in due {
            self.report_call(&id, None).await?;
        }
        Ok(())
    }

    /// Reports a call that needs no consent of a listener, or whose consent somebody gave elsewhere.
    async fn report_call(&mut self, id: &str, addition: Option<&Phrase>) -> Result<(), Error> {
        let session = self.session;
        let Some(tool) = self.tools.get_mut(id) else { return Ok(()) };
        tool.report_at = None;
        if tool.call.is_some() {
            return Ok(());
        }
        let text = tool.facts.report(&tool.facts.to_call());
        let text = addition.map_or_else(|| text.clone(), |addition| around(addition, &text));
        let mut builder = session.tool(tool.facts.tool_name()).says(text);
        if tool.facts.kind.risk() != sayso::Risk::Low {
            builder = builder.medium_risk();
        }
        tool.call = Some(builder.start().await?);
        Ok(())
    }

    async fn report_result(&mut self, id: &str, has_succeeded: bool) -> Result<(), Error> {
        let Some(tool) = self.tools.get_mut(id) else { return Ok(()) };
        tool.is_done = true;
        tool.report_at = None;
        let subject = tool.facts.report(&tool.facts.to_call());
        let is_asking =
            tool.open_question.take().inspect(|ticket| self.context.proxy.leave_to_editor(*ticket)).is_some();
        if has_succeeded && (tool.is_refused || is_asking) && tool.call.is_none() {
            let phrase = if is_asking { &texts::DID_NOT_WAIT } else { &texts::DID_REFUSED };
            return self.report_alarm(&around(phrase, &subject)).await;
        }
        if tool.is_refused {
            return Ok(());
        }
        if tool.call.is_none() {
            self.report_call(id, None).await?;
        }
        let Some(tool) = self.tools.get_mut(id) else { return Ok(()) };
        let text = wording::result_text(&tool.content, tool.raw_output.as_deref());
        let Some(call) = tool.call.take() else { return Ok(()) };
        match (has_succeeded, text) {
            (true, Some(text)) => call.succeed(text).await,
            (true, None) => call.succeed(GateText::from(&texts::DONE)).await,
            (false, text) => call.fail(text.unwrap_or_else(|| (&texts::NO_REASON).into()).english()).await,
        }
    }

    /// Asks a listener. The editor has the request already.
    async fn ask(&mut self, offered: OfferedRequest) -> Result<(), Error> {
        let OfferedRequest { request, ticket, mut closed } = offered;
        let PermissionRequest { tool_call, options, .. } = request;
        let id = tool_call.id.clone();
        if options.is_empty() || !self.make_room(&id) {
            return Ok(());
        }
        let tool = self.tools.entry(id.clone()).or_default();
        let earlier_input = tool.facts.raw_input.clone();
        let requested_input = tool_call.raw_input.clone();
        tool.merge(tool_call);
        let call = BoundCall::new(&tool.facts.title, requested_input.as_deref(), earlier_input.as_deref());
        (tool.report_at, tool.has_alarm, tool.is_refused, tool.is_done) = (None, false, false, false);
        tool.asked = Some(call.clone());
        tool.open_question = Some(ticket);
        let facts = tool.facts.clone();
        if let Some(reported) = tool.call.take() {
            reported.succeed(GateText::from(&texts::WAITS_FOR_PERMISSION)).await?;
        }
        // The id of the question's call names the request too, because an agent can ask twice about one call.
        let call_id = format!("{id}/{ticket}");
        let (name, says, session) = (facts.tool_name(), facts.request(&call), self.session);
        let question: Question<'s> = if once_options(&options).is_some() {
            let action = Action::new(name, call.arguments())
                .says(says)
                .consequence(facts.kind.consequence())
                .invocation_summary(facts.report(&call))
                .risk(facts.kind.risk())
                .tool_call_id(call_id)
                .answer_timeout(ANSWER_TIMEOUT);
            let action = if facts.kind.is_irreversible() { action.irreversible() } else { action };
            Box::pin(async move {
                let outcome = tokio::select! {
                    biased;
                    closure = &mut closed => Outcome::Closed(closure.unwrap_or(Closure::ConnectionClosed)),
                    answer = session.ask(action) => Outcome::Answered(answer),
                };
                SettledQuestion { ticket, tool: id, options, outcome }
            })
        } else {
            let mut request = ClarificationRequest::new(around(&texts::ASKS_PERMISSION, &says))
                .context(facts.kind.consequence())
                .about_call(name, call.arguments(), &call_id)
                .answer_timeout(ANSWER_TIMEOUT);
            for (number, option) in (1..).zip(&options) {
                request = request.choice(choice_value(number), wording::option_label(option));
            }
            Box::pin(async move {
                let outcome = tokio::select! {
                    biased;
                    closure = &mut closed => Outcome::Closed(closure.unwrap_or(Closure::ConnectionClosed)),
                    answer = session.clarify(request) => Outcome::Chosen(answer),
                };
                SettledQuestion { ticket, tool: id, options, outcome }
            })
        };
        self.questions.push(question);
        Ok(())
    }

    async fn settle(&mut self, settled: SettledQuestion) -> Result<(), Error> {
        let SettledQuestion { ticket, tool: id, options, outcome } = settled;
        if let Some(tool) = self.tools.get_mut(&id) {
            tool.open_question.take_if(|open| *open == ticket);
        }
        match outcome {
            Outcome::Closed(Closure::Editor(Some(kind))) => self.report_editor_answer(&id, kind).await,
            Outcome::Closed(_) => Ok(()),
            Outcome::Answered(answer) => {
                let once = once_options(&options);
                match (answer?, once) {
                    (Answer::Granted(granted), Some((allow, _))) if self.context.proxy.is_open(ticket) => {
                        // The call is announced before the agent may make it.
                        let call = self.session.start_call(granted).await?;
                        if let Some(tool) = self.tools.get_mut(&id) {
                            tool.call = Some(call);
                        }
                        self.context.proxy.answer(ticket, &allow.id).await;
                        Ok(())
                    }
                    (Answer::Refused(refusal), Some((_, reject))) if refusal.by == ResolvedBy::Reply => {
                        self.refuse(&id, ticket, &reject.id).await;
                        Ok(())
                    }
                    (Answer::Refused(refusal), _) => {
                        self.context.proxy.log_unanswered(&refusal.to_string());
                        Ok(())
                    }
                    (Answer::Granted(_), _) => Ok(()),
                }
            }
            Outcome::Chosen(answer) => self.settle_choice(&id, ticket, &options, answer?).await,
        }
    }

    async fn settle_choice(
        &mut self,
        id: &str,
        ticket: Ticket,
        options: &[PermissionOption],
        answer: ClarificationAnswer,
    ) -> Result<(), Error> {
        let value = match answer {
            ClarificationAnswer::Text(value) => value,
            ClarificationAnswer::Unanswered(by) if by != ResolvedBy::Reply => {
                self.context.proxy.log_unanswered(&sayso::ConsentRefusal::from(by).to_string());
                return Ok(());
            }
            _ => String::new(),
        };
        let chosen =
            (1..).zip(options).find(|(number, _)| choice_value(*number) == value).map(|(_, option)| option);
        let Some(option) = chosen else {
            self.context
                .proxy
                .log("a listener's answer was none of the options; the editor's dialog remains");
            return Ok(());
        };
        if !self.context.proxy.is_open(ticket) {
            return Ok(());
        }
        match option.kind {
            OptionKind::AllowOnce | OptionKind::AllowAlways => {
                self.report_call(id, Some(&texts::YOU_ALLOWED)).await?;
                self.context.proxy.answer(ticket, &option.id).await;
            }
            OptionKind::RejectOnce | OptionKind::RejectAlways => self.refuse(id, ticket, &option.id).await,
            OptionKind::Other => {
                self.context.proxy.answer(ticket, &option.id).await;
            }
        }
        Ok(())
    }

    async fn refuse(&mut self, id: &str, ticket: Ticket, option: &str) {
        if self.context.proxy.answer(ticket, option).await
            && let Some(tool) = self.tools.get_mut(id)
        {
            tool.is_refused = true;
        }
    }

    async fn report_editor_answer(&mut self, id: &str, kind: OptionKind) -> Result<(), Error> {
        match kind {
            OptionKind::AllowOnce | OptionKind::AllowAlways => {
                self.report_call(id, Some(&texts::EDITOR_ALLOWED)).await
            }
            OptionKind::RejectOnce | OptionKind::RejectAlways => {
                let Some(tool) = self.tools.get_mut(id) else { return Ok(()) };
                tool.is_refused = true;
                let request = tool.facts.request(&tool.facts.to_call());
                let text = around(&texts::EDITOR_REFUSED, &request);
                self.session.progress(ProgressUpdate::new(text)).await
            }
            OptionKind::Other => Ok(()),
        }
    }
}

impl Tool<'_> {
    fn merge(&mut self, update: ToolCallUpdate) {
        let facts = &mut self.facts;
        if let Some(title) = update.title {
            facts.title = title;
        }
        if let Some(kind) = update.kind {
            facts.kind = ToolKind::parse(&kind);
        }
        facts.name = update.name.or(facts.name.take());
        facts.raw_input = update.raw_input.or(facts.raw_input.take());
        facts.locations = update.locations.unwrap_or(std::mem::take(&mut facts.locations));
        if !update.content.is_empty() {
            self.content = update.content;
        }
        self.raw_output = update.raw_output.or(self.raw_output.take());
    }
}

/// Returns the option that allows once and the one that rejects once, if there are exactly these two.
fn once_options(options: &[PermissionOption]) -> Option<(&PermissionOption, &PermissionOption)> {
    match options {
        [a, b] if (a.kind, b.kind) == (OptionKind::AllowOnce, OptionKind::RejectOnce) => Some((a, b)),
        [a, b] if (a.kind, b.kind) == (OptionKind::RejectOnce, OptionKind::AllowOnce) => Some((b, a)),
        _ => None,
    }
}

/// The value of a choice. The agent's own ids are not used, because they may have any length and look like secrets.
fn choice_value(number: usize) -> String {
    format!("option_{number}")
}

fn poll_questions(
    questions: &mut Vec<Question<'_>>,
    context: &mut std::task::Context<'_>,
) -> Poll<SettledQuestion> {
    for index in 0..questions.len() {
        if let Some(question) = questions.get_mut(index)
            && let Poll::Ready(settled) = question.as_mut().poll(context)
        {
            drop(questions.remove(index));
            return Poll::Ready(settled);
        }
    }
    Poll::Pending
}
