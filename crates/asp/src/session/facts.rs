//! The facts about a message, as the session knows them, and the words for a fact that was missing.

use seal::UnixMillis;

use super::place::Place;
use super::{Incoming, Session};
use crate::card::Level;
use crate::id::Reference;
use crate::machine::{Fact, Facts, Need, On, Role};
use crate::message::{Body, Close, InformType};

impl Session {
    pub(super) fn facts(&self, message: &Incoming<'_>) -> Facts {
        let sender = message.sender;
        let judgement = message.judgement;
        let mut facts = Facts::NONE
            .with(Fact::FromInviter, sender == Role::Inviter)
            .with(Fact::Standard, self.party(sender).level > Level::Minimal)
            .with(Fact::Trusted, judgement.trusted)
            .with(Fact::CardPinned, judgement.card_pinned)
            .with(Fact::Room, self.proposals.has_room(message.at));
        let no_escrow = self.commitment().is_none_or(|commitment| commitment.terms().escrow.is_none());
        facts = facts.with(Fact::Funded, judgement.funded || no_escrow);
        match &self.place {
            Place::Invited(invited) => {
                facts = facts
                    .with(Fact::Answered, invited.answered)
                    .with(Fact::SenderKnown, invited.identified[sender.index()])
                    .with(Fact::OtherKnown, invited.identified[sender.other().index()]);
            }
            Place::Executing(executing) => {
                facts = facts.with(Fact::OtherWishes, executing.wishes[sender.other().index()]);
            }
            Place::Escalated(escalated) => facts = facts.with(Fact::Escalator, escalated.by == sender),
            _ => {}
        }
        match message.body {
            Body::Propose(body) => facts
                .with(Fact::Invitation, body.is_invitation())
                .with(Fact::Fresh, self.proposals.is_fresh(body.proposal_id.as_str())),
            Body::Accept(body) => self.about(facts, sender, Some(&body.reference), message.at),
            Body::Reject(body) => self.about(facts, sender, body.reference.as_ref(), message.at),
            Body::Counter(body) => self
                .about(facts, sender, Some(&body.counters), message.at)
                .with(Fact::Fresh, self.proposals.is_fresh(body.proposal_id.as_str())),
            Body::Commit(body) => {
                let here = |party| self.role_of(party).is_some();
                facts
                    .with(Fact::Fresh, self.proposals.is_fresh(body.commitment_id.as_str()))
                    .with(Fact::PartiesHere, body.terms.obligations.iter().all(|one| here(&one.party)))
            }
            Body::Inform(body) => facts
                .with(Fact::Identity, body.kind == InformType::Identity)
                .with(Fact::Resolution, body.kind == InformType::Resolution)
                .with(Fact::Fatal, body.is_fatal())
                .with(
                    Fact::Work,
                    matches!(body.kind, InformType::Progress | InformType::Result | InformType::Error),
                ),
            Body::Close(body) => facts.with(Fact::Unilateral, body.reason == Close::UNILATERAL),
            Body::Query(_)
            | Body::Clarify(_)
            | Body::Delegate(_)
            | Body::Observe(_)
            | Body::Withdraw(_)
            | Body::Escalate(_) => facts,
        }
    }

    /// What an ACCEPT, REJECT or COUNTER is about (D10). Where only one thing can be meant, it need not be named.
    fn about(&self, facts: Facts, sender: Role, reference: Option<&Reference>, at: UnixMillis) -> Facts {
        let named = |name: &str| reference.is_none_or(|reference| reference.as_str() == name);
        match &self.place {
            Place::Invited(invited) => facts
                .with(Fact::Named, named(invited.invitation.as_str()))
                .with(Fact::Own, sender == Role::Inviter),
            Place::Agreeing(pending) => facts
                .with(Fact::Named, named(pending.terms().commitment_id.as_str()))
                .with(Fact::Own, pending.by() == sender),
            _ => match reference.and_then(|reference| self.proposals.find(reference)) {
                Some(proposal) => facts
                    .with(Fact::Named, true)
                    .with(Fact::Own, proposal.by == sender)
                    .with(Fact::InTime, proposal.is_valid(at)),
                None => facts,
            },
        }
    }
}

/// Why a message is refused, in a sentence for the one who sent it.
pub(super) fn why(session: &Session, need: Option<Need>, message: &Incoming<'_>) -> String {
    let (state, performative) = (session.state(), message.body.performative());
    let Some(need) = need else {
        if state.is_terminal() {
            return format!("the session has ended ({state}); nothing can follow");
        }
        let on = On::Message(performative);
        return if session.rules.table.cell(session.rules.reading, state, on).next().is_some() {
            format!("this {performative} is not lawful in {state} now")
        } else {
            let allowed = session.rules.table.allowed(session.rules.reading, state);
            let words: Vec<_> = allowed.iter().map(|one| one.word()).collect();
            format!("{performative} is not lawful in {state}; lawful are {}", words.join(", "))
        };
    };
    match need.fact {
        Fact::FromInviter => "the invited side cannot send the invitation".to_owned(),
        Fact::Own => format!("{performative} is for the other side to send: nobody answers himself"),
        Fact::Answered => "the invitation is accepted already".to_owned(),
        Fact::Named => "nothing of that name is open to be answered".to_owned(),
        Fact::InTime => "the proposal has run out".to_owned(),
        Fact::Trusted => "the sender's trust is below what the receiver asks for".to_owned(),
        Fact::CardPinned => "the card is not the one that is known for this agent".to_owned(),
        Fact::Standard => format!("an agent of the minimal level cannot send {performative} here"),
        Fact::Fresh => "the name of the proposal or commitment was used before".to_owned(),
        Fact::Room => "too many proposals are open".to_owned(),
        Fact::PartiesHere => "an obligation names a party that is not in this session".to_owned(),
        Fact::Funded => "the escrow is not covered".to_owned(),
        Fact::Escalator => "the side that escalated must tell the resolution".to_owned(),
        other => format!("{performative} needs {} to be otherwise in {state}", other.word()),
    }
}
