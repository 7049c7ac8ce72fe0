//! `sayso hook` and `sayso acp` with real coding agents, pinned by version and hash, against a scripted model.
//!
//! The tests are in `crates/cli/tests/harnesses`. The installations are large, so each harness has its own folder.

use std::process::Command;

use crate::stage::{StageLog, root};
use crate::{debian, npm, test_programs};

/// A harness: its name, which its tests contain, and what its tests need besides.
pub(crate) struct HarnessPackage {
    pub(crate) name: &'static str,
    /// A package whose own script must run after the installation. It copies a program from another package.
    install_script: Option<&'static str>,
    /// Other harnesses whose packages the tests use.
    also: &'static [&'static str],
}

/// All harnesses that can run here. Cursor and VS Code cannot. The packages are in `xtask/gates/harnesses`.
pub(crate) const HARNESSES: [HarnessPackage; 5] = [
    HarnessPackage { name: "claude", install_script: Some("@anthropic-ai/claude-code"), also: &[] },
    // The packages of Claude Code include Node.js 22, which the others need.
    HarnessPackage { name: "codex", install_script: None, also: &["claude"] },
    HarnessPackage { name: "gemini", install_script: None, also: &["claude"] },
    HarnessPackage { name: "opencode", install_script: None, also: &["claude"] },
    // Claude Code behind the adapter that speaks ACP.
    HarnessPackage { name: "adapter", install_script: None, also: &["claude"] },
];

/// Installs a harness, if necessary, and runs its tests.
pub(crate) fn run(log: &StageLog, harness: &HarnessPackage) -> Result<(), String> {
    let folder = root().join("target/gates");
    debian::require(log, &debian::TERMINAL)?;
    let needed = HARNESSES.iter().filter(|other| harness.also.contains(&other.name));
    for harness in needed.chain([harness]) {
        install(log, harness)?;
    }
    let mut tests = test_programs::test_command(log, "harnesses")?;
    tests.args(["--ignored", "--nocapture", "--test-threads=1", harness.name]).env("HARNESSES", &folder);
    test_programs::run_selected(log, &mut tests)
}

fn install(log: &StageLog, harness: &HarnessPackage) -> Result<(), String> {
    let pins = root().join("xtask/gates/harnesses").join(harness.name);
    let folder = root().join("target/gates").join(harness.name);
    let is_new = npm::install_pinned(log, &pins, &folder)?;
    if let Some(package) = harness.install_script.filter(|_| is_new) {
        log.run(Command::new("npm").args(["rebuild", package]).current_dir(&folder))?;
    }
    Ok(())
}
