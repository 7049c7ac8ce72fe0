//! The test programs and the binary, built once and with all features, so that every stage runs the same files.
//!
//! Test programs are run here and not by `cargo test`, which would wait until no other stage compiles, and run one at a time.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use seal::json::{Tape, Value};

use crate::stage::{self, Log, in_parallel, printed, processors, root};

/// What every build has in common: a build with other features would compile most of the workspace again.
const BUILD: [&str; 6] = [
    "test",
    "--workspace",
    "--all-features",
    "--locked",
    "--no-run",
    "--message-format=json-render-diagnostics",
];

/// Most integration tests wait for another process: the suite over every wire takes a third of the time with more threads.
const THREADS_PER_PROCESSOR: usize = 4;

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
    Ordinary,
    UnitTests,
    IntegrationTests,
}

/// Builds all of them.
pub(crate) fn build(log: &Log) -> Result<(), String> {
    let programs = cargo(log, &[])?;
    ALL.get_or_init(|| programs);
    Ok(())
}

/// Runs all test programs of the workspace, as many at a time as there are processors.
pub(crate) fn run_tests(log: &Log) -> Result<(), String> {
    let programs = ALL.get().ok_or("the test programs are not built")?;
    // Tests of procedural macros need the compiler's libraries.
    let libraries = printed(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let tests: Vec<&Program> = programs.iter().filter(|program| program.kind != Kind::Ordinary).collect();
    let failed: Vec<String> = in_parallel(&tests, |test| run_test(log, test, &libraries))
        .into_iter()
        .filter_map(Result::err)
        .collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

fn run_test(log: &Log, test: &Program, libraries: &str) -> Result<(), String> {
    let package = test.package.strip_prefix(root()).unwrap_or(&test.package).display();
    let name = format!("{package}: {}", test.name);
    let output = Command::new(&test.path)
        .arg(format!("--test-threads={}", THREADS_PER_PROCESSOR * processors()))
        .current_dir(&test.package)
        .env("CARGO", env!("CARGO"))
        .env("CARGO_MANIFEST_DIR", &test.package)
        .env("LD_LIBRARY_PATH", libraries)
        .output()
        .map_err(|error| format!("{name} could not be run: {error}"))?;
    let (printed, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    log.say(&format!("Tests of {name}{printed}{errors}"));
    if output.status.success() { Ok(()) } else { Err(format!("{name} ended with {}", output.status)) }
}

/// A command that runs an integration test of the binary's crate.
pub(crate) fn test(log: &Log, name: &str) -> Result<Command, String> {
    let mut command = Command::new(find(log, name, Kind::IntegrationTests)?);
    command.current_dir(root().join("crates/cli"));
    Ok(command)
}

/// The `sayso` binary.
pub(crate) fn sayso(log: &Log) -> Result<PathBuf, String> {
    find(log, "sayso", Kind::Ordinary)
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
        None => found(&cargo(log, &["--test", if kind == Kind::Ordinary { "rules" } else { name }])?),
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
        _ if !is_test => Kind::Ordinary,
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
        assert_eq!(read("bin", false), program(Kind::Ordinary));
        assert_eq!(read("test", true), program(Kind::IntegrationTests));
        assert_eq!(read("bin", true), program(Kind::UnitTests));
        assert_eq!(read("lib", true), program(Kind::UnitTests));
    }
}
