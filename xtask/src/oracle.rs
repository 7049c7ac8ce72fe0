//! Comparisons with what AAEP's authors published, which lies beside the repository and is not part of it.

use crate::stage::{Log, Outcome, StageResult, root};
use crate::{conformance, programs};

/// Runs the tests that need the published schemas and fixtures; skipped where those are not there.
pub(crate) fn run(log: &Log) -> StageResult {
    let shared = root().join("../shared");
    if !shared.join("aaep/schemas").is_dir() {
        return Ok(Outcome::Skipped(
            "../shared, with what AAEP's authors published, is not there".to_owned(),
        ));
    }
    conformance::compare_with_list(&shared)?;
    log.run(programs::test(log, "oracle")?.arg("--ignored"))?;
    Ok(Outcome::Passed)
}
