//! The test programs and the binary, built once and with all features, so that every stage runs the same files.
//!
//! xtask runs the test programs itself, because `cargo test` would wait for cargo's build lock and run them one at a time.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use seal::json::{Tape, Value};

use crate::stage::{self, Log, in_parallel, printed, root};

/// What every build has in common: a build with other features would compile most of the workspace again.
const BUILD: [&str; 6] = [
    "test",
    "--workspace",
    "--all-features",
    "--locked",
    "--no-run",
    "--message-format=json-render-diagnostics",
];

/// Most integration tests wait for another process: on two processors the `wires` suite takes a third of the time that it takes with
/// two threads.
const THREADS_PER_PROGRAM: &str = "--test-threads=8";

static ALL: OnceLock<Vec<Program>> = OnceLock::new();

#[derive(Debug, PartialEq)]
struct Program {
    name: String,
    kind: Kind,
    path: PathBuf,
    /// The folder of its crate.
    package: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// A binary or an example.
    Executable,
    UnitTests,
    IntegrationTests,
}

/// Builds all of them.
pub(crate) fn build(log: &Log) -> Result<(), String> {
    let programs = cargo(log, &[])?;
    ALL.get_or_init(|| programs);
    Ok(())
}

/// Runs all test programs, one per processor at a time.
pub(crate) fn run_tests(log: &Log) -> Result<(), String> {
    let programs = ALL.get().ok_or("the test programs are not built")?;
    // Tests of procedural macros need the compiler's libraries.
    let libraries = printed(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let tests: Vec<&Program> = programs.iter().filter(|program| program.kind != Kind::Executable).collect();
    if tests.is_empty() {
        return Err("cargo built no test programs".to_owned());
    }
    let failed: Vec<String> = in_parallel(&tests, |test| run_test(log, test, &libraries))
        .into_iter()
        .filter_map(Result::err)
        .collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

/// Runs one program. It prints to a file of its own, so that a process that it leaves behind cannot keep the stage waiting.
fn run_test(log: &Log, test: &Program, libraries: &str) -> Result<(), String> {
    let package = test.package.strip_prefix(root()).unwrap_or(&test.package).display();
    let name = format!("{package}: {}", test.name);
    let kind = if test.kind == Kind::UnitTests { "unit" } else { "integration" };
    let (path, file) = stage::log_file(&format!("tests {package} {} {kind}", test.name))?;
    let errors = file.try_clone().map_err(|error| format!("{}: {error}", path.display()))?;
    let libraries = match std::env::var("LD_LIBRARY_PATH") {
        Ok(others) => format!("{libraries}:{others}"),
        Err(_) => libraries.to_owned(),
    };
    let status = stage::command(&test.path)
        .arg(THREADS_PER_PROGRAM)
        .current_dir(&test.package)
        .env("CARGO", env!("CARGO"))
        .env("CARGO_MANIFEST_DIR", &test.package)
        .env("LD_LIBRARY_PATH", libraries)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .status()
        .map_err(|error| format!("{name} could not be run: {error}"))?;
    let printed = std::fs::read(&path).unwrap_or_default();
    log.say(&format!("Tests of {name}\n{}", String::from_utf8_lossy(&printed)));
    if status.success() { Ok(()) } else { Err(format!("{name} ended with {status}")) }
}

/// A command that runs an integration test of the binary's crate.
pub(crate) fn test(log: &Log, name: &str) -> Result<Command, String> {
    let mut command = Command::new(find(log, name, Kind::IntegrationTests)?);
    command.current_dir(root().join("crates/cli"));
    Ok(command)
}

/// The `sayso` binary.
pub(crate) fn sayso(log: &Log) -> Result<PathBuf, String> {
    find(log, "sayso", Kind::Executable)
}

/// Builds just the one that is wanted, where not all have been built.
fn find(log: &Log, name: &str, kind: Kind) -> Result<PathBuf, String> {
    let found = |programs: &[Program]| {
        let program = programs.iter().find(|program| program.name == name && program.kind == kind);
        program.map(|program| program.path.clone()).ok_or_else(|| format!("cargo built no `{name}`"))
    };
    match ALL.get() {
        Some(all) => found(all),
        // A test of the binary's crate is built together with the binary.
        None => found(&cargo(log, &["--test", if kind == Kind::Executable { "rules" } else { name }])?),
    }
}

fn cargo(log: &Log, what: &[&str]) -> Result<Vec<Program>, String> {
    let mut build = stage::cargo();
    build.args(BUILD).args(what);
    log.direct(&mut build)?;
    let output = build
        .stdout(Stdio::piped())
        .spawn()
        .and_then(Child::wait_with_output)
        .map_err(|error| format!("cargo could not be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo ended with {}", output.status));
    }
    let mut tape = Tape::default();
    let messages = String::from_utf8_lossy(&output.stdout);
    Ok(messages.lines().filter_map(|line| program(&tape.read(line).ok()?.root())).collect())
}

/// The program of which one of cargo's messages says that it was built.
fn program(message: &Value<'_>) -> Option<Program> {
    let path = message.member("executable")?.text()?;
    let target = message.member("target")?;
    let name = target.member("name")?.text()?.into_owned();
    let is_test = message.member("profile")?.member("test")?.boolean()?;
    let kind = match target.member("kind")?.items().any(|kind| kind.is("test")) {
        _ if !is_test => Kind::Executable,
        true => Kind::IntegrationTests,
        false => Kind::UnitTests,
    };
    let manifest = message.member("manifest_path")?.text()?;
    let package = Path::new(manifest.as_ref()).parent()?.to_owned();
    Some(Program { name, kind, path: PathBuf::from(path.as_ref()), package })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_tests_of_the_binary_are_not_the_binary() {
        let read = |kind: &str, test: bool| {
            let message = format!(
                r#"{{"executable":"/t/a","manifest_path":"/c/Cargo.toml","target":{{"name":"sayso","kind":["{kind}"]}},"profile":{{"test":{test}}}}}"#
            );
            Tape::default().read(&message).ok().and_then(|message| program(&message.root()))
        };
        let program = |kind| {
            let (path, package) = (PathBuf::from("/t/a"), PathBuf::from("/c"));
            Some(Program { name: "sayso".to_owned(), kind, path, package })
        };
        assert_eq!(read("bin", false), program(Kind::Executable));
        assert_eq!(read("test", true), program(Kind::IntegrationTests));
        assert_eq!(read("bin", true), program(Kind::UnitTests));
        assert_eq!(read("lib", true), program(Kind::UnitTests));
    }
}
