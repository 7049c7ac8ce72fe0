//! How many cases a property is shown with, and which.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// So many cases, or `PROPERTY_TIMES` times as many, and no file of old failures: a failing case is turned into a test
/// with a name instead. They are the same cases in every run, so that nobody's change goes red by chance;
/// `PROPERTY_SEED` draws others.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok()).unwrap_or(1);
    ProptestConfig {
        cases: cases * number("PROPERTY_TIMES"),
        rng_seed: RngSeed::Fixed(u64::from(number("PROPERTY_SEED"))),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
