//! The thirteen performatives.

seal::string_enum! {
    /// The kind of a message (npayload ASP, "Allowed Performatives Per State").
    Performative {
        /// Makes an offer. With the type `session-invitation`, it offers a session.
        Propose "PROPOSE",
        /// Accepts an invitation, a proposal or a commitment.
        Accept "ACCEPT",
        /// Refuses an invitation, a proposal, a commitment or a message.
        Reject "REJECT",
        /// Refuses a proposal or commitment and makes another offer in its place.
        Counter "COUNTER",
        /// Reports something: an identity, progress, a result, an error or an answer.
        Inform "INFORM",
        /// Asks for information.
        Query "QUERY",
        /// Asks what something means, or answers such a question.
        Clarify "CLARIFY",
        /// Makes a commitment, which binds once the other side accepts it.
        Commit "COMMIT",
        /// Delegates part of the task to another agent.
        Delegate "DELEGATE",
        /// Makes a remark that expects no answer.
        Observe "OBSERVE",
        /// Withdraws the sender from the session.
        Withdraw "WITHDRAW",
        /// Asks a person or another authority to decide.
        Escalate "ESCALATE",
        /// Ends the session, or asks to end it.
        Close "CLOSE",
    }
}
