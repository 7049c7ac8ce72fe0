//! Derives the facts about a message, and the text of a refusal.

use seal::UnixMillis;

use super::state_data::StateData;
use super::{AspSession, IncomingMessage};
use crate::agent_card::ConformanceLevel;
use crate::id::Reference;
use crate::message::{Body, Close, InformType};
use crate::state_machine::{Fact, Facts, Requirement, Role, Trigger};

impl AspSession {
    pub(super) fn facts(&self, message: &IncomingMessage<'_>) -> Facts {
        let sender = message.sender;
        let checks = message.checks;
        let mut facts = Facts::NONE
            .with(Fact::FromInviter, sender == Role::Inviter)
            .with(Fact::AboveMinimalLevel, self.party(sender).level > ConformanceLevel::Minimal)
            .with(Fact::Trusted, checks.is_trusted)
            .with(Fact::CardPinned, checks.is_card_pinned)
            .with(Fact::HasProposalCapacity, self.proposals.has_capacity(message.sent_at));
        let has_no_escrow = self.commitment().is_none_or(|commitment| commitment.commit().escrow.is_none());
        facts = facts.with(Fact::Funded, checks.is_funded || has_no_escrow);
        match &self.state_data {
            StateData::Invited(invited) => {
                facts = facts
                    .with(Fact::InvitationAccepted, invited.is_accepted)
                    .with(Fact::SenderIdentified, invited.is_identified[sender.index()])
                    .with(Fact::OtherIdentified, invited.is_identified[sender.other().index()]);
            }
            StateData::Executing(executing) => {
                let answers_result = matches!(message.body, Body::Inform(body)
                    if body.kind == InformType::Answer && executing.names_result(body, sender.other()));
                facts = facts
                    .with(Fact::OtherRequestedClose, executing.close_requested[sender.other().index()])
                    .with(Fact::AnswersResult, answers_result);
            }
            StateData::Escalated(escalated) => {
                facts = facts.with(Fact::FromEscalatingSide, escalated.by == sender);
            }
            _ => {}
        }
        match message.body {
            Body::Propose(body) => facts
                .with(Fact::Invitation, body.is_invitation())
                .with(Fact::UnusedId, self.proposals.is_id_unused(body.proposal_id.as_str())),
            Body::Accept(body) => self.reference_facts(facts, sender, Some(&body.reference), message.sent_at),
            Body::Reject(body) => {
                self.reference_facts(facts, sender, body.reference.as_ref(), message.sent_at)
            }
            Body::Counter(body) => self
                .reference_facts(facts, sender, Some(&body.counters), message.sent_at)
                .with(Fact::UnusedId, self.proposals.is_id_unused(body.proposal_id.as_str())),
            Body::Commit(body) => {
                let is_in_session = |party| self.role_of(party).is_some();
                facts.with(Fact::UnusedId, self.proposals.is_id_unused(body.commitment_id.as_str())).with(
                    Fact::PartiesInSession,
                    body.terms.obligations.iter().all(|obligation| is_in_session(&obligation.party)),
                )
            }
            Body::Inform(body) => facts
                .with(Fact::Identity, body.kind == InformType::Identity)
                .with(Fact::Resolution, body.kind == InformType::Resolution)
                .with(Fact::Fatal, body.is_fatal())
                .with(
                    Fact::WorkReport,
                    matches!(body.kind, InformType::Progress | InformType::Result | InformType::Error),
                ),
            Body::Close(body) => facts.with(Fact::Unilateral, body.reason == Close::UNILATERAL_REASON),
            Body::Query(_)
            | Body::Clarify(_)
            | Body::Delegate(_)
            | Body::Observe(_)
            | Body::Withdraw(_)
            | Body::Escalate(_) => facts,
        }
    }

    /// Returns the facts about the item that an ACCEPT, REJECT or COUNTER refers to (D10). The reference may be
    /// omitted if only one item is possible.
    fn reference_facts(
        &self,
        facts: Facts,
        sender: Role,
        reference: Option<&Reference>,
        at: UnixMillis,
    ) -> Facts {
        let matches = |id: &str| reference.is_none_or(|reference| reference.as_str() == id);
        match &self.state_data {
            StateData::Invited(invited) => facts
                .with(Fact::NamesOpenItem, matches(invited.invitation.as_str()))
                .with(Fact::OwnItem, sender == Role::Inviter),
            StateData::Agreeing(pending) => facts
                .with(Fact::NamesOpenItem, matches(pending.commit().commitment_id.as_str()))
                .with(Fact::OwnItem, pending.sender() == sender),
            _ => match reference.and_then(|reference| self.proposals.find(reference)) {
                Some(proposal) => facts
                    .with(Fact::NamesOpenItem, true)
                    .with(Fact::OwnItem, proposal.proposed_by == sender)
                    .with(Fact::InTime, proposal.is_valid(at)),
                None => facts,
            },
        }
    }
}

/// Returns the text of a refusal, for the sender of the message.
pub(super) fn refusal_reason(
    session: &AspSession,
    requirement: Option<Requirement>,
    message: &IncomingMessage<'_>,
) -> String {
    let (state, performative) = (session.state(), message.body.performative());
    let Some(requirement) = requirement else {
        if state.is_terminal() {
            return format!("the session has ended ({state})");
        }
        let trigger = Trigger::Message(performative);
        return if session.rules.table.matching_rows(session.rules.any_state, state, trigger).next().is_some()
        {
            format!("this {performative} is not allowed in {state} now")
        } else {
            let allowed = session.rules.table.allowed_performatives(session.rules.any_state, state);
            let names: Vec<_> = allowed.iter().map(|performative| performative.as_str()).collect();
            format!("{performative} is not allowed in {state}; allowed: {}", names.join(", "))
        };
    };
    match requirement.fact {
        Fact::FromInviter => "the invited side cannot send the invitation".to_owned(),
        Fact::OwnItem => format!("only the other side can send {performative} here"),
        Fact::InvitationAccepted => "the invitation was already accepted".to_owned(),
        Fact::NamesOpenItem => "no item with that id awaits an answer".to_owned(),
        Fact::InTime => "the proposal has expired".to_owned(),
        Fact::Trusted => "the sender's trust is below the receiver's threshold".to_owned(),
        Fact::CardPinned => "the card is not the pinned card of this agent".to_owned(),
        Fact::AboveMinimalLevel => format!("an agent of the minimal level cannot send {performative} here"),
        Fact::UnusedId => "the id of the proposal or commitment was used before".to_owned(),
        Fact::HasProposalCapacity => "too many proposals are open".to_owned(),
        Fact::PartiesInSession => "an obligation names a party that is not in this session".to_owned(),
        Fact::Funded => "the escrow is not covered".to_owned(),
        Fact::FromEscalatingSide => "only the side that escalated can send the resolution".to_owned(),
        other => format!("{performative} is not allowed in {state}: condition {} is not met", other.as_str()),
    }
}
