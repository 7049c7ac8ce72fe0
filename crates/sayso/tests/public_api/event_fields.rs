//! Every field of the twelve events can be set through the crate. Published events are compared with the protocol's schemas.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use sayso::{
    Action, Answer, Argument, Cancellation, CancelledBy, ClarificationRequest, CoalesceHint, Completion,
    Decision, ErrorCategory, EventOptions, Failure, HandOff, HandOffTarget, Hub, JsonText, LocalizedText,
    OutputText, ProgressUpdate, ReportedState, Risk, StateChange, TextDirection, Urgency, Verbosity,
};
use serde_json::{Value, json};

use crate::support::fixture::TestListener;

/// Fields that agents cannot set, with the reason. If an entry applies to a single event type, its name starts with
/// that type.
const SET_BY_HUB: [(&str, &str); 3] = [
    ("sequence_number", "only the hub can number events"),
    (
        "output.streaming/verbosity",
        "the hub writes the events of an output; an output has no terse or detailed version",
    ),
    ("output.streaming/extensions", "the hub writes the events of an output"),
];

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn every_field_of_the_twelve_events_can_be_set() {
    let embedded =
        Hub::embedded().agent("bank").agent_name("Your bank").agent_version("1.2.0").model("a-model");
    let embedded = embedded.manifest_uri("https://bank.example/manifest.json").listen("127.0.0.1:0").open();
    let embedded = embedded.unwrap();
    let address = embedded.address().unwrap().to_string();
    let remote = Hub::connect(format!("http://{address}")).agent_name("Your bank").agent_version("1.2.0");
    let remote = remote.model("a-model").manifest_uri("https://bank.example/manifest.json").open().await;
    for hub in [&embedded, &remote.unwrap()] {
        let mut person = TestListener::listen(&address).await;
        // An unknown extension is a warning, which is expected here.
        person.ignore_rule("C-A12");
        let events = tokio::join!(publish_all_events(hub), receive_all_events(&mut person)).1;
        let mut published = BTreeSet::new();
        for event in &events {
            let kind = event["type"].as_str().unwrap().trim_start_matches("aaep:agent.");
            collect_paths(event, kind, &mut published);
        }
        let missing: Vec<_> = settable_fields().difference(&published).cloned().collect();
        assert!(missing.is_empty(), "no agent can set {missing:#?}");
    }
}

#[tokio::test]
async fn an_author_chooses_ids_progress_and_the_parent() {
    let hub = Hub::embedded().agent("bank").listen("127.0.0.1:0").open().unwrap();
    let mut person = TestListener::listen(&hub.address().unwrap().to_string()).await;
    let session = hub.session("Pay Ben.").start().await.unwrap();
    let progress = ProgressUpdate::new("Reading.").description("Page three.").step_without_total(3);
    session.progress(progress).await.unwrap();
    let tool = session.tool("look").tool_call_id("call_7").start().await.unwrap();
    tool.succeed("Found.").await.unwrap();
    let foreign = session.tool("look").tool_call_id("toolu_01").start().await.unwrap();
    foreign.succeed("Found.").await.unwrap();
    let piece = |text: &str, id: &str| OutputText::new(text).output_id(id).unwrap();
    for (text, id) in [("It rains ", "out_a"), ("It is dry ", "out_b"), ("in Oslo. ", "out_a")] {
        session.output(piece(text, id)).await.unwrap();
    }
    session.output(OutputText::complete("in Rome.").output_id("out_b").unwrap()).await.unwrap();
    assert!(OutputText::new("x").output_id("other").is_err());
    let part = hub.session("A part.").parent_id(session.id()).start().await.unwrap();
    part.finish("Done.").await.unwrap();
    session.finish("Paid.").await.unwrap();
    let mut events = person.events_until("session.completed").await;
    events.extend(person.events_until("session.completed").await);
    let of_type = |kind: &str| -> Vec<&Value> {
        events.iter().filter(|event| event["type"] == format!("aaep:agent.{kind}")).collect()
    };
    let expected = json!({"description": "Page three.", "step": 3});
    assert_eq!(of_type("progress.updated")[0]["progress"], expected);
    let calls: Vec<_> = of_type("tool.invoked").iter().map(|event| event["tool_call_id"].clone()).collect();
    assert_eq!(calls[0], "call_7");
    assert!(calls[1].as_str().is_some_and(|id| id.starts_with("call_") && id.len() == 37), "{calls:?}");
    let text_of = |id: &str| -> String {
        let chunks = of_type("output.streaming").into_iter().filter(|event| event["output_id"] == id);
        chunks.filter_map(|event| event["chunk"].as_str()).collect()
    };
    assert_eq!(
        (text_of("out_a"), text_of("out_b")),
        ("It rains in Oslo. ".into(), "It is dry in Rome.".into())
    );
    let part = of_type("session.started")[1];
    assert_eq!(part["extensions"]["sayso"]["parent_session_id"], session_id(&events), "{part}");
}

