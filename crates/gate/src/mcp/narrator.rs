//! Carries out the effects that concern the hub: asks questions, spends answers, and narrates calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use sayso::{
    Action, Answer, ConsentRefusal, Error, Granted, ProgressUpdate, Risk, Session, StopReason, ToolCall,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::elicit;
use super::gate_core::{
    CallDescription, CallNumber, Effect, GateCore, QuestionId, QuestionOutcome, write_input,
};
use super::hub_link::{HubLink, SessionUrgency};
use super::limits::{ANSWER_TIMEOUT, MAX_NARRATED_CALLS, PROGRESS_INTERVAL};
use super::message::RequestId;
use super::outbox::lock;
use super::outcome::CallOutcome;
use super::pins::PinFile;
use super::shared::GateShared;
use crate::phrases::{GateText, around, texts};

/// The yeses that are not spent yet, with the sessions in which they were given.
type Grants = Arc<Mutex<HashMap<QuestionId, (Arc<Session>, Granted)>>>;

/// An event in the life of a narrated call.
enum CallUpdate {
    Note(GateText),
    Finish(CallOutcome),
}

/// Carries out effects until the gate ends.
pub(crate) struct Narrator {
    shared: Arc<GateShared>,
    link: Arc<HubLink>,
    pins: Option<PinFile>,
    grants: Grants,
    tasks: JoinSet<()>,
    questions: HashMap<QuestionId, tokio::task::AbortHandle>,
    elicitations: HashMap<RequestId, tokio::task::AbortHandle>,
    /// Questions for the input of calls of the host.
    inputs: HashMap<RequestId, tokio::task::AbortHandle>,
    calls: HashMap<CallNumber, mpsc::UnboundedSender<CallUpdate>>,
    /// The number of calls whose narration has not ended. It can be higher than that of open calls, if the hub is slow.
    narrations: Arc<()>,
}

/// Maximum number of narrations that wait for the hub.
const MAX_NARRATIONS: usize = 2 * MAX_NARRATED_CALLS;

impl Narrator {
    pub(crate) fn new(shared: Arc<GateShared>, link: HubLink, pins: Option<PinFile>) -> Self {
        Self {
            shared,
            link: Arc::new(link),
            pins,
            grants: Grants::default(),
            tasks: JoinSet::new(),
            questions: HashMap::new(),
            elicitations: HashMap::new(),
            inputs: HashMap::new(),
            calls: HashMap::new(),
            narrations: Arc::new(()),
        }
    }

