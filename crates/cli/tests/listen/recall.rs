//! Earlier announcements: `repeat`, `last`, `history` and times.

use serde_json::Value;

use testing::hub::HubProcess;
use testing::terminal::{AgentSession, ListenProcess};

/// Publishes a tool call that is announced with this text.
fn announce(agent: &AgentSession, number: u32, text: &str) {
    agent.publish(&format!(
        r#"{{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_{number}","summary_normal":"{text}"}}"#
    ));
}

/// Replaces the digits of a time at the start of a text: `10:30:00, ` becomes `HH:MM:SS, `.
fn without_time(line: &str) -> String {
    let (label, text) = line.split_once(": ").unwrap();
    let (time, rest) = text.split_at(8);
    let is_time = time
        .bytes()
        .enumerate()
        .all(|(at, byte)| if at % 3 == 2 { byte == b':' } else { byte.is_ascii_digit() });
    assert!(is_time, "{line}");
    format!("{label}: HH:MM:SS{rest}")
}

#[test]
fn repeat_says_the_last_thing_again() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    announce(&agent, 1, "Looking.");
    person.read_until("tool: Looking.");
    person.type_line("repeat");
    assert_eq!(person.next_line().unwrap(), "tool: Looking.");
    // Messages about invalid input are not repeated.
    person.type_line("wibble");
    person.read_until("error: Not understood.");
    person.type_line("repeat");
    assert_eq!(person.next_line().unwrap(), "tool: Looking.");
    let token = agent.ask_confirmation();
    let question = person.read_until("ask: Yes or no?");
    person.type_line("repeat");
    let repeated = person.read_until("ask: Yes or no?");
    assert_eq!(repeated[0], question[question.len() - repeated.len()], "{repeated:#?}");
    // If something else was announced since, that is repeated, and then that the question is open.
    announce(&agent, 2, "Looking again.");
    person.read_until("tool: Looking again.");
    person.type_line("repeat");
    assert_eq!(person.next_line().unwrap(), "tool: Looking again.");
    let note = person.next_line().unwrap();
    assert!(note.starts_with("ask: Question 1 from local is still open: about "), "{note}");
    assert!(note.ends_with(" left. Type repeat 1 to hear it."), "{note}");
    person.type_line("repeat 1");
    person.read_until("ask: Yes or no?");
    person.type_line("no");
    assert!(agent.wait_for_reply(&token, 30).contains("reject"));
    person.read_until("answer: Rejected.");
    person.type_line("repeat");
    assert_eq!(person.next_line().unwrap(), "answer: Rejected.");
}

#[test]
fn history_and_last_say_what_was_said_before_with_times() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    person.read_until("session: local has started.");
    for number in 1..=12 {
        announce(&agent, number, &format!("Call {number}."));
    }
    person.read_until("tool: Call 12.");
    person.type_line("last");
    assert_eq!(without_time(&person.next_line().unwrap()), "status: HH:MM:SS, tool: Call 12.");
    person.type_line("history 2");
    assert_eq!(without_time(&person.next_line().unwrap()), "status: HH:MM:SS, tool: Call 11.");
    assert_eq!(without_time(&person.next_line().unwrap()), "status: HH:MM:SS, tool: Call 12.");
    person.type_line("history");
    let lines = person.read_until("Call 12.");
    assert_eq!(lines.len(), 10, "{lines:#?}");
    assert!(lines[0].ends_with("tool: Call 3."), "{lines:#?}");
    person.type_line("help");
    let help = person.read_until("help: quit").join("\n");
    for part in ["stop all", "history 20", "repeat 2"] {
        assert!(help.contains(part), "{part}: {help}");
    }
}

#[test]
fn with_times_each_line_starts_with_the_local_time() {
    let hub = HubProcess::start_in_memory();
    let mut person =
        ListenProcess::start_with(&hub.address, &["--times"], |command| command.env("TZ", "TEST-23:59"));
    let printed = person.read_until("Listening to").pop().unwrap();
    let (time, rest) = printed.split_at(8);
    assert!(rest.starts_with(" notice: Listening to"), "{printed}");
    assert_eq!(without_time(&format!("x: {time}")), "x: HH:MM:SS");
    // The same time in JSON is in UTC, which is almost a day earlier.
    let mut program =
        ListenProcess::start_with(&hub.address, &["--json"], |command| command.env("TZ", "TEST-23:59"));
    let line = program.read_until("Listening to").pop().unwrap();
    let object: Value = serde_json::from_str(&line).unwrap();
    let utc = object["time"].as_str().unwrap();
    assert!(utc.ends_with('Z') && utc.len() == 24, "{utc}");
    let minutes = |time: &str| time[..2].parse::<i32>().unwrap() * 60 + time[3..5].parse::<i32>().unwrap();
    // Both were printed within a few minutes.
    let difference = (minutes(&utc[11..16]) - minutes(time) - 1).rem_euclid(24 * 60);
    assert!(difference < 10, "{utc} and {time}");
}

