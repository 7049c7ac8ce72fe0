//! Checks on the repository's files: every test file belongs to a test program, every path and file
//! name in ARCHITECTURE.md exists, every test in docs/security.md exists, and every cited decision is explained.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_file_in_tests_is_a_module_of_a_test_program() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = 0;
    for folder in
        entries(&crates).iter().map(|package| package.join("tests")).filter(|folder| folder.is_dir())
    {
        let manifest = fs::read_to_string(folder.join("../Cargo.toml")).unwrap();
        let program = fs::read_to_string(folder.join("all.rs")).unwrap_or_default();
        let has_automatic_tests = !manifest.contains("autotests = false");
        for path in entries(&folder) {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let is_program = manifest.contains(&format!("[[test]]\nname = \"{name}\"\n"));
            if is_program || has_automatic_tests {
                continue;
            }
            if has_extension(&path, "rs") || path.join("mod.rs").is_file() {
                files += 1;
                assert!(
                    program.contains(&format!("mod {name};")),
                    "{} is not a module of all.rs, so its tests never run",
                    path.display()
                );
            }
        }
    }
    assert!(files > 50, "found only {files} files");
}

#[test]
fn every_crate_path_in_the_architecture_document_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let paths = crate_paths(&document);
    assert!(!paths.is_empty(), "found no path in ARCHITECTURE.md");
    assert_eq!(
        missing_paths(&root, &paths),
        Vec::<&str>::new(),
        "ARCHITECTURE.md names paths that do not exist"
    );
}

#[test]
fn every_file_name_in_the_architecture_document_is_in_a_folder_that_its_row_or_section_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let names: usize = rows_and_sections(&document).iter().map(|part| file_names(part).len()).sum();
    assert!(names > 150, "found only {names} names");
    assert_eq!(
        unlocated_names(&root, &document),
        Vec::<String>::new(),
        "no folder that the same row or section of ARCHITECTURE.md names contains these files"
    );
}

#[test]
fn a_file_name_outside_the_folders_of_its_row_or_section_is_reported() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = "# One\n`crates/cli/tests/`, `repository_files.rs`, `replay/`, `no_such_file.rs`, `setup/no_such_file.py`\n\
                    | a | `crates/cli/tests/all.rs`, `repository_files.rs` in the same folder |\n\
                    | b | `repository_files.rs`, `cargo test`, `/page/markdown` |\n\
                    ## Two\n`repository_files.rs`, `no_such_folder/`\n";
    assert_eq!(
        unlocated_names(&root, document),
        [
            "repository_files.rs",
            "no_such_file.rs",
            "setup/no_such_file.py",
            "repository_files.rs",
            "no_such_folder/"
        ]
    );
}

#[test]
fn no_type_name_is_defined_in_more_than_two_crates() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut definitions: BTreeMap<String, BTreeMap<String, PathBuf>> = BTreeMap::new();
    for package in entries(&crates) {
        let name = package.file_name().unwrap().to_str().unwrap().to_owned();
        for file in rust_files(&package.join("src")) {
            for type_name in type_definitions(&fs::read_to_string(&file).unwrap()) {
                definitions.entry(type_name).or_default().insert(name.clone(), file.clone());
            }
        }
    }
    assert!(definitions.len() > 500, "found only {} types", definitions.len());
    definitions.retain(|_, crates| crates.len() > 2);
    assert!(definitions.is_empty(), "a name that many crates use needs context: {definitions:#?}");
}

#[test]
fn type_definitions_are_found_and_associated_types_are_not() {
    let source = "pub struct A;\n    enum B {}\n\
                  pub(crate) trait C {\n    type Error;\n}\n\
                  type D = u8;\n// struct E\n\
                  impl F for A {\n    type Output = u8;\n}\n\
                  seal::string_enum! {\n    /// G.\n    G {\n        H \"h\",\n    }\n}\n\
                  enum I {\n    J {\n        k: u8,\n    },\n}\n";
    assert_eq!(type_definitions(source), ["A", "B", "C", "D", "G", "I"]);
}

/// The macros that define types.
const TYPE_MACROS: [&str; 6] = ["string_enum", "open_enum", "record", "json_record", "bodies", "payloads"];

/// Returns the names of the types that a source file defines, without associated types.
fn type_definitions(source: &str) -> Vec<String> {
    let mut is_in_macro = false;
    let mut definition = |line: &str| {
        if !line.starts_with(' ') {
            let called = line.strip_suffix("! {").and_then(|path| path.rsplit("::").next());
            is_in_macro = called.is_some_and(|name| TYPE_MACROS.contains(&name));
        }
        // In these macros, the definition of a type is a name and a brace.
        if is_in_macro
            && let Some(name) = line.strip_prefix("    ").and_then(|rest| rest.split_once(" {"))
            && name.0.starts_with(char::is_uppercase)
        {
            return Some(name.0.to_owned());
        }
        let rest = line.trim_start();
        let rest = rest.strip_prefix("pub").map_or(rest, |rest| {
            let rest = rest.trim_start();
            rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest)
        });
        let (keyword, rest) = rest.trim_start().split_once(' ')?;
        // An alias inside another item is an associated type.
        let is_definition = match keyword {
            "struct" | "enum" | "trait" | "union" => true,
            "type" => !line.starts_with(' '),
            _ => false,
        };
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        (is_definition && name.starts_with(char::is_uppercase)).then_some(name)
    };
    source.lines().filter_map(&mut definition).collect()
}

