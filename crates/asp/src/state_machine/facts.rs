//! The facts that a transition may depend on.

use std::fmt;

seal::string_enum! {
    /// A condition that holds or does not hold when a message arrives.
    Fact {
        /// The sender is the inviter.
        FromInviter "from-inviter",
        /// The proposal is a session invitation.
        Invitation "invitation",
        /// The invitation was accepted, so both sides now identify themselves (D2).
        InvitationAccepted "invitation-accepted",
        /// The sender has sent its identity in this session.
        SenderIdentified "sender-identified",
        /// The other side has sent its identity in this session.
        OtherIdentified "other-identified",
        /// The message contains no card, or contains the pinned card (D17).
        CardPinned "card-pinned",
        /// The sender's trust meets the receiver's threshold (D20).
        Trusted "trusted",
        /// The sender's conformance level is above minimal (D12).
        AboveMinimalLevel "above-minimal-level",
        /// The id that the message gives to a proposal or commitment was not used before.
        UnusedId "unused-id",
        /// One more proposal may be opened.
        HasProposalCapacity "has-proposal-capacity",
        /// The message refers to an item that awaits an answer: the invitation, a proposal or the pending commitment.
        NamesOpenItem "names-open-item",
        /// The sender of the message also sent the item that the message answers.
        OwnItem "own-item",
        /// The answered proposal has not expired.
        InTime "in-time",
        /// All parties that the commitment would bind are in the session.
        PartiesInSession "parties-in-session",
        /// The pending commitment's escrow is covered, or there is none.
        Funded "funded",
        /// The message is INFORM(identity).
        Identity "identity",
        /// The message is INFORM(progress), INFORM(result) or INFORM(error).
        WorkReport "work-report",
        /// The message is INFORM(answer) and names a result of the other side (D22).
        AnswersResult "answers-result",
        /// The message is INFORM(resolution).
        Resolution "resolution",
        /// The message reports an unrecoverable error (D7).
        Fatal "fatal",
        /// The sender is the side that escalated.
        FromEscalatingSide "from-escalating-side",
        /// The message is a CLOSE that does not wait for the other side (D4).
        Unilateral "unilateral",
        /// The other side has asked to close.
        OtherRequestedClose "other-requested-close",
    }
}

/// A set of facts.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Facts(u32);

impl Facts {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Returns the set with this fact added if it holds, and removed otherwise.
    #[must_use]
    pub fn with(self, fact: Fact, holds: bool) -> Self {
        if holds { Self(self.0 | 1 << fact as u32) } else { Self(self.0 & !(1 << fact as u32)) }
    }

    /// Returns whether the fact is in the set.
    pub fn has(self, fact: Fact) -> bool {
        self.0 >> (fact as u32) & 1 == 1
    }
}

impl FromIterator<Fact> for Facts {
    fn from_iter<I: IntoIterator<Item = Fact>>(facts: I) -> Self {
        facts.into_iter().fold(Self::NONE, |set, fact| set.with(fact, true))
    }
}

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(Fact::ALL.iter().filter(|fact| self.has(**fact)).map(|fact| fact.as_str()))
            .finish()
    }
}
