//! `sayso listen` on the transports other than HTTP. On all of them, a person hears, answers and reconnects as over HTTP.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testing::hub::{HubProcess, reserved_address};
use testing::terminal::{AgentSession, ListenProcess};

use crate::listen::fake_hub::accepted_message;

/// A transport on which a hub accepts listeners beside HTTP.
#[derive(Clone, Copy, Debug)]
enum Transport {
    WebSocket,
    Unix,
    #[cfg(feature = "grpc")]
    Grpc,
}

const TRANSPORTS: &[Transport] = &[
    Transport::WebSocket,
    Transport::Unix,
    #[cfg(feature = "grpc")]
    Transport::Grpc,
];

/// The addresses and the data folder of a hub, which can be started several times.
struct HubPlace {
    folder: tempfile::TempDir,
    address: String,
    #[cfg_attr(not(feature = "grpc"), allow(dead_code, reason = "gRPC is not built"))]
    grpc_address: String,
    transport: Transport,
}

impl HubPlace {
    fn new(transport: Transport) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            address: reserved_address(),
            grpc_address: reserved_address(),
            transport,
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Starts a hub with these additional arguments.
    fn start_with(&self, arguments: &[&str]) -> HubProcess {
        let (data, socket) = (self.path("data"), self.path("hub.sock"));
        let mut all = vec!["--listen", &self.address, "--data", &data];
        if let Transport::Unix = self.transport {
            all.extend(["--unix", &socket]);
        }
        #[cfg(feature = "grpc")]
        if let Transport::Grpc = self.transport {
            all.extend(["--grpc-listen", &self.grpc_address]);
        }
        all.extend(arguments);
        HubProcess::start(&all)
    }

    fn start(&self) -> HubProcess {
        self.start_with(&["--open"])
    }

    fn url(&self) -> String {
        match self.transport {
            Transport::WebSocket => format!("ws://{}", self.address),
            Transport::Unix => format!("unix:{}", self.path("hub.sock")),
            #[cfg(feature = "grpc")]
            Transport::Grpc => format!("grpc://{}", self.grpc_address),
        }
    }

    fn listen_with(&self, arguments: &[&str]) -> ListenProcess {
        ListenProcess::start_at_url(&self.url(), arguments, |command| command)
    }

    /// Starts a listener and waits until it is connected.
    fn listen(&self) -> ListenProcess {
        let mut person = self.listen_with(&[]);
        person.read_until(&format!("notice: Listening to {}.", self.url()));
        person
    }
}

const ACCEPTED: &str = r#""decision":"accept","by":"reply""#;

#[test]
fn a_person_hears_and_answers_on_every_transport() {
    for transport in TRANSPORTS.iter().copied() {
        let place = HubPlace::new(transport);
        let hub = place.start();
        let mut person = place.listen();
        let agent = AgentSession::start(hub.client());
        person.read_until("session: local has started. Moving money.");
        agent.write_output("Your balance is enough.", true);
        person.read_until("agent: Your balance is enough.");
        let token = agent.ask_confirmation();
        person.read_until("ask: Yes or no?");
        // The answer and both requests go out on the listener's own connection.
        person.type_line("more time");
        person.read_until("ask: More time for question 1");
        person.type_line("quieter");
        person.read_until("status:");
        person.type_line("yes");
        let reply = agent.wait_for_reply(&token, 30);
        assert!(reply.contains(ACCEPTED), "{transport:?}: {reply}");
        person.read_until("answer: Accepted.");
        person.type_line("stop");
        person.read_until("answer: You stopped local.");
    }
}

