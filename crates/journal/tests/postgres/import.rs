//! Journals in files are copied into a database.

use journal::{ImportReport, ImportedText, Retention, SharedTexts, SqliteJournal, SqliteSettings};

use super::*;

const TEXTS: &[ImportedText<'_>] = &[ImportedText { name: "tokens", content: "agents" }];

/// An id that is indexed by its hash, and one with a character that the type `text` of Postgres cannot hold.
const LONG_ID: &str = "long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long";
const NUL_ID: &str = "nul\u{0}id";

fn now() -> UnixMillis {
    UnixMillis::new(1_000)
}

fn question(token: &'static str, session: &'static str) -> JournalEntry<'static> {
    JournalEntry::QuestionOpened { token, session, deadline: UnixMillis::new(500), record: b"question" }
}

fn decided(token: &'static str, decision: &'static str) -> JournalEntry<'static> {
    JournalEntry::QuestionDecided {
        token,
        decision,
        decided_by: "anna",
        receipt: b"receipt",
        at: UnixMillis::new(9),
    }
}

/// A journal with every kind of entry, of which the oldest were deleted.
fn source(folder: &tempfile::TempDir, name: &str) -> SqliteJournal {
    let mut journal = SqliteJournal::open(folder.path().join(name), &SqliteSettings::default()).unwrap();
    journal
        .commit(&[
            session_opened("ended"),
            event(1, "ended", "old"),
            event(2, "ended", "older"),
            JournalEntry::SessionEnded { id: "ended", at: UnixMillis::new(1) },
        ])
        .unwrap();
    let retention = Retention { max_event_age_ms: Some(1), max_rows_per_step: 1, ..Retention::default() };
    assert_eq!(journal.trim(&retention, now()).unwrap().trimmed_up_to, Position::new(1));
    journal
        .commit(&[
            session_opened("open"),
            session_opened(LONG_ID),
            subscription_opened("listener"),
            event(3, "open", NUL_ID),
            event(4, LONG_ID, LONG_ID),
            JournalEntry::CursorMoved { subscription: "listener", position: Position::new(3) },
            question("undecided", "open"),
            question("unspent", "open"),
            question("spent", LONG_ID),
            decided("unspent", "accept"),
            decided("spent", "accept"),
            JournalEntry::DecisionSpent { token: "spent", call: b"call", at: UnixMillis::new(10) },
            JournalEntry::ResponseStored {
                principal: "owner",
                key: "key",
                request: b"request",
                response: b"response",
                at: UnixMillis::new(11),
            },
            JournalEntry::ManifestStored { agent: "agent", record: Some(b"manifest") },
            JournalEntry::ReplyAttempted { at: UnixMillis::new(12), principal: "anna", details: b"reply" },
        ])
        .unwrap();
    journal
}

fn open_all(database: &PostgresDatabase, count: u16) -> Vec<PostgresJournal> {
    PostgresJournal::open_all(database, count, &owner("import"), &long_lease()).unwrap()
}

fn assert_equal(journal: &mut dyn Journal, source: &mut dyn Journal) {
    assert_eq!(journal.restore().unwrap(), source.restore().unwrap());
    let events = source.events(Position::START, 100).unwrap();
    assert_eq!(journal.events(Position::START, 100).unwrap(), events);
    for id in ["ended", "open", LONG_ID] {
        assert_eq!(journal.session(id).unwrap(), source.session(id).unwrap(), "{id}");
        let session_events = source.session_events(id, Position::START, 100).unwrap();
        assert_eq!(journal.session_events(id, Position::START, 100).unwrap(), session_events, "{id}");
    }
    for event in events {
        assert_eq!(journal.event_position(&event.event_id).unwrap(), Some(event.position));
    }
    for token in ["undecided", "unspent", "spent"] {
        assert_eq!(journal.decision(token).unwrap(), source.decision(token).unwrap(), "{token}");
    }
    let response = source.stored_response("owner", "key").unwrap();
    assert!(response.is_some());
    assert_eq!(journal.stored_response("owner", "key").unwrap(), response);
}

