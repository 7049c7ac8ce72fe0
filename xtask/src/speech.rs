//! Speech that is heard: Debian's speech-dispatcher speaks to a sound server of its own, which is recorded.

use crate::browser::unavailable;
use crate::stage::{Log, Outcome, StageResult};
use crate::{debian, programs};

/// Attempts before the stage fails: the tests run in real time, so a machine that stalls shifts them; what is wrong with the
/// code is wrong each time.
const ATTEMPTS: usize = 3;

/// Runs the tests that listen, one at a time.
pub(crate) fn run(log: &Log) -> StageResult {
    if let Err(why) = debian::require(log, &debian::SPEECH) {
        return unavailable(why);
    }
    let mut tests = programs::test(log, "speech")?;
    tests.args(["--ignored", "--nocapture", "--test-threads=1"]);
    let mut attempt = || log.run(&mut tests);
    (1..ATTEMPTS).find_map(|_| attempt().ok()).map_or_else(attempt, Ok)?;
    Ok(Outcome::Passed)
}
