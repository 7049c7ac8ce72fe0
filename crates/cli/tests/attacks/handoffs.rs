//! Attempts to take over, to read or to multiply hand-offs without the right to do so.

use std::path::Path;

use serde_json::{Value, json};
use testing::cli::create_token;
use testing::http::{EventStream, TestClient, TestResponse};
use testing::hub::HubProcess;

const TAKES_HANDOFFS: &str = r#"{"supports_confirmation_reply":true,"supported_conformance_levels":[1,2,3],"coalesce_boundaries":["none"],"sayso":{"handoffs":true}}"#;
const SECRET: &str = "the account number";

/// Names and arguments of the tokens. `ada` may take over, `far` only from another agent.
const TOKENS: [(&str, &[&str]); 6] = [
    ("ada", &["--role", "receiver"]),
    ("ben", &["--role", "listener"]),
    ("olu", &["--role", "observer"]),
    ("far", &["--role", "receiver", "--scope", "agent:shop"]),
    ("bank", &["--role", "agent", "--agent-id", "bank"]),
    ("shop", &["--role", "agent", "--agent-id", "shop"]),
];

struct Scenario {
    hub: HubProcess,
    folder: tempfile::TempDir,
    tokens: Vec<String>,
    shards: &'static str,
}

impl Scenario {
    fn start(shards: &'static str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens").to_str().unwrap().to_owned();
        let create = |(name, rest): (&str, &[&str])| create_token(&file, &[&["--name", name], rest].concat());
        let tokens = TOKENS.map(create).to_vec();
        let hub = Self::start_hub(folder.path(), shards, arguments);
        Self { hub, folder, tokens, shards }
    }

    fn start_hub(folder: &Path, shards: &str, arguments: &[&str]) -> HubProcess {
        let [data, tokens] = ["data", "tokens"].map(|name| folder.join(name).to_str().unwrap().to_owned());
        let fixed = ["--listen", "127.0.0.1:0", "--data", &data, "--tokens", &tokens, "--hub-shards", shards];
        HubProcess::start(&[&fixed, arguments].concat())
    }

    fn kill_and_restart(&mut self) {
        self.hub.kill();
        self.hub = Self::start_hub(self.folder.path(), self.shards, &[]);
    }

    fn client(&self, name: &str) -> TestClient {
        let index = TOKENS.iter().position(|(known, _)| *known == name).unwrap();
        self.hub.client().with_bearer(&self.tokens[index])
    }

    /// Subscribes, and opens the event stream. Returns the subscription too.
    fn listen(&self, name: &str) -> (String, EventStream) {
        let client = self.client(name);
        let subscription = client.subscribe(TAKES_HANDOFFS);
        let stream = client.open_event_stream(&subscription, None);
        (subscription, stream)
    }

    /// Starts a session for a person.
    fn start_session(&self, person: &str) -> String {
        let body = json!({"summary_normal": "Refunding.", "requested_by": format!("user:{person}")});
        self.client("bank").post("/agent/v1/sessions", &body.to_string()).json_str("session_id")
    }

    fn hand_off(&self, session: &str, changes: &Value) -> TestResponse {
        hand_off(&self.client("bank"), session, changes)
    }

    fn outcome(&self, session: &str, token: &str) -> Value {
        self.client("bank").get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=60")).json()
    }

    fn status(&self, session: &str, token: &str) -> Value {
        self.client("bank").get(&format!("/agent/v1/sessions/{session}/replies/{token}")).json()["status"]
            .clone()
    }
}

fn hand_off(client: &TestClient, session: &str, changes: &Value) -> TestResponse {
    let mut body = json!({
        "reason": "The refund needs a person.", "target_kind": "human", "summary_normal": "I need a person.",
        "urgency_for_handoff": "high", "packaged_context": {"note": SECRET},
    });
    body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    client.post(&format!("/agent/v1/sessions/{session}/handoffs"), &body.to_string())
}

/// Returns the time this many milliseconds from now.
fn time_after(millis: i64) -> String {
    let now: seal::UnixMillis = std::time::SystemTime::now().into();
    seal::Timestamp::from_unix_millis(now.saturating_add(millis)).unwrap().to_string()
}

fn answer(kind: &str, subscription: &str, token: &str, timestamp: &str) -> String {
    json!({"type": kind, "reply_token": token, "subscription_id": subscription, "timestamp": timestamp})
        .to_string()
}

