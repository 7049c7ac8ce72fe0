//! The listening page in Debian's Chromium.

use crate::stage::{Log, Outcome, StageResult, on_build_server};
use crate::{debian, npm, programs};

/// Runs the tests that need a browser and the accessibility checker.
pub(crate) fn run(log: &Log) -> StageResult {
    if let Err(why) = debian::require(log, &debian::BROWSER) {
        return unavailable(why);
    }
    let packages = npm::install(log)?;
    let mut tests = programs::test(log, "browser")?;
    log.run(tests.arg("--ignored").env("BROWSER_PACKAGES", packages))?;
    Ok(Outcome::Passed)
}

/// What cannot be installed is skipped; on a build server it is a failure.
pub(crate) fn unavailable(why: String) -> StageResult {
    if on_build_server() { Err(why) } else { Ok(Outcome::Skipped(why)) }
}
