//! Stages: each is run, timed, and remembered if it failed.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// What was run, how long it took, and what came of it.
#[derive(Default)]
pub(crate) struct Stages(Vec<(String, f64, Result<(), String>)>);

impl Stages {
    /// Runs a stage; those after it run too, so that one look shows all that is wrong.
    pub(crate) fn run(&mut self, name: &str, stage: impl FnOnce() -> Result<(), String>) {
        println!("== {name}");
        let begun = Instant::now();
        let result = stage();
        if let Err(why) = &result {
            println!("{name} failed: {why}");
        }
        self.0.push((name.to_owned(), begun.elapsed().as_secs_f64(), result));
    }

    /// Runs cargo as a stage.
    pub(crate) fn cargo(&mut self, name: &str, arguments: &[&str]) {
        self.run(name, || cargo(arguments));
    }

    /// Prints the seconds of each stage.
    pub(crate) fn finish(self) -> ExitCode {
        println!("== seconds");
        for (name, seconds, result) in &self.0 {
            let word = if result.is_ok() { "passed" } else { "FAILED" };
            println!("{seconds:8.1}  {word}  {name}");
        }
        let total: f64 = self.0.iter().map(|(_, seconds, _)| seconds).sum();
        let failed = self.0.iter().filter(|(.., result)| result.is_err()).count();
        println!("{total:8.1}  in all");
        println!("stages: {} passed, {failed} failed", self.0.len() - failed);
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Runs cargo in the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Result<(), String> {
    command(Command::new(env!("CARGO")).args(arguments).current_dir(root()))
}

/// Runs a command to its end.
pub(crate) fn command(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{} ended with {status}", command.get_program().display())),
        Err(error) => Err(format!("{} could not be run: {error}", command.get_program().display())),
    }
}

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}
