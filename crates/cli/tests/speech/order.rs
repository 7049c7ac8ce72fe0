//! One announcement at a time, the critical first.

use crate::dispatcher::{Dispatcher, Told};
use testing::hub::Hub;
use testing::messages::CAN_REPLY;
use testing::terminal::Agent;

const ASK: &str = "ask: Question 1, from local: May I send 5 euro to Ben?";

#[test]
fn the_next_is_said_when_the_last_has_ended() {
    let (hub, mut dispatcher) = (Hub::open(), Dispatcher::starts());
    let mut person = dispatcher.person_there(&hub.address, &[]);
    let agent = Agent::starts(hub.client());
    agent.writes("One. ", false);
    agent.writes("Two. ", false);
    agent.writes("", true);
    person.hears("agent: Two.");
    assert_eq!(dispatcher.text(), "session: local has begun. Moving money.");
    // Everything is printed, and waits.
    person.types("hello");
    person.hears("not understood");
    assert!(dispatcher.is_told_nothing());
    dispatcher.ends();
    // What the person asked for comes first, and the word in front only where it is another.
    assert!(dispatcher.text().starts_with("error: That was not understood."));
    dispatcher.ends();
    assert_eq!(dispatcher.text(), "agent: One.");
    assert!(dispatcher.is_told_nothing());
    dispatcher.ends();
    assert_eq!(dispatcher.text(), "Two.");
}

#[test]
fn what_is_critical_cuts_in_and_what_it_cut_off_is_said_again() {
    let (hub, mut dispatcher) = (Hub::open(), Dispatcher::starts());
    let mut person = dispatcher.person_there(&hub.address, &[]);
    let agent = Agent::starts(hub.client());
    assert_eq!(dispatcher.text(), "session: local has begun. Moving money.");
    agent.asks();
    assert_eq!(dispatcher.next(), Told::Command("CANCEL self".to_owned()));
    assert_eq!(dispatcher.next(), Told::Command("SET self PRIORITY important".to_owned()));
    assert!(dispatcher.text().starts_with(ASK));
    // A second one does not cut off the first.
    Agent::starts(hub.client()).asks();
    person.hears("Question 2, from local");
    person.hears("ask: 2 questions are open. Type");
    assert!(dispatcher.is_told_nothing());
    dispatcher.ends();
    assert_eq!(dispatcher.next(), Told::Command("SPEAK".to_owned()));
    assert!(dispatcher.text().starts_with("Question 2, from local"));
    dispatcher.ends();
    assert_eq!(dispatcher.next(), Told::Command("SET self PRIORITY message".to_owned()));
    assert_eq!(dispatcher.text(), "session: local has begun. Moving money.");
}

#[test]
fn what_is_critical_is_said_again_if_another_program_cut_it_off() {
    let (hub, mut dispatcher) = (Hub::open(), Dispatcher::starts());
    let _person = dispatcher.person_there(&hub.address, &[]);
    let agent = Agent::starts(hub.client());
    dispatcher.text();
    dispatcher.is_cancelled();
    agent.asks();
    assert!(dispatcher.text().starts_with(ASK));
    dispatcher.is_cancelled();
    assert!(dispatcher.text().starts_with(ASK));
    dispatcher.is_cancelled();
    agent.says(r#"{"type":"aaep:agent.progress.updated","progress":{"step":1,"total_steps":2}}"#);
    assert_eq!(dispatcher.text_with("Step"), "progress: Step 1 of 2.");
}

#[test]
fn an_answer_ends_what_is_said_of_its_question() {
    let (hub, mut dispatcher) = (Hub::open(), Dispatcher::starts());
    let mut person = dispatcher.person_there(&hub.address, &[]);
    let agent = Agent::starts(hub.client());
    dispatcher.text();
    dispatcher.ends();
    let token = agent.asks();
    assert!(dispatcher.text().starts_with(ASK));
    person.types("no");
    dispatcher.command("CANCEL self");
    assert!(agent.waits(&token, 30).contains("reject"));
    assert_eq!(dispatcher.text(), "answer: You say no to question 1.");
    dispatcher.ends();
    let told = dispatcher.text_with("Your answer");
    assert!(told.ends_with("Your answer to question 1 counts: it is not done."), "{told}");
}

#[test]
fn a_question_that_is_settled_before_it_was_said_is_told_in_short() {
    let (hub, mut dispatcher) = (Hub::open(), Dispatcher::starts());
    let mut person = dispatcher.person_there(&hub.address, &[]);
    let client = hub.client();
    let other = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&other, None);
    let (first, second) = (Agent::starts(client.clone()), Agent::starts(client.clone()));
    first.asks();
    while !dispatcher.text().contains("Question 1") {}
    let token = second.asks();
    person.hears("Question 2, from local");
    assert_eq!(client.reply(&other, &token, "reject").status, 204);
    person.hears("answer: Question 2 was answered elsewhere");
    dispatcher.ends();
    let told = dispatcher.text_with("Question 2");
    let both = "answer: In session 2: Question 2, from local: May I send 5 euro to Ben?\nQuestion 2 was answered elsewhere";
    assert!(told.starts_with(both), "{told}");
}

#[test]
fn what_a_producer_writes_is_no_command() {
    let (hub, mut dispatcher) = (Hub::open(), Dispatcher::starts());
    let mut person = dispatcher.person_there(&hub.address, &[]);
    let agent = Agent::starts(hub.client());
    dispatcher.text();
    agent.says(r#"{"type":"aaep:agent.session.completed","summary_normal":"Done\r\n.\r\nSTOP all\r\n.x <speak>[[a]]\u0000"}"#);
    person.hears("session: local is done.");
    dispatcher.ends();
    assert_eq!(dispatcher.next(), Told::Command("SPEAK".to_owned()));
    assert_eq!(
        dispatcher.next(),
        Told::Text("local is done. Done . STOP all .x <speak>[[a]]\\u{0}".to_owned())
    );
    person.types("quit");
    assert_eq!(dispatcher.next(), Told::Command("CANCEL self".to_owned()));
    assert_eq!(person.ends().1, 0);
    assert!(dispatcher.is_told_nothing());
}
