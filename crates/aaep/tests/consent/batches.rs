//! Deciding and committing are two steps: what is pending is decided once, and what could not be written never was.

use aaep::consent::{By, Ignored, NotAsked, NotGranted};

use super::hub::*;

fn asked() -> Hub {
    let mut hub = Hub::with(&["ada", "bob"]);
    hub.ask(&confirmation(1), &["ada", "bob"]);
    hub
}

#[test]
fn of_two_replies_in_one_batch_the_first_counts() {
    let mut hub = asked();
    let first = decide(&mut hub.book, "ada", &reply(1, "ada", "reject", T0 + 1), T0 + 1).unwrap();
    let second = decide(&mut hub.book, "bob", &reply(1, "bob", "accept", T0 + 1), T0 + 1);
    assert_eq!(second.unwrap_err(), Ignored::Pending);
    let more = decide(&mut hub.book, "bob", &extend(1, "bob", None, T0 + 1), T0 + 1);
    assert_eq!(more.unwrap_err(), Ignored::Pending);
    assert_eq!(hub.book.cancel(&token(1), T0 + 1).unwrap_err(), Ignored::Pending);
    assert!(hub.book.wake(T0 + 200_000).is_empty(), "nor does time decide it");
    assert_eq!(hub.book.next_deadline(), None);
    assert!(hub.book.question(&token(1)).unwrap().is_open(), "nothing holds before it is committed");
    assert!(!resolution(&hub.commit(first)).is_accepted());
}

#[test]
fn what_could_not_be_written_never_was() {
    let mut hub = asked();
    let before = hub.book.clone();
    let reply_decided = decide(&mut hub.book, "ada", &reply(1, "ada", "accept", T0 + 1), T0 + 1).unwrap();
    hub.book.abandon(reply_decided);
    let stopped = decide(&mut hub.book, "ada", &stop("ada", T0 + 1), T0 + 1).unwrap();
    hub.book.abandon(stopped);
    let asked = hub.book.ask(&parsed(&confirmation(2)), [sub("ada")], T0).unwrap();
    hub.book.abandon(asked);
    let woken = hub.book.wake(T0 + 180_000);
    assert_eq!(woken.resolutions().count(), 1);
    hub.book.abandon(woken);
    assert!(hub.book == before);
    assert!(hub.answer("ada", 1, "accept", T0 + 2).is_ok());
}

#[test]
fn a_question_that_is_being_asked_is_known_to_the_next() {
    let mut hub = Hub::with(&["ada"]);
    let first = hub.book.ask(&parsed(&confirmation(1)), [sub("ada")], T0).unwrap();
    let again = hub.book.ask(&parsed(&confirmation(1)), [sub("ada")], T0).unwrap_err();
    assert_eq!(again, NotAsked::TokenUsed);
    let twin = with(confirmation(2), &serde_json::json!({"action": confirmation(1)["action"]}));
    let twin = hub.book.ask(&parsed(&twin), [sub("ada")], T0).unwrap_err();
    assert_eq!(twin, NotAsked::AskedTwice(token(1)));
    let early = decide(&mut hub.book, "ada", &reply(1, "ada", "accept", T0), T0).unwrap_err();
    assert_eq!(early, Ignored::Unknown, "it has not been sent to anybody");
    hub.commit(first);
    assert!(hub.answer("ada", 1, "accept", T0).is_ok());
}

#[test]
fn an_answer_is_spent_once_in_one_batch_too() {
    let mut hub = asked();
    hub.answer("ada", 1, "accept", T0 + 1).unwrap();
    let session = session();
    let first = hub.book.spend(&call(&session, None, None)).unwrap();
    assert_eq!(hub.book.spend(&call(&session, None, None)).unwrap_err(), NotGranted::Spent);
    hub.book.abandon(first);
    assert!(hub.spend(&call(&session, None, None)).is_ok());
}

#[test]
fn an_answer_that_is_not_committed_covers_nothing() {
    let mut hub = asked();
    let decided = decide(&mut hub.book, "ada", &reply(1, "ada", "accept", T0 + 1), T0 + 1).unwrap();
    assert_eq!(hub.book.spend(&call(&session(), None, None)).unwrap_err(), NotGranted::Undecided);
    hub.commit(decided);
    assert!(hub.spend(&call(&session(), None, None)).is_ok());
}

#[test]
fn a_stop_reaches_what_is_pending() {
    let mut hub = asked();
    hub.ask(&confirmation(2), &["ada"]);
    hub.answer("ada", 2, "accept", T0 + 1).unwrap();
    let asking = hub.book.ask(&parsed(&confirmation(3)), [sub("ada")], T0).unwrap();
    let more = decide(&mut hub.book, "ada", &extend(1, "ada", None, T0 + 2), T0 + 2).unwrap();
    let stopped = decide(&mut hub.book, "ada", &stop("ada", T0 + 3), T0 + 3).unwrap();
    let refused: Vec<_> = stopped.resolutions().map(|it| (it.token.clone(), it.by)).collect();
    assert_eq!(refused.len(), 2);
    assert!(refused.contains(&(token(1), By::Stopped)) && refused.contains(&(token(3), By::Stopped)));
    assert_eq!(
        hub.book.spend(&call(&session(), Some(&token(2)), None)).unwrap_err(),
        NotGranted::SessionOver
    );
    hub.commit(asking);
    hub.commit(more);
    let between = decide(&mut hub.book, "ada", &reply(1, "ada", "accept", T0 + 4), T0 + 4);
    assert_eq!(between.unwrap_err(), Ignored::Pending, "the stop still waits");
    hub.commit(stopped);
    assert_eq!(hub.wake(T0 + 9_000_000), []);
    assert_eq!(hub.answer("ada", 3, "accept", T0 + 5).unwrap_err(), Ignored::Used);
}

#[test]
fn a_yes_just_before_the_stop_covers_nothing() {
    let mut hub = asked();
    let yes = decide(&mut hub.book, "ada", &reply(1, "ada", "accept", T0 + 1), T0 + 1).unwrap();
    let stopped = decide(&mut hub.book, "bob", &stop("bob", T0 + 1), T0 + 1).unwrap();
    assert_eq!(stopped.resolutions().count(), 0, "it has its answer");
    // In whichever order they are committed.
    hub.commit(stopped);
    hub.commit(yes);
    assert_eq!(
        hub.book.spend(&call(&session(), Some(&token(1)), None)).unwrap_err(),
        NotGranted::SessionOver
    );
    assert_eq!(hub.book.questions().count(), 0);
}
