//! What the node knows about other agents: their cards, its own trust in them, their rates, and the escrow ledger.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use asp::dispute::{Dispute, DisputeRegister, RegisterError, Resolution, Verdict};
use asp::message::{Body, TrustScore};
use asp::session::ReceiverChecks;
use asp::trust::{
    CircuitBreaker, CircuitState, RateLimited, SignedEndorsement, TokenBucket, TrustBook, TrustEvent,
    TrustEventKind, TrustEventName, TrustLevel, TrustParametersError, TrustReport,
};
use asp::{AgentCard, AgentUri, DisputeId, SessionId};
use seal::UnixMillis;
use seal::ed25519::VerifyingKey;
use seal::json::write_object;
use wire::unix_now;

use crate::dispute_questions::DisputeQuestionState;
use crate::disputes::DisputeRecord;
use crate::dpop;
use crate::ended_sessions::EndedSessionList;
use crate::escrow_book::EscrowBook;
use crate::limits::NodeLimits;
use crate::node::NodeConfig;
use crate::policy::Policy;
use crate::records::NodeRecord;

const MINUTES_PER_DAY: i64 = 24 * 60;
/// Maximum number of agents without a pinned card whose traffic is remembered.
const MAX_UNPINNED_CONTACTS: usize = 1_000;

/// What the node knows about other agents.
#[derive(Debug)]
pub(crate) struct Peers {
    /// The pinned card of each agent.
    cards: HashMap<AgentUri, Arc<AgentCard>>,
    /// The signing keys of the cards that the operator pins now.
    pinned_by_operator: HashMap<AgentUri, VerifyingKey>,
    /// The cards that were pinned on first contact, or replaced by a signed successor, in this order.
    recorded_cards: Vec<AgentCard>,
    /// The agent of each access token.
    agents_by_token: HashMap<String, AgentUri>,
    registered: HashMap<AgentUri, Arc<AgentCard>>,
    trust: TrustBook,
    contacts: HashMap<AgentUri, Contact>,
    disputes: DisputeRegister,
    /// What a person was asked about disputes.
    dispute_questions: HashMap<DisputeId, DisputeQuestionState>,
    /// The list of ended sessions for the agent's program.
    pub(crate) ended_sessions: EndedSessionList,
    /// The money that agents have with this node's operator.
    pub(crate) escrow: EscrowBook,
    policy: Arc<Policy>,
}

/// The recent traffic with one agent.
#[derive(Debug)]
struct Contact {
    messages: TokenBucket,
    invitations: TokenBucket,
    /// The size of the messages.
    bytes: TokenBucket,
    violations: HashMap<TrustEventName, ViolationLimiter>,
    breaker: CircuitBreaker,
}

/// Limits how many violations of one kind are recorded.
#[derive(Debug, Default)]
struct ViolationLimiter {
    of_minute: TokenBucket,
    of_day: TokenBucket,
}

impl Peers {
    /// Starts with the cards that the operator pinned.
    pub(crate) fn new(config: &NodeConfig) -> Result<Self, TrustParametersError> {
        let policy = Arc::new(config.policy.clone());
        let trust = TrustBook::new(policy.trust.clone())?;
        let mut peers = Self {
            cards: HashMap::new(),
            pinned_by_operator: HashMap::new(),
            recorded_cards: Vec::new(),
            agents_by_token: HashMap::new(),
            registered: HashMap::new(),
            trust,
            contacts: HashMap::new(),
            disputes: DisputeRegister::default(),
            dispute_questions: HashMap::new(),
            ended_sessions: EndedSessionList::default(),
            escrow: EscrowBook::default(),
            policy,
        };
        peers.pin_for_operator(config.pinned.clone());
        Ok(peers)
    }

