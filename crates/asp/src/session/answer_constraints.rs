//! Constraints of a message on its answer (D23).

use super::IncomingMessage;
use crate::Performative;
use crate::error::{Refusal, RejectCode};
use crate::message::TrustScore;
use crate::state_machine::Role;

/// The constraints that the next message from the other side must meet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AnswerConstraints {
    set_by: Role,
    allowed_performatives: Option<Vec<Performative>>,
    required_trust_score: Option<TrustScore>,
    max_token_budget: Option<u64>,
}

/// A text is estimated to have one token per this many bytes.
const BYTES_PER_TOKEN: usize = 4;

impl AnswerConstraints {
    /// Returns the constraints of a message on its answer, if it has any.
    fn of(message: &IncomingMessage<'_>) -> Option<Self> {
        let constraints = message.constraints?;
        let constraints = Self {
            set_by: message.sender,
            allowed_performatives: constraints.allowed_performatives.clone(),
            required_trust_score: constraints.required_trust_score,
            max_token_budget: constraints.max_token_budget,
        };
        let is_constrained = constraints.allowed_performatives.is_some()
            || constraints.required_trust_score.is_some()
            || constraints.max_token_budget.is_some();
        is_constrained.then_some(constraints)
    }

    /// Returns the constraints after a message was accepted. A message from the other side is the answer, so it ends the
    /// constraints. New constraints replace old ones.
    pub(super) fn after(pending: Option<Self>, message: &IncomingMessage<'_>) -> Option<Self> {
        Self::of(message).or_else(|| pending.filter(|pending| pending.set_by == message.sender))
    }

    /// Checks whether a message may be sent now. A side may always escalate and leave.
    pub(super) fn check(&self, message: &IncomingMessage<'_>) -> Result<(), Refusal> {
        use Performative::{Close, Escalate, Withdraw};
        let performative = message.body.performative();
        if message.sender == self.set_by || matches!(performative, Escalate | Withdraw | Close) {
            return Ok(());
        }
        if let Some(allowed) = &self.allowed_performatives
            && !allowed.contains(&performative)
        {
            let names: Vec<_> = allowed.iter().map(|performative| performative.as_str()).collect();
            let reason =
                format!("{performative} does not answer the last message; allowed: {}", names.join(", "));
            return Err(Refusal::new(RejectCode::PolicyViolation, reason));
        }
        if let Some(required) = self.required_trust_score
            && message.checks.trust_score.is_none_or(|score| score.get() < required.get())
        {
            let reason = format!("the last message requires a trust score of {}", required.get());
            return Err(Refusal::new(RejectCode::InsufficientTrustScore, reason));
        }
        if let Some(budget) = self.max_token_budget {
            let tokens = token_count(message);
            if tokens > budget {
                let reason = format!("the answer used {tokens} tokens; the last message allows {budget}");
                return Err(Refusal::new(RejectCode::BudgetExceeded, reason));
            }
        }
        Ok(())
    }
}

/// Returns how many tokens a message used: what its sender states, but at least what its body needs.
fn token_count(message: &IncomingMessage<'_>) -> u64 {
    let estimate = message.body.to_json().len().div_ceil(BYTES_PER_TOKEN);
    let estimate = u64::try_from(estimate).unwrap_or(u64::MAX);
    message.tokens_used.unwrap_or(0).max(estimate)
}
