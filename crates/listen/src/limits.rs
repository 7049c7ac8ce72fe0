//! How much is kept at most. `docs/limits.md` lists these.

use std::time::Duration;

/// How much a listener keeps. A producer can make none of it grow without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Questions that are open at once; of further ones the person is told that they cannot be answered here.
    pub questions: usize,
    /// Ids of events that are remembered, so that none is said twice.
    pub ids: usize,
    /// Sessions that are known at once; beyond, the one that was silent for longest is forgotten.
    pub sessions: usize,
    /// Outputs of one session of which it is known how far they were heard.
    pub outputs: usize,
    /// Announcements that wait for a voice; beyond, the oldest that is not critical is counted, and not said in full.
    pub waiting: usize,
    /// Bytes of a hub's manifest; beyond, it is not read, and the person is told.
    pub manifest_bytes: usize,
    /// Time for a hub's manifest to come; beyond, likewise.
    pub manifest_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            questions: 100,
            ids: 16_384,
            sessions: 1000,
            outputs: 16,
            waiting: 200,
            manifest_bytes: aaep::manifest::LONGEST,
            manifest_time: Duration::from_secs(10),
        }
    }
}
