//! What happens to a configuration if something goes wrong while it is changed.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Child;

use testing::cli::{binary, check_output};

use super::Home;

const FILE: &str = ".claude/settings.json";
const TEXT: &str = "{ \"model\": \"opus\" }\n";

#[test]
fn a_link_stays_a_link_and_permissions_stay() {
    let home = Home::new();
    home.write("dotfiles/claude/settings.json", TEXT);
    std::fs::create_dir(home.path(".claude")).unwrap();
    let target = home.path("dotfiles/claude/settings.json");
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink("../dotfiles/claude/settings.json", home.path(FILE)).unwrap();
    assert_eq!(home.run(&["setup", "claude"]).exit_code, 0);
    assert!(home.path(FILE).is_symlink());
    assert!(std::fs::read_to_string(&target).unwrap().contains("\"PreToolUse\""));
    assert_eq!(target.metadata().unwrap().mode() & 0o7777, 0o640);
    assert_eq!(home.run(&["setup", "claude", "--remove"]).exit_code, 0);
    assert!(home.path(FILE).is_symlink());
    assert_eq!(std::fs::read_to_string(&target).unwrap(), TEXT);
    assert_eq!(home.files().len(), 2, "{:?}", home.files());

    // A link to a file that does not exist yet.
    std::fs::remove_file(&target).unwrap();
    assert_eq!(home.run(&["setup", "claude"]).exit_code, 0);
    assert!(home.path(FILE).is_symlink() && target.is_file());
    assert_eq!(home.run(&["setup", "claude", "--remove"]).exit_code, 0);
    assert!(home.path(FILE).is_symlink() && !target.exists());

    std::fs::remove_file(home.path(FILE)).unwrap();
    symlink("settings.json", home.path(FILE)).unwrap();
    let output = home.run(&["setup", "claude"]);
    assert_eq!((output.exit_code, output.stderr.contains("leads to itself")), (2, true), "{}", output.stderr);
}

#[test]
fn a_file_with_several_hard_links_is_refused() {
    let home = Home::new();
    home.write(FILE, TEXT);
    std::fs::hard_link(home.path(FILE), home.path("other")).unwrap();
    let output = home.run(&["setup", "claude"]);
    assert_eq!(
        (output.exit_code, output.stderr.contains("several hard links")),
        (2, true),
        "{}",
        output.stderr
    );
    assert_eq!(home.read(FILE), TEXT);
}

#[test]
fn a_write_that_fails_leaves_the_file_unchanged() {
    // The limit on file sizes simulates a full disk: the record fits, the configuration does not. The process either gets an
    // error, or is killed by the signal in the middle of the write.
    for trap in ["trap '' XFSZ;", ""] {
        let home = Home::new();
        home.write(FILE, TEXT);
        let script = format!("{trap} ulimit -f 2; exec \"$0\" setup claude");
        let mut command = home.command("/bin/sh");
        let output = command.args(["-c", &script]).arg(binary()).output().unwrap();
        if trap.is_empty() {
            assert_eq!(output.status.code(), None, "the signal ends the process");
        } else {
            let output = check_output(output);
            assert_eq!(output.exit_code, 2);
            assert!(output.stderr.contains("cannot write"), "{}", output.stderr);
            assert_eq!(home.files(), [FILE], "the temporary file is deleted");
        }
        assert_eq!(home.read(FILE), TEXT);
        // The next run works, and leaves no files of the failed one behind.
        assert_eq!(home.run(&["setup", "claude"]).exit_code, 0);
        assert_eq!(home.run(&["setup", "claude", "--remove"]).exit_code, 0);
        assert_eq!(home.read(FILE), TEXT);
        assert_eq!(home.files(), [FILE]);
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    let home = Home::new();
    home.write(FILE, TEXT);
    // The records need a folder, but there is a file. This fails for every user, even one who may write everywhere.
    home.write(".local/state", "");
    let output = home.run(&["setup", "claude"]);
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.contains("cannot create"), "{}", output.stderr);
    assert_eq!(home.read(FILE), TEXT);
    std::fs::remove_file(home.path(".local/state")).unwrap();
    home.write(".codex", "");
    let output = home.run(&["setup", "codex"]);
    assert_eq!(output.exit_code, 2, "{}", output.stdout);
    assert!(output.stderr.contains(".codex"), "{}", output.stderr);
    // The temporary file cannot be created, because a folder has its name.
    std::fs::create_dir(home.path(".claude/.settings.json.sayso-tmp")).unwrap();
    let output = home.run(&["setup", "claude"]);
    assert_eq!((output.exit_code, home.read(FILE).as_str()), (2, TEXT), "{}", output.stderr);
}

