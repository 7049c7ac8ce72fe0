//! A session with a clock in its hand, and the messages of two agents who negotiate.

use asp::machine::{Reading, Role, State};
use asp::message::Body;
use asp::session::{Effect, Incoming, Judgement, Outcome, Party, Rules, Session, Step};
use asp::{AgentUri, Code, Level, Limits, Performative};
use seal::{Timestamp, UnixMillis};

pub(crate) use Role::{Invited as B, Inviter as A};

/// When everything begins, in milliseconds since 1970.
pub(crate) const START: UnixMillis = UnixMillis::new(1_767_322_800_000);

pub(crate) const BUYER: &str = "agent://a.example/buyer";
pub(crate) const SELLER: &str = "agent://b.example/seller";

#[derive(Clone)]
pub(crate) struct Life {
    pub(crate) session: Session,
    pub(crate) now: UnixMillis,
    /// All that the caller was told to do, so far.
    pub(crate) effects: Vec<Effect>,
}

impl Life {
    pub(crate) fn new() -> Self {
        Self::with([Level::Standard; 2], Reading::Open, &Limits::default())
    }

    pub(crate) fn with([inviter, invited]: [Level; 2], reading: Reading, limits: &Limits) -> Self {
        let party = |agent, level| Party { agent: AgentUri::parse(agent).unwrap(), level };
        let rules = Rules { reading, ..Rules::default() };
        let session = Session::new(party(BUYER, inviter), party(SELLER, invited), rules, limits);
        Self { session, now: START, effects: Vec::new() }
    }

    pub(crate) fn invited() -> Self {
        Self::new().after(&[(A, invitation("{}", None))])
    }

    pub(crate) fn identifying() -> Self {
        Self::invited().after(&[(B, accept("prop_inv"))])
    }

    pub(crate) fn introduced() -> Self {
        Self::identifying().after(&[(A, inform("identity")), (B, inform("identity"))])
    }

    pub(crate) fn conversing() -> Self {
        Self::introduced().after(&[(A, query())])
    }

    /// The buyer commits: the seller is to deliver, the buyer to pay.
    pub(crate) fn agreeing() -> Self {
        Self::conversing().after(&[(A, commit("cmt_1", &[(SELLER, 1000), (BUYER, 2000)], Some("10.50")))])
    }

    pub(crate) fn executing() -> Self {
        Self::agreeing().after(&[(B, accept("cmt_1"))])
    }

    pub(crate) fn escalated() -> Self {
        Self::conversing().after(&[(A, escalate(None))])
    }

    pub(crate) fn after(mut self, messages: &[(Role, Body)]) -> Self {
        for (sender, body) in messages {
            self.say(*sender, body.clone());
        }
        self
    }

    pub(crate) fn state(&self) -> State {
        self.session.state()
    }

    pub(crate) fn outcome(&self) -> &Outcome {
        self.session.outcome().unwrap_or_else(|| panic!("still {}", self.state()))
    }

    /// Sends a lawful message.
    pub(crate) fn say(&mut self, sender: Role, body: Body) -> Step {
        self.say_within(sender, body, None)
    }

    /// Sends a lawful message that sets a time for its answer.
    pub(crate) fn say_within(
        &mut self,
        sender: Role,
        body: Body,
        answer_within: impl Into<Option<i64>>,
    ) -> Step {
        let incoming = self.incoming(sender, &body, answer_within.into(), Judgement::default());
        let step = self.session.feed(&incoming).unwrap_or_else(|refusal| {
            panic!("{sender} in {}: {body:?} was refused: {refusal}", self.session.state())
        });
        assert_eq!(step.to, self.state());
        self.effects.extend(step.effects.iter().cloned());
        step
    }

    /// Sends a message that is refused, and sees that nothing has changed.
    pub(crate) fn refused(&mut self, sender: Role, body: Body) -> Code {
        self.refused_by(sender, body, Judgement::default())
    }

    pub(crate) fn refused_by(&mut self, sender: Role, body: Body, judgement: Judgement) -> Code {
        let before = self.session.clone();
        let incoming = self.incoming(sender, &body, Some(1), judgement);
        let refusal = match self.session.feed(&incoming) {
            Ok(step) => panic!("{sender}: {body:?} was taken: {step:?}"),
            Err(refusal) => refusal,
        };
        assert_eq!(self.session, before, "{refusal}");
        refusal.code
    }

