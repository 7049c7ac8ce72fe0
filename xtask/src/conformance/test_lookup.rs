//! Finds the tests that the table cites, and checks that they are run.

use std::path::Path;

use super::read;

/// Test programs whose ignored tests are run by a stage of `cargo xtask test`.
const STAGES_WITH_IGNORED_TESTS: [&str; 5] = [
    "crates/aaep/tests/oracle/",
    "crates/cli/tests/braille/",
    "crates/cli/tests/browser/",
    "crates/cli/tests/interop/",
    "crates/cli/tests/speech/",
];

/// Folders whose tests are listed in another file, because each of them runs several times or without Rust's own harness.
const LISTED_TESTS: [(&str, &str); 5] = [
    ("crates/cli/tests/rules/", "main.rs"),
    ("crates/cli/tests/wires/", "main.rs"),
    ("crates/sayso/tests/both_hub_kinds/", "mod.rs"),
    ("crates/sayso/tests/frameworks/", "mod.rs"),
    ("crates/sayso/tests/tool_and_middleware/", "mod.rs"),
];

/// Returns why a test proves nothing: it does not exist, its file is not compiled, or nothing runs it.
pub(super) fn find(file: &str, name: &str) -> Result<(), String> {
    check_is_compiled(file)?;
    let text = read(file)?;
    let attributes = attributes_of(&text, name).ok_or_else(|| format!("{file} has no function {name}"))?;
    let is_test = |line: &&str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
    if !attributes.iter().any(is_test) && !is_listed(file, name)? {
        return Err(format!("{name} in {file} is not a test"));
    }
    let is_ignored = attributes.iter().any(|line| line.starts_with("#[ignore"));
    if is_ignored && !STAGES_WITH_IGNORED_TESTS.iter().any(|folder| file.starts_with(folder)) {
        return Err(format!("{name} in {file} is ignored, and no stage runs it"));
    }
    Ok(())
}

/// Returns whether the list for this folder contains the test.
fn is_listed(file: &str, name: &str) -> Result<bool, String> {
    let Some((folder, list)) = LISTED_TESTS.iter().find(|(folder, _)| file.starts_with(folder)) else {
        return Ok(false);
    };
    let list = read(&format!("{folder}{list}"))?;
    Ok(list.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name))
}

/// Returns the attributes of a function; `None` if the file does not define it.
fn attributes_of<'t>(text: &'t str, name: &str) -> Option<Vec<&'t str>> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let definition = format!("fn {name}(");
    let at = lines.iter().position(|line| line.contains(&definition) && !line.starts_with("//"))?;
    let above = lines.get(..at).unwrap_or_default();
    let is_header = |line: &&&str| line.starts_with("#[") || line.starts_with("//");
    Some(above.iter().rev().take_while(is_header).copied().collect())
}

/// Checks that a module declares the file, that another one declares that module, and so on up to the root of a crate or a
/// test program.
fn check_is_compiled(file: &str) -> Result<(), String> {
    const ROOTS: [&str; 3] = ["main.rs", "lib.rs", "all.rs"];
    let mut module = Path::new(file).to_owned();
    loop {
        if ROOTS.iter().any(|root| module.ends_with(root)) {
            return Ok(());
        }
        // The file of the module `folder` is `folder/mod.rs` or `folder.rs`.
        if module.ends_with("mod.rs") {
            module.pop();
        }
        let name = module.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let folder = module.parent().unwrap_or(Path::new("")).to_owned();
        let parents = ROOTS.iter().copied().chain(["mod.rs"]).map(|file| folder.join(file));
        let parent = parents.chain([folder.with_extension("rs")]).find(|parent| declares(parent, &name));
        match parent {
            Some(parent) if ROOTS.iter().any(|root| parent.ends_with(root)) => return Ok(()),
            Some(_) => module = folder,
            // A test program of one file.
            None if folder.ends_with("tests") && module.ends_with(format!("{name}.rs")) => return Ok(()),
            None => return Err(format!("no module declares {}, so it is not compiled", module.display())),
        }
    }
}

fn declares(parent: &Path, module: &str) -> bool {
    let text = parent.to_str().and_then(|parent| read(parent).ok()).unwrap_or_default();
    text.lines().any(|line| line.trim_start_matches(['\t', ' ']).ends_with(&format!("mod {module};")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_only_if_they_are_run() {
        let is_run = |file: &str, name: &str| find(file, name).is_ok();
        assert!(is_run("crates/cli/tests/checklist.rs", "every_test_rule_and_file_in_the_checklist_exists"));
        assert!(is_run("crates/cli/tests/wires/replies.rs", "a_clarification_is_answered"));
        assert!(!is_run("crates/cli/tests/wires/replies.rs", "assert_decision_is_announced"));
        assert!(is_run(
            "crates/sayso/tests/both_hub_kinds/secrets.rs",
            "secrets_are_redacted_in_every_field"
        ));
        assert!(!is_run("crates/sayso/tests/both_hub_kinds/secrets.rs", "redacted_fields"));
        assert!(is_run(
            "crates/cli/tests/browser/diacritics.rs",
            "marks_are_drawn_on_their_letters_wherever_chunks_are_split"
        ));
        assert!(is_run("crates/aaep/src/rule/mod.rs", "every_rule_id_is_unique"));
        assert!(!is_run("crates/aaep/src/rule/mod.rs", "find"));
        assert!(!is_run("crates/aaep/src/rule/mod.rs", "absent"));
        assert!(!is_run("crates/cli/tests/serve/absent.rs", "absent"));
    }

    #[test]
    fn attributes_are_read_from_the_lines_above_a_function() {
        let text = "#[test]\n/// Text.\n#[ignore = \"why\"]\nfn one() {\n}\n\n#[test]\nasync fn two() {}\nfn three() {}\n";
        assert_eq!(attributes_of(text, "one"), Some(vec!["#[ignore = \"why\"]", "/// Text.", "#[test]"]));
        assert_eq!(attributes_of(text, "two"), Some(vec!["#[test]"]));
        assert_eq!(attributes_of(text, "three"), Some(vec![]));
        assert_eq!(attributes_of(text, "four"), None);
    }
}
