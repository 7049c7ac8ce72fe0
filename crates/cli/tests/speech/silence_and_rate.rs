//! Commands that silence speech or change its pace.

use crate::fake_dispatcher::{FakeDispatcher, SsipInput};
use testing::hub::HubProcess;
use testing::terminal::{AgentSession, ListenProcess};

#[test]
fn enter_alone_stops_speech_and_answers_nothing() {
    let (hub, mut dispatcher) = (HubProcess::start_in_memory(), FakeDispatcher::start());
    let mut person = dispatcher.start_connected_listener(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    let session_start = dispatcher.next_text();
    let token = agent.ask_confirmation();
    assert!(dispatcher.next_text().starts_with("ask: local: Send 5 euros"));
    person.read_until("ask: Yes or no?");
    person.type_line("");
    assert_eq!(dispatcher.next(), SsipInput::Command("CANCEL self".to_owned()));
    // The question had interrupted the announcement of the session's start, which is now spoken again. The second Enter stops that too.
    assert_eq!(dispatcher.next_text(), session_start);
    person.type_line("");
    assert_eq!(dispatcher.next(), SsipInput::Command("CANCEL self".to_owned()));
    // While nothing is being spoken, Enter makes sayso say that Enter alone does not answer.
    person.type_line("");
    let lines = person.read_until("Enter alone does not answer.");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(dispatcher.next_text().starts_with("ask: Enter alone does not answer."));
    assert_eq!(agent.wait_for_reply(&token, 0), r#"{"status":"pending"}"#);
}

#[test]
fn hush_drops_waiting_announcements_except_critical_ones() {
    let (hub, mut dispatcher) = (HubProcess::start_in_memory(), FakeDispatcher::start());
    let mut person = dispatcher.start_connected_listener(&hub.address, &[]);
    let (first, second) = (AgentSession::start(hub.client()), AgentSession::start(hub.client()));
    first.ask_confirmation();
    while !dispatcher.next_text().contains("ask: local: ") {}
    second.ask_confirmation();
    first.publish(r#"{"type":"aaep:agent.progress.updated","progress":{"step":1,"total_steps":2}}"#);
    person.read_until("progress:");
    person.type_line("hush");
    dispatcher.next_command("CANCEL self");
    person.read_until("status: Skipped. The text is above.");
    assert!(dispatcher.next_text().starts_with("Question 2"));
    person.type_line("hello");
    person.read_until("That is not an answer");
    dispatcher.finish_text();
    assert!(dispatcher.next_text().starts_with("error: That is not an answer"));
}

#[test]
fn the_person_can_change_the_pace() {
    let (hub, mut dispatcher) = (HubProcess::start_in_memory(), FakeDispatcher::start());
    let mut person = dispatcher.start_listener(&hub.address, &["--pace", "-35"]);
    assert_eq!(dispatcher.next_command("SET self RATE"), "SET self RATE -35");
    dispatcher.next_text();
    dispatcher.finish_text();
    person.type_line("faster");
    assert_eq!(dispatcher.next_command("SET self RATE"), "SET self RATE -25");
    assert_eq!(dispatcher.next_text(), "status: Speech rate -25.");
    dispatcher.finish_text();
    person.type_line("slower");
    assert_eq!(dispatcher.next_command("SET self RATE"), "SET self RATE -35");
    let mut second_dispatcher = FakeDispatcher::start();
    let mut second_person = second_dispatcher.start_listener(&hub.address, &["--pace", "95"]);
    second_dispatcher.next_text();
    second_dispatcher.finish_text();
    second_person.type_line("faster");
    assert_eq!(second_dispatcher.next_text(), "status: Speech rate 100.");
    second_dispatcher.finish_text();
    second_person.type_line("faster");
    assert_eq!(second_dispatcher.next_text(), "That is the limit.");
}

#[test]
fn without_a_pace_the_dispatchers_rate_is_unchanged() {
    let (hub, mut dispatcher) = (HubProcess::start_in_memory(), FakeDispatcher::start());
    let _person = dispatcher.start_listener(&hub.address, &[]);
    while let SsipInput::Command(command) = dispatcher.next() {
        assert!(!command.starts_with("SET self RATE"), "{command}");
    }
}

#[test]
fn quitting_cancels_speech() {
    let (hub, mut dispatcher) = (HubProcess::start_in_memory(), FakeDispatcher::start());
    let mut person = dispatcher.start_listener(&hub.address, &[]);
    dispatcher.next_text();
    person.type_line("quit");
    dispatcher.next_command("CANCEL self");
    assert_eq!(person.wait_for_exit().1, 0);
}

#[test]
fn an_unreachable_hub_is_announced() {
    let mut dispatcher = FakeDispatcher::start();
    let person = dispatcher.start_listener("127.0.0.1:1", &[]);
    assert!(dispatcher.next_text().starts_with("error: cannot reach http://127.0.0.1:1"));
    dispatcher.finish_text();
    assert_eq!(person.wait_for_exit().1, 2);
}

#[test]
fn an_invalid_pace_or_a_pace_without_speech_is_rejected() {
    for arguments in [&["--speech", "--pace", "101"][..], &["--speech", "--pace", "quick"], &["--pace", "5"]]
    {
        let person = ListenProcess::start("127.0.0.1:1", arguments);
        let (lines, code) = person.wait_for_exit();
        assert_eq!(code, 2, "{lines:?}");
        assert!(lines[0].starts_with("sayso: --"), "{lines:?}");
    }
}
