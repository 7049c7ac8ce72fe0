//! Who may answer, under which name an agent speaks, and what happens when a token or a browser sign-in ends.

use std::path::PathBuf;

use serde_json::Value;
use testing::cli::{CommandOutput, KillTimer, check_output, command, create_token, run_sayso};
use testing::http::{EventStream, TestClient, TestResponse};
use testing::hub::HubProcess;
use testing::messages::{REPLY_CAPABILITIES, subscription_request};
use testing::websocket::{SUBPROTOCOL_HEADER, WebSocketClient, upgrade};

const ADA: [&str; 4] = ["--role", "listener", "--name", "ada"];
const BEN: [&str; 4] = ["--role", "listener", "--name", "ben"];
const BANK: [&str; 6] = ["--role", "agent", "--name", "bank", "--agent-id", "bank"];
const JSON: &str = "Content-Type: application/json";

/// A temporary folder with a token file and the data of a hub.
struct TokenFolder(tempfile::TempDir);

impl TokenFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn token_file(&self) -> PathBuf {
        self.0.path().join("tokens")
    }

    fn add_token(&self, arguments: &[&str]) -> String {
        create_token(self.token_file().to_str().unwrap(), arguments)
    }

    /// Runs `sayso token` with these arguments and this folder's token file.
    fn run_token_command(&self, arguments: &[&str]) -> CommandOutput {
        run_sayso(&[&["token"], arguments, &["--tokens", self.token_file().to_str().unwrap()]].concat(), "")
    }

    fn token_lines(&self) -> Vec<String> {
        std::fs::read_to_string(self.token_file()).unwrap().lines().map(str::to_owned).collect()
    }

    fn start_hub(&self, arguments: &[&str]) -> HubProcess {
        let data = self.0.path().join("data");
        let [data, tokens] = [data, self.token_file()].map(|path| path.to_str().unwrap().to_owned());
        // Heartbeats are off. Otherwise, a test that waits for a missing event would never time out.
        let base =
            ["--listen", "127.0.0.1:0", "--data", &data, "--tokens", &tokens, "--http-heartbeat", "1h"];
        HubProcess::start(&[&base[..], arguments].concat())
    }
}

/// Starts a hub that must refuse the token file. Returns its standard error.
fn expect_start_failure(folder: &TokenFolder) -> String {
    let tokens = folder.token_file();
    let output = run_sayso(
        &["serve", "--memory", "--listen", "127.0.0.1:0", "--tokens", tokens.to_str().unwrap()],
        "",
    );
    assert_eq!(output.exit_code, 2, "{}", output.stdout);
    output.stderr
}

