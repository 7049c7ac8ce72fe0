//! Limits per request, per token and per person. They apply no matter what an agent puts in its requests.

use std::path::Path;

use serde_json::{Value, json};
use testing::cli::{create_token, run_sayso};
use testing::http::{TestClient, TestResponse};
use testing::hub::HubProcess;
use testing::messages::{CONFIRMATION_BODY, REPLY_CAPABILITIES};

use crate::serve::agent_websocket::AgentWebSocket;

const START: &str = r#"{"summary_normal":"x","localization_hints":{"primary_language":"en"}}"#;
const PROGRESS: &str =
    r#"{"type":"aaep:agent.progress.updated","progress":{"percent":5},"summary_normal":"x"}"#;
const END: &str = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;

/// A hub with the agents `bank` and `shop` and the listener `ada`, each with its own token.
struct TokenHub {
    hub: HubProcess,
    _folder: tempfile::TempDir,
    /// The tokens of `bank`, `shop` and `ada`.
    tokens: [String; 3],
}

impl TokenHub {
    fn start(limits: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens").to_str().unwrap().to_owned();
        let create_agent_token =
            |name| create_token(&file, &["--role", "agent", "--name", name, "--agent-id", name]);
        let tokens = [
            create_agent_token("bank"),
            create_agent_token("shop"),
            create_token(&file, &["--role", "listener", "--name", "ada"]),
        ];
        let arguments = ["--memory", "--listen", "127.0.0.1:0", "--tokens", &file];
        Self { hub: HubProcess::start(&[&arguments, limits].concat()), _folder: folder, tokens }
    }

    /// Returns the clients of `bank`, `shop` and `ada`.
    fn clients(&self) -> [TestClient; 3] {
        self.tokens.each_ref().map(|token| self.hub.client().with_bearer(token))
    }
}

fn publish(client: &TestClient, session: &str, events: &str) -> TestResponse {
    client
        .with_header("Content-Type: application/x-ndjson")
        .post(&format!("/agent/v1/sessions/{session}/events"), events)
}

/// Starts a session whose `requested_by` names this person.
fn start_session_for(client: &TestClient, person: usize) -> String {
    let start = START.replacen('{', &format!(r#"{{"requested_by":"user:{person}","#), 1);
    client.post("/agent/v1/sessions", &start).json_str("session_id")
}

fn ask_in_new_session(client: &TestClient, person: usize) -> TestResponse {
    let session = start_session_for(client, person);
    client.post(&format!("/agent/v1/sessions/{session}/confirmations"), CONFIRMATION_BODY)
}

fn count_stored_bytes(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
    files.sum()
}

#[test]
fn a_small_request_does_not_write_a_large_multiple_of_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let hub = HubProcess::start_on_disk(folder.path());
    let client = hub.client();
    let start = |members: Value| {
        let mut body: Value = serde_json::from_str(START).unwrap();
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        client.post("/agent/v1/sessions", &body.to_string())
    };
    // These members are copied into every event, so they must be small.
    for members in [
        json!({"producer": {"agent_id": "evil", "model": "m".repeat(1 << 20)}}),
        json!({"producer": {"agent_id": "evil", "model": "m".repeat(257)}}),
        json!({"producer": {"agent_id": "evil", "m".repeat(257): "x"}}),
        json!({"producer": {"agent_id": "evil", "list": ["m".repeat(200), "m".repeat(200)]}}),
        json!({"producer": {"agent_id": "e".repeat(257)}}),
        json!({"localization_hints": {"primary_language": "en", "note": "m".repeat(1 << 20)}}),
    ] {
        let refused = start(members);
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.json_str("title").contains("at most 256 characters"), "{refused:?}");
    }
    let unknown_members = |count| (0..count).map(|number| (format!("m{number}"), json!("m".repeat(256))));
    let refused = start(json!({"producer": unknown_members(8).collect::<Value>()}));
    assert!(refused.status == 400 && refused.json_str("title").contains("2048 bytes"), "{refused:?}");

    // A large producer that the hub accepts.
    let long = "m".repeat(256);
    let manifest_uri = format!("https://evil.example/{}", "m".repeat(200));
    let producer =
        json!({"agent_id": "evil", "agent_name": long, "model": long, "manifest_uri": manifest_uri});
    let session = start(json!({ "producer": producer })).json_str("session_id");
    let before = count_stored_bytes(folder.path());
    let request = [PROGRESS; 300].join("\n");
    assert_eq!(publish(&client, &session, &request).status, 200);
    let written = count_stored_bytes(folder.path()) - before;
    assert!(written <= 64 * request.len() as u64, "{written} bytes for {}", request.len());
}

