//! What docs/checklist.md names is there.

use std::path::Path;

#[test]
fn every_test_and_rule_that_the_checklist_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let (checklist, rules) = (read("docs/checklist.md"), read("docs/requirements.tsv"));
    let mut named = 0;
    for name in checklist.split('`').skip(1).step_by(2) {
        if let Some((path, test)) = name.split_once("::") {
            named += 1;
            assert!(read(path).contains(&format!("fn {test}(")), "there is no {name}");
        } else if name.starts_with("AAEP-") {
            named += 1;
            assert!(
                rules.lines().any(|row| row.starts_with(&format!("{name}\t"))),
                "there is no rule {name}"
            );
        } else if Path::new(name).extension().is_some_and(|kind| kind == "md" || kind == "rs") {
            assert!(root.join(name).is_file(), "there is no {name}");
        }
    }
    assert!(named > 25, "only {named} were found");
    // Nine pitfalls, and eleven points before production.
    let rows = checklist.lines().filter(|line| line.starts_with('|') && !line.starts_with("|---")).count();
    assert_eq!(rows, 2 + 9 + 11);
}