fn login(client: &TestClient, token: &str) -> TestResponse {
    client.with_header(JSON).post("/login", &format!(r#"{{"token":"{token}"}}"#))
}

/// Signs in and returns the cookie, as a browser sends it.
fn sign_in(hub: &HubProcess, token: &str) -> String {
    let response = login(&hub.client(), token);
    let line = response.head.lines().find_map(|line| line.strip_prefix("Set-Cookie: "));
    line.unwrap_or_else(|| panic!("{response:?}")).split(';').next().unwrap().to_owned()
}

/// Returns a client that acts as a page of the hub with this cookie.
fn page_client(hub: &HubProcess, cookie: &str) -> TestClient {
    hub.client()
        .with_header(&format!("Cookie: {cookie}"))
        .with_header(&format!("Origin: http://{}", hub.address))
}

fn open_stream(client: &TestClient) -> EventStream {
    client.open_event_stream(&client.subscribe(REPLY_CAPABILITIES), None)
}

fn open_socket(hub: &HubProcess, headers: &[(&str, &str)]) -> WebSocketClient {
    let mut socket = WebSocketClient::try_connect(hub, &[&[SUBPROTOCOL_HEADER], headers].concat()).unwrap();
    socket.send(&subscription_request(REPLY_CAPABILITIES));
    assert_eq!(socket.next()["type"], "subscription.accepted");
    socket
}

fn assert_closed_with_token_removed(mut stream: EventStream) {
    assert_eq!(stream.next().2["reason_code"], "token_removed");
    assert!(stream.is_closed());
}

/// Runs `attempt` with a short lifetime in seconds. If it panics, runs it again with longer ones, because on a busy machine
/// the lifetime may end before the connections are open.
fn retry_with_longer_lifetimes<T: Send + 'static>(attempt: impl Fn(u64) -> T + Clone + Send + 'static) -> T {
    for seconds in [2, 5, 12, 25] {
        let attempt = attempt.clone();
        if let Ok(result) = std::thread::spawn(move || attempt(seconds)).join() {
            return result;
        }
    }
    attempt(45)
}

#[test]
fn an_agent_cannot_answer_its_own_question_even_with_the_listeners_subscription() {
    let folder = TokenFolder::new();
    let [ada, bank] = [&ADA[..], &BANK].map(|arguments| folder.add_token(arguments));
    let observer = folder.add_token(&["--role", "observer", "--name", "olga"]);
    let hub = folder.start_hub(&[]);
    let [ada, bank, observer] = [ada, bank, observer].map(|token| hub.client().with_bearer(&token));
    let subscription = ada.subscribe(REPLY_CAPABILITIES);
    let _stream = ada.open_event_stream(&subscription, None);
    let session = bank.start_session();
    let question = bank.ask_confirmation(&session);
    let path = format!("/agent/v1/sessions/{session}/replies/{question}");
    for attacker in [&bank, &observer] {
        attacker.reply(&subscription, &question, "accept");
        assert_eq!(bank.get(&path).json_str("status"), "pending");
    }
    ada.reply(&subscription, &question, "reject");
    assert_eq!(bank.get(&path).json_str("decision"), "reject");
}

#[test]
fn an_agent_never_sees_the_id_of_a_subscription() {
    let folder = TokenFolder::new();
    let [ada, bank] = [&ADA[..], &BANK].map(|arguments| folder.add_token(arguments));
    let mut hub = folder.start_hub(&[]);
    let ada_client = hub.client().with_bearer(&ada);
    let authorization = format!("Bearer {bank}");
    let (mut socket, _) =
        upgrade(&hub.address, "/agent/v1/ws", &[("Authorization", &authorization)]).unwrap();
    let bank_client = hub.client().with_bearer(&bank);
    let subscription = ada_client.subscribe(REPLY_CAPABILITIES);
    let _stream = ada_client.open_event_stream(&subscription, None);
    let session = bank_client.start_session();
    let follow = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"session.follow","params":{{"session_id":"{session}"}}}}"#
    );
    socket.send(tungstenite::Message::text(follow)).unwrap();
    let question = bank_client.ask_confirmation(&session);
    assert!(socket.read().unwrap().to_text().unwrap().contains("\"id\":1"));
    ada_client.reply(&subscription, &question, "accept");
    let notification = socket.read().unwrap().into_text().unwrap().to_string();
    let path = format!("/agent/v1/sessions/{session}/replies/{question}");
    let answer = bank_client.get(&path).body;
    hub.kill();
    let restarted = folder.start_hub(&[]);
    let after_restart = restarted.client().with_bearer(&bank).get(&path).body;
    for text in [&notification, &answer, &after_restart] {
        assert!(text.contains("sayso:receipt") && text.contains(r#""principal":"ada""#), "{text}");
        assert!(!text.contains(&subscription) && !text.contains("subscription_id"), "{text}");
    }
}

#[test]
fn an_agent_gets_no_signed_receipt_of_another_agents_question() {
    let folder = TokenFolder::new();
    let [ada, bank] = [&ADA[..], &BANK].map(|arguments| folder.add_token(arguments));
    let eve = folder.add_token(&["--role", "agent", "--name", "eve", "--agent-id", "eve"]);
    let mut hub = folder.start_hub(&[]);
    let ada_client = hub.client().with_bearer(&ada);
    let subscription = ada_client.subscribe(REPLY_CAPABILITIES);
    let _stream = ada_client.open_event_stream(&subscription, None);
    let [bank_client, eve_client] = [&bank, &eve].map(|token| hub.client().with_bearer(token));
    let (session, own_session) = (bank_client.start_session(), eve_client.start_session());
    let question = bank_client.ask_confirmation(&session);
    ada_client.reply(&subscription, &question, "accept");
    let path = |session: &str| format!("/agent/v1/sessions/{session}/replies/{question}");
    assert!(bank_client.get(&path(&session)).body.contains("receipt_signature"));
    let assert_no_receipt = |hub: &HubProcess| {
        let [ada, eve_client] = [&ada, &eve].map(|token| hub.client().with_bearer(token));
        for client in [&hub.client(), &ada, &eve_client] {
            for (method, session) in
                [("GET", &session), ("DELETE", &session), ("GET", &own_session), ("DELETE", &own_session)]
            {
                let response = client.send(method, &path(session), "");
                assert!(matches!(response.status, 401 | 403 | 404), "{response:?}");
                assert!(!response.body.contains("receipt"), "{response:?}");
            }
        }
        let authorization = format!("Bearer {eve}");
        let (mut socket, _) =
            upgrade(&hub.address, "/agent/v1/ws", &[("Authorization", &authorization)]).unwrap();
        for (method, session, parameters) in [
            ("session.follow", &session, String::new()),
            ("session.withdraw", &session, format!(r#","reply_token":"{question}""#)),
            ("session.withdraw", &own_session, format!(r#","reply_token":"{question}""#)),
        ] {
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"session_id":"{session}"{parameters}}}}}"#
            );
            socket.send(tungstenite::Message::text(call)).unwrap();
            let response = socket.read().unwrap().into_text().unwrap().to_string();
            assert!(response.contains("-32004") && !response.contains("receipt"), "{response}");
        }
    };
    assert_no_receipt(&hub);
    hub.kill();
    assert_no_receipt(&folder.start_hub(&[]));
}

