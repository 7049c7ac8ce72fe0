//! The test of two ASP nodes in two network namespaces.

use std::process::Command;

use crate::browser::unavailable;
use crate::stage::{StageLog, StageOutcome, StageResult, command_output};
use crate::{debian, test_programs};

/// The namespace that is created to find out whether this is permitted.
const PROBE: &str = "sayso-xtask-probe";

/// Runs the test that needs root and `ip`. Without them, the stage is skipped.
pub(crate) fn run(log: &StageLog) -> StageResult {
    if let Err(reason) = debian::require(log, &debian::NETWORK) {
        return unavailable(reason);
    }
    if let Err(reason) = command_output(Command::new("ip").args(["netns", "add", PROBE])) {
        // Containers often forbid this, on build servers too.
        return Ok(StageOutcome::Skipped(format!("network namespaces cannot be created here: {reason}")));
    }
    command_output(Command::new("ip").args(["netns", "del", PROBE]))?;
    let mut tests = test_programs::test_command(log, "asp_node")?;
    log.run(tests.args(["--ignored", "namespaces::"]))?;
    Ok(StageOutcome::Passed)
}
