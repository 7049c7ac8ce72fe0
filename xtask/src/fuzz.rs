//! Coverage-guided fuzzing: each target for a number of runs, from the kept corpus.
//!
//! The targets are ordinary binaries with libFuzzer linked in. They need only the compiler flags that cargo-fuzz also sets, so
//! cargo-fuzz itself is not needed, and one build makes all of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::{Log, cargo, in_parallel, printed, root};

/// The targets in `fuzz/`.
const TARGETS: [&str; 6] = ["parser", "validator", "session", "envelope", "asp_session", "listener"];

/// How many inputs each target is given.
pub(crate) const RUNS: u64 = 200_000;

/// Coverage of edges and comparisons for libFuzzer, and every check that a release build leaves out. A stable toolchain has no
/// sanitizer; assertions and panics are what is looked for.
const FLAGS: [&str; 9] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions",
    "-Coverflow-checks",
    "-Ccodegen-units=1",
];

/// Fuzzes every target. A crash stays in `fuzz/artifacts/TARGET`.
pub(crate) fn run(log: &Log, runs: u64) -> Result<(), String> {
    let programs = build(log)?;
    let results = in_parallel(&TARGETS, |target| fuzz(log, &programs, target, runs));
    let failed: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

/// Builds all targets; returns the folder that they are in. A target triple is named so that build scripts and macros, which
/// run on the host, are built without the flags.
fn build(log: &Log) -> Result<PathBuf, String> {
    let version = printed(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc names no host")?;
    let folder = root().join("target/fuzz");
    log.run(
        cargo()
            .args(["build", "--release", "--locked", "--target", host, "--target-dir"])
            .arg(&folder)
            .current_dir(root().join("fuzz"))
            .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}")),
    )?;
    Ok(folder.join(host).join("release"))
}

/// Fuzzes one target. New inputs go to a copy, so that a run leaves the corpus as it was.
fn fuzz(log: &Log, programs: &Path, target: &str, runs: u64) -> Result<(), String> {
    let kept = root().join("fuzz/corpus").join(target);
    let found = root().join("target/fuzz-corpus").join(target);
    let artifacts = root().join("fuzz/artifacts").join(target);
    copy(&kept, &found).map_err(|error| format!("the corpus {}: {error}", kept.display()))?;
    std::fs::create_dir_all(&artifacts).map_err(|error| format!("{}: {error}", artifacts.display()))?;
    let output = Command::new(programs.join(target))
        .args([format!("-runs={runs}"), format!("-artifact_prefix={}/", artifacts.display())])
        .args(["-seed=1", "-max_len=4096", "-verbosity=1"])
        .arg(&found)
        .output()
        .map_err(|error| format!("{target} could not be run: {error}"))?;
    // libFuzzer prints a lot, which matters only when it found something.
    let printed = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        log.say(&printed);
        return Err(format!("{target} ended with {}", output.status));
    }
    let done = printed.lines().rev().find(|line| line.starts_with("Done ")).unwrap_or("done");
    log.say(&format!("{target}: {done}"));
    Ok(())
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
