//! Runs the tests: first each one alone, to find out which mutants it reaches and how long it takes, then for each mutant the
//! tests that reach it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::MutationScope;
use super::mutant::Mutant;
use crate::stage::{StageLog, command, command_output, in_parallel, root};
use crate::test_programs::TestProgram;

/// Tests that take longer are not used, because they would run for too many mutants.
const MAX_TEST_DURATION: Duration = Duration::from_secs(5);

/// How long the first tests of a mutant take together. If none fails, more tests run, each time four times as long.
const FIRST_GROUP_DURATION: Duration = Duration::from_millis(300);
const GROUP_GROWTH: u32 = 4;

/// A group of tests may take this long, and this many times as long as its tests took without a mutant. Then it counts as
/// failed, because a mutant can make a test wait forever.
const MIN_TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT_FACTOR: u32 = 10;

/// How much memory a test program may reserve, because a mutant can make a loop endless.
const MAX_MEMORY_KIB: &str = "8388608";

/// A test, and what it does without a mutant.
#[derive(Debug)]
pub(crate) struct MeasuredTest<'p> {
    program: &'p TestProgram,
    name: String,
    duration: Duration,
    /// The mutants whose code it runs.
    reached: BTreeSet<usize>,
}

/// The result of the tests for a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MutantOutcome {
    /// A test failed.
    Caught,
    /// The tests did not end in time.
    TimedOut,
    /// No test failed.
    Survived,
    /// No test runs the changed code.
    NotReached,
}

#[derive(Debug, PartialEq)]
enum RunOutcome {
    Passed,
    Failed,
    TimedOut,
}

/// Runs every test of a scope alone. Leaves out tests that fail or are slow, and names them in the log.
pub(crate) fn measure<'p>(
    log: &StageLog,
    scope: &MutationScope,
    programs: &'p [TestProgram],
) -> Result<Vec<MeasuredTest<'p>>, String> {
    let mut tests = Vec::new();
    for program in programs {
        let names = |arguments: &[&str]| -> Result<BTreeSet<String>, String> {
            let text =
                command_output(test_command(program).args(["--list", "--format=terse"]).args(arguments))?;
            Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
        };
        let ignored = names(&["--ignored"])?;
        let selected =
            names(&[])?.into_iter().filter(|name| !ignored.contains(name) && scope.uses_test(name));
        tests.extend(selected.map(|name| (program, name)));
    }
    let traces = root().join("target/mutants/traces");
    std::fs::create_dir_all(&traces).map_err(|error| format!("{}: {error}", traces.display()))?;
    let numbered: Vec<(usize, &(&TestProgram, String))> = tests.iter().enumerate().collect();
    let measured = in_parallel(&numbered, |(index, (program, name))| {
        measure_test(program, name, &traces.join(index.to_string()))
    });
    let mut usable = Vec::new();
    let mut unusable = Vec::new();
    for ((_, (_, name)), result) in numbered.into_iter().zip(measured) {
        match result? {
            Some(test) => usable.push(test),
            None => unusable.push(name.as_str()),
        }
    }
    log.print(&format!("{}: {} tests", scope.name, usable.len()));
    if !unusable.is_empty() {
        log.print(&format!("not used, because they are slow or fail: {}", unusable.join(", ")));
    }
    usable.sort_by_key(|test| test.duration);
    Ok(usable)
}

/// Returns `None` if the test fails or is slow.
fn measure_test<'p>(
    program: &'p TestProgram,
    name: &str,
    trace: &Path,
) -> Result<Option<MeasuredTest<'p>>, String> {
    let _ = std::fs::remove_file(trace);
    let mut command = test_command(program);
    command.args(["--exact", name]).env("SAYSO_MUTANT_TRACE", trace);
    let started_at = Instant::now();
    let outcome = run_limited(&mut command, MAX_TEST_DURATION)?;
    let duration = started_at.elapsed();
    // A test that reaches no mutant writes no trace.
    let reached = std::fs::read_to_string(trace).unwrap_or_default();
    let reached = reached.lines().filter_map(|line| line.parse().ok()).collect();
    let test = MeasuredTest { program, name: name.to_owned(), duration, reached };
    Ok((outcome == RunOutcome::Passed).then_some(test))
}

