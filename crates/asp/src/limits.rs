//! Numbers for whatever a stranger can grow.

/// A proof and its message are made within this many seconds of each other; on live receipt, a message and the clock (D16).
pub const PROOF_SECONDS: u64 = 300;

seal::defaults! {
    /// How much a session may take.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Limits {
        /// Bytes of one message; npayload's own limit is 256 KiB.
        pub message_bytes: usize = 256 * 1024,
        /// Proposals that are open at once.
        pub open_proposals: usize = 64,
        /// Messages of one session.
        pub messages: usize = 1_000_000,
        /// DPoP proofs that are remembered.
        pub proofs: usize = 100_000,
    }
}
