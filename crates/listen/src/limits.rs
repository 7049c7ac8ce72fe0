//! How much is kept at most. `docs/limits.md` lists these.

use std::time::Duration;

seal::defaults! {
    /// How much a listener keeps. A producer can make none of it grow without end.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Limits {
        /// Questions that are open at once; of further ones the person is told that they cannot be answered here.
        pub questions: usize = 100,
        /// Ids of events that are remembered, so that none is said twice.
        pub ids: usize = 16_384,
        /// Sessions that are known at once; beyond, the one that was silent for longest is forgotten.
        pub sessions: usize = 1000,
        /// Outputs of one session of which it is known how far they were heard.
        pub outputs: usize = 16,
        /// Announcements that wait for a voice; beyond, the oldest that is not critical is counted, and not said in full.
        pub waiting: usize = 200,
        /// Bytes of a hub's manifest; beyond, it is not read, and the person is told.
        pub manifest_bytes: usize = aaep::manifest::LONGEST,
        /// Time for a hub's manifest to come; beyond, likewise.
        pub manifest_time: Duration = Duration::from_secs(10),
    }
}
