//! Disputes that a person decides through the hub.
//!
//! The question is asked in a session of the hub of its own, because the ASP session has usually ended. Silence decides nothing:
//! the dispute stays open, and the agent's program can ask again.

use std::sync::Arc;

use asp::dispute::{Dispute, Resolution, Resolver, Verdict};
use asp::session::AspSession;
use asp::{AgentCard, Commitment, DisputeId};
use client::Backoff;
use seal::{Timestamp, UnixMillis};
use wire::unix_now;

use crate::NodeError;
use crate::disputes::{DisputeRecord, resolution_records};
use crate::node::Node;
use crate::person::phrases::LocalizedText;
use crate::person::{
    AskedQuestion, DisputeQuestion, EventKind, HubError, NarrationEvent, Person, PersonAnswer,
};
use crate::records::NodeRecord;

/// The answers that a person can choose.
pub(crate) const JUSTIFIED: &str = "justified";
pub(crate) const NOT_JUSTIFIED: &str = "not_justified";
/// The value in the resolution if a person decided.
const PERSON: &str = "person";
/// The delays between attempts to reach the hub.
const BACKOFF: Backoff =
    Backoff::new(std::time::Duration::from_millis(500), std::time::Duration::from_mins(1));

/// The state of the question to a person.
#[derive(Clone, Debug, Default)]
pub(crate) struct DisputeQuestionState {
    /// How often a person was asked.
    pub(crate) asked_count: u32,
    /// The question that waits for an answer.
    pub(crate) open: Option<OpenQuestion>,
    /// Why the last question was not answered.
    pub(crate) unanswered: Option<String>,
    /// The receipt of the answer, and the hub's signature.
    pub(crate) receipt: Option<(String, String)>,
}

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenQuestion {
    pub(crate) hub_session: String,
    pub(crate) reply_token: String,
    pub(crate) deadline: UnixMillis,
}

impl Node {
    /// Returns whether a person decides disputes that the rules do not decide.
    pub(crate) fn asks_about_disputes(&self) -> bool {
        self.person.is_some() && self.policy().consent.dispute
    }

    /// Asks a person about a dispute, or continues to wait for the answer, in a task of its own.
    pub(crate) fn start_dispute_question(self: &Arc<Self>, id: DisputeId) {
        if !self.asks_about_disputes() {
            return;
        }
        let node = self.clone();
        tokio::spawn(async move {
            let mut stopping = std::pin::pin!(node.stopped());
            tokio::select! {
                () = node.decide_dispute(&id) => {}
                // The answer is fetched after the next start.
                () = &mut stopping => {}
            }
        });
    }

    /// Continues after a restart with the disputes that wait for a person.
    pub(crate) fn resume_dispute_questions(self: &Arc<Self>) {
        let waiting = self.peers().disputes_for_a_person();
        for id in waiting {
            self.start_dispute_question(id);
        }
    }

    async fn decide_dispute(self: &Arc<Self>, id: &DisputeId) {
        let Some(person) = &self.person else { return };
        let mut backoff = BACKOFF;
        loop {
            // Before the state is read, so that no change is missed.
            let changed = self.disputes_changed.notified();
            let Ok(dispute) = self.peers().open_dispute(id) else { return };
            let question = self.peers().dispute_question(id);
            let open = match question.open {
                Some(open) => {
                    person.follow(&open.hub_session);
                    open
                }
                None => match self.ask_about_dispute(person, &dispute, question.asked_count).await {
                    Ok(open) => open,
                    Err(HubError::Refused { title, .. }) => {
                        return self.leave_dispute_open(&dispute, None, &title).await;
                    }
                    Err(error) => {
                        tracing::debug!(target: "sayso::log", kind = "asp.hub_failed", %error);
                        tokio::time::sleep(backoff.delay()).await;
                        backoff.grow();
                        continue;
                    }
                },
            };
            let answer = tokio::select! {
                answer = person.wait(&open.hub_session, &open.reply_token, open.deadline) => answer,
                () = changed => {
                    if self.peers().open_dispute(id).is_err() {
                        person.withdraw(&open.hub_session, &open.reply_token).await;
                        return self.end_dispute_session(person, &dispute, &open).await;
                    }
                    continue;
                }
            };
            let result = match answer {
                PersonAnswer::Answered { response, receipt, signature } => {
                    self.apply_answer(person, &dispute, &open, response, receipt, signature).await
                }
                PersonAnswer::Refused { reason } => Err(reason),
                PersonAnswer::Accepted { .. } => Err("the hub's answer is not one of the choices".to_owned()),
            };
            if let Err(reason) = result {
                self.leave_dispute_open(&dispute, Some(&open), &reason).await;
            }
            return self.end_dispute_session(person, &dispute, &open).await;
        }
    }

