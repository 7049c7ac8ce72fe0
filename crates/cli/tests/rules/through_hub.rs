//! An agent sends every case to the real hub. The hub refuses events that break a rule, or completes them, so that listeners never
//! receive an event that breaks a rule.

use std::collections::BTreeSet;
use std::sync::Arc;

use aaep::rule::{Rule, Severity, ValidationMode};
use libtest_mimic::Failed;
use serde_json::{Value, json};
use testing::cli::run_sayso;
use testing::http::{EventStream, TestClient};
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;

use crate::case::{BaseLines, RuleCase};

/// Members that the hub writes. The agent must leave them out, so it cannot break their rules.
const HUB_MEMBERS: [&str; 7] =
    ["aaep_version", "event_id", "session_id", "sequence_number", "timestamp", "producer", "reply_token"];

/// Rules with errors that the hub never names when it refuses a case, and why. It names all others.
const NEVER_NAMED: [(&str, &[&str]); 5] = [
    (
        "the hub writes these members",
        &[
            "AAEP-3.2-1",
            "AAEP-3.2.1-1",
            "AAEP-3.2.3-1",
            "AAEP-3.2.3-2",
            "AAEP-3.2.4-1",
            "AAEP-3.2.4-3",
            "AAEP-3.2.5-1",
            "AAEP-3.2.5-2",
            "AAEP-3.2.5-4",
            "AAEP-3.2.5-7",
            "AAEP-3.2.6.1-1",
            "AAEP-3.2.6.1-2",
            "AAEP-3.2.6.2-1",
            "AAEP-3.2.6.5-1",
            "AAEP-3.2.6s-1",
            "AAEP-3.4.1-1",
            "AAEP-3.4.1-2",
            "AAEP-3.4.1-3",
            "AAEP-3.4.4-1",
            "AAEP-3.4.4s-1",
            "AAEP-6.2.1-1",
            "AAEP-6.2.2-1",
        ],
    ),
    (
        "the hub completes the event or the session",
        &["AAEP-11.1-1", "AAEP-11.1.1-1", "AAEP-11.4.2-1", "AAEP-4.3.1s-2", "AAEP-4.5.3-3", "AAEP-9.3.1-4"],
    ),
    (
        "the hub refuses the request without naming a rule: it is not a JSON object, it is too large, it contains the \
         hub's extension, or its session has not started or has ended",
        &[
            "AAEP-3.8-1",
            "AAEP-3.8-2",
            "AAEP-3.8-4",
            "AAEP-3.9-1",
            "AAEP-3.9-8",
            "AAEP-3.9-9",
            "AAEP-4.1.1-2",
            "AAEP-4.1.2-3",
            "AAEP-4.5.1-1",
            "AAEP-D.1-1",
        ],
    ),
    ("the hub applies these when time has passed", &["AAEP-2.2.14-2", "AAEP-6.4-1"]),
    (
        "they are about messages between hub and listener",
        &[
            "AAEP-12.5.3-1",
            "AAEP-2.2.15-1",
            "AAEP-5.1-1",
            "AAEP-5.10.1-1",
            "AAEP-5.2.1-1",
            "AAEP-5.2.1-2",
            "AAEP-5.2s-1",
            "AAEP-5.3.1.1-1",
            "AAEP-5.3.1.1-2",
            "AAEP-5.3.1.11-1",
            "AAEP-5.3.1.12-1",
            "AAEP-5.3.1.4-1",
            "AAEP-5.3.1.4-3",
            "AAEP-5.3.1.5-1",
            "AAEP-5.3.1.7-1",
            "AAEP-5.3.1.7-2",
            "AAEP-5.3s-1",
            "AAEP-5.3s-2",
            "AAEP-5.3s-3",
            "AAEP-5.4.1-1",
            "AAEP-5.4.4-1",
            "AAEP-5.4.4-2",
            "AAEP-5.4.4-3",
            "AAEP-5.4.4-4",
            "AAEP-5.4.4-5",
            "AAEP-5.4s-1",
            "AAEP-5.4s-2",
            "AAEP-5.4s-3",
            "AAEP-5.5.1-1",
            "AAEP-5.5.3-1",
            "AAEP-5.5s-1",
            "AAEP-5.7-1",
            "AAEP-5.7.1-1",
            "AAEP-5.8.2-1",
            "AAEP-6.3.1-1",
            "AAEP-6.3.1-2",
            "AAEP-6.3.2-1",
            "AAEP-6.3.4-6",
            "AAEP-6.3s-1",
            "AAEP-6.3s-2",
            "AAEP-6.5.1-1",
            "AAEP-6.5.2-1",
            "AAEP-6.5.5-2",
            "AAEP-6.5s-1",
            "AAEP-9.5.1-3",
            "C-G6",
        ],
    ),
];