/// Returns all Rust files below a folder, except tests.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    if !folder.is_dir() || folder.ends_with("tests") {
        return Vec::new();
    }
    entries(folder)
        .into_iter()
        .flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] })
        .filter(|path| has_extension(path, "rs") && !path.ends_with("tests.rs"))
        .collect()
}

#[test]
fn a_missing_crate_path_is_reported() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = "See `crates/cli/src/`, `crates/cli/Cargo.toml`, `cargo test`, crates/bare and\n\
                    `crates/cli/src/no_such_file.rs`.\n\
                    ```text\ncrates/in_a_block/\n```\n\
                    A module: `crates/no_such_crate/src/`.";
    let paths = crate_paths(document);
    assert_eq!(
        paths,
        [
            "crates/cli/src/",
            "crates/cli/Cargo.toml",
            "crates/cli/src/no_such_file.rs",
            "crates/no_such_crate/src/"
        ]
    );
    assert_eq!(missing_paths(&root, &paths), ["crates/cli/src/no_such_file.rs", "crates/no_such_crate/src/"]);
}

#[test]
fn every_test_in_the_security_document_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let (tests, files): (Vec<&str>, Vec<&str>) =
        crate_paths(&document).into_iter().partition(|path| path.contains("::"));
    assert!(tests.len() > 50, "found only {} tests in docs/security.md", tests.len());
    assert_eq!(missing_tests(&root, &tests), Vec::<&str>::new(), "docs/security.md names missing tests");
    assert!(files.len() > 10, "found only {} files in docs/security.md", files.len());
    assert_eq!(missing_paths(&root, &files), Vec::<&str>::new(), "docs/security.md names missing files");
}

#[test]
fn the_security_document_lists_exactly_the_fuzz_targets() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let stem = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let targets: Vec<String> = entries(&root.join("fuzz/fuzz_targets")).into_iter().map(stem).collect();
    assert_eq!(fuzz_target_problems(&document, &targets), Vec::<String>::new());
}

#[test]
fn a_wrong_fuzz_target_is_reported() {
    let document = "fuzz target `gone`, fuzz target `kept`\n## Fuzzing\n| `kept` | x |\n| `old` | x |\n## Other\n| `x` |\n";
    let targets = ["kept", "new"].map(str::to_owned);
    assert_eq!(
        fuzz_target_problems(document, &targets),
        [
            "gone is cited and does not exist",
            "new is not in the table",
            "old is in the table and does not exist"
        ]
    );
}

/// Returns the differences between the fuzz targets and those that a document cites or lists under its heading "Fuzzing".
fn fuzz_target_problems(document: &str, targets: &[String]) -> Vec<String> {
    let name = |text: &str| text.split('`').next().unwrap_or_default().to_owned();
    let is_target = |name: &String| targets.contains(name);
    let cited = document.split("fuzz target `").skip(1).map(name);
    let section = document.split("\n## Fuzzing\n").nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let listed: Vec<String> = section.lines().filter_map(|line| line.strip_prefix("| `")).map(name).collect();
    let mut problems: Vec<String> = cited
        .filter(|name| !is_target(name))
        .map(|name| format!("{name} is cited and does not exist"))
        .collect();
    let unlisted = targets.iter().filter(|name| !listed.contains(name));
    problems.extend(unlisted.map(|name| format!("{name} is not in the table")));
    let missing = listed.iter().filter(|name| !is_target(name));
    problems.extend(missing.map(|name| format!("{name} is in the table and does not exist")));
    problems
}

#[test]
fn a_missing_test_is_reported() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let here = "crates/cli/tests/repository_files.rs";
    let tests = ["a_missing_test_is_reported", "a_missing_test", "no_such_test"]
        .map(|name| format!("{here}::{name}"));
    let mut tests: Vec<&str> = tests.iter().map(String::as_str).collect();
    tests.push("crates/no_such_file.rs::a_missing_test_is_reported");
    assert_eq!(missing_tests(&root, &tests), tests[1..]);
}

/// Returns the tests, written as `path::name`, that do not exist below `root`.
fn missing_tests<'p>(root: &Path, tests: &[&'p str]) -> Vec<&'p str> {
    let exists = |test: &&str| {
        let (path, name) = test.split_once("::").unwrap();
        fs::read_to_string(root.join(path)).is_ok_and(|text| text.contains(&format!("fn {name}(")))
    };
    tests.iter().copied().filter(|test| !exists(test)).collect()
}

