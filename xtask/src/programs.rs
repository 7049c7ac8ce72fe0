//! The test programs and the binary, built once and with all features, so that every stage runs the same files.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use seal::json::{Tape, Value};

use crate::stage::{self, Log, root};

/// What every build has in common: a build with other features would compile most of the workspace again.
const BUILD: [&str; 6] = [
    "test",
    "--workspace",
    "--all-features",
    "--locked",
    "--no-run",
    "--message-format=json-render-diagnostics",
];

static ALL: OnceLock<Vec<Program>> = OnceLock::new();

#[derive(Debug, PartialEq)]
struct Program {
    name: String,
    is_test: bool,
    path: PathBuf,
}

/// Builds all of them.
pub(crate) fn build(log: &Log) -> Result<(), String> {
    let programs = cargo(log, &[])?;
    ALL.get_or_init(|| programs);
    Ok(())
}

/// A command that runs an integration test of the binary's crate.
pub(crate) fn test(log: &Log, name: &str) -> Result<Command, String> {
    let mut command = Command::new(find(log, name, true)?);
    command.current_dir(root().join("crates/cli"));
    Ok(command)
}

/// The `sayso` binary.
pub(crate) fn sayso(log: &Log) -> Result<PathBuf, String> {
    find(log, "sayso", false)
}

/// Builds just the one that is wanted, where not all have been built.
fn find(log: &Log, name: &str, is_test: bool) -> Result<PathBuf, String> {
    let found = |programs: &[Program]| {
        let program = programs.iter().find(|program| program.name == name && program.is_test == is_test);
        program.map(|program| program.path.clone()).ok_or_else(|| format!("cargo built no `{name}`"))
    };
    match ALL.get() {
        Some(all) => found(all),
        // A test of the binary's crate is built together with the binary.
        None => found(&cargo(log, &["--test", if is_test { name } else { "rules" }])?),
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
    let is_unit = is_test && !target.member("kind")?.items().any(|kind| kind.is("test"));
    (!is_unit).then(|| Program { name, is_test, path: PathBuf::from(path.as_ref()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_tests_of_the_binary_are_not_the_binary() {
        let read = |kind: &str, test: bool| {
            let message = format!(
                r#"{{"executable":"/t/a","target":{{"name":"sayso","kind":["{kind}"]}},"profile":{{"test":{test}}}}}"#
            );
            Tape::default().read(&message).ok().and_then(|message| program(&message.root()))
        };
        let program = |is_test| Program { name: "sayso".to_owned(), is_test, path: PathBuf::from("/t/a") };
        assert_eq!(read("bin", false), Some(program(false)));
        assert_eq!(read("test", true), Some(program(true)));
        assert_eq!(read("bin", true), None);
        assert_eq!(read("lib", true), None);
    }
}
