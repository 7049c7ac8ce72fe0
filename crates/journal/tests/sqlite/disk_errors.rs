//! Full and read-only disks.

use journal::{Journal, JournalEntry, JournalError, Position, Retention};
use seal::UnixMillis;

use crate::*;

#[test]
fn a_file_at_its_limit_reports_full_loses_nothing_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut journal =
        SqliteJournal::open(&path, &SqliteSettings { max_bytes: Some(1 << 20), ..SqliteSettings::default() })
            .unwrap();
    journal.commit(&[session_opened("s"), session_opened("full")]).unwrap();
    fill_then_recover(&mut journal);
    drop(journal);
    open(&path).unwrap().check_integrity().unwrap();
}

/// Fills the journal, checks the error, frees space by trimming, and continues.
fn fill_then_recover(journal: &mut SqliteJournal) {
    let (acknowledged, error) = write_events(journal, 1, 10_000, &[7; 1000]);
    assert!(matches!(error, Some(JournalError::Full)), "{acknowledged} {error:?}");
    assert!(acknowledged > 100, "{acknowledged}");
    let record = vec![7; 100_000];
    let question_opened = JournalEntry::QuestionOpened {
        token: "q",
        session: "full",
        deadline: UnixMillis::new(9),
        record: &record,
    };
    assert!(matches!(journal.commit(&[question_opened]), Err(JournalError::Full)));
    let live_state = journal.restore().unwrap();
    assert_eq!((live_state.last_position, live_state.questions.len()), (Position::new(acknowledged), 0));
    assert_eq!(journal.events(Position::START, usize::MAX).unwrap().len() as u64, acknowledged);
    assert_eq!(journal.event_position(&format!("e{:06}", acknowledged + 1)).unwrap(), None);

    journal.commit(&[JournalEntry::SessionEnded { id: "s", at: UnixMillis::new(0) }]).unwrap();
    while journal
        .trim(&Retention { max_event_age_ms: Some(0), ..Retention::default() }, UnixMillis::new(9))
        .unwrap()
        .has_more
    {}
    journal.commit(&[question_opened]).unwrap();
    let next_id = format!("e{:06}", acknowledged + 1);
    let position = Position::new(acknowledged + 1);
    let event = JournalEntry::Event {
        position,
        session: "full",
        event_id: &next_id,
        at: UnixMillis::new(0),
        is_critical: false,
        body: &[7; 1000],
    };
    journal.commit(&[event]).unwrap();
}

/// Fills a small disk that a child process mounts. Skips the test if mounting is not permitted.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_loses_nothing_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"mount -t tmpfs -o size=2m,mode=700 tmpfs "$1" || { echo no mount; exit 0; }
        DISK_TO_FILL="$1" exec "$2" --exact disk_errors::fill_a_disk_if_requested --nocapture"#;
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .args([folder.path(), &std::env::current_exe().unwrap()])
        .output();
    let Ok(output) = output else { return eprintln!("skipped: unshare is not available") };
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if text.contains("no mount") || text.contains("unshare: ") {
        return eprintln!("skipped: mounting is not permitted ({text})");
    }
    assert!(output.status.success() && text.contains("filled and recovered"), "{text}");
}

/// Runs in the child process of the test above. Does nothing otherwise.
#[test]
fn fill_a_disk_if_requested() {
    let Some(disk) = std::env::var_os("DISK_TO_FILL") else { return };
    let disk = Path::new(&disk);
    let path = disk.join("journal.db");
    std::fs::write(disk.join("ballast"), vec![0; 400_000]).unwrap();
    let mut journal = open(&path).unwrap();
    journal.commit(&[session_opened("s")]).unwrap();
    let (acknowledged, error) = write_events(&mut journal, 1, 10_000, &[7; 1000]);
    assert!(matches!(error, Some(JournalError::Full)), "{acknowledged} {error:?}");
    assert_eq!(journal.restore().unwrap().last_position, Position::new(acknowledged));
    assert_eq!(journal.events(Position::START, usize::MAX).unwrap().len() as u64, acknowledged);
    std::fs::remove_file(disk.join("ballast")).unwrap();
    let (later_acknowledged, _) = write_events(&mut journal, acknowledged + 1, 10_000, &[7; 1000]);
    assert!(later_acknowledged > 10, "{later_acknowledged}");
    let copy_folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut after_crash = open(&copy(&path, copy_folder.path())).unwrap();
    assert_eq!(
        after_crash.restore().unwrap().last_position,
        Position::new(acknowledged + later_acknowledged)
    );
    after_crash.check_integrity().unwrap();
    println!("filled and recovered");
}

#[cfg(unix)]
#[test]
fn an_unwritable_file_or_folder_is_refused_as_read_only() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
    use std::os::unix::process::CommandExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    drop(open(&path).unwrap());
    let set_mode =
        |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    let open_in_child = |file_mode, folder_mode, path: &Path| {
        set_mode(&folder.path().join("journal.db"), file_mode);
        set_mode(&folder.path().join("journal.db-high-water"), file_mode);
        set_mode(folder.path(), folder_mode);
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "settings::open_a_journal_if_requested", "--nocapture"]);
        child.env("JOURNAL_TO_OPEN", path);
        // Root could write the file regardless of its mode, so the child runs as another user.
        if folder.path().metadata().unwrap().uid() == 0 {
            child.uid(65534).gid(65534);
        }
        let output = child.output();
        set_mode(folder.path(), 0o700);
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    match open_in_child(0o444, 0o777, &path) {
        Ok(text) => assert!(text.contains("read-only"), "file: {text}"),
        Err(error) => return eprintln!("skipped: cannot run as another user ({error})"),
    }
    let text = open_in_child(0o666, 0o555, &path).unwrap();
    assert!(text.contains("read-only"), "folder: {text}");
    let text = open_in_child(0o666, 0o555, &folder.path().join("new.db")).unwrap();
    assert!(text.contains("read-only"), "new file: {text}");
    let text = open_in_child(0o666, 0o777, &path).unwrap();
    assert!(text.contains("opened"), "{text}");
}
