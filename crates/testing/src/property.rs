//! The configuration of property tests and simulations.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

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

/// The first seed of a simulation without `PROPERTY_SEED`.
const FIRST_SEED: u64 = 1_000_003;

/// Returns the seeds of a simulation: `count`, multiplied by `PROPERTY_TIMES`, from `PROPERTY_SEED` on. So `PROPERTY_SEED` with
/// the seed that a failed run printed repeats that run first.
pub fn seeds(count: u64) -> Range<u64> {
    let number = |name| std::env::var(name).ok();
    seeds_from(number("PROPERTY_SEED").as_deref(), number("PROPERTY_TIMES").as_deref(), count)
}

fn seeds_from(first: Option<&str>, times: Option<&str>, count: u64) -> Range<u64> {
    let number = |text: &str| text.parse::<u64>().unwrap_or_else(|error| panic!("{text:?}: {error}"));
    let first = first.map_or(FIRST_SEED, number);
    first..first + count * times.map_or(1, number)
}

/// Runs a simulation with this seed. If it panics, prints the seed.
pub fn with_seed<T>(seed: u64, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        eprintln!("the seed is {seed}; PROPERTY_SEED={seed} runs it first");
        resume_unwind(panic)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_seed_is_run_first() {
        assert_eq!(seeds_from(None, None, 40), 1_000_003..1_000_043);
        assert_eq!(seeds_from(Some("1000017"), None, 40), 1_000_017..1_000_057);
        assert_eq!(seeds_from(Some("18446744073709550000"), Some("3"), 40).count(), 120);
    }
}
