//! The thirteen bodies (decisions, "Bodies we complete").

use seal::Timestamp;
use seal::json::{Kind, Raw, Value, Writer};

use super::part::{Malformed, Part, part};
use crate::Performative;
use crate::amount::Amount;
use crate::id::{AgentUri, CommitmentId, Currency, ProposalId, QueryId, Reference};

part! {
    /// PROPOSE: an offer.
    Propose {
        /// Its name.
        "proposalId" proposal_id: ProposalId,
        /// What kind of offer; `session-invitation` opens a session.
        "type" kind: String,
        /// What it is about.
        "subject" subject: String,
        /// Its terms, free by kind.
        "terms" terms: Raw;
        /// From then on it cannot be accepted.
        "validUntil" valid_until: Timestamp,
    }

    /// ACCEPT: yes to an invitation, a proposal or a commitment.
    Accept {
        /// What is accepted.
        "referenceId" reference: Reference;
        /// A remark.
        "note" note: String,
    }

    /// REJECT: no.
    Reject {
        /// Why, for machines.
        "code" code: String,
        /// Why, for people.
        "reason" reason: String;
        /// What is rejected.
        "referenceId" reference: Reference,
    }

    /// COUNTER: no, and another offer in its place.
    Counter {
        /// The name of the new offer.
        "proposalId" proposal_id: ProposalId,
        /// The proposal or commitment that it answers.
        "counters" counters: Reference,
        /// What it is about.
        "subject" subject: String,
        /// Its terms.
        "terms" terms: Raw;
        /// From then on it cannot be accepted.
        "validUntil" valid_until: Timestamp,
    }

    /// INFORM: tells.
    Inform {
        /// What kind of telling.
        "informType" kind: InformType;
        /// What it answers.
        "inReplyTo" in_reply_to: Reference,
        /// What is told.
        "data" data: Raw,
        /// Whether an error can be recovered from; `false` ends the session (D7).
        "recoverable" recoverable: bool,
        /// How far a progress is, 0 to 100.
        "percent" percent: Percent,
        /// The sender's card (identity).
        "card" card: Raw,
        /// Who outside of the session decided (resolution).
        "resolvedBy" resolved_by: String,
    }

    /// QUERY: asks for information.
    Query {
        /// Its name.
        "queryId" query_id: QueryId,
        /// What kind of question.
        "queryType" kind: String,
        /// What it is about.
        "subject" subject: String;
        /// What narrows it.
        "parameters" parameters: Raw,
    }

    /// CLARIFY: asks what something means, or says it (D11).
    Clarify {
        /// What it is about.
        "inReplyTo" in_reply_to: Reference;
        /// The question.
        "question" question: String,
        /// The answer.
        "answer" answer: String,
    }

    /// COMMIT: binds, if the other side accepts.
    Commit {
        /// Its name.
        "commitmentId" commitment_id: CommitmentId,
        /// Who has to do what.
        "terms" terms: CommitTerms;
        /// When all must be done.
        "deadline" deadline: Timestamp,
        /// Money held until then.
        "escrow" escrow: Escrow,
        /// The proposal that it follows from.
        "proposalId" proposal_id: ProposalId,
    }

    /// The terms of a COMMIT.
    CommitTerms {
        /// Who has to do what by when; at least one.
        "obligations" obligations: Vec<Obligation>;
        /// What a broken promise costs, in words.
        "penalties" penalties: Penalties,
    }

    /// One thing that one side has to do.
    Obligation {
        /// Who.
        "party" party: AgentUri,
        /// What.
        "action" action: String,
        /// By when.
        "deadline" deadline: Timestamp;
        /// How it can be seen.
        "verificationMethod" verification_method: String,
    }

    /// What a broken promise costs, in words.
    Penalties {
        ;
        /// For doing it late.
        "lateFulfillment" late_fulfillment: String,
        /// For not doing it.
        "nonDelivery" non_delivery: String,
    }

    /// Money that is held until the promise is kept.
    Escrow {
        /// How much.
        "amount" amount: Amount,
        /// Of which currency.
        "currency" currency: Currency;
        /// When it is given out.
        "releaseCondition" release_condition: String,
    }

    /// DELEGATE: hands a part to another agent.
    Delegate {
        /// Its name.
        "delegationId" delegation_id: Reference,
        /// Who is to do it.
        "targetAgent" target: AgentUri,
        /// What.
        "scope" scope: String,
        /// With how much authority.
        "authority" authority: Authority;
        /// By which protocol.
        "protocol" protocol: String,
        /// Until when.
        "expires" expires: Timestamp,
    }

    /// ESCALATE: asks a person or another authority.
    Escalate {
        /// Why.
        "reason" reason: String,
        /// How urgent.
        "urgency" urgency: Urgency;
        /// How many seconds to wait for a resolution.
        "timeout" timeout: Seconds,
        /// Who is to decide.
        "handler" handler: String,
    }

    /// WITHDRAW: takes its sender out.
    Withdraw {
        /// Why.
        "reason" reason: String;
        /// What is taken back.
        "referenceId" reference: Reference,
    }

    /// OBSERVE: remarks.
    Observe {
        /// On what.
        "subject" subject: String;
        /// What was seen.
        "data" data: Raw,
    }

    /// CLOSE: ends the session, or wishes to (D4).
    Close {
        /// Why; `unilateral` does not wait for the other side.
        "reason" reason: String;
        /// What came of it.
        "outcome" outcome: String,
        /// The whole in a sentence.
        "summary" summary: String,
    }
}

