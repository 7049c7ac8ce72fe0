//! The demo agent: its events are valid and cover every type, and no action happens without an acceptance.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use testing::cli::run_sayso;
use testing::http::{EventStream, TestClient};
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;
use testing::messages::{confirmation_reply, short_type};

/// A request for every scenario in every language.
const REQUESTS: [(&str, [&str; 13]); 3] = [
    (
        "en",
        [
            "Hello",
            "What's my balance?",
            "send 20 euros to Ada",
            "Book a room",
            "Send an e-mail to Ada",
            "Delete a record",
            "How is the weather?",
            "Explain it at length",
            "Use a tool that does not exist",
            "Escalate to a human",
            "Fail",
            "Begin something and cancel it",
            "Sing me a song",
        ],
    ),
    (
        "es",
        [
            "Hola",
            "¿Cuál es mi saldo?",
            "Transfiere 20 euros a Ada",
            "Reserva una sala",
            "Envía un correo a Ada",
            "Borra un registro",
            "¿Qué tiempo hace?",
            "Explícame todo",
            "Usa una herramienta que no existe",
            "Quiero hablar con una persona",
            "Falla, por favor",
            "Empieza algo y cancélalo, por favor",
            "¿Una canción?",
        ],
    ),
    (
        "yo",
        [
            "Ẹ n lẹ́",
            "Iye owó mi",
            "Fi yúrò 20 ránṣẹ́ sí Ada",
            "Gba yàrá",
            "Fi ímeèlì ránṣẹ́ sí Ada",
            "Pa àkọsílẹ̀ rẹ́",
            "Báwo ni ojú ọjọ́?",
            "Ṣàlàyé fún mi",
            "Lo irinṣẹ́ tí kò sí",
            "Mo fẹ́ ènìyàn",
            "Kùnà",
            "Fagi lé e",
            "Kọrin fún mi, jọ̀wọ́",
        ],
    ),
];

/// The members for the terse, normal and detailed form of a summary.
const SUMMARY_MEMBERS: [&str; 3] = ["summary_terse", "summary_normal", "summary_detailed"];

fn start_demo_hub(extra: &[&str]) -> HubProcess {
    // Heartbeats are off. Otherwise, a test that waits for a missing event would never time out.
    HubProcess::start_in_memory_with(&[&["--demo-agent", "--http-heartbeat", "1h"], extra].concat())
}

fn request_demo(client: &TestClient, request: &str) -> String {
    let response = client.post("/demo", &json!({ "text": request }).to_string());
    assert_eq!(response.status, 201, "{response:?}");
    response.json_str("session_id")
}