#[test]
fn a_token_file_with_duplicate_or_reserved_entries_is_refused() {
    let folder = TokenFolder::new();
    for arguments in [&ADA[..], &BANK] {
        folder.add_token(arguments);
    }
    let lines = folder.token_lines();
    let with_other_hash = |line: &str| {
        let start = line.find("sha256:").unwrap() + "sha256:".len();
        format!("{}{}{}", &line[..start], "0".repeat(64), &line[start + 64..])
    };
    let cases = [
        (with_other_hash(&lines[0]), "tokens:3: a token named \"ada\" already exists, in line 1"),
        (lines[0].replace("\"ada\"", "\"eve\""), "tokens:3: this token is already in line 1"),
        (
            with_other_hash(&lines[0]).replace("\"ada\"", "\"local\""),
            "tokens:3: the name \"local\" is reserved",
        ),
        (
            with_other_hash(&lines[1]).replace("\"name\":\"bank\"", "\"name\":\"evil\""),
            "tokens:3: the agent id \"bank\" belongs to the token \"bank\" in line 2",
        ),
    ];
    for (third_line, expected) in cases {
        std::fs::write(folder.token_file(), format!("{}\n{}\n{third_line}\n", lines[0], lines[1])).unwrap();
        let message = expect_start_failure(&folder);
        assert!(message.contains(expected), "{message}");
    }
}

/// Whether a process waits for the lock of a file.
fn is_waiting_for_lock(process: u32) -> bool {
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    locks.lines().any(|line| line.contains(" -> ") && line.contains(&format!(" {process} ")))
}

#[test]
fn tokens_created_at_the_same_time_never_get_the_same_name() {
    let folder = TokenFolder::new();
    let created = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..12)
            .map(|_| scope.spawn(|| folder.run_token_command(&[&["new"], &ADA[..]].concat()).exit_code))
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).filter(|code| *code == 0).count()
    });
    assert_eq!((created, folder.token_lines().len()), (1, 1));
    // While another program changes the file, `token new` waits and then sees the change.
    let tokens = folder.token_file();
    let lock = std::fs::File::create(tokens.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let arguments = [&["token", "new", "--tokens", tokens.to_str().unwrap()], &BEN[..]].concat();
    let mut run = command(&arguments).spawn().unwrap();
    let timer = KillTimer::start(run.id());
    // The file changes when the program waits for the lock. A program that does not wait has ended by then.
    while run.try_wait().unwrap().is_none() && !is_waiting_for_lock(run.id()) {
        std::thread::yield_now();
    }
    let line = folder.token_lines()[0].replace("\"ada\"", "\"ben\"");
    std::fs::write(&tokens, format!("{line}\n")).unwrap();
    lock.unlock().unwrap();
    let output = check_output(run.wait_with_output().unwrap());
    drop(timer);
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.contains("a token named \"ben\" already exists"), "{}", output.stderr);
}