/// Rules of the severity `warning` that an agent can break without being refused. Agents must follow them on their own.
const PASSED_ON: [&str; 16] = [
    "AAEP-11.3.2-1",
    "AAEP-11.3.3-4",
    "AAEP-11.4.2-2",
    "AAEP-11.5.2-1",
    "AAEP-2.2.8-2",
    "AAEP-3.2.2-4",
    "AAEP-3.7-1",
    "AAEP-3.7-3",
    "AAEP-3.7-4",
    "AAEP-4.2.2-5",
    "AAEP-4.5.2-2",
    "AAEP-4.5.3-2",
    "AAEP-7.3.1-3",
    "AAEP-7.9-2",
    "C-A12",
    "C-B5",
];

pub(crate) fn no_rule_violation_passes_the_hub(
    cases: &[Arc<RuleCase>],
    base: &BaseLines,
) -> Result<(), Failed> {
    let mut scenario = HubScenario::start();
    let mut delivered = String::new();
    let mut broken = BTreeSet::new();
    let mut refused = BTreeSet::new();
    for case in cases {
        let lines = case.line_bytes(base)?;
        let lines = lines.iter().map(|line| String::from_utf8_lossy(line).into_owned());
        let (rules, events) = scenario.play(lines.collect());
        for event in events {
            delivered.push_str(&event);
            delivered.push('\n');
        }
        if let Some(rule) = &case.rule {
            broken.insert(rule.clone());
        }
        refused.extend(rules);
    }
    let output = run_sayso(&["validate", "--sequence", "always"], &delivered);
    let errors: Vec<&str> =
        output.findings().into_iter().filter(|finding| finding.contains(": error ")).collect();
    if !errors.is_empty() {
        return Err(format!("listeners received invalid events: {errors:#?}").into());
    }
    let warnings: BTreeSet<&str> = output
        .findings()
        .into_iter()
        .filter_map(|finding| finding.split_once(": warning ")?.1.split(' ').next())
        .collect();
    let expected_warnings: BTreeSet<&str> = PASSED_ON.into_iter().collect();
    if warnings != expected_warnings {
        return Err(
            format!("the hub passes on breaches of {warnings:?}, not of {expected_warnings:?}").into()
        );
    }
    let is_error = |id: &String| {
        Rule::find(id).is_some_and(|rule| rule.severity(ValidationMode::Strict) == Severity::Error)
    };
    let unnamed: BTreeSet<&str> =
        broken.difference(&refused).filter(|id| is_error(id)).map(String::as_str).collect();
    let expected: BTreeSet<&str> = NEVER_NAMED.iter().flat_map(|(_, rules)| *rules).copied().collect();
    if unnamed != expected {
        let no_longer_named: Vec<_> = unnamed.difference(&expected).collect();
        let now_named: Vec<_> = expected.difference(&unnamed).collect();
        return Err(format!("the hub names {now_named:?}, but not {no_longer_named:?}").into());
    }
    Ok(())
}

/// A hub with one agent and one listener that can answer.
struct HubScenario {
    client: TestClient,
    subscription: String,
    stream: EventStream,
    _hub: HubProcess,
}

impl HubScenario {
    fn start() -> Self {
        let limits = [
            "--hub-criticals-per-minute",
            "1000000",
            "--hub-total-criticals-per-minute",
            "1000000",
            "--hub-questions-per-minute",
            "1000000",
            "--hub-total-questions-per-minute",
            "1000000",
        ];
        let hub = HubProcess::start_in_memory_with(&limits);
        let client = hub.client();
        let subscription = client.subscribe(REPLY_CAPABILITIES);
        let stream = client.open_event_stream(&subscription, None);
        Self { client, subscription, stream, _hub: hub }
    }

