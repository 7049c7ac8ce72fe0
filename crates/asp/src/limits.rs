//! Limits on the memory that a peer can make this side use.

/// Maximum clock difference in seconds (D16). It applies between a message and its DPoP proof, and to a message that is
/// earlier than the previous one. For messages received live, it also applies between the message and the receiver's clock.
pub const MAX_CLOCK_SKEW_SECONDS: u64 = 300;

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
        /// Maximum number of DPoP proofs that are remembered to detect replays. The same limit applies to remembered hashes of
        /// refused messages.
        pub max_remembered_proofs: usize = 100_000,
    }
}
