//! The demo's assistant: what it says is lawful, shows every event, and does nothing without a yes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use testing::cli::sayso;
use testing::http::{Client, EventStream};
use testing::hub::Hub;
use testing::messages::CAN_REPLY;
use testing::messages::{kind, reply};

/// Every scene in every language: as somebody would ask for it, and the event that it ends with.
const WISHES: [(&str, [&str; 13]); 3] = [
    (
        "en",
        [
            "Hello",
            "What's my balance?",
            "send 20 euro to Ada",
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

/// The names of the texts that come in three lengths.
const LENGTHS: [&str; 3] = ["summary_terse", "summary_normal", "summary_detailed"];

fn demo(more: &[&str]) -> Hub {
    // Signs of life would keep a test waiting that waits in vain.
    Hub::limited(&[&["--demo-agent", "--http-heartbeat", "1h"], more].concat())
}

fn ask(client: &Client, wish: &str) -> String {
    let answer = client.post("/demo", &json!({ "text": wish }).to_string());
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.text("session_id")
}

/// Answers a question of the demo: yes or no, or where.
fn answer(client: &Client, subscription: &str, event: &Value, decision: &str) {
    let token = event["reply_token"].as_str().unwrap();
    let said = reply(subscription, token, decision);
    let said = match kind(event) {
        "awaiting.confirmation" => said,
        _ => said
            .replace("confirmation", "clarification")
            .replace(&format!(r#""decision":"{decision}""#), r#""response":"Lagos""#),
    };
    assert_eq!(client.post("/aaep/v1/replies", &said).status, 204);
}

fn is_question(event: &Value) -> bool {
    kind(event).starts_with("awaiting.")
}

fn is_end(event: &Value) -> bool {
    ["session.completed", "session.errored", "session.cancelled"].contains(&kind(event))
}

/// One wish, from its start to its end, with every question answered so.
fn play(
    client: &Client,
    subscription: &str,
    ear: &mut EventStream,
    wish: &str,
    decision: &str,
) -> Vec<Value> {
    let session = ask(client, wish);
    let mut told = Vec::new();
    loop {
        let event = ear.next().2;
        assert_eq!(event["session_id"], session.as_str());
        if is_question(&event) {
            answer(client, subscription, &event, decision);
        }
        let last = is_end(&event);
        told.push(event);
        if last {
            return told;
        }
    }
}

/// What was told in one session, as it was written.
type Lines = Vec<String>;

/// All scenes in all languages, with every question answered so, or with no answer at all; by language and wish.
fn all(decision: Option<&str>) -> BTreeMap<(&'static str, &'static str), Lines> {
    let hub = demo(&["--demo-time", if decision.is_some() { "1h" } else { "1s" }]);
    let mut all = BTreeMap::new();
    for (language, wishes) in WISHES {
        all.append(&mut all_in(&hub.client(), language, wishes, decision));
    }
    all
}

/// All scenes in one language, at once, heard in that language.
fn all_in(
    client: &Client,
    language: &'static str,
    wishes: [&'static str; 13],
    decision: Option<&str>,
) -> BTreeMap<(&'static str, &'static str), Lines> {
    let terms = CAN_REPLY.replace('{', &format!(r#"{{"languages":["{language}"],"#));
    let subscription = client.subscribe(&terms);
    let mut ear = client.listen(&subscription, None);
    let mut names: BTreeMap<_, _> = wishes.map(|wish| (ask(client, wish), wish)).into();
    let mut told: BTreeMap<_, Lines> = BTreeMap::new();
    let mut ended = 0;
    while ended < names.len() {
        let line = ear.next_line();
        let Some(line) = line.strip_prefix("data: ") else { continue };
        let event: Value = serde_json::from_str(line).unwrap();
        if let (true, Some(decision)) = (is_question(&event), decision) {
            answer(client, &subscription, &event, decision);
        }
        ended += usize::from(is_end(&event));
        told.entry(event["session_id"].as_str().unwrap().to_owned()).or_default().push(line.to_owned());
    }
    told.into_iter().map(|(session, told)| ((language, names.remove(&session).unwrap()), told)).collect()
}

fn events(lines: &[String]) -> Vec<Value> {
    lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The hub says by itself that a question is open and that it is not any more; it has no words of an agent for that.
fn is_of_the_hub(event: &Value) -> bool {
    event["from_state"] == "awaiting_input" || event["to_state"] == "awaiting_input"
}

#[test]
fn every_scene_in_every_language_is_lawful_and_all_twelve_events_are_shown() {
    for decision in [Some("accept"), Some("reject"), None] {
        let told = all(decision);
        for (language, _) in WISHES {
            let own = told.iter().filter(|((of, _), _)| *of == language).map(|(_, told)| events(told));
            let kinds: BTreeSet<_> = own.flatten().map(|event| kind(&event).to_owned()).collect();
            assert_eq!(kinds.len(), 12, "{language}, {decision:?}: {kinds:?}");
        }
        let lines: Vec<_> = told.into_values().flatten().collect();
        let judged = sayso(&["validate", "--sequence", "always", "--json"], lines.join("\n"));
        assert_eq!(judged.code, 0, "{}{}", judged.out, judged.err);
        let findings: Vec<Value> =
            judged.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (summary, findings) = findings.split_last().unwrap();
        assert_eq!((&summary["summary"]["sessions"], &summary["summary"]["errors"]), (&json!(39), &json!(0)));
        for finding in findings {
            let line = usize::try_from(finding["line"].as_u64().unwrap()).unwrap();
            let event: Value = serde_json::from_str(&lines[line - 1]).unwrap();
            assert!(is_of_the_hub(&event), "{finding}: {event}");
        }
    }
}

#[test]
fn all_that_it_says_has_three_lengths_and_three_languages() {
    for ((language, wish), told) in all(Some("accept")) {
        let told = events(&told);
        for event in told.iter().filter(|event| kind(event) != "output.streaming" && !is_of_the_hub(event)) {
            let hints = &event["localization_hints"];
            assert_eq!(hints["primary_language"], language, "{wish}: {event}");
            let available = hints["available_languages"].as_array().unwrap().iter();
            let available: BTreeSet<_> = available.map(|tag| tag.as_str().unwrap()).collect();
            assert_eq!(available, BTreeSet::from(["en", "es", "yo"]), "{wish}: {event}");
            let mut fields = LENGTHS.to_vec();
            let more = ["action", "consequence", "question", "reason", "remediation_hint", "error_message"];
            fields.extend(more.into_iter().filter(|name| event.get(name).is_some()));
            for name in fields {
                let mut texts = BTreeSet::from([event[name].as_str().unwrap_or_default()]);
                for other in ["en", "es", "yo"].into_iter().filter(|other| *other != language) {
                    texts.insert(event[format!("{name}_{other}")].as_str().unwrap_or_default());
                }
                assert!(texts.len() == 3 && !texts.contains(""), "{wish}: {name} in {event}");
                assert!(texts.iter().all(|text| !text.contains('{')), "{wish}: {texts:?}");
            }
            let texts: BTreeSet<_> = LENGTHS.iter().map(|name| event[name].as_str().unwrap()).collect();
            assert!(texts.len() >= 2, "{wish}: lengths that differ in {event}");
        }
        let outputs = told.iter().filter(|event| kind(event) == "output.streaming");
        for output in outputs {
            assert_eq!(output["localization_hints"]["primary_language"], language, "{wish}");
            assert_eq!(output.get("language"), None, "{wish}: it is the session's");
        }
    }
}

#[test]
fn nothing_is_done_without_a_yes() {
    let acts = |told: &[Value]| told.iter().filter(|event| kind(event) == "tool.invoked").count();
    let asks = |told: &[Value]| told.iter().any(|event| kind(event) == "awaiting.confirmation");
    for (decision, calls) in [(Some("accept"), 1), (Some("reject"), 0), (None, 0)] {
        let asked: Vec<_> =
            all(decision).into_values().map(|told| events(&told)).filter(|told| asks(told)).collect();
        assert_eq!(asked.len(), 4 * 3);
        for told in asked {
            assert_eq!(acts(&told), calls, "{decision:?}: {told:?}");
        }
    }
}

#[test]
fn what_was_named_is_what_is_asked_and_done() {
    let hub = demo(&[]);
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let mut ear = client.listen(&subscription, None);
    let told = play(&client, &subscription, &mut ear, "Send 20.50 euro to Olu", "accept");
    let find = |wanted: &str| told.iter().find(|event| kind(event) == wanted).unwrap();
    assert_eq!(
        find("awaiting.confirmation")["action"],
        "Transfer 20.50 euros from the demonstration account to Olu."
    );
    assert_eq!(find("tool.invoked")["summary_normal"], "Transferring 20.50 euros to Olu.");
    assert!(find("output.streaming")["chunk"].as_str().unwrap().contains("20.50 euros went to Olu"));
    let told = play(&client, &subscription, &mut ear, "weather", "accept");
    let output = told.iter().find(|event| kind(event) == "output.streaming").unwrap();
    assert!(
        output["chunk"].as_str().unwrap().starts_with("In Lagos, as everywhere"),
        "as answered: {output}"
    );
}

#[test]
fn hostile_requests_are_answered_and_nothing_of_them_is_repeated() {
    let hub = demo(&[]);
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let mut ear = client.listen(&subscription, None);
    let long = "M4RKER ".repeat(140_000);
    for wish in [
        "Call a tool with api_key=M4RKER-12345",
        "\u{0}\u{1b}]0;M4RKER\u{7}\u{202e}",
        "transfer to {whom} ../../M4RKER <b>M4RKER</b>",
        "M4RKER\n\n\nevent: x\ndata: M4RKER",
        &long,
    ] {
        let told = play(&client, &subscription, &mut ear, wish, "reject");
        assert_eq!(kind(told.last().unwrap()), "session.completed");
        assert!(!Value::from(told).to_string().contains("M4RKER"));
    }
    let too_long = format!(r#"{{"text":"{}"}}"#, "x".repeat(1 << 21));
    assert_eq!(client.post("/demo", &too_long).status, 413);
}

#[test]
fn a_listener_hears_it_in_its_own_length_and_language() {
    let hub = demo(&[]);
    let client = hub.client();
    for (terms, word) in [
        (r#"{"preferred_verbosity":"terse"}"#, "Balance."),
        ("{}", "The balance will be looked up."),
        (r#"{"languages":["es"]}"#, "Se va a consultar el saldo"),
        (r#"{"languages":["yo"]}"#, "iye owó"),
    ] {
        let subscription = client.subscribe(terms);
        let mut ear = client.listen(&subscription, None);
        let told = play(&client, &subscription, &mut ear, "balance", "reject");
        assert!(told[0].to_string().contains(word), "{terms}: {}", told[0]);
    }
    // The answer itself is in the language of the request.
    let subscription = client.subscribe("{}");
    let mut ear = client.listen(&subscription, None);
    let told = play(&client, &subscription, &mut ear, "¿Cuál es mi saldo?", "reject");
    let output = told.iter().find(|event| kind(event) == "output.streaming").unwrap();
    assert!(output["chunk"].as_str().unwrap().starts_with("La cuenta de demostración"), "{output}");
}

#[test]
fn it_answers_in_the_language_that_is_asked_for() {
    let hub = demo(&[]);
    let client = hub.client();
    let mut ear = client.listen(&client.subscribe(CAN_REPLY), None);
    for (language, begins) in
        [("es-MX", "La cuenta de demostración"), ("yo", "Yúrò 1250"), ("fr", "The demo")]
    {
        let wish = json!({ "text": "What is my balance?", "language": language }).to_string();
        assert_eq!(client.post("/demo", &wish).status, 201);
        let output =
            std::iter::from_fn(|| Some(ear.next().2)).find(|event| kind(event) == "output.streaming");
        let chunk = output.unwrap()["chunk"].as_str().unwrap().to_owned();
        assert!(chunk.starts_with(begins), "{language}: {chunk}");
    }
}

#[test]
fn it_wants_to_be_asked_for_something() {
    let hub = demo(&[]);
    for odd in [
        "",
        "[]",
        "{}",
        r#"{"text":" "}"#,
        r#"{"text":1}"#,
        r#"{"text":"Hello","language":7}"#,
        r#"{"text":"Hello","language":"not a tag"}"#,
    ] {
        assert_eq!(hub.client().post("/demo", odd).status, 400, "{odd}");
    }
    assert_eq!(hub.client().get("/events").status, 404, "it is no part of the dialect");
}