#[test]
fn listening_resumes_after_a_hub_restart_on_every_transport() {
    for transport in TRANSPORTS.iter().copied() {
        let place = HubPlace::new(transport);
        let mut hub = place.start();
        let mut person = place.listen();
        let agent = AgentSession::start(hub.client());
        let token = agent.ask_confirmation();
        person.read_until("ask: Yes or no?");
        hub.kill();
        person.read_until("notice: Connection to the hub lost");
        person.type_line("yes");
        person.read_until("error: Your answer to question 1 did not arrive: there is no connection.");
        let hub = place.start();
        agent.publish(r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_1","summary_normal":"Looking."}"#);
        let lines = person.read_until("ask: Question 1 from local is still open");
        assert!(lines.contains(&"notice: Reconnected.".to_owned()), "{transport:?}: {lines:#?}");
        assert_eq!(lines.iter().filter(|line| *line == "tool: Looking.").count(), 1, "{lines:#?}");
        assert!(!lines.iter().any(|line| line.contains("has started")), "heard twice: {lines:#?}");
        person.type_line("yes");
        let reply = agent.wait_for_reply(&token, 30);
        assert!(reply.contains(ACCEPTED), "{transport:?}: {reply}");
        drop(hub);
    }
}

#[test]
fn a_pending_answer_is_written_and_the_subscription_closed_before_quitting() {
    for transport in TRANSPORTS.iter().copied() {
        let place = HubPlace::new(transport);
        let hub = place.start();
        let mut person = place.listen();
        let agents = [(); 2].map(|()| AgentSession::start(hub.client()));
        let tokens = agents.each_ref().map(AgentSession::ask_confirmation);
        person.read_until("ask: 2 questions are open.");
        person.type_line("yes 1\nquit");
        assert_eq!(person.wait_for_exit().1, 0);
        let replies = [0, 1].map(|at| agents[at].wait_for_reply(&tokens[at], 20));
        assert!(replies[0].contains(ACCEPTED), "{transport:?}: {replies:?}");
        assert!(replies[1].contains(r#""decision":"reject","by":"closure""#), "{transport:?}: {replies:?}");
    }
}

#[test]
fn a_hub_that_cannot_be_reached_is_explained_on_every_transport() {
    for (transport, reason) in [
        (Transport::WebSocket, "nothing is listening there"),
        (Transport::Unix, "no such file"),
        #[cfg(feature = "grpc")]
        (Transport::Grpc, "nothing is listening there"),
    ] {
        let place = HubPlace::new(transport);
        let (output, code) = place.listen_with(&[]).wait_for_exit();
        assert_eq!(code, 2, "{output:?}");
        let expected = format!("sayso: cannot reach {}: ", place.url());
        assert!(output[0].starts_with(&expected), "{output:?}");
        assert!(output[0].to_lowercase().contains(reason), "{output:?}");
    }
    let (output, code) = ListenProcess::start_at_url("unix:", &[], |command| command).wait_for_exit();
    assert_eq!(
        (output[0].as_str(), code),
        ("sayso: unix: must be followed by the path of the hub's socket", 2)
    );
    let (output, code) = ListenProcess::start_at_url("ftp://hub", &[], |command| command).wait_for_exit();
    assert_eq!(code, 2);
    assert!(output[0].ends_with("grpcs://HOST:PORT or unix:PATH"), "{output:?}");
}

#[test]
fn a_token_is_required_and_removing_it_ends_listening_without_a_retry() {
    for transport in TRANSPORTS.iter().filter(|transport| !matches!(transport, Transport::Unix)) {
        assert_token_is_needed(*transport);
    }
}

fn assert_token_is_needed(transport: Transport) {
    let place = HubPlace::new(transport);
    let (tokens, own) = (place.path("tokens"), place.path("own"));
    let created = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["token", "new", "--role", "listener", "--name", "ada", "--tokens", &tokens])
        .output()
        .unwrap();
    std::fs::write(&own, &created.stdout).unwrap();
    let hub = place.start_with(&["--tokens", &tokens]);
    for arguments in [&[][..], &["--token", "sayso_guess"]] {
        let (output, code) = place.listen_with(arguments).wait_for_exit();
        assert_eq!(code, 2);
        assert!(output[0].starts_with("sayso: The hub needs a valid token."), "{output:?}");
    }
    let mut person = place.listen_with(&["--token-file", &own]);
    person.read_until("notice: Listening to");
    std::fs::write(&tokens, "").unwrap();
    hub.signal("-HUP");
    person.read_until("notice: The hub no longer accepts your token");
    let (output, code) = person.wait_for_exit();
    assert_eq!((output, code), (vec!["sayso: The hub no longer accepts this token.".to_owned()], 2));
}

#[test]
fn a_signed_manifest_can_be_required_on_every_transport() {
    for transport in TRANSPORTS.iter().copied() {
        let place = HubPlace::new(transport);
        let _hub = place.start();
        let jwk = Path::new(&place.path("data")).join("manifest.jwk").to_str().unwrap().to_owned();
        let mut person = place.listen_with(&["--jwk", &jwk, "--signed-only"]);
        let verified = "notice: The hub is sayso-hub: its manifest is signed with a key you trust.";
        assert_eq!(person.next_line().unwrap(), verified, "{transport:?}");
        person.read_until("notice: Listening to");
        let other = place.path("other.jwk");
        let key = seal::es256::SigningKey::generate(&mut seal::SystemRandom);
        std::fs::write(&other, seal::Jwk::P256(key.verifying_key().clone()).to_json()).unwrap();
        let (output, code) = place.listen_with(&["--jwk", &other, "--signed-only"]).wait_for_exit();
        assert_eq!(code, 2, "{output:?}");
        assert!(output[0].starts_with("sayso: Not listening, because the hub must prove"), "{output:?}");
    }
}

#[test]
fn the_default_socket_has_a_short_name() {
    let folder = tempfile::tempdir().unwrap();
    let _hub = HubProcess::start_command(
        Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(["serve", "--memory", "--open", "--listen", "127.0.0.1:0", "--unix", "default"])
            .env("XDG_RUNTIME_DIR", folder.path()),
    );
    let mut person = ListenProcess::start_at_url("unix:default", &[], |command| {
        command.env("XDG_RUNTIME_DIR", folder.path())
    });
    let path = folder.path().join("aaep/sayso-hub.sock");
    person.read_until(&format!("notice: Listening to unix:{}.", path.display()));
}

#[test]
fn network_transports_work_over_tls() {
    for transport in TRANSPORTS.iter().filter(|transport| !matches!(transport, Transport::Unix)) {
        assert_tls_works(*transport);
    }
}

fn assert_tls_works(transport: Transport) {
    let place = HubPlace::new(transport);
    let generated = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (cert, key) = (place.path("hub.crt"), place.path("hub.key"));
    std::fs::write(&cert, generated.cert.pem()).unwrap();
    testing::cli::write_private_file(Path::new(&key), &generated.signing_key.serialize_pem());
    let _hub = place.start_with(&["--open", "--tls-cert", &cert, "--tls-key", &key]);
    let url = place.url().replacen("://", "s://", 1);
    let (output, code) = ListenProcess::start_at_url(&url, &[], |command| command).wait_for_exit();
    assert_eq!(code, 2);
    assert!(output[0].contains("is not signed by anyone this machine trusts"), "{output:?}");
    let mut person = ListenProcess::start_at_url(&url, &["--ca", &cert], |command| command);
    person.read_until(&format!("notice: Listening to {url}."));
}

#[test]
fn an_answer_that_may_have_been_lost_can_be_given_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.sock");
    let hub = UnixListener::bind(&path).unwrap();
    let url = format!("unix:{}", path.display());
    let mut by_hand = ListenProcess::start_at_url(&url, &[], |command| command);
    // This hub loses the connection when the answer arrives, so nobody knows whether the answer counts.
    let first = serve_question(&hub, || by_hand_answer(&mut by_hand));
    by_hand.read_until("notice: Connection to the hub lost");
    let second = serve_question(&hub, || {
        by_hand.read_until("ask: Question 1 from bank is still open");
        by_hand.type_line("yes");
    });
    assert_eq!([&first["reply_token"], &first["decision"]], ["rpl_1", "accept"]);
    assert_eq!([&second["reply_token"], &second["decision"]], ["rpl_1", "accept"]);
    drop(by_hand);
    let mut automatic = ListenProcess::start_at_url(&url, &["--auto", "reject"], |command| command);
    for _ in 0..2 {
        let reply = serve_question(&hub, || {
            automatic.read_until("answer: Question 1 was answered automatically");
        });
        assert_eq!(reply["decision"], "reject");
    }
}

fn by_hand_answer(person: &mut ListenProcess) {
    person.read_until("ask: Yes or no?");
    person.type_line("yes");
}

/// Accepts a connection, subscribes it, asks a question, waits for the answer and drops the connection.
fn serve_question(hub: &UnixListener, answer: impl FnOnce()) -> Value {
    let (stream, _) = hub.accept().unwrap();
    let mut lines = BufReader::new(&stream).lines();
    assert!(lines.next().unwrap().unwrap().contains("subscription.request"));
    let question = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.awaiting.confirmation","event_id":"evt_1","session_id":"sess_1","timestamp":"2026-05-24T14:00:00.000Z","producer":{"agent_id":"bank"},"urgency":"critical","action":"Send it.","consequence":"It is gone.","reply_token":"rpl_1","timeout_seconds":300,"default_decision":"reject"}"#;
    writeln!(&stream, "{}\n{question}", accepted_message("{}", "")).unwrap();
    answer();
    serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
}
