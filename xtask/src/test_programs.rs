//! Builds the test programs and the binary once, with all features, so that every stage runs the same files.
//!
//! xtask runs the test programs itself, because `cargo test` would wait for cargo's build lock and run them one by one.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use seal::json::{JsonValue, Tape};

use crate::stage::{self, StageLog, command_output, in_parallel, root};

/// The arguments of every build. The features are always the same, because a build with other features would recompile most
/// of the workspace.
const BUILD_ARGUMENTS: [&str; 6] = [
    "test",
    "--workspace",
    "--all-features",
    "--locked",
    "--no-run",
    "--message-format=json-render-diagnostics",
];

/// More threads than processors, because most integration tests wait for another process. On two processors, the tests in
/// `crates/cli/tests/wires` run three times as fast as with two threads.
const THREADS_PER_PROGRAM: &str = "--test-threads=8";

static BUILT_PROGRAMS: OnceLock<Vec<TestProgram>> = OnceLock::new();
static BUILT_BINARY: OnceLock<PathBuf> = OnceLock::new();

#[derive(Debug, PartialEq)]
pub(crate) struct TestProgram {
    name: String,
    kind: ProgramKind,
    pub(crate) path: PathBuf,
    /// The folder of its crate.
    pub(crate) package: PathBuf,
}

