//! Restores the hub from the journal: sessions from their events, questions from the ledger, and subscriptions from
//! their stored terms.

use std::hash::RandomState;
use std::sync::Arc;

use aaep::SubscriptionId;
use aaep::check::CheckedDocument;
use aaep::consent::{Question, QuestionRegistry, QuestionStatus};
use aaep::event::Producer;
use aaep::json::Tape;
use aaep::message::{Message, SubscriptionAccepted};
use aaep::negotiate::{Offer, Terms};
use aaep::rule::{Findings, ValidationMode};
use journal::{DamageLocation, JournalError, Position};
use seal::{Digest, UnixMillis};

use super::questions::status_of;
use super::sayso_capabilities::SaysoCapabilities;
use super::sessions::LiveSession;
use super::subscription::{LiveSubscription, PreviousTerms, role_of, shaping_terms};
use super::{Core, PostCommit, TurnContext};
use crate::command::TurnOutput;
use crate::owned_entry::OwnedEntry;
use crate::reply::VOID_CALL;
use crate::shards::{CountKind, CountRequest};
use crate::telemetry::LogEvent;
use crate::{Principal, Scope};

/// Number of events to read at a time.
const PAGE_EVENTS: usize = 512;

impl Core {
    /// Rebuilds sessions, questions and subscriptions from the journal. All listeners count as disconnected; they may
    /// reconnect within the resume window. Returns
    /// [`LiveState::must_void_consents`](journal::stored::LiveState::must_void_consents).
    pub(super) fn restore(&mut self, now: UnixMillis) -> Result<bool, JournalError> {
        let stored_state = self.journal.restore()?;
        self.last_position = stored_state.last_position.get();
        self.trimmed_up_to = stored_state.trimmed_up_to.get();
        self.delivery_groups.clear();
        self.listeners.clear();
        self.sessions.clear();
        self.handoffs.clear();
        self.question_counts.clear();
        self.subscriptions.clear();
        self.resume_deadlines.clear();
        self.credential_deadlines.clear();
        for stored in &stored_state.sessions {
            let max_open = self.limits.open_items_per_session;
            let mut live = LiveSession::from_stored(stored, max_open, self.limits.lease_ms, now)
                .ok_or_else(|| unreadable(DamageLocation::Session, &stored.id))?;
            if self.orphans.contains(&live.id) {
                (live.lease_until, live.lease_check_at) = (now, now);
            }
            self.replay_events(&mut live)?;
            let agent = (!Principal::is_token_owner(&live.owner)).then_some(&*live.agent);
            // Stored items count, even if the limits are lower now.
            live.count = self.count_session_of(&live.owner, agent, usize::MAX, usize::MAX).ok().flatten();
            self.sessions.insert(live.id.clone(), live);
        }
        self.lease_checks = self.sessions.iter().map(|(id, live)| (live.lease_until, id.clone())).collect();
        let mut questions =
            Vec::with_capacity(stored_state.questions.len() + stored_state.unspent_decisions.len());
        for stored in &stored_state.questions {
            if self.restore_open_handoff(stored) {
                continue;
            }
            let question = parse_question(&stored.token, &stored.session, &stored.record, stored.deadline)?;
            // The record is written when the question opens, so another status means that it was altered.
            if !question.is_open() {
                return Err(unreadable(DamageLocation::Question, &stored.token));
            }
            questions.push(question);
        }
        for stored in &stored_state.unspent_decisions {
            if self.restore_resolved_handoff(stored) {
                continue;
            }
            let mut question =
                parse_question(&stored.token, &stored.session, &stored.record, stored.deadline)?;
            question.status = status_of(stored);
            question.resolved_at = Some(stored.decided_at);
            questions.push(question);
        }
        questions.sort_by_key(|question| question.asked_at);
        self.question_counts = questions
            .iter()
            .filter(|question| question.is_open())
            .filter_map(|question| {
                let requests = [
                    CountRequest {
                        kind: CountKind::QuestionsOfAgent,
                        key: &question.agent_id,
                        max: usize::MAX,
                    },
                    CountRequest { kind: CountKind::Questions, key: "", max: usize::MAX },
                ];
                Some((question.token.clone(), self.count_with_other_shards(&requests).ok()??))
            })
            .collect();
        self.questions = QuestionRegistry::restore(
            self.limits.questions,
            RandomState::new(),
            questions,
            now,
            self.limits.resume_window_ms,
        );
        for stored in &stored_state.subscriptions {
            let mut subscription = parse_subscription(stored)
                .ok_or_else(|| unreadable(DamageLocation::Subscription, &stored.id))?;
            if self.shard.map.home_of(&subscription.scope) == self.shard.index {
                subscription.count = self.count_subscription(usize::MAX).ok().flatten();
            }
            self.questions.subscription_opened(&subscription.id, &stored.principal);
            let until = now.saturating_add(self.limits.resume_window_ms);
            subscription.resume_deadline = Some(until);
            self.resume_deadlines.insert((until, subscription.id.clone()));
            self.subscriptions.insert(subscription.id.clone(), subscription);
        }
        self.restore_manifests(&stored_state.manifests)?;
        self.needs_rebuild = false;
        self.reset_gauges();
        Ok(stored_state.must_void_consents)
    }