fn send(client: &TestClient, message: &str) {
    let response = client.post("/aaep/v1/replies", message);
    assert_eq!((response.status, &*response.body), (204, ""), "the response tells nothing");
}

const ACKNOWLEDGE: &str = "sayso:handoff.acknowledge";
const REJECT: &str = "sayso:handoff.reject";

#[test]
fn only_a_receiver_in_scope_takes_over_whatever_others_send() {
    for shards in ["1", "3"] {
        let scenario = Scenario::start(shards, &[]);
        let listeners = ["ada", "ben", "olu", "far"].map(|name| (name, scenario.listen(name)));
        let subscription = |name: &str| &listeners.iter().find(|(known, _)| *known == name).unwrap().1.0;
        let session = scenario.start_session("marisol");
        let token = scenario.hand_off(&session, &json!({})).json_str("reply_token");
        let now = time_after(0);
        for (sender, used) in [
            ("ben", "ben"),
            ("olu", "olu"),
            ("far", "far"),
            ("ben", "ada"),
            ("olu", "ada"),
            ("far", "ada"),
            ("bank", "ada"),
            ("shop", "ada"),
            ("ada", "ben"),
        ] {
            for kind in [ACKNOWLEDGE, REJECT] {
                send(&scenario.client(sender), &answer(kind, subscription(used), &token, &now));
            }
            assert_eq!(scenario.status(&session, &token), "pending", "{sender} as {used}");
        }
        let own = subscription("ada");
        let other_shard = format!("{}x1", token.split('x').next().unwrap());
        let valid = answer(ACKNOWLEDGE, own, &token, &now);
        for message in [
            answer("sayso:handoff.accept", own, &token, &now),
            answer(ACKNOWLEDGE, own, &token, &time_after(25 * 60 * 60 * 1000)),
            answer(ACKNOWLEDGE, own, &token, "yesterday"),
            answer(ACKNOWLEDGE, own, &format!("{token}0"), &now),
            testing::messages::confirmation_reply(own, &token, "accept"),
            valid.replacen('{', r#"{"type":"sayso:handoff.reject","#, 1),
            valid.replacen('{', &format!(r#"{{"note":"{}","#, "n".repeat(200_000)), 1),
        ]
        .into_iter()
        .chain((other_shard != token).then(|| answer(ACKNOWLEDGE, own, &other_shard, &now)))
        {
            send(&scenario.client("ada"), &message);
            assert_eq!(
                scenario.status(&session, &token),
                "pending",
                "{}",
                &message[..message.len().min(200)]
            );
        }
        let stranger = scenario.client("shop").get(&format!("/agent/v1/sessions/{session}/replies/{token}"));
        assert_eq!(stranger.status, 404, "{stranger:?}");
        send(&scenario.client("ada"), &valid);
        assert_eq!(scenario.outcome(&session, &token)["outcome"], "acknowledged");
        send(&scenario.client("ada"), &answer(REJECT, own, &token, &now));
        assert_eq!(scenario.outcome(&session, &token)["outcome"], "acknowledged", "the first answer counts");
        // Taking over is not consent.
        let call = json!({
            "type": "aaep:agent.tool.invoked", "tool": "pay", "tool_call_id": "call_1", "risk_level": "high",
            "irreversible": true, "summary_normal": "Paying.", "arguments": {},
        });
        let path = format!("/agent/v1/sessions/{session}/events");
        assert_eq!(scenario.client("bank").post(&path, &call.to_string()).status, 422);
    }
}

/// Returns the first hand-off on a stream.
fn next_handoff(stream: &mut EventStream) -> Value {
    loop {
        let (kind, _, event) = stream.next();
        if kind == "handoff.requested" {
            return event;
        }
    }
}

#[test]
fn the_context_of_a_handoff_reaches_only_those_who_may_take_over() {
    for shards in ["1", "3"] {
        let scenario = Scenario::start(shards, &[]);
        let mut live = ["ada", "ben", "olu"].map(|name| (name, scenario.listen(name).1));
        let session = scenario.start_session("marisol");
        let token = scenario.hand_off(&session, &json!({})).json_str("reply_token");
        send(&scenario.client("ada"), &answer(REJECT, &scenario.listen("ada").0, &token, &time_after(0)));
        assert_eq!(scenario.outcome(&session, &token)["outcome"], "rejected");
        let event = json!({
            "type": "aaep:agent.handoff.requested", "reason": "The same.", "target_kind": "human",
            "summary_normal": "The same, as an event.", "packaged_context": {"note": SECRET},
        });
        let path = format!("/agent/v1/sessions/{session}/events");
        assert_eq!(scenario.client("bank").post(&path, &event.to_string()).status, 200);
        let forged = json!({"sayso": {"handoff": {"reply_token": token, "deadline": time_after(60_000)}}});
        let mut with_token = event.clone();
        with_token["extensions"] = forged;
        assert_eq!(scenario.client("bank").post(&path, &with_token.to_string()).status, 400);

        for (name, stream) in &mut live {
            // One that was missed, from the start of the log, and one that is live.
            let client = scenario.client(name);
            let start = if shards == "1" { "at_0" } else { "cur_0a0-1a0-2a0" };
            let mut missed = client.open_event_stream(&client.subscribe(TAKES_HANDOFFS), Some(start));
            for stream in [&mut missed, stream] {
                for _ in 0..2 {
                    let context = &next_handoff(stream)["packaged_context"]["note"];
                    let expected = if *name == "ada" { json!(SECRET) } else { Value::Null };
                    assert_eq!(*context, expected, "for {name}");
                }
            }
        }
    }
}

#[test]
fn one_of_many_simultaneous_answers_counts_even_after_a_kill() {
    let mut scenario = Scenario::start("3", &[]);
    let (subscription, _stream) = scenario.listen("ada");
    let session = scenario.start_session("marisol");
    let token = scenario.hand_off(&session, &json!({})).json_str("reply_token");
    let now = time_after(0);
    std::thread::scope(|scope| {
        for number in 0..16 {
            let kind = if number % 2 == 0 { ACKNOWLEDGE } else { REJECT };
            let (client, message) = (scenario.client("ada"), answer(kind, &subscription, &token, &now));
            scope.spawn(move || send(&client, &message));
        }
    });
    let outcome = scenario.outcome(&session, &token);
    assert!(outcome["outcome"] == "acknowledged" || outcome["outcome"] == "rejected", "{outcome}");
    scenario.kill_and_restart();
    assert_eq!(scenario.outcome(&session, &token), outcome);
    for kind in [ACKNOWLEDGE, REJECT] {
        send(&scenario.client("ada"), &answer(kind, &subscription, &token, &now));
    }
    assert_eq!(scenario.outcome(&session, &token), outcome);
}

#[test]
fn a_handoff_ends_at_its_deadline_even_if_the_hub_is_killed() {
    let mut scenario = Scenario::start("1", &[]);
    let (subscription, _stream) = scenario.listen("ada");
    let session = scenario.start_session("marisol");
    let token = scenario.hand_off(&session, &json!({"timeout_seconds": 1})).json_str("reply_token");
    let before_the_deadline = time_after(0);
    scenario.kill_and_restart();
    assert_eq!(scenario.outcome(&session, &token)["outcome"], "timeout");
    // An answer that claims to be older than the deadline.
    send(&scenario.client("ada"), &answer(ACKNOWLEDGE, &subscription, &token, &before_the_deadline));
    assert_eq!(scenario.outcome(&session, &token)["outcome"], "timeout");
    for timeout in [json!(0), json!(-1), json!(86_401), json!(1.5), json!("60"), json!(1e300)] {
        let refused = scenario.hand_off(&session, &json!({"timeout_seconds": timeout}));
        assert_eq!(refused.status, 400, "{timeout}: {refused:?}");
    }
}

#[test]
fn the_open_handoffs_of_an_agent_are_limited_in_all_shards_together() {
    let scenario = Scenario::start("3", &["--handoffs-open-per-agent", "4"]);
    let _listener = scenario.listen("ada");
    let sessions: Vec<_> = (0..12).map(|person| scenario.start_session(&format!("p{person}"))).collect();
    let shards: std::collections::BTreeSet<_> = sessions.iter().map(|id| &id[id.len() - 2..]).collect();
    assert!(shards.len() > 1, "{sessions:?}");
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let running: Vec<_> = sessions
            .iter()
            .map(|session| {
                let bank = scenario.client("bank");
                scope.spawn(move || hand_off(&bank, session, &json!({})).status)
            })
            .collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 4, "{statuses:?}");
    assert!(statuses.iter().all(|status| [201, 429].contains(status)), "{statuses:?}");
    let large = scenario.hand_off(&sessions[0], &json!({"packaged_context": {"note": "n".repeat(70_000)}}));
    assert!([400, 429].contains(&large.status), "{large:?}");
}