#[tokio::test]
async fn an_author_sets_the_coalesce_hint_of_each_piece_of_output() {
    let embedded = Hub::embedded().agent("bank").listen("127.0.0.1:0").open().unwrap();
    let address = embedded.address().unwrap().to_string();
    let remote = Hub::connect(format!("http://{address}")).agent_name("Your bank").open().await.unwrap();
    for hub in [&embedded, &remote] {
        let mut person = TestListener::listen_to_uncut_output(&address).await;
        let session = hub.session("Tell the weather.").start().await.unwrap();
        let piece = |text: &str, hint| OutputText::new(text).coalesce_hint(hint);
        session.output(piece("Oslo: rain ", CoalesceHint::Sentence)).await.unwrap();
        session.output("Bergen is ").await.unwrap();
        // The last word waits for the next piece, because it may be part of a secret.
        session.output(piece("dry, Rome", CoalesceHint::Word)).await.unwrap();
        session.output(piece(" has sun\n\n", CoalesceHint::Paragraph)).await.unwrap();
        session.output(piece("a: b ", CoalesceHint::Word).output_id("out_named").unwrap()).await.unwrap();
        let last = OutputText::complete("Bye.").coalesce_hint(CoalesceHint::Word);
        session.output(last).await.unwrap();
        session.finish("Told.").await.unwrap();
        let events = person.events_until("session.completed").await;
        let chunks = events.iter().filter(|event| event["type"] == "aaep:agent.output.streaming");
        let hints: Vec<_> = chunks
            .map(|event| (event["chunk"].as_str().unwrap(), event["coalesce_hint"].as_str().unwrap()))
            .collect();
        assert_eq!(
            hints,
            [
                ("Oslo: rain ", "sentence"),
                ("Bergen is ", "none"),
                ("dry, ", "none"),
                ("Rome has sun\n\n", "paragraph"),
                ("a: b ", "word"),
                ("Bye.", "completion"),
                ("", "completion"),
            ]
        );
    }
}

fn session_id(events: &[Value]) -> Value {
    events[0]["session_id"].clone()
}

/// Returns the fields of the twelve events that agents can set, such as `tool.invoked/summary_terse`, from the schemas.
fn settable_fields() -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    let mut events = 0;
    for schema in aaep::schema::all() {
        if let Some(kind) = schema.name.strip_prefix("agent.") {
            events += 1;
            collect_properties(&serde_json::from_str(&schema.text).unwrap(), kind, &mut fields);
        }
    }
    assert_eq!(events, 12);
    let is_set_by_hub = |field: &str| {
        SET_BY_HUB.iter().any(|(name, _)| field == *name || field.split_once('/').unwrap().1 == *name)
    };
    let (set_by_hub, fields): (BTreeSet<_>, BTreeSet<_>) =
        fields.into_iter().partition(|field| is_set_by_hub(field));
    assert_eq!(set_by_hub.len(), 12 + 2, "SET_BY_HUB matches fields other than the expected ones");
    fields
}

fn collect_properties(schema: &Value, path: &str, fields: &mut BTreeSet<String>) {
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}/{name}");
        collect_properties(schema, &path, fields);
        fields.insert(path);
    }
}

fn collect_paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}/{name}");
        collect_paths(value, &path, found);
        found.insert(path);
    }
}

fn three_lengths(text: &str) -> LocalizedText {
    LocalizedText::new(text).terse(format!("{text} (terse)")).detailed(format!("{text} (detailed)"))
}

fn options() -> EventOptions {
    EventOptions::new()
        .verbosity(Verbosity::Normal)
        .urgency(Urgency::Background)
        .correlation_id("trace-7")
        .extension(
            "acme",
            "https://acme.example/context/v1",
            JsonText::object([("account", "17".to_json_text())]),
        )
}

