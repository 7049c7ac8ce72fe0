//! States that the hub announces for agents that do not report them.

use crate::support::*;
use hub::command::HubReply;
use hub::{ListenerId, Principal};

struct Fixture {
    harness: HubHarness,
    bank: Principal,
    session: String,
    connection: ListenerId,
}

impl Fixture {
    fn new() -> Self {
        let mut harness = HubHarness::new();
        let bank = agent("bank");
        let (_, connection) = harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
        let session = harness.start(&bank);
        harness.take_events(connection);
        Self { harness, bank, session, connection }
    }

    /// Publishes events and returns what is stored: the new state of each state change, else the type.
    fn publish(&mut self, events: &[&str]) -> Vec<String> {
        let stored_before = self.harness.disk.events().len();
        let reply = self.harness.publish(&self.bank, &self.session, events);
        assert!(matches!(reply, HubReply::EventsPublished { .. }), "{events:?}: {reply:?}");
        let stored = self.harness.disk.events().split_off(stored_before);
        let events: Vec<_> = stored.into_iter().map(|event| String::from_utf8(event.body).unwrap()).collect();
        let types = event_types(&events);
        let name = |(event, kind): (&String, String)| {
            if kind == "state.changed" { text_member(event, "to_state") } else { kind }
        };
        events.iter().zip(types).map(name).collect()
    }

    fn is_refused(&mut self, event: &str) -> bool {
        matches!(self.harness.publish(&self.bank, &self.session, &[event]), HubReply::RuleViolations(_))
    }
}

fn invoked(call: &str) -> String {
    format!(
        r#"{{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"{call}","summary_normal":"Looking."}}"#
    )
}

fn completed(call: &str) -> String {
    format!(
        r#"{{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"{call}","status":"success","summary_normal":"Found."}}"#
    )
}

fn chunk(position: usize, text: &str, complete: bool) -> String {
    format!(
        r#"{{"type":"aaep:agent.output.streaming","output_id":"out_1","chunk":"{text}","position":{position},"complete":{complete},"coalesce_hint":"none"}}"#
    )
}

