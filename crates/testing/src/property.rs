//! The configuration of property tests.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Returns a configuration with this many cases, multiplied by the environment variable `PROPERTY_TIMES`. The cases are
/// the same in every run, so that no test fails by chance. `PROPERTY_SEED` selects other cases. Failing cases are not
/// written to a file, so add a named test for each failing case.
pub fn cases(cases: u32) -> ProptestConfig {
    let env_number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok()).unwrap_or(1);
    ProptestConfig {
        cases: cases * env_number("PROPERTY_TIMES"),
        rng_seed: RngSeed::Fixed(u64::from(env_number("PROPERTY_SEED"))),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
