//! The hub is killed repeatedly at random moments under load. Nothing acknowledged is lost, nothing is decided twice,
//! and no irreversible action is allowed without a recorded accept.
//!
//! The default is 20 kills. `KILLS=200` sets another number. Each kill happens after a random number of acknowledged
//! events. The test prints its seed. `PROPERTY_SEED` sets it.

use std::collections::HashSet;
use std::sync::mpsc::channel;

use testing::http::{TestClient, TestResponse};
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;

/// Everything that the hub has acknowledged.
#[derive(Default)]
pub(super) struct AcknowledgedState {
    /// The ids of published events, except those of calls.
    pub(super) events: Vec<String>,
    /// The ids of the events of calls.
    pub(super) call_events: Vec<String>,
    /// Questions whose acceptance was acknowledged.
    accepted: Vec<String>,
    /// Questions that nobody answered.
    unanswered: Vec<String>,
    /// Questions whose acceptance was used by an acknowledged tool call, each with the amount of the call.
    spent: Vec<(String, usize)>,
}

impl AcknowledgedState {
    /// Returns the number of accepted questions.
    #[cfg(feature = "postgres")]
    pub(super) fn accepted_count(&self) -> usize {
        self.accepted.len()
    }
}

#[test]
fn nothing_acknowledged_is_lost_after_repeated_kills() {
    let kills: u64 = std::env::var("KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(20);
    let seed: u64 = std::env::var("PROPERTY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    println!("{kills} kills, seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    assert_nothing_is_lost(kills, seed, &|| HubProcess::start_on_disk(folder.path()));
}

/// Kills hubs that `start` starts with the same journal.
pub(super) fn assert_nothing_is_lost(kills: u64, seed: u64, start: &dyn Fn() -> HubProcess) {
    let mut random = seed;
    let mut acknowledged = AcknowledgedState::default();
    let (mut accept_count, mut call_count) = (0, 0);
    let (mut session, mut subscription, mut first_event_id) = (String::new(), String::new(), String::new());
    for round in 0..kills {
        let mut hub = start();
        let client = hub.client();
        if round % 5 == 0 {
            subscription = client.subscribe(REPLY_CAPABILITIES);
            let mut stream = client.open_event_stream(&subscription, None);
            session = client.start_session();
            first_event_id = loop {
                let (kind, id, event) = stream.next();
                if kind == "session.started" && event["session_id"] == session.as_str() {
                    break id;
                }
            };
            accept_count += acknowledged.accepted.len();
            call_count += acknowledged.spent.len();
            acknowledged = AcknowledgedState::default();
        } else {
            assert_acknowledged(&client, &session, &subscription, &first_event_id, &acknowledged);
        }
        let _stream = client.open_event_stream(&subscription, None);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let kill_after = acknowledged.events.len() + usize::try_from(random >> 60).unwrap() + 1;
        // Dropping the sender makes the other thread kill the hub.
        let (kill_sender, kill_receiver) = channel::<()>();
        std::thread::scope(|scope| {
            let hub_to_kill = &mut hub;
            let killer = scope.spawn(move || {
                let _ = kill_receiver.recv();
                hub_to_kill.kill();
            });
            let mut kill_sender = Some(kill_sender);
            while run_step(&client, &session, &subscription, &mut acknowledged).is_some() {
                if acknowledged.events.len() >= kill_after {
                    kill_sender = None;
                }
            }
            drop(kill_sender);
            killer.join().unwrap();
        });
    }
    let hub = start();
    assert_acknowledged(&hub.client(), &session, &subscription, &first_event_id, &acknowledged);
    accept_count += acknowledged.accepted.len();
    call_count += acknowledged.spent.len();
    println!("{accept_count} accepts and {call_count} calls were acknowledged");
    assert!(accept_count > 3 && call_count > 1, "too little was acknowledged for a meaningful test");
}

/// Returns a response, unless it says that the hub cannot store anything at the moment.
fn served(response: TestResponse) -> Option<TestResponse> {
    (response.status != 503).then_some(response)
}

/// Publishes an event, sometimes asks a question, and records what was acknowledged. Returns `None` if the hub is gone or
/// cannot reach its journal.
pub(super) fn run_step(
    client: &TestClient,
    session: &str,
    subscription: &str,
    acknowledged: &mut AcknowledgedState,
) -> Option<()> {
    let path = |rest: &str| format!("/agent/v1/sessions/{session}/{rest}");
    let progress =
        r#"{"type":"aaep:agent.progress.updated","progress":{"percent":5},"summary_normal":"Working."}"#;
    let published = client.try_send("POST", &path("events"), progress).and_then(served)?;
    assert_eq!(published.status, 200, "{published:?}");
    acknowledged.events.extend(event_ids(&published)?);
    let amount = acknowledged.events.len();
    if amount.is_multiple_of(4) {
        let asked = client.try_send("POST", &path("confirmations"), &question(amount)).and_then(served)?;
        if asked.status == 429 {
            return Some(());
        }
        assert_eq!(asked.status, 201, "{asked:?}");
        let token = asked.json_str("reply_token");
        if amount.is_multiple_of(8) {
            acknowledged.unanswered.push(token);
            return Some(());
        }
        let replied = client.try_reply(subscription, &token, "accept").and_then(served)?;
        assert_eq!(replied.status, 204);
        acknowledged.accepted.push(token.clone());
        let call = format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_{amount}","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{token}","arguments":{{"amount":"{amount}.00"}}}}"#
        );
        let called = client.try_send("POST", &path("events"), &call).and_then(served)?;
        assert_eq!(called.status, 200, "{called:?}");
        acknowledged.spent.push((token, amount));
        acknowledged.call_events.extend(event_ids(&called)?);
        let done = format!(
            r#"{{"type":"aaep:agent.tool.completed","tool":"send","tool_call_id":"call_{amount}","status":"success","summary_normal":"Sent."}}"#
        );
        let done = client.try_send("POST", &path("events"), &done)?;
        if done.status == 200 {
            acknowledged.call_events.extend(event_ids(&done)?);
        }
    }
    Some(())
}

/// Returns the ids of the events that a request has published.
fn event_ids(published: &TestResponse) -> Option<Vec<String>> {
    let ids: serde_json::Value = serde_json::from_str(&published.body).ok()?;
    Some(ids["event_ids"].as_array()?.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect())
}

fn question(amount: usize) -> String {
    format!(
        r#"{{"action":"Send {amount} euros to Ben.","consequence":"It cannot be undone.","irreversible":true,"risk_level":"high","timeout_seconds":600,"default_decision":"reject","summary_normal":"May I send {amount} euros to Ben?","tool":"send","arguments":{{"amount":"{amount}.00"}}}}"#
    )
}

/// Asserts that everything acknowledged is still stored.
pub(super) fn assert_acknowledged(
    client: &TestClient,
    session: &str,
    subscription: &str,
    first_event_id: &str,
    acknowledged: &AcknowledgedState,
) {
    let path = |token: &str| format!("/agent/v1/sessions/{session}/replies/{token}");
    for token in &acknowledged.accepted {
        assert_eq!(
            client.get(&path(token)).json_str("decision"),
            "accept",
            "an acknowledged accept was lost"
        );
    }
    for token in &acknowledged.unanswered {
        assert_eq!(
            client.get(&path(token)).json_str("status"),
            "pending",
            "a question that nobody answered was decided"
        );
    }
    for (token, amount) in &acknowledged.spent {
        let call = format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_again","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{token}","arguments":{{"amount":"{amount}.00"}}}}"#
        );
        let second_call = client.post(&format!("/agent/v1/sessions/{session}/events"), &call);
        assert_eq!(second_call.status, 422, "an acceptance can be used only once: {second_call:?}");
    }
    let mut missing: HashSet<&str> = acknowledged.events.iter().map(String::as_str).collect();
    let mut stream = client.open_event_stream(subscription, Some(first_event_id));
    let mut seen = HashSet::new();
    while !missing.is_empty() {
        // With several shards, the id in the stream is a position in each of them.
        let (_, _, event) = stream.next();
        let id = event["event_id"].as_str().unwrap_or_default().to_owned();
        assert!(seen.insert(id.clone()), "delivered twice: {id}");
        missing.remove(id.as_str());
    }
}