#[test]
fn tokens_created_and_revoked_at_the_same_time_are_neither_lost_nor_duplicated() {
    let folder = TokenFolder::new();
    let new = |name: &str| folder.run_token_command(&["new", "--role", "listener", "--name", name]);
    let names = |prefix: &str| (0..8).map(|number| format!("{prefix}{number}")).collect::<Vec<_>>();
    let (old, added) = (names("old"), names("new"));
    for name in &old {
        assert_eq!(new(name).exit_code, 0);
    }
    let (files, create) = (&folder, &new);
    let tokens: Vec<String> = std::thread::scope(|scope| {
        let revocations: Vec<_> = old[..6]
            .iter()
            .map(|name| scope.spawn(move || files.run_token_command(&["revoke", name]).exit_code))
            .collect();
        let creations: Vec<_> = added.iter().map(|name| scope.spawn(move || create(name))).collect();
        assert!(revocations.into_iter().all(|run| run.join().unwrap() == 0));
        creations.into_iter().map(|run| run.join().unwrap().stdout.trim().to_owned()).collect()
    });
    let mut left: Vec<_> = folder
        .token_lines()
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().to_owned())
        .collect();
    left.sort_unstable();
    assert_eq!(left, [&added[..], &old[6..]].concat());
    // Each new token is the one that was printed.
    let hub = folder.start_hub(&[]);
    for token in tokens {
        let request = subscription_request(REPLY_CAPABILITIES);
        assert_eq!(hub.client().with_bearer(&token).post("/aaep/v1/subscriptions", &request).status, 201);
    }
}

#[test]
fn a_revocation_keeps_the_owner_of_the_token_file() {
    if !rustix::process::getuid().is_root() {
        eprintln!("skipped: only root can give a file to another user");
        return;
    }
    let folder = TokenFolder::new();
    let [_, _] = [&ADA, &BEN].map(|arguments| folder.add_token(arguments));
    std::os::unix::fs::chown(folder.token_file(), Some(65534), Some(65533)).unwrap();
    assert_eq!(folder.run_token_command(&["revoke", "ada"]).exit_code, 0);
    let metadata = std::fs::metadata(folder.token_file()).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
    let owner = std::os::unix::fs::MetadataExt::uid(&metadata);
    let group = std::os::unix::fs::MetadataExt::gid(&metadata);
    assert_eq!((owner, group, mode, folder.token_lines().len()), (65534, 65533, 0o600, 1));
}

#[test]
fn a_token_can_be_listed_and_revoked_but_not_read() {
    let folder = TokenFolder::new();
    let ada = folder.add_token(&["--role", "listener", "--name", "ada", "--scope", "agent:bank"]);
    folder.add_token(&[&BANK[..], &["--display-name", "Ada's Bank", "--expires", "90d"]].concat());
    let listed = folder.run_token_command(&["list"]);
    let lines: Vec<_> = listed.stdout.lines().collect();
    assert_eq!((listed.exit_code, lines.len()), (0, 3), "{}", listed.stdout);
    assert!(lines[0].starts_with("NAME  ROLE"), "{}", listed.stdout);
    for part in ["ada", "listener", "agent:bank", "never"] {
        assert!(lines[1].contains(part), "{}", lines[1]);
    }
    for part in ["bank", "agent", "Ada's Bank", "everything"] {
        assert!(lines[2].contains(part), "{}", lines[2]);
    }
    let times = lines[2].split_whitespace().filter(|word| word.ends_with('Z')).count();
    assert_eq!(times, 2, "created and expires: {}", lines[2]);
    let hash = folder.token_lines()[0].split("sha256:").nth(1).unwrap()[..64].to_owned();
    assert!(!listed.stdout.contains(&ada) && !listed.stdout.contains(&hash));

    let hub = folder.start_hub(&[]);
    let stream = open_stream(&hub.client().with_bearer(&ada));
    let revoked = folder.run_token_command(&["revoke", "ada"]);
    assert_eq!((revoked.exit_code, folder.token_lines().len()), (0, 1));
    assert!(revoked.stderr.contains("SIGHUP"), "{}", revoked.stderr);
    hub.signal("-HUP");
    assert!(hub.wait_for_log("reload").contains("removed=1"));
    assert_closed_with_token_removed(stream);
    assert_eq!(hub.client().with_bearer(&ada).post("/aaep/v1/subscriptions", "{}").status, 401);
    let again = folder.run_token_command(&["revoke", "ada"]);
    assert_eq!(again.exit_code, 2);
    assert!(again.stderr.contains("no token is named \"ada\""), "{}", again.stderr);
}

