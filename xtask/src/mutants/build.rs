//! Builds a copy of the workspace that contains all mutants of a scope.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use seal::json::{JsonValue, Tape};

use super::MutationScope;
use super::mutant::Mutant;
#[cfg(test)]
use super::rewrite::MutantCode;
use super::rewrite::{RewrittenFile, rewrite};
use crate::stage::{StageLog, command, command_output, root};
use crate::test_programs::{TestProgram, parse_program};

/// The code that is added to the mutated crate.
const SWITCH: &str = include_str!("switch.rs");

/// The test programs with all mutants that compile.
pub(crate) struct MutatedBuild {
    pub(crate) programs: Vec<TestProgram>,
    pub(crate) mutants: Vec<Mutant>,
    /// Mutants that do not compile.
    pub(crate) unviable: Vec<Mutant>,
    /// Mutants that cannot be switched.
    pub(crate) left_out: Vec<Mutant>,
}

/// A copy of the workspace in `target/mutants`, with its own build folder.
pub(crate) struct MutatedTree {
    root: PathBuf,
    target: PathBuf,
}

impl MutatedTree {
    /// Copies all files that git knows or would add. Files that have not changed keep their time, so that cargo does not
    /// rebuild them.
    pub(crate) fn create() -> Result<Self, String> {
        let folder = root().join("target/mutants");
        let tree = Self { root: folder.join("tree"), target: folder.join("build") };
        let files = command_output(
            Command::new("git")
                .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
                .current_dir(root()),
        )?;
        for file in files.split('\0').filter(|file| !file.is_empty()) {
            let from = root().join(file);
            // A deleted file is still in git's list.
            if from.is_file() {
                let bytes = std::fs::read(&from).map_err(|error| format!("{}: {error}", from.display()))?;
                write_if_changed(&tree.root.join(file), &bytes)?;
            }
        }
        Ok(tree)
    }

    /// Builds the test programs of a scope with its mutants. A mutant that does not compile is removed, and the rest is
    /// tried again.
    pub(crate) fn build(
        &self,
        log: &StageLog,
        scope: &MutationScope,
        mutants: Vec<Mutant>,
    ) -> Result<MutatedBuild, String> {
        let mut files: BTreeMap<String, Vec<Mutant>> = BTreeMap::new();
        for mutant in mutants {
            files.entry(mutant.file.clone()).or_default().push(mutant);
        }
        let library = format!("{}/src/lib.rs", scope.folder());
        files.entry(library.clone()).or_default();
        self.write(&format!("{}/src/mutant_switch.rs", scope.folder()), SWITCH)?;
        let (mut unviable, mut left_out) = (BTreeSet::<usize>::new(), BTreeSet::<usize>::new());
        loop {
            let mut rewritten = BTreeMap::new();
            for (file, mutants) in &files {
                let remaining: Vec<&Mutant> = mutants
                    .iter()
                    .filter(|mutant| !unviable.contains(&mutant.number) && !left_out.contains(&mutant.number))
                    .collect();
                let source =
                    std::fs::read_to_string(root().join(file)).map_err(|error| format!("{file}: {error}"))?;
                let code = rewrite(&source, &remaining).map_err(|error| format!("{file}: {error}"))?;
                let declaration = if *file == library { "\nmod mutant_switch;\n" } else { "" };
                self.write(file, &format!("{}{declaration}", code.text))?;
                rewritten.insert(file.clone(), code);
            }
            unviable.extend(rewritten.values().flat_map(|code| &code.unviable));
            left_out.extend(rewritten.values().flat_map(|code| &code.left_out));
            let errors = self.check(scope)?;
            if errors.is_empty() {
                break;
            }
            log.print(&format!("{}: {} compiler errors", scope.name, errors.len()));
            let removed_before = unviable.len() + left_out.len();
            for error in &errors {
                let faulty = error.faulty_mutants(&rewritten);
                unviable.extend(&faulty);
                if faulty.is_empty() {
                    left_out.extend(error.mutants_of_function(&rewritten));
                }
            }
            if unviable.len() + left_out.len() == removed_before {
                return Err(format!("these errors are not in any mutant:\n{}", texts(&errors)));
            }
        }
        left_out.retain(|number| !unviable.contains(number));
        let programs = self.build_programs(log, scope)?;
        let mut build =
            MutatedBuild { programs, mutants: Vec::new(), unviable: Vec::new(), left_out: Vec::new() };
        for mutant in files.into_values().flatten() {
            let list = match mutant.number {
                number if unviable.contains(&number) => &mut build.unviable,
                number if left_out.contains(&number) => &mut build.left_out,
                _ => &mut build.mutants,
            };
            list.push(mutant);
        }
        Ok(build)
    }

