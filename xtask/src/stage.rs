//! The stages of a run. Each stage is logged, timed, and counted as passed, failed or skipped.
//!
//! A [`Plan`] runs its stages in parallel [`StageLane`]s. A lane runs its stages one after another, in the order in which
//! they were added. A stage also waits for the stages that it names. A run with one lane prints to the terminal.
//! With several lanes, each stage writes to `target/stages/NAME.log`, which is printed if the stage fails.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The outcome of a stage that did not fail.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StageOutcome {
    Passed,
    /// The stage could not run on this machine, for this reason. It is not counted as passed.
    Skipped(String),
}

impl From<()> for StageOutcome {
    fn from((): ()) -> Self {
        Self::Passed
    }
}

pub(crate) type StageResult = Result<StageOutcome, String>;

/// A group of stages that run one after another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum StageLane {
    /// Runs cargo or the compiler.
    Compile,
    /// Runs test programs.
    Test,
    /// Downloads, browsers and speech. These stages mostly wait.
    Waiting,
}

type StageWork<'a> = Box<dyn FnOnce(&StageLog) -> StageResult + Send + 'a>;

struct Stage<'a> {
    name: String,
    lane: StageLane,
    after: &'a [&'a str],
    work: StageWork<'a>,
}

/// The stages of a run.
#[derive(Default)]
pub(crate) struct Plan<'a>(Vec<Stage<'a>>);

/// The result of a finished stage.
struct StageReport {
    name: String,
    seconds: f64,
    result: StageResult,
    tests: Option<TestCount>,
}

