//! Attacks on a hub with several shards: evading limits, crossing from one shard to another, and reviving spent consents.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use testing::cli::{CommandOutput, create_token, run_sayso};
use testing::http::TestClient;
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;

const SHARDS: &str = "4";

/// A hub in a data folder, the agents `bank` and `shop`, the listener `ada`, who hears only her own sessions, and the
/// listener `ben`, who hears everything.
struct ShardedHub {
    hub: HubProcess,
    folder: tempfile::TempDir,
    bank: String,
    shop: String,
    ada: String,
    ben: String,
}

impl ShardedHub {
    fn start(shards: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens").to_str().unwrap().to_owned();
        let agent = |name| create_token(&file, &["--role", "agent", "--name", name, "--agent-id", name]);
        let (bank, shop) = (agent("bank"), agent("shop"));
        let ada = create_token(&file, &["--role", "listener", "--name", "ada", "--scope", "person:ada"]);
        let ben = create_token(&file, &["--role", "listener", "--name", "ben"]);
        let hub = start_hub(folder.path(), "data", shards, arguments);
        Self { hub, folder, bank, shop, ada, ben }
    }

    fn client(&self, token: &str) -> TestClient {
        self.hub.client().with_bearer(token)
    }

    fn bank(&self) -> TestClient {
        self.client(&self.bank)
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }
}

