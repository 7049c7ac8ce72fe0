//! The TypeScript package: its own tests, other runtimes, and each adapter against its real framework.
//!
//! `typescript/package.json` names the commands. Each `package-lock.json` pins every package of its folder by version and hash.

use std::process::Command;

use crate::stage::{
    Plan, StageLane, StageLog, StageOutcome, StageResult, command, root, succeeds, target_folder,
};
use crate::test_programs;

/// The stage of the package's own tests: types, contract suite, redaction, `npm pack` and README.
const CORE: &str = "typescript-core";
/// The stage of the test in Chromium.
const BROWSER: &str = "typescript-browser";
/// The names under which Chromium is installed.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// The stage that repeats the contract suite on Node 22, Deno and Bun.
const RUNTIMES: &str = "typescript-runtimes";
/// The adapters. Each is a folder of `typescript/frameworks`; its stage is called `typescript-NAME`.
const FRAMEWORKS: [(&str, &str); 5] = [
    ("typescript-ai", "ai"),
    ("typescript-openai-agents", "openai-agents"),
    ("typescript-langchain", "langchain"),
    ("typescript-mastra", "mastra"),
    ("typescript-claude-agent", "claude-agent"),
];

/// Adds the wanted stages, and returns how many they are.
pub(super) fn add_stages(
    plan: &mut Plan<'_>,
    is_wanted: &dyn Fn(&str) -> bool,
    lane: StageLane,
    after: &'static [&'static str],
) -> usize {
    let mut added = 0;
    if is_wanted(CORE) {
        plan.add(CORE, lane, after, test_core);
        added += 1;
    }
    if is_wanted(BROWSER) {
        plan.add(BROWSER, lane, after, test_browser);
        added += 1;
    }
    if is_wanted(RUNTIMES) {
        plan.add(RUNTIMES, lane, after, test_runtimes);
        added += 1;
    }
    for (stage, name) in FRAMEWORKS.iter().filter(|(stage, _)| is_wanted(stage)) {
        plan.add(stage, lane, after, |log| test_framework(log, name));
        added += 1;
    }
    added
}

/// Runs the benchmark of the client with this number of calls.
pub(super) fn bench(log: &StageLog, calls: &str) -> StageResult {
    build(log)?;
    let binary = target_folder().join("release/sayso");
    log.run(npm().args(["run", "bench", "--", calls]).env("TEST_SAYSO_BINARY", binary))?;
    Ok(().into())
}

fn test_core(log: &StageLog) -> StageResult {
    build(log)?;
    log.run(npm_with_hub(log)?.arg("test"))?;
    Ok(().into())
}

fn test_browser(log: &StageLog) -> StageResult {
    if !BROWSERS.iter().any(|name| succeeds(Command::new(name).arg("--version"))) {
        return Ok(StageOutcome::Skipped("Chromium is not installed".to_owned()));
    }
    build(log)?;
    log.run(npm_with_hub(log)?.args(["run", "test:browser"]))?;
    Ok(().into())
}

fn test_runtimes(log: &StageLog) -> StageResult {
    build(log)?;
    log.run(npm().args(["run", "setup:runtimes"]))?;
    log.run(npm_with_hub(log)?.args(["run", "test:runtimes"]))?;
    Ok(().into())
}

fn test_framework(log: &StageLog, name: &str) -> StageResult {
    build(log)?;
    log.run(npm().args(["run", "setup:frameworks", "--", name]))?;
    log.run(npm_with_hub(log)?.args(["run", "test:frameworks", "--", name]))?;
    Ok(().into())
}

/// Installs the compiler, and builds the package and its tests.
fn build(log: &StageLog) -> Result<(), String> {
    log.run(npm().args(["ci", "--no-audit", "--no-fund"]))?;
    log.run(npm().args(["run", "build"]))?;
    log.run(npm().args(["run", "types"]))
}

/// Returns npm in the folder of the package.
fn npm() -> Command {
    let mut npm = command("npm");
    npm.current_dir(root().join("typescript"));
    npm
}

/// Returns npm for tests that run a hub.
fn npm_with_hub(log: &StageLog) -> Result<Command, String> {
    let mut npm = npm();
    npm.env("TEST_SAYSO_BINARY", test_programs::sayso_binary(log)?);
    Ok(npm)
}
