//! Mutation testing of the modules that decide who may do what. cargo-mutants changes one expression at a time, and the
//! tests must fail. A change that they do not notice is a survivor, which `docs/security.md` must explain.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::{StageLog, cargo, command_output, root, succeeds};

/// A module to mutate, and the tests that must notice.
struct MutationScope {
    name: &'static str,
    package: &'static str,
    /// The files and folders of the module, relative to the root.
    paths: &'static [&'static str],
    /// The packages whose tests run.
    test_packages: &'static [&'static str],
    /// Parts of the names of the tests that run. If the list is empty, all tests run.
    tests: &'static [&'static str],
    /// Tests whose names contain one of these texts are skipped.
    skipped_tests: &'static [&'static str],
}

/// The tests of a module's own crate run. For `wire::auth`, the binary's tests of authentication run too, because only the
/// binary uses tokens and cookies.
const SCOPES: [MutationScope; 6] = [
    MutationScope {
        name: "aaep::consent",
        package: "aaep",
        paths: &["crates/aaep/src/consent"],
        test_packages: &["aaep"],
        tests: &[],
        skipped_tests: &[],
    },
    MutationScope {
        name: "aaep::session",
        package: "aaep",
        paths: &["crates/aaep/src/session"],
        test_packages: &["aaep"],
        tests: &[],
        skipped_tests: &[],
    },
    MutationScope {
        name: "asp::session",
        package: "asp",
        paths: &["crates/asp/src/session"],
        test_packages: &["asp"],
        tests: &[],
        skipped_tests: &[],
    },
    MutationScope {
        name: "hub::core",
        package: "hub",
        paths: &["crates/hub/src/core"],
        test_packages: &["hub"],
        tests: &[],
        skipped_tests: &[],
    },
    MutationScope {
        name: "wire::auth",
        package: "wire",
        paths: &["crates/wire/src/auth"],
        test_packages: &["wire", "sayso-cli"],
        tests: &["auth::", "serve::authorization", "serve::reload", "serve::sign_in"],
        skipped_tests: &[],
    },
    MutationScope {
        name: "sayso::consent",
        package: "sayso",
        paths: &["crates/sayso/src/consent.rs", "crates/sayso/src/consent"],
        test_packages: &["sayso"],
        tests: &[],
        // They run the examples, which `cargo test --test all` does not build.
        skipped_tests: &["examples::"],
    },
];

/// How many times as long as the unchanged tests a test run may take. Then it counts as failed, because a mutant can make a
/// test wait forever.
const TIMEOUT_FACTOR: &str = "8";
/// The shortest such limit, in seconds. On a busy machine, fast tests can take much longer than before.
const MIN_TIMEOUT_SECONDS: &str = "120";

/// The page that explains every survivor.
const SURVIVORS_PAGE: &str = "docs/security.md";

/// What to mutate.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct MutationSelection {
    /// Mutate only lines that differ from this commit.
    in_diff: Option<String>,
    /// Mutate only these files and folders, relative to the root.
    paths: Vec<String>,
}

impl MutationSelection {
    /// Parses `[--in-diff REF] [PATH…]`. Returns `None` if an option is unknown or lacks its value.
    pub(crate) fn parse(arguments: &[&str]) -> Option<Self> {
        let mut selection = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match *argument {
                "--in-diff" => selection.in_diff = Some((*arguments.next()?).to_owned()),
                option if option.starts_with('-') => return None,
                path => selection.paths.push(path.trim_end_matches('/').to_owned()),
            }
        }
        Some(selection)
    }

    /// Returns the files and folders to mutate in each scope. Fails if a path is in no scope.
    fn scopes(&self) -> Result<Vec<(&'static MutationScope, Vec<String>)>, String> {
        let mut selected = Vec::new();
        for scope in &SCOPES {
            let paths: Vec<String> = if self.paths.is_empty() {
                scope.paths.iter().map(|path| (*path).to_owned()).collect()
            } else {
                self.paths.iter().filter(|path| scope.contains(path)).cloned().collect()
            };
            if !paths.is_empty() {
                selected.push((scope, paths));
            }
        }
        match self.paths.iter().find(|path| !SCOPES.iter().any(|scope| scope.contains(path))) {
            Some(path) => {
                let known: Vec<&str> = SCOPES.iter().flat_map(|scope| scope.paths).copied().collect();
                Err(format!("{path} is in none of {}", known.join(", ")))
            }
            None => Ok(selected),
        }
    }
}