impl<'a> Plan<'a> {
    /// Adds a stage. It runs after the stages in `after`, unless one of them failed.
    pub(crate) fn add<T: Into<StageOutcome>>(
        &mut self,
        name: &str,
        lane: StageLane,
        after: &'a [&'a str],
        work: impl FnOnce(&StageLog) -> Result<T, String> + Send + 'a,
    ) {
        let work = Box::new(|log: &StageLog| work(log).map(T::into));
        self.0.push(Stage { name: name.to_owned(), lane, after, work });
    }

    /// Adds a stage that runs cargo.
    pub(crate) fn cargo(&mut self, name: &str, after: &'a [&'a str], arguments: &'a [&'a str]) {
        self.add(name, StageLane::Compile, after, move |log| log.cargo(arguments));
    }

    #[cfg(test)]
    pub(crate) fn stage_names(&self) -> Vec<&str> {
        self.0.iter().map(|stage| stage.name.as_str()).collect()
    }

    /// Runs the stages and prints a summary. A failed stage does not stop the others, so one run shows all failures.
    pub(crate) fn run(self) -> ExitCode {
        let started_at = Instant::now();
        let mut lanes: Vec<(StageLane, Vec<Stage<'_>>)> = Vec::new();
        for stage in self.0 {
            match lanes.iter_mut().find(|(lane, _)| *lane == stage.lane) {
                Some((_, stages)) => stages.push(stage),
                None => lanes.push((stage.lane, vec![stage])),
            }
        }
        let prints_directly = lanes.len() == 1;
        let board = StageBoard::default();
        std::thread::scope(|scope| {
            for (_, stages) in lanes {
                let board = &board;
                scope.spawn(move || stages.into_iter().for_each(|stage| board.run(stage, prints_directly)));
            }
        });
        let reports = board.reports.into_inner().unwrap_or_else(PoisonError::into_inner);
        println!("{}{}", flaky_lines(), summary(&reports, started_at.elapsed().as_secs_f64()));
        if reports.iter().any(|report| report.result.is_err()) {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}

/// The finished stages, in the order in which they ended.
#[derive(Default)]
struct StageBoard {
    reports: Mutex<Vec<StageReport>>,
    changed: Condvar,
}

impl StageBoard {
    fn run(&self, stage: Stage<'_>, prints_directly: bool) {
        let Stage { name, after, work, .. } = stage;
        let failed_dependency = self.wait_for(after);
        println!("== {name} started");
        let started_at = Instant::now();
        let (result, tests) = match failed_dependency {
            Some(failed) => (Err(format!("this stage needs `{failed}`, which failed")), None),
            None => execute(&name, work, prints_directly),
        };
        let seconds = started_at.elapsed().as_secs_f64();
        let report = StageReport { name, seconds, result, tests };
        println!("== {}", report.line());
        self.reports().push(report);
        self.changed.notify_all();
    }

    /// Waits for these stages to end. Returns the first one that failed.
    fn wait_for<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().copied().find(|name| {
            let has_failed = |reports: &[StageReport]| {
                reports.iter().find(|report| report.name == *name).map(|report| report.result.is_err())
            };
            let reports = self.reports();
            let reports = self
                .changed
                .wait_while(reports, |reports| has_failed(reports).is_none())
                .unwrap_or_else(PoisonError::into_inner);
            has_failed(&reports) == Some(true)
        })
    }

    fn reports(&self) -> MutexGuard<'_, Vec<StageReport>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn execute(name: &str, work: StageWork<'_>, prints_directly: bool) -> (StageResult, Option<TestCount>) {
    if prints_directly {
        return (work(&StageLog(None)), None);
    }
    let (path, file) = match create_log_file(name) {
        Ok(created) => created,
        Err(error) => return (Err(error), None),
    };
    let log = StageLog(Some(file));
    let result = work(&log);
    let text = std::fs::read(&path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    if result.is_err() {
        println!("-- output of `{name}` ({}):\n{}\n-- end of `{name}`", path.display(), text.trim_end());
    }
    (result, TestCount::of(&text))
}

/// The tests and stages that failed and then passed when they were retried.
static FLAKY: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Records that something failed and then passed when it was retried. The summary names it, because it is a bug in the test
/// or in what it tests.
pub(crate) fn report_flaky(name: String) {
    FLAKY.lock().unwrap_or_else(PoisonError::into_inner).push(name);
}

fn flaky_lines() -> String {
    let names = FLAKY.lock().unwrap_or_else(PoisonError::into_inner);
    names.iter().flat_map(|name| ["FLAKY ", name, ": failed, then passed when it was retried\n"]).collect()
}

/// Runs something again if it fails. Used where the cause can be outside this project: a browser, a screen reader, sound.
pub(crate) fn retry<T>(
    log: &StageLog,
    name: &str,
    attempts: usize,
    mut run: impl FnMut() -> Result<T, String>,
) -> Result<T, String> {
    for attempt in 1..attempts {
        match run() {
            Ok(value) if attempt == 1 => return Ok(value),
            Ok(value) => {
                report_flaky(name.to_owned());
                return Ok(value);
            }
            Err(error) => log.print(&format!("attempt {attempt} of {name} failed: {error}")),
        }
    }
    let last = run();
    if last.is_ok() && attempts > 1 {
        report_flaky(name.to_owned());
    }
    last
}

/// Creates `target/stages/NAME.log`.
pub(crate) fn create_log_file(name: &str) -> Result<(PathBuf, File), String> {
    let folder = root().join("target/stages");
    let path = folder.join(format!("{}.log", name.replace([' ', '/'], "-")));
    let file = std::fs::create_dir_all(folder).and_then(|()| File::create(&path));
    file.map(|file| (path.clone(), file)).map_err(|error| format!("{}: {error}", path.display()))
}

impl StageReport {
    fn line(&self) -> String {
        let Self { name, seconds, result, tests } = self;
        let tests = tests.as_ref().map_or(String::new(), |tests| format!(" ({} tests)", tests.passed));
        match result {
            Ok(StageOutcome::Passed) => format!("{name} passed in {seconds:.1} s{tests}"),
            Ok(StageOutcome::Skipped(reason)) => format!("{name} SKIPPED: {reason}"),
            Err(reason) => format!("{name} FAILED in {seconds:.1} s: {reason}"),
        }
    }
}

/// Returns the duration of each stage, the reasons for skips and failures, and the number of stages with each outcome.
fn summary(reports: &[StageReport], seconds: f64) -> String {
    use std::fmt::Write as _;
    let mut text = "== seconds\n".to_owned();
    for report in reports {
        let outcome = match &report.result {
            Ok(StageOutcome::Passed) => "passed ",
            Ok(StageOutcome::Skipped(_)) => "skipped",
            Err(_) => "FAILED ",
        };
        let _ = writeln!(text, "{:8.1}  {outcome}  {}", report.seconds, report.name);
    }
    let _ = writeln!(text, "{seconds:8.1}  total");
    let (mut failed, mut skipped) = (0, 0);
    for StageReport { name, result, .. } in reports {
        match result {
            Ok(StageOutcome::Passed) => {}
            Ok(StageOutcome::Skipped(reason)) => {
                skipped += 1;
                let _ = writeln!(text, "SKIPPED {name}: {reason}");
            }
            Err(reason) => {
                failed += 1;
                let _ = writeln!(text, "FAILED {name}: {reason}");
            }
        }
    }
    let passed = reports.len() - failed - skipped;
    let _ = write!(text, "stages: {passed} passed, {failed} failed, {skipped} skipped");
    text
}

/// The number of passed tests that the test programs in a log report.
struct TestCount {
    passed: usize,
}

impl TestCount {
    fn of(log: &str) -> Option<Self> {
        let counts = log.lines().filter_map(|line| {
            let (before, _) = line.strip_prefix("test result: ")?.split_once(" passed;")?;
            before.rsplit(' ').next()?.parse::<usize>().ok()
        });
        let passed: usize = counts.sum();
        (passed > 0).then_some(Self { passed })
    }
}

/// The output of a stage: the terminal or its own file.
pub(crate) struct StageLog(Option<File>);

impl StageLog {
    pub(crate) fn print(&self, text: &str) {
        match &self.0 {
            None => println!("{text}"),
            Some(file) => {
                let mut file: &File = file;
                let _ = writeln!(file, "{text}");
            }
        }
    }

    /// Runs a command and waits until it ends. Returns an error if the command fails.
    pub(crate) fn run(&self, command: &mut Command) -> Result<(), String> {
        self.redirect(command)?;
        match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{} ended with {status}", program_name(command))),
            Err(error) => Err(format!("cannot run {}: {error}", program_name(command))),
        }
    }

    /// Redirects a command's output to this log.
    pub(crate) fn redirect(&self, command: &mut Command) -> Result<(), String> {
        if let Some(file) = &self.0 {
            let copy =
                || file.try_clone().map(Stdio::from).map_err(|error| format!("cannot use the log: {error}"));
            command.stdout(copy()?).stderr(copy()?);
        }
        Ok(())
    }

    /// Runs cargo in the workspace.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Result<(), String> {
        self.run(cargo().args(arguments))
    }
}

