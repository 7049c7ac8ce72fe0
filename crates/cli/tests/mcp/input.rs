//! Input that a server needs for a call (`input_required`, protocol 2026-07-28), given by a listener with `--elicit`.

use serde_json::{Value, json};
use testing::hub::HubProcess;

use super::support::{Gate, Listener, refusal};

/// A gate with `--elicit`, and a call of the tool `form` that a person has allowed and whose server needs input.
struct Fixture {
    listener: Listener,
    gate: Gate,
    _hub: HubProcess,
}

impl Fixture {
    fn start(arguments: &Value) -> Self {
        let hub = HubProcess::start_in_memory();
        let mut listener = Listener::connect(&hub);
        let mut gate = Gate::start(Some(&hub), &["--elicit"], &[]);
        gate.send(&call(1, arguments, &json!({"_meta": {"x": 1}})));
        listener.answer("accept");
        Self { listener, gate, _hub: hub }
    }

    /// Answers one form.
    fn answer_form(&mut self, name: &str, age: f64) {
        let opening = self.listener.clarify(&json!(true));
        assert!(opening["question"].as_str().unwrap().contains("Who is number"), "{opening}");
        self.listener.clarify(&json!(name));
        self.listener.clarify(&json!(age));
    }

    /// Returns the calls that the server has received.
    fn calls(&self) -> Vec<Value> {
        let text = String::from_utf8(self.gate.seen_raw()).unwrap();
        let messages = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        messages.filter(|message| message["method"] == "tools/call").collect()
    }

    fn cancel(&mut self) {
        let params = json!({"requestId": 1});
        self.gate.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }
}

fn call(id: u32, arguments: &Value, more: &Value) -> Value {
    let mut params = json!({"name": "form", "arguments": arguments});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

#[test]
fn a_listener_gives_the_input_and_the_host_gets_only_the_result() {
    let arguments = json!({"rounds": 2});
    let mut fixture = Fixture::start(&arguments);
    fixture.answer_form("Ana", 30.0);
    fixture.answer_form("Ben", 31.0);
    let answer = fixture.gate.next();
    assert_eq!(answer["id"], 1, "the host hears of nothing else: {answer}");
    let given = |name: &str, age: u32| json!({"action": "accept", "content": {"name": name, "age": age}});
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), json!({"q1": given("Ben", 31)}));
    assert_eq!(fixture.listener.wait_for("tool.completed")["status"], "success");
    // The server sees the same call again, under other ids, with the state that it gave.
    let meta = json!({"x": 1});
    let retry = |state: &str, input: Value| json!({"name": "form", "arguments": arguments, "_meta": meta, "inputResponses": input, "requestState": state});
    let calls = fixture.calls();
    let params: Vec<_> = calls.iter().map(|call| call["params"].clone()).collect();
    assert_eq!(
        params,
        [
            json!({"name": "form", "arguments": arguments, "_meta": meta}),
            retry("1", json!({"q0": given("Ana", 30)})),
            retry("2", json!({"q1": given("Ben", 31)})),
        ]
    );
    assert!(calls[1]["id"] != calls[0]["id"] && calls[2]["id"] != calls[1]["id"], "{calls:?}");
}

#[test]
fn input_that_a_listener_does_not_give_is_left_to_the_host() {
    let mut fixture = Fixture::start(&json!({}));
    // The field is a whole number.
    fixture.answer_form("Ana", 2.5);
    let answer = fixture.gate.next();
    assert_eq!((&answer["id"], &answer["result"]["resultType"]), (&json!(1), &json!("input_required")));
    // The host's retry is covered by the yes to the call.
    let input = json!({"q0": {"action": "decline"}});
    let more = json!({"_meta": {"x": 1}, "inputResponses": input, "requestState": "1"});
    fixture.gate.send(&call(2, &json!({}), &more));
    assert!(fixture.gate.answer(2)["result"]["content"][0]["text"].as_str().unwrap().contains("decline"));
    assert_eq!(fixture.calls().len(), 2);
}

#[test]
fn a_form_that_cannot_be_asked_in_words_goes_to_the_host_at_once() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &["--elicit"], &[]);
    gate.call(1, "input", &json!({}));
    listener.answer("accept");
    assert_eq!(gate.next()["result"]["resultType"], "input_required");
}

#[test]
fn a_host_that_cancels_the_call_withdraws_the_question_for_its_input() {
    let mut fixture = Fixture::start(&json!({}));
    fixture.listener.wait_for("awaiting.clarification");
    fixture.cancel();
    assert_eq!(fixture.listener.wait_for("tool.completed")["status"], "error");
    fixture.gate.sync();
    let seen = String::from_utf8(fixture.gate.seen_raw()).unwrap();
    assert!(!seen.contains("cancelled"), "the server has answered the call already: {seen}");
    assert_eq!(fixture.calls().len(), 1);
}

#[test]
fn a_host_that_cancels_the_call_cancels_its_retry() {
    let mut fixture = Fixture::start(&json!({"silent": true}));
    fixture.answer_form("Ana", 30.0);
    while fixture.calls().len() < 2 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    fixture.cancel();
    fixture.gate.sync();
    let seen = String::from_utf8(fixture.gate.seen_raw()).unwrap();
    let cancelled = seen.lines().find(|line| line.contains("notifications/cancelled")).unwrap();
    let cancelled: Value = serde_json::from_str(cancelled).unwrap();
    assert_eq!(cancelled["params"]["requestId"], fixture.calls()[1]["id"]);
    assert_eq!(fixture.listener.wait_for("tool.completed")["status"], "error");
}

#[test]
fn a_person_who_stops_the_session_stops_a_call_that_waits_for_input() {
    let mut fixture = Fixture::start(&json!({}));
    let question = fixture.listener.wait_for("awaiting.clarification");
    fixture.listener.stop(&question["session_id"]);
    let answer = fixture.gate.answer(1);
    assert!(refusal(&answer).contains("The person stopped this work"), "{answer}");
    let more = json!({"_meta": {"x": 1}, "inputResponses": {}, "requestState": "1"});
    fixture.gate.send(&call(2, &json!({}), &more));
    fixture.listener.answer("reject");
    refusal(&fixture.gate.answer(2));
    assert_eq!(fixture.calls().len(), 1);
}
