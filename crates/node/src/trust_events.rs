//! The trust events about a peer that follow from what it did in its sessions.

use asp::escrow::{LedgerEntry, LedgerOperation};
use asp::message::{AuthenticatedMessage, Body};
use asp::session::{Effect, ObligationOutcome, Payee, SessionEnding, SessionOutcome};
use asp::state_machine::{Role, Timer};
use asp::trust::TrustEventKind;
use asp::{CommitmentStatus, MessageId, Refusal, RejectCode};
use seal::UnixMillis;
use seal::json::Tape;

use crate::records::SessionInfo;

/// A response whose message is older than this was fetched later, so that its own timestamp says when it was sent. A message that
/// arrives on its own cannot be older, because it would be refused.
pub(crate) const MAX_MESSAGE_AGE_MS: i64 = asp::MAX_CLOCK_SKEW_SECONDS.cast_signed() * 1000;

/// Returns the events that follow from transitions that can no longer be rolled back. `entries` are the ledger entries that follow
/// from the same transitions, and `is_settled` says whether the peer has stored one of our messages.
pub(crate) fn of_effects(
    info: &SessionInfo,
    effects: &[&Effect],
    entries: &[LedgerEntry],
    is_settled: impl Fn(MessageId) -> bool,
    now: UnixMillis,
) -> Vec<TrustEventKind> {
    let funded = entries.iter().filter_map(|entry| match &entry.operation {
        LedgerOperation::Hold { id, deposit } if deposit.depositor == *info.peer.agent_id() => {
            Some(TrustEventKind::EscrowFunded(id.commitment_id.clone()))
        }
        _ => None,
    });
    let mut events: Vec<_> = funded.collect();
    let is_released = entries.iter().any(|entry| matches!(entry.operation, LedgerOperation::Release { .. }));
    for effect in effects {
        match effect {
            Effect::ResponseReceived { awaited_by, limit_ms, due_at, answered_at }
                if *awaited_by == info.role =>
            {
                if now.millis_since(*answered_at) > MAX_MESSAGE_AGE_MS {
                    // It was fetched later. Its sender chose its time, so nothing shows when it was sent.
                    continue;
                }
                let delay_ms = due_at.map_or(0, |due_at| now.millis_since(due_at));
                let to_u64 = |millis: i64| u64::try_from(millis).unwrap_or(0);
                events.push(TrustEventKind::MessageAnswered {
                    response_ms: to_u64(limit_ms.saturating_add(delay_ms)),
                    limit_ms: to_u64(*limit_ms),
                });
            }
            Effect::ResponseMissed { awaited_by, message_id }
                if *awaited_by == info.role && is_settled(*message_id) =>
            {
                events.push(TrustEventKind::ResponseMissed);
            }
            Effect::SessionEnded(outcome) => {
                events.extend(of_outcome(info, outcome));
                events.extend(forfeited_escrow(info, outcome).filter(|_| is_released));
            }
            _ => {}
        }
    }
    events
}

/// Returns the event about an authentic message from the peer that was refused, if the peer could have known that the message is not
/// allowed. A message that lost a race, came too late or fails this node's own policy is no violation.
pub(crate) fn of_refusal(
    info: &SessionInfo,
    refusal: &Refusal,
    message: &AuthenticatedMessage,
) -> Option<TrustEventKind> {
    let body = &message.envelope.body;
    match refusal.code {
        RejectCode::Unauthorized if has_other_card(info, body) => Some(TrustEventKind::CardMismatched),
        RejectCode::InvalidStateTransition
        | RejectCode::Unauthorized
        | RejectCode::SchemaUnsupported
        | RejectCode::PolicyViolation => Some(TrustEventKind::ProtocolViolation),
        // The sender knows the token budget, but not whether its escrow is covered.
        RejectCode::BudgetExceeded if !matches!(body, Body::Accept(_)) => {
            Some(TrustEventKind::ProtocolViolation)
        }
        _ => None,
    }
}

/// Returns whether a message contains a card that is not the pinned one.
fn has_other_card(info: &SessionInfo, body: &Body) -> bool {
    let Body::Inform(inform) = body else { return false };
    let Some(card) = &inform.card else { return false };
    let mut tape = Tape::default();
    !tape.read(card.as_str()).is_ok_and(|doc| info.peer.matches(&doc.root()))
}

/// Returns the event about the peer's escrow that went to our side as compensation, because the peer broke its commitment. An escrow
/// that our side has earned as payment is not lost.
fn forfeited_escrow(info: &SessionInfo, outcome: &SessionOutcome) -> Option<TrustEventKind> {
    let peer_role = info.role.other();
    let commitment = outcome.commitment.as_ref()?;
    let is_lost = commitment.sender() == peer_role
        && outcome.escrow_payee == Some(Payee::Beneficiary)
        && outcome.broken_by.contains(&peer_role);
    let mut own = outcome
        .obligations
        .iter()
        .filter(|(obligation, _)| obligation.party == *info.own.agent_id())
        .peekable();
    let is_earned = own.peek().is_some()
        && own.all(|(_, result)| matches!(result, ObligationOutcome::Fulfilled | ObligationOutcome::Late));
    (is_lost && !is_earned)
        .then(|| TrustEventKind::EscrowForfeited(commitment.commit().commitment_id.clone()))
}

/// Returns the events that follow from the end of a session.
fn of_outcome(info: &SessionInfo, outcome: &SessionOutcome) -> Vec<TrustEventKind> {
    let peer_role = info.role.other();
    let mut events = Vec::new();
    let agreement =
        outcome.commitment.as_ref().filter(|commitment| commitment.status() != CommitmentStatus::Withdrawn);
    if let Some(commitment) = agreement {
        let id = commitment.commit().commitment_id.clone();
        let peer_obligations = outcome
            .obligations
            .iter()
            .filter(|(obligation, _)| obligation.party == *info.peer.agent_id())
            .map(|(_, result)| *result)
            .max();
        if outcome.broken_by.contains(&peer_role) {
            events.push(TrustEventKind::CommitmentBroken(id));
        } else {
            match peer_obligations {
                Some(ObligationOutcome::Fulfilled) => events.push(TrustEventKind::CommitmentKept(id)),
                Some(ObligationOutcome::Late) => events.push(TrustEventKind::CommitmentLate(id)),
                _ => {}
            }
        }
    }
    let is_abandoned = match outcome.ending {
        SessionEnding::Unilateral(role) | SessionEnding::Withdrawn(role) | SessionEnding::Fatal(role) => {
            role == peer_role
        }
        SessionEnding::BrokenChain => {
            events.push(TrustEventKind::ChainBroken);
            true
        }
        // Either side may have let a session time out. Only the invited side can let an invitation time out.
        SessionEnding::TimedOut(Timer::Invitation) => peer_role == Role::Invited,
        _ => false,
    };
    if is_abandoned {
        events.push(TrustEventKind::SessionAbandoned);
    } else if agreement.is_some() && !outcome.broken_by.contains(&peer_role) {
        events.push(TrustEventKind::SessionCompleted);
    } else if matches!(outcome.ending, SessionEnding::Closed(_) | SessionEnding::Completed) {
        events.push(TrustEventKind::SessionClosed);
    }
    events
}
