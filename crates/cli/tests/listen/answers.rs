//! Answers: each goes to the question that it was given to, and nothing else is one.

use testing::hub::Hub;
use testing::messages::CAN_REPLY;
use testing::terminal::{Agent, Person};

#[test]
fn a_no_is_a_no() {
    let hub = Hub::open();
    let mut person = Person::is_there(&hub.address, &[]);
    let agent = Agent::starts(hub.client());
    let token = agent.asks();
    person.hears("ask: Type");
    person.types("no");
    assert!(agent.waits(&token, 30).contains(r#""decision":"reject","by":"reply""#));
    let heard = person.hears("counts");
    assert_eq!(
        heard,
        ["answer: You say no to question 1.", "answer: Your answer to question 1 counts: it is not done."]
    );
}

#[test]
fn neither_enter_nor_a_short_answer_allows_what_cannot_be_undone() {
    let hub = Hub::open();
    let mut person = Person::is_there(&hub.address, &[]);
    let agent = Agent::starts(hub.client());
    let token = agent.asks();
    person.hears("ask: Type");
    person.types("");
    person.hears("ask: Enter alone answers nothing. Question 1 is open for 2 minutes");
    for short in ["1", "y", "yes please", "y.", "accept everything", "yes 2", "ye"] {
        person.types(short);
        let heard = person.hears("error: ").pop().unwrap();
        assert!(heard.contains("othing was sent") || heard.contains("nothing was sent"), "{short}: {heard}");
    }
    assert_eq!(agent.waits(&token, 0), r#"{"status":"pending"}"#);
    person.types("ACCEPT");
    assert!(agent.waits(&token, 30).contains(r#""decision":"accept""#));
}

#[test]
fn of_several_questions_the_one_that_is_named_is_answered() {
    let hub = Hub::open();
    let mut person = Person::is_there(&hub.address, &[]);
    let (first, second) = (Agent::starts(hub.client()), Agent::starts(hub.client()));
    let tokens = (first.asks(), second.asks());
    person.hears("Question 2");
    person.hears("ask: 2 questions are open. Type accept 2 or yes 2 in whole words to allow this one");
    person.types("yes");
    person.hears("error: Which question do you mean? Nothing was sent. Open are 1 and 2.");
    person.types("2");
    person.hears("error: Which question do you mean?");
    person.types("status");
    person.hears("status: Question 2 from local is open for 2 minutes.");
    person.types("no 2");
    assert!(second.waits(&tokens.1, 30).contains(r#""decision":"reject""#));
    assert_eq!(first.waits(&tokens.0, 0), r#"{"status":"pending"}"#);
    person.hears("Your answer to question 2 counts: it is not done.");
    person.types("yes 2");
    person.hears("error: Question 2 is not open. Nothing was sent.");
    person.types("yes");
    assert!(first.waits(&tokens.0, 30).contains(r#""decision":"accept""#));
}

#[test]
fn what_was_settled_elsewhere_is_said_and_cannot_be_answered() {
    let hub = Hub::open();
    let mut person = Person::is_there(&hub.address, &[]);
    let client = hub.client();
    let other = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&other, None);
    let agent = Agent::starts(client.clone());
    let token = agent.asks();
    person.hears("ask: Type");
    assert_eq!(client.reply(&other, &token, "accept").status, 204);
    person.hears("answer: Question 1 was answered elsewhere: it may be done.");
    person.types("yes");
    person.hears("error: No question is open. Nothing was sent.");
}

#[test]
fn a_question_for_what_was_meant_takes_words() {
    let hub = Hub::open();
    let mut person = Person::is_there(&hub.address, &[]);
    let agent = Agent::starts(hub.client());
    let asked = agent.client.post(
        &format!("/agent/v1/sessions/{}/clarifications", agent.session),
        r#"{"question":"Which city?","timeout_seconds":120,"choices":[{"value":"LOS","label":"Lagos"},{"value":"ABV","label":"Abuja"}]}"#,
    );
    let token = asked.text("reply_token");
    let heard = person.hears("ask: Type the number of a choice.");
    assert!(heard.contains(&"ask: Choice 2: Abuja.".to_owned()), "{heard:#?}");
    person.types("Kano");
    person.hears("error: Question 1 does not take that. Type the number of a choice.");
    person.types("2");
    assert!(agent.waits(&token, 30).contains(r#""response":"ABV""#));
    person.hears("answer: Your answer to question 1 counts: the agent goes on.");
}

#[test]
fn the_person_gets_more_time_and_can_stop_the_agent() {
    let hub = Hub::open();
    let mut person = Person::is_there(&hub.address, &[]);
    let agent = Agent::starts(hub.client());
    let token = agent.asks();
    person.hears("ask: Type");
    person.types("more time");
    let heard = person.hears("stays open");
    assert_eq!(heard[heard.len() - 2], "ask: You asked for more time.");
    assert!(heard[heard.len() - 1].starts_with("ask: There is more time for question 1."), "{heard:#?}");
    assert!(has_more_time(&heard[heard.len() - 1]), "{heard:#?}");
    person.types("repeat");
    let heard = person.hears("ask: You have ");
    assert!(has_more_time(&heard[heard.len() - 1]), "{heard:#?}");
    assert!(!heard.iter().any(|line| line.contains("more time")), "it is said once: {heard:#?}");
    person.types("stop");
    assert!(agent.waits(&token, 30).contains("stopped"), "{}", agent.waits(&token, 0));
    let heard = person.hears("session: local was stopped by a person.");
    assert!(heard.contains(&"answer: You stop local, session 1.".to_owned()), "{heard:#?}");
    assert!(heard.contains(&"answer: Question 1 is withdrawn: it is not done.".to_owned()), "{heard:#?}");
    person.types("stop");
    person.hears("error: No agent is at work.");
}

/// Whether a line tells of more than the two minutes that a question had at first, however slow all this was.
fn has_more_time(line: &str) -> bool {
    line.contains("4 minutes") || line.contains("3 minutes")
}

#[test]
fn more_time_that_one_listener_asked_for_is_told_to_the_others() {
    let hub = Hub::open();
    let (mut one, mut other) = (Person::is_there(&hub.address, &[]), Person::is_there(&hub.address, &[]));
    let agent = Agent::starts(hub.client());
    let token = agent.asks();
    other.hears("ask: Type");
    one.hears("ask: Type");
    one.types("more time");
    one.hears("There is more time");
    let heard = other.hears("more time");
    let [told] = &heard[..] else { panic!("{heard:#?}") };
    assert!(told.starts_with("ask: There is more time for question 1. It now stays open for"), "{told}");
    assert!(has_more_time(told), "{told}");
    // Who joins now has the same time.
    let mut late = Person::is_there(&hub.address, &[]);
    let heard = late.hears("ask: Type");
    let time = heard.iter().find(|line| line.starts_with("ask: You have ")).unwrap();
    assert!(has_more_time(time), "{time}");
    assert!(!heard.iter().any(|line| line.contains("more time")), "{heard:#?}");
    other.types("no");
    assert!(agent.waits(&token, 30).contains(r#""decision":"reject""#));
}

#[test]
fn less_and_more_is_said_as_the_person_wishes() {
    let hub = Hub::open();
    let mut person = Person::is_there(&hub.address, &[]);
    let agent = Agent::starts(hub.client());
    person.hears("has begun");
    let call = |number: u32| {
        format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_{number}","summary_terse":"Look.","summary_normal":"Looking.","summary_detailed":"Looking for it."}}"#
        )
    };
    for (number, typed, told, said) in [
        (1, "quieter", "status: From now on you hear terse texts.", "tool: Look."),
        (2, "louder", "status: From now on you hear normal texts.", "tool: Looking."),
        (3, "louder", "status: From now on you hear detailed texts.", "tool: Looking for it."),
    ] {
        person.types(typed);
        person.hears(told);
        agent.says(&call(number));
        assert_eq!(person.hears("tool: ").pop().unwrap(), said);
    }
    person.types("louder");
    person.hears("status: You hear all there is already.");
    person.types("help");
    assert!(person.hears("help: quit").iter().all(|line| line.starts_with("help: ")));
}
