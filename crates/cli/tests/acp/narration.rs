//! What listeners hear about an agent.

use serde_json::{Value, json};
use testing::hub::HubProcess;

use super::actors::{Gate, Listener};

fn texts(events: &[Value], kind: &str, member: &str) -> Vec<String> {
    let kind = format!("aaep:agent.{kind}");
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .map(|event| event[member].as_str().unwrap().to_owned())
        .collect()
}

fn message(text: &str, id: &str) -> Value {
    json!({"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":text},"messageId":id})
}

#[test]
fn a_turn_is_heard_with_its_messages_tools_and_plan() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    for part in ["I will read ", "the file. Then ", "I change it."] {
        gate.update("s1", &message(part, "m1"));
    }
    let entry = |content: &str, status: &str| json!({"content":content,"priority":"high","status":status});
    gate.update(
        "s1",
        &json!({"sessionUpdate":"plan","entries":[entry("Read", "in_progress"), entry("Write", "pending")]}),
    );
    gate.update("s1", &json!({"sessionUpdate":"tool_call","toolCallId":"r","title":"Read a.rs","kind":"read","status":"pending"}));
    gate.update("s1", &json!({"sessionUpdate":"tool_call_update","toolCallId":"r","status":"completed","content":[{"type":"content","content":{"type":"text","text":"fn main() {}"}}]}));
    gate.update("s1", &json!({"sessionUpdate":"plan","entries":[entry("Read", "completed"), entry("Write", "in_progress")]}));
    gate.update("s1", &json!({"sessionUpdate":"tool_call","toolCallId":"e","title":"Edit","kind":"edit","status":"in_progress","locations":[{"path":"/p/a.rs"}]}));
    gate.update("s1", &json!({"sessionUpdate":"tool_call_update","toolCallId":"e","status":"completed","content":[{"type":"diff","path":"/p/a.rs","oldText":"a\n","newText":"a\nb\n"}]}));
    gate.update("s1", &json!({"sessionUpdate":"tool_call","toolCallId":"x","title":"Terminal","kind":"execute","status":"in_progress","rawInput":{"command":"make"}}));
    gate.update("s1", &json!({"sessionUpdate":"tool_call_update","toolCallId":"x","status":"failed","rawOutput":{"output":"no rule"}}));
    gate.update("s1", &json!({"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Hm, a secret thought."}}));
    gate.update("s1", &message("Done.", "m2"));
    gate.end_turn("s1", "end_turn");
    assert_eq!(gate.finish(), Some(0));
    let events = listener.collect_until("session.completed");
    assert_eq!(texts(&events, "session.started", "summary_normal"), ["Working on: Clean up."]);
    assert_eq!(
        texts(&events, "output.streaming", "chunk").concat(),
        "I will read the file. Then I change it.Done."
    );
    assert_eq!(
        texts(&events, "progress.updated", "summary_normal"),
        ["Plan with 2 steps: Read; Write.", "Next step: Write."]
    );
    assert_eq!(
        texts(&events, "tool.invoked", "summary_normal"),
        ["Reading: Read a.rs.", "Changing files: Edit, /p/a.rs.", "Running: make."]
    );
    assert_eq!(
        texts(&events, "tool.completed", "summary_normal"),
        ["fn main() {}", "/p/a.rs: 0 lines removed, 1 line added.", "Execute failed: no rule"]
    );
    assert!(!format!("{events:?}").contains("secret thought"));
}

#[test]
fn thoughts_are_heard_only_on_request() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(&format!("http://{}", hub.address), &["--thoughts"]);
    gate.initialize();
    gate.prompt("s1", "Think.");
    for part in ["I should ", "look."] {
        gate.update(
            "s1",
            &json!({"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":part}}),
        );
    }
    gate.update("s1", &message("Here.", "m1"));
    assert_eq!(gate.finish(), Some(0));
    let events = listener.collect_until("session.completed");
    assert_eq!(texts(&events, "output.streaming", "chunk").concat(), "Thinking: I should look.Here.");
}

#[test]
fn the_past_of_a_loaded_session_is_not_heard_again() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.pass_to_agent(&json!({"jsonrpc":"2.0","id":"l","method":"session/load","params":{"sessionId":"s1","cwd":"/","mcpServers":[]}}));
    gate.update("s1", &message("Old words.", "m1"));
    gate.pass_to_editor(&json!({"jsonrpc":"2.0","id":"l","result":{}}));
    gate.update("s1", &message("New words.", "m2"));
    assert_eq!(gate.finish(), Some(0));
    let events = listener.collect_until("session.completed");
    assert_eq!(texts(&events, "output.streaming", "chunk").concat(), "New words.");
}

#[test]
fn a_secret_in_a_message_or_a_command_is_not_heard() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    let secret = &format!("ghp_{}", "a1B2".repeat(9));
    gate.update("s1", &message(&format!("The key is {secret}. "), "m1"));
    gate.request(
        1,
        &json!({"toolCallId":"t1","kind":"execute","rawInput":{"command":format!("curl -H 'x-api-key: {secret}' https://a.example")}}),
        &super::actors::once_options(),
    );
    let question = listener.next("awaiting.confirmation");
    assert!(question["action"].as_str().unwrap().starts_with("Run: curl -H"), "{question}");
    assert!(!question.to_string().contains(secret), "{question}");
    gate.pass_to_agent(&super::actors::selected(1, "no"));
    assert_eq!(gate.finish(), Some(0));
    assert!(!format!("{:?}", listener.collect_until("session.completed")).contains(secret));
}
