//! The facts that a move may depend on.

use std::fmt;

seal::word_enum! {
    /// Something that is so or not so when a message arrives.
    Fact word {
        /// The sender is the inviting side.
        FromInviter "from-inviter",
        /// The proposal is a session invitation.
        Invitation "invitation",
        /// The invitation has been accepted: the inner step is identifying (D2).
        Answered "answered",
        /// The sender has given its identity in this session.
        SenderKnown "sender-known",
        /// The other side has given its identity in this session.
        OtherKnown "other-known",
        /// A card in the message is the pinned one, or there is none in it (D17).
        CardPinned "card-pinned",
        /// The sender's trust meets the receiver's threshold (D20).
        Trusted "trusted",
        /// The sender speaks more than the minimal level (D12).
        Standard "standard",
        /// The name that the message gives to a proposal or commitment is new.
        Fresh "fresh",
        /// There is room for one more open proposal.
        Room "room",
        /// The message names what is open to be answered: the invitation, a proposal, the pending commitment.
        Named "named",
        /// What is open to be answered was sent by the sender itself.
        Own "own",
        /// The proposal that is answered has not run out.
        InTime "in-time",
        /// Everybody whom the commitment would bind is in the session.
        PartiesHere "parties-here",
        /// The pending commitment's escrow is covered, or there is none.
        Funded "funded",
        /// INFORM of the type identity.
        Identity "identity",
        /// INFORM of the types progress, result or error.
        Work "work",
        /// INFORM of the type resolution.
        Resolution "resolution",
        /// INFORM of an error that cannot be recovered (D7).
        Fatal "fatal",
        /// The sender is the side that escalated.
        Escalator "escalator",
        /// CLOSE that does not wait for the other side (D4).
        Unilateral "unilateral",
        /// The other side has asked to close.
        OtherWishes "other-wishes",
    }
}

/// A set of facts.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Facts(u32);

impl Facts {
    /// Nothing is so.
    pub const NONE: Self = Self(0);

    /// With this fact, if it holds.
    #[must_use]
    pub fn with(self, fact: Fact, holds: bool) -> Self {
        if holds { Self(self.0 | 1 << fact as u32) } else { Self(self.0 & !(1 << fact as u32)) }
    }

    /// Whether it is so.
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
            .entries(Fact::ALL.iter().filter(|fact| self.has(**fact)).map(|fact| fact.word()))
            .finish()
    }
}
