//! The switch that `cargo xtask mutants` adds to a crate, so that one build contains all its mutants.
//!
//! xtask does not compile this file; it copies it into the mutated crate.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The mutant that is active in this process.
static ACTIVE: LazyLock<Option<usize>> =
    LazyLock::new(|| std::env::var("SAYSO_MUTANT").ok().and_then(|number| number.parse().ok()));

/// The file that lists the mutants that this process has reached, if a list is requested.
static TRACE: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("SAYSO_MUTANT_TRACE").ok());

static REACHED: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// Returns whether a mutant is active.
pub(crate) fn is_active(number: usize) -> bool {
    if let Some(path) = TRACE.as_ref() {
        record(path, number);
    }
    *ACTIVE == Some(number)
}

/// Adds a mutant to the trace. It is written at once, because the process may be killed.
fn record(path: &str, number: usize) {
    if REACHED.lock().unwrap_or_else(PoisonError::into_inner).insert(number)
        && let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(path)
    {
        let _ = file.write_all(format!("{number}\n").as_bytes());
    }
}
