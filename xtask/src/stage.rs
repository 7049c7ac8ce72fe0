//! Stages of a run: each is logged, timed, and counted as passed, failed or skipped.
//!
//! A [`Plan`] runs its stages in [`Lane`]s side by side. A lane runs its stages one after another, in the order in which they
//! were added; a stage also waits for the stages that it names. A run of one lane prints as it goes. With several lanes every
//! stage writes to `target/stages/NAME.log`, which is printed if the stage fails.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What came of a stage that did not fail.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Passed,
    /// It could not run here, and why. Never counted as passed.
    Skipped(String),
}

impl From<()> for Outcome {
    fn from((): ()) -> Self {
        Self::Passed
    }
}

pub(crate) type StageResult = Result<Outcome, String>;

/// Which stages run one after another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lane {
    /// Runs cargo or the compiler.
    Compile,
    /// Runs test programs.
    Test,
    /// Mostly waits: downloads, browsers and voices, which run in real time.
    RealTime,
}

type Work<'a> = Box<dyn FnOnce(&Log) -> StageResult + Send + 'a>;

struct Stage<'a> {
    name: String,
    lane: Lane,
    after: &'a [&'a str],
    work: Work<'a>,
}

/// The stages of a run.
#[derive(Default)]
pub(crate) struct Plan<'a>(Vec<Stage<'a>>);

/// A stage that is over.
struct Report {
    name: String,
    seconds: f64,
    result: StageResult,
    tests: Option<TestCount>,
}

