//! Runs the behaviours of `docs/contract/behaviours.json`, which every client package shows, on an embedded hub and on a remote one.
//!
//! Rust's types rule out two items of the list: an arbitrary event cannot be sent, and a grant is moved when it is used.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use sayso::{
    Action, Answer, CallError, ClarificationAnswer, ClarificationRequest, CurrentSession, Error, Granted,
    HandOff, HandOffOutcome, HandOffTarget, Hub, LocalizedText, ProgressUpdate, ResolvedBy, Session,
    StopReason, within,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::remote_hub::FlakyProxy;
use crate::support::fixture::{HubKind, TestListener};

/// A time limit that is long enough on any machine.
const TEST_TIMEOUT: Duration = Duration::from_mins(2);

/// The tool functions that ran, with their arguments.
type CallLog = Arc<Mutex<Vec<Value>>>;

fn record(log: &CallLog, tool: &str, arguments: &Value) -> Result<(), String> {
    log.lock().map_err(|error| error.to_string())?.push(json!({"tool": tool, "arguments": arguments}));
    Ok(())
}

#[sayso::tool(name = "look", action = "Look {place}.", skip(log))]
async fn look(log: &CallLog, place: String) -> Result<(), String> {
    record(log, "look", &json!({ "place": place }))
}

#[sayso::tool(name = "look", action = "Look.", skip(log, error))]
async fn fail_to_look(log: &CallLog, error: String) -> Result<(), String> {
    record(log, "look", &json!({}))?;
    Err(error)
}

#[sayso::tool(irreversible, action = "Send {amount} euro to {to}.", consequence = "It is gone.", skip(log))]
async fn send(log: &CallLog, to: String, amount: String) -> Result<(), String> {
    record(log, "send", &json!({"to": to, "amount": amount}))
}

#[sayso::tool(
    name = "send",
    irreversible,
    action = "Send {amount} euro to {to}.",
    consequence = "It is gone.",
    answer_timeout = "1s",
    skip(log)
)]
async fn send_within_a_second(log: &CallLog, to: String, amount: String) -> Result<(), String> {
    record(log, "send", &json!({"to": to, "amount": amount}))
}

#[sayso::tool(name = "send", irreversible, action = "Send money.", consequence = "It is gone.", skip(log))]
async fn send_money(log: &CallLog, to: String, amount: String) -> Result<(), String> {
    record(log, "send", &json!({"to": to, "amount": amount}))
}

#[sayso::tool(
    name = "send",
    irreversible,
    action = "Send money to {to}.",
    consequence = "It is gone.",
    confidential(amount),
    skip(log)
)]
async fn send_confidential(log: &CallLog, to: String, amount: String) -> Result<(), String> {
    record(log, "send", &json!({"to": to, "amount": amount}))
}

/// Calls the function that is declared as the step says. A function's attributes are fixed, so there is one for each declaration.
async fn call_tool(step: &Value, log: &CallLog) -> Result<(), CallError<String>> {
    let argument = |name: &str| step["arguments"][name].as_str().unwrap().to_owned();
    let members = |name: &str| step.get(name).map(Value::to_string).unwrap_or_default();
    let declaration = [step["tool"].as_str().unwrap(), step["action"].as_str().unwrap()];
    let terms =
        [members("consequence"), members("irreversible"), members("confidential"), members("answer_timeout")];
    let is_dangerous = terms[0] == r#""It is gone.""# && terms[1] == "true";
    match (declaration, is_dangerous, terms[2].as_str(), terms[3].as_str()) {
        (["look", "Look {place}."], false, "", "") => look(log, argument("place")).await,
        (["look", "Look."], false, "", "") => {
            fail_to_look(log, step["fails"].as_str().unwrap().to_owned()).await
        }
        (["send", "Send {amount} euro to {to}."], true, "", "") => {
            send(log, argument("to"), argument("amount")).await
        }
        (["send", "Send {amount} euro to {to}."], true, "", "1") => {
            send_within_a_second(log, argument("to"), argument("amount")).await
        }
        (["send", "Send money."], true, "", "") => send_money(log, argument("to"), argument("amount")).await,
        (["send", "Send money to {to}."], true, r#"["amount"]"#, "") => {
            send_confidential(log, argument("to"), argument("amount")).await
        }
        _ => panic!("declare a function for {step}"),
    }
}

