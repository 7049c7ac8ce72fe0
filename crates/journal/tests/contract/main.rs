//! The contract of `Journal`. Every test runs against every implementation.
//!
//! - `fixture`: creates, reopens and crashes journals.
//! - `event_log`, `consent_ledger`, `retention`: the tests.
//! - `random_batches`: compares random batches, trims and crashes with `model_journal`, a naive model.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test reports a failure by panicking"
)]

mod consent_ledger;
mod event_log;
mod fixture;
mod model_journal;
mod random_batches;
mod retention;

use libtest_mimic::{Arguments, Trial};

use fixture::{JournalFixture, MemoryFixture, SqliteFixture};

type FixtureFactory = fn() -> Box<dyn JournalFixture>;
type Behaviour = (&'static str, fn(&dyn JournalFixture));

fn main() {
    let fixtures: [(&str, FixtureFactory); 2] =
        [("memory", || Box::new(MemoryFixture)), ("sqlite", || Box::new(SqliteFixture::default()))];
    let behaviours = [
        event_log::BEHAVIOURS,
        consent_ledger::BEHAVIOURS,
        retention::BEHAVIOURS,
        random_batches::BEHAVIOURS,
    ]
    .concat();
    let mut trials = Vec::new();
    for (kind, create_fixture) in fixtures {
        for (name, behaviour) in &behaviours {
            let behaviour = *behaviour;
            trials.push(Trial::test(format!("{kind}: {name}"), move || {
                behaviour(&*create_fixture());
                Ok(())
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
