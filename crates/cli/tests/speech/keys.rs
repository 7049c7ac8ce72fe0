//! Silence and pace, as the person wants them.

use crate::dispatcher::{Dispatcher, Told};
use testing::hub::Hub;
use testing::terminal::{Agent, Person};

#[test]
fn enter_alone_stops_speech_and_answers_nothing() {
    let (hub, mut dispatcher) = (Hub::open(), Dispatcher::starts());
    let mut person = dispatcher.person_there(&hub.address, &[]);
    let agent = Agent::starts(hub.client());
    let begun = dispatcher.text();
    let token = agent.asks();
    assert!(dispatcher.text().starts_with("ask: Question 1"));
    person.hears("ask: Type");
    // What was cut off comes next, and is stopped likewise.
    person.types("");
    assert_eq!(dispatcher.next(), Told::Command("CANCEL self".to_owned()));
    assert_eq!(dispatcher.text(), begun);
    person.types("");
    assert_eq!(dispatcher.next(), Told::Command("CANCEL self".to_owned()));
    // In silence it says what it does not do.
    person.types("");
    let heard = person.hears("Enter alone answers nothing.");
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(dispatcher.text().starts_with("ask: Enter alone answers nothing."));
    assert_eq!(agent.waits(&token, 0), r#"{"status":"pending"}"#);
}

#[test]
fn hush_forgets_what_waits_but_not_what_is_critical() {
    let (hub, mut dispatcher) = (Hub::open(), Dispatcher::starts());
    let mut person = dispatcher.person_there(&hub.address, &[]);
    let (first, second) = (Agent::starts(hub.client()), Agent::starts(hub.client()));
    first.asks();
    while !dispatcher.text().contains("Question 1") {}
    second.asks();
    first.says(r#"{"type":"aaep:agent.progress.updated","progress":{"step":1,"total_steps":2}}"#);
    person.hears("progress:");
    person.types("hush");
    dispatcher.command("CANCEL self");
    person.hears("status: Silence. What was to be said stands above.");
    assert!(dispatcher.text().starts_with("In session 2: Question 2"));
    person.types("hello");
    person.hears("not taken as an answer");
    dispatcher.ends();
    assert!(dispatcher.text().starts_with("error: That was not taken as an answer"));
}

#[test]
fn the_pace_is_the_persons() {
    let (hub, mut dispatcher) = (Hub::open(), Dispatcher::starts());
    let mut person = dispatcher.person(&hub.address, &["--pace", "-35"]);
    assert_eq!(dispatcher.command("SET self RATE"), "SET self RATE -35");
    dispatcher.text();
    dispatcher.ends();
    person.types("faster");
    assert_eq!(dispatcher.command("SET self RATE"), "SET self RATE -25");
    assert_eq!(dispatcher.text(), "status: From now on the pace is -25.");
    dispatcher.ends();
    person.types("slower");
    assert_eq!(dispatcher.command("SET self RATE"), "SET self RATE -35");
    let mut other = Dispatcher::starts();
    let mut fast = other.person(&hub.address, &["--pace", "95"]);
    other.text();
    other.ends();
    fast.types("faster");
    assert_eq!(other.text(), "status: From now on the pace is 100.");
    other.ends();
    fast.types("faster");
    assert_eq!(other.text(), "It goes no further that way.");
}

#[test]
fn without_a_pace_the_dispatchers_own_holds() {
    let (hub, mut dispatcher) = (Hub::open(), Dispatcher::starts());
    let _person = dispatcher.person(&hub.address, &[]);
    while let Told::Command(command) = dispatcher.next() {
        assert!(!command.starts_with("SET self RATE"), "{command}");
    }
}

#[test]
fn leaving_ends_what_is_being_said() {
    let (hub, mut dispatcher) = (Hub::open(), Dispatcher::starts());
    let mut person = dispatcher.person(&hub.address, &[]);
    dispatcher.text();
    person.types("quit");
    dispatcher.command("CANCEL self");
    assert_eq!(person.ends().1, 0);
}

#[test]
fn that_there_is_no_hub_is_said_too() {
    let mut dispatcher = Dispatcher::starts();
    let person = dispatcher.person("127.0.0.1:1", &[]);
    assert!(dispatcher.text().starts_with("error: cannot reach http://127.0.0.1:1"));
    dispatcher.ends();
    assert_eq!(person.ends().1, 2);
}

#[test]
fn a_pace_that_is_none_is_refused() {
    for arguments in [&["--speech", "--pace", "101"][..], &["--speech", "--pace", "quick"], &["--pace", "5"]]
    {
        let person = Person::listens("127.0.0.1:1", arguments);
        let (lines, code) = person.ends();
        assert_eq!(code, 2, "{lines:?}");
        assert!(lines[0].starts_with("sayso: --"), "{lines:?}");
    }
}
