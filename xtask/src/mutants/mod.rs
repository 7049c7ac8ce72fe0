//! Mutation testing of the modules that decide who may do what: one expression is changed at a time, and the tests must
//! fail. A change that they do not notice is a survivor, which `docs/security.md` must explain.
//!
//! cargo-mutants lists the changes (`mutant`), but it would build the workspace for each of them. So all mutants of a module
//! are compiled into one build, each behind a switch (`rewrite`, `build`), and each mutant runs with the tests that reach
//! its code (`test_runs`). Only cargo-mutants itself can try the few mutants that cannot be switched (`one_by_one`).

mod build;
mod mutant;
mod one_by_one;
mod rewrite;
mod test_runs;

use std::path::{Path, PathBuf};
use std::process::Command;

use build::MutatedTree;
use mutant::Mutant;
use test_runs::MutantOutcome;

use crate::stage::{StageLog, cargo, command_output, in_parallel, root, succeeds};

/// A module to mutate, and the tests that must notice.
struct MutationScope {
    name: &'static str,
    package: &'static str,
    /// The features of `package` that the mutated code needs.
    features: &'static [&'static str],
    /// The files and folders of the module, relative to the root.
    paths: &'static [&'static str],
    /// The packages and names of the test programs that run, besides the unit tests of `package`.
    test_programs: &'static [(&'static str, &'static str)],
    /// Tests whose names contain one of these texts are skipped.
    skipped_tests: &'static [&'static str],
}

/// The tests of a module's own crate run, and the cases of the rules for `aaep::session`, because the rules are tested there.
const SCOPES: [MutationScope; 6] = [
    MutationScope {
        name: "aaep::consent",
        package: "aaep",
        features: &[],
        paths: &["crates/aaep/src/consent"],
        test_programs: &[("aaep", "all")],
        skipped_tests: &[],
    },
    MutationScope {
        name: "aaep::session",
        package: "aaep",
        features: &[],
        paths: &["crates/aaep/src/session"],
        test_programs: &[("aaep", "all"), ("sayso-cli", "rules")],
        skipped_tests: &[],
    },
    MutationScope {
        name: "asp::session",
        package: "asp",
        features: &[],
        paths: &["crates/asp/src/session"],
        test_programs: &[("asp", "all")],
        skipped_tests: &[],
    },
    MutationScope {
        name: "hub::core",
        package: "hub",
        features: &[],
        paths: &["crates/hub/src/core"],
        // What shards share is tested through the server.
        test_programs: &[("hub", "all"), ("wire", "shards")],
        skipped_tests: &[],
    },
    MutationScope {
        name: "wire::auth",
        package: "wire",
        features: &[],
        paths: &["crates/wire/src/auth"],
        test_programs: &[],
        skipped_tests: &[],
    },
    MutationScope {
        name: "sayso::consent",
        package: "sayso",
        features: &["openai"],
        paths: &["crates/sayso/src/consent.rs", "crates/sayso/src/consent"],
        test_programs: &[("sayso", "all")],
        // They run the examples, which `cargo test --test all` does not build.
        skipped_tests: &["examples::"],
    },
];

/// The page that explains every survivor.
const SURVIVORS_PAGE: &str = "docs/security.md";

/// The selection of mutants.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct MutationSelection {
    /// Mutate only lines that differ from this commit.
    in_diff: Option<String>,
    /// Try only what survived the last run.
    survivors_only: bool,
    /// Try only what the last run left out.
    left_out_only: bool,
    /// Mutate only these files and folders, relative to the root.
    paths: Vec<String>,
}

