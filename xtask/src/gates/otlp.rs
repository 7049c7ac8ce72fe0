//! `sayso serve --otlp-listen` with OpenTelemetry's own SDK for Python.

use std::process::Command;

use crate::stage::{StageLog, root, succeeds};
use crate::{setup, test_programs};

/// Installs the SDK and runs the test that needs it.
pub(crate) fn run(log: &StageLog) -> Result<(), String> {
    let folder = root().join("target/tools/otlp");
    let (pip, python) = (folder.join("bin/pip"), folder.join("bin/python"));
    if !succeeds(Command::new(&pip).arg("--version")) {
        setup::install_programs(log)?;
        log.run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    // Only wheels are installed, because building a package would download tools that are not pinned.
    let arguments = [
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
        "--only-binary=:all:",
        "-r",
    ];
    log.run(Command::new(&pip).args(arguments).arg(root().join("xtask/packages/otlp-requirements.txt")))?;
    let mut tests = test_programs::test_command(log, "all")?;
    tests.args(["--ignored", "serve::otlp::"]).env("OTLP_PYTHON", python);
    test_programs::run_selected(log, &mut tests)
}