fn change(from: Option<&str>, to: &str) -> String {
    let from = from.map(|from| format!(r#""from_state":"{from}","#)).unwrap_or_default();
    format!(r#"{{"type":"aaep:agent.state.changed",{from}"to_state":"{to}","summary_normal":"A change."}}"#)
}

#[test]
fn a_call_and_an_output_have_their_state_before_and_thinking_after_them() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.publish(&[&invoked("call_1")]), ["calling_tool", "tool.invoked"]);
    assert_eq!(fixture.publish(&[&invoked("call_2")]), ["tool.invoked"], "the state is announced");
    assert_eq!(fixture.publish(&[&completed("call_1")]), ["tool.completed"], "another call still runs");
    assert_eq!(fixture.publish(&[&completed("call_2")]), ["tool.completed", "thinking"]);
    assert_eq!(fixture.publish(&[&chunk(0, "One.", false)]), ["writing_output", "output.streaming"]);
    assert_eq!(fixture.publish(&[&chunk(4, " Two.", false)]), ["output.streaming"]);
    let end = chunk(9, " Three.", true).replace("none", "completion");
    assert_eq!(fixture.publish(&[&end]), ["output.streaming", "thinking"]);
}

#[test]
fn an_output_during_a_call_does_not_leave_the_state_of_the_call() {
    let mut fixture = Fixture::new();
    fixture.publish(&[&invoked("call_1")]);
    assert_eq!(fixture.publish(&[&chunk(0, "One.", false)]), ["output.streaming"]);
    // After the call, the hub announces that the output goes on.
    assert_eq!(fixture.publish(&[&completed("call_1")]), ["tool.completed", "thinking"]);
    assert_eq!(fixture.publish(&[&chunk(4, " Two.", false)]), ["writing_output", "output.streaming"]);
}

#[test]
fn a_state_that_the_agent_reports_is_not_ended_by_the_hub() {
    let mut fixture = Fixture::new();
    fixture.publish(&[&change(None, "calling_tool")]);
    assert_eq!(fixture.publish(&[&invoked("call_1")]), ["tool.invoked"]);
    assert_eq!(fixture.publish(&[&completed("call_1")]), ["tool.completed"]);
    // The same holds after the hub has announced a state once.
    fixture.publish(&[&change(None, "thinking")]);
    fixture.publish(&[&invoked("call_2")]);
    fixture.publish(&[&completed("call_2")]);
    fixture.publish(&[&change(None, "calling_tool")]);
    fixture.publish(&[&invoked("call_3")]);
    assert_eq!(fixture.publish(&[&completed("call_3")]), ["tool.completed"]);
    fixture.publish(&[&change(None, "writing_output")]);
    let end = chunk(0, "All.", true).replace("none", "completion");
    assert_eq!(fixture.publish(&[&end]), ["output.streaming"]);
}

#[test]
fn while_a_question_is_open_no_state_is_announced() {
    let mut fixture = Fixture::new();
    fixture.harness.confirm(&fixture.bank, &fixture.session, TRANSFER);
    fixture.harness.take_events(fixture.connection);
    assert_eq!(fixture.publish(&[&chunk(0, "One.", false)]), ["output.streaming"]);
    assert_eq!(fixture.publish(&[&invoked("call_1")]), ["tool.invoked"]);
}

#[test]
fn an_agent_that_does_not_know_the_announced_states_may_name_the_one_that_it_knows() {
    // Before the call the agent was thinking. Afterwards it may believe in any state since then.
    for from in ["deciding", "calling_tool", "thinking"] {
        let mut fixture = Fixture::new();
        fixture.publish(&[&change(None, "deciding")]);
        fixture.publish(&[&invoked("call_1")]);
        fixture.publish(&[&completed("call_1")]);
        let reply = fixture.harness.publish(&fixture.bank, &fixture.session, &[&change(Some(from), "idle")]);
        assert!(matches!(reply, HubReply::EventsPublished { .. }), "{from}: {reply:?}");
        let heard = fixture.harness.take_events(fixture.connection).pop().unwrap();
        assert_eq!(text_member(&heard, "from_state"), "thinking", "{from}: the true one");
        assert!(fixture.is_refused(&change(Some(from), "writing_output")), "now the agent knows the state");
    }
    let mut fixture = Fixture::new();
    fixture.publish(&[&change(None, "deciding")]);
    fixture.publish(&[&invoked("call_1")]);
    assert!(fixture.is_refused(&change(Some("writing_output"), "thinking")), "it was never in this state");
    let mut fixture = Fixture::new();
    fixture.publish(&[&change(None, "deciding")]);
    assert!(fixture.is_refused(&change(Some("thinking"), "idle")), "the hub announced nothing");
}

#[test]
fn one_producers_states_do_not_count_as_anothers() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let body = r#"{"summary_normal":"Paying.","producers":[{"agent_id":"a"}]}"#;
    let start = hub::command::HubCommand::Start { body: body.into(), idempotency_key: None };
    let session = text_member(&reply_json(harness.ask_hub(&bank, start)), "session_id");
    let by_a = |event: &str| event.replacen('{', r#"{"producer":"a","#, 1);
    let mut publish = |event: &str| harness.publish(&bank, &session, &[event]);
    let is_published = |reply: &HubReply| matches!(reply, HubReply::EventsPublished { .. });
    assert!(is_published(&publish(&invoked("call_1"))));
    assert!(is_published(&publish(&by_a(&change(None, "deciding")))));
    let foreign = publish(&by_a(&change(Some("calling_tool"), "thinking")));
    assert!(!is_published(&foreign), "the main producer's state: {foreign:?}");
    // Its own change does not end what the hub announced for the main producer.
    assert!(is_published(&publish(&by_a(&change(None, "thinking")))));
    assert!(is_published(&publish(&completed("call_1"))));
    assert!(is_published(&publish(&change(Some("calling_tool"), "idle"))), "the hub has ended the state");
    // A call of the other producer does not keep the main one busy.
    assert!(is_published(&publish(&by_a(&invoked("call_2")))));
    assert!(is_published(&publish(&chunk(0, "One.", false))));
    let states: Vec<_> = harness
        .disk
        .events()
        .into_iter()
        .map(|event| String::from_utf8(event.body).unwrap())
        .filter(|event| event.contains("writing_output"))
        .collect();
    assert_eq!(states.len(), 1, "{states:?}");
}

#[test]
fn an_agent_may_not_name_a_state_that_it_was_never_in() {
    let mut fixture = Fixture::new();
    fixture.publish(&[&change(None, "deciding")]);
    fixture.publish(&[&invoked("call_1")]);
    fixture.publish(&[&completed("call_1")]);
    assert!(fixture.is_refused(&change(Some("writing_output"), "idle")));
    // The states that another producer may believe in do not count.
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let body = r#"{"summary_normal":"Paying.","producers":[{"agent_id":"a"}]}"#;
    let start = hub::command::HubCommand::Start { body: body.into(), idempotency_key: None };
    let session = text_member(&reply_json(harness.ask_hub(&bank, start)), "session_id");
    let by_a = |event: &str| event.replacen('{', r#"{"producer":"a","#, 1);
    let mut is_published =
        |event: &str| matches!(harness.publish(&bank, &session, &[event]), HubReply::EventsPublished { .. });
    for event in [
        change(None, "deciding"),
        invoked("call_1"),
        completed("call_1"),
        by_a(&change(None, "writing_output")),
        by_a(&invoked("call_2")),
        by_a(&completed("call_2")),
    ] {
        assert!(is_published(&event), "{event}");
    }
    assert!(!is_published(&by_a(&change(Some("deciding"), "idle"))), "only the main producer was deciding");
    assert!(!is_published(&change(Some("writing_output"), "idle")), "only the other producer was writing");
    assert!(is_published(&by_a(&change(Some("writing_output"), "idle"))));
    assert!(is_published(&change(Some("deciding"), "idle")));
}

#[test]
fn an_output_beside_a_call_that_is_not_the_current_work_has_its_own_state() {
    let mut fixture = Fixture::new();
    fixture.publish(&[&invoked("call_1"), &invoked("call_2")]);
    fixture.publish(&[&completed("call_1")]);
    fixture.publish(&[&change(None, "thinking")]);
    assert_eq!(fixture.publish(&[&chunk(0, "One.", false)]), ["writing_output", "output.streaming"]);
}

#[test]
fn a_short_state_change_without_a_text_gets_a_sentence_and_the_state_that_listeners_heard() {
    let mut fixture = Fixture::new();
    let last_event =
        |fixture: &Fixture| String::from_utf8(fixture.harness.disk.events().pop().unwrap().body).unwrap();
    let padding = " ".repeat(200);
    for (members, sentence) in [
        (r#""to_state":"thinking""#.to_owned(), "The agent is thinking."),
        (r#""producer":"bank","to_state":"idle""#.to_owned(), "The agent is idle."),
        // Only short events are examined, because few events have no text.
        (format!(r#"{padding}"to_state":"thinking""#), "thinking"),
    ] {
        fixture.publish(&[&format!(r#"{{"type":"aaep:agent.state.changed",{members}}}"#)]);
        let event = last_event(&fixture);
        assert_eq!(text_member(&event, "summary_normal"), sentence, "{event}");
    }
    let similar = r#"{"type":"aaep:agent.state.changed_again","to_state":"idle"}"#;
    let reply = fixture.harness.publish(&fixture.bank, &fixture.session, &[similar]);
    assert!(!matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
    // The hub announced the tool, so the agent does not know the state that listeners heard.
    fixture.publish(&[r#"{"type":"aaep:agent.state.changed","to_state":"deciding"}"#]);
    fixture.publish(&[&invoked("call_1")]);
    fixture.publish(&[&completed("call_1")]);
    let stale = r#"{"type":"aaep:agent.state.changed","from_state":"deciding","to_state":"idle"}"#;
    let before = last_state(&fixture.harness);
    fixture.publish(&[stale]);
    let event = last_event(&fixture);
    assert_eq!(text_member(&event, "from_state"), before, "{event}");
    assert_ne!(before, "deciding");
}

/// Returns the state of the last stored state change.
fn last_state(harness: &HubHarness) -> String {
    let events = harness.disk.events().into_iter().map(|event| String::from_utf8(event.body).unwrap());
    let last = events.filter(|event| event.contains("agent.state.changed")).last();
    text_member(&last.unwrap(), "to_state")
}