    /// Applies a stored fact, at the start and after each commit.
    pub(crate) fn apply(&mut self, record: &NodeRecord, limits: &NodeLimits) {
        match record {
            NodeRecord::CardPinned { card } => {
                if let Ok(card) = AgentCard::parse(card) {
                    self.recorded_cards.push(card.clone());
                    self.insert_card(card, limits.pinned_cards);
                }
            }
            NodeRecord::CardRegistered { card } => {
                if let Ok(card) = AgentCard::parse(card)
                    && (self.registered.len() < limits.registered_cards
                        || self.registered.contains_key(card.agent_id()))
                {
                    self.registered.insert(card.agent_id().clone(), Arc::new(card));
                }
            }
            NodeRecord::Trust { event } => {
                if let Ok(event) = TrustEvent::parse(event) {
                    self.trust.record(&event);
                }
            }
            NodeRecord::SessionEnded { id, summary } => {
                self.ended_sessions.push(*id, summary.clone(), limits.listed_ended_sessions);
            }
            NodeRecord::Ledger { entry } => self.escrow.apply(entry),
            NodeRecord::Dispute { record } => match DisputeRecord::parse(record) {
                Some(DisputeRecord::Filed(dispute)) => drop(self.disputes.file(*dispute)),
                Some(DisputeRecord::Resolved(resolution)) => drop(self.disputes.resolve(resolution)),
                Some(DisputeRecord::Asked { id, question }) => {
                    let state = self.dispute_questions.entry(id).or_default();
                    state.asked_count += 1;
                    (state.open, state.unanswered) = (Some(question), None);
                }
                Some(DisputeRecord::Unanswered { id, reason }) => {
                    let state = self.dispute_questions.entry(id).or_default();
                    (state.open, state.unanswered) = (None, Some(reason));
                }
                Some(DisputeRecord::AskAgain { id }) => {
                    self.dispute_questions.entry(id).or_default().unanswered = None;
                }
                Some(DisputeRecord::Answered { id, receipt, signature }) => {
                    let state = self.dispute_questions.entry(id).or_default();
                    (state.open, state.receipt) = (None, Some((receipt, signature)));
                }
                None => {}
            },
        }
    }

    /// Replaces the policy and the cards that the operator pinned.
    pub(crate) fn replace_pinned(
        &mut self,
        policy: &Arc<Policy>,
        pinned: Vec<AgentCard>,
        limits: &NodeLimits,
    ) {
        self.policy = policy.clone();
        self.cards.clear();
        self.agents_by_token.clear();
        self.pinned_by_operator.clear();
        self.pin_for_operator(pinned);
        for card in self.recorded_cards.clone() {
            self.insert_card(card, limits.pinned_cards);
        }
    }

    fn pin_for_operator(&mut self, pinned: Vec<AgentCard>) {
        for card in pinned {
            self.pinned_by_operator.insert(card.agent_id().clone(), *card.signing_key());
            self.insert_card(card, usize::MAX);
        }
    }

    /// Returns whether the operator pins this card now.
    pub(crate) fn is_pinned_by_operator(&self, card: &AgentCard) -> bool {
        self.pinned_by_operator.get(card.agent_id()) == Some(card.signing_key())
    }

    /// Pins a card. A card that the operator pinned is replaced only by its signed successor.
    fn insert_card(&mut self, card: AgentCard, max_cards: usize) {
        if self.policy.revoked.contains(card.agent_id()) {
            return;
        }
        match self.cards.get(card.agent_id()) {
            Some(old) if old.signing_key() != card.signing_key() && !card.is_successor_of(old) => return,
            Some(old) => {
                let token = dpop::access_token(old.dpop_key());
                self.agents_by_token.remove(&token);
            }
            None if self.cards.len() >= max_cards => return,
            None => {}
        }
        self.agents_by_token.insert(dpop::access_token(card.dpop_key()), card.agent_id().clone());
        self.cards.insert(card.agent_id().clone(), Arc::new(card));
    }

    /// Returns the pinned card of an agent.
    pub(crate) fn card(&self, agent: &AgentUri) -> Option<Arc<AgentCard>> {
        self.cards.get(agent).cloned()
    }

    /// Returns the pinned card whose key has this access token.
    pub(crate) fn card_by_token(&self, token: &str) -> Option<Arc<AgentCard>> {
        self.card(self.agents_by_token.get(token)?)
    }

    /// Checks whether a dispute can be filed.
    pub(crate) fn check_dispute(&self, dispute: &Dispute) -> Result<(), RegisterError> {
        self.disputes.clone().file(dispute.clone())
    }

    /// Checks whether a dispute can be resolved in this way.
    pub(crate) fn check_resolution(&self, resolution: &Resolution) -> Result<(), RegisterError> {
        self.disputes.clone().resolve(resolution.clone()).map(drop)
    }

    /// Returns a dispute that is not resolved.
    pub(crate) fn open_dispute(&self, id: &DisputeId) -> Result<Dispute, RegisterError> {
        match self.disputes.get(id) {
            None => Err(RegisterError::Unknown),
            Some((_, Some(_))) => Err(RegisterError::AlreadyResolved),
            Some((dispute, None)) => Ok(dispute.clone()),
        }
    }

    /// Returns the verdict of a dispute that has ended.
    pub(crate) fn dispute_verdict(&self, id: &DisputeId) -> Option<Verdict> {
        self.disputes.get(id)?.1.map(|resolution| resolution.verdict)
    }