impl<'a> Plan<'a> {
    /// Adds a stage, which runs once those that it names in `after` have not failed.
    pub(crate) fn add<T: Into<Outcome>>(
        &mut self,
        name: &str,
        lane: Lane,
        after: &'a [&'a str],
        work: impl FnOnce(&Log) -> Result<T, String> + Send + 'a,
    ) {
        let work = Box::new(|log: &Log| work(log).map(T::into));
        self.0.push(Stage { name: name.to_owned(), lane, after, work });
    }

    /// Adds a run of cargo.
    pub(crate) fn cargo(&mut self, name: &str, after: &'a [&'a str], arguments: &'a [&'a str]) {
        self.add(name, Lane::Compile, after, move |log| log.cargo(arguments));
    }

    /// Runs the stages and prints a summary. A failed stage does not stop the others, so that one run shows all that is wrong.
    pub(crate) fn run(self) -> ExitCode {
        let begun = Instant::now();
        let mut lanes: Vec<(Lane, Vec<Stage<'_>>)> = Vec::new();
        for stage in self.0 {
            match lanes.iter_mut().find(|(lane, _)| *lane == stage.lane) {
                Some((_, stages)) => stages.push(stage),
                None => lanes.push((stage.lane, vec![stage])),
            }
        }
        let live = lanes.len() == 1;
        let board = Board::default();
        std::thread::scope(|scope| {
            for (_, stages) in lanes {
                let board = &board;
                scope.spawn(move || stages.into_iter().for_each(|stage| board.run(stage, live)));
            }
        });
        let reports = board.reports.into_inner().unwrap_or_else(PoisonError::into_inner);
        println!("{}", summary(&reports, begun.elapsed().as_secs_f64()));
        if reports.iter().any(|report| report.result.is_err()) {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}

/// The stages that are over, in the order in which they ended.
#[derive(Default)]
struct Board {
    reports: Mutex<Vec<Report>>,
    changed: Condvar,
}

impl Board {
    fn run(&self, stage: Stage<'_>, live: bool) {
        let Stage { name, after, work, .. } = stage;
        let failed = self.wait_for(after);
        println!("== {name} started");
        let begun = Instant::now();
        let (result, tests) = match failed {
            Some(earlier) => (Err(format!("it needs `{earlier}`, which failed")), None),
            None => execute(&name, work, live),
        };
        let seconds = begun.elapsed().as_secs_f64();
        let report = Report { name, seconds, result, tests };
        println!("== {}", report.line());
        self.reports().push(report);
        self.changed.notify_all();
    }

    /// Waits for earlier stages to end, and returns one that failed.
    fn wait_for<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().copied().find(|name| {
            let ended = |reports: &[Report]| {
                reports.iter().find(|report| report.name == *name).map(|report| report.result.is_err())
            };
            let reports = self.reports();
            let reports = self
                .changed
                .wait_while(reports, |reports| ended(reports).is_none())
                .unwrap_or_else(PoisonError::into_inner);
            ended(&reports) == Some(true)
        })
    }

    fn reports(&self) -> MutexGuard<'_, Vec<Report>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn execute(name: &str, work: Work<'_>, live: bool) -> (StageResult, Option<TestCount>) {
    if live {
        return (work(&Log(None)), None);
    }
    let (path, file) = match log_file(name) {
        Ok(created) => created,
        Err(error) => return (Err(error), None),
    };
    let log = Log(Some(file));
    let result = work(&log);
    let text = std::fs::read(&path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    if result.is_err() {
        println!("-- what `{name}` printed ({}):\n{}\n-- end of `{name}`", path.display(), text.trim_end());
    }
    (result, TestCount::of(&text))
}

/// Creates `target/stages/NAME.log`.
pub(crate) fn log_file(name: &str) -> Result<(PathBuf, File), String> {
    let folder = root().join("target/stages");
    let path = folder.join(format!("{}.log", name.replace([' ', '/'], "-")));
    let file = std::fs::create_dir_all(folder).and_then(|()| File::create(&path));
    file.map(|file| (path.clone(), file)).map_err(|error| format!("{}: {error}", path.display()))
}

impl Report {
    fn line(&self) -> String {
        let Self { name, seconds, result, tests } = self;
        let tests = tests.as_ref().map_or(String::new(), |tests| format!(" ({} tests)", tests.passed));
        match result {
            Ok(Outcome::Passed) => format!("{name} passed in {seconds:.1} s{tests}"),
            Ok(Outcome::Skipped(why)) => format!("{name} SKIPPED: {why}"),
            Err(why) => format!("{name} FAILED in {seconds:.1} s: {why}"),
        }
    }
}

/// The seconds of each stage, what was skipped, and how many stages there were of each kind.
fn summary(reports: &[Report], seconds: f64) -> String {
    use std::fmt::Write as _;
    let mut text = "== seconds\n".to_owned();
    for report in reports {
        let word = match &report.result {
            Ok(Outcome::Passed) => "passed ",
            Ok(Outcome::Skipped(_)) => "skipped",
            Err(_) => "FAILED ",
        };
        let _ = writeln!(text, "{:8.1}  {word}  {}", report.seconds, report.name);
    }
    let _ = writeln!(text, "{seconds:8.1}  in all");
    let (mut failed, mut skipped) = (0, 0);
    for Report { name, result, .. } in reports {
        match result {
            Ok(Outcome::Passed) => {}
            Ok(Outcome::Skipped(why)) => {
                skipped += 1;
                let _ = writeln!(text, "SKIPPED {name}: {why}");
            }
            Err(why) => {
                failed += 1;
                let _ = writeln!(text, "FAILED {name}: {why}");
            }
        }
    }
    let passed = reports.len() - failed - skipped;
    let _ = write!(text, "stages: {passed} passed, {failed} failed, {skipped} skipped");
    text
}

/// How many tests the test programs in a log say that they ran.
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

/// Where a stage prints: the terminal, or its own file.
pub(crate) struct Log(Option<File>);

impl Log {
    pub(crate) fn say(&self, text: &str) {
        match &self.0 {
            None => println!("{text}"),
            Some(file) => {
                let mut file: &File = file;
                let _ = writeln!(file, "{text}");
            }
        }
    }

    /// Runs a command to its end, and demands that it succeeds.
    pub(crate) fn run(&self, command: &mut Command) -> Result<(), String> {
        self.direct(command)?;
        match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{} ended with {status}", name(command))),
            Err(error) => Err(format!("{} could not be run: {error}", name(command))),
        }
    }

    /// Lets a command print here.
    pub(crate) fn direct(&self, command: &mut Command) -> Result<(), String> {
        if let Some(file) = &self.0 {
            let copy = || file.try_clone().map(Stdio::from).map_err(|error| format!("the log: {error}"));
            command.stdout(copy()?).stderr(copy()?);
        }
        Ok(())
    }

    /// Runs cargo in the workspace.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Result<(), String> {
        self.run(cargo().args(arguments))
    }
}

