//! Tests of the listening page in Debian's Chromium.

use crate::stage::{self, StageLog, StageOutcome, StageResult, is_build_server};
use crate::{debian, npm, test_programs};

/// Runs the tests that need a browser and the accessibility checker.
pub(crate) fn run(log: &StageLog) -> StageResult {
    if let Err(reason) = debian::require(log, &debian::BROWSER) {
        return unavailable(reason);
    }
    let packages = npm::install(log)?;
    let mut tests = test_programs::test_command(log, "browser")?;
    tests.arg("--ignored").env("BROWSER_PACKAGES", packages);
    stage::retry(log, "browser", 2, || log.run(&mut tests))?;
    Ok(StageOutcome::Passed)
}

/// Returns the result of a stage whose packages cannot be installed: skipped, or failed on a build server.
pub(crate) fn unavailable(reason: String) -> StageResult {
    if is_build_server() { Err(reason) } else { Ok(StageOutcome::Skipped(reason)) }
}
