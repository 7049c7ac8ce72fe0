//! How many cases a property test runs, and which.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Runs this many cases, or `PROPERTY_TIMES` times as many. They are the same in every run, so that no change fails by chance;
/// `PROPERTY_SEED` draws others. Failing cases are not written to a file: turn them into tests with names.
pub fn cases(cases: u32) -> ProptestConfig {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok()).unwrap_or(1);
    ProptestConfig {
        cases: cases * number("PROPERTY_TIMES"),
        rng_seed: RngSeed::Fixed(u64::from(number("PROPERTY_SEED"))),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