    /// Lets time pass, and wakes the session.
    pub(crate) fn wait(&mut self, seconds: i64) -> Vec<Step> {
        self.now += seconds * 1000;
        self.wake()
    }

    pub(crate) fn wake(&mut self) -> Vec<Step> {
        let steps = self.session.wake(self.now);
        for step in &steps {
            self.effects.extend(step.effects.iter().cloned());
        }
        steps
    }

    /// Lets time pass up to a millisecond before so many seconds, when nothing may happen yet, and then on to them.
    pub(crate) fn wait_exactly(&mut self, seconds: i64) -> Vec<Step> {
        let before = self.session.clone();
        assert_eq!(self.session.wake(self.now + seconds * 1000 - 1), [], "too early");
        assert_eq!(self.session, before, "a wake-up before its time changes nothing");
        self.wait(seconds)
    }

    /// What was told about money, in short.
    pub(crate) fn money(&self) -> Vec<String> {
        let told = self.effects.iter().filter_map(|effect| match effect {
            Effect::ActivateEscrow { commitment, depositor, amount, currency } => {
                Some(format!("{depositor} pays in {amount} {currency} for {commitment}"))
            }
            Effect::ReleaseEscrow { commitment, to } => Some(format!("{commitment} to the {to:?}")),
            _ => None,
        });
        told.collect()
    }

    pub(crate) fn incoming<'m>(
        &self,
        sender: Role,
        body: &'m Body,
        answer_within: Option<i64>,
        judgement: Judgement,
    ) -> Incoming<'m> {
        Incoming { sender, body, at: self.now, answer_within, judgement }
    }
}

pub(crate) fn invitation(terms: &str, valid_until: Option<UnixMillis>) -> Body {
    propose("prop_inv", "session-invitation", terms, valid_until)
}

pub(crate) fn offer(name: &str) -> Body {
    propose(name, "service-agreement", "{}", None)
}

pub(crate) fn propose(name: &str, kind: &str, terms: &str, valid_until: Option<UnixMillis>) -> Body {
    let until = valid_until.map(|until| format!(r#","validUntil":"{}""#, time(until))).unwrap_or_default();
    let json = format!(r#"{{"proposalId":"{name}","type":"{kind}","subject":"tea","terms":{terms}{until}}}"#);
    body(Performative::Propose, &json)
}

pub(crate) fn accept(reference: &str) -> Body {
    body(Performative::Accept, &format!(r#"{{"referenceId":"{reference}"}}"#))
}

pub(crate) fn reject(reference: &str) -> Body {
    let json = format!(r#"{{"code":"policy_violation","reason":"no","referenceId":"{reference}"}}"#);
    body(Performative::Reject, &json)
}

pub(crate) fn counter(name: &str, counters: &str) -> Body {
    let json = format!(r#"{{"proposalId":"{name}","counters":"{counters}","subject":"tea","terms":{{}}}}"#);
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

/// Who has to act by so many seconds after the start, and how many dollars are held until then.
pub(crate) fn commit(name: &str, obligations: &[(&str, i64)], dollars: Option<&str>) -> Body {
    let obligations: Vec<_> = obligations
        .iter()
        .map(|(party, by)| {
            let deadline = time(START + by * 1000);
            format!(r#"{{"party":"{party}","action":"act","deadline":"{deadline}"}}"#)
        })
        .collect();
    let escrow = dollars
        .map(|amount| format!(r#","escrow":{{"amount":"{amount}","currency":"USD"}}"#))
        .unwrap_or_default();
    let terms = obligations.join(",");
    let json = format!(r#"{{"commitmentId":"{name}","terms":{{"obligations":[{terms}]}}{escrow}}}"#);
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

pub(crate) fn escalate(seconds: Option<u32>) -> Body {
    let timeout = seconds.map(|seconds| format!(r#","timeout":{seconds}"#)).unwrap_or_default();
    body(Performative::Escalate, &format!(r#"{{"reason":"too dear","urgency":"high"{timeout}}}"#))
}

pub(crate) fn close(reason: &str) -> Body {
    body(Performative::Close, &format!(r#"{{"reason":"{reason}"}}"#))
}

fn body(performative: Performative, json: &str) -> Body {
    Body::parse(performative, json).unwrap_or_else(|wrong| panic!("{json}: {wrong}"))
}

fn time(at: UnixMillis) -> String {
    Timestamp::from_unix_millis(at).unwrap().to_string()
}
