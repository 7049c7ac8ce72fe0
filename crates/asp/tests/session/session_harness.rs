//! A session with a clock, and the messages of two negotiating agents.

use asp::message::Body;
use asp::session::{
    AspSession, Effect, IncomingMessage, Party, ReceiverChecks, SessionOutcome, SessionRules, Transition,
};
use asp::state_machine::{AnyStateInterpretation, Role, State};
use asp::{AgentUri, AspLimits, ConformanceLevel, MessageId, Performative, RejectCode};
use seal::{Timestamp, UnixMillis};

pub(crate) use Role::{Invited as B, Inviter as A};

/// The time at which every test begins.
pub(crate) const START: UnixMillis = UnixMillis::new(1_767_322_800_000);

pub(crate) const BUYER: &str = "agent://a.example/buyer";
pub(crate) const SELLER: &str = "agent://b.example/seller";

#[derive(Clone)]
pub(crate) struct SessionHarness {
    pub(crate) session: AspSession,
    pub(crate) now: UnixMillis,
    /// All effects so far.
    pub(crate) effects: Vec<Effect>,
}

impl SessionHarness {
    pub(crate) fn new() -> Self {
        Self::with(
            [ConformanceLevel::Standard; 2],
            AnyStateInterpretation::EveryLiveState,
            &AspLimits::default(),
        )
    }

    pub(crate) fn with(
        [inviter, invited]: [ConformanceLevel; 2],
        any_state: AnyStateInterpretation,
        limits: &AspLimits,
    ) -> Self {
        let party = |agent, level| Party { agent: AgentUri::parse(agent).unwrap(), level };
        let rules = SessionRules { any_state, ..SessionRules::default() };
        let session = AspSession::new(party(BUYER, inviter), party(SELLER, invited), rules, limits);
        Self { session, now: START, effects: Vec::new() }
    }

    pub(crate) fn invited() -> Self {
        Self::new().after(&[(A, invitation("{}", None))])
    }

    /// Returns a session whose invitation was accepted.
    pub(crate) fn identifying() -> Self {
        Self::invited().after(&[(B, accept("prop_inv"))])
    }

    pub(crate) fn introduced() -> Self {
        Self::identifying().after(&[(A, inform("identity")), (B, inform("identity"))])
    }

    pub(crate) fn conversing() -> Self {
        Self::introduced().after(&[(A, query())])
    }

    /// Returns a session in which the buyer has sent a COMMIT with one obligation for each side.
    pub(crate) fn agreeing() -> Self {
        Self::conversing().after(&[(A, commit("cmt_1", &[(SELLER, 1000), (BUYER, 2000)], Some("10.50")))])
    }

    pub(crate) fn executing() -> Self {
        Self::agreeing().after(&[(B, accept("cmt_1"))])
    }

    pub(crate) fn escalated() -> Self {
        Self::conversing().after(&[(A, escalate(None))])
    }

    /// Sends messages that must all be accepted. Returns the session after them.
    pub(crate) fn after(mut self, messages: &[(Role, Body)]) -> Self {
        for (sender, body) in messages {
            self.send(*sender, body.clone());
        }
        self
    }

    pub(crate) fn state(&self) -> State {
        self.session.state()
    }

    pub(crate) fn outcome(&self) -> &SessionOutcome {
        self.session.outcome().unwrap_or_else(|| panic!("still {}", self.state()))
    }

    /// Sends a message that must be accepted.
    pub(crate) fn send(&mut self, sender: Role, body: Body) -> Transition {
        self.send_with_timeout(sender, body, None)
    }

    /// Sends a message that must be accepted, with an optional response time in milliseconds.
    pub(crate) fn send_with_timeout(
        &mut self,
        sender: Role,
        body: Body,
        response_timeout_ms: impl Into<Option<i64>>,
    ) -> Transition {
        let incoming = self.incoming(sender, &body, response_timeout_ms.into(), ReceiverChecks::PASSED);
        let transition = self.session.handle_message(&incoming).unwrap_or_else(|refusal| {
            panic!("{sender} in {}: {body:?} was refused: {refusal}", self.session.state())
        });
        assert_eq!(transition.to, self.state());
        self.effects.extend(transition.effects.iter().cloned());
        transition
    }

    /// Sends a message that must be refused, and asserts that nothing has changed. Returns the code of the refusal.
    pub(crate) fn expect_refusal(&mut self, sender: Role, body: Body) -> RejectCode {
        self.expect_refusal_with(sender, body, ReceiverChecks::PASSED)
    }

    pub(crate) fn expect_refusal_with(
        &mut self,
        sender: Role,
        body: Body,
        checks: ReceiverChecks,
    ) -> RejectCode {
        let before = self.session.clone();
        let incoming = self.incoming(sender, &body, Some(1), checks);
        let refusal = match self.session.handle_message(&incoming) {
            Ok(transition) => panic!("{sender}: {body:?} was accepted: {transition:?}"),
            Err(refusal) => refusal,
        };
        assert_eq!(self.session, before, "{refusal}");
        refusal.code
    }

    /// Advances the clock, then handles timeouts.
    pub(crate) fn wait(&mut self, seconds: i64) -> Vec<Transition> {
        self.now += seconds * 1000;
        self.expire_timers()
    }

    pub(crate) fn expire_timers(&mut self) -> Vec<Transition> {
        let transitions = self.session.handle_timeout(self.now);
        for transition in &transitions {
            self.effects.extend(transition.effects.iter().cloned());
        }
        transitions
    }

    /// Advances the clock by this many seconds. Asserts that no timer has expired one millisecond before that time.
    pub(crate) fn wait_exactly(&mut self, seconds: i64) -> Vec<Transition> {
        let before = self.session.clone();
        assert_eq!(self.session.handle_timeout(self.now + seconds * 1000 - 1), [], "too early");
        assert_eq!(self.session, before, "an early timeout call changes nothing");
        self.wait(seconds)
    }

