//! What the hub adds for agents that report only their calls, texts and questions: states and summaries (§9.3.1).

use serde_json::{Value, json};
use testing::cli::run_sayso;
use testing::http::{EventStream, TestClient};
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;

struct Agent {
    _hub: HubProcess,
    client: TestClient,
    session: String,
    stream: EventStream,
}

impl Agent {
    fn start() -> Self {
        let hub = HubProcess::start_in_memory();
        let client = hub.client();
        let subscription = client.subscribe(REPLY_CAPABILITIES);
        let stream = client.open_event_stream(&subscription, None);
        let session = client.start_session();
        Self { _hub: hub, client, session, stream }
    }

    fn post(&self, resource: &str, body: &Value) -> Value {
        let response =
            self.client.post(&format!("/agent/v1/sessions/{}/{resource}", self.session), &body.to_string());
        assert!(response.status < 300, "{body}: {response:?}");
        response.json()
    }

    /// Publishes an event without any text of its own, except what its type requires.
    fn publish(&self, kind: &str, members: &Value) {
        let mut event = members.clone();
        event["type"] = format!("aaep:agent.{kind}").into();
        self.post("events", &event);
    }

    /// Ends the session and returns its events.
    fn finish(mut self) -> Vec<Value> {
        self.publish("session.completed", &json!({"summary_normal": "Done.", "summary_terse": "Done."}));
        let mut events = Vec::new();
        loop {
            events.push(self.stream.next().2);
            if events.last().is_some_and(|event| event["type"] == "aaep:agent.session.completed") {
                return events;
            }
        }
    }
}

/// Returns the states that a session reports, and the tools and outputs between them, in order.
fn steps(events: &[Value]) -> Vec<String> {
    let step = |event: &Value| match event["type"].as_str()?.strip_prefix("aaep:agent.")? {
        "state.changed" => Some(format!("{}>{}", event["from_state"].as_str()?, event["to_state"].as_str()?)),
        kind @ ("tool.invoked" | "tool.completed" | "output.streaming") => Some(kind.to_owned()),
        _ => None,
    };
    let mut steps: Vec<String> = events.iter().filter_map(step).collect();
    // Listeners may get several chunks in one.
    steps.dedup_by(|next, step| next == step && step == "output.streaming");
    steps
}

#[test]
fn the_states_of_tools_and_outputs_are_reported_for_an_agent_that_reports_none() {
    let agent = Agent::start();
    for call in ["call_1", "call_2"] {
        agent.publish("tool.invoked", &json!({"tool": "look", "tool_call_id": call}));
    }
    for call in ["call_1", "call_2"] {
        agent.publish("tool.completed", &json!({"tool": "look", "tool_call_id": call, "status": "success"}));
    }
    agent.publish(
        "output.streaming",
        &json!({"chunk": "A. ", "position": 0, "complete": false, "coalesce_hint": "sentence"}),
    );
    agent.publish("output.streaming", &json!({"chunk": "B.", "position": 3, "complete": true}));
    let expected = [
        "idle>calling_tool",
        "tool.invoked",
        "tool.invoked",
        "tool.completed",
        "tool.completed",
        "calling_tool>thinking",
        "thinking>writing_output",
        "output.streaming",
        "writing_output>thinking",
    ];
    assert_eq!(steps(&agent.finish()), expected);
}

