//! Coverage-guided fuzzing. Runs each target with a number of inputs, starting from the stored corpus.
//!
//! The targets are ordinary binaries with libFuzzer linked in. This module sets the same compiler flags as
//! cargo-fuzz, so cargo-fuzz is not needed, and one build creates all targets.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::{StageLog, cargo, command_output, in_parallel, root};

/// The targets in `fuzz/`.
const TARGETS: [&str; 9] = [
    "parser",
    "validator",
    "session",
    "envelope",
    "asp_session",
    "listener",
    "bound_arguments",
    "token_file",
    "node_messages",
];

/// Number of inputs for each target.
pub(crate) const RUNS: u64 = 200_000;

/// Flags for edge and comparison coverage, plus the checks that a release build omits. A stable toolchain has no
/// sanitizer, so fuzzing looks for failed assertions and panics.
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

/// Fuzzes every target. Inputs that cause a failure are stored in `fuzz/artifacts/TARGET`.
pub(crate) fn run(log: &StageLog, runs: u64) -> Result<(), String> {
    let programs = build(log)?;
    let results = in_parallel(&TARGETS, |target| fuzz(log, &programs, target, runs));
    let failed: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

/// Builds all targets and returns their folder. The explicit target triple keeps the flags away from build scripts and
/// macros, which run on the host.
fn build(log: &StageLog) -> Result<PathBuf, String> {
    let version = command_output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc reports no host")?;
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

/// Fuzzes one target with a copy of the corpus, so the stored corpus does not change.
fn fuzz(log: &StageLog, programs: &Path, target: &str, runs: u64) -> Result<(), String> {
    let corpus = root().join("fuzz/corpus").join(target);
    let working_corpus = root().join("target/fuzz-corpus").join(target);
    let artifacts = root().join("fuzz/artifacts").join(target);
    copy_folder(&corpus, &working_corpus)
        .map_err(|error| format!("cannot copy the corpus {}: {error}", corpus.display()))?;
    std::fs::create_dir_all(&artifacts).map_err(|error| format!("{}: {error}", artifacts.display()))?;
    let output = Command::new(programs.join(target))
        .args([format!("-runs={runs}"), format!("-artifact_prefix={}/", artifacts.display())])
        .args(["-seed=1", "-max_len=4096", "-verbosity=1"])
        .arg(&working_corpus)
        .output()
        .map_err(|error| format!("cannot run {target}: {error}"))?;
    // libFuzzer prints a lot, so its output is shown only if the target fails.
    let messages = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        log.print(&messages);
        return Err(format!("{target} ended with {}", output.status));
    }
    let done = messages.lines().rev().find(|line| line.starts_with("Done ")).unwrap_or("done");
    log.print(&format!("{target}: {done}"));
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
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