/// Returns the paths in backticks that start with `crates/`. Skips fenced code blocks.
fn crate_paths(document: &str) -> Vec<&str> {
    let prose = document.split("```").step_by(2);
    let code = prose.flat_map(|text| text.split('`').skip(1).step_by(2));
    code.filter(|code| code.starts_with("crates/")).collect()
}

/// Returns each table row of a document, and the other text of each section.
fn rows_and_sections(document: &str) -> Vec<String> {
    let (mut rows, mut sections) = (Vec::new(), vec![String::new()]);
    for line in document.lines() {
        if line.starts_with('|') {
            rows.push(line.to_owned());
            continue;
        }
        if line.starts_with('#') {
            sections.push(String::new());
        }
        if let Some(section) = sections.last_mut() {
            section.push_str(line);
            section.push('\n');
        }
    }
    rows.append(&mut sections);
    rows
}

/// Returns the source files and folders in backticks, with or without a path.
fn file_names(text: &str) -> Vec<&str> {
    let is_name = |code: &&str| {
        let is_path = code.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
        let is_source = ["rs", "js", "ts", "py"].iter().any(|kind| has_extension(Path::new(code), kind));
        is_path && !code.starts_with('/') && (is_source || code.ends_with('/'))
    };
    text.split('`').skip(1).step_by(2).filter(is_name).collect()
}

/// Returns the file names that exist neither below `root` nor in a folder that the same row or section names. A file
/// with its path names the folder that contains it.
fn unlocated_names(root: &Path, document: &str) -> Vec<String> {
    let mut unlocated = Vec::new();
    for part in rows_and_sections(document) {
        let (paths, names): (Vec<&str>, Vec<&str>) =
            file_names(&part).into_iter().partition(|name| name.contains('/') && root.join(name).exists());
        let folders: Vec<PathBuf> = paths
            .iter()
            .map(|path| root.join(path))
            .filter_map(|path| if path.is_dir() { Some(path) } else { Some(path.parent()?.to_owned()) })
            .collect();
        let is_unlocated = |name: &&str| !folders.iter().any(|folder| folder.join(name).exists());
        unlocated.extend(names.into_iter().filter(is_unlocated).map(str::to_owned));
    }
    unlocated
}

/// Returns the paths that do not exist below `root`.
fn missing_paths<'p>(root: &Path, paths: &[&'p str]) -> Vec<&'p str> {
    paths.iter().copied().filter(|path| !root.join(path).exists()).collect()
}

#[test]
fn every_cited_decision_has_a_row_in_decisions_md() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    collect_files(&root.join("crates"), "rs", &mut files);
    files.extend(entries(&root.join("docs")).into_iter().filter(|path| has_extension(path, "md")));
    let mut cited = BTreeMap::new();
    for path in files {
        for id in decision_ids(&fs::read_to_string(&path).unwrap()) {
            cited.entry(id).or_insert_with(|| path.clone());
        }
    }
    assert!(cited.len() > 80, "found only {} ids", cited.len());
    let page = fs::read_to_string(root.join("docs/decisions.md")).unwrap();
    let unexplained: Vec<_> = cited.iter().filter(|(id, _)| !has_row(&page, id)).collect();
    assert!(unexplained.is_empty(), "docs/decisions.md has no row for {unexplained:?}");
}

#[test]
fn decision_ids_are_found_and_a_missing_row_is_noticed() {
    // The ids are assembled here, because the test above also reads this file.
    let id = |rest: &str| format!("C-{rest}");
    let text = format!("({}, {}); {} AAEP-SPEC-1 UTC-A1 C-a1 C-A", id("Z1"), id("Z12"), id("Y3:"));
    assert_eq!(decision_ids(&text), [id("Z1"), id("Z12"), id("Y3")]);
    let page = format!("| {} | see {} | |\n", id("Z12"), id("Y3"));
    let rows = ["Z12", "Z1", "Y3"].map(|rest| has_row(&page, &id(rest)));
    assert_eq!(rows, [true, false, false]);
}

/// Returns the decision ids in a text: `C-`, one capital letter and a number.
fn decision_ids(text: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for (at, _) in text.match_indices("C-") {
        let is_word_character = |before: char| before.is_alphanumeric() || before == '_';
        let rest = &text[at + 2..];
        let after_letters = rest.trim_start_matches(|character: char| character.is_ascii_uppercase());
        let digit_count = after_letters.len()
            - after_letters.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
        if !text[..at].ends_with(is_word_character)
            && rest.len() - after_letters.len() == 1
            && digit_count > 0
        {
            ids.push(format!("C-{}", &rest[..=digit_count]));
        }
    }
    ids
}

/// Whether a table on the page has a row for the id.
fn has_row(page: &str, id: &str) -> bool {
    page.lines().any(|line| line.starts_with(&format!("| {id} | ")))
}

fn collect_files(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        if path.is_dir() {
            collect_files(&path, extension, files);
        } else if has_extension(&path, extension) {
            files.push(path);
        }
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|kind| kind == extension)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}
