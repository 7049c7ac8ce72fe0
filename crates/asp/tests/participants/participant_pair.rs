//! Two participants with a clock.

use asp::message::{Authenticator, Body, Constraints};
use asp::session::{AspSession, ReceiverChecks};
use asp::state_machine::{Role, State};
use asp::{AspError, ChainPosition, Participant, ReceiveOutcome, SentMessage, StoredStep};
use seal::UnixMillis;

use crate::support::bodies::{accept, inform, invitation, query};
pub(crate) use crate::support::record_harness::{A, B, START};
use crate::support::test_agents::{BUYER, CountingRandom, SELLER, participant};

pub(crate) struct ParticipantPair {
    pub(crate) sides: [Participant; 2],
    pub(crate) random: CountingRandom,
    pub(crate) now: UnixMillis,
    pub(crate) checks: ReceiverChecks,
    /// The constraints of sent messages.
    pub(crate) constraints: Option<Constraints>,
    /// The steps of each side, as a node would store them.
    pub(crate) steps: [Vec<StoredStep>; 2],
}

impl ParticipantPair {
    /// Creates a pair in which the buyer is about to invite the seller.
    pub(crate) fn new() -> Self {
        let mut random = CountingRandom(1);
        let mut a = participant(&BUYER, &[&SELLER]);
        let session_id = a.invite(&SELLER.card, START, &mut random).unwrap();
        let b = participant(&SELLER, &[&BUYER]);
        let opened = StoredStep::Opened { session_id, peer: SELLER.agent().clone(), role: A };
        Self {
            sides: [a, b],
            random,
            now: START,
            checks: ReceiverChecks::PASSED,
            constraints: None,
            steps: [vec![opened], Vec::new()],
        }
    }

    pub(crate) fn introduced() -> Self {
        let mut pair = Self::new();
        pair.send_and_deliver(A, invitation());
        pair.send_and_deliver(B, accept("prop_inv"));
        pair.send_and_deliver(A, inform("identity"));
        pair.send_and_deliver(B, inform("identity"));
        assert_eq!(pair.states(), [State::Introduced; 2]);
        pair
    }

    pub(crate) fn conversing() -> Self {
        let mut pair = Self::introduced();
        pair.send_and_deliver(A, query("qry_0"));
        pair
    }

    pub(crate) fn side(&mut self, role: Role) -> &mut Participant {
        &mut self.sides[usize::from(role == B)]
    }

    pub(crate) fn try_send(&mut self, role: Role, body: Body) -> Result<SentMessage, AspError> {
        let (now, mut random) = (self.now, self.random.clone());
        let constraints = self.constraints.clone();
        let sent = self.side(role).send_with(body, constraints, ReceiverChecks::PASSED, now, &mut random);
        self.random = random;
        if let Ok(sent) = &sent {
            self.steps[role as usize].push(sent.into());
        }
        sent
    }

    /// Sends a message that must be allowed. Returns the bytes, which are not delivered yet.
    pub(crate) fn send(&mut self, role: Role, body: Body) -> String {
        self.try_send(role, body).unwrap_or_else(|error| panic!("{role}: {error}")).text.to_string()
    }

    pub(crate) fn deliver(&mut self, to: Role, text: &str) -> ReceiveOutcome {
        let (now, checks, mut random) = (self.now, self.checks, self.random.clone());
        let side = self.side(to);
        let outcome = match Authenticator::default().authenticate(text, side.cards(), side.limits()) {
            Ok(message) => {
                let outcome = side.handle(&message, checks, now, &mut random).unwrap();
                self.steps[to as usize].extend(StoredStep::from_outcome(&message, &outcome, now));
                outcome
            }
            Err(error) => side.handle_authentication_error(error, now, &mut random).unwrap(),
        };
        self.random = random;
        outcome
    }

    /// Sends and delivers a message that both sides must accept.
    pub(crate) fn send_and_deliver(&mut self, role: Role, body: Body) -> String {
        self.now += 1000;
        let text = self.send(role, body);
        let outcome = self.deliver(role.other(), &text);
        assert!(matches!(outcome, ReceiveOutcome::Accepted { .. }), "{outcome:?}");
        self.assert_agreement();
        text
    }

    /// Delivers a message that must be accepted. Returns the messages that lost a race against it.
    pub(crate) fn deliver_accepted(&mut self, to: Role, text: &str) -> Vec<Body> {
        match self.deliver(to, text) {
            ReceiveOutcome::Accepted { superseded, .. } => superseded,
            other => panic!("{other:?}"),
        }
    }

    /// Delivers a message that must be answered with a REJECT, and asserts that it changes nothing.
    pub(crate) fn deliver_refused(&mut self, to: Role, text: &str) -> (asp::Refusal, String) {
        let before = self.snapshot(to);
        match self.deliver(to, text) {
            ReceiveOutcome::Refused { refusal, reject: Some(reject) } => {
                assert_eq!(self.snapshot(to), before, "{refusal}");
                (refusal, reject.to_string())
            }
            other => panic!("{other:?}"),
        }
    }

    /// Delivers a REJECT that must roll back messages. Returns the refusal and these messages.
    pub(crate) fn deliver_rollback(&mut self, to: Role, text: &str) -> (asp::Refusal, Vec<Body>) {
        match self.deliver(to, text) {
            ReceiveOutcome::RolledBack { refusal, messages } => (refusal, messages),
            other => panic!("{other:?}"),
        }
    }

    /// Delivers a REJECT that must change nothing.
    pub(crate) fn deliver_ignored(&mut self, to: Role, text: &str) {
        let before = self.snapshot(to);
        let outcome = self.deliver(to, text);
        assert!(matches!(outcome, ReceiveOutcome::Ignored), "{outcome:?}");
        assert_eq!(self.snapshot(to), before);
    }

    pub(crate) fn snapshot(&mut self, role: Role) -> (AspSession, ChainPosition) {
        let record = self.side(role).record().unwrap();
        (record.session().clone(), record.transcript().position())
    }

    pub(crate) fn states(&mut self) -> [State; 2] {
        [A, B].map(|role| self.snapshot(role).0.state())
    }

    pub(crate) fn texts(&mut self, role: Role) -> Vec<String> {
        self.side(role).record().unwrap().transcript().messages().map(str::to_owned).collect()
    }

    /// Asserts that both sides have the same transcript and the same state.
    pub(crate) fn assert_agreement(&mut self) {
        assert_eq!(self.texts(A), self.texts(B));
        assert_eq!(self.snapshot(A), self.snapshot(B));
    }
}
