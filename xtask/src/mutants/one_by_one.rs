//! Runs cargo-mutants, which makes a separate build for each mutant. Used for the mutants that cannot be put behind a switch in
//! the shared build.

use std::path::Path;

use super::mutant::{Mutant, file_pattern};
use super::{MutationReport, MutationScope, Survivor};
use crate::stage::{StageLog, cargo};

/// How many times as long as the unchanged tests a test run may take. Then it counts as failed, because a mutant can make a
/// test wait forever.
const TIMEOUT_FACTOR: &str = "8";
/// The shortest such limit, in seconds. On a busy machine, fast tests can take much longer than before.
const MIN_TIMEOUT_SECONDS: &str = "120";

/// Runs cargo-mutants with these mutants on a copy of the workspace.
pub(super) fn mutate(
    log: &StageLog,
    folder: &Path,
    scope: &MutationScope,
    mutants: &[Mutant],
) -> Result<MutationReport, String> {
    if mutants.is_empty() {
        return Ok(MutationReport::default());
    }
    let output = folder.join(scope.name.replace("::", "-"));
    let mut command = cargo();
    command.args(["mutants", "--jobs=1", "--no-shuffle", "--colors=never"]);
    command.args(["--timeout-multiplier", TIMEOUT_FACTOR, "--minimum-test-timeout", MIN_TIMEOUT_SECONDS]);
    let test_packages: Vec<&str> = scope.test_programs.iter().map(|(package, _)| *package).collect();
    let test_packages = [&[scope.package], &*test_packages].concat().join(",");
    command.args(["--package", scope.package, "--test-package", &test_packages]);
    command.args(scope.feature_arguments());
    command.args(scope.paths.iter().flat_map(|path| ["--file".to_owned(), file_pattern(path)]));
    command.args(mutants.iter().flat_map(|mutant| ["--re".to_owned(), exact_pattern(&mutant.name)]));
    // Builds and runs only the unit tests and these test programs, because the other ones need programs that may not be
    // installed.
    command.arg("--cargo-arg=--lib");
    command.args(scope.test_programs.iter().map(|(_, program)| format!("--cargo-arg=--test={program}")));
    command.arg("--output").arg(&output).args(["--", "--"]);
    command.args(scope.skipped_tests.iter().flat_map(|test| ["--skip", test]));
    // Each mutant changes only one crate, so incremental compilation is faster. Debug information is not needed.
    command.env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_DEV_DEBUG", "0");
    // In a shared target folder, cargo could mistake a mutant of an earlier run for the original.
    command.env_remove("CARGO_TARGET_DIR");
    let results = output.join("mutants.out");
    if results.exists() {
        std::fs::remove_dir_all(&results).map_err(|error| format!("{}: {error}", results.display()))?;
    }
    log.redirect(&mut command)?;
    let status = command.status().map_err(|error| format!("cannot run cargo-mutants: {error}"))?;
    match status.code() {
        // 2: some mutants survived. 3: the tests of some mutants did not end.
        Some(0 | 2 | 3) => read_report(&results),
        _ => Err(format!("cargo-mutants ended with {status} for {}", scope.name)),
    }
}

/// Returns a regular expression that matches only this name.
fn exact_pattern(name: &str) -> String {
    let mut pattern = "^".to_owned();
    for character in name.chars() {
        if character.is_ascii_punctuation() {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern + "$"
}

/// Reads the lists that cargo-mutants wrote.
fn read_report(folder: &Path) -> Result<MutationReport, String> {
    let lines = |name: &str| -> Result<Vec<String>, String> {
        match std::fs::read_to_string(folder.join(name)) {
            Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(format!("{}/{name}: {error}", folder.display())),
        }
    };
    let survivors = lines("missed.txt")?.into_iter().map(|name| Survivor { name, is_reached: true });
    Ok(MutationReport {
        caught: lines("caught.txt")?.len(),
        timed_out: lines("timeout.txt")?.len(),
        unviable: lines("unviable.txt")?.len(),
        left_out: 0,
        survivors: survivors.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_pattern_escapes_all_punctuation() {
        let pattern = exact_pattern("a.rs:1:2: replace f -> u8 with 1+(1)");
        assert_eq!(pattern, r"^a\.rs\:1\:2\: replace f \-\> u8 with 1\+\(1\)$");
    }
}
