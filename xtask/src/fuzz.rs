//! Fuzzing: each target for a number of runs, from the kept corpus.

use std::path::Path;
use std::process::Command;

use crate::setup::cargo_fuzz_path;
use crate::stage::root;

/// The targets in `fuzz/`.
pub(crate) const TARGETS: [&str; 6] =
    ["parser", "validator", "session", "envelope", "asp_session", "listener"];
/// How many inputs each target is given.
pub(crate) const RUNS: u64 = 200_000;

/// Fuzzes one target. What the fuzzer finds goes to a copy, so that a run leaves the corpus as it was; a crash stays in
/// `fuzz/artifacts` with the words to repeat it.
pub(crate) fn run(target: &str, runs: u64) -> Result<(), String> {
    let kept = root().join("fuzz/corpus").join(target);
    let found = root().join("target/fuzz-corpus").join(target);
    copy(&kept, &found).map_err(|error| format!("the corpus {}: {error}", kept.display()))?;
    // On a stable toolchain there is no sanitizer; the assertions and panics are what is looked for.
    let mut fuzz = Command::new(cargo_fuzz_path());
    fuzz.args(["fuzz", "run", "-s", "none", target]).arg(&found).arg("--");
    fuzz.args([
        format!("-runs={runs}"),
        "-seed=1".to_owned(),
        "-max_len=4096".to_owned(),
        "-verbosity=1".to_owned(),
    ]);
    // libFuzzer talks a lot; what it said matters only when it found something.
    let output =
        fuzz.current_dir(root()).output().map_err(|error| format!("cargo-fuzz could not be run: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        println!("{said}");
        return Err(format!("cargo-fuzz ended with {}", output.status));
    }
    println!("{}", said.lines().rev().find(|line| line.starts_with("Done ")).unwrap_or("done"));
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
