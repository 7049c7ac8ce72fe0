//! The checks of chapter 6 with questions: replies that break a rule have no effect, and valid replies have one.
//!
//! No forged reply accepts, so a producer that honours one does no harm.

use std::time::{Duration, SystemTime};

use aaep::event::Decision;
use aaep::message::{Capabilities, ConfirmationReply, Message};
use aaep::{ReplyToken, SubscriptionId, Timestamp};
use listen::client::{Acknowledgement, ConnectionError};
use tokio::sync::mpsc;

use super::behaviour::Behaviour;
use super::conversation::{Arrival, Conversation, ReceivedEvent};
use super::test_agent::{AgentCommand, mark};

/// How long to wait for effects if the check has no agent of its own. With an agent, a progress event (the mark) shows that all earlier
/// effects have arrived.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// The conversations in which a question is examined.
pub(super) struct QuestionCheck<'c> {
    /// The subscription that receives and may answer questions.
    pub(super) main: &'c mut Conversation,
    /// A subscription that may not answer.
    pub(super) silent: &'c mut Conversation,
    /// The agent of the check, if the question is from it.
    pub(super) agent: Option<mpsc::Sender<AgentCommand>>,
    /// The number of the last mark.
    pub(super) last_mark: u32,
}

/// A reply that must have no effect.
struct Forgery {
    /// What is wrong with it.
    fault: &'static str,
    text: String,
    /// Whether it is sent on the subscription that may not answer.
    is_from_silent: bool,
}

