//! The thirteen message bodies (section "Bodies" of `docs/asp.md`).

use seal::Timestamp;
use seal::json::{JsonKind, JsonValue, JsonWriter, RawJson};

use super::codec::{JsonCodec, MalformedMessage, json_record};
use crate::Performative;
use crate::amount::Amount;
use crate::id::{AgentUri, CommitmentId, Currency, ProposalId, QueryId, Reference};

json_record! {
    /// PROPOSE: an offer.
    Propose {
        /// Its id.
        "proposalId" proposal_id: ProposalId,
        /// Its type; `session-invitation` opens a session.
        "type" kind: String,
        /// Its subject.
        "subject" subject: String,
        /// Its terms, whose form depends on the type.
        "terms" terms: RawJson;
        /// The time from which it can no longer be accepted.
        "validUntil" valid_until: Timestamp,
    }

    /// ACCEPT: accepts an invitation, a proposal or a commitment.
    Accept {
        /// The accepted item.
        "referenceId" reference: Reference;
        /// A remark.
        "note" note: String,
        /// A person's consent, if the accepted item is a commitment (D24).
        "consent" consent: Box<Consent>,
    }

    /// REJECT: refuses an invitation, a proposal, a commitment or a message.
    Reject {
        /// The machine-readable code.
        "code" code: String,
        /// The reason, for people.
        "reason" reason: String;
        /// The rejected item.
        "referenceId" reference: Reference,
    }

    /// COUNTER: refuses an offer and makes another one in its place.
    Counter {
        /// The id of the new offer.
        "proposalId" proposal_id: ProposalId,
        /// The proposal or commitment that it answers.
        "counters" counters: Reference,
        /// Its subject.
        "subject" subject: String,
        /// Its terms.
        "terms" terms: RawJson;
        /// The time from which it can no longer be accepted.
        "validUntil" valid_until: Timestamp,
    }

    /// INFORM: reports something.
    Inform {
        /// Its type.
        "informType" kind: InformType;
        /// The item that the INFORM answers.
        "inReplyTo" in_reply_to: Reference,
        /// The reported data.
        "data" data: RawJson,
        /// Whether an error is recoverable; `false` ends the session (D7).
        "recoverable" recoverable: bool,
        /// The progress, from 0 to 100.
        "percent" percent: Percent,
        /// The sender's card, for `identity`.
        "card" card: RawJson,
        /// The third party that decided, for `resolution`.
        "resolvedBy" resolved_by: String,
    }

    /// QUERY: asks for information.
    Query {
        /// Its id.
        "queryId" query_id: QueryId,
        /// Its type.
        "queryType" kind: String,
        /// Its subject.
        "subject" subject: String;
        /// Parameters that narrow the question.
        "parameters" parameters: RawJson,
    }

    /// CLARIFY: asks what something means, or answers such a question (D11).
    Clarify {
        /// The item that the question or answer refers to.
        "inReplyTo" in_reply_to: Reference;
        /// The question.
        "question" question: String,
        /// The answer.
        "answer" answer: String,
    }

    /// COMMIT: makes a commitment, which binds once the other side accepts it.
    Commit {
        /// Its id.
        "commitmentId" commitment_id: CommitmentId,
        /// Its obligations and penalties.
        "terms" terms: CommitTerms;
        /// When all obligations must be fulfilled.
        "deadline" deadline: Timestamp,
        /// Money that is held until the commitment is fulfilled.
        "escrow" escrow: Escrow,
        /// The proposal that it follows from.
        "proposalId" proposal_id: ProposalId,
        /// A person's consent (D24).
        "consent" consent: Box<Consent>,
    }

    /// Proof that a person agreed to a COMMIT, or to the ACCEPT of one (D24). [`crate::consent`] verifies it.
    Consent {
        /// The receipt of the person's answer, from the hub that asked.
        "receipt" receipt: RawJson,
        /// The hub's signature: a detached JWS over the receipt's canonical form.
        "signature" signature: String;
    }

    /// The terms of a COMMIT.
    CommitTerms {
        /// The obligations; at least one.
        "obligations" obligations: Vec<Obligation>;
        /// The penalties for a broken commitment, as text.
        "penalties" penalties: Penalties,
    }

    /// One obligation of one party.
    Obligation {
        /// The party.
        "party" party: AgentUri,
        /// What it must do.
        "action" action: String,
        /// The deadline.
        "deadline" deadline: Timestamp;
        /// How fulfilment is verified.
        "verificationMethod" verification_method: String,
    }

    /// The penalties for a broken commitment, as text.
    Penalties {
        ;
        /// The penalty for late fulfilment.
        "lateFulfillment" late_fulfillment: String,
        /// The penalty if an obligation is not fulfilled.
        "nonDelivery" non_delivery: String,
    }

    /// Money that is held until the commitment is fulfilled.
    Escrow {
        /// The amount.
        "amount" amount: Amount,
        /// Its currency.
        "currency" currency: Currency;
        /// The condition for paying it out.
        "releaseCondition" release_condition: String,
    }

    /// DELEGATE: delegates part of the task to another agent.
    Delegate {
        /// Its id.
        "delegationId" delegation_id: Reference,
        /// The agent that the task is delegated to.
        "targetAgent" target: AgentUri,
        /// What is delegated.
        "scope" scope: String,
        /// How much authority the target agent has.
        "authority" authority: Authority;
        /// The protocol to use.
        "protocol" protocol: String,
        /// When the delegation expires.
        "expires" expires: Timestamp,
    }

    /// ESCALATE: asks a person or another authority to decide.
    Escalate {
        /// The reason.
        "reason" reason: String,
        /// Its urgency.
        "urgency" urgency: Urgency;
        /// How long to wait for a resolution, in seconds.
        "timeout" timeout: DurationSeconds,
        /// The person or authority that is asked to decide.
        "handler" handler: String,
    }

    /// WITHDRAW: withdraws the sender from the session.
    Withdraw {
        /// The reason.
        "reason" reason: String;
        /// The item that the sender withdraws from.
        "referenceId" reference: Reference,
    }

    /// OBSERVE: makes a remark.
    Observe {
        /// Its subject.
        "subject" subject: String;
        /// The observation.
        "data" data: RawJson,
    }

    /// CLOSE: ends the session, or asks to end it (D4).
    Close {
        /// The reason. With `unilateral`, the session ends without waiting for the other side.
        "reason" reason: String;
        /// The outcome.
        "outcome" outcome: String,
        /// A summary in one sentence.
        "summary" summary: String,
    }
}