#[test]
fn an_unavailable_language_is_announced_once() {
    let hub = HubProcess::start_in_memory();
    for (languages, notice) in [
        (
            "fr",
            "notice: sayso does not know the language fr and uses English. It knows: English, español, Yorùbá.",
        ),
        (
            "fr-CA,es",
            "aviso: sayso no conoce el idioma fr-CA y usa español. Conoce: English, español, Yorùbá.",
        ),
    ] {
        let mut person = ListenProcess::start(&hub.address, &["--lang", languages]);
        person.read_until(&hub.address);
        assert_eq!(person.next_line().unwrap(), notice);
        person.type_line("quit");
        assert!(!person.wait_for_exit().0.contains(&notice.to_owned()));
    }
    let mut person = ListenProcess::start_connected(&hub.address, &["--lang", "en-GB,fr"]);
    person.type_line("status");
    assert_eq!(person.next_line().unwrap(), "status: No agent is working.");
}

#[test]
fn a_free_text_question_does_not_take_a_command_as_its_answer() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    let path = format!("/agent/v1/sessions/{}/clarifications", agent.session_id);
    let token = agent
        .client
        .post(&path, r#"{"question":"What shall I write?","timeout_seconds":120}"#)
        .json_str("reply_token");
    person.read_until("ask: Type your answer.");
    for line in ["stop the agent", "help me", "history please", "more time please"] {
        person.type_line(line);
        let expected = format!(
            "error: That starts like a command, so nothing was sent. If it is your answer, type: answer {line}"
        );
        assert_eq!(person.next_line().unwrap(), expected);
    }
    assert_eq!(agent.wait_for_reply(&token, 0), r#"{"status":"pending"}"#);
    // Everything else is an answer, and the person hears what was sent.
    person.type_line("answer stop the agent");
    assert_eq!(person.next_line().unwrap(), "answer: Your answer to question 1: stop the agent");
    assert!(agent.wait_for_reply(&token, 30).contains(r#""response":"stop the agent""#));
}

#[test]
fn after_a_restart_without_data_status_and_announcements_agree() {
    let address = testing::hub::reserved_address();
    let start = || HubProcess::start(&["--open", "--listen", &address, "--memory"]);
    let mut hub = start();
    let mut person = ListenProcess::start_connected(&address, &[]);
    let agent = AgentSession::start(hub.client());
    agent.ask_confirmation();
    person.read_until("ask: Yes or no?");
    hub.kill();
    person.read_until("notice: Connection to the hub lost");
    let _hub = start();
    let lines = person.read_until("notice: No agent is working.");
    let position_of = |part: &str| {
        lines.iter().position(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}: {lines:#?}"))
    };
    assert!(
        position_of("Reconnected, but what you missed was not stored.")
            < position_of("session: local has ended. How it ended is not known.")
    );
    position_of("answer: Question 1 is no longer open. Its outcome is not known.");
    person.type_line("status");
    assert_eq!(person.next_line().unwrap(), "status: No agent is working.");
    person.type_line("yes 1");
    person.read_until("error: Question 1 is not open. Nothing was sent.");
}

#[test]
fn a_late_listener_hears_what_a_session_is_about_in_its_language() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let body = r#"{"summary_normal":"Paying the bills.","summary_normal_es":"Pagando las facturas.","localization_hints":{"primary_language":"en","available_languages":["en","es"]}}"#;
    let response = client.post("/agent/v1/sessions", body);
    assert_eq!(response.status, 201, "{response:?}");
    let agent = AgentSession { client: client.clone(), session_id: response.json_str("session_id") };
    agent.publish(r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#);
    for (language, expected) in [
        ("en", "agent: local is thinking. About: Paying the bills."),
        ("es", "agente: local está pensando. Asunto: Pagando las facturas."),
    ] {
        let mut person = ListenProcess::start(&hub.address, &["--lang", language]);
        person.read_until(expected);
    }
}