impl TestProgram {
    /// Returns whether this program runs tests.
    pub(crate) fn is_test(&self) -> bool {
        self.kind != ProgramKind::Executable
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ProgramKind {
    /// A binary or an example.
    Executable,
    UnitTests,
    IntegrationTests,
}

/// Builds all test programs and the binary.
pub(crate) fn build(log: &StageLog) -> Result<(), String> {
    let programs = build_programs(log, &[])?;
    BUILT_PROGRAMS.get_or_init(|| programs);
    Ok(())
}

/// Runs all test programs, one per processor at a time.
pub(crate) fn run_tests(log: &StageLog) -> Result<(), String> {
    let programs = BUILT_PROGRAMS.get().ok_or("the test programs are not built")?;
    // Tests of procedural macros need the compiler's libraries.
    let libraries = command_output(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let tests: Vec<&TestProgram> = programs.iter().filter(|program| program.is_test()).collect();
    if tests.is_empty() {
        return Err("cargo built no test programs".to_owned());
    }
    let failed: Vec<String> = in_parallel(&tests, |test| run_test(log, test, &libraries))
        .into_iter()
        .filter_map(Result::err)
        .collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

/// Runs one program. Its output goes to a file and not to a pipe, because a process that the program leaves running would
/// keep the pipe open and block the stage.
fn run_test(log: &StageLog, test: &TestProgram, libraries: &str) -> Result<(), String> {
    let package = test.package.strip_prefix(root()).unwrap_or(&test.package).display();
    let name = format!("{package}: {}", test.name);
    let kind = if test.kind == ProgramKind::UnitTests { "unit" } else { "integration" };
    let (path, file) = stage::create_log_file(&format!("tests {package} {} {kind}", test.name))?;
    let errors = file.try_clone().map_err(|error| format!("{}: {error}", path.display()))?;
    let libraries = match std::env::var("LD_LIBRARY_PATH") {
        Ok(existing) => format!("{libraries}:{existing}"),
        Err(_) => libraries.to_owned(),
    };
    let command = || {
        let mut command = stage::command(&test.path);
        command
            .current_dir(&test.package)
            .env("CARGO", env!("CARGO"))
            .env("CARGO_MANIFEST_DIR", &test.package)
            .env("LD_LIBRARY_PATH", &libraries)
            .stdin(Stdio::null());
        command
    };
    let cannot_run = |error: std::io::Error| format!("cannot run {name}: {error}");
    let status =
        command().arg(THREADS_PER_PROGRAM).stdout(file).stderr(errors).status().map_err(cannot_run)?;
    let output = std::fs::read(&path).unwrap_or_default();
    let output = String::from_utf8_lossy(&output);
    log.print(&format!("Tests of {name}\n{output}"));
    if status.success() {
        return Ok(());
    }
    let failed = failed_tests(&output);
    if failed.is_empty() || failed.len() > MAX_RETRIED {
        return Err(format!("{name} ended with {status}"));
    }
    log.print(&format!("Retrying, one after the other: {}", failed.join(", ")));
    let mut retry = command();
    log.redirect(retry.args(["--exact", "--test-threads=1"]).args(&failed))?;
    let status = retry.status().map_err(cannot_run)?;
    if !status.success() {
        return Err(format!("{name} ended with {status}, even when it was retried"));
    }
    for test in failed {
        stage::report_flaky(format!("{name} {test}"));
    }
    Ok(())
}

/// Maximum number of failed tests of a program that are retried. More failures have a common cause.
const MAX_RETRIED: usize = 3;

/// Returns the names of the failed tests in a test program's output.
fn failed_tests(output: &str) -> Vec<&str> {
    let names = output.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    names.map(|name| name.trim_end_matches(" - should panic")).collect()
}

/// Returns a command that runs an integration test of the crate `cli`.
pub(crate) fn test_command(log: &StageLog, name: &str) -> Result<Command, String> {
    let mut command = Command::new(find(log, name, ProgramKind::IntegrationTests)?);
    command.current_dir(root().join("crates/cli"));
    Ok(command)
}

/// Returns a command that runs the unit tests of a library.
pub(crate) fn unit_test_command(log: &StageLog, library: &str) -> Result<Command, String> {
    let mut command = Command::new(find(log, library, ProgramKind::UnitTests)?);
    command.current_dir(root().join("crates").join(library));
    Ok(command)
}

/// Runs a command of [`test_command`] or [`unit_test_command`]. Fails if a test fails, or if none runs, because its name was changed.
pub(crate) fn run_selected(log: &StageLog, tests: &mut Command) -> Result<(), String> {
    let output = tests.stdin(Stdio::null()).output().map_err(|error| format!("cannot run tests: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    log.print(&text);
    log.print(&String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        return Err(format!("the tests ended with {}", output.status));
    }
    let has_run =
        text.lines().any(|line| line.starts_with("test result: ok.") && !line.contains(" 0 passed;"));
    if has_run { Ok(()) } else { Err("no test ran".to_owned()) }
}

/// Returns the path of the `sayso` binary. Builds it if no stage has built it in this run.
pub(crate) fn sayso_binary(log: &StageLog) -> Result<PathBuf, String> {
    if let Some(binary) = BUILT_BINARY.get() {
        return Ok(binary.clone());
    }
    let binary = find(log, "sayso", ProgramKind::Executable)?;
    Ok(BUILT_BINARY.get_or_init(|| binary).clone())
}

/// Returns the path of a program. If [`build`] has not run, builds only that program.
fn find(log: &StageLog, name: &str, kind: ProgramKind) -> Result<PathBuf, String> {
    let path_in = |programs: &[TestProgram]| {
        // Several crates have a test program called `all`.
        let program = programs.iter().find(|program| {
            let is_meant = name != "all" || program.package.ends_with("crates/cli");
            program.name == name && program.kind == kind && is_meant
        });
        program.map(|program| program.path.clone()).ok_or_else(|| format!("cargo built no `{name}`"))
    };
    if let Some(all) = BUILT_PROGRAMS.get() {
        return path_in(all);
    }
    let targets: &[&str] = match kind {
        // Building a test of the crate `cli` also builds the binary.
        ProgramKind::Executable => &["--test", "rules"],
        ProgramKind::IntegrationTests => &["--test", name],
        ProgramKind::UnitTests => &["--lib"],
    };
    path_in(&build_programs(log, targets)?)
}

fn build_programs(log: &StageLog, targets: &[&str]) -> Result<Vec<TestProgram>, String> {
    let mut build = stage::cargo();
    build.args(BUILD_ARGUMENTS).args(targets);
    log.redirect(&mut build)?;
    let output = build
        .stdout(Stdio::piped())
        .spawn()
        .and_then(Child::wait_with_output)
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo ended with {}", output.status));
    }
    let mut tape = Tape::default();
    let messages = String::from_utf8_lossy(&output.stdout);
    Ok(messages.lines().filter_map(|line| parse_program(&tape.read(line).ok()?.root())).collect())
}

/// Reads a built program from one of cargo's messages.
pub(crate) fn parse_program(message: &JsonValue<'_>) -> Option<TestProgram> {
    let path = message.member("executable")?.text()?;
    let target = message.member("target")?;
    let name = target.member("name")?.text()?.into_owned();
    let is_test = message.member("profile")?.member("test")?.as_bool()?;
    let kind = match target.member("kind")?.items().any(|kind| kind.is_text("test")) {
        _ if !is_test => ProgramKind::Executable,
        true => ProgramKind::IntegrationTests,
        false => ProgramKind::UnitTests,
    };
    let manifest = message.member("manifest_path")?.text()?;
    let package = Path::new(manifest.as_ref()).parent()?.to_owned();
    Some(TestProgram { name, kind, path: PathBuf::from(path.as_ref()), package })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_failed_tests_are_found() {
        let output =
            "test a::b ... ok\ntest c::d ... FAILED\n\nfailures:\n    c::d\ntest result: FAILED. 1 passed";
        assert_eq!(failed_tests(output), ["c::d"]);
    }

    #[test]
    fn unit_tests_of_the_binary_are_not_mistaken_for_the_binary() {
        let read = |kind: &str, test: bool| {
            let message = format!(
                r#"{{"executable":"/t/a","manifest_path":"/c/Cargo.toml","target":{{"name":"sayso","kind":["{kind}"]}},"profile":{{"test":{test}}}}}"#
            );
            Tape::default().read(&message).ok().and_then(|message| parse_program(&message.root()))
        };
        let expected = |kind| {
            let (path, package) = (PathBuf::from("/t/a"), PathBuf::from("/c"));
            Some(TestProgram { name: "sayso".to_owned(), kind, path, package })
        };
        assert_eq!(read("bin", false), expected(ProgramKind::Executable));
        assert_eq!(read("test", true), expected(ProgramKind::IntegrationTests));
        assert_eq!(read("bin", true), expected(ProgramKind::UnitTests));
        assert_eq!(read("lib", true), expected(ProgramKind::UnitTests));
    }
}
