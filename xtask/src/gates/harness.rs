//! `sayso hook` with real coding agents, pinned by version, against a scripted model.
//!
//! The tests are in `crates/cli/tests/harnesses`. The installations are large, so each harness has its own folder.

use std::path::Path;
use std::process::Command;

use crate::stage::{StageLog, root};
use crate::test_programs;

/// A harness: its name, which its tests contain, and its npm packages.
pub(crate) struct HarnessPackage {
    pub(crate) name: &'static str,
    packages: &'static [&'static str],
}

/// All harnesses that can run here. Cursor and VS Code cannot.
pub(crate) const HARNESSES: [HarnessPackage; 4] = [
    // Claude Code needs Node.js 22. An installation without a version would pick an old Claude Code on an old Node.js.
    HarnessPackage { name: "claude", packages: &["@anthropic-ai/claude-code@2.1.325", "node@22.23.3"] },
    HarnessPackage { name: "codex", packages: &["@openai/codex@0.166.0"] },
    HarnessPackage { name: "gemini", packages: &["@google/gemini-cli@0.61.0"] },
    HarnessPackage { name: "opencode", packages: &["opencode-ai@1.18.33"] },
];

/// Installs a harness, if necessary, and runs its tests.
pub(crate) fn run(log: &StageLog, harness: &HarnessPackage) -> Result<(), String> {
    let folder = root().join("target/gates");
    install(log, &folder.join(harness.name), harness)?;
    let mut tests = test_programs::test_command(log, "harnesses")?;
    tests.args(["--ignored", "--nocapture", "--test-threads=1", harness.name]).env("HARNESSES", &folder);
    test_programs::run_selected(log, &mut tests)
}

fn install(log: &StageLog, folder: &Path, harness: &HarnessPackage) -> Result<(), String> {
    let error = |error: std::io::Error| format!("cannot install {}: {error}", harness.name);
    let (marker, wanted) = (folder.join("installed"), harness.packages.join("\n"));
    if std::fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(error)?;
    std::fs::write(folder.join("package.json"), r#"{"name":"gates","private":true}"#).map_err(error)?;
    log.run(
        Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--save-exact"])
            .args(harness.packages)
            .current_dir(folder),
    )?;
    std::fs::write(marker, wanted).map_err(error)
}