seal::word_enum! {
    /// What kind of INFORM.
    InformType word {
        /// Who the sender is.
        Identity "identity",
        /// How far the work is.
        Progress "progress",
        /// That the work is done.
        Result "result",
        /// That something went wrong.
        Error "error",
        /// How an escalation was decided.
        Resolution "resolution",
        /// The answer to a QUERY.
        Answer "answer",
    }

    /// How much a delegate may decide.
    Authority word {
        /// It advises.
        Advisory "advisory",
        /// It decides within limits.
        Limited "limited",
        /// It decides.
        Full "full",
    }

    /// How urgent an escalation is.
    Urgency word {
        /// It can wait.
        Low "low",
        /// Soon.
        Medium "medium",
        /// Now.
        High "high",
        /// Before all else.
        Critical "critical",
    }
}

/// A share of a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u8);

impl Percent {
    /// Takes 0 to 100.
    pub fn new(value: u8) -> Option<Self> {
        (value <= 100).then_some(Self(value))
    }

    /// The number.
    pub fn get(self) -> u8 {
        self.0
    }
}

impl Part for Percent {
    fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        let number =
            value.number().map(|number| number.as_f64()).filter(|number| (0.0..=100.0).contains(number));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
        number.map(|number| Self(number as u8)).ok_or_else(|| Malformed::new("a number from 0 to 100"))
    }

    fn write(&self, writer: &mut Writer) {
        writer.integer(i64::from(self.0));
    }
}

/// A time span in whole seconds: at least one, at most a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds(u32);

impl Seconds {
    /// The longest: 366 days.
    pub const LONGEST: u32 = 366 * 86_400;

    /// Takes 1 to [`Self::LONGEST`].
    pub fn new(seconds: u32) -> Option<Self> {
        (1..=Self::LONGEST).contains(&seconds).then_some(Self(seconds))
    }

    /// In milliseconds.
    pub fn millis(self) -> i64 {
        i64::from(self.0) * 1000
    }
}

impl Part for Seconds {
    fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        let number = value.number().and_then(|number| number.as_i64()).and_then(|n| u32::try_from(n).ok());
        number
            .and_then(Self::new)
            .ok_or_else(|| Malformed::new(format!("whole seconds, 1 to {}", Self::LONGEST)))
    }

    fn write(&self, writer: &mut Writer) {
        writer.integer(i64::from(self.0));
    }
}