    /// Returns what a person was asked about a dispute.
    pub(crate) fn dispute_question(&self, id: &DisputeId) -> DisputeQuestionState {
        self.dispute_questions.get(id).cloned().unwrap_or_default()
    }

    /// Returns the open disputes about which a person is asked, or has to be asked.
    pub(crate) fn disputes_for_a_person(&self) -> Vec<DisputeId> {
        let open = self.disputes.iter().filter(|(_, resolution)| resolution.is_none());
        let ids = open.map(|(dispute, _)| &dispute.dispute_id);
        let is_waiting = |id: &&DisputeId| {
            self.dispute_questions.get(*id).is_none_or(|question| question.unanswered.is_none())
        };
        ids.filter(is_waiting).cloned().collect()
    }

    /// Returns how many disputes wait for a person's answer.
    pub(crate) fn open_dispute_questions(&self) -> usize {
        self.dispute_questions.values().filter(|question| question.open.is_some()).count()
    }

    /// Returns a dispute and its resolution as JSON.
    pub(crate) fn dispute_to_json(&self, id: &DisputeId) -> Option<String> {
        self.disputes.get(id).map(|(dispute, resolution)| self.write_dispute(dispute, resolution))
    }

    /// Returns all disputes of a session as JSON.
    pub(crate) fn disputes_to_json(&self, session: SessionId) -> String {
        let mut disputes: Vec<_> =
            self.disputes.iter().filter(|(dispute, _)| dispute.session_id == session).collect();
        disputes.sort_unstable_by_key(|(dispute, _)| &dispute.dispute_id);
        write_object(|writer| {
            writer.key("disputes").array(|writer| {
                for (dispute, resolution) in disputes {
                    writer.raw(&self.write_dispute(dispute, resolution));
                }
            });
        })
    }

    fn write_dispute(&self, dispute: &Dispute, resolution: Option<&Resolution>) -> String {
        let question = self.dispute_questions.get(&dispute.dispute_id);
        write_object(|writer| {
            writer.key("dispute").raw(&dispute.to_json());
            writer.key("status").text(if resolution.is_some() { "resolved" } else { "awaiting_person" });
            if let Some(resolution) = resolution {
                writer.key("resolution").raw(&resolution.to_json());
            }
            if let Some(open) = question.and_then(|question| question.open.as_ref()) {
                writer.key("reply_token").text(&open.reply_token);
            }
            if let Some(reason) = question.and_then(|question| question.unanswered.as_ref()) {
                writer.key("unanswered").text(reason);
            }
            if let Some((receipt, signature)) = question.and_then(|question| question.receipt.as_ref()) {
                writer.key("receipt").raw(receipt);
                writer.key("signature").text(signature);
            }
        })
    }

    /// Returns whether the operator has revoked the cards of an agent.
    pub(crate) fn is_revoked(&self, agent: &AgentUri) -> bool {
        self.policy.revoked.contains(agent)
    }

    /// Returns whether one more card can be pinned.
    pub(crate) fn has_room(&self, limits: &NodeLimits) -> bool {
        self.cards.len() < limits.pinned_cards
    }

    /// Returns whether one more card can be registered.
    pub(crate) fn has_room_to_register(&self, limits: &NodeLimits) -> bool {
        self.registered.len() < limits.registered_cards
    }

    /// Returns the registered cards with this capability and at least this score, the most trusted first.
    pub(crate) fn discover(
        &self,
        capability: &str,
        min_trust: f64,
        now: UnixMillis,
    ) -> Vec<(Arc<AgentCard>, TrustScore)> {
        let fits = |card: &&Arc<AgentCard>| card.capabilities().any(|own| own == capability);
        let mut found: Vec<_> = self
            .registered
            .values()
            .filter(fits)
            .filter(|card| !self.is_revoked(card.agent_id()))
            .map(|card| (card.clone(), self.trust.score(card.agent_id(), now)))
            .filter(|(_, score)| score.get() >= min_trust)
            .collect();
        found.sort_by(|(a, a_score), (b, b_score)| {
            b_score.get().total_cmp(&a_score.get()).then_with(|| a.agent_id().cmp(b.agent_id()))
        });
        found
    }

    /// Returns the registered card of an agent, unless it is revoked.
    pub(crate) fn registered_card(&self, agent: &AgentUri) -> Option<Arc<AgentCard>> {
        self.registered.get(agent).filter(|card| !self.is_revoked(card.agent_id())).cloned()
    }

