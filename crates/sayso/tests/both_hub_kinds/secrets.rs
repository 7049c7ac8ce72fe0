//! Secrets are redacted from everything that listeners receive: across chunks, and in every field.

use std::convert::Infallible;

use sayso::{
    Action, Answer, Argument, Cancellation, ClarificationRequest, Completion, Failure, HandOff,
    HandOffTarget, JsonText, LocalizedText, ProgressUpdate, Session,
};
use serde_json::{Value, json};

use crate::support::fixture::HubFixture;

pub(crate) async fn secrets_are_redacted_across_chunks(mut fixture: HubFixture) {
    let session = fixture.session().await;
    session.think("The password: hunter2 was given.").await.unwrap();
    for piece in
        ["My card is 4111 11", "11 1111 11", "11, and pass", "word: hun", "ter2 is it. task-1 is risk-free."]
    {
        session.output(piece).await.unwrap();
    }
    session.finish("Key sk-abcdefghij1234567890XYZ was used.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let chunks: String = events.iter().filter_map(|event| event["chunk"].as_str()).collect();
    assert_eq!(chunks, "My card is [redacted], and password: [redacted] is it. task-1 is risk-free.");
    assert_eq!(events[0]["summary_normal"], "The password: [redacted] was given.");
    assert_eq!(events.last().unwrap()["summary_normal"], "Key [redacted] was used.");
    assert_eq!(fixture.hub.redaction_count(), 4);
}

/// Returns a text with a secret, different for each field.
fn secret_for_field(field: &str) -> String {
    format!("The password: hunter2 is in {field}.")
}

/// Returns a text with a secret in every summary length and in two languages.
fn localized_secret(field: &str) -> LocalizedText {
    let in_one_language = |language: &str| {
        LocalizedText::new(secret_for_field(&format!("{field} {language}")))
            .terse(secret_for_field(&format!("{field} terse {language}")))
            .detailed(secret_for_field(&format!("{field} detailed {language}")))
    };
    in_one_language("en").in_language("es", in_one_language("es"))
}

/// Collects every text of an event with its path.
fn collect_texts(value: &Value, path: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) => found.push((path.to_owned(), text.clone())),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, path, found)),
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| collect_texts(member, &format!("{path}/{name}"), found));
        }
        _ => {}
    }
}

/// Returns the fields with a redacted text, and checks that no field contains the secret.
fn redacted_fields(events: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    for event in events {
        collect_texts(event, event["type"].as_str().unwrap().trim_start_matches("aaep:agent."), &mut found);
    }
    for (path, text) in &found {
        assert!(!text.contains("hunter2"), "{path} contains the secret: {text:?}");
    }
    let mut fields: Vec<_> =
        found.into_iter().filter(|(_, text)| text.contains("[redacted]")).map(|(path, _)| path).collect();
    fields.sort();
    fields.dedup();
    fields
}

