//! Tests of real speech. Debian's speech-dispatcher plays to a private sound server, whose output is recorded.

use crate::browser::unavailable;
use crate::stage::{self, StageLog, StageOutcome, StageResult};
use crate::{debian, test_programs};

/// Number of attempts before the stage fails. The tests run in real time, so they can fail on a slow machine. A real bug
/// makes every attempt fail.
const ATTEMPTS: usize = 3;

/// Measures how long announcements are, then runs the recording tests, one at a time.
pub(crate) fn run(log: &StageLog) -> StageResult {
    if let Err(reason) = debian::require(log, &debian::SPEECH) {
        return unavailable(reason);
    }
    let mut lengths = test_programs::unit_test_command(log, "listen")?;
    lengths.args(["--ignored", "--nocapture", "_with_espeak"]);
    test_programs::run_selected(log, &mut lengths)?;
    let mut tests = test_programs::test_command(log, "speech")?;
    tests.args(["--ignored", "--nocapture", "--test-threads=1"]);
    stage::retry(log, "speech", ATTEMPTS, || log.run(&mut tests))?;
    Ok(StageOutcome::Passed)
}
