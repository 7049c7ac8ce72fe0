//! Every public type, trait, macro, module and free function has an example that runs. Methods, constants and fields need none:
//! the example of their type shows them where that helps.

use std::fs;
use std::path::{Path, PathBuf};

/// Files with public items that nobody calls by hand.
const NOT_FOR_AUTHORS: [(&str, &str); 1] =
    [("src/decorator.rs", "what `#[sayso::tool]` writes calls it; it is hidden in the documentation")];

/// Public items without an example that runs, by file and name.
const WITHOUT: [(&str, &str, &str); 1] = [(
    "macros/src/lib.rs",
    "tool",
    "it is compiled with the default features, which have no hub to run it on; examples/decorator.rs runs",
)];

#[test]
fn every_public_type_trait_macro_and_function_has_an_example_that_runs() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&here.join("src"), &mut files);
    files.push(here.join("macros/src/lib.rs"));
    let (mut items, mut bare) = (0, Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(here).unwrap().to_str().unwrap().replace('\\', "/");
        if NOT_FOR_AUTHORS.iter().any(|(not, _)| *not == name) {
            continue;
        }
        for item in public(&text).into_iter().chain(module(&text, &name)) {
            items += 1;
            let excused = WITHOUT.iter().any(|(file, of, _)| *file == name && *of == item.name);
            if item.runs == excused {
                let what =
                    if excused { "has an example, and is excused" } else { "has no example that runs" };
                bare.push(format!("{name}:{}: {} {what}", item.line, item.name));
            }
        }
    }
    assert!(items > 60, "only {items} public items were found: this test does not see them any more");
    assert!(bare.is_empty(), "{} of {items}:\n{}", bare.len(), bare.join("\n"));
}

#[test]
fn an_example_is_seen_and_its_absence_too() {
    let source = r#"
/// Shown.
///
/// ```
/// shown();
/// ```
#[must_use = "[it] is"]
pub async fn shown() {}

/// Not.
pub(crate) fn inside() {}

/// Told, and not shown.
#[allow(
    dead_code,
    reason = "of many lines"
)]
pub struct Told<T>(T);

/// Runs nowhere.
///
/// ```no_run
/// asked::<T>();
/// ```
pub trait Asked {
    /// Words only.
    ///
    /// ```text
    /// yes
    /// ```
    fn asked(&self) -> bool;
}

impl Asked for Told<()> {
    /// Needs none.
    pub fn setter(self) -> Self {
        self
    }
}
"#;
    let found: Vec<_> = public(source).into_iter().map(|item| (item.name, item.runs)).collect();
    let expected = [("shown", true), ("Told", false), ("Asked", false)];
    assert_eq!(found, expected.map(|(name, runs)| (name.to_owned(), runs)));
}

pub(crate) fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
}

/// A public item of a file.
struct Item {
    line: usize,
    name: String,
    /// Whether its documentation has an example that runs.
    runs: bool,
}

/// The public types, traits, macros and free functions of a file that is formatted by rustfmt: they are not indented.
fn public(text: &str) -> Vec<Item> {
    let mut items = Vec::new();
    let (mut documentation, mut attribute) = (Vec::new(), 0);
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        if attribute > 0 || trimmed.starts_with("#[") {
            attribute += line.matches('[').count();
            attribute -= line.matches(']').count();
        } else if let Some(words) = trimmed.strip_prefix("///") {
            documentation.push(words.trim());
        } else {
            if let Some(name) = name(line) {
                items.push(Item { line: at + 1, name: name.to_owned(), runs: runs(&documentation) });
            }
            documentation.clear();
        }
    }
    items
}

/// The module that a file is, if it is public: the crate itself, or a folder or file right below it that it opens.
fn module(text: &str, file: &str) -> Option<Item> {
    let name = file.strip_prefix("src/")?;
    let name = name.strip_suffix("/mod.rs").or_else(|| name.strip_suffix(".rs"))?;
    let opened = format!("pub mod {name};");
    let is = name == "lib" || include_str!("../../src/lib.rs").lines().any(|line| line == opened);
    let documentation: Vec<_> =
        text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    is.then(|| Item { line: 1, name: name.to_owned(), runs: runs(&documentation) })
}

/// The name of the public item that begins on this line.
fn name(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ")?;
    let line = line.strip_prefix("async ").unwrap_or(line);
    let line = ["fn ", "struct ", "enum ", "trait ", "type ", "const fn "]
        .iter()
        .find_map(|kind| line.strip_prefix(kind))?;
    line.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
}

/// Whether one of the code blocks of a documentation is run by `cargo test`.
fn runs(documentation: &[&str]) -> bool {
    let fences = documentation.iter().filter_map(|line| line.strip_prefix("```"));
    fences.step_by(2).any(|kind| kind.is_empty() || kind == "rust")
}