/// Returns a cargo command that runs in the workspace.
pub(crate) fn cargo() -> Command {
    let mut cargo = command(env!("CARGO"));
    cargo.current_dir(root());
    cargo
}

/// Returns a command without the environment variables that cargo sets for xtask. They would make build scripts run again.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs `work` for each item, on as many threads as there are processors. Returns the results in the order of the items.
pub(crate) fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, work) = (&AtomicUsize::new(0), &work);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let run = || {
            let take_index = || next.fetch_add(1, Ordering::Relaxed);
            std::iter::from_fn(|| Some(take_index()).and_then(|index| Some((index, work(items.get(index)?)))))
                .collect()
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        threads
            .into_iter()
            .flat_map(|thread| -> Vec<_> {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Returns the output of a command, or an error if the command fails.
pub(crate) fn command_output(command: &mut Command) -> Result<String, String> {
    let output =
        command.output().map_err(|error| format!("cannot run {}: {error}", program_name(command)))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} ended with {}: {}", program_name(command), output.status, errors.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns whether a command succeeds. Discards its output.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn program_name(command: &Command) -> String {
    Path::new(command.get_program()).file_name().unwrap_or_default().display().to_string()
}

/// Returns the root folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}

/// Returns the folder in which cargo builds.
pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Returns whether this is a build server. There, a package that cannot be installed is a failure.
pub(crate) fn is_build_server() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: &str, result: StageResult) -> StageReport {
        StageReport { name: name.to_owned(), seconds: 1.0, result, tests: None }
    }

    #[test]
    fn a_skipped_stage_is_reported_and_not_counted_as_passed() {
        let skipped = Ok(StageOutcome::Skipped("no folder".to_owned()));
        let text = summary(&[report("one", Ok(StageOutcome::Passed)), report("oracle", skipped)], 2.0);
        assert!(text.contains("SKIPPED oracle: no folder\n"), "{text}");
        assert!(text.ends_with("stages: 1 passed, 0 failed, 1 skipped"), "{text}");
    }

    #[test]
    fn a_stage_waits_for_its_dependencies_and_fails_if_one_of_them_failed() {
        let mut plan = Plan::default();
        plan.add("second", StageLane::Waiting, &["first"], |_| Ok(()));
        plan.add("first", StageLane::Compile, &[], |_| Err::<(), _>("broken".to_owned()));
        let board = StageBoard::default();
        let mut stages = plan.0.into_iter();
        let (second, first) = (stages.next(), stages.next());
        std::thread::scope(|scope| {
            scope.spawn(|| second.map(|stage| board.run(stage, true)));
            scope.spawn(|| first.map(|stage| board.run(stage, true)));
        });
        let reports = board.reports();
        let results: Vec<_> = reports.iter().map(|report| (report.name.as_str(), &report.result)).collect();
        let needs = Err("this stage needs `first`, which failed".to_owned());
        assert_eq!(results, [("first", &Err("broken".to_owned())), ("second", &needs)]);
    }

    #[test]
    fn parallel_results_keep_the_order_of_the_items() {
        let items: Vec<usize> = (0..100).collect();
        assert_eq!(
            in_parallel(&items, |item| item * 2),
            items.iter().map(|item| item * 2).collect::<Vec<_>>()
        );
    }

    #[test]
    fn test_counts_of_several_programs_are_added_up() {
        let log = "test result: ok. 12 passed; 0 failed; 1 ignored\nother\ntest result: FAILED. 3 passed; 1 failed;";
        assert_eq!(TestCount::of(log).map(|count| count.passed), Some(15));
        assert!(TestCount::of("nothing").is_none());
    }
}
