//! No dispatcher, or one that goes away.

use crate::dispatcher::{Dispatcher, Program};
use testing::hub::Hub;
use testing::terminal::{Agent, Person};

/// Listens where there is no dispatcher, with the programs of this folder only.
fn person(address: &str, programs: &std::path::Path) -> Person {
    Person::listens_as(address, &["--speech"], |command| {
        let socket = programs.join("none.sock");
        command.env("SPEECHD_ADDRESS", format!("unix_socket:{}", socket.display())).env("PATH", programs)
    })
}

#[test]
fn with_nothing_that_speaks_it_is_said_so_and_what_is_said_is_printed() {
    let hub = Hub::open();
    let folder = tempfile::tempdir().unwrap();
    let mut person = person(&hub.address, folder.path());
    assert_eq!(
        person.next().unwrap(),
        "sayso: Nothing can be spoken here: speech-dispatcher is not installed, and espeak-ng is not installed. On Debian, install the packages speech-dispatcher and speech-dispatcher-espeak-ng, or espeak-ng alone. What is said is printed only."
    );
    person.hears("Listening to");
    Agent::starts(hub.client());
    person.hears("session: local has begun");
    person.types("faster");
    person.hears("status: Nothing is spoken here.");
    person.types("quit");
    assert_eq!(person.ends().1, 0);
}

#[test]
fn a_dispatcher_that_does_not_run_is_started() {
    let (hub, mut dispatcher) = (Hub::open(), Dispatcher::absent());
    let program = Program::named("speech-dispatcher", dispatcher.programs(), "");
    let _person = dispatcher.person(&hub.address, &[]);
    let started = program.next();
    assert!(
        started.starts_with("with --spawn --communication-method unix_socket --socket-path /"),
        "{started}"
    );
    dispatcher.appears();
    assert!(dispatcher.text().starts_with("notice: Listening to"));
}

#[test]
fn without_a_dispatcher_espeak_speaks() {
    let hub = Hub::open();
    let folder = tempfile::tempdir().unwrap();
    let espeak = Program::espeak(folder.path(), "");
    let mut person = person(&hub.address, folder.path());
    person.hears("Listening to");
    assert_eq!(espeak.next(), "with -b 1 --stdin -s 170 -v en");
    assert!(espeak.next().starts_with("notice: Listening to"));
    let agent = Agent::starts(hub.client());
    assert_eq!(espeak.next(), "with -b 1 --stdin -s 170 -v en");
    assert_eq!(espeak.next(), "session: local has begun. Moving money.");
    agent.says(r#"{"type":"aaep:agent.session.completed","summary_normal":"$(touch x) -v [[a]] <speak>; `id`","localization_hints":{"primary_language":"es-MX"}}"#);
    // Our words and the agent's, each with a voice of its language.
    assert_eq!(espeak.next(), "with -b 1 --stdin -s 170 -v en");
    assert_eq!(espeak.next().trim_end(), "local is done.");
    assert_eq!(espeak.next(), "with -b 1 --stdin -s 170 -v es-mx");
    assert_eq!(espeak.next(), "$(touch x) -v [ [ a]] <speak>; `id`");
}

#[test]
fn a_voice_that_espeak_does_not_have_is_replaced() {
    let hub = Hub::open();
    let folder = tempfile::tempdir().unwrap();
    let espeak = Program::espeak(folder.path(), "case \"$*\" in *-v*) exit 1;; esac");
    let _person = person(&hub.address, folder.path());
    assert_eq!(espeak.next(), "with -b 1 --stdin -s 170 -v en");
    let text = espeak.next();
    assert_eq!(espeak.next(), "with -b 1 --stdin -s 170");
    assert_eq!(espeak.next(), text);
}

#[test]
fn where_espeak_cannot_speak_it_is_said_so() {
    let hub = Hub::open();
    let folder = tempfile::tempdir().unwrap();
    let _espeak = Program::espeak(folder.path(), "exit 1");
    let mut person = person(&hub.address, folder.path());
    person.hears("notice: Speech: espeak-ng cannot speak. From now on nothing is spoken, only written.");
    Agent::starts(hub.client());
    person.hears("session: local has begun");
}

#[test]
fn when_the_dispatcher_dies_espeak_says_the_same_again() {
    let (hub, mut dispatcher) = (Hub::open(), Dispatcher::starts());
    let espeak = Program::espeak(dispatcher.programs(), "");
    let mut person = dispatcher.person_there(&hub.address, &["--pace", "100"]);
    Agent::starts(hub.client());
    assert_eq!(dispatcher.text(), "session: local has begun. Moving money.");
    dispatcher.dies();
    person.hears("notice: Speech: speech-dispatcher has ended. From now on espeak-ng speaks.");
    assert_eq!(espeak.next(), "with -b 1 --stdin -s 450 -v en");
    assert_eq!(espeak.next(), "session: local has begun. Moving money.");
    assert_eq!(espeak.next(), "with -b 1 --stdin -s 450 -v en");
    assert!(espeak.next().starts_with("notice: Speech: speech-dispatcher has ended."));
}

#[test]
fn when_the_dispatcher_dies_and_nothing_else_speaks_it_is_said_so() {
    let (hub, mut dispatcher) = (Hub::open(), Dispatcher::starts());
    let mut person = dispatcher.person_there(&hub.address, &[]);
    let agent = Agent::starts(hub.client());
    dispatcher.text();
    dispatcher.dies();
    person.hears("notice: Speech: speech-dispatcher has ended, and espeak-ng is not installed. From now on nothing is spoken, only written.");
    let token = agent.asks();
    person.hears("ask: Type");
    person.types("yes");
    assert!(agent.waits(&token, 30).contains("accept"));
    person.types("quit");
    assert_eq!(person.ends().1, 0);
}

#[test]
fn a_dispatcher_that_comes_back_goes_on() {
    let (hub, mut dispatcher) = (Hub::open(), Dispatcher::starts());
    let mut person = dispatcher.person_there(&hub.address, &["--pace", "10"]);
    Agent::starts(hub.client());
    assert_eq!(dispatcher.text(), "session: local has begun. Moving money.");
    dispatcher.hangs_up();
    person.hears("notice: Speech: speech-dispatcher has ended. It was reached again.");
    assert_eq!(dispatcher.command("SET self RATE"), "SET self RATE 10");
    assert_eq!(dispatcher.text(), "session: local has begun. Moving money.");
}
