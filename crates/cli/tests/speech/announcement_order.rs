//! The order of spoken announcements: one at a time, critical ones first.

use crate::fake_dispatcher::{FakeDispatcher, SsipInput};
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;
use testing::terminal::AgentSession;

const QUESTION_TEXT: &str = "ask: local: Send 5 euros to Ben.";

#[test]
fn an_announcement_waits_for_the_end_of_the_previous_one() {
    let (hub, mut dispatcher) = (HubProcess::start_in_memory(), FakeDispatcher::start());
    let mut person = dispatcher.start_connected_listener(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    agent.write_output("One. ", false);
    agent.write_output("Two. ", false);
    agent.write_output("", true);
    person.read_until("agent: Two.");
    assert_eq!(dispatcher.next_text(), "session: local has started. Moving money.");
    // All lines are printed, but their announcements wait.
    person.type_line("hello");
    person.read_until("Not understood");
    assert!(dispatcher.is_idle());
    dispatcher.finish_text();
    // Feedback to the person comes first. A label is spoken only if it differs from the previous one.
    assert!(dispatcher.next_text().starts_with("error: Not understood."));
    dispatcher.finish_text();
    assert_eq!(dispatcher.next_text(), "agent: One.");
    assert!(dispatcher.is_idle());
    dispatcher.finish_text();
    assert_eq!(dispatcher.next_text(), "Two.");
}

#[test]
fn a_critical_announcement_interrupts_and_the_interrupted_one_is_repeated() {
    let (hub, mut dispatcher) = (HubProcess::start_in_memory(), FakeDispatcher::start());
    let mut person = dispatcher.start_connected_listener(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    assert_eq!(dispatcher.next_text(), "session: local has started. Moving money.");
    agent.ask_confirmation();
    assert_eq!(dispatcher.next(), SsipInput::Command("CANCEL self".to_owned()));
    assert_eq!(dispatcher.next(), SsipInput::Command("SET self PRIORITY important".to_owned()));
    assert!(dispatcher.next_text().starts_with(QUESTION_TEXT));
    // A second critical announcement does not interrupt the first.
    AgentSession::start(hub.client()).ask_confirmation();
    person.read_until("Question 2 from local");
    person.read_until("ask: 2 questions are open. Type");
    assert!(dispatcher.is_idle());
    dispatcher.finish_text();
    assert_eq!(dispatcher.next(), SsipInput::Command("SPEAK".to_owned()));
    assert!(dispatcher.next_text().starts_with("Question 2 from local"));
    dispatcher.finish_text();
    assert_eq!(dispatcher.next(), SsipInput::Command("SET self PRIORITY message".to_owned()));
    assert_eq!(dispatcher.next_text(), "session: local has started. Moving money.");
}

#[test]
fn a_critical_announcement_cancelled_by_another_program_is_repeated() {
    let (hub, mut dispatcher) = (HubProcess::start_in_memory(), FakeDispatcher::start());
    let _person = dispatcher.start_connected_listener(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    dispatcher.next_text();
    dispatcher.cancel_text();
    agent.ask_confirmation();
    assert!(dispatcher.next_text().starts_with(QUESTION_TEXT));
    dispatcher.cancel_text();
    assert!(dispatcher.next_text().starts_with(QUESTION_TEXT));
    dispatcher.cancel_text();
    agent.publish(r#"{"type":"aaep:agent.progress.updated","progress":{"step":1,"total_steps":2}}"#);
    assert_eq!(dispatcher.next_text_containing("Step"), "progress: Step 1 of 2.");
}

#[test]
fn an_answer_cancels_the_announcement_of_its_question() {
    let (hub, mut dispatcher) = (HubProcess::start_in_memory(), FakeDispatcher::start());
    let mut person = dispatcher.start_connected_listener(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    dispatcher.next_text();
    dispatcher.finish_text();
    let token = agent.ask_confirmation();
    assert!(dispatcher.next_text().starts_with(QUESTION_TEXT));
    person.type_line("no");
    dispatcher.next_command("CANCEL self");
    assert!(agent.wait_for_reply(&token, 30).contains("reject"));
    assert_eq!(dispatcher.next_text(), "answer: Question 1: no.");
    dispatcher.finish_text();
    let spoken = dispatcher.next_text_containing("Rejected");
    assert!(spoken.ends_with("Rejected."), "{spoken}");
}

#[test]
fn the_announcement_of_an_already_answered_question_is_shortened() {
    let (hub, mut dispatcher) = (HubProcess::start_in_memory(), FakeDispatcher::start());
    let mut person = dispatcher.start_connected_listener(&hub.address, &[]);
    let client = hub.client();
    let other_subscription = client.subscribe(REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&other_subscription, None);
    let (first, second) = (AgentSession::start(client.clone()), AgentSession::start(client.clone()));
    first.ask_confirmation();
    while !dispatcher.next_text().contains("ask: local: ") {}
    let token = second.ask_confirmation();
    person.read_until("Question 2 from local");
    assert_eq!(client.reply(&other_subscription, &token, "reject").status, 204);
    person.read_until("answer: Question 2 was answered elsewhere");
    dispatcher.finish_text();
    let spoken = dispatcher.next_text_containing("Question 2");
    let expected = "answer: Question 2 from local: Send 5 euros to Ben.\nQuestion 2 was answered elsewhere";
    assert!(spoken.starts_with(expected), "{spoken}");
}

#[test]
fn ssip_commands_in_an_agents_text_are_spoken_as_text() {
    let (hub, mut dispatcher) = (HubProcess::start_in_memory(), FakeDispatcher::start());
    let mut person = dispatcher.start_connected_listener(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    dispatcher.next_text();
    agent.publish(r#"{"type":"aaep:agent.session.completed","summary_normal":"Done\r\n.\r\nSTOP all\r\n.x <speak>[[a]]\u0000"}"#);
    person.read_until("session: local has finished.");
    dispatcher.finish_text();
    assert_eq!(dispatcher.next(), SsipInput::Command("SPEAK".to_owned()));
    assert_eq!(
        dispatcher.next(),
        SsipInput::Text("local has finished. Done . STOP all .x <speak>[[a]]\\u{0}".to_owned())
    );
    person.type_line("quit");
    assert_eq!(dispatcher.next(), SsipInput::Command("CANCEL self".to_owned()));
    assert_eq!(person.wait_for_exit().1, 0);
    assert!(dispatcher.is_idle());
}