#[test]
fn four_small_requests_do_not_exhaust_a_memory_limit_of_2_gib() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new("sh");
    // The limit is in KiB.
    command.args(["-c", r#"ulimit -v 2097152 && exec "$0" "$@""#]).arg(testing::cli::binary());
    command.args(["serve", "--open", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
    let mut hub = HubProcess::start_command(&mut command);
    let client = hub.client();
    // A member that is copied into every event: once as large as a request may be, and once as large as is accepted.
    let start = |model_chars: usize| {
        let mut body: Value = serde_json::from_str(START).unwrap();
        body["producer"] = json!({"agent_id": "evil", "model": "m".repeat(model_chars)});
        client.post("/agent/v1/sessions", &body.to_string())
    };
    let (large, small) = (start(1 << 20), start(256));
    assert_eq!(small.status, 201, "{small:?}");
    // If the hub accepted the large one, its session would be attacked.
    let session = if large.status == 201 { large } else { small }.json_str("session_id");
    let before = count_stored_bytes(folder.path());
    let request = [PROGRESS; 690].join("\n");
    assert!((55_000..60_000).contains(&request.len()), "{}", request.len());
    let client = client.with_header("Content-Type: application/x-ndjson");
    let path = format!("/agent/v1/sessions/{session}/events");
    let statuses: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(|| client.try_send("POST", &path, &request))).collect();
        runs.into_iter().map(|run| run.join().unwrap().map(|response| response.status)).collect()
    });
    assert!(statuses.iter().all(|status| matches!(status, Some(200 | 400 | 429))), "{statuses:?}");
    let written = count_stored_bytes(folder.path()) - before;
    assert!(written <= 4 * 2 * 4 * 1024 * 1024, "{written} bytes for {statuses:?}");
    assert_eq!(client.get("/healthz").status, 200);
    assert_eq!(hub.stop(), 0);
}

#[test]
fn the_size_limit_of_a_request_includes_event_envelopes() {
    let hub = HubProcess::start_in_memory_with(&["--hub-bytes-per-request", "8KiB"]);
    let client = hub.client();
    let mut stream = client.open_event_stream(&client.subscribe("{}"), None);
    let session = client.start_session();
    let refused = publish(&client, &session, &[PROGRESS; 40].join("\n"));
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.json_str("title").contains("8192 bytes with their envelopes"), "{refused:?}");
    let refused = client.post(&format!("/agent/v1/sessions/{session}/output"), &"word ".repeat(2000));
    assert_eq!(refused.status, 400, "{refused:?}");
    // A refused request has no effect, and the session continues.
    assert_eq!(publish(&client, &session, &format!("{PROGRESS}\n{END}")).status, 200);
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|kind| kind != "session.completed") {
        kinds.push(stream.next().0);
    }
    assert_eq!(kinds.iter().filter(|kind| *kind == "progress.updated").count(), 1, "{kinds:?}");
}

#[test]
fn a_full_batch_leaves_the_other_requests_to_the_next_one() {
    // Each turn waits for the disk, so requests arrive together.
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let hub = HubProcess::start(&[
        "--open",
        "--listen",
        "127.0.0.1:0",
        "--data",
        data,
        "--hub-bytes-per-batch",
        "1",
    ]);
    let client = hub.client();
    let session = client.start_session();
    let turns_before = metric(&client, "sayso_turns_total");
    std::thread::scope(|scope| {
        let publishers: Vec<_> = (0..8)
            .map(|_| {
                let (client, session) = (&client, &session);
                scope.spawn(move || (0..20).map(|_| publish(client, session, PROGRESS).status).collect())
            })
            .collect();
        for publisher in publishers {
            let statuses: Vec<u16> = publisher.join().unwrap();
            assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
        }
    });
    assert!(
        metric(&client, "sayso_turns_total") - turns_before >= 160,
        "each request needs a turn of its own"
    );
    assert_eq!(publish(&client, &session, END).status, 200);
}

