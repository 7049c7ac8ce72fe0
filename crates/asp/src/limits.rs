//! Limits on the memory that a peer can make this side use.

/// Maximum clock difference in seconds (D16). It applies between a message and its DPoP proof, and to a message that is
/// earlier than the previous one. For messages received live, it also applies between the message and the receiver's clock.
pub const MAX_CLOCK_SKEW_SECONDS: u64 = 300;

/// How much the messages with which a side leaves may exceed [`AspLimits::max_session_bytes`], in bytes: CLOSE, WITHDRAW, REJECT,
/// and the decision of an escalation.
pub const LEAVING_RESERVE_BYTES: usize = 1024 * 1024;

seal::defaults! {
    /// Resource limits of a session.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AspLimits {
        /// Maximum size of one message in bytes. npayload's own limit is 256 KiB.
        pub max_message_bytes: usize = 256 * 1024,
        /// Maximum number of proposals that are open at the same time.
        pub max_open_proposals: usize = 64,
        /// Maximum number of messages in one session.
        pub max_messages: usize = 1_000_000,
        /// Maximum size of one side's messages in one session, in bytes. Each side has its own, so that one side cannot use up
        /// what the other side needs to keep its promises. The limit holds for messages that are sent or received now, not for
        /// those that were accepted earlier.
        pub max_session_bytes: usize = 16 * 1024 * 1024,
        /// Maximum number of DPoP proofs that are remembered to detect replays. The same limit applies to remembered hashes of
        /// refused messages.
        pub max_remembered_proofs: usize = 100_000,
    }
}
