//! Comparisons with the files that AAEP's authors published. The files are in `../shared`, outside the repository.

use crate::stage::{StageLog, StageOutcome, StageResult, root};
use crate::{conformance, test_programs};

/// Runs the tests that need the published files. Skips the stage if they are missing.
pub(crate) fn run(log: &StageLog) -> StageResult {
    let shared = root().join("../shared");
    if !shared.join("aaep/schemas").is_dir() {
        return Ok(StageOutcome::Skipped(
            "../shared, which contains the files of AAEP's authors, is missing".to_owned(),
        ));
    }
    conformance::compare_with_original_requirements(&shared)?;
    log.run(test_programs::test_command(log, "oracle")?.arg("--ignored"))?;
    Ok(StageOutcome::Passed)
}
