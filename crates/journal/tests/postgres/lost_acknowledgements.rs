//! Commits whose acknowledgement is lost: none is reported as failed but stored, and none is stored twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use testing::postgres_proxy::Proxy;

use super::*;

#[test]
fn a_batch_that_was_stored_but_not_acknowledged_is_acknowledged_after_all() {
    let Some(server) = start_server() else { return };
    let proxy = Proxy::start(&server.socket());
    let mut journal = open_journal(&open_database(&proxy.address()).unwrap(), "hub", &long_lease());
    journal.commit(&[session_opened("s"), event(1, "s", "a")]).unwrap();
    for (warm_up, batch, count) in [
        (event(2, "s", "b"), event(3, "s", "c"), "SELECT count(*) FROM sayso.event"),
        (subscription_opened("x"), subscription_opened("y"), "SELECT count(*) + 1 FROM sayso.subscription"),
    ] {
        // This prepares the statement, so that the next answer belongs to a commit.
        journal.commit(&[warm_up]).unwrap();
        let epoch = journal.lease().epoch();
        proxy.withhold_answers();
        thread::scope(|scope| {
            let commit = scope.spawn(|| journal.commit(&[batch]));
            proxy.wait_until_withheld();
            server.wait_for_sql(count, "3");
            proxy.cut();
            commit.join().unwrap().unwrap();
        });
        assert!(journal.lease().epoch() > epoch, "the outcome was read under a new epoch");
    }
    journal.commit(&[event(4, "s", "d")]).unwrap();
    assert_eq!(event_ids(&mut journal), ["a", "b", "c", "d"]);
    assert_eq!(journal.restore().unwrap().subscriptions.len(), 2);
}

#[test]
fn a_batch_that_did_not_arrive_is_written_once() {
    let Some(server) = start_server() else { return };
    let proxy = Proxy::start(&server.socket());
    let mut journal = open_journal(&open_database(&proxy.address()).unwrap(), "hub", &long_lease());
    journal.commit(&[session_opened("s"), event(1, "s", "a")]).unwrap();
    for number in 2..20 {
        proxy.cut();
        journal.commit(&[event(number, "s", &format!("e{number}"))]).unwrap();
    }
    assert_eq!(event_ids(&mut journal).len(), 19);
    assert_eq!(server.sql("SELECT count(*), count(DISTINCT id) FROM sayso.event"), "19|19");
}

#[test]
fn an_outcome_that_stays_unknown_is_not_reported_as_failed() {
    let Some(server) = start_server() else { return };
    let proxy = Proxy::start(&server.socket());
    let mut settings = PostgresSettings::parse(&proxy.address()).unwrap();
    settings.timeouts = PostgresTimeouts { outcome: Duration::ZERO, ..timeouts() };
    let database = PostgresDatabase::open(settings).unwrap();
    let mut journal = open_journal(&database, "hub", &long_lease());
    journal.commit(&[session_opened("s"), event(1, "s", "a")]).unwrap();
    journal.commit(&[event(2, "s", "b")]).unwrap();
    proxy.withhold_answers();
    thread::scope(|scope| {
        let commit = scope.spawn(|| journal.commit(&[event(3, "s", "c")]));
        proxy.wait_until_withheld();
        proxy.refuse_connections(true);
        proxy.cut();
        let error = commit.join().unwrap().unwrap_err();
        assert!(matches!(error, JournalError::OutcomeUnknown(_)), "{error:?}");
    });
    assert!(matches!(journal.commit(&[event(3, "s", "x")]), Err(JournalError::Io(_))));
    proxy.refuse_connections(false);
    // The batch is there, so its position is taken.
    assert!(matches!(journal.commit(&[event(3, "s", "x")]), Err(JournalError::Conflict(_))));
    assert_eq!(journal.restore().unwrap().last_position, Position::new(3));
    journal.commit(&[event(4, "s", "d")]).unwrap();
    assert_eq!(event_ids(&mut journal), ["a", "b", "c", "d"]);
}

#[test]
fn a_killed_server_loses_no_acknowledged_batch_and_stores_none_twice() {
    let Some(mut server) = start_server() else { return };
    let database = open_database(&server.address()).unwrap();
    let mut journal = open_journal(&database, "hub", &long_lease());
    journal.commit(&[session_opened("s")]).unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let stop = is_done.clone();
    let writer = thread::spawn(move || {
        let mut position = 0;
        while !stop.load(Ordering::SeqCst) {
            position += 1;
            let id = format!("e{position}");
            // After an error, the batch is not stored, so writing it again is not a conflict.
            loop {
                match journal.commit(&[event(position, "s", &id)]) {
                    Ok(()) => break,
                    Err(JournalError::Io(_)) => thread::yield_now(),
                    Err(error) => panic!("{error:?}"),
                }
            }
        }
        (journal, position)
    });
    for _ in 0..10 {
        let events: u64 = server.sql("SELECT count(*) FROM sayso.event").parse().unwrap();
        server.wait_for_sql(&format!("SELECT count(*) > {} FROM sayso.event", events + 20), "t");
        server.kill();
        server.restart();
    }
    is_done.store(true, Ordering::SeqCst);
    let (mut journal, last) = writer.join().unwrap();
    let expected: Vec<String> = (1..=last).map(|number| format!("e{number}")).collect();
    assert_eq!(event_ids(&mut journal), expected);
    drop(journal);
    assert_eq!(event_ids(&mut open_journal(&database, "hub", &long_lease())), expected);
}