seal::string_enum! {
    /// The type of an INFORM.
    InformType {
        /// The sender's identity.
        Identity "identity",
        /// Progress of the work.
        Progress "progress",
        /// The result: the work is done.
        Result "result",
        /// An error.
        Error "error",
        /// The resolution of an escalation.
        Resolution "resolution",
        /// The answer to a QUERY.
        Answer "answer",
    }

    /// The authority of a delegate.
    Authority {
        /// The delegate may only advise.
        Advisory "advisory",
        /// The delegate may decide within limits.
        Limited "limited",
        /// The delegate may decide.
        Full "full",
    }

    /// The urgency of an escalation.
    Urgency {
        /// The decision can wait.
        Low "low",
        /// The decision is needed soon.
        Medium "medium",
        /// The decision is needed now.
        High "high",
        /// The decision comes before everything else.
        Critical "critical",
    }
}

/// A whole percentage from 0 to 100. Fractions in JSON are cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u8);

impl Percent {
    /// Creates a percentage. Returns `None` if the value is above 100.
    pub fn new(value: u8) -> Option<Self> {
        (value <= 100).then_some(Self(value))
    }

    /// Returns the number.
    pub fn get(self) -> u8 {
        self.0
    }
}

impl JsonCodec for Percent {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let number =
            value.as_number().map(|number| number.as_f64()).filter(|number| (0.0..=100.0).contains(number));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
        number
            .map(|number| Self(number as u8))
            .ok_or_else(|| MalformedMessage::expected("a number from 0 to 100"))
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.integer(i64::from(self.0));
    }
}

/// A duration in whole seconds, from 1 second to 366 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DurationSeconds(u32);

impl DurationSeconds {
    /// The maximum: 366 days, in seconds.
    pub const MAX: u32 = 366 * 86_400;

    /// Creates a duration. Returns `None` unless it is from 1 to [`Self::MAX`].
    pub fn new(seconds: u32) -> Option<Self> {
        (1..=Self::MAX).contains(&seconds).then_some(Self(seconds))
    }

