//! Every field of the twelve events can be set through the crate: what is published is compared with the protocol's tables.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use sayso::{
    Action, Answer, Argument, Bound, Cancellation, CancelledBy, Cause, Completion, Decision, EventOptions,
    Failure, HandOff, Hub, Output, Progress, Question, Risk, State, StateChange, Target, TextDirection,
    Urgency, Verbosity, Words,
};
use serde_json::{Value, json};

use crate::support::stage::Person;

/// Fields that agents cannot set, with the reason. An event type stands before those that are not so everywhere.
const NOT_THE_AGENTS: [(&str, &str); 4] = [
    ("sequence_number", "only the hub could number events"),
    ("output.streaming/verbosity", "the hub writes the events of an output; an output has one length"),
    ("output.streaming/correlation_id", "the hub writes the events of an output"),
    ("output.streaming/extensions", "the hub writes the events of an output"),
];

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn every_field_of_the_twelve_events_can_be_set() {
    let embedded = Hub::embedded().agent("bank").name("Your bank").agent_version("1.2.0").model("a-model");
    let embedded = embedded.manifest_uri("https://bank.example/manifest.json").listen("127.0.0.1:0").open();
    let embedded = embedded.unwrap();
    let address = embedded.address().unwrap().to_string();
    let remote = Hub::connect(format!("http://{address}")).name("Your bank").agent_version("1.2.0");
    let remote = remote.model("a-model").manifest_uri("https://bank.example/manifest.json").open().await;
    for hub in [&embedded, &remote.unwrap()] {
        let mut person = Person::listen(&address).await;
        // That an extension is unknown is a warning, and the truth.
        person.excuses("C-A12");
        let heard = tokio::join!(says_everything(hub), hears_everything(&mut person)).1;
        let mut published = BTreeSet::new();
        for event in &heard {
            let kind = event["type"].as_str().unwrap().trim_start_matches("aaep:agent.");
            paths(event, kind, &mut published);
        }
        let missing: Vec<_> = fields().difference(&published).cloned().collect();
        assert!(missing.is_empty(), "no agent can set {missing:#?}");
    }
}

/// All fields of the twelve events, like `tool.invoked/summary_terse`, from the schemas that are made of the tables.
fn fields() -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    let mut events = 0;
    for schema in aaep::schema::all() {
        if let Some(kind) = schema.name.strip_prefix("agent.") {
            events += 1;
            properties(&serde_json::from_str(&schema.text).unwrap(), kind, &mut fields);
        }
    }
    assert_eq!(events, 12);
    let excused = |field: &str| {
        NOT_THE_AGENTS.iter().any(|(name, _)| field == *name || field.split_once('/').unwrap().1 == *name)
    };
    let (excused, fields): (BTreeSet<_>, BTreeSet<_>) = fields.into_iter().partition(|field| excused(field));
    assert_eq!(excused.len(), 12 + 3, "an excuse that is not needed");
    fields
}

fn properties(schema: &Value, path: &str, fields: &mut BTreeSet<String>) {
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}/{name}");
        properties(schema, &path, fields);
        fields.insert(path);
    }
}

fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}/{name}");
        paths(value, &path, found);
        found.insert(path);
    }
}

fn words(text: &str) -> Words {
    Words::new(text).terse(format!("{text} (terse)")).detailed(format!("{text} (detailed)"))
}

fn options() -> EventOptions {
    EventOptions::new()
        .verbosity(Verbosity::Normal)
        .urgency(Urgency::Background)
        .correlation_id("trace-7")
        .extension("acme", "https://acme.example/context/v1", Bound::record([("account", "17".bound())]))
}

async fn says_everything(hub: &Hub) {
    let start = || {
        hub.session("Pay Ben.")
            .says(words("Paying Ben."))
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
    let session = start().start().await.unwrap();
    let change = StateChange::to(State::Deciding, words("Choosing an account.")).expected_duration(MINUTE);
    session.enter(change).await.unwrap();
    let progress = Progress::says(words("Reading.")).percent(50.0).step(1, 2).eta(MINUTE);
    session.progress(progress).await.unwrap();
    let call = session.tool("look").says(words("Looking.")).description("Looks things up.").with("Ben");
    let tool = call.expected_duration(MINUTE).start().await.unwrap();
    tool.failed_as(words("Nothing was found."), "There is no Ben.").await.unwrap();
    let output = Output::whole("*Ben*").language("en").content_type("text/markdown");
    session.output(output).await.unwrap();
    let question = Question::new(words("Which Ben?")).because("There are two.").default_response("ben_a");
    let question = question.choice("ben_a", "Ben Adams").choice("ben_o", "Ben Okri");
    session.clarify(question).await.unwrap();
    let action = Action::new("send", r#"{"to":"Ben"}"#)
        .says("Send 5 euro.")
        .consequence("They are gone.")
        .summary(words("May I?"))
        .doing(words("Sending."))
        .description("Sends money.")
        .with("5 euro to Ben")
        .expected_duration(MINUTE)
        .reversible_with_effort()
        .allowed_replies([Decision::Accept, Decision::Reject])
        .extra_context(Bound::record([("balance", "12".bound())]));
    let Answer::Granted(granted) = session.ask(action).await.unwrap() else { panic!("it was a yes") };
    session.call(granted, async |_| Ok::<_, Infallible>(())).await.unwrap();
    let hand_off = HandOff::to(Target::Human, "I may not decide that.")
        .summary(words("A human goes on."))
        .at("tel:+47-555-0100")
        .packaged_context(Bound::record([("order", "17".bound())]))
        .urgency(Risk::High);
    session.hand_off(hand_off).await.unwrap();
    let done =
        Completion::new(words("Paid.")).output_summary("A receipt.").result_uri("https://bank.example/1");
    session.finish(done).await.unwrap();
    let failure = Failure::new(words("The bank is closed.")).cause(Cause::Permanent).code("BANK_CLOSED");
    let failure = failure.hint("Come back tomorrow.").help_uri("https://bank.example/help").recoverable(true);
    start().start().await.unwrap().fail(failure).await.unwrap();
    let cancelled = Cancellation::new(words("Stopped.")).by(CancelledBy::System).reason("bank_closed");
    start().start().await.unwrap().cancel(cancelled.partial_result("One of two was paid.")).await.unwrap();
}

async fn hears_everything(person: &mut Person) -> Vec<Value> {
    let mut heard = person.hears_until("awaiting.clarification").await;
    person.clarifies(heard.last().unwrap(), json!("ben_a")).await;
    heard.extend(person.hears_until("awaiting.confirmation").await);
    person.answers(heard.last().unwrap(), "accept").await;
    heard.extend(person.hears_until("session.cancelled").await);
    let errored = heard.iter().find(|event| event["type"] == "aaep:agent.session.errored").unwrap();
    // What the protocol makes critical stays so, whatever the options say.
    assert_eq!((&errored["urgency"], &errored["recoverable"]), (&json!("critical"), &json!(true)));
    assert_eq!(heard[0]["urgency"], "background");
    assert_eq!(heard[0]["extensions"]["acme"], json!({ "account": "17" }));
    heard
}