    /// Returns the registered cards of the agents whose URIs end with this part. At most two, because more make no difference.
    pub(crate) fn registered_cards_by_name(&self, name: &str) -> Vec<Arc<AgentCard>> {
        let has_name = |card: &&Arc<AgentCard>| crate::routes::last_path_part(card.agent_id()) == name;
        let cards = self.registered.values().filter(has_name);
        cards.filter(|card| !self.is_revoked(card.agent_id())).take(2).cloned().collect()
    }

    pub(crate) fn trust_of(&self, agent: &AgentUri, now: UnixMillis) -> (TrustScore, TrustLevel) {
        (self.trust.score(agent, now), self.trust.level(agent, now))
    }

    pub(crate) fn trust_report(&self, agent: &AgentUri, now: UnixMillis) -> TrustReport {
        self.trust.report(agent, now)
    }

    /// Returns the trust events for the cards that the operator pins and that are in force, for cards that were revoked, and for
    /// cards that count again after a revocation. Each agent's card is recorded as pinned once, also if it was pinned on first
    /// contact before, and once more after each revocation.
    pub(crate) fn pinning_events(&self, now: UnixMillis) -> Vec<NodeRecord> {
        let known: HashSet<_> = self.trust.peers().collect();
        let new_kind = |(agent, card): (&AgentUri, &Arc<AgentCard>)| {
            let is_revoked = self.trust.is_revoked(agent);
            if self.is_pinned_by_operator(card) {
                let is_new = is_revoked || !self.trust.has_event(agent, TrustEventName::CardPinned);
                is_new.then_some(TrustEventKind::CardPinned)
            } else {
                is_revoked.then_some(TrustEventKind::CardTrustedOnFirstUse)
            }
        };
        let pinned = self
            .cards
            .iter()
            .filter_map(|(agent, card)| Some(trust_record(agent, None, new_kind((agent, card))?, now)));
        let revoked = self.policy.revoked.iter();
        let revoked = revoked.filter(|agent| known.contains(*agent) && !self.trust.is_revoked(agent));
        let revoked = revoked.map(|agent| trust_record(agent, None, TrustEventKind::CardRevoked, now));
        pinned.chain(revoked).collect()
    }

    /// Returns the trust events for the endorsements in the policy that are not recorded yet. Both agents' cards must be pinned.
    pub(crate) fn endorsement_events(&self, now: UnixMillis) -> Vec<NodeRecord> {
        let read = |text: &String| {
            let endorsement =
                SignedEndorsement::read(text, |agent| self.cards.get(agent).map(|card| &**card))
                    .map_err(|error| error.to_string())?;
            let (endorser, endorsed) = (endorsement.endorser(), endorsement.endorsed());
            let at = endorsement.issued_at().unix_millis().min(now);
            if self.trust.has_endorsement(endorsed, endorser, at) {
                return Ok(None);
            }
            let card =
                |agent| self.cards.get(agent).ok_or_else(|| format!("the card of {agent} is not pinned"));
            let organization = card(endorser)?.organization();
            let is_same_organization =
                !organization.is_empty() && organization == card(endorsed)?.organization();
            let event = self.trust.endorsement(endorsed, endorser, is_same_organization, None, now);
            let event = event.ok_or_else(|| format!("the score of {endorser} is too low"))?;
            let event = TrustEvent { at, ..event };
            Ok::<_, String>(Some(NodeRecord::Trust { event: event.to_json() }))
        };
        let events = self.policy.endorsements.iter().filter_map(|text| {
            read(text).unwrap_or_else(|reason| {
                tracing::warn!(target: "sayso::log", kind = "asp.endorsement_ignored", %reason);
                None
            })
        });
        events.collect()
    }

    /// The receiver's checks of a message. A revoked agent is never trusted.
    pub(crate) fn checks(
        &self,
        peer: &AgentCard,
        _body: Option<&Body>,
        policy: &Policy,
        now: UnixMillis,
    ) -> ReceiverChecks {
        let score = self.trust.score(peer.agent_id(), now);
        let is_trusted = !self.is_revoked(peer.agent_id()) && score.get() >= policy.trust_threshold;
        ReceiverChecks {
            is_trusted,
            is_funded: false,
            is_card_pinned: true,
            has_required_consent: true,
            trust_score: Some(score),
        }
    }

    /// Counts a message or an invitation from an agent against its limit.
    pub(crate) fn admit(
        &mut self,
        agent: &AgentUri,
        is_invitation: bool,
        now: UnixMillis,
    ) -> Result<(), RateLimited> {
        let limits = self.policy.peer_limits.of(self.trust.level(agent, now));
        let contact = self.contact(agent);
        if is_invitation {
            contact.invitations.take(limits.invitations_per_minute, now)?;
        }
        contact.messages.take(limits.messages_per_minute, now)
    }