/// Cargo in the workspace. Build scripts must not see how cargo describes xtask, because cargo would build their crates again.
pub(crate) fn cargo() -> Command {
    let mut cargo = command(env!("CARGO"));
    cargo.current_dir(root());
    cargo
}

/// A command without the environment variables by which cargo describes xtask.
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

/// Does the same work for each item, on as many threads as there are processors; results are in the order of the items.
pub(crate) fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, work) = (&AtomicUsize::new(0), &work);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let run = || {
            let take = || next.fetch_add(1, Ordering::Relaxed);
            std::iter::from_fn(|| Some(take()).and_then(|at| Some((at, work(items.get(at)?))))).collect()
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        threads
            .into_iter()
            .flat_map(|thread| -> Vec<_> {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// What a command prints, if it succeeds.
pub(crate) fn printed(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{} could not be run: {error}", name(command)))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} ended with {}: {}", name(command), output.status, errors.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Whether a command succeeds; nothing is printed.
pub(crate) fn works(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn name(command: &Command) -> String {
    Path::new(command.get_program()).file_name().unwrap_or_default().display().to_string()
}

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}

/// Whether this is a build server, where what cannot be installed is a failure.
pub(crate) fn on_build_server() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: &str, result: StageResult) -> Report {
        Report { name: name.to_owned(), seconds: 1.0, result, tests: None }
    }

    #[test]
    fn a_skipped_stage_is_named_and_not_counted_as_passed() {
        let skipped = Ok(Outcome::Skipped("no folder".to_owned()));
        let text = summary(&[report("one", Ok(Outcome::Passed)), report("oracle", skipped)], 2.0);
        assert!(text.contains("SKIPPED oracle: no folder\n"), "{text}");
        assert!(text.ends_with("stages: 1 passed, 0 failed, 1 skipped"), "{text}");
    }

    #[test]
    fn a_stage_waits_for_those_it_names_and_fails_with_them() {
        let mut plan = Plan::default();
        plan.add("second", Lane::RealTime, &["first"], |_| Ok(()));
        plan.add("first", Lane::Compile, &[], |_| Err::<(), _>("broken".to_owned()));
        let board = Board::default();
        let mut stages = plan.0.into_iter();
        let (second, first) = (stages.next(), stages.next());
        std::thread::scope(|scope| {
            scope.spawn(|| second.map(|stage| board.run(stage, true)));
            scope.spawn(|| first.map(|stage| board.run(stage, true)));
        });
        let reports = board.reports();
        let results: Vec<_> = reports.iter().map(|report| (report.name.as_str(), &report.result)).collect();
        let needs = Err("it needs `first`, which failed".to_owned());
        assert_eq!(results, [("first", &Err("broken".to_owned())), ("second", &needs)]);
    }

    #[test]
    fn work_on_several_threads_keeps_the_order_of_its_items() {
        let items: Vec<usize> = (0..100).collect();
        assert_eq!(
            in_parallel(&items, |item| item * 2),
            items.iter().map(|item| item * 2).collect::<Vec<_>>()
        );
    }

    #[test]
    fn the_tests_of_several_programs_are_added_up() {
        let log = "test result: ok. 12 passed; 0 failed; 1 ignored\nother\ntest result: FAILED. 3 passed; 1 failed;";
        assert_eq!(TestCount::of(log).map(|count| count.passed), Some(15));
        assert!(TestCount::of("nothing").is_none());
    }
}
