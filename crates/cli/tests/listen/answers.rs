//! Answers typed in the terminal: which input counts as an answer, and to which question.

use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;
use testing::terminal::{AgentSession, ListenProcess};

#[test]
fn a_typed_no_rejects_the_action() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    let token = agent.ask_confirmation();
    person.read_until("ask: Yes or no?");
    person.type_line("no");
    assert!(agent.wait_for_reply(&token, 30).contains(r#""decision":"reject","by":"reply""#));
    let lines = person.read_until("answer: Rejected.");
    assert_eq!(lines, ["answer: Question 1: no.", "answer: Rejected."]);
}

#[test]
fn neither_enter_nor_an_abbreviation_accepts_an_irreversible_action() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    let token = agent.ask_confirmation();
    person.read_until("ask: Yes or no?");
    person.type_line("");
    person.read_until("ask: Enter alone does not answer. Question 1: about 2 minutes left");
    for input in ["1", "y", "yes please", "y.", "accept everything", "yes 2", "ye"] {
        person.type_line(input);
        let reply = person.read_until("error: ").pop().unwrap();
        assert!(reply.to_lowercase().contains("nothing was sent"), "{input}: {reply}");
    }
    assert_eq!(agent.wait_for_reply(&token, 0), r#"{"status":"pending"}"#);
    person.type_line("ACCEPT");
    assert!(agent.wait_for_reply(&token, 30).contains(r#""decision":"accept""#));
}

#[test]
fn with_several_open_questions_the_answer_must_name_one() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let (first, second) = (AgentSession::start(hub.client()), AgentSession::start(hub.client()));
    let tokens = (first.ask_confirmation(), second.ask_confirmation());
    person.read_until("Question 2");
    person.read_until("ask: 2 questions are open. Type yes 2 or no 2.");
    person.type_line("yes");
    person.read_until("error: Which question? Nothing was sent. Questions 1 and 2 are open;");
    person.type_line("2");
    person.read_until("error: Which question? Nothing was sent.");
    person.type_line("status");
    person.read_until("status: Question 2 from local: Send 5 euros to Ben. About 2 minutes left.");
    person.type_line("no 2");
    assert!(second.wait_for_reply(&tokens.1, 30).contains(r#""decision":"reject""#));
    assert_eq!(first.wait_for_reply(&tokens.0, 0), r#"{"status":"pending"}"#);
    person.read_until("answer: Question 2: Rejected.");
    person.type_line("yes 2");
    person.read_until("error: Question 2 is not open. Nothing was sent.");
    person.type_line("yes");
    assert!(first.wait_for_reply(&tokens.0, 30).contains(r#""decision":"accept""#));
}

#[test]
fn a_question_answered_elsewhere_is_announced_and_closed() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let client = hub.client();
    let other = client.subscribe(REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&other, None);
    let agent = AgentSession::start(client.clone());
    let token = agent.ask_confirmation();
    person.read_until("ask: Yes or no?");
    assert_eq!(client.reply(&other, &token, "accept").status, 204);
    person.read_until("answer: Question 1 was answered elsewhere: accepted.");
    person.type_line("yes");
    person.read_until("error: No question is open. Nothing was sent.");
}

#[test]
fn a_clarification_accepts_only_its_choices() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    let response = agent.client.post(
        &format!("/agent/v1/sessions/{}/clarifications", agent.session_id),
        r#"{"question":"Which city?","timeout_seconds":120,"choices":[{"value":"LOS","label":"Lagos"},{"value":"ABV","label":"Abuja"}]}"#,
    );
    let token = response.json_str("reply_token");
    let lines = person.read_until("ask: Type the number.");
    assert!(lines.contains(&"ask: 2: Abuja.".to_owned()), "{lines:#?}");
    person.type_line("Kano");
    person.read_until("error: Question 1 does not accept that. Type the number.");
    person.type_line("2");
    assert!(agent.wait_for_reply(&token, 30).contains(r#""response":"ABV""#));
    person.read_until("answer: Your answer to question 1: 2");
}

#[test]
fn a_person_can_extend_the_deadline_and_stop_the_agent() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    let token = agent.ask_confirmation();
    person.read_until("ask: Yes or no?");
    person.type_line("more time");
    let lines = person.read_until("More time for question 1");
    assert!(has_more_time(&lines[lines.len() - 1]), "{lines:#?}");
    person.type_line("repeat");
    let lines = person.read_until("ask: You have ");
    assert!(has_more_time(&lines[lines.len() - 1]), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("More time")), "announced twice: {lines:#?}");
    person.type_line("stop");
    assert!(agent.wait_for_reply(&token, 30).contains("stopped"), "{}", agent.wait_for_reply(&token, 0));
    person.read_until("answer: You stopped local.");
    // That is all the person hears about the stop and the withdrawn question.
    loop {
        person.type_line("status");
        let lines = person.read_until("status: ");
        assert_eq!(lines.len(), 1, "{lines:#?}");
        if lines[0] == "status: No agent is working." {
            break;
        }
        while !person.next_line().unwrap().starts_with("status: Question") {}
    }
    person.type_line("stop");
    assert_eq!(person.next_line().unwrap(), "error: No agent is working.");
}

/// Returns whether a line announces more than the initial two minutes. Tolerates a slow machine.
fn has_more_time(line: &str) -> bool {
    line.contains("4 minutes") || line.contains("3 minutes")
}

#[test]
fn a_deadline_extension_is_announced_to_other_listeners() {
    let hub = HubProcess::start_in_memory();
    let (mut first, mut second) = (
        ListenProcess::start_connected(&hub.address, &[]),
        ListenProcess::start_connected(&hub.address, &[]),
    );
    let agent = AgentSession::start(hub.client());
    let token = agent.ask_confirmation();
    second.read_until("ask: Yes or no?");
    first.read_until("ask: Yes or no?");
    first.type_line("more time");
    first.read_until("More time for question 1");
    let lines = second.read_until("More time");
    let [line] = &lines[..] else { panic!("{lines:#?}") };
    assert!(line.starts_with("ask: More time for question 1: about"), "{line}");
    assert!(has_more_time(line), "{line}");
    // A listener that joins now gets the same deadline.
    let mut late = ListenProcess::start_connected(&hub.address, &[]);
    let lines = late.read_until("ask: Yes or no?");
    let time = lines.iter().find(|line| line.starts_with("ask: You have ")).unwrap();
    assert!(has_more_time(time), "{time}");
    assert!(!lines.iter().any(|line| line.contains("More time")), "{lines:#?}");
    second.type_line("no");
    assert!(agent.wait_for_reply(&token, 30).contains(r#""decision":"reject""#));
}

#[test]
fn verbosity_can_be_changed_while_listening() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    person.read_until("has started");
    let call = |number: u32| {
        format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_{number}","summary_terse":"Look.","summary_normal":"Looking.","summary_detailed":"Looking for it."}}"#
        )
    };
    for (number, typed, status, announcement) in [
        (1, "quieter", "status: Short sentences from now on.", "tool: Look."),
        (2, "louder", "status: Normal detail from now on.", "tool: Looking."),
        (3, "louder", "status: Full detail from now on.", "tool: Looking for it."),
    ] {
        person.type_line(typed);
        person.read_until(status);
        agent.publish(&call(number));
        assert_eq!(person.read_until("tool: ").pop().unwrap(), announcement);
    }
    person.type_line("louder");
    person.read_until("status: You already hear everything.");
    person.type_line("help");
    assert!(person.read_until("help: quit").iter().all(|line| line.starts_with("help: ")));
}
