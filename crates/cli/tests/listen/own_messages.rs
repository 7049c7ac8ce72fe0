//! What `sayso listen` itself sends, and what it does with events that are unusual or come in a flood.

use serde_json::{Value, json};

use crate::listen::fake_hub::{FakeHub, FakeStream, accepted_message};
use testing::cli::{KillTimer, check_output, command, run_sayso};
use testing::terminal::ListenProcess;

const SUBSCRIBE: &str = "POST /aaep/v1/subscriptions";
const REPLY: &str = "POST /aaep/v1/replies";

/// Sends a question with these members. Its token and its number are `number`.
fn send_question(stream: &mut FakeStream, number: u32, kind: &str, members: &str) {
    let members =
        format!(r#""urgency":"critical","reply_token":"rpl_{number}","timeout_seconds":330,{members}"#);
    stream.send_event(number, kind, &members);
}

#[test]
fn every_message_of_the_listener_is_valid() {
    let hub = FakeHub::start_with_responses(&[accepted_message("{}", "")]);
    let mut person = ListenProcess::start(&hub.address, &["--rate", "40", "--verbosity", "detailed"]);
    let mut sent = vec![hub.next_request(SUBSCRIBE)];
    let mut stream = hub.next_stream();
    stream.send_event(100, "session.started", r#""summary_normal":"Begun.""#);
    let choices = r#""choices":[{"value":"LOS","label":"Lagos"},{"value":"ABV","label":"Abuja"}]"#;
    let dialogue = [
        (
            "awaiting.confirmation",
            r#""action":"A one.","consequence":"B.","default_decision":"reject""#,
            "yes 1",
            json!("accept"),
        ),
        (
            "awaiting.confirmation",
            r#""action":"A two.","consequence":"B.","default_decision":"reject""#,
            "no 2",
            json!("reject"),
        ),
        ("awaiting.clarification", r#""question":"A three.""#, "answer 3 by train", json!("by train")),
        (
            "awaiting.clarification",
            r#""question":"A four.","accepted_response_kinds":["yes_no"]"#,
            "yes 4",
            json!(true),
        ),
        (
            "awaiting.clarification",
            r#""question":"A five.","accepted_response_kinds":["numeric"]"#,
            "answer 5 4.5",
            json!(4.5),
        ),
        ("awaiting.clarification", &format!(r#""question":"A six.",{choices}"#), "answer 6 2", json!("ABV")),
    ];
    for (number, (kind, members, typed, answer)) in (1..).zip(dialogue) {
        send_question(&mut stream, number, kind, members);
        let text = ["A one.", "A two.", "A three.", "A four.", "A five.", "A six."][number as usize - 1];
        person.read_until(text);
        person.type_line(typed);
        let reply = hub.next_request(REPLY);
        // The token is echoed unchanged, and the answer is the one that the person typed.
        assert_eq!(reply["reply_token"], format!("rpl_{number}"), "{reply}");
        let member = if kind.ends_with("confirmation") { "decision" } else { "response" };
        assert_eq!(reply[member], answer, "{reply}");
        sent.push(reply);
    }
    send_question(&mut stream, 7, "awaiting.clarification", r#""question":"A seven.""#);
    person.read_until("A seven.");
    for (typed, kind) in [
        ("more time 7", "sayso:deadline.extend"),
        ("quieter", "subscription.renegotiate"),
        ("stop 1", "sayso:session.stop"),
        ("quit", "subscription.close"),
    ] {
        person.type_line(typed);
        let message = hub.next_request(REPLY);
        assert_eq!(message["type"], kind, "{message}");
        sent.push(message);
    }
    let lines = sent.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    // Without the order of events, because the fake hub's own messages are not part of this.
    let output = run_sayso(&["validate", "--sequence", "never"], &lines);
    assert_eq!(output.stdout, "0 events, 0 sessions: 0 errors, 0 warnings\n", "{lines}");
    let tokens: Vec<&Value> =
        sent.iter().filter_map(|message| message.get("decision").or(message.get("response"))).collect();
    assert_eq!(tokens.len(), 6, "one reply for each question: {lines}");
}

#[test]
fn every_subscription_starts_with_a_request_that_declares_what_the_listener_can_do() {
    let hub = FakeHub::start_with_responses(&[accepted_message("{}", "")]);
    let _person =
        ListenProcess::start(&hub.address, &["--rate", "40", "--verbosity", "terse", "--lang", "yo"]);
    let declared = json!({
        "max_events_per_second": 40,
        "preferred_verbosity": "terse",
        "languages": ["yo"],
        "supports_confirmation_reply": true,
        "supports_clarification_reply": true,
        "coalesce_boundaries": ["sentence", "completion"],
        "supported_conformance_levels": [1, 2, 3],
        "supported_extensions": ["urn:sayso:context:v1"],
    });
    for _ in 0..2 {
        let request = hub.next_request("");
        assert_eq!(request["type"], "subscription.request", "the first request of a subscription: {request}");
        for (name, value) in declared.as_object().unwrap() {
            if name == "languages" {
                assert_eq!(request["capabilities"][name][0], "yo", "{request}");
            } else {
                assert_eq!(request["capabilities"][name], *value, "{name}: {request}");
            }
        }
        let stream = hub.next_stream();
        hub.requests_until("GET /aaep/v1/events");
        // The listener starts a new subscription after the hub has ended the old one.
        stream.close("idle");
    }
}

#[test]
fn a_flood_hides_no_error() {
    const SESSIONS: usize = 20;
    let hub = FakeHub::start_with_responses(&[accepted_message("{}", "")]);
    let mut person = ListenProcess::start(&hub.address, &["--rate", "20"]);
    let mut stream = hub.next_stream();
    let mut text = String::new();
    for number in 0..SESSIONS {
        for call in 0..20 {
            text += &block(
                number,
                number * 100 + call,
                "tool.invoked",
                &format!(r#""tool":"t","summary_normal":"Call {call} of {number}.""#),
            );
        }
        let error = format!(
            r#""urgency":"critical","error_category":"permanent","summary_normal":"Failure {number}.""#
        );
        text += &block(number, number * 100 + 99, "session.errored", &error);
    }
    stream.send_raw(&text);
    let lines = person.read_until(&format!("Failure {}.", SESSIONS - 1));
    for number in 0..SESSIONS {
        let failure = format!("Failure {number}.");
        assert_eq!(lines.iter().filter(|line| line.contains(&failure)).count(), 1, "{failure} in {lines:#?}");
    }
}

/// Formats an event of the session with this number.
fn block(session: usize, id: usize, kind: &str, members: &str) -> String {
    format!(
        "event: aaep.event\nid: evt_{id}\ndata: {{\"@context\":\"https://aaep-protocol.org/context/v1\",\"type\":\"aaep:agent.{kind}\",\"event_id\":\"evt_{id}\",\"session_id\":\"sess_{session}\",\"timestamp\":\"2026-05-24T14:00:00.000Z\",\"producer\":{{\"agent_id\":\"bank\"}},{members}}}\n\n"
    )
}

#[test]
fn extension_data_that_is_not_understood_changes_nothing() {
    let lines = |extensions: &str| {
        let hub = FakeHub::start_with_responses(&[accepted_message("{}", "")]);
        let mut person = ListenProcess::start(&hub.address, &[]);
        let mut stream = hub.next_stream();
        for (number, kind, members) in [
            (1, "session.started", r#""summary_normal":"Begun.""#),
            (2, "tool.invoked", r#""tool":"t","summary_normal":"Looking.""#),
            (3, "tool.completed", r#""tool":"t","status":"success","summary_normal":"Found.""#),
            (4, "session.completed", r#""summary_normal":"Over.""#),
        ] {
            stream.send_event(number, kind, &format!("{members}{extensions}"));
        }
        let lines = person.read_until("Over.");
        lines.into_iter().filter(|line| !line.contains("127.0.0.1")).collect::<Vec<_>>()
    };
    let plain = lines("");
    for text in ["Begun.", "Looking.", "Found.", "Over."] {
        assert!(plain.iter().any(|line| line.contains(text)), "{plain:#?}");
    }
    for extensions in [
        // A vocabulary that the listener did not name.
        r#","extensions":{"medai":{"summary_normal":"Other.","urgency":"critical"}}"#,
        // The vocabulary that it named, with members that it does not know, and with values of other types.
        r#","extensions":{"sayso":{"mood":"good","volume":[11]}}"#,
        r#","extensions":{"sayso":{"decision":7,"by":[],"reply_token":{},"gap":"yes","ended_by":3,"text_by":{}}}"#,
        r#","extensions":{"sayso":"all"}"#,
    ] {
        assert_eq!(lines(extensions), plain, "{extensions}");
    }
}

/// §9.3.2, §3.2.1: the envelope is checked before any part of the event is announced.
#[test]
fn an_event_with_a_broken_envelope_is_reported_and_not_announced() {
    let hub = FakeHub::start_with_responses(&[accepted_message("{}", "")]);
    let mut person = ListenProcess::start(&hub.address, &[]);
    let mut stream = hub.next_stream();
    let context = r#""https://aaep-protocol.org/context/v1""#;
    for (number, (from, to)) in [
        (format!("\"@context\":{context},"), ""),
        (context.to_owned(), "\"https://aaep-protocol.org/context/v2\""),
        (context.to_owned(), "[\"https://example.org/other/v1\"]"),
        ("\"type\":\"aaep:agent.tool.invoked\",".to_owned(), ""),
        ("\"event_id\":\"evt_7\"".to_owned(), "\"event_id\":\"7\""),
        ("\"session_id\":\"sess_1\",".to_owned(), ""),
        ("2026-05-24T14:00:00.000Z".to_owned(), "May 24, 2026 14:00:00"),
        ("{\"agent_id\":\"bank\"}".to_owned(), "{}"),
    ]
    .into_iter()
    .enumerate()
    {
        let text = block(1, 7, "tool.invoked", &format!(r#""tool":"t","summary_normal":"Defect {number}.""#));
        assert!(text.contains(&from), "{from} is not in {text}");
        stream.send_raw(&text.replace(&from, to));
        let lines = person.read_until("error: ");
        assert!(!lines.iter().any(|line| line.contains("Defect")), "{to:?}: {lines:#?}");
    }
    stream.send_event(8, "tool.invoked", r#""tool":"t","summary_normal":"Heard.""#);
    let lines = person.read_until("Heard.");
    assert!(!lines.iter().any(|line| line.contains("Defect")), "{lines:#?}");
}

/// §3.11: undeclared extensions and stray members are announced as usual, and logged on request.
#[test]
fn violations_are_logged_for_authors() {
    for (options, is_logged) in [(&["--violations"][..], true), (&[], false)] {
        let hub = FakeHub::start_with_responses(&[accepted_message("{}", "")]);
        let url = format!("http://{}", hub.address);
        let child = command(&[&["listen", &url], options].concat()).spawn().unwrap();
        let _timer = KillTimer::start(child.id());
        let mut stream = hub.next_stream();
        let defects = r#""custom_field":"\u001b[31m","extensions":{"medai":{"a":1}}"#;
        stream.send_event(
            7,
            "tool.invoked",
            &format!(r#""tool":"t","summary_normal":"Heard.","localization_hints":{{"primary_language":"en"}},{defects}"#),
        );
        stream.close("replaced");
        let output = check_output(child.wait_with_output().unwrap());
        assert!(output.stdout.contains("Heard."), "{}", output.stdout);
        let logs = |start: &str| output.stderr.lines().any(|line| line.starts_with(start));
        for start in [
            "violation: evt_7: warning AAEP-3.5-4 /custom_field: ",
            "violation: evt_7: warning AAEP-3.4.3-1 /extensions/medai: ",
        ] {
            assert_eq!(logs(start), is_logged, "{start}: {}", output.stderr);
        }
        assert_eq!(logs("violation: "), is_logged, "{}", output.stderr);
        assert!(!output.stderr.contains('\u{1b}'), "{}", output.stderr);
    }
}

/// §3.8, B.1.3: JSON with line ends is one event; each of its lines is a `data:` line of its own.
#[test]
fn an_event_over_several_lines_is_announced() {
    let hub = FakeHub::start_with_responses(&[accepted_message("{}", "")]);
    let mut person = ListenProcess::start(&hub.address, &[]);
    let mut stream = hub.next_stream();
    let text = block(1, 7, "tool.invoked", r#""tool":"t","summary_normal":"Heard.""#);
    let json = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let pretty = serde_json::to_string_pretty(&serde_json::from_str::<Value>(json).unwrap()).unwrap();
    assert!(pretty.lines().count() > 5);
    stream.send_raw(&format!("event: aaep.event\nid: evt_7\ndata: {}\n\n", pretty.replace('\n', "\ndata: ")));
    let lines = person.read_until("Heard.");
    assert!(!lines.iter().any(|line| line.starts_with("error: ")), "{lines:#?}");
}