    /// Plays the agent's part of a case in a session of its own, and ends the session. Returns the rules that refusals named,
    /// and the events that the listener received.
    fn play(&mut self, lines: Vec<String>) -> (BTreeSet<String>, Vec<String>) {
        let mut refused = BTreeSet::new();
        let mut lines = lines.into_iter().peekable();
        let start = lines.next_if(|line| type_of(line).ends_with("agent.session.started"));
        let start =
            start.map_or_else(Value::default, |line| body_of(&line, &["producer"]).unwrap_or_default());
        let mut session = self.start_session(&start, &mut refused);
        if session.is_empty() {
            session = self.client.start_session();
        }
        let mut token = String::new();
        for line in lines {
            self.send(&session, &line, &mut token, &mut refused);
        }
        // An open question can prevent the completion of a session, but not its cancellation.
        for end in [
            json!({"type": "aaep:agent.session.completed", "summary_normal": "The end."}),
            json!({"type": "aaep:agent.session.cancelled", "summary_normal": "The end.", "cancelled_by": "producer"}),
        ] {
            self.client.post(&format!("/agent/v1/sessions/{session}/events"), &end.to_string());
        }
        (refused, self.events_of(&session))
    }

    /// Starts a session. Returns an empty id if the hub refuses.
    fn start_session(&self, body: &Value, refused: &mut BTreeSet<String>) -> String {
        let response = self.client.post("/agent/v1/sessions", &body.to_string());
        note_refusal(&response.body, refused);
        if response.status == 201 { response.json_str("session_id") } else { String::new() }
    }

    fn send(&self, session: &str, line: &str, token: &mut String, refused: &mut BTreeSet<String>) {
        let path = |resource: &str| format!("/agent/v1/sessions/{session}/{resource}");
        let kind = type_of(line);
        let response = match kind.strip_prefix("aaep:agent.").unwrap_or(&kind) {
            "awaiting.confirmation" | "awaiting.clarification" => {
                let Some(mut question) = body_of(line, &[]) else { return };
                let resource =
                    if kind.ends_with("confirmation") { "confirmations" } else { "clarifications" };
                // An agent binds a question with members of the request; the hub writes them into its extension.
                if let Some(bound) = question.pointer("/extensions/sayso").cloned() {
                    for name in ["tool", "tool_call_id"].into_iter().filter(|name| bound.get(name).is_some())
                    {
                        question[name] = bound[name].clone();
                    }
                    question = without_members(question, &["extensions", "@context"]);
                }
                let response = self.client.post(&path(resource), &question.to_string());
                if response.status == 201 {
                    *token = response.json_str("reply_token");
                }
                response
            }
            "confirmation.reply" | "clarification.reply" => {
                let Ok(Value::Object(mut reply)) = serde_json::from_str::<Value>(line) else { return };
                let now = seal::Timestamp::from_unix_millis(std::time::SystemTime::now().into());
                for (name, value) in [
                    ("reply_token", token.clone()),
                    ("subscription_id", self.subscription.clone()),
                    ("timestamp", now.map(|now| now.to_string()).unwrap_or_default()),
                ] {
                    if reply.contains_key(name) {
                        reply.insert(name.to_owned(), value.into());
                    }
                }
                self.client.post("/aaep/v1/replies", &Value::Object(reply).to_string())
            }
            other if other.starts_with("subscription.") || other.starts_with("sayso:") => return,
            _ => {
                let body = body_of(line, &[]).map_or_else(|| line.to_owned(), |body| body.to_string());
                self.client.post(&path("events"), &body)
            }
        };
        note_refusal(&response.body, refused);
    }

    /// Returns what the listener receives until the session has ended.
    fn events_of(&mut self, session: &str) -> Vec<String> {
        let mut events = Vec::new();
        loop {
            let line = self.stream.next_line();
            let Some(event) = line.strip_prefix("data: ") else { continue };
            events.push(event.to_owned());
            let is_end = ["completed", "errored", "cancelled"]
                .iter()
                .any(|end| type_of(event) == format!("aaep:agent.session.{end}"));
            if is_end && event.contains(session) {
                return events;
            }
        }
    }
}

fn note_refusal(response: &str, refused: &mut BTreeSet<String>) {
    let response: Value = serde_json::from_str(response).unwrap_or_default();
    let findings = response["findings"].as_array().into_iter().flatten();
    refused.extend(findings.filter_map(|finding| Some(finding["rule"].as_str()?.to_owned())));
}

fn type_of(line: &str) -> String {
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    line["type"].as_str().unwrap_or_default().to_owned()
}

/// Returns what an agent sends of an event: all members except those that the hub writes. `None` if it is not an object.
fn body_of(line: &str, keep: &[&str]) -> Option<Value> {
    let event: Value = serde_json::from_str(line).ok().filter(Value::is_object)?;
    let hub_members: Vec<&str> = HUB_MEMBERS.into_iter().filter(|name| !keep.contains(name)).collect();
    Some(without_members(event, &hub_members))
}

fn without_members(mut object: Value, names: &[&str]) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.retain(|name, _| !names.contains(&name.as_str()));
    }
    object
}