#[test]
fn an_agent_need_not_know_about_the_states_that_the_hub_added() {
    let agent = Agent::start();
    agent.publish("state.changed", &json!({"from_state": "idle", "to_state": "thinking"}));
    agent.publish("tool.invoked", &json!({"tool": "look", "tool_call_id": "call_1"}));
    agent.publish("tool.completed", &json!({"tool": "look", "tool_call_id": "call_1", "status": "success"}));
    // The agent treats the state that its call implied as its own.
    let change = json!({
        "from_state": "calling_tool", "to_state": "deciding", "summary_normal": "Deciding.", "summary_terse": "Deciding.",
    });
    agent.publish("state.changed", &change);
    let wrong =
        json!({"type": "aaep:agent.state.changed", "from_state": "calling_tool", "to_state": "thinking"});
    let path = format!("/agent/v1/sessions/{}/events", agent.session);
    let refused = agent.client.post(&path, &wrong.to_string());
    assert!(refused.status == 422 && refused.body.contains("AAEP-4.2.1-5"), "{refused:?}");
    let expected = [
        "idle>thinking",
        "thinking>calling_tool",
        "tool.invoked",
        "tool.completed",
        "calling_tool>thinking",
        "thinking>deciding",
    ];
    assert_eq!(steps(&agent.finish()), expected);
}

#[test]
fn text_can_be_written_while_a_tool_runs() {
    let agent = Agent::start();
    agent.publish("tool.invoked", &json!({"tool": "look", "tool_call_id": "call_1"}));
    let path = format!("/agent/v1/sessions/{}/output?complete=true", agent.session);
    let written = agent.client.post(&path, "I am still looking.");
    assert_eq!(written.status, 200, "{written:?}");
    agent.publish("tool.completed", &json!({"tool": "look", "tool_call_id": "call_1", "status": "success"}));
    let expected =
        ["idle>calling_tool", "tool.invoked", "output.streaming", "tool.completed", "calling_tool>thinking"];
    assert_eq!(steps(&agent.finish()), expected);
}

#[test]
fn an_agent_that_reports_only_its_work_keeps_the_rules_of_level_one() {
    let agent = Agent::start();
    agent.publish("tool.invoked", &json!({"tool": "fetch_balance", "tool_call_id": "call_1"}));
    agent.publish("progress.updated", &json!({"progress": {"percent": 50}}));
    agent.publish(
        "tool.completed",
        &json!({"tool": "fetch_balance", "tool_call_id": "call_1", "status": "timeout"}),
    );
    agent.publish("state.changed", &json!({"to_state": "deciding", "expected_duration_ms": 5000}));
    let question = json!({"question": "Which account?", "timeout_seconds": 60});
    let opened = agent.post("clarifications", &question);
    withdraw(&agent, &opened);
    let confirmation = json!({
        "action": "Send 5 euros", "consequence": "The money is gone.", "irreversible": true, "risk_level": "high",
        "timeout_seconds": 60, "default_decision": "reject",
    });
    let opened = agent.post("confirmations", &confirmation);
    withdraw(&agent, &opened);
    agent.post("handoffs", &json!({"reason": "I am stuck.", "target_kind": "human"}));
    let events = agent.finish();
    let summary_of = |kind: &str| {
        let event = events.iter().find(|event| event["type"] == format!("aaep:agent.{kind}"));
        event.unwrap()["summary_normal"].as_str().unwrap_or_default().to_owned()
    };
    for (kind, expected) in [
        ("tool.invoked", "Using the tool fetch balance."),
        ("tool.completed", "The tool fetch balance did not finish."),
        ("progress.updated", "50 percent."),
        ("awaiting.clarification", "Which account?"),
        ("awaiting.confirmation", "Send 5 euros. The money is gone."),
        ("handoff.requested", "I am stuck."),
    ] {
        assert_eq!(summary_of(kind), expected, "{kind}");
    }
    let recording = events.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let checked = run_sayso(&["validate", "--sequence", "always"], &recording);
    let broken: Vec<&str> =
        checked.findings().into_iter().filter(|finding| finding.contains("AAEP-9.3.1")).collect();
    assert!(
        broken.is_empty() && !checked.findings().iter().any(|finding| finding.contains(": error ")),
        "{:?}",
        checked.findings()
    );
}

fn withdraw(agent: &Agent, opened: &Value) {
    let token = opened["reply_token"].as_str().unwrap();
    let path = format!("/agent/v1/sessions/{}/replies/{token}", agent.session);
    assert_eq!(agent.client.send("DELETE", &path, "").status, 200);
}