    /// Returns the effects on escrow, in short form.
    pub(crate) fn escrow_effects(&self) -> Vec<String> {
        let descriptions = self.effects.iter().filter_map(|effect| match effect {
            Effect::ActivateEscrow { commitment, depositor, amount, currency } => {
                Some(format!("{depositor} pays in {amount} {currency} for {commitment}"))
            }
            Effect::ReleaseEscrow { commitment, to } => Some(format!("{commitment} to the {to:?}")),
            _ => None,
        });
        descriptions.collect()
    }

    pub(crate) fn incoming<'m>(
        &self,
        sender: Role,
        body: &'m Body,
        response_timeout_ms: Option<i64>,
        checks: ReceiverChecks,
    ) -> IncomingMessage<'m> {
        let message_id = message_id_of(sender);
        IncomingMessage {
            message_id,
            sender,
            body,
            sent_at: self.now,
            response_timeout_ms,
            constraints: None,
            tokens_used: None,
            checks,
        }
    }
}

/// The id of every message from one side. The session uses ids only to tell which result a message names.
fn message_id_of(sender: Role) -> MessageId {
    MessageId::parse(&format!("01890a5d-ac96-774b-bcce-b302099a805{}", sender as usize)).unwrap()
}

/// An INFORM of this kind about the result of `sender`.
pub(crate) fn inform_about_result_of(sender: Role, kind: &str) -> Body {
    body(
        Performative::Inform,
        &format!(r#"{{"informType":"{kind}","inReplyTo":"{}"}}"#, message_id_of(sender)),
    )
}

pub(crate) fn invitation(terms: &str, valid_until: Option<UnixMillis>) -> Body {
    propose("prop_inv", "session-invitation", terms, valid_until)
}

pub(crate) fn offer(id: &str) -> Body {
    propose(id, "service-agreement", "{}", None)
}

pub(crate) fn propose(id: &str, kind: &str, terms: &str, valid_until: Option<UnixMillis>) -> Body {
    let valid_until_member = valid_until
        .map(|valid_until| format!(r#","validUntil":"{}""#, time(valid_until)))
        .unwrap_or_default();
    let json = format!(
        r#"{{"proposalId":"{id}","type":"{kind}","subject":"tea","terms":{terms}{valid_until_member}}}"#
    );
    body(Performative::Propose, &json)
}

pub(crate) fn accept(reference: &str) -> Body {
    body(Performative::Accept, &format!(r#"{{"referenceId":"{reference}"}}"#))
}

pub(crate) fn reject(reference: &str) -> Body {
    let json = format!(r#"{{"code":"policy_violation","reason":"no","referenceId":"{reference}"}}"#);
    body(Performative::Reject, &json)
}

pub(crate) fn counter(id: &str, counters: &str) -> Body {
    let json = format!(r#"{{"proposalId":"{id}","counters":"{counters}","subject":"tea","terms":{{}}}}"#);
    body(Performative::Counter, &json)
}

pub(crate) fn inform(kind: &str) -> Body {
    body(Performative::Inform, &format!(r#"{{"informType":"{kind}"}}"#))
}

pub(crate) fn fatal() -> Body {
    body(Performative::Inform, r#"{"informType":"error","recoverable":false}"#)
}

pub(crate) fn query() -> Body {
    body(Performative::Query, r#"{"queryId":"qry_1","queryType":"capability","subject":"tea"}"#)
}

pub(crate) fn clarify() -> Body {
    body(Performative::Clarify, r#"{"inReplyTo":"cmt_1","question":"green or black?"}"#)
}

/// Creates a COMMIT. Each obligation is a party and a deadline in seconds after [`START`].
pub(crate) fn commit(id: &str, obligations: &[(&str, i64)], escrow_dollars: Option<&str>) -> Body {
    let obligations: Vec<_> = obligations
        .iter()
        .map(|(party, deadline_seconds)| {
            let deadline = time(START + deadline_seconds * 1000);
            format!(r#"{{"party":"{party}","action":"act","deadline":"{deadline}"}}"#)
        })
        .collect();
    let escrow = escrow_dollars
        .map(|amount| format!(r#","escrow":{{"amount":"{amount}","currency":"USD"}}"#))
        .unwrap_or_default();
    let terms = obligations.join(",");
    let json = format!(r#"{{"commitmentId":"{id}","terms":{{"obligations":[{terms}]}}{escrow}}}"#);
    body(Performative::Commit, &json)
}

pub(crate) fn delegate() -> Body {
    let json =
        r#"{"delegationId":"del_1","targetAgent":"agent://c.example","scope":"tea","authority":"advisory"}"#;
    body(Performative::Delegate, json)
}

pub(crate) fn observe() -> Body {
    body(Performative::Observe, r#"{"subject":"tea"}"#)
}

pub(crate) fn withdraw() -> Body {
    body(Performative::Withdraw, r#"{"reason":"changed my mind"}"#)
}

pub(crate) fn escalate(timeout_seconds: Option<u32>) -> Body {
    let timeout = timeout_seconds.map(|seconds| format!(r#","timeout":{seconds}"#)).unwrap_or_default();
    body(Performative::Escalate, &format!(r#"{{"reason":"too expensive","urgency":"high"{timeout}}}"#))
}

pub(crate) fn close(reason: &str) -> Body {
    body(Performative::Close, &format!(r#"{{"reason":"{reason}"}}"#))
}

fn body(performative: Performative, json: &str) -> Body {
    Body::parse(performative, json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn time(at: UnixMillis) -> String {
    Timestamp::from_unix_millis(at).unwrap().to_string()
}
