//! Checks for every state of the page: no accessibility violations in light and dark mode, an unchanged accessibility
//! tree, and no browser errors.

use std::path::PathBuf;

use serde_json::Value;

use testing::chromium::{MediaPreferences, Page};

/// If this variable is set, trees are written instead of compared: `REWRITE_TREES=1 cargo xtask browser`. Review the
/// changes before committing them.
const REWRITE_VARIABLE: &str = "REWRITE_TREES";

/// Checks a state and takes screenshots.
pub(crate) fn check_state(page: &mut Page, name: &str) {
    check_appearance(page, name);
    let errors = page.take_errors();
    assert!(errors.is_empty(), "{name}: {errors:#?}");
}

/// Like [`check_state`], for a hub that rejects requests or is unreachable. Network errors are allowed.
pub(crate) fn check_state_with_network_errors(page: &mut Page, name: &str) {
    check_appearance(page, name);
    let mut errors = page.take_errors();
    errors.retain(|error| error.source != "network");
    assert!(errors.is_empty(), "{name}: {errors:#?}");
}

fn check_appearance(page: &mut Page, name: &str) {
    for (preferences, suffix) in [(MediaPreferences::DARK, "dark"), (MediaPreferences::LIGHT, "light")] {
        page.set_media_preferences(preferences);
        page.screenshot(&format!("{name}-{suffix}"));
        assert_no_accessibility_violations(page, &format!("{name}, {suffix}"));
    }
    assert_same_tree(page, name);
}

/// Asserts that axe-core finds no violation.
pub(crate) fn assert_no_accessibility_violations(page: &mut Page, name: &str) {
    let packages =
        std::env::var("BROWSER_PACKAGES").expect("BROWSER_PACKAGES is not set: run `cargo xtask browser`");
    let axe =
        std::fs::read_to_string(PathBuf::from(packages).join("node_modules/axe-core/axe.min.js")).unwrap();
    let result = page.evaluate_isolated(
        &axe,
        "axe.run(document).then(({ violations, passes }) => ({ violations, passed: passes.length }))",
    );
    assert_eq!(result["violations"], Value::Array(Vec::new()), "{name}: {:#}", result["violations"]);
    assert!(result["passed"].as_u64() > Some(10), "{name}: axe-core ran too few checks: {result}");
}

/// Asserts that the accessibility tree matches the stored one.
fn assert_same_tree(page: &mut Page, name: &str) {
    let tree = normalize_tree(&page.accessibility_tree());
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/browser/trees/{name}.txt"));
    if std::env::var_os(REWRITE_VARIABLE).is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &tree).unwrap();
        return;
    }
    let stored = std::fs::read_to_string(&file).unwrap_or_default();
    if stored == tree {
        return;
    }
    let difference = stored.lines().zip(tree.lines()).position(|(stored, actual)| stored != actual);
    let from = difference.unwrap_or(stored.lines().count().min(tree.lines().count()));
    let line = |text: &str| text.lines().nth(from).unwrap_or("nothing").to_owned();
    panic!(
        "{name}: the accessibility tree differs from {}, line {}:\n  stored {}\n  actual {}\n\n{tree}\nSet {REWRITE_VARIABLE}=1 to store the new tree.",
        file.display(),
        from + 1,
        line(&stored),
        line(&tree)
    );
}

/// Removes what differs between runs: times of day, remaining times and the content of live regions.
fn normalize_tree(tree: &str) -> String {
    let mut lines = Vec::new();
    let mut live_region_depth: Option<usize> = None;
    for line in tree.lines() {
        let depth = line.len() - line.trim_start().len();
        if live_region_depth.is_some_and(|region_depth| depth > region_depth) {
            continue;
        }
        live_region_depth = None;
        let mut line = line.to_owned();
        if let Some(at) = line.find(" live=") {
            live_region_depth = Some(depth);
            let end = line[at + 1..].find([' ', ':']).map_or(line.len(), |end| at + 1 + end);
            line.truncate(end);
        }
        lines.push(mask_times(&line));
    }
    lines.join("\n") + "\n"
}

fn mask_times(line: &str) -> String {
    let mask_time = |word: &str| {
        let bare = word.trim_start_matches(['"', '(']);
        let bare = bare.trim_end_matches(['.', ',', ';', '"']);
        let is_time = matches!(bare.len(), 5 | 8)
            && bare
                .bytes()
                .enumerate()
                .all(|(at, byte)| if at % 3 == 2 { byte == b':' } else { byte.is_ascii_digit() });
        if is_time { word.replace(bare, "TIME") } else { word.to_owned() }
    };
    let mut line = line.split(' ').map(mask_time).collect::<Vec<_>>().join(" ");
    for (before, after) in
        [("About ", " left."), ("cerca de ", "."), ("TIME, took ", "."), ("TIME; tardó ", ".")]
    {
        if let Some(from) = line.find(before).map(|at| at + before.len())
            && let Some(to) = line[from..].find(after)
        {
            line = format!("{}SOME TIME{}", &line[..from], &line[from + to..]);
        }
    }
    line
}