/// Returns the value of a metric without labels.
fn metric(client: &TestClient, name: &str) -> u64 {
    let metrics = client.get("/metrics").body;
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or_else(|| panic!("{name} is not in {metrics}"))
}

#[test]
fn one_token_cannot_take_all_sessions() {
    let scenario = TokenHub::start(&["--hub-sessions-per-principal", "5"]);
    let [bank, shop, _] = scenario.clients();
    let sessions: Vec<_> = (0..5).map(|_| bank.start_session()).collect();
    let refused = bank.post("/agent/v1/sessions", START);
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.json_str("title").contains("at most 5 open sessions"), "{refused:?}");
    shop.start_session();
    assert_eq!(publish(&bank, &sessions[0], END).status, 200);
    bank.start_session();
}

/// The body that starts a session of this agent on a hub without tokens.
fn start_body_of(agent_id: &str) -> String {
    START.replacen('{', &format!(r#"{{"producer":{{"agent_id":"{agent_id}"}},"#), 1)
}

#[test]
fn without_tokens_one_agent_cannot_take_all_sessions() {
    for shards in ["1", "3"] {
        let limits = ["--hub-sessions-per-principal", "5", "--hub-shards", shards];
        let hub = HubProcess::start_in_memory_with(&limits);
        let client = hub.client();
        // The person of a session decides which shard it belongs to.
        let start = |agent: &str, person: usize| {
            let body =
                start_body_of(agent).replacen('{', &format!(r#"{{"requested_by":"user:{person}","#), 1);
            client.post("/agent/v1/sessions", &body)
        };
        let sessions: Vec<_> = (0..5).map(|person| start("buggy", person).json_str("session_id")).collect();
        for person in 0..10 {
            let refused = start("buggy", person);
            assert_eq!(refused.status, 429, "{refused:?}");
            assert!(refused.json_str("title").contains("without a token may have at most 5"), "{refused:?}");
        }
        assert_eq!(start("other", 0).status, 201);
        assert_eq!(publish(&client, &sessions[0], END).status, 200);
        assert_eq!(start("buggy", 7).status, 201);
    }
}

#[test]
fn without_tokens_one_agent_cannot_publish_without_limit() {
    let hub = HubProcess::start_in_memory_with(&["--hub-bytes-per-minute", "64KiB"]);
    let client = hub.client();
    let start = |agent: &str| client.post("/agent/v1/sessions", &start_body_of(agent)).json_str("session_id");
    let sessions = ["buggy", "buggy"].map(start);
    let events = vec![PROGRESS; 20].join("\n");
    // The limit may reset once, if a minute ends during the test.
    let refused = (0..64).map(|number| publish(&client, &sessions[number % 2], &events));
    let refused = refused.into_iter().find(|reply| reply.status != 200).expect("a refused request");
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.json_str("title").contains("65536 bytes in a minute"), "{refused:?}");
    assert_eq!(publish(&client, &start("other"), PROGRESS).status, 200);
}

#[test]
fn one_token_cannot_publish_without_limit_and_nothing_is_lost() {
    let scenario = TokenHub::start(&["--hub-bytes-per-minute", "64KiB"]);
    let [bank, shop, ada] = scenario.clients();
    let mut stream = ada.open_event_stream(&ada.subscribe(r#"{"coalesce_boundaries":["none"]}"#), None);
    let (session, other_session) = (bank.start_session(), shop.start_session());
    let output = |number: usize| {
        let path = format!("/agent/v1/sessions/{session}/output");
        let text = format!("{number}. {}.\n", "word ".repeat(800));
        bank.with_header(&format!("Idempotency-Key: {number}")).post(&path, &text)
    };
    // The limit may reset once, if a minute ends during the test.
    let accepted = (0..64).take_while(|number| output(*number).status == 200).count();
    let refused = output(accepted);
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.json_str("title").contains("65536 bytes in a minute"), "{refused:?}");
    assert!(accepted >= 12, "{accepted}");
    assert_eq!(output(0).status, 200, "a repeated request gets its reply");
    assert_eq!(publish(&shop, &other_session, PROGRESS).status, 200, "another token is not affected");
    let mut text = String::new();
    while !text.contains(&format!("{}. word", accepted - 1)) {
        let (_, _, event) = stream.next();
        text += event["chunk"].as_str().unwrap_or_default();
    }
    assert!((0..accepted).all(|number| text.contains(&format!("{number}. word"))), "{text}");
}

#[test]
fn idempotency_keys_cannot_grow_without_bound() {
    let hub = HubProcess::start_in_memory_with(&[
        "--retention-keys-per-principal",
        "2",
        "--retention-interval",
        "100ms",
    ]);
    let start = |key: &str| {
        hub.client().with_header(&format!("Idempotency-Key: {key}")).post("/agent/v1/sessions", START)
    };
    let refused = start(&"k".repeat(257));
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.json_str("title").contains("at most 256 characters"), "{refused:?}");
    assert_eq!(start(&"k".repeat(256)).status, 201);
    let mut agent = AgentWebSocket::open(&hub);
    let params = json!({"summary_normal": "x", "idempotency_key": "é".repeat(257)});
    let refused = agent.call("session.start", &params)["error"].to_string();
    assert!(refused.contains("at most 256 characters"), "{refused}");

    // If there are more than two keys, the oldest is deleted.
    let first = start("first").json_str("session_id");
    let is_forgotten = |number: usize| {
        start(&format!("later-{number}"));
        start("first").json_str("session_id") != first
    };
    assert!((0..100_000).any(is_forgotten), "the oldest key is still stored");
    // By default, a key is stored for one day, and a token has at most 100,000 of them.
    let config = run_sayso(&["serve", "--print-config"], "").stdout;
    assert!(config.contains("keys = \"1d\"") && config.contains("keys_per_principal = 100000"), "{config}");
}

#[test]
fn questions_to_a_person_are_limited_regardless_of_requested_by() {
    let limits = ["--hub-questions-per-minute", "3", "--hub-total-questions-per-minute", "5"];
    let scenario = TokenHub::start(&limits);
    let [bank, shop, ada] = scenario.clients();
    let _stream = ada.open_event_stream(&ada.subscribe(REPLY_CAPABILITIES), None);
    // The limit may reset once, if a minute ends during the test.
    let refused = (0..8).map(|person| ask_in_new_session(&bank, person)).find(|asked| asked.status != 201);
    let refused = refused.expect("a refused question");
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.json_str("title").contains("at most 3 questions in a minute"), "{refused:?}");
    // Another agent may still ask, until the limit for all agents together is reached.
    assert_eq!(ask_in_new_session(&shop, 0).status, 201);
    let refused = (0..8)
        .flat_map(|person| [ask_in_new_session(&shop, person), ask_in_new_session(&bank, person)])
        .find(|asked| asked.status != 201 && asked.json_str("title").contains("all agents together"));
    assert_eq!(refused.expect("a question refused by the limit for all agents").status, 429);
}

#[test]
fn all_agents_together_cannot_flood_a_person_with_critical_events_and_hand_offs() {
    let scenario = TokenHub::start(&["--hub-total-criticals-per-minute", "4"]);
    let [bank, shop, ada] = scenario.clients();
    let _stream = ada.open_event_stream(&ada.subscribe(REPLY_CAPABILITIES), None);
    let critical = PROGRESS.replacen('{', r#"{"urgency":"critical","#, 1);
    let hand_off = r#"{"reason":"I am stuck.","target_kind":"human"}"#;
    let send = |number: usize| {
        let agent = if number.is_multiple_of(2) { &bank } else { &shop };
        let session = start_session_for(agent, number);
        if number % 4 < 2 {
            publish(agent, &session, &critical)
        } else {
            agent.post(&format!("/agent/v1/sessions/{session}/handoffs"), hand_off)
        }
    };
    // The limit may reset once, if a minute ends during the test.
    let refused = (0..12).map(send).find(|response| response.status == 429).expect("a refused event");
    assert!(refused.json_str("title").contains("all agents together"), "{refused:?}");
}

#[test]
fn a_hub_in_memory_really_forgets() {
    let hub = HubProcess::start_in_memory_with(&[
        "--retention-events",
        "1s",
        "--retention-decisions",
        "1s",
        "--retention-interval",
        "100ms",
    ]);
    let client = hub.client();
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    assert_eq!(publish(&client, &session, END).status, 200);
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    assert_eq!(client.get(&path).json_str("status"), "resolved");
    assert!((0..20_000).any(|_| client.get(&path).status == 404), "the decision is still stored");
}

#[test]
fn critical_events_for_a_person_are_limited_regardless_of_requested_by() {
    let scenario = TokenHub::start(&["--hub-criticals-per-minute", "3"]);
    let [bank, _, ada] = scenario.clients();
    let _stream = ada.open_event_stream(&ada.subscribe(REPLY_CAPABILITIES), None);
    let critical = PROGRESS.replacen('{', r#"{"urgency":"critical","#, 1);
    let publish_critical = |person: usize| publish(&bank, &start_session_for(&bank, person), &critical);
    // The limit may reset once, if a minute ends during the test.
    let refused = (0..8).map(publish_critical).find(|response| response.status != 200);
    assert_eq!(refused.expect("a refused event").status, 429);
}

#[test]
fn stored_data_is_bounded_by_default() {
    let read_settings = |arguments: &[&str]| {
        let config = run_sayso(&[&["serve", "--print-config"], arguments].concat(), "").stdout;
        let value = |section: &str, name: &str| {
            let (_, section) = config.split_once(&format!("[{section}]")).unwrap();
            let line = section.lines().find(|line| line.starts_with(&format!("{name} = "))).unwrap();
            line.split_once(" = ").unwrap().1.split('#').next().unwrap().trim().trim_matches('"').to_owned()
        };
        [
            value("retention", "events"),
            value("retention", "decisions"),
            value("retention", "bytes"),
            value("journal", "max_bytes"),
        ]
    };
    assert_eq!(read_settings(&[]), ["none", "none", "8GiB", "16GiB"]);
    assert_eq!(read_settings(&["--journal-max-bytes", "2GiB"]), ["none", "none", "1GiB", "2GiB"]);
    assert_eq!(read_settings(&["--journal-max-bytes", "none"]), ["none", "none", "none", "none"]);
    assert_eq!(read_settings(&["--retention-bytes", "none"]), ["none", "none", "none", "16GiB"]);
    assert_eq!(read_settings(&["--memory"])[..3], ["1h", "1h", "256MiB"]);
    assert_eq!(read_settings(&["--personal"]), ["30d", "365d", "1GiB", "16GiB"]);
    assert_eq!(read_settings(&["--personal", "--journal-max-bytes", "512MiB"])[2..], ["256MiB", "512MiB"]);
    assert_eq!(read_settings(&["--personal", "--retention-events", "7d"])[..3], ["7d", "365d", "1GiB"]);
    let unlimited =
        ["--retention-events", "none", "--retention-decisions", "none", "--retention-bytes", "none"];
    assert_eq!(read_settings(&[&["--personal"][..], &unlimited].concat())[..3], ["none", "none", "none"]);
    assert_eq!(read_settings(&["--personal", "--memory"])[..3], ["1h", "1h", "256MiB"]);
    let overrides = ["--memory", "--retention-events", "none", "--retention-decisions", "2h"];
    assert_eq!(
        read_settings(&[&overrides[..], &["--retention-bytes", "none"]].concat())[..3],
        ["none", "2h", "none"]
    );
}

#[test]
fn an_abandoned_tool_completes_with_timeout() {
    let hub = HubProcess::start_in_memory_with(&["--hub-lease", "100ms"]);
    let client = hub.client();
    let mut stream = client.open_event_stream(&client.subscribe(REPLY_CAPABILITIES), None);
    let session = client.start_session();
    let call =
        r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_1","summary_normal":"x"}"#;
    assert_eq!(publish(&client, &session, call).status, 200);
    let completed = loop {
        let (kind, _, event) = stream.next();
        if kind == "tool.completed" {
            break event;
        }
    };
    assert_eq!((&completed["tool_call_id"], &completed["status"]), (&json!("call_1"), &json!("timeout")));
    assert_eq!(completed["summary_normal"], "The agent stopped responding. The tool had not finished.");
}