#[test]
fn an_expired_token_is_refused_and_loses_its_connections_without_a_reload() {
    retry_with_longer_lifetimes(|seconds| {
        let folder = TokenFolder::new();
        let expires = ["--expires".to_owned(), format!("{seconds}s")];
        let expires: Vec<_> = expires.iter().map(String::as_str).collect();
        folder.add_token(&BEN);
        let hub = folder.start_hub(&[]);
        let [ada, bank] =
            [&ADA[..], &BANK].map(|arguments| folder.add_token(&[arguments, &expires].concat()));
        hub.signal("-HUP");
        hub.wait_for_log("reloaded");
        let client = hub.client().with_bearer(&ada);
        let stream = open_stream(&client);
        let authorization = format!("Bearer {ada}");
        let socket = open_socket(&hub, &[("Authorization", &authorization)]);
        let agent_authorization = format!("Bearer {bank}");
        let (mut agent, _) =
            upgrade(&hub.address, "/agent/v1/ws", &[("Authorization", &agent_authorization)]).unwrap();
        assert_closed_with_token_removed(stream);
        assert_eq!(socket.into_close_code(), 4002);
        assert_eq!(testing::websocket::read_close_code(&mut agent), 4002);
        assert_eq!(client.post("/aaep/v1/subscriptions", "{}").status, 401);
        assert_eq!(login(&hub.client(), &ada).status, 401);
        let listed = folder.run_token_command(&["list"]).stdout;
        assert_eq!(listed.matches("(expired)").count(), 2, "{listed}");
    });
}

/// Starts a session with this agent name in the request. Returns the event that the listener receives.
fn start_session_with_name(stream: &mut EventStream, agent: &TestClient, name: &str) -> Value {
    let body = format!(
        r#"{{"summary_normal":"Hello.","localization_hints":{{"primary_language":"en"}},"producer":{{"agent_name":"{name}"}}}}"#
    );
    assert_eq!(agent.post("/agent/v1/sessions", &body).status, 201);
    stream.next().2
}

#[test]
fn the_name_of_an_agent_belongs_to_its_token() {
    let folder = TokenFolder::new();
    let ada = folder.add_token(&ADA);
    let bank = folder.add_token(&[&BANK[..], &["--display-name", "Ada's Bank"]].concat());
    let evil = folder.add_token(&["--role", "agent", "--name", "evil", "--agent-id", "evil"]);
    let hub = folder.start_hub(&[]);
    let [ada, bank, evil] = [ada, bank, evil].map(|token| hub.client().with_bearer(&token));
    let mut stream = open_stream(&ada);
    let verified = start_session_with_name(&mut stream, &bank, "Somebody Else");
    assert_eq!(verified["producer"]["agent_name"], "Ada's Bank");
    assert_eq!(verified["extensions"]["sayso"]["verified_name"], true);
    let unverified = start_session_with_name(&mut stream, &evil, "Ada's Bank");
    assert_eq!(unverified["producer"]["agent_name"], "Ada's Bank");
    assert_eq!(unverified["extensions"]["sayso"]["verified_name"], Value::Null);
    // A listener that joins late gets the same.
    let mut late = open_stream(&ada);
    for _ in 0..2 {
        let state = late.next().2;
        let is_bank = state["producer"]["agent_id"] == "bank";
        assert_eq!(state["extensions"]["sayso"]["verified_name"] == true, is_bank, "{state}");
    }
    let forged = r#"{"summary_normal":"Hello.","localization_hints":{"primary_language":"en"},"extensions":{"sayso":{"verified_name":true}}}"#;
    assert_eq!(evil.post("/agent/v1/sessions", forged).status, 400);
    let other_role = folder.run_token_command(&[&["new"], &BEN[..], &["--display-name", "X"]].concat());
    assert_eq!(other_role.exit_code, 2, "only agents have a display name");
}