fn text(value: &Value) -> LocalizedText {
    if let Some(text) = value.as_str() {
        return LocalizedText::new(text);
    }
    let normal = LocalizedText::new(value["normal"].as_str().unwrap());
    let translations = value["translations"].as_object().unwrap();
    translations.iter().fold(normal, |text, (tag, words)| text.in_language(tag, words.as_str().unwrap()))
}

/// The outcome of a step: the members of `expect`.
type Outcome = Value;

fn name_of(by: ResolvedBy) -> &'static str {
    match by {
        ResolvedBy::Reply => "reply",
        ResolvedBy::Timeout => "timeout",
        ResolvedBy::Closure => "closure",
        ResolvedBy::Unreachable => "unreachable",
        ResolvedBy::Cancelled => "cancelled",
        _ => "other",
    }
}

fn error_outcome(error: &Error) -> Outcome {
    json!({"error": match error {
        Error::Unreachable(_) | Error::Stopped(StopReason::Unreachable) => "unreachable",
        Error::Stopped(_) => "stopped",
        Error::NoSession => "no_session",
        Error::RuleViolations(_) => "rules",
        other => panic!("{other:?}"),
    }})
}

fn call_outcome(result: Result<(), CallError<String>>) -> Outcome {
    match result {
        Ok(()) => json!({"result": "ran"}),
        Err(CallError::Tool(_)) => json!({"error": "tool"}),
        Err(CallError::Session(error)) => error_outcome(&error),
        Err(CallError::Refused(refusal)) => {
            let receipt: Value =
                refusal.receipt().map(|text| serde_json::from_str(text).unwrap()).unwrap_or_default();
            json!({"error": "refused", "by": name_of(refusal.by), "modified": receipt["modified"] == true})
        }
        Err(other) => panic!("{other:?}"),
    }
}

/// The agent: it executes the steps.
struct Agent {
    session: Option<Session>,
    handle: Option<CurrentSession>,
    granted: Option<Granted>,
    log: CallLog,
    digests: Vec<String>,
    signals: Arc<Signals>,
}

/// How the agent and the listener wait for each other.
#[derive(Default)]
struct Signals {
    asked: Notify,
    cancelled: Notify,
}

