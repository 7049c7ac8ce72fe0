//! SIGHUP reloads tokens and the certificate. Clients with a valid token are not affected.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::serve::agent_websocket::AgentWebSocket;
use crate::serve::sign_in::sign_in;
use testing::cli::create_token;
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;
use testing::websocket::{SUBPROTOCOL_HEADER, WebSocketClient};

const ADA: [&str; 4] = ["--role", "listener", "--name", "ada"];
const BEN: [&str; 4] = ["--role", "listener", "--name", "ben"];
const BANK: [&str; 6] = ["--role", "agent", "--name", "bank", "--agent-id", "bank"];
const SHOP: [&str; 6] = ["--role", "agent", "--name", "shop", "--agent-id", "shop"];

/// Longer than any successful operation should take.
const READ_TIMEOUT: std::time::Duration = std::time::Duration::from_mins(2);

/// A token file.
struct TokenFile(PathBuf);

impl TokenFile {
    fn new(folder: &Path) -> Self {
        Self(folder.join("tokens"))
    }

    fn add(&self, arguments: &[&str]) -> String {
        create_token(self.0.to_str().unwrap(), arguments)
    }

    /// Removes the token with this name from the file, as an operator would with an editor.
    fn remove(&self, name: &str) {
        let text = std::fs::read_to_string(&self.0).unwrap();
        let is_other = |line: &&str| !line.contains(&format!("\"name\":\"{name}\""));
        let remaining: String = text.split_inclusive('\n').filter(is_other).collect();
        assert_ne!(remaining, text);
        std::fs::write(&self.0, remaining).unwrap();
    }

    fn start_hub(&self) -> HubProcess {
        // Heartbeats are off. Otherwise, a test that waits for a missing event would never time out.
        let base_args = ["--memory", "--listen", "127.0.0.1:0", "--http-heartbeat", "1h"];
        HubProcess::start(&[&base_args[..], &["--tokens", self.0.to_str().unwrap()]].concat())
    }
}

/// Sends SIGHUP and returns the log line about the reload.
pub(crate) fn reload(hub: &HubProcess) -> String {
    hub.signal("-HUP");
    hub.wait_for_log("reload")
}

