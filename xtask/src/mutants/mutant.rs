//! The list of possible mutants, which cargo-mutants creates.

use std::path::Path;

use seal::json::{JsonValue, Tape};

use super::MutationScope;
use crate::stage::{cargo, command_output, root};

/// A change of one expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mutant {
    /// The number that selects this mutant. It is unique in the scope.
    pub(crate) number: usize,
    /// For example `crates/hub/src/core/questions.rs:12:5: replace == with != in Core::wait`.
    pub(crate) name: String,
    /// The path relative to the root.
    pub(crate) file: String,
    pub(crate) kind: MutationKind,
    /// The changed text.
    pub(crate) start: LineColumn,
    pub(crate) end: LineColumn,
    /// The replacement of the changed text. For a deleted arm of a `match`, it is empty.
    pub(crate) replacement: String,
    /// Whether the function returns `impl Trait`, so that all its results must have one type.
    pub(crate) returns_impl_trait: bool,
}

/// The kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MutationKind {
    /// The body of a function.
    FunctionBody,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchGuard,
    /// A field in an expression that makes a struct.
    StructField,
}

/// A position in a file. Both numbers start with 1, and columns are counted in characters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LineColumn {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl MutationKind {
    fn parse(genre: &str) -> Option<Self> {
        Some(match genre {
            "FnValue" => Self::FunctionBody,
            "BinaryOperator" => Self::BinaryOperator,
            "UnaryOperator" => Self::UnaryOperator,
            "MatchArm" => Self::MatchArm,
            "MatchArmGuard" => Self::MatchGuard,
            "StructField" => Self::StructField,
            _ => return None,
        })
    }
}

/// Returns the mutants of these files and folders. With a diff, returns only those in its lines.
pub(crate) fn list(
    scope: &MutationScope,
    paths: &[String],
    diff: Option<&Path>,
) -> Result<Vec<Mutant>, String> {
    let mut command = cargo();
    command.args(["mutants", "--list", "--json", "--package", scope.package]);
    command.args(paths.iter().flat_map(|path| ["--file".to_owned(), file_pattern(path)]));
    if let Some(diff) = diff {
        command.arg("--in-diff").arg(diff);
    }
    parse_list(&command_output(&mut command)?)
}

/// Returns the pattern with which cargo-mutants finds a file, or all files of a folder.
pub(crate) fn file_pattern(path: &str) -> String {
    if root().join(path).is_dir() { format!("{path}/**") } else { path.to_owned() }
}

fn parse_list(text: &str) -> Result<Vec<Mutant>, String> {
    // cargo-mutants prints nothing if no changed line can be mutated.
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut tape = Tape::default();
    let list = tape.read(text).map_err(|error| format!("the list of cargo-mutants is not JSON: {error}"))?;
    let mutants = list.root().items().zip(1..).map(|(item, number)| {
        parse_mutant(&item, number).ok_or_else(|| format!("unknown kind of mutant: {}", item.source()))
    });
    mutants.collect()
}

fn parse_mutant(item: &JsonValue<'_>, number: usize) -> Option<Mutant> {
    let text = |name: &str| Some(item.member(name)?.text()?.into_owned());
    let span = item.member("span")?;
    let returns_impl_trait = item
        .member("function")
        .and_then(|function| function.member("return_type")?.text().map(|text| text.contains("impl ")))
        .unwrap_or(false);
    Some(Mutant {
        number,
        name: text("name")?,
        file: text("file")?,
        kind: MutationKind::parse(&item.member("genre")?.text()?)?,
        start: parse_position(&span.member("start")?)?,
        end: parse_position(&span.member("end")?)?,
        replacement: text("replacement")?,
        returns_impl_trait,
    })
}

fn parse_position(position: &JsonValue<'_>) -> Option<LineColumn> {
    let number = |name: &str| usize::try_from(position.member(name)?.as_number()?.as_i64()?).ok();
    Some(LineColumn { line: number("line")?, column: number("column")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_cargo_mutants_is_read() {
        let text = r#"[{
            "file": "crates/a/src/lib.rs",
            "function": {"function_name": "all", "return_type": "-> impl Iterator<Item = u8>"},
            "genre": "FnValue",
            "name": "crates/a/src/lib.rs:2:5: replace all -> impl Iterator<Item = u8> with ::std::iter::empty()",
            "replacement": "::std::iter::empty()",
            "span": {"start": {"line": 2, "column": 5}, "end": {"line": 3, "column": 9}}
        }, {
            "file": "crates/a/src/lib.rs", "function": null, "genre": "BinaryOperator", "name": "n", "replacement": "-",
            "span": {"start": {"line": 7, "column": 1}, "end": {"line": 7, "column": 2}}
        }]"#;
        let mutants = parse_list(text).unwrap();
        assert_eq!(mutants.len(), 2);
        assert_eq!((mutants[0].number, mutants[1].number), (1, 2));
        assert_eq!(mutants[0].kind, MutationKind::FunctionBody);
        assert_eq!(mutants[0].end, LineColumn { line: 3, column: 9 });
        assert!(mutants[0].returns_impl_trait && !mutants[1].returns_impl_trait);
        assert_eq!(parse_list(""), Ok(Vec::new()));
        assert!(parse_list(r#"[{"genre":"Unknown"}]"#).unwrap_err().contains("Unknown"));
    }
}