impl Agent {
    async fn step(&mut self, step: &Value) {
        let outcome = self.execute(step).await;
        let Some(expected) = step.get("expect") else {
            assert!(outcome.get("error").is_none(), "{step} ended with {outcome}");
            return;
        };
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&outcome[name], value, "{step} ended with {outcome}");
        }
    }

    async fn execute(&mut self, step: &Value) -> Outcome {
        let report =
            |result: Result<(), Error>| result.map_or_else(|error| error_outcome(&error), |()| json!({}));
        match step["do"].as_str().unwrap() {
            "think" => report(self.handle().think(text(&step["says"])).await),
            "progress" => {
                let progress =
                    ProgressUpdate::new(text(&step["says"])).percent(step["percent"].as_f64().unwrap());
                let (at, of) = (step["step"].as_u64().unwrap(), step["total_steps"].as_u64().unwrap());
                report(self.handle().progress(progress.step(at, of)).await)
            }
            "say" => {
                for piece in step["pieces"].as_array().unwrap() {
                    self.handle().output(piece.as_str().unwrap()).await.unwrap();
                }
                report(self.handle().finish_output().await)
            }
            "finish" => report(self.session.take().unwrap().finish(text(&step["says"])).await),
            // A session has no block in Rust. Its owner ends it.
            "leave" => report(self.session.take().unwrap().finish("Done.").await),
            "throw" => report(self.session.take().unwrap().fail(step["message"].as_str().unwrap()).await),
            "clarify" => self.clarify(step).await,
            "hand_off" => {
                let hand_off = HandOff::new(HandOffTarget::Human, step["reason"].as_str().unwrap());
                match self.handle().hand_off(hand_off).await.unwrap() {
                    HandOffOutcome::Unreachable => json!({"result": "hand_off", "outcome": "unreachable"}),
                    other => panic!("{other:?}"),
                }
            }
            "ask" => self.ask(step).await,
            "call" => self.call().await,
            "parallel" => {
                let calls = step["calls"].as_array().unwrap();
                let (log, handle) = (self.log.clone(), self.handle.clone().unwrap());
                let calling = calls.iter().map(|call| within(&handle, call_tool(call, &log)));
                let results = futures_util::future::join_all(calling).await;
                for (call, result) in calls.iter().zip(results) {
                    let outcome = call_outcome(result);
                    for (name, value) in call["expect"].as_object().unwrap() {
                        assert_eq!(&outcome[name], value, "{call} ended with {outcome}");
                    }
                }
                json!({})
            }
            "tool" => self.tool(step).await,
            other => panic!("this runner does not know the step {other}"),
        }
    }

    fn handle(&self) -> &CurrentSession {
        self.handle.as_ref().unwrap()
    }

    async fn clarify(&self, step: &Value) -> Outcome {
        let mut question = ClarificationRequest::new(step["question"].as_str().unwrap());
        for (value, label) in step["choices"].as_object().into_iter().flatten() {
            question = question.choice(value, label.as_str().unwrap());
        }
        if let Some(seconds) = step["answer_timeout"].as_u64() {
            question = question.answer_timeout(Duration::from_secs(seconds));
        }
        match self.handle().clarify(question).await.unwrap() {
            ClarificationAnswer::Text(answer) => json!({"result": "answer", "value": answer}),
            ClarificationAnswer::Unanswered(by) => json!({"error": "unanswered", "by": name_of(by)}),
            other => panic!("{other:?}"),
        }
    }

    async fn ask(&mut self, step: &Value) -> Outcome {
        let arguments = step["arguments"].to_string();
        let mut says = step["action"].as_str().unwrap().to_owned();
        for (name, value) in step["arguments"].as_object().unwrap() {
            says = says.replace(&format!("{{{name}}}"), value.as_str().unwrap_or_default());
        }
        let tool = step["tool"].as_str().unwrap();
        let digest = aaep::consent::BoundAction::new(tool, &arguments).unwrap().digest().to_string();
        assert_eq!(step["irreversible"], true);
        let action = Action::new(tool, arguments).says(says).irreversible();
        let action = action.consequence(step["consequence"].as_str().unwrap());
        let Answer::Granted(granted) = self.handle().ask(action).await.unwrap() else {
            panic!("{step} was refused")
        };
        let receipt: Value = serde_json::from_str(granted.receipt().unwrap()).unwrap();
        assert_eq!(receipt["action_digest"], digest);
        self.digests.push(digest);
        self.granted = Some(granted);
        json!({"result": "granted"})
    }

    async fn call(&mut self) -> Outcome {
        // The first use has moved it.
        let Some(granted) = self.granted.take() else { return json!({"error": "used"}) };
        let (tool, log) = (granted.tool().to_owned(), self.log.clone());
        let run =
            async move |arguments: String| record(&log, &tool, &serde_json::from_str(&arguments).unwrap());
        call_outcome(self.handle().call(granted, run).await)
    }

    async fn tool(&self, step: &Value) -> Outcome {
        // The function owns its arguments, so nobody can change them: `mutate` needs no action here.
        let Some(handle) = &self.handle else { return call_outcome(call_tool(step, &self.log).await) };
        let call = within(handle, call_tool(step, &self.log));
        if step["cancel"] != "while_asked" {
            return call_outcome(call.await);
        }
        tokio::select! {
            biased;
            result = call => panic!("{step} was not cancelled: {result:?}"),
            () = self.signals.asked.notified() => {}
        }
        self.signals.cancelled.notify_one();
        json!({"error": "cancelled"})
    }
}