/// Replies to a question of the demo with the decision, or with a city if it is a clarification.
fn reply_to(client: &TestClient, subscription: &str, event: &Value, decision: &str) {
    let token = event["reply_token"].as_str().unwrap();
    let reply = confirmation_reply(subscription, token, decision);
    let reply = match short_type(event) {
        "awaiting.confirmation" => reply,
        _ => reply
            .replace("confirmation", "clarification")
            .replace(&format!(r#""decision":"{decision}""#), r#""response":"Lagos""#),
    };
    assert_eq!(client.post("/aaep/v1/replies", &reply).status, 204);
}

fn is_question(event: &Value) -> bool {
    short_type(event).starts_with("awaiting.")
}

fn is_end(event: &Value) -> bool {
    ["session.completed", "session.errored", "session.cancelled"].contains(&short_type(event))
}

/// Runs one request from start to end and replies to every question with this decision.
fn run_request(
    client: &TestClient,
    subscription: &str,
    stream: &mut EventStream,
    request: &str,
    decision: &str,
) -> Vec<Value> {
    let session = request_demo(client, request);
    let mut received = Vec::new();
    loop {
        let event = stream.next().2;
        assert_eq!(event["session_id"], session.as_str());
        if is_question(&event) {
            reply_to(client, subscription, &event, decision);
        }
        let is_last = is_end(&event);
        received.push(event);
        if is_last {
            return received;
        }
    }
}

/// The events of one session as JSON lines.
type SessionLines = Vec<String>;

/// Runs all scenarios in all languages and replies to every question with this decision, or not at all.
fn run_all_scenarios(decision: Option<&str>) -> BTreeMap<(&'static str, &'static str), SessionLines> {
    let hub = start_demo_hub(&["--demo-answer-timeout", if decision.is_some() { "1h" } else { "1s" }]);
    let mut results = BTreeMap::new();
    for (language, requests) in REQUESTS {
        results.append(&mut run_all_scenarios_in(&hub.client(), language, requests, decision));
    }
    results
}

/// Runs all scenarios of one language concurrently, with a listener in that language.
fn run_all_scenarios_in(
    client: &TestClient,
    language: &'static str,
    requests: [&'static str; 13],
    decision: Option<&str>,
) -> BTreeMap<(&'static str, &'static str), SessionLines> {
    let capabilities = REPLY_CAPABILITIES.replace('{', &format!(r#"{{"languages":["{language}"],"#));
    let subscription = client.subscribe(&capabilities);
    let mut stream = client.open_event_stream(&subscription, None);
    let mut request_by_session: BTreeMap<_, _> =
        requests.map(|request| (request_demo(client, request), request)).into();
    let mut received: BTreeMap<_, SessionLines> = BTreeMap::new();
    let mut ended_sessions = 0;
    while ended_sessions < request_by_session.len() {
        let line = stream.next_line();
        let Some(line) = line.strip_prefix("data: ") else { continue };
        let event: Value = serde_json::from_str(line).unwrap();
        if let (true, Some(decision)) = (is_question(&event), decision) {
            reply_to(client, &subscription, &event, decision);
        }
        ended_sessions += usize::from(is_end(&event));
        received.entry(event["session_id"].as_str().unwrap().to_owned()).or_default().push(line.to_owned());
    }
    received
        .into_iter()
        .map(|(session, received)| ((language, request_by_session.remove(&session).unwrap()), received))
        .collect()
}

fn events(lines: &[String]) -> Vec<Value> {
    lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether the hub itself sent this event to report that a question opened or closed. Such an event has no text from
/// an agent.
fn is_hub_event(event: &Value) -> bool {
    event["from_state"] == "awaiting_input" || event["to_state"] == "awaiting_input"
}

#[test]
fn every_scenario_is_valid_in_every_language_and_all_twelve_types_occur() {
    for decision in [Some("accept"), Some("reject"), None] {
        let received = run_all_scenarios(decision);
        for (language, _) in REQUESTS {
            let sessions = received
                .iter()
                .filter(|((event_language, _), _)| *event_language == language)
                .map(|(_, received)| events(received));
            let kinds: BTreeSet<_> = sessions.flatten().map(|event| short_type(&event).to_owned()).collect();
            assert_eq!(kinds.len(), 12, "{language}, {decision:?}: {kinds:?}");
        }
        let lines: Vec<_> = received.into_values().flatten().collect();
        let output = run_sayso(&["validate", "--sequence", "always", "--json"], lines.join("\n"));
        assert_eq!(output.exit_code, 0, "{}{}", output.stdout, output.stderr);
        let findings: Vec<Value> =
            output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (summary, findings) = findings.split_last().unwrap();
        assert_eq!((&summary["summary"]["sessions"], &summary["summary"]["errors"]), (&json!(39), &json!(0)));
        for finding in findings {
            let line = usize::try_from(finding["line"].as_u64().unwrap()).unwrap();
            let event: Value = serde_json::from_str(&lines[line - 1]).unwrap();
            assert!(is_hub_event(&event), "{finding}: {event}");
        }
    }
}

#[test]
fn every_summary_has_three_forms_and_every_text_three_languages() {
    for ((language, request), received) in run_all_scenarios(Some("accept")) {
        let received = events(&received);
        for event in
            received.iter().filter(|event| short_type(event) != "output.streaming" && !is_hub_event(event))
        {
            let hints = &event["localization_hints"];
            assert_eq!(hints["primary_language"], language, "{request}: {event}");
            let available = hints["available_languages"].as_array().unwrap().iter();
            let available: BTreeSet<_> = available.map(|tag| tag.as_str().unwrap()).collect();
            assert_eq!(available, BTreeSet::from(["en", "es", "yo"]), "{request}: {event}");
            let mut fields = SUMMARY_MEMBERS.to_vec();
            let extra = ["action", "consequence", "question", "reason", "remediation_hint", "error_message"];
            fields.extend(extra.into_iter().filter(|name| event.get(name).is_some()));
            for name in fields {
                let mut texts = BTreeSet::from([event[name].as_str().unwrap_or_default()]);
                for other in ["en", "es", "yo"].into_iter().filter(|other| *other != language) {
                    texts.insert(event[format!("{name}_{other}")].as_str().unwrap_or_default());
                }
                assert!(texts.len() == 3 && !texts.contains(""), "{request}: {name} in {event}");
                assert!(texts.iter().all(|text| !text.contains('{')), "{request}: {texts:?}");
            }
            let texts: BTreeSet<_> =
                SUMMARY_MEMBERS.iter().map(|name| event[name].as_str().unwrap()).collect();
            assert!(texts.len() >= 2, "{request}: the forms of the summary do not differ in {event}");
        }
        let outputs = received.iter().filter(|event| short_type(event) == "output.streaming");
        for output in outputs {
            assert_eq!(output["localization_hints"]["primary_language"], language, "{request}");
            assert_eq!(
                output.get("language"),
                None,
                "{request}: output in the session's language needs no language member"
            );
        }
    }
}

#[test]
fn no_action_happens_without_an_acceptance() {
    let count_tool_calls =
        |received: &[Value]| received.iter().filter(|event| short_type(event) == "tool.invoked").count();
    let asks = |received: &[Value]| received.iter().any(|event| short_type(event) == "awaiting.confirmation");
    for (decision, calls) in [(Some("accept"), 1), (Some("reject"), 0), (None, 0)] {
        let asked: Vec<_> = run_all_scenarios(decision)
            .into_values()
            .map(|received| events(&received))
            .filter(|received| asks(received))
            .collect();
        assert_eq!(asked.len(), 4 * 3);
        for received in asked {
            assert_eq!(count_tool_calls(&received), calls, "{decision:?}: {received:?}");
        }
    }
}

#[test]
fn the_confirmation_and_the_call_use_the_details_of_the_request() {
    let hub = start_demo_hub(&[]);
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    let received = run_request(&client, &subscription, &mut stream, "Send 20.50 euros to Olu", "accept");
    let find = |event_type: &str| received.iter().find(|event| short_type(event) == event_type).unwrap();
    assert_eq!(find("awaiting.confirmation")["action"], "Transfer 20.50 euros to Olu.");
    assert_eq!(find("tool.invoked")["summary_normal"], "Transferring 20.50 euros to Olu.");
    assert!(find("output.streaming")["chunk"].as_str().unwrap().contains("20.50 euros went to Olu"));
    let received = run_request(&client, &subscription, &mut stream, "weather", "accept");
    let output = received.iter().find(|event| short_type(event) == "output.streaming").unwrap();
    assert!(
        output["chunk"].as_str().unwrap().starts_with("In Lagos, as everywhere"),
        "the output must name the city from the reply: {output}"
    );
}

#[test]
fn hostile_requests_are_answered_and_not_echoed() {
    let hub = start_demo_hub(&[]);
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    let long = "M4RKER ".repeat(140_000);
    for request in [
        "Call a tool with api_key=M4RKER-12345",
        "\u{0}\u{1b}]0;M4RKER\u{7}\u{202e}",
        "transfer to {whom} ../../M4RKER <b>M4RKER</b>",
        "M4RKER\n\n\nevent: x\ndata: M4RKER",
        &long,
    ] {
        let received = run_request(&client, &subscription, &mut stream, request, "reject");
        assert_eq!(short_type(received.last().unwrap()), "session.completed");
        assert!(!Value::from(received).to_string().contains("M4RKER"));
    }
    let too_long = format!(r#"{{"text":"{}"}}"#, "x".repeat(1 << 21));
    assert_eq!(client.post("/demo", &too_long).status, 413);
}

#[test]
fn a_listener_gets_the_verbosity_and_language_that_it_requested() {
    let hub = start_demo_hub(&[]);
    let client = hub.client();
    for (capabilities, expected) in [
        (r#"{"preferred_verbosity":"terse"}"#, "Balance."),
        ("{}", "Checking the balance."),
        (r#"{"languages":["es"]}"#, "Se va a consultar el saldo"),
        (r#"{"languages":["yo"]}"#, "iye owó"),
    ] {
        let subscription = client.subscribe(capabilities);
        let mut stream = client.open_event_stream(&subscription, None);
        let received = run_request(&client, &subscription, &mut stream, "balance", "reject");
        assert!(received[0].to_string().contains(expected), "{capabilities}: {}", received[0]);
    }
    // The output itself is in the language of the request.
    let subscription = client.subscribe("{}");
    let mut stream = client.open_event_stream(&subscription, None);
    let received = run_request(&client, &subscription, &mut stream, "¿Cuál es mi saldo?", "reject");
    let output = received.iter().find(|event| short_type(event) == "output.streaming").unwrap();
    assert!(output["chunk"].as_str().unwrap().starts_with("La cuenta de demostración"), "{output}");
}

#[test]
fn the_demo_answers_in_the_requested_language() {
    let hub = start_demo_hub(&[]);
    let client = hub.client();
    let mut stream = client.open_event_stream(&client.subscribe(REPLY_CAPABILITIES), None);
    for (language, prefix) in
        [("es-MX", "La cuenta de demostración"), ("yo", "Yúrò 1250"), ("fr", "The demo")]
    {
        let request = json!({ "text": "What is my balance?", "language": language }).to_string();
        assert_eq!(client.post("/demo", &request).status, 201);
        let output = std::iter::from_fn(|| Some(stream.next().2))
            .find(|event| short_type(event) == "output.streaming");
        let chunk = output.unwrap()["chunk"].as_str().unwrap().to_owned();
        assert!(chunk.starts_with(prefix), "{language}: {chunk}");
    }
}

#[test]
fn invalid_requests_are_refused() {
    let hub = start_demo_hub(&[]);
    for body in [
        "",
        "[]",
        "{}",
        r#"{"text":" "}"#,
        r#"{"text":1}"#,
        r#"{"text":"Hello","language":7}"#,
        r#"{"text":"Hello","language":"not a tag"}"#,
    ] {
        assert_eq!(hub.client().post("/demo", body).status, 400, "{body}");
    }
    assert_eq!(hub.client().get("/events").status, 404, "without --compat, /events does not exist");
}