    /// Returns the duration in milliseconds.
    pub fn millis(self) -> i64 {
        i64::from(self.0) * 1000
    }
}

impl JsonCodec for DurationSeconds {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let number = value.as_number().and_then(|number| number.as_i64()).and_then(|n| u32::try_from(n).ok());
        number.and_then(Self::new).ok_or_else(|| {
            MalformedMessage::expected(format!("a whole number of seconds from 1 to {}", Self::MAX))
        })
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.integer(i64::from(self.0));
    }
}

impl Propose {
    /// The type of a proposal that opens a session.
    pub const INVITATION_TYPE: &'static str = "session-invitation";

    /// Returns whether the proposal opens a session.
    pub fn is_invitation(&self) -> bool {
        self.kind == Self::INVITATION_TYPE
    }

    /// Returns the proposed duration of the session in milliseconds: `terms.proposed_duration` in seconds, or
    /// `terms.proposedDuration` in milliseconds (D9).
    pub fn session_duration_ms(&self) -> Result<Option<i64>, MalformedMessage> {
        let mut tape = seal::json::Tape::default();
        let Ok(doc) = tape.read(self.terms.as_str()) else { return Ok(None) };
        let max_seconds = i64::from(DurationSeconds::MAX);
        for (name, millis_per_unit) in [("proposed_duration", 1000), ("proposedDuration", 1)] {
            let Some(member) = doc.root().member(name) else { continue };
            let number = member.as_number().and_then(|number| number.as_i64());
            let millis = number.and_then(|number| number.checked_mul(millis_per_unit));
            return match millis.filter(|millis| (1..=max_seconds * 1000).contains(millis)) {
                Some(millis) => Ok(Some(millis)),
                None => Err(MalformedMessage::expected(format!(
                    "a positive duration of at most {max_seconds} seconds"
                ))
                .within(name)
                .within("terms")),
            };
        }
        Ok(None)
    }
}

impl Inform {
    /// Returns whether this is an unrecoverable error (D7).
    pub fn is_fatal(&self) -> bool {
        self.kind == InformType::Error && self.recoverable == Some(false)
    }
}

impl Close {
    /// The reason of a CLOSE that does not wait for the other side (D4).
    pub const UNILATERAL_REASON: &'static str = "unilateral";
}

macro_rules! bodies {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The body of a message.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each variant is named after its performative")]
        #[allow(clippy::large_enum_variant, reason = "bodies are short-lived, and a COMMIT is not rare")]
        pub enum Body {
            $($name($name),)*
        }

        impl Body {
            /// Returns the performative.
            pub fn performative(&self) -> Performative {
                match self { $(Self::$name(_) => Performative::$name,)* }
            }

            pub(crate) fn read(performative: Performative, value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
                let body = match performative {
                    $(Performative::$name => Self::$name($name::read(value)?),)*
                };
                body.validate()?;
                Ok(body)
            }

            pub(crate) fn write(&self, writer: &mut JsonWriter) {
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
    /// Checks conditions that involve several members.
    pub(crate) fn validate(&self) -> Result<(), MalformedMessage> {
        match self {
            Self::Propose(body) if body.is_invitation() => body.session_duration_ms().map(|_| ()),
            Self::Clarify(body) if body.question.is_some() == body.answer.is_some() => {
                Err(MalformedMessage::expected("present if answer is absent, and absent otherwise")
                    .within("question"))
            }
            Self::Commit(body) if body.terms.obligations.is_empty() => {
                Err(MalformedMessage::expected("an array of at least one obligation")
                    .within("obligations")
                    .within("terms"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the body as JSON.
    pub fn to_json(&self) -> String {
        let mut writer = JsonWriter::default();
        self.write(&mut writer);
        writer.finish()
    }

    /// Parses a body of this performative.
    pub fn parse(performative: Performative, json: &str) -> Result<Self, MalformedMessage> {
        let mut tape = seal::json::Tape::default();
        let doc = tape.read(json).map_err(|error| MalformedMessage::expected(format!("JSON: {error}")))?;
        if doc.root().kind() != JsonKind::Object {
            return Err(MalformedMessage::expected("an object"));
        }
        Self::read(performative, &doc.root())
    }
}