/// Answers questions as the behaviour says. Returns all events up to the end of the session, or until the hub is killed.
async fn listen(
    behaviour: &Value,
    listener: &mut TestListener,
    signals: &Signals,
    mut proxy: Option<FlakyProxy>,
) -> Vec<Value> {
    let kind = &behaviour["listener"];
    let mut events = Vec::new();
    loop {
        let event = listener.next_event().await;
        match event["type"].as_str().unwrap_or_default() {
            "aaep:agent.awaiting.clarification" if kind["response"].is_string() => {
                listener.clarify(&event, kind["response"].clone()).await;
            }
            "aaep:agent.awaiting.confirmation" => match kind.as_str() {
                Some(decision @ ("accept" | "reject")) => listener.decide(&event, decision).await,
                Some("modify") => listener.accept_modified(&event, &json!({"amount": "1"})).await,
                Some("stop") => listener.stop_session(event["session_id"].as_str().unwrap()).await,
                Some("late_accept") => {
                    signals.asked.notify_one();
                    signals.cancelled.notified().await;
                    listener.decide(&event, "accept").await;
                }
                Some("kill_hub") => {
                    proxy.take().unwrap().kill().await;
                    return events;
                }
                Some(_) => {}
                None => {
                    let is_accepted =
                        event["action"].as_str().unwrap().contains(kind["accept_if"].as_str().unwrap());
                    listener.decide(&event, if is_accepted { "accept" } else { "reject" }).await;
                }
            },
            _ => {}
        }
        let is_end = ["completed", "errored", "cancelled"]
            .iter()
            .any(|end| event["type"] == format!("aaep:agent.session.{end}"));
        events.push(event);
        if is_end {
            return events;
        }
    }
}

async fn run(behaviour: &Value, kind: HubKind) {
    let embedded = Hub::embedded().listen("127.0.0.1:0").open().unwrap();
    let address = embedded.address().unwrap().to_string();
    let is_killed = behaviour["listener"] == "kill_hub";
    let (mut url, mut proxy) = (address.clone(), None);
    if is_killed {
        let started = FlakyProxy::start(address.clone()).await;
        url.clone_from(&started.address);
        proxy = Some(started);
    }
    // Long enough for a slow machine to connect at all.
    let timeout = Duration::from_secs(if is_killed { 5 } else { 30 });
    let hub = match kind {
        HubKind::Embedded => embedded,
        HubKind::Remote => {
            Hub::connect(format!("http://{url}")).connect_timeout(timeout).open().await.unwrap()
        }
    };
    let language = behaviour["languages"][0].as_str().unwrap_or("en");
    let mut listener = match behaviour["listener"].as_str() {
        Some("absent") => None,
        _ => Some(TestListener::listen_in_language(&address, language).await),
    };
    if let Some(listener) = &mut listener {
        // A behaviour may ask for a grant and not use it.
        listener.ignore_rule("AAEP-4.5.3-2");
    }
    let signals = Arc::<Signals>::default();
    let mut agent = Agent {
        session: None,
        handle: None,
        granted: None,
        log: CallLog::default(),
        digests: Vec::new(),
        signals: signals.clone(),
    };
    let steps = behaviour["steps"].as_array().unwrap();
    let has_session = steps[0]["do"] == "session";
    let acting = async {
        for step in steps {
            if step["do"] == "session" {
                let session = hub.session(step["request"].as_str().unwrap());
                let session =
                    if step["says"].is_null() { session } else { session.says(text(&step["says"])) };
                let session = session.start().await.unwrap();
                agent.handle = within(&session, async { sayso::current() }).await;
                agent.session = Some(session);
            } else {
                agent.step(step).await;
            }
        }
    };
    let listening = async {
        match &mut listener {
            Some(listener) if has_session => listen(behaviour, listener, &signals, proxy).await,
            _ => Vec::new(),
        }
    };
    let ((), events) = tokio::join!(acting, listening);
    let mut ran: Vec<_> = agent.log.lock().unwrap().iter().map(Value::to_string).collect();
    let mut expected: Vec<_> = behaviour["ran"].as_array().unwrap().iter().map(Value::to_string).collect();
    ran.sort();
    expected.sort();
    assert_eq!(ran, expected);
    if listener.is_some() && has_session && !is_killed {
        check(behaviour, &events, &agent.digests);
    }
}

