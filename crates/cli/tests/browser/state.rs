//! What holds in every state of the page: nothing bars anybody, in light and in dark; what a screen reader is told is as it was when
//! somebody last looked at it; and the browser has nothing to complain about.

use std::path::PathBuf;

use serde_json::Value;

use testing::chromium::{Look, Page};

/// Set to anything, trees are written and not compared: `REWRITE_TREES=1 cargo xtask browser`. Look at what changed before it lands.
const REWRITE: &str = "REWRITE_TREES";

/// Checks a state, and takes its pictures.
pub(crate) fn check(page: &mut Page, name: &str) {
    look_at(page, name);
    let complaints = page.complaints();
    assert!(complaints.is_empty(), "{name}: {complaints:#?}");
}

/// As [`check`], where the hub refuses or cannot be reached: the browser complains of just that.
pub(crate) fn check_kept_out(page: &mut Page, name: &str) {
    look_at(page, name);
    let mut complaints = page.complaints();
    complaints.retain(|one| one.about != "network");
    assert!(complaints.is_empty(), "{name}: {complaints:#?}");
}

fn look_at(page: &mut Page, name: &str) {
    for (look, suffix) in [(Look::DARK, "dark"), (Look::LIGHT, "light")] {
        page.look(look);
        page.picture(&format!("{name}-{suffix}"));
        no_bars(page, &format!("{name}, {suffix}"));
    }
    same_tree(page, name);
}

/// axe-core finds nothing.
pub(crate) fn no_bars(page: &mut Page, name: &str) {
    let packages =
        std::env::var("BROWSER_PACKAGES").expect("BROWSER_PACKAGES: run this by `cargo xtask browser`");
    let axe =
        std::fs::read_to_string(PathBuf::from(packages).join("node_modules/axe-core/axe.min.js")).unwrap();
    let found = page.aside(
        &axe,
        "axe.run(document).then(({ violations, passes }) => ({ violations, passed: passes.length }))",
    );
    assert_eq!(found["violations"], Value::Array(Vec::new()), "{name}: {:#}", found["violations"]);
    assert!(found["passed"].as_u64() > Some(10), "{name}: it looked at nothing: {found}");
}

/// The tree is the kept one.
fn same_tree(page: &mut Page, name: &str) {
    let tree = steady(&page.tree());
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/browser/trees/{name}.txt"));
    if std::env::var_os(REWRITE).is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &tree).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    if kept == tree {
        return;
    }
    let differ = kept.lines().zip(tree.lines()).position(|(kept, now)| kept != now);
    let from = differ.unwrap_or(kept.lines().count().min(tree.lines().count()));
    let line = |text: &str| text.lines().nth(from).unwrap_or("nothing").to_owned();
    panic!(
        "{name}: a screen reader is told something else than in {}, line {}:\n  kept {}\n  now  {}\n\n{tree}\n{REWRITE}=1 keeps the new tree",
        file.display(),
        from + 1,
        line(&kept),
        line(&tree)
    );
}

/// Without what differs from run to run: times of day, time that is left, and what is just being said.
fn steady(tree: &str) -> String {
    let mut lines = Vec::new();
    let mut live: Option<usize> = None;
    for line in tree.lines() {
        let depth = line.len() - line.trim_start().len();
        if live.is_some_and(|of| depth > of) {
            continue;
        }
        live = None;
        let mut line = line.to_owned();
        if let Some(at) = line.find(" live=") {
            live = Some(depth);
            let end = line[at + 1..].find([' ', ':']).map_or(line.len(), |end| at + 1 + end);
            line.truncate(end);
        }
        lines.push(without_times(&line));
    }
    lines.join("\n") + "\n"
}

fn without_times(line: &str) -> String {
    let word = |word: &str| {
        let bare = word.trim_start_matches(['"', '(']);
        let time = bare.len() == 8
            && bare
                .bytes()
                .enumerate()
                .all(|(at, byte)| if at % 3 == 2 { byte == b':' } else { byte.is_ascii_digit() });
        if time { word.replace(bare, "TIME") } else { word.to_owned() }
    };
    let line = line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    for (before, behind) in [("About ", " are left."), ("cerca de ", ". ")] {
        if let Some(from) = line.find(before).map(|at| at + before.len())
            && let Some(to) = line[from..].find(behind)
        {
            return format!("{}SOME TIME{}", &line[..from], &line[from + to..]);
        }
    }
    line
}
