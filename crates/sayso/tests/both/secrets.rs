//! Secrets do not get into what people hear: in pieces, and in every field that is told.

use std::convert::Infallible;

use sayso::{
    Action, Answer, Argument, Bound, Cancellation, Completion, Failure, HandOff, Progress, Question, Session,
    Target, Words,
};
use serde_json::{Value, json};

use crate::support::stage::Stage;

pub(crate) async fn secrets_are_not_told(mut stage: Stage) {
    let session = stage.session().await;
    session.think("The password: hunter2 was given.").await.unwrap();
    for piece in
        ["My card is 4111 11", "11 1111 11", "11, and pass", "word: hun", "ter2 is it. task-1 is risk-free."]
    {
        session.output(piece).await.unwrap();
    }
    session.finish("Key sk-abcdefghij1234567890XYZ was used.").await.unwrap();
    let heard = stage.person.hears_until("session.completed").await;
    let chunks: String = heard.iter().filter_map(|event| event["chunk"].as_str()).collect();
    assert_eq!(chunks, "My card is [redacted], and password: [redacted] is it. task-1 is risk-free.");
    assert_eq!(heard[0]["summary_normal"], "The password: [redacted] was given.");
    assert_eq!(heard.last().unwrap()["summary_normal"], "Key [redacted] was used.");
    assert_eq!(stage.hub.redacted(), 4);
}

/// Something that must not be told, in a text of its own for each field.
fn secret(field: &str) -> String {
    format!("In {field} the password: hunter2 stands.")
}

/// The same in every length and in two languages.
fn words(field: &str) -> Words {
    let of = |language: &str| {
        Words::new(secret(&format!("{field} {language}")))
            .terse(secret(&format!("{field} terse {language}")))
            .detailed(secret(&format!("{field} detailed {language}")))
    };
    of("en").in_language("es", of("es"))
}

/// Every text of an event, by its path.
fn texts(value: &Value, path: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) => found.push((path.to_owned(), text.clone())),
        Value::Array(all) => all.iter().for_each(|one| texts(one, path, found)),
        Value::Object(all) => all.iter().for_each(|(name, one)| texts(one, &format!("{path}/{name}"), found)),
        _ => {}
    }
}

/// The fields that told a text of `secret`, all of which lack it.
fn told(heard: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    for event in heard {
        texts(event, event["type"].as_str().unwrap().trim_start_matches("aaep:agent."), &mut found);
    }
    for (path, text) in &found {
        assert!(!text.contains("hunter2"), "{path} tells {text:?}");
    }
    let mut fields: Vec<_> =
        found.into_iter().filter(|(_, text)| text.contains("[redacted]")).map(|(path, _)| path).collect();
    fields.sort();
    fields.dedup();
    fields
}

/// Says something in every field that there is.
async fn everything(stage: &mut Stage) -> Vec<Value> {
    let hub = &stage.hub;
    let agent = async {
        let session = hub.session(secret("the request")).says(words("the start")).start().await.unwrap();
        session.think(words("thinking")).await.unwrap();
        session.decide(words("deciding")).await.unwrap();
        session.progress(Progress::says(words("progress")).percent(5.0)).await.unwrap();
        let tool = session
            .tool("look")
            .says(words("a tool"))
            .with(words("arguments"))
            .description(words("a description"))
            .start()
            .await
            .unwrap();
        tool.done(words("its end")).await.unwrap();
        let tool = session.tool("look").start().await.unwrap();
        tool.failed(words("a failure")).await.unwrap();
        session.output(secret("output")).await.unwrap();
        let question = Question::new(words("a question")).because(words("its context"));
        let question = question.default_response(words("a default"));
        let question = question.choice("ben", words("a label")).choice("bea", "Bea");
        session.clarify(question).await.unwrap();
        let action = Action::new("send", r#"{"to":"hunter2"}"#).says(words("an action"));
        let action = action.consequence(words("a consequence")).summary(words("a summary"));
        let action = action.extra_context(Bound::record([("note", secret("extra context").bound())]));
        let Answer::Granted(granted) = session.ask(action).await.unwrap() else { panic!("it was a yes") };
        session.call(granted, async |_| Ok::<_, Infallible>(())).await.unwrap();
        let packaged = Bound::record([("note", secret("packaged context").bound())]);
        let hand_off = HandOff::to(Target::Human, words("a reason")).packaged_context(packaged);
        session.hand_off(hand_off).await.unwrap();
        session.finish(Completion::new(words("the end")).output_summary(words("its output"))).await.unwrap();
        let start = async || -> Session { hub.session("Again.").start().await.unwrap() };
        start().await.fail(Failure::new(words("the fault")).hint(words("a hint"))).await.unwrap();
        start()
            .await
            .cancel(Cancellation::new(words("giving up")).partial_result(words("a part")))
            .await
            .unwrap();
    };
    let person = &mut stage.person;
    let listens = async {
        let mut heard = person.hears_until("awaiting.clarification").await;
        person.clarifies(heard.last().unwrap(), json!("ben")).await;
        heard.extend(person.hears_until("awaiting.confirmation").await);
        person.answers(heard.last().unwrap(), "accept").await;
        heard.extend(person.hears_until("session.cancelled").await);
        heard
    };
    tokio::join!(agent, listens).1
}

pub(crate) async fn every_field_that_is_told_is_without_secrets(mut stage: Stage) {
    let heard = everything(&mut stage).await;
    let alone = [
        "awaiting.clarification/choices/label",
        "awaiting.clarification/choices_es/label",
        "awaiting.confirmation/extra_context/note",
        "handoff.requested/packaged_context/note",
        "output.streaming/chunk",
        "progress.updated/progress/description",
    ];
    let in_two_languages = [
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
    let in_three_lengths = [
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
        in_three_lengths.iter().flat_map(|kind| lengths.map(|one| format!("{kind}/summary_{one}")));
    let both = in_two_languages.map(str::to_owned).into_iter().chain(summaries);
    let mut all: Vec<_> = both.flat_map(|field| [format!("{field}_es"), field]).collect();
    all.extend(alone.map(str::to_owned));
    all.sort();
    assert_eq!(told(&heard), all);
}