impl QuestionCheck<'_> {
    /// Sends replies that break rules. None of them may resolve the question.
    pub(super) async fn forge(&mut self, question: &ReceivedEvent) -> Result<(), ConnectionError> {
        let (Some(token), Some(main_id)) = (token_of(question), self.main.subscription_id().cloned()) else {
            return Ok(());
        };
        let mut acknowledgements = Vec::new();
        for forgery in forgeries(&token, &main_id, self.silent.subscription_id()) {
            let sender = if forgery.is_from_silent { &mut *self.silent } else { &mut *self.main };
            let acknowledged = sender.send_invalid(&forgery.text).await?;
            sender.renegotiate(Capabilities::new()).await?;
            acknowledgements.push((forgery.fault, acknowledged));
            if self.is_resolved(&question.session).await? {
                let found = format!("a reply with {} took effect", forgery.fault);
                self.main.report(Behaviour::INVALID_REPLY_IGNORED, &found);
                return Ok(());
            }
        }
        self.compare_acknowledgements(&acknowledgements);
        Ok(())
    }

    /// Checks that the sender gets the same answer to every forged reply.
    fn compare_acknowledgements(&mut self, all: &[(&'static str, Option<Acknowledgement>)]) {
        let Some((first_fault, first)) = all.first() else { return };
        if let Some((fault, _)) = all.iter().find(|(_, acknowledged)| acknowledged != first) {
            let found = format!("the answers to a reply with {first_fault} and to one with {fault} differ");
            self.main.report(Behaviour::REASON_HIDDEN, &found);
        }
    }

    /// Answers a question, and waits until its resolution is shown.
    pub(super) async fn answer(
        &mut self,
        question: &ReceivedEvent,
        decision: Decision,
    ) -> Result<(), ConnectionError> {
        let Some(text) = self.reply_to(question, decision) else { return Ok(()) };
        self.main.send(&text).await?;
        self.wait_for_resolution(&question.session).await
    }

    /// Sends another, contrary reply to a question that has been answered. It must have no effect.
    pub(super) async fn answer_again(&mut self, question: &ReceivedEvent) -> Result<(), ConnectionError> {
        self.answer_in_vain(question, Behaviour::FIRST_REPLY_COUNTS, "a second reply took effect").await
    }

    /// Answers a question whose time is over. The reply must have no effect.
    pub(super) async fn answer_late(&mut self, question: &ReceivedEvent) -> Result<(), ConnectionError> {
        self.wait_for_resolution(&question.session).await?;
        self.answer_in_vain(question, Behaviour::LATE_REPLY_IGNORED, "a reply after the deadline took effect")
            .await
    }

    async fn answer_in_vain(
        &mut self,
        question: &ReceivedEvent,
        behaviour: Behaviour,
        found: &str,
    ) -> Result<(), ConnectionError> {
        let Some(text) = self.reply_to(question, Decision::Accept) else { return Ok(()) };
        self.main.send_invalid(&text).await?;
        self.main.renegotiate(Capabilities::new()).await?;
        let events = self.events_until_settled().await?;
        let took_effect = events.iter().any(|event| {
            event.session == question.session
                && (event.kind == "aaep:agent.tool.invoked"
                    || event.from_state.as_deref() == Some("awaiting_input"))
        });
        if took_effect {
            self.main.report(behaviour, found);
        }
        Ok(())
    }

    /// Writes a valid reply.
    fn reply_to(&self, question: &ReceivedEvent, decision: Decision) -> Option<String> {
        let subscription = self.main.subscription_id()?.clone();
        let reply = ConfirmationReply::new(token_of(question)?, decision, subscription, now()?);
        Some(Message::ConfirmationReply(reply).to_json())
    }

    /// Waits for the event that shows that a question is resolved.
    async fn wait_for_resolution(&mut self, session: &str) -> Result<(), ConnectionError> {
        let mut others = Vec::new();
        let is_shown = loop {
            match self.main.receive(self.main.response_timeout).await? {
                Arrival::Event(event) if is_resolution(&event, session) => break true,
                Arrival::Event(event) => others.push(event),
                Arrival::Silence | Arrival::Closed | Arrival::TooMuch => break false,
            }
        };
        // Otherwise, the check would wait for its mark in vain.
        self.main.put_back(others);
        if !is_shown {
            self.main.report(Behaviour::RESOLUTION_SHOWN, "no event followed");
        }
        Ok(())
    }

    /// Whether a resolution of the session's question has arrived.
    async fn is_resolved(&mut self, session: &str) -> Result<bool, ConnectionError> {
        let events = self.events_until_settled().await?;
        let is_resolved = events.iter().any(|event| is_resolution(event, session));
        self.main.put_back(events);
        Ok(is_resolved)
    }

    /// Receives events until everything that was sent before has had its effect.
    async fn events_until_settled(&mut self) -> Result<Vec<ReceivedEvent>, ConnectionError> {
        let mut events = Vec::new();
        let mark = match &self.agent {
            None => None,
            Some(agent) => {
                self.last_mark += 1;
                let is_sent = agent.send(AgentCommand::Mark(self.last_mark)).await.is_ok();
                is_sent.then(|| mark(self.last_mark))
            }
        };
        let response_timeout = if mark.is_some() { self.main.response_timeout } else { SETTLE_TIME };
        while let Arrival::Event(event) = self.main.receive(response_timeout).await? {
            let is_mark = mark.is_some() && event.description == mark;
            if is_mark {
                break;
            }
            events.push(event);
        }
        Ok(events)
    }
}

/// Whether an event shows that a question of the session is resolved.
fn is_resolution(event: &ReceivedEvent, session: &str) -> bool {
    event.session == session
        && (event.from_state.as_deref() == Some("awaiting_input")
            || matches!(
                event.kind.as_str(),
                "aaep:agent.session.completed"
                    | "aaep:agent.session.errored"
                    | "aaep:agent.session.cancelled"
            ))
}

fn token_of(question: &ReceivedEvent) -> Option<ReplyToken> {
    ReplyToken::parse(question.reply_token.as_deref()?).ok()
}

fn forgeries(token: &ReplyToken, main: &SubscriptionId, silent: Option<&SubscriptionId>) -> Vec<Forgery> {
    let Some(time) = now() else { return Vec::new() };
    let text = |token: &str, decision: &str, subscription: &str, more: &str| {
        format!(
            r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"{decision}","subscription_id":"{subscription}","timestamp":"{time}"{more}}}"#
        )
    };
    let forgery = |fault, text| Forgery { fault, text, is_from_silent: false };
    let (token, main) = (token.as_str(), main.as_str());
    let mut all = vec![
        forgery("an unknown token", text("rpl_00000000000000000000000000000000", "reject", main, "")),
        forgery("a foreign subscription", text(token, "reject", "sub_00000000000000000000000000000000", "")),
        forgery("a member that replies do not have", text(token, "reject", main, r#","forged":true"#)),
        forgery("a decision that was not offered", text(token, "defer", main, "")),
    ];
    if let Some(silent) = silent {
        all.push(Forgery {
            fault: "a subscription that may not answer",
            text: text(token, "reject", silent.as_str(), ""),
            is_from_silent: true,
        });
    }
    all
}

fn now() -> Option<Timestamp> {
    Timestamp::from_unix_millis(SystemTime::now().into())
}
