//! A whole session, word for word.

use testing::hub::Hub;
use testing::terminal::{Agent, Person};

#[test]
fn a_session_is_printed_line_by_line() {
    let hub = Hub::open();
    let mut person = Person::listens(&hub.address, &["--verbosity", "detailed"]);
    assert_eq!(
        person.next().unwrap(),
        "notice: The hub calls itself sayso-hub; no key was given to check that."
    );
    assert_eq!(
        person.next().unwrap(),
        format!("notice: Listening to http://{}. Type help for what you can type.", hub.address)
    );
    let agent = Agent::starts(hub.client());
    agent.says(r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#);
    agent.says(r#"{"type":"aaep:agent.state.changed","to_state":"writing_output"}"#);
    for token in [
        "Your ",
        "balance",
        " is $3",
        ".",
        "50 to",
        "day. ",
        "You owe Ben",
        " 5 euro",
        ".\n\n",
        "Shall I pay?",
    ] {
        agent.writes(token, false);
    }
    agent.writes("", true);
    let token = agent.asks();
    person.hears("ask: Type the whole word");
    person.types("yes");
    assert!(agent.waits(&token, 30).contains(r#""decision":"accept""#));
    agent.says(r#"{"type":"aaep:agent.tool.invoked","tool":"send","irreversible":true,"risk_level":"high","arguments":{"amount":"5.00"},"summary_normal":"Sending 5 euro to Ben.","tool_call_id":"call_1"}"#);
    agent.says(r#"{"type":"aaep:agent.progress.updated","progress":{"step":1,"total_steps":2}}"#);
    agent.says(
        r#"{"type":"aaep:agent.tool.completed","tool":"send","tool_call_id":"call_1","status":"success"}"#,
    );
    agent.says(r#"{"type":"aaep:agent.session.completed","summary_normal":"Ben has his money."}"#);
    person.hears("session: local is done.");
    person.types("quit");
    let screen = String::from_utf8(person.bytes.clone()).unwrap();
    let (rest, code) = person.ends();
    assert_eq!((rest, code), (vec!["notice: You have stopped listening.".to_owned()], 0));
    let lines: Vec<_> = screen.lines().skip(2).collect();
    assert_eq!(
        lines,
        [
            "session: local has begun. Moving money.",
            "agent: local is thinking.",
            "agent: local is writing.",
            "agent: Your balance is $3.50 today.",
            "agent: You owe Ben 5 euro.",
            "agent: Shall I pay?",
            "agent: local is thinking.",
            "ask: Question 1, from local: May I send 5 euro to Ben?",
            "ask: What it would do: Send 5 euro to Ben.",
            "ask: What follows from it: It cannot be undone.",
            "ask: The risk is high, and it can never be undone.",
            "ask: You have 2 minutes. Without an answer it is not done.",
            "ask: Type the whole word accept or yes to allow it, or reject or no to refuse it.",
            "answer: You say yes to question 1.",
            "answer: Your answer to question 1 counts: it may be done.",
            "agent: local is thinking.",
            "tool: Sending 5 euro to Ben. This can never be undone.",
            "progress: Step 1 of 2.",
            "tool: The tool send is done.",
            "session: local is done. Ben has his money.",
        ]
    );
}

#[test]
fn text_at_a_hundred_tokens_a_second_is_heard_as_sentences() {
    let hub = Hub::open();
    let mut person = Person::is_there(&hub.address, &["--rate", "5"]);
    let agent = Agent::starts(hub.client());
    let text =
        "The first sentence is short. The second is a bit longer than that! Is the third one a question? ";
    for token in text.repeat(3).split_inclusive(' ') {
        agent.writes(token, false);
    }
    agent.writes("", true);
    agent.says(r#"{"type":"aaep:agent.session.completed","summary_normal":"Told."}"#);
    let heard = person.hears("is done");
    let said: Vec<_> = heard.iter().filter_map(|line| line.strip_prefix("agent: ")).collect();
    assert_eq!(said.join(" "), text.repeat(3).trim());
    assert!(said.iter().all(|line| line.ends_with(['.', '!', '?'])), "{said:#?}");
}