/// Runs the tests that reach a mutant, fastest first, until one fails. `tests` is sorted by duration.
pub(crate) fn try_mutant(mutant: &Mutant, tests: &[MeasuredTest<'_>]) -> Result<MutantOutcome, String> {
    let reaching = tests.iter().filter(|test| test.reached.contains(&mutant.number));
    let groups = group(reaching);
    if groups.is_empty() {
        return Ok(MutantOutcome::NotReached);
    }
    for tests in groups {
        let mut by_program: BTreeMap<&Path, Vec<&MeasuredTest<'_>>> = BTreeMap::new();
        for test in tests {
            by_program.entry(&test.program.path).or_default().push(test);
        }
        for tests in by_program.values() {
            let Some(first) = tests.first() else { continue };
            let mut command = test_command(first.program);
            command.arg("--exact").args(tests.iter().map(|test| &test.name));
            command.env("SAYSO_MUTANT", mutant.number.to_string());
            let usual: Duration = tests.iter().map(|test| test.duration).sum();
            match run_limited(&mut command, MIN_TIMEOUT + usual * TIMEOUT_FACTOR)? {
                RunOutcome::Passed => {}
                RunOutcome::Failed => return Ok(MutantOutcome::Caught),
                RunOutcome::TimedOut => return Ok(MutantOutcome::TimedOut),
            }
        }
    }
    Ok(MutantOutcome::Survived)
}

/// Splits tests into groups of growing duration.
fn group<'a, 'p>(tests: impl Iterator<Item = &'a MeasuredTest<'p>>) -> Vec<Vec<&'a MeasuredTest<'p>>> {
    let mut groups: Vec<Vec<_>> = Vec::new();
    let (mut limit, mut used) = (FIRST_GROUP_DURATION, Duration::ZERO);
    for test in tests {
        used += test.duration;
        match groups.last_mut() {
            Some(group) if used <= limit => group.push(test),
            last => {
                if last.is_some() {
                    limit *= GROUP_GROWTH;
                }
                used = test.duration;
                groups.push(vec![test]);
            }
        }
    }
    groups
}

/// Returns a command that runs a test program with limited memory.
fn test_command(program: &TestProgram) -> Command {
    let mut command = command("sh");
    command.args(["-c", r#"ulimit -v "$0" && exec "$@""#, MAX_MEMORY_KIB]).arg(&program.path);
    command.current_dir(&program.package).env("CARGO", env!("CARGO"));
    command.env("CARGO_MANIFEST_DIR", &program.package);
    command
}

/// Runs a command without output, in its own process group, so that its processes can be stopped together.
fn run_limited(command: &mut Command, limit: Duration) -> Result<RunOutcome, String> {
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("cannot run a test program: {error}"))?;
    let outcome = wait(&mut child, limit);
    if !matches!(outcome, Ok(RunOutcome::Passed)) {
        // Processes that the tests started can outlive them.
        let group = format!("-{}", child.id());
        crate::stage::succeeds(Command::new("kill").args(["-KILL", "--", &group]));
        let _ = child.wait();
    }
    outcome
}

/// Waits until a process ends, or until the time is over.
fn wait(child: &mut Child, limit: Duration) -> Result<RunOutcome, String> {
    let started_at = Instant::now();
    loop {
        match child.try_wait().map_err(|error| format!("cannot wait for a test program: {error}"))? {
            Some(status) if status.success() => return Ok(RunOutcome::Passed),
            Some(_) => return Ok(RunOutcome::Failed),
            None if started_at.elapsed() > limit => return Ok(RunOutcome::TimedOut),
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}
