//! Crash points for tests.
//!
//! In a debug build, the environment variable `SAYSO_ASP_CRASH_AT=POINT:N` aborts the process when it passes the named point
//! for the N-th time. A release build ignores the variable.
//!
//! The points: `request.before` and `request.after` (a request from the agent's program), `store.before` and `store.after` (a
//! commit to the journal), `deliver.before` and `deliver.after` (a message from this node, and the peer's answer), `receive.before`
//! and `receive.after` (a message from the peer, before the answer is sent).

/// Passes a crash point.
#[cfg(debug_assertions)]
pub(crate) fn pass(point: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static CRASH_AT: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let crash_at = CRASH_AT.get_or_init(|| {
        let variable = std::env::var("SAYSO_ASP_CRASH_AT").ok()?;
        let (point, count) = variable.rsplit_once(':')?;
        Some((point.to_owned(), count.parse().ok()?))
    });
    if let Some((_, count)) = crash_at.as_ref().filter(|(name, _)| name == point)
        && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *count
    {
        std::process::abort();
    }
}

/// Passes a crash point, which does nothing in a release build.
#[cfg(not(debug_assertions))]
pub(crate) fn pass(_point: &str) {}