impl Propose {
    /// The type of a proposal that opens a session.
    pub const INVITATION: &'static str = "session-invitation";

    /// Whether it opens a session.
    pub fn is_invitation(&self) -> bool {
        self.kind == Self::INVITATION
    }

    /// How long the session is to last, in milliseconds: `terms.proposed_duration` in seconds, or
    /// `terms.proposedDuration` in milliseconds (D9).
    pub fn duration(&self) -> Result<Option<i64>, Malformed> {
        let mut tape = seal::json::Tape::default();
        let Ok(doc) = tape.read(self.terms.as_str()) else { return Ok(None) };
        let longest = i64::from(Seconds::LONGEST);
        for (name, unit) in [("proposed_duration", 1000), ("proposedDuration", 1)] {
            let Some(member) = doc.root().member(name) else { continue };
            let number = member.number().and_then(|number| number.as_i64());
            let millis = number.and_then(|number| number.checked_mul(unit));
            return match millis.filter(|millis| (1..=longest * 1000).contains(millis)) {
                Some(millis) => Ok(Some(millis)),
                None => Err(Malformed::new(format!("a duration of at most {longest} seconds"))
                    .under(name)
                    .under("terms")),
            };
        }
        Ok(None)
    }
}

impl Inform {
    /// An error that cannot be recovered from (D7).
    pub fn is_fatal(&self) -> bool {
        self.kind == InformType::Error && self.recoverable == Some(false)
    }
}

impl Close {
    /// The reason of a CLOSE that does not wait for the other side (D4).
    pub const UNILATERAL: &'static str = "unilateral";
}

macro_rules! bodies {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a message says.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each is the performative of its name")]
        pub enum Body {
            $($name($name),)*
        }

        impl Body {
            /// What the message does.
            pub fn performative(&self) -> Performative {
                match self { $(Self::$name(_) => Performative::$name,)* }
            }

            pub(crate) fn read(performative: Performative, value: &Value<'_>) -> Result<Self, Malformed> {
                let body = match performative {
                    $(Performative::$name => Self::$name($name::read(value)?),)*
                };
                body.check()?;
                Ok(body)
            }

            pub(crate) fn write(&self, writer: &mut Writer) {
                match self { $(Self::$name(body) => body.write(writer),)* }
            }
        }

        $(impl From<$name> for Body {
            fn from(body: $name) -> Self {
                Self::$name(body)
            }
        })*
    };
}

bodies! {
    Propose, Accept, Reject, Counter, Inform, Query, Clarify, Commit, Delegate, Observe, Withdraw, Escalate, Close,
}

impl Body {
    /// What one member means for another.
    pub(crate) fn check(&self) -> Result<(), Malformed> {
        match self {
            Self::Propose(body) if body.is_invitation() => body.duration().map(|_| ()),
            Self::Clarify(body) if body.question.is_some() == body.answer.is_some() => {
                Err(Malformed::new("there, or else answer, and not both").under("question"))
            }
            Self::Commit(body) if body.terms.obligations.is_empty() => {
                Err(Malformed::new("an array of at least one obligation").under("obligations").under("terms"))
            }
            _ => Ok(()),
        }
    }

    /// The body as JSON.
    pub fn to_json(&self) -> String {
        let mut writer = Writer::default();
        self.write(&mut writer);
        writer.finish()
    }

    /// Reads a body of that performative.
    pub fn parse(performative: Performative, json: &str) -> Result<Self, Malformed> {
        let mut tape = seal::json::Tape::default();
        let doc = tape.read(json).map_err(|wrong| Malformed::new(format!("JSON: {wrong}")))?;
        if doc.root().kind() != Kind::Object {
            return Err(Malformed::new("an object"));
        }
        Self::read(performative, &doc.root())
    }
}