    /// Voids all consents and invitations and refuses all open questions, because the journal was restored from a backup or has lost
    /// entries. An accepted question that looks unspent may have been spent, and a question that looks open may have
    /// been answered.
    pub(super) fn void_consents(&mut self, now: UnixMillis) -> Result<(), JournalError> {
        let context = TurnContext { now, connection: None };
        let is_accepted = |question: &&Question| matches!(question.status, QuestionStatus::Accepted { .. });
        let accepted: Vec<_> =
            self.questions.questions().filter(is_accepted).map(|question| question.token.clone()).collect();
        let open_questions = self.questions.questions().filter(|question| question.is_open()).count();
        let log_event = LogEvent::ConsentsVoided { consents: accepted.len(), questions: open_questions };
        for token in accepted {
            self.staged.writes.push(OwnedEntry::DecisionSpent { token, call: VOID_CALL.to_owned(), at: now });
        }
        self.void_invitations();
        let change = self.questions.refuse_open_questions(now);
        self.stage_question_change(change, &context);
        self.withdraw_all_handoffs(&context);
        let staged = std::mem::take(&mut self.staged);
        self.write_batch(&staged.writes)?;
        self.restore(now)?;
        // The first turn logs this.
        self.staged.post_commit.push(PostCommit::Emit(TurnOutput::Log(log_event)));
        Ok(())
    }

    /// Replays a session's events into its state machine.
    fn replay_events(&mut self, live: &mut LiveSession) -> Result<(), JournalError> {
        let mut after = Position::START;
        loop {
            let page = self.journal.session_events(live.id.as_str(), after, PAGE_EVENTS)?;
            for stored in &page {
                after = stored.position;
                let unreadable = || unreadable(DamageLocation::Event, &stored.event_id);
                let text = std::str::from_utf8(&stored.body).map_err(|_| unreadable())?;
                let mut tape = Tape::default();
                let doc = tape.read(text).map_err(|_| unreadable())?;
                let mut findings = Findings::new(ValidationMode::Strict);
                let CheckedDocument::Event(event) = self.validator.check(&doc, &mut findings) else {
                    return Err(unreadable());
                };
                let event = event.borrow();
                live.machine.apply(&event, &mut findings);
                live.last_timestamp = event
                    .timestamp
                    .map_or(live.last_timestamp, |at| live.last_timestamp.max(at.unix_millis()));
            }
            if page.len() < PAGE_EVENTS {
                return Ok(());
            }
        }
    }
}

/// A record that is intact but in a format that this version does not know.
#[derive(Debug)]
struct UnreadableRecord(String);

