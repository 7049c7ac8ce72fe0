//! Tests of braille output with Debian's brltty and its virtual driver.

use crate::browser::unavailable;
use crate::stage::{self, StageLog, StageOutcome, StageResult};
use crate::{debian, test_programs};

/// Runs the tests that need brltty and liblouis.
pub(crate) fn run(log: &StageLog) -> StageResult {
    if let Err(reason) = debian::require(log, &debian::BRAILLE) {
        return unavailable(reason);
    }
    let mut tests = test_programs::test_command(log, "braille")?;
    tests.arg("--ignored");
    stage::retry(log, "braille", 2, || log.run(&mut tests))?;
    Ok(StageOutcome::Passed)
}