    /// Carries out effects until the core is dropped or `stop` completes. Then withdraws all questions and ends the session.
    pub(crate) async fn run(
        mut self,
        mut effects: mpsc::UnboundedReceiver<Effect>,
        stop: impl Future<Output = ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                biased;
                effect = effects.recv() => match effect {
                    Some(effect) => self.handle(effect),
                    None => break,
                },
                () = &mut stop => break,
                Some(_) = self.tasks.join_next() => {}
            }
        }
        // Past events are still reported, within the time that the caller grants; open items are abandoned.
        while let Ok(effect) = effects.try_recv() {
            if matches!(effect, Effect::Finish(..) | Effect::Note(..) | Effect::SavePins) {
                self.handle(effect);
            }
        }
        self.withdraw_all();
        self.calls.clear();
        lock(&self.grants).clear();
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_millis(500);
        while let Ok(Some(_)) = tokio::time::timeout_at(deadline, self.tasks.join_next()).await {}
        self.tasks.shutdown().await;
        self.link.finish().await;
    }

    fn withdraw_all(&self) {
        let questions = self.questions.values().chain(self.elicitations.values()).chain(self.inputs.values());
        questions.for_each(tokio::task::AbortHandle::abort);
    }

    fn work(&self) -> Work {
        Work { shared: self.shared.clone(), link: self.link.clone(), grants: self.grants.clone() }
    }

    fn handle(&mut self, effect: Effect) {
        match effect {
            Effect::Ask(question, description) => {
                let work = self.work();
                self.questions.retain(|_, task| !task.is_finished());
                self.questions.insert(question, self.tasks.spawn(work.ask(question, *description)));
            }
            Effect::Spend { question, call, is_late } => {
                let (sender, news) = mpsc::unbounded_channel();
                self.calls.insert(call, sender);
                let work = self.work();
                self.tasks.spawn(work.spend(question, call, is_late, news));
            }
            Effect::ForgetYes(question) => drop(lock(&self.grants).remove(&question)),
            Effect::WithdrawAll => {
                self.withdraw_all();
                lock(&self.grants).clear();
            }
            Effect::Narrate(call, description) => {
                if Arc::strong_count(&self.narrations) > MAX_NARRATIONS {
                    return;
                }
                let (sender, news) = mpsc::unbounded_channel();
                self.calls.insert(call, sender);
                let work = self.work();
                let counter = Arc::clone(&self.narrations);
                self.tasks.spawn(async move {
                    work.narrate(*description, news).await;
                    drop(counter);
                });
            }
            Effect::Note(call, text) => {
                if let Some(sender) = self.calls.get(&call) {
                    let _ = sender.send(CallUpdate::Note(text));
                }
            }
            Effect::Finish(call, outcome) => {
                if let Some(sender) = self.calls.remove(&call) {
                    let _ = sender.send(CallUpdate::Finish(outcome));
                }
            }
            Effect::Announce(text) => {
                let work = self.work();
                self.tasks.spawn(async move {
                    if let Ok(session) = work.session(SessionUrgency::Narration).await {
                        let _ = session.progress(ProgressUpdate::new(text)).await;
                    }
                });
            }
            Effect::SavePins => {
                if let Some(file) = self.pins.clone() {
                    let shared = self.shared.clone();
                    self.tasks.spawn_blocking(move || {
                        let pins = shared.run(|core, _| core.pins().clone());
                        // If it cannot be saved, the next process asks again.
                        let _ = file.save(&pins);
                    });
                }
            }
            Effect::Elicit(id, request) => {
                let work = self.work();
                self.elicitations.retain(|_, task| !task.is_finished());
                let task = self.tasks.spawn(work.elicit(id.clone(), request));
                self.elicitations.insert(id, task);
            }
            Effect::WithdrawElicitation(id) => {
                if let Some(task) = self.elicitations.remove(&id) {
                    task.abort();
                }
            }
            Effect::OfferInput(id, requests) => {
                let work = self.work();
                self.inputs.retain(|_, task| !task.is_finished());
                self.inputs.insert(id.clone(), self.tasks.spawn(work.ask_for_input(id, requests)));
            }
            Effect::WithdrawInput(id) => {
                if let Some(task) = self.inputs.remove(&id) {
                    task.abort();
                }
            }
            // `GateShared::run` sends these.
            Effect::ToServer(_) | Effect::ToHost(_) => {}
        }
    }
}

/// Everything that one task needs.
struct Work {
    shared: Arc<GateShared>,
    link: Arc<HubLink>,
    grants: Grants,
}

impl Work {
    /// Returns the session. The task that opens it also watches whether the person stops it.
    async fn session(&self, urgency: SessionUrgency) -> Result<Arc<Session>, Error> {
        let (session, is_new) = self.link.session(urgency).await?;
        if is_new {
            let (shared, link, watched) = (self.shared.clone(), self.link.clone(), Arc::downgrade(&session));
            tokio::spawn(async move {
                // Only a weak reference is kept between two looks, so that the gate can end the session itself.
                let Some(stopped) = watched.upgrade().map(|session| session.watch_stop()) else { return };
                let reason = stopped.await;
                if reason == StopReason::Person {
                    shared.run_in_background(GateCore::handle_person_stop).await;
                }
                if let Some(session) = watched.upgrade() {
                    link.forget(&session).await;
                }
            });
        }
        Ok(session)
    }

    /// Asks the person, and sends progress so that the host's request does not time out. Aborting the task withdraws the question.
    async fn ask(self, question: QuestionId, description: CallDescription) {
        let outcome = {
            let mut asking = std::pin::pin!(self.ask_person(question, description));
            loop {
                tokio::select! {
                    outcome = &mut asking => break outcome,
                    () = tokio::time::sleep(PROGRESS_INTERVAL) => {
                        self.shared.run_in_background(move |core, effects| core.send_progress(question, effects)).await;
                    }
                }
            }
        };
        self.shared
            .run_in_background(move |core, effects| {
                core.handle_answer(question, outcome, Instant::now(), effects);
            })
            .await;
    }

