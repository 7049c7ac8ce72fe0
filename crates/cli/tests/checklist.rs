//! Checks that the tests, rules and files in docs/checklist.md exist.

use std::path::Path;

#[test]
fn every_test_rule_and_file_in_the_checklist_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let (checklist, rules) = (read("docs/checklist.md"), read("docs/requirements.tsv"));
    let mut found = 0;
    for quoted in checklist.split('`').skip(1).step_by(2) {
        if let Some((path, test)) = quoted.split_once("::") {
            found += 1;
            assert!(read(path).contains(&format!("fn {test}(")), "{quoted} does not exist");
        } else if quoted.starts_with("AAEP-") {
            found += 1;
            assert!(
                rules.lines().any(|row| row.starts_with(&format!("{quoted}\t"))),
                "rule {quoted} does not exist"
            );
        } else if Path::new(quoted)
            .extension()
            .is_some_and(|extension| extension == "md" || extension == "rs")
        {
            assert!(root.join(quoted).is_file(), "{quoted} does not exist");
        }
    }
    assert!(found > 25, "found only {found} tests and rules");
    // Two table headers, nine pitfalls and eleven points to check before production.
    let rows = checklist.lines().filter(|line| line.starts_with('|') && !line.starts_with("|---")).count();
    assert_eq!(rows, 2 + 9 + 11);
}