impl MutationScope {
    fn contains(&self, path: &str) -> bool {
        self.paths.iter().any(|folder| Path::new(path).starts_with(folder))
    }
}

/// How many mutants of a scope had each outcome, and the survivors, such as
/// `crates/hub/src/core/questions.rs:12:5: replace == with != in Core::wait`.
#[derive(Debug, Default, PartialEq)]
struct MutationReport {
    caught: usize,
    /// The tests did not end in time, which also counts as noticed.
    timed_out: usize,
    /// The mutant does not compile.
    unviable: usize,
    survivors: Vec<String>,
}

/// Mutates the selected modules and prints a table. Fails if a survivor is not explained.
pub(crate) fn run(log: &StageLog, selection: &MutationSelection) -> Result<(), String> {
    let scopes = selection.scopes()?;
    install(log)?;
    let folder = root().join("target/mutants");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let diff = match &selection.in_diff {
        Some(commit) => Some(write_diff(&folder, commit)?),
        None => None,
    };
    let mut reports = Vec::new();
    for (scope, paths) in scopes {
        reports.push((scope.name, mutate(log, &folder, scope, &paths, diff.as_deref())?));
    }
    log.print(&table(&reports));
    let page = std::fs::read_to_string(root().join(SURVIVORS_PAGE)).unwrap_or_default();
    let survivors = reports.iter().flat_map(|(_, report)| &report.survivors);
    let unexplained: Vec<&str> =
        survivors.map(String::as_str).filter(|survivor| !is_explained(&page, survivor)).collect();
    if unexplained.is_empty() {
        return Ok(());
    }
    Err(format!("{SURVIVORS_PAGE} does not explain these survivors:\n{}", unexplained.join("\n")))
}

fn install(log: &StageLog) -> Result<(), String> {
    if succeeds(cargo().args(["mutants", "--version"])) {
        return Ok(());
    }
    log.cargo(&["install", "--locked", "cargo-mutants"])
}

/// Writes the differences between a commit and the files of the workspace.
fn write_diff(folder: &Path, commit: &str) -> Result<PathBuf, String> {
    let diff = command_output(Command::new("git").args(["diff", commit, "--"]).current_dir(root()))?;
    let path = folder.join("changes.diff");
    std::fs::write(&path, diff + "\n").map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Runs cargo-mutants on a copy of the workspace.
fn mutate(
    log: &StageLog,
    folder: &Path,
    scope: &MutationScope,
    paths: &[String],
    diff: Option<&Path>,
) -> Result<MutationReport, String> {
    let output = folder.join(scope.name.replace("::", "-"));
    let mut command = cargo();
    command.args(["mutants", "--jobs=1", "--no-shuffle", "--colors=never"]);
    command.args(["--timeout-multiplier", TIMEOUT_FACTOR, "--minimum-test-timeout", MIN_TIMEOUT_SECONDS]);
    command.args(["--package", scope.package, "--test-package", &scope.test_packages.join(",")]);
    for path in paths {
        let is_folder = root().join(path).is_dir();
        command.args(["--file", &if is_folder { format!("{path}/**") } else { path.clone() }]);
    }
    if let Some(diff) = diff {
        command.arg("--in-diff").arg(diff);
    }
    // Only these test programs are built and run, because others need installed programs.
    command.args(["--cargo-arg=--lib", "--cargo-arg=--test=all"]);
    command.arg("--output").arg(&output).args(["--", "--"]).args(scope.tests);
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

/// Reads the lists that cargo-mutants wrote. A list is missing if no changed line can be mutated.
fn read_report(folder: &Path) -> Result<MutationReport, String> {
    let lines = |name: &str| -> Result<Vec<String>, String> {
        match std::fs::read_to_string(folder.join(name)) {
            Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(format!("{}/{name}: {error}", folder.display())),
        }
    };
    Ok(MutationReport {
        caught: lines("caught.txt")?.len(),
        timed_out: lines("timeout.txt")?.len(),
        unviable: lines("unviable.txt")?.len(),
        survivors: lines("missed.txt")?,
    })
}

/// Returns a table with a row for each scope, and the survivors.
fn table(reports: &[(&str, MutationReport)]) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        "{:16} {:>6} {:>6} {:>9} {:>8} {:>9}\n",
        "module", "viable", "caught", "timed out", "survived", "noticed"
    );
    for (name, report) in reports {
        let MutationReport { caught, timed_out, survivors, .. } = report;
        let noticed = caught + timed_out;
        let viable = noticed + survivors.len();
        // Rounded down, so that 100 % means all.
        let percent =
            (noticed * 100).checked_div(viable).map_or("-".to_owned(), |percent| format!("{percent} %"));
        let survived = survivors.len();
        let _ = writeln!(text, "{name:16} {viable:>6} {caught:>6} {timed_out:>9} {survived:>8} {percent:>9}");
    }
    for survivor in reports.iter().flat_map(|(_, report)| &report.survivors) {
        let _ = writeln!(text, "survived: {survivor}");
    }
    text.truncate(text.trim_end().len());
    text
}