impl std::fmt::Display for UnreadableRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} cannot be read; a newer version of sayso may have written it", self.0.escape_debug())
    }
}

impl std::error::Error for UnreadableRecord {}

pub(super) fn unreadable(location: DamageLocation, id: &str) -> JournalError {
    JournalError::Corrupt(location, Some(Box::new(UnreadableRecord(id.to_owned()))))
}

/// Parses a stored question and sets its current deadline. A record that belongs to another row is an error, because
/// the question of this row is then missing.
fn parse_question(
    token: &str,
    session: &str,
    record: &[u8],
    deadline: UnixMillis,
) -> Result<Question, JournalError> {
    let parse = || Question::parse_record(std::str::from_utf8(record).ok()?);
    let mut question = parse()
        .filter(|question| question.token.as_str() == token && question.session_id.as_str() == session)
        .ok_or_else(|| unreadable(DamageLocation::Question, token))?;
    question.deadline = deadline;
    Ok(question)
}

impl LiveSubscription {
    /// Creates a subscription with the terms of a `subscription.accepted` message.
    pub(super) fn from_accepted(principal: &Principal, accepted_json: &str) -> Option<Self> {
        let mut accepted = parse_accepted(accepted_json)?;
        let sayso = SaysoCapabilities::take_from(&mut accepted.honored_capabilities);
        let terms = terms_of(&accepted)?;
        let takes_handoffs = sayso.takes_handoffs && principal.role.can_take_handoffs();
        let id = accepted.subscription_id.clone();
        let mut subscription = Self::new(id, principal, terms, accepted_json, takes_handoffs);
        subscription.resume_after = sayso.after;
        Some(subscription)
    }
}

fn parse_subscription(stored: &journal::stored::OpenSubscription) -> Option<LiveSubscription> {
    let mut tape = Tape::default();
    let doc = tape.read(std::str::from_utf8(&stored.record).ok()?).ok()?;
    let root = doc.root();
    let accepted_json = root.member("accepted")?.source();
    let scope = Scope::read(&root.member("scope")?)?;
    let may_answer = root.member("may_answer")?.as_bool()?;
    let may_take_handoffs = match root.member("may_take_handoffs") {
        Some(value) => value.as_bool()?,
        None => false,
    };
    let token_digest = match root.member("token_digest") {
        Some(value) => Some(Digest::parse(&value.text()?)?),
        None => None,
    };
    let role = role_of(may_answer, may_take_handoffs);
    let principal = Principal {
        name: stored.principal.as_str().into(),
        role,
        agent_id: None,
        scope: Arc::new(scope),
        is_local: false,
        token_digest,
        expires_at: None,
        sign_in: None,
        naming: crate::AgentNaming::SelfDeclared,
    };
    let mut subscription = LiveSubscription::from_accepted(&principal, accepted_json)?;
    subscription.id = SubscriptionId::parse(&stored.id).ok()?;
    for earlier in root.member("before").iter().flat_map(aaep::json::JsonValue::items) {
        let until = u64::try_from(earlier.member("until")?.as_number()?.as_i64()?).ok()?;
        let accepted_json = earlier.member("accepted")?.source();
        let shaping_terms = shaping_terms(&terms_of(&parse_accepted(accepted_json)?)?, role);
        subscription.previous_terms.push(PreviousTerms {
            last_position: until,
            shaping_terms,
            accepted_json: accepted_json.into(),
        });
    }
    Some(subscription)
}

fn parse_accepted(text: &str) -> Option<SubscriptionAccepted> {
    let Some(Message::SubscriptionAccepted(accepted)) = Message::parse(text) else { return None };
    Some(accepted)
}

/// Returns the terms of a `subscription.accepted` message.
fn terms_of(accepted: &SubscriptionAccepted) -> Option<Terms> {
    let known_extensions = Offer::new(Producer::new("any")).extensions;
    Terms::from_capabilities(&accepted.aaep_version, &accepted.honored_capabilities, &known_extensions)
}