    /// Asks the question, and stores that it was asked.
    async fn ask_about_dispute(
        self: &Arc<Self>,
        person: &Person,
        dispute: &Dispute,
        asked_count: u32,
    ) -> Result<OpenQuestion, HubError> {
        let refused = |title: String| HubError::Refused { status: 422, title };
        let question = self.dispute_question(dispute).await.map_err(|error| refused(error.to_string()))?;
        // The same request after a crash finds the same session and question.
        let key = format!("asp-{}-{asked_count}", dispute.dispute_id);
        let hub_session = person.start_session(&question.session_start(), &format!("{key}-start")).await?;
        let asked = person.ask_about_dispute(&hub_session, &question, &format!("{key}-question")).await?;
        let AskedQuestion { reply_token, deadline, .. } = asked;
        let open = OpenQuestion { hub_session, reply_token, deadline };
        let record = DisputeRecord::Asked { id: dispute.dispute_id.clone(), question: open.clone() };
        self.append_node_records(vec![NodeRecord::Dispute { record: record.to_json() }])
            .await
            .map_err(|error| HubError::Unreachable(error.to_string()))?;
        self.counters.questions_asked.increment(&["DISPUTE"]);
        Ok(open)
    }

    async fn dispute_question(self: &Arc<Self>, dispute: &Dispute) -> Result<DisputeQuestion, NodeError> {
        let handle = self.session(dispute.session_id).await?;
        let state = self.lock(&handle).await?;
        let session = state.participant.session().ok_or(NodeError::UnknownSession)?;
        let commitment = agreed_commitment(session).ok_or(NodeError::UnknownSession)?;
        let promises = commitment.commit().terms.obligations.iter();
        let peer: Arc<AgentCard> = handle.info.peer.clone();
        Ok(DisputeQuestion {
            own_name: handle.info.own.name().to_owned(),
            subject: handle.info.subject.clone(),
            reason: dispute.reason,
            statement: dispute.statement.clone(),
            promises: promises
                .filter(|obligation| obligation.party == dispute.filed_against)
                .map(|obligation| (obligation.action.clone(), obligation.deadline))
                .collect(),
            timeout: self.policy().consent.timeout,
            peer,
        })
    }

    /// Stores what the person decided. The hub's signature proves that it was a person.
    async fn apply_answer(
        self: &Arc<Self>,
        person: &Person,
        dispute: &Dispute,
        open: &OpenQuestion,
        response: String,
        receipt: String,
        signature: String,
    ) -> Result<(), String> {
        person.check_answer(&open.reply_token, &response, &receipt, &signature).await?;
        let verdict = match &*response {
            JUSTIFIED => Verdict::Upheld(dispute.severity),
            NOT_JUSTIFIED => Verdict::Dismissed,
            _ => return Err("the hub's answer is not one of the choices".to_owned()),
        };
        let resolved_at = Timestamp::from_unix_millis(unix_now()).ok_or("the clock is wrong")?;
        let resolution = Resolution {
            dispute_id: dispute.dispute_id.clone(),
            verdict,
            resolved_by: Resolver::Person(PERSON.to_owned()),
            explanation: "a person decided through the hub".to_owned(),
            resolved_at,
        };
        let mut records = vec![NodeRecord::Dispute {
            record: DisputeRecord::Answered { id: dispute.dispute_id.clone(), receipt, signature }.to_json(),
        }];
        records.extend(resolution_records(dispute, &resolution));
        // The dispute may have been withdrawn in the meantime.
        let _resolving = self.resolving.lock().await;
        self.peers().check_resolution(&resolution).map_err(|error| error.to_string())?;
        self.append_node_records(records).await.map_err(|error| error.to_string())?;
        self.counters.questions_resolved.increment(&["answered"]);
        Ok(())
    }

    /// Stores that a question was not answered. The dispute stays open.
    async fn leave_dispute_open(
        self: &Arc<Self>,
        dispute: &Dispute,
        open: Option<&OpenQuestion>,
        reason: &str,
    ) {
        if open.is_some() {
            self.counters.questions_resolved.increment(&["refused"]);
        }
        let record = DisputeRecord::Unanswered { id: dispute.dispute_id.clone(), reason: reason.to_owned() };
        let records = vec![NodeRecord::Dispute { record: record.to_json() }];
        if let Err(error) = self.append_node_records(records).await {
            // After the next start, the node waits for the same answer again.
            tracing::error!(target: "sayso::log", kind = "asp.failed", %error);
        }
    }

    /// Ends the hub's session of a question.
    async fn end_dispute_session(&self, person: &Person, dispute: &Dispute, open: &OpenQuestion) {
        let resolution = self.peers().dispute_verdict(&dispute.dispute_id);
        let text = LocalizedText::new(|phrases| match resolution {
            Some(Verdict::Upheld(_)) => phrases.dispute_upheld().to_owned(),
            Some(_) => phrases.dispute_closed().to_owned(),
            None => phrases.dispute_open().to_owned(),
        });
        let event = NarrationEvent { key: "end".to_owned(), kind: EventKind::Completed, text };
        let key = format!("asp-{}-{}-end", dispute.dispute_id, open.reply_token);
        if let Err(error) = person.report(&open.hub_session, &event.to_json(), &key).await {
            tracing::debug!(target: "sayso::log", kind = "asp.hub_failed", %error);
        }
        person.unfollow(&open.hub_session);
    }
}

/// Returns the commitment that was agreed in a session, open or ended.
pub(crate) fn agreed_commitment(session: &AspSession) -> Option<&Commitment> {
    let ended = session.outcome().and_then(|outcome| outcome.commitment.as_ref());
    session.commitment().or(ended)
}