/// Returns whether a row of the page names the survivor's file and change. Line numbers are ignored.
fn is_explained(page: &str, survivor: &str) -> bool {
    let mut parts = survivor.splitn(4, ':');
    let (Some(path), Some(change)) = (parts.next(), parts.nth(2)) else { return false };
    let (path, change) = (format!("`{path}`"), format!("`{}`", change.trim()));
    page.lines().any(|line| line.contains(&path) && line.contains(&change))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selection_is_parsed() {
        let selection = MutationSelection::parse(&["--in-diff", "main", "crates/hub/src/core/"]).unwrap();
        assert_eq!(selection.in_diff.as_deref(), Some("main"));
        assert_eq!(selection.paths, ["crates/hub/src/core"]);
        assert_eq!(MutationSelection::parse(&[]), Some(MutationSelection::default()));
        assert_eq!(MutationSelection::parse(&["--in-diff"]), None);
        assert_eq!(MutationSelection::parse(&["--jobs"]), None);
    }

    #[test]
    fn a_path_selects_its_scope_and_a_path_outside_all_scopes_is_refused() {
        let names = |selection: &MutationSelection| -> Result<Vec<&str>, String> {
            Ok(selection.scopes()?.into_iter().map(|(scope, _)| scope.name).collect())
        };
        let all = MutationSelection::default();
        assert_eq!(names(&all).unwrap().len(), SCOPES.len());
        let one = MutationSelection::parse(&["crates/hub/src/core/questions.rs"]).unwrap();
        assert_eq!(names(&one).unwrap(), ["hub::core"]);
        let outside =
            MutationSelection::parse(&["crates/hub/src/core", "crates/hub/src/corelike.rs"]).unwrap();
        let error = names(&outside).unwrap_err();
        assert!(error.starts_with("crates/hub/src/corelike.rs is in none of crates/aaep/"), "{error}");
    }

    #[test]
    fn every_path_of_a_scope_exists() {
        for path in SCOPES.iter().flat_map(|scope| scope.paths) {
            assert!(root().join(path).exists(), "{path} does not exist");
        }
    }

    #[test]
    fn the_table_counts_timeouts_as_noticed_and_lists_survivors() {
        let survivors = vec!["a.rs:1:2: replace f with ()".to_owned()];
        let report = MutationReport { caught: 17, timed_out: 2, unviable: 5, survivors };
        let text = table(&[("hub::core", report), ("wire::auth", MutationReport::default())]);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["hub::core", "20", "17", "2", "1", "95", "%"]);
        assert_eq!(rows[2], ["wire::auth", "0", "0", "0", "0", "-"]);
        assert_eq!(text.lines().last(), Some("survived: a.rs:1:2: replace f with ()"));
    }

    #[test]
    fn a_survivor_is_explained_by_a_row_with_its_file_and_change() {
        let page = "| `crates/a.rs` | `replace a::f -> bool with true` | Only speed depends on it. |";
        assert!(is_explained(page, "crates/a.rs:31:9: replace a::f -> bool with true"));
        assert!(!is_explained(page, "crates/b.rs:31:9: replace a::f -> bool with true"));
        assert!(!is_explained(page, "crates/a.rs:31:9: replace a::f -> bool with false"));
        assert!(!is_explained(page, "not a survivor"));
    }
}
