//! A record that receives signed messages and must not change when it refuses them.

use std::sync::Mutex;

use asp::message::{AuthenticatedMessage, Authenticator, Body, PinnedCards};
use asp::session::{AspSession, ReceiverChecks, SessionRules};
use asp::state_machine::{Role, State};
use asp::{
    Admission, AspError, AspLimits, AuthenticationError, ChainPosition, MessageId, RejectCode, SessionId,
    SessionRecord,
};
use seal::{Digest, Timestamp, UnixMillis, ed25519};

use super::bodies;
use super::editable_json::EditableJson;
use super::test_agents::{BUYER, CountingRandom, SELLER, TestAgent, cards};
use super::test_signer::{SignedTestMessage, sign_envelope};

pub(crate) use Role::{Invited as B, Inviter as A};

/// The time at which every test begins.
pub(crate) const START: UnixMillis = UnixMillis::new(1_767_322_800_000);

#[derive(Clone)]
pub(crate) struct RecordHarness {
    pub(crate) record: SessionRecord,
    pub(crate) cards: PinnedCards,
    pub(crate) limits: AspLimits,
    pub(crate) now: UnixMillis,
    pub(crate) checks: ReceiverChecks,
    /// Whether messages are received live, with a clock.
    pub(crate) is_live: bool,
    pub(crate) random: CountingRandom,
}

/// The result of receiving a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum HarnessOutcome {
    Accepted,
    Refused(RejectCode),
    ChainBroken,
    Dropped(AuthenticationError),
}

impl RecordHarness {
    pub(crate) fn new() -> Self {
        Self::with(AspLimits::default())
    }

    pub(crate) fn with(limits: AspLimits) -> Self {
        let mut random = CountingRandom(0);
        let id = SessionId::generate(START, &mut random);
        let (a, b) = (BUYER.card.clone(), SELLER.card.clone());
        Self {
            record: SessionRecord::new(id, a, b, SessionRules::default(), &limits),
            cards: cards(),
            limits,
            now: START,
            checks: ReceiverChecks::PASSED,
            is_live: true,
            random,
        }
    }

    /// Returns a session in this state. From CONVERSING on, the buyer's proposal `prop_a` and the seller's `prop_b` are open.
    /// From AGREEING on, the buyer's commitment is `cmt_1`.
    pub(crate) fn at(state: State) -> Self {
        static CACHE: Mutex<Vec<RecordHarness>> = Mutex::new(Vec::new());
        let mut cache = CACHE.lock().unwrap();
        if let Some(harness) = cache.iter().find(|harness| harness.state() == state) {
            return harness.clone();
        }
        cache.push(Self::new().advanced_to(state));
        cache[cache.len() - 1].clone()
    }

    pub(crate) fn advanced_to(mut self, state: State) -> Self {
        let messages = [
            (A, bodies::invitation()),
            (B, bodies::accept("prop_inv")),
            (A, bodies::inform("identity")),
            (B, bodies::inform("identity")),
            (A, bodies::propose("prop_a")),
            (B, bodies::propose("prop_b")),
            (A, bodies::commit("cmt_1")),
            (B, bodies::accept("cmt_1")),
        ];
        let message_count = match state {
            State::Idle => 0,
            State::Invited => 1,
            State::Introduced => 4,
            State::Conversing | State::Escalated => 6,
            State::Agreeing => 7,
            State::Executing | State::Closed => 8,
            State::Failed => panic!("not supported: break the chain to reach FAILED"),
        };
        for (sender, body) in messages.into_iter().take(message_count) {
            self.send(sender, &body);
        }
        match state {
            State::Escalated => self.send(A, &bodies::escalate()),
            State::Closed => self.send(A, &bodies::close("unilateral")),
            _ => {}
        }
        assert_eq!(self.state(), state);
        self
    }

    pub(crate) fn state(&self) -> State {
        self.record.session().state()
    }