    /// Returns the errors that the compiler finds in the mutated crate.
    fn check(&self, scope: &MutationScope) -> Result<Vec<CompilerError>, String> {
        let mut check = self.cargo();
        check.args(["check", "--locked", "--lib", "--message-format=json", "--package", scope.package]);
        check.args(scope.feature_arguments());
        let output = check.output().map_err(|error| format!("cannot run cargo check: {error}"))?;
        let errors = compiler_errors(&String::from_utf8_lossy(&output.stdout));
        if errors.is_empty() && !output.status.success() {
            let messages = String::from_utf8_lossy(&output.stderr);
            return Err(format!("cargo check ended with {}: {messages}", output.status));
        }
        Ok(errors)
    }

    /// Builds the unit tests of the mutated package and the test programs of the scope.
    fn build_programs(&self, log: &StageLog, scope: &MutationScope) -> Result<Vec<TestProgram>, String> {
        let mut programs = self.build_tests(log, scope, scope.package, "--lib")?;
        for (package, program) in scope.test_programs {
            programs.extend(self.build_tests(log, scope, package, &format!("--test={program}"))?);
        }
        Ok(programs)
    }

    fn build_tests(
        &self,
        log: &StageLog,
        scope: &MutationScope,
        package: &str,
        target: &str,
    ) -> Result<Vec<TestProgram>, String> {
        let mut build = self.cargo();
        build.args(["test", "--locked", "--no-run", "--package", package, target]);
        if package == scope.package {
            build.args(scope.feature_arguments());
        }
        // Only errors are shown, because a mutated file has many warnings.
        build.arg("--message-format=json");
        log.redirect(&mut build)?;
        let output = build
            .stdout(Stdio::piped())
            .spawn()
            .and_then(std::process::Child::wait_with_output)
            .map_err(|error| format!("cannot run cargo: {error}"))?;
        let messages = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            return Err(format!(
                "cargo ended with {}\n{}",
                output.status,
                texts(&compiler_errors(&messages))
            ));
        }
        let mut tape = Tape::default();
        let programs = messages.lines().filter_map(|line| parse_program(&tape.read(line).ok()?.root()));
        Ok(programs.filter(TestProgram::is_test).collect())
    }

    fn cargo(&self) -> Command {
        let mut cargo = command(env!("CARGO"));
        cargo.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        // Nobody debugs these programs.
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "0");
        cargo
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        write_if_changed(&self.root.join(file), text.as_bytes())
    }
}

fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if std::fs::read(path).is_ok_and(|existing| existing == bytes) {
        return Ok(());
    }
    let write = || {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, bytes)
    };
    write().map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the errors among the messages of cargo.
fn compiler_errors(messages: &str) -> Vec<CompilerError> {
    let mut tape = Tape::default();
    messages.lines().filter_map(|line| CompilerError::parse(&tape.read(line).ok()?.root())).collect()
}