/// Sends a secret in every field of every event, and returns the events that the listener received.
async fn send_secrets_in_every_field(fixture: &mut HubFixture) -> Vec<Value> {
    let hub = &fixture.hub;
    let agent = async {
        let session = hub
            .session(secret_for_field("the request"))
            .says(localized_secret("the start"))
            .start()
            .await
            .unwrap();
        session.think(localized_secret("thinking")).await.unwrap();
        session.decide(localized_secret("deciding")).await.unwrap();
        session.progress(ProgressUpdate::new(localized_secret("progress")).percent(5.0)).await.unwrap();
        let tool = session
            .tool("look")
            .says(localized_secret("a tool"))
            .args_summary(localized_secret("arguments"))
            .description(localized_secret("a description"))
            .start()
            .await
            .unwrap();
        tool.succeed(localized_secret("its end")).await.unwrap();
        let tool = session.tool("look").start().await.unwrap();
        tool.fail(localized_secret("a failure")).await.unwrap();
        session.output(secret_for_field("output")).await.unwrap();
        let question = ClarificationRequest::new(localized_secret("a question"))
            .context(localized_secret("its context"));
        let question = question.default_response(localized_secret("a default"));
        let question = question.choice("ben", localized_secret("a label")).choice("bea", "Bea");
        session.clarify(question).await.unwrap();
        let action = Action::new("send", r#"{"password":"hunter2"}"#).says(localized_secret("an action"));
        let action =
            action.consequence(localized_secret("a consequence")).summary(localized_secret("a summary"));
        let action = action
            .extra_context(JsonText::object([("note", secret_for_field("extra context").to_json_text())]));
        let Answer::Granted(granted) = session.ask(action).await.unwrap() else {
            panic!("the question was not accepted")
        };
        session.call(granted, async |_| Ok::<_, Infallible>(())).await.unwrap();
        let packaged = JsonText::object([("note", secret_for_field("packaged context").to_json_text())]);
        let hand_off =
            HandOff::new(HandOffTarget::Human, localized_secret("a reason")).packaged_context(packaged);
        session.announce_hand_off(hand_off).await.unwrap();
        session
            .finish(
                Completion::new(localized_secret("the end")).output_summary(localized_secret("its output")),
            )
            .await
            .unwrap();
        let start = async || -> Session { hub.session("Again.").start().await.unwrap() };
        start()
            .await
            .fail(Failure::new(localized_secret("the fault")).remediation_hint(localized_secret("a hint")))
            .await
            .unwrap();
        start()
            .await
            .cancel(
                Cancellation::new(localized_secret("giving up")).partial_result(localized_secret("a part")),
            )
            .await
            .unwrap();
    };
    let listener = &mut fixture.listener;
    let listening = async {
        let mut events = listener.events_until("awaiting.clarification").await;
        listener.clarify(events.last().unwrap(), json!("ben")).await;
        events.extend(listener.events_until("awaiting.confirmation").await);
        listener.decide(events.last().unwrap(), "accept").await;
        events.extend(listener.events_until("session.cancelled").await);
        events
    };
    tokio::join!(agent, listening).1
}

pub(crate) async fn secrets_are_redacted_in_every_field(mut fixture: HubFixture) {
    let events = send_secrets_in_every_field(&mut fixture).await;
    let single_fields = [
        "awaiting.clarification/choices/label",
        "awaiting.clarification/choices_es/label",
        "awaiting.confirmation/extensions/sayso/arguments/password",
        "awaiting.confirmation/extra_context/note",
        "handoff.requested/packaged_context/note",
        "output.streaming/chunk",
        "progress.updated/progress/description",
    ];
    let localized_fields = [
        "awaiting.clarification/context",
        "awaiting.clarification/default_response",
        "awaiting.clarification/question",
        "awaiting.confirmation/action",
        "awaiting.confirmation/consequence",
        "handoff.requested/reason",
        "session.cancelled/partial_result",
        "session.completed/output_summary",
        "session.errored/remediation_hint",
        "session.started/request_text",
        "tool.completed/error_message",
        "tool.invoked/args_summary",
        "tool.invoked/description",
    ];
    let summarized_events = [
        "awaiting.clarification",
        "awaiting.confirmation",
        "handoff.requested",
        "progress.updated",
        "session.cancelled",
        "session.completed",
        "session.errored",
        "session.started",
        "state.changed",
        "tool.completed",
        "tool.invoked",
    ];
    let lengths = ["terse", "normal", "detailed"];
    let summaries =
        summarized_events.iter().flat_map(|kind| lengths.map(|length| format!("{kind}/summary_{length}")));
    let localized = localized_fields.map(str::to_owned).into_iter().chain(summaries);
    let mut expected: Vec<_> = localized.flat_map(|field| [format!("{field}_es"), field]).collect();
    expected.extend(single_fields.map(str::to_owned));
    expected.sort();
    assert_eq!(redacted_fields(&events), expected);
}