    /// Creates the sender's next message, unsigned. The performative and the body are not checked; everything else is valid.
    pub(crate) fn envelope(&mut self, sender: Role, performative: &str, body: &str) -> EditableJson {
        let (from, to) = (agent_for(sender), agent_for(sender.other()));
        let text = format!(
            r#"{{"version":"asp/0.1","messageId":"{}","sessionId":"{}","sequenceNumber":{},"timestamp":"{}",
            "sender":{{"agentId":"{}","orgId":"org_test","trustScore":50,"dpopProof":""}},"recipient":"{}",
            "performative":"{performative}","content":{{"mimeType":"application/asp+json","body":{body}}},
            "integrity":{{"hash":"","previousHash":"{}","signature":""}}}}"#,
            MessageId::generate(self.now, &mut self.random),
            self.record.session_id(),
            self.record.transcript().next_sequence_number(sender),
            time(self.now),
            from.agent(),
            to.agent(),
            self.record.transcript().head(),
        );
        EditableJson::parse(&text)
    }

    /// Creates the sender's next message with this body, unsigned.
    pub(crate) fn next(&mut self, sender: Role, body: &Body) -> EditableJson {
        self.envelope(sender, body.performative().as_str(), &body.to_json())
    }

    pub(crate) fn sign_next(&mut self, sender: Role, body: &Body) -> SignedTestMessage {
        sign_envelope(&self.next(sender, body), &agent_for(sender).keys)
    }

    /// Sends an allowed message, one second after the previous one.
    pub(crate) fn send(&mut self, sender: Role, body: &Body) {
        self.now += 1000;
        let signed = self.sign_next(sender, body);
        let outcome = self.receive(&signed.text);
        assert_eq!(outcome, HarnessOutcome::Accepted, "{body:?}");
        assert_eq!(self.record.transcript().head(), signed.hash);
    }

    pub(crate) fn authenticate(&mut self, text: &str) -> Result<AuthenticatedMessage, AspError> {
        Authenticator::default().authenticate(text, &self.cards, &self.limits)
    }

    pub(crate) fn receive(&mut self, text: &str) -> HarnessOutcome {
        let before = self.snapshot();
        let clock = self.is_live.then_some(self.now);
        let outcome = match self.authenticate(text) {
            Ok(message) => match self.record.admit(&message, self.checks, clock) {
                Admission::Accepted(_) => return HarnessOutcome::Accepted,
                Admission::ChainBroken(_) => return HarnessOutcome::ChainBroken,
                Admission::Refused(refusal) => {
                    assert_eq!(refusal.message_id, Some(message.envelope.message_id), "{refusal}");
                    HarnessOutcome::Refused(refusal.code)
                }
            },
            Err(AspError::Unauthenticated(error)) => HarnessOutcome::Dropped(error),
            Err(AspError::Refused(refusal)) => HarnessOutcome::Refused(refusal.code),
            Err(AspError::Local(error)) => panic!("{error}"),
        };
        assert_eq!(before, self.snapshot(), "a refused message changed something");
        outcome
    }

    /// Signs the envelope as this side and asserts that it is refused with this code.
    pub(crate) fn assert_refused(&mut self, sender: Role, envelope: &EditableJson, code: RejectCode) {
        let signed = sign_envelope(envelope, &agent_for(sender).keys);
        assert_eq!(self.receive(&signed.text), HarnessOutcome::Refused(code), "{}", envelope.write());
    }

    pub(crate) fn assert_accepted(&mut self, sender: Role, envelope: &EditableJson) {
        let signed = sign_envelope(envelope, &agent_for(sender).keys);
        assert_eq!(self.receive(&signed.text), HarnessOutcome::Accepted, "{}", envelope.write());
        assert_eq!(
            self.record.transcript().messages().last(),
            Some(&*signed.text),
            "the bytes are unchanged"
        );
    }

    /// Returns what a refused message must not change.
    pub(crate) fn snapshot(&self) -> (AspSession, ChainPosition) {
        (self.record.session().clone(), self.record.transcript().position())
    }
}

pub(crate) fn agent_for(role: Role) -> &'static TestAgent {
    match role {
        A => &BUYER,
        B => &SELLER,
    }
}

pub(crate) fn time(at: UnixMillis) -> Timestamp {
    Timestamp::from_unix_millis(at).unwrap()
}

/// Turns an envelope into an authenticated message with a dummy signature. A [`SessionRecord`] does not check
/// signatures, and this is faster than signing.
pub(crate) fn with_dummy_signature(envelope: EditableJson) -> AuthenticatedMessage {
    let signature = ed25519::Signature::from_bytes([1; 64]);
    let mut envelope = envelope.without("integrity/hash").without("integrity/signature");
    envelope.set("sender/dpopProof", EditableJson::text("none"));
    let hash: Digest = super::test_signer::digest(&envelope);
    envelope.set("integrity/hash", EditableJson::text(&hash.to_string()));
    envelope.set("integrity/signature", EditableJson::text(&signature.to_string()));
    let text = envelope.write();
    let parsed = Authenticator::default().parse_unauthenticated(&text).unwrap();
    AuthenticatedMessage {
        jti: parsed.message_id.to_string(),
        text: text.into(),
        hash,
        envelope: parsed,
        signing_key: BUYER.keys.signing.verifying_key(),
    }
}