    async fn ask_person(&self, question: QuestionId, description: CallDescription) -> QuestionOutcome {
        let short_name = description.short_name.english().to_owned();
        let asked = async {
            let session = self.session(SessionUrgency::Question).await?;
            let answer = session.ask(to_action(description)).await;
            if let Err(Error::Stopped(_) | Error::Unreachable(_)) = &answer {
                self.link.forget(&session).await;
            }
            Ok::<_, Error>((answer?, session))
        };
        match asked.await {
            Ok((Answer::Granted(granted), session)) => {
                lock(&self.grants).insert(question, (session, granted));
                QuestionOutcome::Granted
            }
            Ok((Answer::Refused(refusal), _)) => QuestionOutcome::Refused(refusal_sentence(
                &short_name,
                &refusal.to_string(),
                is_final(&refusal),
            )),
            Err(error) => QuestionOutcome::Refused(error_sentence(&short_name, &error)),
        }
    }

    /// Spends a yes, has the core send the call, and follows it to its end.
    async fn spend(
        self,
        question: QuestionId,
        call: CallNumber,
        is_late: bool,
        mut news: mpsc::UnboundedReceiver<CallUpdate>,
    ) {
        let Some((session, granted)) = lock(&self.grants).remove(&question) else {
            let sentence = "The call was not made, because the person's answer is no longer valid. Call it again to ask again.";
            let spent = Err(sentence.to_owned());
            self.report_spent(question, call, spent).await;
            return;
        };
        if is_late {
            let text = GateText::from(&texts::EARLIER_YES);
            let _ = session.progress(ProgressUpdate::new(text)).await;
        }
        match session.start_call(granted).await {
            Err(error) => {
                let sentence = error_sentence("the tool", &error);
                self.report_spent(question, call, Err(sentence)).await;
            }
            Ok(tool_call) => {
                self.report_spent(question, call, Ok(())).await;
                follow(&session, tool_call, &mut news).await;
            }
        }
    }

    async fn report_spent(&self, question: QuestionId, call: CallNumber, spent: Result<(), String>) {
        let report = move |core: &mut GateCore, effects: &mut Vec<Effect>| {
            core.handle_spent(question, call, spent, effects);
        };
        self.shared.run_in_background(report).await;
    }

    /// Announces a call that needs no question, and follows it to its end.
    async fn narrate(self, description: CallDescription, mut news: mpsc::UnboundedReceiver<CallUpdate>) {
        let Ok(session) = self.session(SessionUrgency::Narration).await else { return };
        let mut tool =
            session.tool(&description.action_tool).says(around(&texts::USING, &description.short_name));
        if let Some(words) = description.argument_words {
            tool = tool.args_summary(words);
        }
        match tool.start().await {
            Ok(tool_call) => follow(&session, tool_call, &mut news).await,
            Err(Error::Stopped(_) | Error::Unreachable(_)) => self.link.forget(&session).await,
            Err(_) => {}
        }
    }

    /// Offers an elicitation of the server to the listeners.
    async fn elicit(self, id: RequestId, request: Box<str>) {
        let Ok(session) = self.session(SessionUrgency::Question).await else { return };
        if let Ok(Some(result)) = elicit::ask(&session, &request).await {
            let response = elicit::response(&id, &result);
            self.shared
                .run_in_background(move |core, effects| core.answer_elicitation(&id, &response, effects))
                .await;
        }
    }

