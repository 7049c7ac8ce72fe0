//! `sayso acp` between an agent and a client of ACP's official SDK, in Node.js.

use crate::stage::StageLog;
use crate::{npm, test_programs};

/// Installs the SDK and runs the tests that need it.
pub(crate) fn run(log: &StageLog) -> Result<(), String> {
    let packages = npm::install(log)?;
    let mut tests = test_programs::test_command(log, "all")?;
    tests.args(["--ignored", "acp::sdk::"]).env("ACP_SDK", packages);
    test_programs::run_selected(log, &mut tests)
}