    /// Counts the size of a message from an agent against its limit.
    pub(crate) fn admit_bytes(
        &mut self,
        agent: &AgentUri,
        bytes: usize,
        now: UnixMillis,
    ) -> Result<(), RateLimited> {
        let limits = self.policy.peer_limits.of(self.trust.level(agent, now));
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.contact(agent).bytes.take_many(bytes, limits.bytes_per_minute, now)
    }

    /// Returns how long a peer that does not answer is left alone.
    pub(crate) fn delay_until_allowed(&mut self, agent: &AgentUri, now: UnixMillis) -> Option<Duration> {
        let open = self.contact(agent).breaker.try_call(now).err()?;
        Some(Duration::from_millis(u64::try_from(open.retry_at.millis_since(now)).unwrap_or(0)))
    }

    /// Records whether a peer has answered. Returns whether sessions may wait for this, because the circuit was not closed.
    pub(crate) fn record_contact(&mut self, agent: &AgentUri, has_answered: bool, now: UnixMillis) -> bool {
        let breaker = &mut self.contact(agent).breaker;
        let was_closed = breaker.state(now) == CircuitState::Closed;
        if has_answered {
            breaker.record_success();
        } else {
            breaker.record_failure(now);
        }
        !was_closed
    }

    /// Counts a message from this agent that was not authentic or not allowed. Returns whether to record it, which is limited for each
    /// kind of violation, so that a mild one does not hide a severe one.
    pub(crate) fn take_violation(
        &mut self,
        agent: &AgentUri,
        kind: TrustEventName,
        now: UnixMillis,
        limits: &NodeLimits,
    ) -> bool {
        let limiter = self.contact(agent).violations.entry(kind).or_default();
        // On this scaled clock, a minute lasts a day.
        let day = UnixMillis::new(now.get() / MINUTES_PER_DAY);
        limiter.of_minute.take(limits.violations_per_minute, now).is_ok()
            && limiter.of_day.take(limits.violations_per_day, day).is_ok()
    }

    /// Returns how many peers do not answer and are left alone for a while.
    pub(crate) fn open_circuits(&self) -> usize {
        let is_open = |contact: &&Contact| contact.breaker.state(unix_now()) != CircuitState::Closed;
        self.contacts.values().filter(is_open).count()
    }

    fn contact(&mut self, agent: &AgentUri) -> &mut Contact {
        // An agent without a pinned card has no traffic to remember for long.
        if self.contacts.len() >= self.cards.len() + MAX_UNPINNED_CONTACTS
            && !self.contacts.contains_key(agent)
        {
            self.contacts.retain(|agent, _| self.cards.contains_key(agent));
        }
        let parameters = self.policy.circuit_breaker.clone();
        self.contacts.entry(agent.clone()).or_insert_with(|| Contact {
            messages: TokenBucket::default(),
            invitations: TokenBucket::default(),
            bytes: TokenBucket::default(),
            violations: HashMap::new(),
            breaker: CircuitBreaker::new(parameters),
        })
    }
}

/// Writes a trust report as JSON.
pub(crate) fn report_to_json(report: &TrustReport) -> String {
    write_object(|writer| {
        writer.key("agent").text(report.peer.as_str());
        writer.key("score").number(report.score.get());
        writer.key("level").integer(report.level.number().into());
        writer.key("levelName").text(report.level.as_str());
        writer.key("components").array(|writer| {
            for component in &report.components {
                writer.object(|writer| {
                    writer.key("name").text(component.component.as_str());
                    for (name, value) in [
                        ("weight", component.weight),
                        ("value", component.value),
                        ("base", component.base),
                        ("growth", component.growth),
                        ("penalty", component.penalty),
                    ] {
                        writer.key(name).number(value);
                    }
                    writer.key("events").array(|writer| {
                        for event in &component.events {
                            writer.object(|writer| {
                                writer.key("name").text(event.name.as_str());
                                writer.key("count").integer(i64::try_from(event.count).unwrap_or(i64::MAX));
                            });
                        }
                    });
                    writer.key("recentEvents").array(|writer| {
                        component.recent_events.iter().for_each(|event| writer.raw(&event.to_json()));
                    });
                });
            }
        });
    })
}

/// Returns the record of a trust event.
pub(crate) fn trust_record(
    agent: &AgentUri,
    session: Option<asp::SessionId>,
    kind: TrustEventKind,
    at: UnixMillis,
) -> NodeRecord {
    let event = TrustEvent { peer: agent.clone(), at, session_id: session, kind };
    NodeRecord::Trust { event: event.to_json() }
}