    /// Asks the listeners for the input of a call, and sends progress so that the host's request does not time out. Aborting the task
    /// withdraws the question.
    async fn ask_for_input(self, id: RequestId, requests: Vec<(String, String)>) {
        let input = {
            let mut asking = std::pin::pin!(async {
                let session = self.session(SessionUrgency::Question).await?;
                let input = ask_for_each(&session, &requests).await;
                if let Err(Error::Stopped(_) | Error::Unreachable(_)) = &input {
                    self.link.forget(&session).await;
                }
                input
            });
            loop {
                tokio::select! {
                    input = &mut asking => break input,
                    () = tokio::time::sleep(PROGRESS_INTERVAL) => {
                        let id = id.clone();
                        self.shared
                            .run_in_background(move |core, effects| core.send_input_progress(&id, effects))
                            .await;
                    }
                }
            }
        };
        self.shared
            .run_in_background(move |core, effects| match input {
                // Otherwise the host could repeat the call before the gate learns of it.
                Err(Error::Stopped(StopReason::Person)) => core.handle_person_stop(effects),
                input => core.handle_input(&id, input.ok().flatten().as_deref(), Instant::now(), effects),
            })
            .await;
    }
}

/// Asks the listeners for the input that a server needs. Returns their answers, or `None` if one is missing.
async fn ask_for_each(session: &Session, requests: &[(String, String)]) -> Result<Option<String>, Error> {
    let mut answers = Vec::with_capacity(requests.len());
    for (name, request) in requests {
        match elicit::ask(session, request).await? {
            Some(answer) => answers.push((name.clone(), answer)),
            None => return Ok(None),
        }
    }
    Ok(Some(write_input(&answers)))
}

/// Reports what happens to a call, until it ends. If the gate ends first, dropping the call reports it as abandoned.
async fn follow(session: &Session, tool_call: ToolCall<'_>, news: &mut mpsc::UnboundedReceiver<CallUpdate>) {
    while let Some(next) = news.recv().await {
        let outcome = match next {
            CallUpdate::Note(text) => {
                let _ = session.progress(ProgressUpdate::new(text)).await;
                continue;
            }
            CallUpdate::Finish(outcome) => outcome,
        };
        // If the hub is gone, nobody can be told.
        let _ = match outcome {
            CallOutcome::Succeeded(None) => tool_call.succeed(GateText::from(&texts::FINISHED)).await,
            CallOutcome::Succeeded(Some(text)) => {
                tool_call.succeed(texts::FINISHED_WITH.with(&[&text])).await
            }
            CallOutcome::Failed(reason) => tool_call.fail(reason).await,
            CallOutcome::Cancelled => tool_call.fail(GateText::from(&texts::WAS_CANCELLED)).await,
            CallOutcome::NotMade => tool_call.fail(GateText::from(&texts::WAS_NOT_MADE)).await,
            CallOutcome::NotContinued | CallOutcome::InputRequired { .. } | CallOutcome::Task(_) => {
                tool_call.fail(GateText::from(&texts::END_UNKNOWN)).await
            }
        };
        return;
    }
}

fn to_action(description: CallDescription) -> Action {
    let CallDescription { action_tool, arguments, says, argument_words, reason, short_name } = description;
    let mut action = Action::new(action_tool, arguments)
        .says(says)
        .invocation_summary(around(&texts::USING, &short_name))
        .risk(Risk::High)
        .answer_timeout(ANSWER_TIMEOUT);
    if let Some(reason) = reason {
        action = action.consequence(reason.consequence());
    }
    if let Some(words) = argument_words {
        action = action.args_summary(words);
    }
    if reason.is_some_and(super::tools::AskReason::is_irreversible) { action.irreversible() } else { action }
}

/// Whether the person decided, so that the model should not try again.
fn is_final(refusal: &ConsentRefusal) -> bool {
    refusal.by == sayso::ResolvedBy::Reply
}

fn refusal_sentence(short_name: &str, reason: &str, is_final: bool) -> String {
    let advice = if is_final {
        "Do not call it again with these arguments unless the person asks for it."
    } else {
        "It can be called again later, when the person can answer."
    };
    format!("{short_name} was not called: {reason}. {advice}")
}

fn error_sentence(short_name: &str, error: &Error) -> String {
    let reason = match error {
        Error::Stopped(StopReason::Person) => {
            return refusal_sentence(short_name, "the person stopped this work", true);
        }
        Error::Unreachable(_) | Error::Stopped(_) => {
            "it needs a person's permission, and sayso's hub could not be reached. The person can start it with `sayso listen`"
                .to_owned()
        }
        error => format!("it needs a person's permission, and the person could not be asked: {error}"),
    };
    format!("{short_name} was not called: {reason}.")
}
