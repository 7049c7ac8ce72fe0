//! Limits on what a listener stores. `docs/limits.md` lists them.

use std::time::Duration;

seal::defaults! {
    /// Limits on what a listener stores. They bound the memory that a listener uses, whatever producers send.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SubscriberLimits {
        /// Maximum number of open questions. Further questions are announced, but cannot be answered here.
        pub open_questions: usize = 100,
        /// Maximum number of open hand-offs. Beyond it, the least urgent one is not listed.
        pub open_handoffs: usize = 100,
        /// Number of event ids remembered for deduplication.
        pub event_ids: usize = 16_384,
        /// Maximum number of known sessions. Beyond it, the session with the oldest last event is forgotten: ended sessions first,
        /// sessions with an open question last.
        pub sessions: usize = 1000,
        /// Maximum number of outputs per session whose position is tracked.
        pub outputs_per_session: usize = 16,
        /// Maximum number of bytes of a list, a table, code or a quote in Markdown that are held until it is complete. Beyond it,
        /// the complete part is announced without saying how many items, rows or lines there are. Less than 256 counts as 256.
        pub markdown_hold_bytes: usize = 16_384,
        /// How long a list, a table, code or a quote in Markdown is held until it is complete. After that, the complete part is announced
        /// without saying how many items, rows or lines there are.
        pub markdown_hold: Duration = Duration::from_secs(5),
        /// Maximum number of unfinished outputs in Markdown. Beyond it, the remaining text of the oldest
        /// one is announced, even if it is incomplete.
        pub markdown_outputs: usize = 64,
        /// Number of code blocks kept to be read on request.
        pub code_blocks: usize = 100,
        /// Maximum number of bytes kept of each code block. The person is informed if code was cut.
        pub code_block_bytes: usize = 65_536,
        /// Maximum number of announcements waiting for speech. Beyond it, the oldest one that is not critical is dropped and counted.
        pub queued_announcements: usize = 200,
        /// Number of announcements kept for `repeat`, `last` and `history`.
        pub history: usize = 200,
        /// Maximum size of these announcements together, in bytes. Beyond it, the oldest are forgotten.
        pub history_bytes: usize = 1_048_576,
        /// Maximum size of a hub's manifest in bytes. A larger one is not read, and the person is informed.
        pub manifest_bytes: usize = aaep::manifest::MAX_SIGNED_BYTES,
        /// How long to wait for a hub's manifest. After that, the person is informed.
        pub manifest_timeout: Duration = Duration::from_secs(10),
    }
}