#[test]
fn a_new_token_works_and_a_removed_one_loses_its_connections() {
    let folder = tempfile::tempdir().unwrap();
    let file = TokenFile::new(folder.path());
    let [ada, ben, bank, shop] = [&ADA[..], &BEN, &BANK, &SHOP].map(|arguments| file.add(arguments));
    let hub = file.start_hub();
    let client_for = |token: &str| hub.client().with_bearer(token);
    let ada_subscription = client_for(&ada).subscribe(REPLY_CAPABILITIES);
    let mut ada_stream = client_for(&ada).open_event_stream(&ada_subscription, None);
    let ben_subscription = client_for(&ben).subscribe(REPLY_CAPABILITIES);
    let mut ben_stream = client_for(&ben).open_event_stream(&ben_subscription, None);
    let authorization = format!("Bearer {ben}");
    let mut ben_socket =
        WebSocketClient::try_connect(&hub, &[SUBPROTOCOL_HEADER, ("Authorization", &authorization)]).unwrap();
    ben_socket.send(&testing::messages::subscription_request(REPLY_CAPABILITIES));
    assert_eq!(ben_socket.next()["type"], "subscription.accepted");
    let cookie = sign_in(&hub, &ben);
    let page = hub
        .client()
        .with_header(&format!("Cookie: {cookie}"))
        .with_header(&format!("Origin: http://{}", hub.address));
    page.subscribe(REPLY_CAPABILITIES);
    let mut agents = [&bank, &shop].map(|token| {
        AgentWebSocket::connect(&hub, &[("Authorization", &format!("Bearer {token}"))]).unwrap()
    });
    let session = agents[0].start_session();
    assert_eq!([ada_stream.next_type(), ben_stream.next_type()], ["session.started", "session.started"]);
    let token = agents[0].ask(&session);
    let waiting_request = {
        let (shop, session) = (client_for(&shop), client_for(&shop).start_session());
        let token = shop.ask_confirmation(&session);
        std::thread::spawn(move || shop.get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=60")))
    };

    file.remove("ben");
    file.remove("shop");
    let cem = file.add(&["--role", "listener", "--name", "cem"]);
    assert_eq!(
        client_for(&cem).post("/aaep/v1/subscriptions", "{}").status,
        401,
        "a new token must not work before the reload"
    );
    let log_line = reload(&hub);
    for part in ["reloaded", "what=tokens", "known=3", "added=1", "removed=2"] {
        assert!(log_line.contains(part), "{part}: {log_line}");
    }

    client_for(&cem).subscribe("{}");
    let close =
        std::iter::from_fn(|| Some(ben_stream.next())).find(|(kind, ..)| kind == "subscription.close");
    assert_eq!(close.unwrap().2["reason_code"], "token_removed");
    assert!(ben_stream.is_closed());
    assert_eq!(ben_socket.into_close_code(), 4002);
    assert_eq!(waiting_request.join().unwrap().status, 401, "a request that waits must end, too");
    let [mut bank_agent, shop_agent] = agents;
    assert_eq!(shop_agent.into_close_code(), 4002);
    assert_eq!(client_for(&ben).reply(&ben_subscription, &token, "accept").status, 401);
    assert_eq!(page.post("/aaep/v1/subscriptions", "{}").status, 401, "Ben's browser is signed out");
    assert_eq!(client_for(&shop).post("/agent/v1/sessions", "{}").status, 401);

    assert_eq!(
        client_for(&ada).reply(&ada_subscription, &token, "accept").status,
        204,
        "Ada's stream is still open"
    );
    let resolution = std::iter::from_fn(|| Some(ada_stream.next()))
        .find(|(_, _, event)| event["extensions"]["sayso"]["reply_token"] == json!(token));
    assert_eq!(resolution.unwrap().2["extensions"]["sayso"]["decision"], "accept");
    assert_eq!(
        bank_agent.next_notification()["params"]["decision"],
        "accept",
        "the agent is still connected"
    );
}

#[test]
fn a_replaced_or_weakened_token_loses_its_connections() {
    let folder = tempfile::tempdir().unwrap();
    let file = TokenFile::new(folder.path());
    let [ada, ben] = [&ADA, &BEN].map(|arguments| file.add(arguments));
    let hub = file.start_hub();
    let mut connections = [&ada, &ben].map(|token| {
        let client = hub.client().with_bearer(token);
        let subscription = client.subscribe("{}");
        let stream = client.open_event_stream(&subscription, None);
        (subscription, stream)
    });
    file.remove("ada");
    let new_ada = file.add(&ADA);
    // The same token with a weaker role.
    let text = std::fs::read_to_string(&file.0).unwrap();
    let weaken = |line: &str| {
        if line.contains("\"ben\"") { line.replace("listener", "observer") } else { line.to_owned() }
    };
    let weaker_text: String = text.split_inclusive('\n').map(weaken).collect();
    assert_ne!(weaker_text, text);
    std::fs::write(&file.0, weaker_text).unwrap();
    assert!(reload(&hub).contains("added=2 removed=2"));
    for (_, stream) in &mut connections {
        assert_eq!(stream.next().2["reason_code"], "token_removed");
        assert!(stream.is_closed());
    }
    assert_eq!(hub.client().with_bearer(&ada).post("/aaep/v1/subscriptions", "{}").status, 401);
    for (token, (subscription, _)) in [&new_ada, &ben].into_iter().zip(&connections) {
        let client = hub.client().with_bearer(token);
        let stream_client = client.with_header("Accept: text/event-stream");
        assert_eq!(stream_client.get(&format!("/aaep/v1/events?subscription_id={subscription}")).status, 404);
        client.subscribe("{}");
    }
}

#[test]
fn rights_removed_while_the_hub_was_down_stay_removed() {
    let folder = tempfile::tempdir().unwrap();
    let file = TokenFile::new(folder.path());
    let data = folder.path().join("data");
    let arguments =
        ["--listen", "127.0.0.1:0", "--data", data.to_str().unwrap(), "--tokens", file.0.to_str().unwrap()];
    let ada = file.add(&ADA);
    let mut hub = HubProcess::start(&arguments);
    let subscription = hub.client().with_bearer(&ada).subscribe(REPLY_CAPABILITIES);
    hub.kill();
    file.remove("ada");
    let narrower_token = file.add(&["--role", "listener", "--name", "ada", "--scope", "agent:shop"]);
    let hub = HubProcess::start(&arguments);
    let client = hub.client().with_bearer(&narrower_token).with_header("Accept: text/event-stream");
    assert_eq!(client.get(&format!("/aaep/v1/events?subscription_id={subscription}")).status, 404);
}

#[test]
fn an_invalid_file_leaves_the_old_tokens_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let file = TokenFile::new(folder.path());
    let ada = file.add(&ADA);
    let mut hub = file.start_hub();
    let client = hub.client().with_bearer(&ada);
    let mut stream = client.open_event_stream(&client.subscribe("{}"), None);
    let valid = std::fs::read_to_string(&file.0).unwrap();
    let corruptions: [(&dyn Fn(), &str); 3] = [
        (&|| std::fs::write(&file.0, format!("{valid}nonsense\n")).unwrap(), "tokens:2: not a valid token"),
        (&|| std::fs::remove_file(&file.0).unwrap(), "no such file"),
        (
            &|| {
                use std::os::unix::fs::PermissionsExt as _;
                std::fs::write(&file.0, &valid).unwrap();
                std::fs::set_permissions(&file.0, std::fs::Permissions::from_mode(0o644)).unwrap();
            },
            "chmod 600",
        ),
    ];
    for (corrupt, reason) in corruptions {
        corrupt();
        let log_line = reload(&hub);
        for part in ["error reload.failed what=tokens", reason, "stays in force"] {
            assert!(log_line.to_lowercase().contains(part), "{part}: {log_line}");
        }
        client.subscribe("{}");
    }
    std::fs::remove_file(&file.0).unwrap();
    let bank = file.add(&BANK);
    std::fs::write(&file.0, valid + &std::fs::read_to_string(&file.0).unwrap()).unwrap();
    assert!(reload(&hub).contains("known=2 added=1 removed=0"));
    hub.client().with_bearer(&bank).start_session();
    assert_eq!(stream.next_type(), "session.started", "the first stream is still open");
    assert_eq!(hub.stop(), 0);
}