#[test]
fn an_agent_in_the_hubs_process_has_a_verified_name() {
    let hub = HubProcess::start_in_memory_with(&["--demo-agent"]);
    let mut stream = open_stream(&hub.client());
    let response = hub.client().with_header(JSON).post("/demo", r#"{"text":"hello"}"#);
    assert!(response.status < 300, "{response:?}");
    let started = stream.next().2;
    assert_eq!(started["producer"]["agent_id"], "sayso-demo");
    assert_eq!(started["extensions"]["sayso"]["verified_name"], true);
}

#[test]
fn an_agent_id_belongs_to_one_token_unless_the_operator_shares_it() {
    let folder = TokenFolder::new();
    folder.add_token(&BANK);
    let second = ["new", "--role", "agent", "--name", "bank2", "--agent-id", "bank"];
    let refused = folder.run_token_command(&second);
    assert_eq!(refused.exit_code, 2);
    assert!(refused.stderr.contains("belongs to the token \"bank\" in line 1"), "{}", refused.stderr);
    let reserved =
        folder.run_token_command(&["new", "--role", "agent", "--name", "x", "--agent-id", "sayso-hub"]);
    assert!(reserved.stderr.contains("\"sayso-hub\" is reserved"), "{}", reserved.stderr);
    let shared = folder.run_token_command(&[&second[..], &["--share-agent-id"]].concat());
    assert_eq!(shared.exit_code, 0, "{}", shared.stderr);
    let hub = folder.start_hub(&[]);
    hub.client().with_bearer(shared.stdout.trim()).start_session();
}

#[test]
fn a_sign_out_closes_what_the_browser_opened() {
    let folder = TokenFolder::new();
    let [ada, bank] = [&ADA[..], &BANK].map(|arguments| folder.add_token(arguments));
    let hub = folder.start_hub(&[]);
    let [leaving, staying] = [0, 1].map(|_| sign_in(&hub, &ada));
    let origin = format!("http://{}", hub.address);
    let stream = open_stream(&page_client(&hub, &leaving));
    let socket = open_socket(&hub, &[("Cookie", &leaving), ("Origin", &origin)]);
    let mut other_browser = open_stream(&page_client(&hub, &staying));
    let mut other_program = open_stream(&hub.client().with_bearer(&ada));
    assert_eq!(page_client(&hub, &leaving).with_header(JSON).post("/logout", "").status, 204);
    assert_closed_with_token_removed(stream);
    assert_eq!(socket.into_close_code(), 4002);
    hub.client().with_bearer(&bank).start_session();
    assert_eq!(other_browser.next_type(), "session.started", "another sign-in stays valid");
    assert_eq!(other_program.next_type(), "session.started", "the token itself stays valid");
}

#[test]
fn the_end_of_a_sign_in_closes_what_the_browser_opened() {
    retry_with_longer_lifetimes(|seconds| {
        let folder = TokenFolder::new();
        let ada = folder.add_token(&ADA);
        let hub = folder.start_hub(&["--sign-in-lifetime", &format!("{seconds}s")]);
        let cookie = sign_in(&hub, &ada);
        let origin = format!("http://{}", hub.address);
        let stream = open_stream(&page_client(&hub, &cookie));
        let socket = open_socket(&hub, &[("Cookie", &cookie), ("Origin", &origin)]);
        assert_closed_with_token_removed(stream);
        assert_eq!(socket.into_close_code(), 4002);
        assert_eq!(page_client(&hub, &cookie).post("/aaep/v1/subscriptions", "{}").status, 401);
    });
}

#[test]
fn one_user_cannot_fill_the_table_of_sign_outs() {
    let folder = TokenFolder::new();
    let [ada, ben] = [&ADA, &BEN].map(|arguments| folder.add_token(arguments));
    let hub = folder.start_hub(&["--sign-in-sign-outs", "3"]);
    let is_signed_in =
        |cookie: &str| page_client(&hub, cookie).post("/aaep/v1/subscriptions", "{}").status != 401;
    let sign_out = |cookie: &str| page_client(&hub, cookie).with_header(JSON).post("/logout", "").status;
    let [ada_stays, ben_stays, ben_leaves] = [&ada, &ben, &ben].map(|token| sign_in(&hub, token));
    let stream = open_stream(&page_client(&hub, &ada_stays));
    for _ in 0..3 {
        assert_eq!(sign_out(&sign_in(&hub, &ada)), 204);
    }
    assert!(is_signed_in(&ada_stays));
    let last = sign_in(&hub, &ada);
    assert_eq!(sign_out(&last), 204);
    assert!(
        !is_signed_in(&last) && !is_signed_in(&ada_stays),
        "the fourth sign-out ends all of Ada's sign-ins"
    );
    assert_closed_with_token_removed(stream);
    assert!(is_signed_in(&sign_in(&hub, &ada)), "Ada can sign in again");
    assert_eq!(sign_out(&ben_leaves), 204);
    assert!(is_signed_in(&ben_stays) && !is_signed_in(&ben_leaves), "Ben is not affected");
    let stored = std::fs::read_to_string(folder.0.path().join("data/signed-out")).unwrap();
    assert_eq!(stored.lines().count(), 2, "{stored}");
}

#[test]
fn failed_sign_ins_behind_a_proxy_count_for_the_client_and_not_for_everybody() {
    let folder = TokenFolder::new();
    let ada = folder.add_token(&ADA);
    let hub =
        folder.start_hub(&["--http-trusted-proxies", "127.0.0.0/8", "--http-trusted-proxies", "10.0.0.1"]);
    let client = |forwarded_for: &str| hub.client().with_header(&format!("X-Forwarded-For: {forwarded_for}"));
    for _ in 0..10 {
        assert_eq!(login(&client("203.0.113.9"), "sayso_guess").status, 401);
    }
    for forwarded_for in ["203.0.113.9", "198.51.100.7, 203.0.113.9", "198.51.100.7, 203.0.113.9, 10.0.0.1"] {
        assert_eq!(
            login(&client(forwarded_for), &ada).status,
            429,
            "{forwarded_for}: the last untrusted address counts"
        );
    }
    let other = client("203.0.113.9, 198.51.100.7");
    let response = login(&other.with_header("X-Forwarded-Proto: https"), &ada);
    assert_eq!(response.status, 204);
    assert!(response.head.contains("; Secure"), "{}", response.head);
    assert!(!login(&other, &ada).head.contains("; Secure"), "the proxy was reached without TLS");

    let folder = TokenFolder::new();
    let ada = folder.add_token(&ADA);
    let hub = folder.start_hub(&[]);
    for number in 0..10 {
        let forged = hub.client().with_header(&format!("X-Forwarded-For: 198.51.100.{number}"));
        assert_eq!(login(&forged, "sayso_guess").status, 401);
    }
    let forged = hub.client().with_header("X-Forwarded-For: 203.0.113.1");
    assert_eq!(login(&forged, &ada).status, 429, "without trusted proxies the headers do not count");
    let invalid = run_sayso(&["serve", "--memory", "--http-trusted-proxies", "10.0.0.0/33"], "");
    assert_eq!(invalid.exit_code, 2);
    assert!(invalid.stderr.contains("http.trusted_proxies"), "{}", invalid.stderr);
}

#[test]
fn a_new_token_does_not_get_the_sessions_of_a_removed_token_with_its_name() {
    let folder = TokenFolder::new();
    let removed = folder.add_token(&BANK);
    let ada = folder.add_token(&ADA);
    let hub = folder.start_hub(&[]);
    let agent = hub.client().with_bearer(&removed);
    let session = agent.start_session();
    let listener = hub.client().with_bearer(&ada);
    let subscription = listener.subscribe(REPLY_CAPABILITIES);
    let _stream = listener.open_event_stream(&subscription, None);
    let question = agent.ask_confirmation(&session);
    assert_eq!(listener.reply(&subscription, &question, "accept").status, 204);
    let start = r#"{"summary_normal":"Paying bills.","localization_hints":{"primary_language":"en"}}"#;
    let first = agent.with_header("Idempotency-Key: start").post("/agent/v1/sessions", start);
    assert_eq!(folder.run_token_command(&["revoke", "bank"]).exit_code, 0);
    let added = folder.add_token(&BANK);
    hub.signal("-HUP");
    hub.wait_for_log("reloaded what=tokens");
    let agent = hub.client().with_bearer(&added);
    let path = format!("/agent/v1/sessions/{session}");
    assert_eq!(agent.get(&format!("{path}/replies/{question}")).status, 404);
    let text = r#"{"type":"aaep:agent.state.changed","to_state":"thinking","summary_normal":"Thinking."}"#;
    assert_eq!(agent.post(&format!("{path}/events"), text).status, 404);
    let second = agent.with_header("Idempotency-Key: start").post("/agent/v1/sessions", start);
    assert_ne!(second.json_str("session_id"), first.json_str("session_id"), "a key belongs to its token");
}
