//! Disks that are full or may not be written.

use journal::{Entry, Error, Journal, Position, Retention};
use seal::UnixMillis;

use crate::*;

#[test]
fn a_file_at_its_limit_says_full_loses_nothing_and_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut journal = Sqlite::open(&path, &Settings { most_bytes: Some(1 << 20) }).unwrap();
    journal.commit(&[opened("s"), opened("full")]).unwrap();
    full_and_on_again(&mut journal);
    drop(journal);
    open(&path).unwrap().check().unwrap();
}

/// Fills it, sees the refusal, makes room by forgetting, goes on.
fn full_and_on_again(journal: &mut Sqlite) {
    let (done, error) = publish(journal, 1, 10_000, &[7; 1000]);
    assert!(matches!(error, Some(Error::Full)), "{done} {error:?}");
    assert!(done > 100, "{done}");
    let record = vec![7; 100_000];
    let asked =
        Entry::QuestionOpened { token: "q", session: "full", deadline: UnixMillis::new(9), record: &record };
    assert!(matches!(journal.commit(&[asked]), Err(Error::Full)));
    let alive = journal.restore().unwrap();
    assert_eq!((alive.last, alive.questions.len()), (Position::new(done), 0));
    assert_eq!(journal.events(Position::START, usize::MAX).unwrap().len() as u64, done);
    assert_eq!(journal.position_of(&format!("e{:06}", done + 1)).unwrap(), None);

    journal.commit(&[Entry::SessionEnded { id: "s", at: UnixMillis::new(0) }]).unwrap();
    while journal
        .trim(&Retention { events: Some(0), ..Retention::default() }, UnixMillis::new(9))
        .unwrap()
        .more
    {}
    journal.commit(&[asked]).unwrap();
    let next = format!("e{:06}", done + 1);
    let position = Position::new(done + 1);
    let event = Entry::Event {
        position,
        session: "full",
        event_id: &next,
        at: UnixMillis::new(0),
        critical: false,
        body: &[7; 1000],
    };
    journal.commit(&[event]).unwrap();
}

/// With a disk of its own, in a child that may mount one; says so where that is not allowed.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_says_full_loses_nothing_and_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"mount -t tmpfs -o size=2m,mode=700 tmpfs "$1" || { echo no mount; exit 0; }
        DISK_TO_FILL="$1" exec "$2" --exact disk::only_when_asked_fills_a_disk --nocapture"#;
    let ran = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .args([folder.path(), &std::env::current_exe().unwrap()])
        .output();
    let Ok(ran) = ran else { return eprintln!("there is no unshare: not tested") };
    let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    if said.contains("no mount") || said.contains("unshare: ") {
        return eprintln!("may not mount a disk: not tested ({said})");
    }
    assert!(ran.status.success() && said.contains("filled and emptied"), "{said}");
}

#[test]
fn only_when_asked_fills_a_disk() {
    let Some(disk) = std::env::var_os("DISK_TO_FILL") else { return };
    let disk = Path::new(&disk);
    let path = disk.join("journal.db");
    std::fs::write(disk.join("ballast"), vec![0; 400_000]).unwrap();
    let mut journal = open(&path).unwrap();
    journal.commit(&[opened("s")]).unwrap();
    let (done, error) = publish(&mut journal, 1, 10_000, &[7; 1000]);
    assert!(matches!(error, Some(Error::Full)), "{done} {error:?}");
    assert_eq!(journal.restore().unwrap().last, Position::new(done));
    assert_eq!(journal.events(Position::START, usize::MAX).unwrap().len() as u64, done);
    std::fs::remove_file(disk.join("ballast")).unwrap();
    let (more, _) = publish(&mut journal, done + 1, 10_000, &[7; 1000]);
    assert!(more > 10, "{more}");
    let left = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut after_crash = open(&copy(&path, left.path())).unwrap();
    assert_eq!(after_crash.restore().unwrap().last, Position::new(done + more));
    after_crash.check().unwrap();
    println!("filled and emptied");
}

#[cfg(unix)]
#[test]
fn what_may_not_be_written_is_refused_as_read_only() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
    use std::os::unix::process::CommandExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    drop(open(&path).unwrap());
    let allow = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    let said_when = |file_mode, folder_mode, path: &Path| {
        allow(&folder.path().join("journal.db"), file_mode);
        allow(folder.path(), folder_mode);
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "settings::only_when_asked_opens_a_journal", "--nocapture"]);
        child.env("JOURNAL_TO_OPEN", path);
        // Root may write everything.
        if folder.path().metadata().unwrap().uid() == 0 {
            child.uid(65534).gid(65534);
        }
        let ran = child.output();
        allow(folder.path(), 0o700);
        ran.map(|ran| String::from_utf8_lossy(&ran.stdout).into_owned())
    };
    match said_when(0o444, 0o777, &path) {
        Ok(said) => assert!(said.contains("read-only"), "file: {said}"),
        Err(error) => return eprintln!("cannot run as somebody else: not tested ({error})"),
    }
    let said = said_when(0o666, 0o555, &path).unwrap();
    assert!(said.contains("read-only"), "folder: {said}");
    let said = said_when(0o666, 0o555, &folder.path().join("new.db")).unwrap();
    assert!(said.contains("read-only"), "new: {said}");
    let said = said_when(0o666, 0o777, &path).unwrap();
    assert!(said.contains("opened"), "{said}");
}