pub(crate) async fn publish_all_events(hub: &Hub) {
    let build_session = || {
        hub.session("Pay Ben.")
            .says(three_lengths("Paying Ben."))
            .person("ana")
            .expected_duration(MINUTE)
            .tools_available(["look", "send"])
            .language("en")
            .text_direction(TextDirection::LeftToRight)
            .available_languages(["en", "es"])
            .fallback_languages(["es"])
            .script("Latn")
            .calendar("gregory")
            .options(options())
    };
    let session = build_session().start().await.unwrap();
    let change = StateChange::new(ReportedState::Deciding, three_lengths("Choosing an account."))
        .expected_duration(MINUTE);
    session.change_state(change).await.unwrap();
    let progress = ProgressUpdate::new(three_lengths("Reading.")).percent(50.0).step(1, 2).eta(MINUTE);
    session.progress(progress).await.unwrap();
    let call = session
        .tool("look")
        .says(three_lengths("Looking."))
        .description("Looks things up.")
        .args_summary("Ben");
    let tool = call.expected_duration(MINUTE).start().await.unwrap();
    tool.fail_with_summary(three_lengths("Nothing was found."), "There is no Ben.").await.unwrap();
    let output = OutputText::complete("*Ben*").language("en").content_type("text/markdown");
    session.output(output).await.unwrap();
    let question = ClarificationRequest::new(three_lengths("Which Ben?"))
        .context("There are two.")
        .default_response("ben_a");
    let question = question.choice("ben_a", "Ben Adams").choice("ben_o", "Ben Okri");
    session.clarify(question).await.unwrap();
    let action = Action::new("send", r#"{"to":"Ben"}"#)
        .says("Send 5 euros.")
        .consequence("They are gone.")
        .summary(three_lengths("May I?"))
        .invocation_summary(three_lengths("Sending."))
        .description("Sends money.")
        .args_summary("5 euros to Ben")
        .expected_duration(MINUTE)
        .reversible_with_effort()
        .allowed_replies([Decision::Accept, Decision::Reject])
        .extra_context(JsonText::object([("balance", "12".to_json_text())]));
    let Answer::Granted(granted) = session.ask(action).await.unwrap() else { panic!("not granted") };
    session.call(granted, async |_| Ok::<_, Infallible>(())).await.unwrap();
    let hand_off = HandOff::new(HandOffTarget::Human, "I may not decide that.")
        .summary(three_lengths("A human takes over."))
        .target_uri("tel:+47-555-0100")
        .packaged_context(JsonText::object([("order", "17".to_json_text())]))
        .urgency(Risk::High);
    session.announce_hand_off(hand_off).await.unwrap();
    let done = Completion::new(three_lengths("Paid."))
        .output_summary("A receipt.")
        .result_uri("https://bank.example/1");
    session.finish(done).await.unwrap();
    let failure = Failure::new(three_lengths("The bank is closed."))
        .category(ErrorCategory::Permanent)
        .code("BANK_CLOSED");
    let failure = failure
        .remediation_hint("Come back tomorrow.")
        .help_uri("https://bank.example/help")
        .recoverable(true);
    build_session().start().await.unwrap().fail(failure).await.unwrap();
    let cancelled =
        Cancellation::new(three_lengths("Stopped.")).cancelled_by(CancelledBy::System).reason("bank_closed");
    build_session()
        .start()
        .await
        .unwrap()
        .cancel(cancelled.partial_result("One of two was paid."))
        .await
        .unwrap();
}

pub(crate) async fn receive_all_events(person: &mut TestListener) -> Vec<Value> {
    let mut events = person.events_until("awaiting.clarification").await;
    person.clarify(events.last().unwrap(), json!("ben_a")).await;
    events.extend(person.events_until("awaiting.confirmation").await);
    person.decide(events.last().unwrap(), "accept").await;
    events.extend(person.events_until("session.cancelled").await);
    let errored = events.iter().find(|event| event["type"] == "aaep:agent.session.errored").unwrap();
    // Events that the protocol makes critical stay critical, whatever the options say.
    assert_eq!((&errored["urgency"], &errored["recoverable"]), (&json!("critical"), &json!(true)));
    assert_eq!(events[0]["urgency"], "background");
    assert_eq!(events[0]["extensions"]["acme"], json!({ "account": "17" }));
    events
}