#[test]
fn a_reload_without_files_says_so() {
    let mut hub = HubProcess::start_in_memory();
    assert!(reload(&hub).contains("what=nothing"));
    assert_eq!(hub.client().get("/healthz").status, 200);
    assert_eq!(hub.stop(), 0);
}

#[test]
fn closing_the_terminal_stops_the_hub() {
    use std::fs::File;
    use std::io::{BufRead, BufReader, IsTerminal};
    use std::process::Stdio;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    let (controller, name) = testing::terminal::pseudo_terminal();
    let terminal = File::options().read(true).write(true).open(&name).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    command.args(["serve", "--memory", "--open", "--listen", "127.0.0.1:0"]);
    command.stdin(terminal.try_clone().unwrap()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let id = child.id().to_string();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let (line_sender, log_lines) = channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| line_sender.send(line)));
    let mut wait_for = |part: &str| loop {
        let Ok(line) = log_lines.recv_timeout(READ_TIMEOUT) else {
            child.kill().unwrap();
            panic!("no {part}");
        };
        if line.contains(part) {
            return;
        }
    };
    let send_hangup = || testing::cli::send_signal(&id, "-HUP");
    wait_for("listening on ");
    send_hangup();
    wait_for("reloaded");
    drop(controller);
    // A process that another test is starting may briefly hold a copy of the descriptor.
    let deadline = Instant::now() + READ_TIMEOUT;
    while terminal.is_terminal() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    send_hangup();
    wait_for("stopping");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn creating_a_token_explains_how_to_reload_the_hub() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    let output = testing::cli::run_sayso(
        &["token", "new", "--tokens", file.to_str().unwrap(), "--role", "listener", "--name", "ada"],
        "",
    );
    assert_eq!((output.exit_code, output.stdout.lines().count()), (0, 1));
    assert!(output.stderr.contains("kill -HUP"), "{}", output.stderr);
}

#[test]
fn a_hub_that_has_just_reported_its_address_stops_cleanly() {
    for _ in 0..10 {
        assert_eq!(HubProcess::start_in_memory().stop(), 0);
    }
}