fn texts(errors: &[CompilerError]) -> String {
    errors.iter().map(|error| error.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// An error of the compiler.
#[derive(Debug)]
struct CompilerError {
    text: String,
    /// The positions of the error, primary ones first.
    places: Vec<(String, Range<usize>)>,
}

impl CompilerError {
    fn parse(message: &JsonValue<'_>) -> Option<Self> {
        let message = message.member("message")?;
        if !message.member("level")?.is_text("error") {
            return None;
        }
        let mut places: Vec<(bool, String, Range<usize>)> = Vec::new();
        for span in message.member("spans")?.items() {
            let number = |name: &str| usize::try_from(span.member(name)?.as_number()?.as_i64()?).ok();
            let is_main = span.member("is_primary")?.as_bool()?;
            let file = span.member("file_name")?.text()?.into_owned();
            places.push((!is_main, file, number("byte_start")?..number("byte_end")?));
        }
        // The last message only says how many errors there are.
        if places.is_empty() {
            return None;
        }
        places.sort_by_key(|(is_secondary, ..)| *is_secondary);
        let places = places.into_iter().map(|(_, file, bytes)| (file, bytes)).collect();
        Some(Self { text: message.member("rendered")?.text()?.into_owned(), places })
    }

    /// Returns the mutants whose code contains a position of this error; the first position inside a mutant counts.
    fn faulty_mutants(&self, files: &BTreeMap<String, RewrittenFile>) -> BTreeSet<usize> {
        let at_place = self.places.iter().map(|(file, place)| {
            let code = files.get(file).into_iter().flat_map(|file| &file.code);
            code.filter(|code| contains(&code.bytes, place)).map(|code| code.number).collect::<BTreeSet<_>>()
        });
        at_place.into_iter().find(|mutants| !mutants.is_empty()).unwrap_or_default()
    }

    /// Returns all mutants of the smallest function that contains this error.
    fn mutants_of_function(&self, files: &BTreeMap<String, RewrittenFile>) -> BTreeSet<usize> {
        let Some((file, place)) = self.places.first() else { return BTreeSet::new() };
        let Some(file) = files.get(file) else { return BTreeSet::new() };
        let around = file.functions.iter().filter(|function| contains(function, place));
        let Some(function) = around.min_by_key(|function| function.len()) else { return BTreeSet::new() };
        file.code.iter().filter(|code| contains(function, &code.bytes)).map(|code| code.number).collect()
    }
}

fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(places: &[Range<usize>]) -> CompilerError {
        let places = places.iter().map(|place| ("a.rs".to_owned(), place.clone())).collect();
        CompilerError { text: String::new(), places }
    }

    #[test]
    fn the_positions_of_an_error_are_read_primary_ones_first() {
        let span = |start: usize, is_main: bool| {
            format!(
                r#"{{"byte_start":{start},"byte_end":{},"file_name":"a.rs","is_primary":{is_main}}}"#,
                start + 1
            )
        };
        let read = |level: &str, spans: &str| {
            let message =
                format!(r#"{{"message":{{"level":"{level}","rendered":"text","spans":[{spans}]}}}}"#);
            CompilerError::parse(&Tape::default().read(&message).unwrap().root())
        };
        let found = read("error", &[span(1, false), span(5, true)].join(",")).unwrap();
        assert_eq!(found.places, [("a.rs".to_owned(), 5..6), ("a.rs".to_owned(), 1..2)]);
        assert!(read("warning", &span(1, true)).is_none());
        assert!(read("error", "").is_none(), "the message with the number of errors");
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init, reason = "an error with one place")]
    fn an_error_belongs_to_the_mutant_at_its_position_or_to_all_mutants_of_its_function() {
        let code = [(1, 10..20), (2, 30..40), (3, 60..70)];
        let file = RewrittenFile {
            text: String::new(),
            code: code.map(|(number, bytes)| MutantCode { number, bytes }).to_vec(),
            functions: vec![0..50, 50..80],
            left_out: BTreeSet::new(),
            unviable: BTreeSet::new(),
        };
        let files = BTreeMap::from([("a.rs".to_owned(), file)]);
        assert_eq!(error(&[12..15]).faulty_mutants(&files), BTreeSet::from([1]));
        // The primary position is the whole expression, and the other one is in the mutant.
        assert_eq!(error(&[5..45, 31..33]).faulty_mutants(&files), BTreeSet::from([2]));
        assert_eq!(error(&[22..25]).faulty_mutants(&files), BTreeSet::new());
        assert_eq!(error(&[22..25]).mutants_of_function(&files), BTreeSet::from([1, 2]));
        assert_eq!(error(&[90..95]).mutants_of_function(&files), BTreeSet::new());
    }
}