impl MutationSelection {
    /// Parses `[--in-diff REF] [--survivors | --left-out] [PATH…]`. Returns `None` if an option is unknown or lacks its value.
    pub(crate) fn parse(arguments: &[&str]) -> Option<Self> {
        let mut selection = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match *argument {
                "--in-diff" => selection.in_diff = Some((*arguments.next()?).to_owned()),
                "--survivors" => selection.survivors_only = true,
                "--left-out" => selection.left_out_only = true,
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
    /// Returns the folder of the mutated crate.
    fn folder(&self) -> String {
        format!("crates/{}", self.package)
    }

    fn feature_arguments(&self) -> Vec<String> {
        self.features.iter().map(|feature| format!("--features={feature}")).collect()
    }

    fn uses_test(&self, name: &str) -> bool {
        !self.skipped_tests.iter().any(|part| name.contains(part))
    }

    fn contains(&self, path: &str) -> bool {
        self.paths.iter().any(|folder| Path::new(path).starts_with(folder))
    }
}

/// How many mutants of a scope had each outcome, and the survivors.
#[derive(Debug, Default)]
struct MutationReport {
    caught: usize,
    /// The tests did not end in time, which also counts as noticed.
    timed_out: usize,
    /// The mutant does not compile.
    unviable: usize,
    /// The mutant cannot be switched. Only a run with `--left-out` tries it.
    left_out: usize,
    survivors: Vec<Survivor>,
}

#[derive(Debug, PartialEq)]
struct Survivor {
    /// For example `crates/hub/src/core/questions.rs:12:5: replace == with != in Core::wait`.
    name: String,
    /// Whether a test runs the changed code.
    is_reached: bool,
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
        let mut mutants = mutant::list(scope, &paths, diff.as_deref())?;
        if selection.survivors_only {
            let survivors = read_list(&folder, scope, SURVIVORS)?;
            mutants.retain(|mutant| survivors.contains(&mutant.name));
        }
        let report = if selection.left_out_only {
            let left_out = read_list(&folder, scope, LEFT_OUT)?;
            mutants.retain(|mutant| left_out.contains(&mutant.name));
            one_by_one::mutate(log, &folder, scope, &mutants)?
        } else {
            mutate_together(log, &folder, scope, mutants)?
        };
        log.print(&table(&[(scope.name, &report)]));
        reports.push((scope.name, report));
    }
    let rows: Vec<(&str, &MutationReport)> = reports.iter().map(|(name, report)| (*name, report)).collect();
    log.print(&table(&rows));
    let page = std::fs::read_to_string(root().join(SURVIVORS_PAGE)).unwrap_or_default();
    let survivors = reports.iter().flat_map(|(_, report)| &report.survivors);
    let unexplained: Vec<&str> = survivors
        .map(|survivor| survivor.name.as_str())
        .filter(|survivor| !is_explained(&page, survivor))
        .collect();
    if unexplained.is_empty() {
        return Ok(());
    }
    Err(format!("{SURVIVORS_PAGE} does not explain these survivors:\n{}", unexplained.join("\n")))
}

fn install(log: &StageLog) -> Result<(), String> {
    if succeeds(cargo().args(["mutants", "--version"])) {
        return Ok(());
    }
    // It only lists mutants, for which it need not be optimized.
    log.cargo(&["install", "--locked", "--debug", "cargo-mutants"])
}

/// Writes the differences between a commit and the files of the workspace.
fn write_diff(folder: &Path, commit: &str) -> Result<PathBuf, String> {
    let diff = command_output(Command::new("git").args(["diff", commit, "--"]).current_dir(root()))?;
    let path = folder.join("changes.diff");
    std::fs::write(&path, diff + "\n").map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Builds all mutants of a scope at once, and runs each with the tests that reach it.
fn mutate_together(
    log: &StageLog,
    folder: &Path,
    scope: &MutationScope,
    mutants: Vec<Mutant>,
) -> Result<MutationReport, String> {
    if mutants.is_empty() {
        return Ok(MutationReport::default());
    }
    log.print(&format!("{}: {} mutants", scope.name, mutants.len()));
    let tree = MutatedTree::create()?;
    let build = tree.build(log, scope, mutants)?;
    let left_out: Vec<&str> = build.left_out.iter().map(|mutant| mutant.name.as_str()).collect();
    write_list(folder, scope, LEFT_OUT, &left_out)?;
    let tests = test_runs::measure(log, scope, &build.programs)?;
    let results = in_parallel(&build.mutants, |mutant| {
        let outcome = test_runs::try_mutant(mutant, &tests);
        if let Ok(outcome @ (MutantOutcome::Survived | MutantOutcome::NotReached)) = &outcome {
            log.print(&format!("{outcome:?}: {}", mutant.name));
        }
        outcome
    });
    let mut report = MutationReport {
        unviable: build.unviable.len(),
        left_out: build.left_out.len(),
        ..MutationReport::default()
    };
    for (mutant, outcome) in build.mutants.iter().zip(results) {
        let outcome = outcome?;
        match outcome {
            MutantOutcome::Caught => report.caught += 1,
            MutantOutcome::TimedOut => report.timed_out += 1,
            MutantOutcome::Survived | MutantOutcome::NotReached => report
                .survivors
                .push(Survivor { name: mutant.name.clone(), is_reached: outcome == MutantOutcome::Survived }),
        }
    }
    let survivors: Vec<&str> = report.survivors.iter().map(|survivor| survivor.name.as_str()).collect();
    write_list(folder, scope, SURVIVORS, &survivors)?;
    Ok(report)
}

/// The lists that a run leaves for the next one.
const SURVIVORS: &str = "survivors";
const LEFT_OUT: &str = "left-out";

fn list_path(folder: &Path, scope: &MutationScope, list: &str) -> PathBuf {
    folder.join(format!("{}.{list}", scope.name.replace("::", "-")))
}

fn write_list(folder: &Path, scope: &MutationScope, list: &str, names: &[&str]) -> Result<(), String> {
    let path = list_path(folder, scope, list);
    std::fs::write(&path, names.join("\n")).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns an empty list if no run has written it.
fn read_list(folder: &Path, scope: &MutationScope, list: &str) -> Result<Vec<String>, String> {
    let path = list_path(folder, scope, list);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Returns a table with a row for each scope, and the survivors.
fn table(reports: &[(&str, &MutationReport)]) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        "{:16} {:>6} {:>6} {:>9} {:>8} {:>9} {:>9} {:>8} {:>8}\n",
        "module", "viable", "caught", "timed out", "survived", "unreached", "unviable", "left out", "noticed"
    );
    for (name, report) in reports {
        let MutationReport { caught, timed_out, unviable, left_out, survivors } = report;
        let noticed = caught + timed_out;
        let viable = noticed + survivors.len();
        // Rounded down, so that 100 % means all.
        let percent =
            (noticed * 100).checked_div(viable).map_or("-".to_owned(), |percent| format!("{percent} %"));
        let unreached = survivors.iter().filter(|survivor| !survivor.is_reached).count();
        let survived = survivors.len();
        let _ = writeln!(
            text,
            "{name:16} {viable:>6} {caught:>6} {timed_out:>9} {survived:>8} {unreached:>9} {unviable:>9} {left_out:>8} {percent:>8}"
        );
    }
    for survivor in reports.iter().flat_map(|(_, report)| &report.survivors) {
        let _ = writeln!(text, "survived: {}", survivor.name);
    }
    text.truncate(text.trim_end().len());
    text
}

/// Returns whether a row of the page names the survivor's file and change. Line numbers are ignored.
fn is_explained(page: &str, survivor: &str) -> bool {
    let mut parts = survivor.splitn(4, ':');
    let (Some(path), Some(change)) = (parts.next(), parts.nth(2)) else { return false };
    let (path, change) = (format!("`{path}`"), format!("`{}`", change.trim()));
    // In a table, `|` is written as `\|`.
    page.lines()
        .map(|line| line.replace(r"\|", "|"))
        .any(|line| line.contains(&path) && line.contains(&change))
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
        let survivors = vec![Survivor { name: "a.rs:1:2: replace f with ()".to_owned(), is_reached: true }];
        let report = MutationReport { caught: 17, timed_out: 2, unviable: 5, left_out: 3, survivors };
        let text = table(&[("hub::core", &report), ("wire::auth", &MutationReport::default())]);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["hub::core", "20", "17", "2", "1", "0", "5", "3", "95", "%"]);
        assert_eq!(rows[2], ["wire::auth", "0", "0", "0", "0", "0", "0", "0", "-"]);
        assert_eq!(text.lines().last(), Some("survived: a.rs:1:2: replace f with ()"));
    }

    #[test]
    fn a_survivor_is_explained_by_a_row_with_its_file_and_change() {
        let page = "| `crates/a.rs` | `replace a::f -> bool with true` | Only speed depends on it. |";
        assert!(is_explained(page, "crates/a.rs:31:9: replace a::f -> bool with true"));
        assert!(!is_explained(page, "crates/b.rs:31:9: replace a::f -> bool with true"));
        assert!(!is_explained(page, "crates/a.rs:31:9: replace a::f -> bool with false"));
        assert!(!is_explained(page, "not a survivor"));
        let page = r"| `crates/a.rs` | `replace \|\| with && in f` | Only speed. |";
        assert!(is_explained(page, "crates/a.rs:31:9: replace || with && in f"));
    }
}
