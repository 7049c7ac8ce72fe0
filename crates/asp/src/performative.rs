//! The thirteen performatives: what a message does.

seal::word_enum! {
    /// What a message does (npayload ASP, "Allowed Performatives Per State").
    Performative word {
        /// Offers something; of the type `session-invitation`, a session.
        Propose "PROPOSE",
        /// Accepts an invitation, a proposal or a commitment.
        Accept "ACCEPT",
        /// Refuses one.
        Reject "REJECT",
        /// Refuses a proposal or commitment and offers another in its place.
        Counter "COUNTER",
        /// Tells.
        Inform "INFORM",
        /// Asks for information.
        Query "QUERY",
        /// Asks what something means, or says it.
        Clarify "CLARIFY",
        /// Binds its sender, if the other side accepts.
        Commit "COMMIT",
        /// Hands a part to another agent.
        Delegate "DELEGATE",
        /// Remarks on something, expecting nothing.
        Observe "OBSERVE",
        /// Takes its sender out of the session.
        Withdraw "WITHDRAW",
        /// Asks a person or another authority to decide.
        Escalate "ESCALATE",
        /// Ends the session.
        Close "CLOSE",
    }
}