#[test]
fn an_imported_journal_equals_its_source_and_continues_like_it() {
    let Some(server) = start_server() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut sources = [source(&folder, "a"), source(&folder, "b")];
    let database = open_database(&server.address()).unwrap();
    let journals = open_all(&database, 2);
    let report = PostgresJournal::import(&journals, &sources, true, TEXTS).unwrap();
    assert_eq!(report, ImportReport { events: 6, sessions: 6, questions: 6 });
    assert!(database.was_single().unwrap());
    assert_eq!(SharedTexts::new(&database).read("tokens", None).unwrap().unwrap().content, "agents");
    assert_eq!(server.sql("SELECT count(*) FROM sayso.reply_attempt WHERE principal = 'anna'"), "2");
    drop(journals);
    let mut journals = open_all(&database, 2);
    for (journal, source) in journals.iter_mut().zip(&mut sources) {
        assert_equal(journal, source);
        // What is stored cannot be stored or used again.
        for entry in [
            event(5, "open", NUL_ID),
            session_opened("ended"),
            question("spent", "open"),
            subscription_opened("listener"),
            JournalEntry::DecisionSpent { token: "spent", call: b"call", at: now() },
        ] {
            let expected = source.commit(std::slice::from_ref(&entry)).unwrap_err();
            let error = journal.commit(std::slice::from_ref(&entry)).unwrap_err();
            assert_eq!(error.to_string(), expected.to_string(), "{entry:?}");
        }
        let further = [
            session_opened("new"),
            event(5, "new", "e5"),
            event(6, "open", "e6"),
            JournalEntry::DecisionSpent { token: "unspent", call: b"call", at: now() },
            decided("undecided", "reject"),
            JournalEntry::SessionEnded { id: "open", at: now() },
        ];
        for target in [&mut *journal as &mut dyn Journal, &mut *source] {
            target.commit(&further).unwrap();
        }
        assert_equal(journal, source);
        let retention = Retention { max_event_age_ms: Some(1), ..Retention::default() };
        let trimmed = [&mut *journal as &mut dyn Journal, &mut *source]
            .map(|journal| journal.trim(&retention, now()).unwrap().trimmed_up_to);
        assert_eq!(trimmed, [Position::new(6); 2]);
        assert_equal(journal, source);
        // The counted size is that of the stored rows.
        let size =
            "SELECT coalesce(sum(octet_length(id) + octet_length(body)), 0) FROM sayso.event WHERE shard =";
        let events: u64 = server.sql(&format!("{size} {}", journal.lease().shard())).parse().unwrap();
        assert!(journal.size_bytes().unwrap() > events);
    }
}

#[test]
fn a_failed_import_changes_nothing() {
    let Some(server) = start_server() else { return };
    let folder = tempfile::tempdir().unwrap();
    let database = open_database(&server.address()).unwrap();
    let mut journals = open_all(&database, 2);
    journals[1].commit(&[session_opened("used")]).unwrap();
    let sources = [source(&folder, "a"), source(&folder, "b")];
    let error = PostgresJournal::import(&journals, &sources, false, TEXTS).unwrap_err();
    assert_eq!(
        error.to_string(),
        "shard 1 of the database is already in use; choose a database that no hub has used"
    );
    assert_eq!(server.sql("SELECT count(*) FROM sayso.event"), "0");
    assert_eq!(server.sql("SELECT count(*) FROM sayso.shared_text"), "0");
    assert_eq!(journals[0].restore().unwrap().sessions, []);
    // Another hub has taken the shards.
    drop(journals);
    let journals = open_all(&database, 2);
    let taken = PostgresJournal::open(&database, 0, &owner("other"), &take_over()).unwrap();
    let error = PostgresJournal::import(&journals, &sources, false, TEXTS).unwrap_err();
    assert!(matches!(error, JournalError::OwnershipLost { shard: 0 }), "{error:?}");
    assert_eq!(server.sql("SELECT count(*) FROM sayso.session"), "1");
    drop(taken);
}

#[test]
fn a_damaged_journal_is_not_imported() {
    let Some(server) = start_server() else { return };
    let folder = tempfile::tempdir().unwrap();
    drop(source(&folder, "a"));
    let path = folder.path().join("a");
    let connection = rusqlite::Connection::open(&path).unwrap();

    connection.execute("UPDATE keys SET response = x'00'", ()).unwrap();
    drop(connection);
    let sources =
        [SqliteJournal::open(&path, &SqliteSettings { accept_loss: true, ..SqliteSettings::default() })
            .unwrap()];
    let database = open_database(&server.address()).unwrap();
    let journals = open_all(&database, 1);
    let error = PostgresJournal::import(&journals, &sources, false, &[]).unwrap_err();
    assert!(matches!(error, JournalError::Corrupt(..)), "{error:?}");
    assert_eq!(server.sql("SELECT count(*) FROM sayso.session"), "0");
}
