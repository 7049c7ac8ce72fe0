//! Limits on what a listener stores. `docs/limits.md` lists them.

use std::time::Duration;

seal::defaults! {
    /// Limits on what a listener stores. They bound the memory that a listener uses, whatever producers send.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SubscriberLimits {
        /// Maximum number of open questions. Further questions are announced, but cannot be answered here.
        pub open_questions: usize = 100,
        /// Number of event ids remembered for deduplication.
        pub event_ids: usize = 16_384,
        /// Maximum number of known sessions. Beyond it, the session with the oldest last event is forgotten: ended sessions first,
        /// sessions with an open question last.
        pub sessions: usize = 1000,
        /// Maximum number of outputs per session whose position is tracked.
        pub outputs_per_session: usize = 16,
        /// Maximum number of announcements waiting for speech. Beyond it, the oldest one that is not critical is dropped and counted.
        pub queued_announcements: usize = 200,
        /// Maximum size of a hub's manifest in bytes. A larger one is not read, and the person is informed.
        pub manifest_bytes: usize = aaep::manifest::MAX_SIGNED_BYTES,
        /// How long to wait for a hub's manifest. After that, the person is informed.
        pub manifest_timeout: Duration = Duration::from_secs(10),
    }
}