#[test]
fn a_read_only_folder_is_an_error() {
    let home = Home::new();
    home.write(FILE, TEXT);
    std::fs::set_permissions(home.path(".claude"), std::fs::Permissions::from_mode(0o500)).unwrap();
    let may_write_anyway = std::fs::write(home.path(".claude/probe"), "").is_ok();
    let output = home.run(&["setup", "claude"]);
    std::fs::set_permissions(home.path(".claude"), std::fs::Permissions::from_mode(0o700)).unwrap();
    if may_write_anyway {
        assert_eq!(output.exit_code, 0, "the super-user may write");
        return;
    }
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.contains("cannot write"), "{}", output.stderr);
    assert_eq!(home.read(FILE), TEXT);
}

#[test]
fn many_runs_at_once_leave_one_installation() {
    let home = Home::new();
    home.write(FILE, TEXT);
    let children: Vec<_> =
        (0..8).map(|_| home.command(binary()).args(["setup", "claude"]).spawn().unwrap()).collect();
    for child in children {
        let output = check_output(child.wait_with_output().unwrap());
        // If another program has changed the file during the run, the run reports that and changes nothing.
        assert!(
            output.exit_code == 0 || output.stderr.contains("changed by another program"),
            "{}",
            output.stderr
        );
    }
    let installed = home.read(FILE);
    assert!(home.run(&["setup", "claude"]).stdout.contains("is set up already"));
    assert_eq!(home.read(FILE), installed);
    assert_eq!(home.run(&["setup", "claude", "--remove"]).exit_code, 0);
    assert_eq!(home.read(FILE), TEXT);
}

#[test]
fn a_file_that_is_too_long_is_refused() {
    let home = Home::new();
    std::fs::create_dir(home.path(".claude")).unwrap();
    let file = std::fs::File::create(home.path(FILE)).unwrap();
    file.set_len(32 * 1024 * 1024 + 1).unwrap();
    let output = home.run(&["setup", "claude"]);
    assert_eq!(
        (output.exit_code, output.stderr.contains("longer than 33554432 bytes")),
        (2, true),
        "{}",
        output.stderr
    );
}

#[test]
fn the_records_are_private() {
    let home = Home::new();
    home.write(FILE, TEXT);
    assert_eq!(home.run(&["setup", "claude"]).exit_code, 0);
    let folder = home.path(".local/state/sayso/setup");
    assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);
    for entry in std::fs::read_dir(folder).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().mode() & 0o777, 0o600);
    }
}

#[test]
fn an_editor_that_saves_in_the_meantime_wins() {
    // `sayso setup` waits for its lock after it has read the file, which gives the editor the time to save.
    let home = Home::new();
    home.write(FILE, TEXT);
    let folder = home.path(".local/state/sayso/setup");
    std::fs::create_dir_all(&folder).unwrap();
    let lock = std::fs::File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let mut child = home.command(binary()).args(["setup", "claude"]).spawn().unwrap();
    wait_until_locked(&mut child);
    let saved = "{ \"model\": \"sonnet\" }\n";
    home.write(FILE, saved);
    lock.unlock().unwrap();
    let output = check_output(child.wait_with_output().unwrap());
    assert_eq!(
        (output.exit_code, output.stderr.contains("was changed by another program")),
        (2, true),
        "{}",
        output.stderr
    );
    assert_eq!(home.read(FILE), saved);
    assert_eq!(home.files(), [FILE]);
}

/// Waits until a process waits for a lock of a file.
fn wait_until_locked(child: &mut Child) {
    let marker = format!(" {} ", child.id());
    let is_waiting = |line: &str| line.contains("->") && line.contains(&marker);
    while !std::fs::read_to_string("/proc/locks").unwrap().lines().any(is_waiting) {
        assert!(child.try_wait().unwrap().is_none(), "the process ended before it waited for the lock");
        std::thread::yield_now();
    }
}
