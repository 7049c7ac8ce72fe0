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

use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

#[cfg(feature = "postgres")]
use fixture::PostgresFixture;
use fixture::{JournalFixture, MemoryFixture, SqliteFixture};

type FixtureFactory = Arc<dyn Fn() -> Box<dyn JournalFixture> + Send + Sync>;
type Behaviour = (&'static str, fn(&dyn JournalFixture));

fn main() {
    let arguments = Arguments::from_args();
    let mut fixtures: Vec<(&str, bool, FixtureFactory)> = vec![
        ("memory", true, Arc::new(|| Box::new(MemoryFixture))),
        ("sqlite", true, Arc::new(|| Box::new(SqliteFixture::default()))),
    ];
    #[cfg(feature = "postgres")]
    fixtures.push(PostgresFixture::factory(&arguments));
    let behaviours = [
        event_log::BEHAVIOURS,
        consent_ledger::BEHAVIOURS,
        retention::BEHAVIOURS,
        random_batches::BEHAVIOURS,
    ]
    .concat();
    let mut trials = Vec::new();
    for (kind, is_available, create_fixture) in fixtures {
        for (name, behaviour) in &behaviours {
            let (behaviour, create_fixture) = (*behaviour, create_fixture.clone());
            let trial = Trial::test(format!("{kind}: {name}"), move || {
                behaviour(&*create_fixture());
                Ok(())
            });
            trials.push(trial.with_ignored_flag(!is_available));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    #[cfg(feature = "postgres")]
    PostgresFixture::stop_server();
    conclusion.exit();
}