fn texts<'v>(behaviour: &'v Value, name: &str) -> Vec<&'v str> {
    behaviour[name].as_array().into_iter().flatten().map(|text| text.as_str().unwrap()).collect()
}

fn check(behaviour: &Value, events: &[Value], digests: &[String]) {
    let kind_of = |event: &Value| {
        event["type"].as_str().unwrap_or_default().trim_start_matches("aaep:agent.").to_owned()
    };
    let kinds: Vec<_> = events.iter().map(kind_of).collect();
    let mut rest = kinds.iter();
    for wanted in texts(behaviour, "events") {
        assert!(rest.any(|kind| kind == wanted), "{wanted} is missing in {kinds:?}");
    }
    for absent in texts(behaviour, "absent") {
        assert!(!kinds.iter().any(|kind| kind == absent), "{absent} is in {kinds:?}");
    }
    let last = events.last().unwrap();
    for (name, value) in behaviour["final"].as_object().into_iter().flatten() {
        let found = if name == "type" { json!(kind_of(last)) } else { last[name].clone() };
        assert_eq!(&found, value);
    }
    let of_kind = |kind: &str| {
        events.iter().filter(|event| event["type"] == format!("aaep:agent.{kind}")).collect::<Vec<_>>()
    };
    if let Some(text) = behaviour["text"].as_str() {
        let output = of_kind("output.streaming");
        assert_eq!(output.iter().filter_map(|event| event["chunk"].as_str()).collect::<String>(), text);
    }
    for heard in texts(behaviour, "heard") {
        assert!(
            events.iter().any(|event| event["summary_normal"] == heard),
            "{heard} is missing in {events:?}"
        );
    }
    for secret in texts(behaviour, "not_heard") {
        assert!(!events.iter().any(|event| event.to_string().contains(secret)), "{secret} is in {events:?}");
    }
    let questions = of_kind("awaiting.confirmation");
    for action in texts(behaviour, "heard_questions") {
        assert!(questions.iter().any(|question| question["action"] == action), "{action}: {questions:?}");
    }
    for digest in texts(behaviour, "digests") {
        let is_bound = |question: &&Value| question["extensions"]["sayso"]["action_digest"] == digest;
        assert!(questions.iter().any(is_bound), "{digest}: {questions:?}");
        assert!(digests.is_empty() || digests.iter().any(|own| own == digest), "{digests:?}");
    }
}

async fn run_all(kind: HubKind) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/contract/behaviours.json");
    let behaviours: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut failed = Vec::new();
    for behaviour in &behaviours {
        let has_step =
            |name: &str| behaviour["steps"].as_array().unwrap().iter().any(|step| step["do"] == name);
        // An embedded hub dies with its agent.
        let is_impossible = matches!(kind, HubKind::Embedded) && behaviour["listener"] == "kill_hub";
        if is_impossible || has_step("event") {
            continue;
        }
        let running = tokio::time::timeout(TEST_TIMEOUT, run(behaviour, kind));
        if !matches!(AssertUnwindSafe(running).catch_unwind().await, Ok(Ok(()))) {
            failed.push(behaviour["name"].as_str().unwrap());
        }
    }
    assert!(failed.is_empty(), "failed: {failed:#?}");
}

#[tokio::test]
async fn an_embedded_hub_shows_all_behaviours() {
    run_all(HubKind::Embedded).await;
}

#[tokio::test]
async fn a_remote_hub_shows_all_behaviours() {
    run_all(HubKind::Remote).await;
}
