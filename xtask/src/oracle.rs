//! Comparisons with what AAEP's authors published. The files lie next to the repository and are not part of it.

use crate::stage::{StageLog, StageOutcome, StageResult, root};
use crate::{conformance, test_programs};

/// Runs the tests that need the published schemas and fixtures. Skips the tests if these files are missing.
pub(crate) fn run(log: &StageLog) -> StageResult {
    let shared = root().join("../shared");
    if !shared.join("aaep/schemas").is_dir() {
        return Ok(StageOutcome::Skipped(
            "../shared, which contains the files of AAEP's authors, is missing".to_owned(),
        ));
    }
    conformance::compare_with_list(&shared)?;
    log.run(test_programs::test_command(log, "oracle")?.arg("--ignored"))?;
    Ok(StageOutcome::Passed)
}