fn start_hub(folder: &Path, data: &str, shards: &str, arguments: &[&str]) -> HubProcess {
    let [data, tokens] = [data, "tokens"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    let fixed = ["--listen", "127.0.0.1:0", "--data", &data, "--tokens", &tokens, "--hub-shards", shards];
    HubProcess::start(&[&fixed, arguments].concat())
}

fn start_body(person: &str, members: &Value) -> String {
    let mut body = json!({
        "summary_normal": "Work.", "requested_by": format!("user:{person}"),
        "localization_hints": {"primary_language": "en"},
    });
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body.to_string()
}

fn start_for(client: &TestClient, person: &str) -> String {
    client.post("/agent/v1/sessions", &start_body(person, &json!({}))).json_str("session_id")
}

fn question(number: usize) -> String {
    json!({
        "summary_normal": "May I wipe the disk?", "action": format!("Wipe disk {number}."),
        "consequence": "All is gone.", "timeout_seconds": 600, "default_decision": "reject",
        "risk_level": "high", "irreversible": true, "tool": "wipe", "arguments": {"disk": 1},
    })
    .to_string()
}

/// Publishes the call that the questions are about. Returns the status.
fn call(client: &TestClient, session: &str, call_id: &str) -> u16 {
    let call = json!({
        "type": "aaep:agent.tool.invoked", "tool": "wipe", "tool_call_id": call_id, "risk_level": "high",
        "irreversible": true, "summary_normal": "Wiping.", "arguments": {"disk": 1},
    });
    client.post(&format!("/agent/v1/sessions/{session}/events"), &call.to_string()).status
}

fn ask(client: &TestClient, session: &str, number: usize) -> String {
    client
        .post(&format!("/agent/v1/sessions/{session}/confirmations"), &question(number))
        .json_str("reply_token")
}

fn shard_of(id: &str) -> &str {
    id.rsplit_once('x').unwrap().1
}

/// Returns sessions for enough people that at least two shards have one.
fn sessions_in_several_shards(client: &TestClient) -> Vec<String> {
    let sessions: Vec<_> = (0..6).map(|person| start_for(client, &format!("p{person}"))).collect();
    assert!(sessions.iter().map(|id| shard_of(id)).collect::<BTreeSet<_>>().len() > 1, "{sessions:?}");
    sessions
}

/// Runs the requests at the same time. Returns their statuses.
fn at_once(count: usize, request: impl Fn(usize) -> u16 + Sync) -> Vec<u16> {
    std::thread::scope(|scope| {
        let request = &request;
        let running: Vec<_> = (0..count).map(|number| scope.spawn(move || request(number))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn assert_accepted(statuses: &[u16], expected: usize, success: u16) {
    assert_eq!(statuses.iter().filter(|status| **status == success).count(), expected, "{statuses:?}");
    assert!(statuses.iter().all(|status| [success, 429].contains(status)), "{statuses:?}");
}

#[test]
fn simultaneous_requests_in_several_shards_exceed_no_limit() {
    let limits = [
        "--hub-sessions-per-principal",
        "6",
        "--hub-questions-per-minute",
        "5",
        "--hub-subscriptions-per-principal",
        "3",
    ];
    let sharded = ShardedHub::start(SHARDS, &limits);
    let (bank, ben) = (sharded.bank(), sharded.client(&sharded.ben));
    let subscriptions = at_once(12, |_| {
        let request = testing::messages::subscription_request(REPLY_CAPABILITIES);
        ben.post("/aaep/v1/subscriptions", &request).status
    });
    assert_accepted(&subscriptions, 3, 201);
    let started = at_once(24, |person| {
        bank.post("/agent/v1/sessions", &start_body(&format!("p{person}"), &json!({}))).status
    });
    assert_accepted(&started, 6, 201);
    // Each agent has its own limit.
    let shop = sharded.client(&sharded.shop);
    let sessions = sessions_in_several_shards(&shop);
    let asked = at_once(24, |number| {
        let path = format!("/agent/v1/sessions/{}/confirmations", sessions[number % sessions.len()]);
        // A session has only one open question about the same call.
        let own_call = question(number).replace(r#"{"disk":1}"#, &format!(r#"{{"disk":{number}}}"#));
        shop.post(&path, &own_call).status
    });
    // The limit may reset once, if a minute ends during the test.
    let accepted = asked.iter().filter(|status| **status == 201).count();
    assert!([5, 10].contains(&accepted), "{asked:?}");
}

#[test]
fn the_waits_of_a_token_in_several_shards_exceed_no_limit() {
    let sharded = ShardedHub::start(SHARDS, &["--hub-waits-per-principal", "4"]);
    let (bank, ben) = (sharded.bank(), sharded.client(&sharded.ben));
    let subscription = ben.subscribe(REPLY_CAPABILITIES);
    let _stream = ben.open_event_stream(&subscription, None);
    let questions: Vec<_> = sessions_in_several_shards(&bank)
        .into_iter()
        .enumerate()
        .map(|(number, session)| {
            let token = ask(&bank, &session, number);
            (session, token)
        })
        .collect();
    let (sender, statuses) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for (session, token) in questions.iter().cycle().take(12) {
            let (bank, sender) = (&bank, sender.clone());
            let path = format!("/agent/v1/sessions/{session}/replies/{token}?wait=300");
            scope.spawn(move || sender.send(bank.get(&path).status).unwrap());
        }
        // If a request fails, the receiver must not wait for it.
        drop(sender);
        // The others are refused while four wait.
        assert_eq!([(); 8].map(|()| statuses.recv().unwrap()), [429; 8]);
        for (_, token) in &questions {
            assert_eq!(ben.reply(&subscription, token, "reject").status, 204);
        }
        assert_eq!([(); 4].map(|()| statuses.recv().unwrap()), [200; 4]);
    });
}

#[test]
fn an_id_with_the_number_of_another_shard_finds_nothing() {
    let sharded = ShardedHub::start(SHARDS, &[]);
    let session = start_for(&sharded.bank(), "marisol");
    let token = ask(&sharded.bank(), &session, 0);
    let (digits, own) = session.rsplit_once('x').unwrap();
    let (token_digits, _) = token.rsplit_once('x').unwrap();
    let numbers =
        ["0", "1", "2", "3"].into_iter().filter(|number| *number != own).map(|number| format!("x{number}"));
    let suffixes = numbers.chain(["", "x4", "x999", "x00", "x-1", "X0", "xx0"].map(str::to_owned));
    for suffix in suffixes.chain([format!("x0{own}"), format!("x{own}x{own}")]) {
        let forged = [
            format!("/agent/v1/sessions/{digits}{suffix}/replies/{token}"),
            format!("/agent/v1/sessions/{session}/replies/{token_digits}{suffix}"),
        ];
        for (path, is_foreign_session) in forged.iter().zip([true, false]) {
            let answered = sharded.bank().get(path);
            assert_eq!(answered.status, 404, "{path}: {answered:?}");
            if is_foreign_session {
                // Nobody can tell a wrong id from a foreign one.
                let stranger = sharded.client(&sharded.shop).get(path);
                assert_eq!((stranger.status, stranger.body), (404, answered.body), "{path}");
            }
        }
    }
    assert_eq!(sharded.bank().get(&format!("/agent/v1/sessions/{session}/replies/{token}")).status, 200);
}

#[test]
fn an_answer_covers_no_call_in_another_shard() {
    let sharded = ShardedHub::start(SHARDS, &[]);
    let (bank, ben, ada) = (sharded.bank(), sharded.client(&sharded.ben), sharded.client(&sharded.ada));
    let [ben_subscription, ada_subscription] =
        [&ben, &ada].map(|client| client.subscribe(REPLY_CAPABILITIES));
    let _streams = [(&ben, &ben_subscription), (&ada, &ada_subscription)]
        .map(|(client, subscription)| client.open_event_stream(subscription, None));
    let sessions = sessions_in_several_shards(&bank);
    let asked = &sessions[0];
    let token = ask(&bank, asked, 0);
    let decision = || {
        let path = format!("/agent/v1/sessions/{asked}/replies/{token}");
        bank.get(&path).json()["decision"].clone()
    };
    // `ada` does not receive this session, and her subscription exists only in the shard of her own sessions.
    for subscription in [&ada_subscription, &ben_subscription] {
        assert_eq!(ada.reply(subscription, &token, "accept").status, 204);
    }
    let (digits, own) = token.rsplit_once('x').unwrap();
    for shard in ["0", "1", "2", "3"].into_iter().filter(|shard| *shard != own) {
        assert_eq!(ben.reply(&ben_subscription, &format!("{digits}x{shard}"), "accept").status, 204);
    }
    assert_eq!(decision(), Value::Null);
    assert_eq!(ben.reply(&ben_subscription, &token, "accept").status, 204);
    assert_eq!(decision(), "accept");
    for other in &sessions[1..] {
        assert_eq!(call(&bank, other, "call_1"), 422);
    }
    assert_eq!(call(&bank, asked, "call_1"), 200);
    assert_eq!(call(&bank, asked, "call_2"), 422, "a yes counts once");
}

#[test]
fn a_forged_resume_position_shows_nothing_outside_the_scope() {
    let sharded = ShardedHub::start(SHARDS, &[]);
    let (bank, ben, ada) = (sharded.bank(), sharded.client(&sharded.ben), sharded.client(&sharded.ada));
    let mut all = ben.open_event_stream(&ben.subscribe("{}"), None);
    let own = start_for(&bank, "ada");
    let foreign = sessions_in_several_shards(&bank);
    assert!(foreign.iter().any(|session| shard_of(session) == shard_of(&own)), "{own} {foreign:?}");
    let cursors_of_ben: Vec<String> = (0..=foreign.len()).map(|_| all.next().1).collect();
    let many = (0..256).map(|shard| format!("{shard}b")).collect::<Vec<_>>().join("-");
    let forged = [
        "at_0",
        "at_1",
        "at_-1",
        "at_18446744073709551615",
        "behind",
        "cur_",
        "cur_0",
        "cur_0a0-1a0-2a0-3a0",
        "cur_0a1-1a1-2a1-3a1",
        "cur_0b-0b",
        "cur_256a1",
        "cur_255a1",
        "cur_0a99999999999999999999",
        "evt_00000000000000000000000000000000x3",
    ];
    let long = format!("cur_0e{}", "f".repeat(10_000));
    let forged = forged.map(str::to_owned).into_iter().chain(cursors_of_ben);
    for position in forged.chain([format!("cur_{many}"), long]) {
        let mut stream = ada.open_event_stream(&ada.subscribe("{}"), Some(&position));
        let marker = start_for(&bank, "ada");
        loop {
            let (_, _, event) = stream.next();
            let session = event["session_id"].as_str().unwrap_or_default().to_owned();
            assert!(!foreign.contains(&session), "{position}: {event}");
            if session == marker {
                break;
            }
        }
        let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
        assert_eq!(bank.post(&format!("/agent/v1/sessions/{marker}/events"), end).status, 200);
        drop(stream);
    }
    let stolen = ben.subscribe("{}");
    let refused = ada.get(&format!("/aaep/v1/events?subscription_id={stolen}"));
    assert_eq!(refused.status, 404, "{refused:?}");
}

#[test]
fn a_repeated_request_is_executed_once_in_several_shards_and_after_resharding() {
    let mut sharded = ShardedHub::start("1", &[]);
    let start = |client: &TestClient, person: &str, key: &str| {
        let client = client.with_header(&format!("Idempotency-Key: {key}"));
        client.post("/agent/v1/sessions", &start_body(person, &json!({})))
    };
    let before: Vec<_> = (0..6)
        .map(|person| {
            start(&sharded.bank(), &format!("p{person}"), &format!("key-{person}")).json_str("session_id")
        })
        .collect();
    assert_eq!(sharded.hub.stop(), 0);
    assert_success(&reshard(&sharded.path("data"), SHARDS));
    sharded.hub = start_hub(sharded.folder.path(), "data", SHARDS, &[]);
    let bank = sharded.bank();
    for (person, session) in before.iter().enumerate() {
        let repeated = start(&bank, &format!("p{person}"), &format!("key-{person}"));
        assert_eq!(repeated.json_str("session_id"), *session);
    }
    let ids: BTreeSet<String> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| start(&bank, "p3", "the same key").json_str("session_id")))
            .collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 1, "{ids:?}");
    let other_token = start(&sharded.client(&sharded.shop), "p3", "the same key");
    assert!(!ids.contains(&other_token.json_str("session_id")));
}

#[test]
fn only_an_own_session_in_any_shard_can_be_a_parent() {
    let sharded = ShardedHub::start(SHARDS, &[]);
    let (bank, shop) = (sharded.bank(), sharded.client(&sharded.shop));
    let parent = start_for(&bank, "marisol");
    let (digits, own) = parent.rsplit_once('x').unwrap();
    let other = if own == "0" { "1" } else { "0" };
    let start_part = |client: &TestClient, person: &str, parent: &str| {
        client.post("/agent/v1/sessions", &start_body(person, &json!({"parent": parent}))).status
    };
    for person in 0..6 {
        let person = format!("p{person}");
        assert_eq!(start_part(&bank, &person, &parent), 201);
        assert_eq!(start_part(&shop, &person, &parent), 404);
        for forged in [format!("{digits}x{other}"), format!("{digits}x999"), digits.to_owned()] {
            assert_eq!(start_part(&bank, &person, &forged), 404, "{forged}");
        }
    }
}

fn reshard(data: &str, shards: &str) -> CommandOutput {
    run_sayso(&["reshard", "--data", data, "--shards", shards], "")
}

fn assert_success(output: &CommandOutput) {
    assert_eq!(output.exit_code, 0, "{} {}", output.stdout, output.stderr);
}

#[test]
fn resharding_and_restoring_revive_no_spent_consent() {
    let mut sharded = ShardedHub::start("1", &[]);
    let ask_and_accept = |sharded: &ShardedHub, sessions: &[String]| {
        let ben = sharded.client(&sharded.ben);
        let subscription = ben.subscribe(REPLY_CAPABILITIES);
        let _stream = ben.open_event_stream(&subscription, None);
        for (number, session) in sessions.iter().enumerate() {
            let token = ask(&sharded.bank(), session, number);
            assert_eq!(ben.reply(&subscription, &token, "accept").status, 204);
        }
    };
    let old = [start_for(&sharded.bank(), "p0"), start_for(&sharded.bank(), "p1")];
    ask_and_accept(&sharded, &old);
    let (data, copy) = (sharded.path("data"), sharded.path("copy"));
    assert_success(&run_sayso(&["backup", "--data", &data, &copy], ""));
    assert_eq!(call(&sharded.bank(), &old[0], "call_1"), 200);
    let running = reshard(&data, SHARDS);
    assert!(running.exit_code == 2 && running.stderr.contains("already open"), "{}", running.stderr);
    sharded.hub.kill();
    assert_success(&reshard(&data, SHARDS));
    sharded.hub = start_hub(sharded.folder.path(), "data", SHARDS, &[]);
    assert_eq!(call(&sharded.bank(), &old[0], "call_2"), 422, "spent before");
    assert_eq!(call(&sharded.bank(), &old[1], "call_1"), 200, "not spent before");
    let new = sessions_in_several_shards(&sharded.bank());
    ask_and_accept(&sharded, &new);
    let second_copy = sharded.path("second-copy");
    assert_success(&run_sayso(&["backup", "--data", &data, &second_copy], ""));
    for session in &new {
        assert_eq!(call(&sharded.bank(), session, "call_1"), 200);
    }
    assert_eq!(sharded.hub.stop(), 0);

    // A restored backup is marked. Resharding it must not remove the mark.
    for (source, name, must_reshard) in [(&copy, "restored", true), (&second_copy, "restored-shards", false)]
    {
        let restored = sharded.path(name);
        assert_success(&run_sayso(&["restore", source, "--data", &restored], ""));
        if must_reshard {
            assert_success(&reshard(&restored, SHARDS));
        }
        sharded.hub = start_hub(sharded.folder.path(), name, SHARDS, &[]);
        for session in old.iter().chain(new.iter().filter(|_| !must_reshard)) {
            assert_eq!(call(&sharded.bank(), session, "call_9"), 422, "{session} in {name}");
        }
        assert_eq!(sharded.hub.stop(), 0);
    }
}
