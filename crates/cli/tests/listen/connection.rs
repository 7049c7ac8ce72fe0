//! Connections to a hub that restarts, rejects the listener or is unreachable.

use std::io::Write;
use std::process::Command;

use testing::hub::{HubProcess, reserved_address};
use testing::messages::REPLY_CAPABILITIES;
use testing::terminal::{AgentSession, ListenProcess};

#[test]
fn a_failed_connection_is_explained() {
    let (output, code) = ListenProcess::start(&reserved_address(), &[]).wait_for_exit();
    assert_eq!(code, 2);
    assert!(
        output[0].starts_with("sayso: cannot reach http://127.0.0.1:")
            && output[0].ends_with("nothing is listening there"),
        "{output:?}"
    );
    for address in ["127.0.0.1:1/?x", "user@127.0.0.1:1", ""] {
        let (output, code) = ListenProcess::start(address, &[]).wait_for_exit();
        assert_eq!(code, 2);
        assert!(output[0].contains("is not a hub address"), "{output:?}");
    }
}

#[test]
fn a_hub_that_needs_a_token_says_so_and_accepts_one() {
    let folder = tempfile::tempdir().unwrap();
    let hub = HubProcess::start(&["--listen", "127.0.0.1:0", "--data", folder.path().to_str().unwrap()]);
    let (output, code) = ListenProcess::start(&hub.address, &[]).wait_for_exit();
    assert_eq!(code, 2);
    assert!(output[0].starts_with("sayso: The hub needs a valid token."), "{output:?}");
    let token = hub.admin_token();
    let file = folder.path().join("mine");
    std::fs::File::create(&file).unwrap().write_all(format!("{token}\n").as_bytes()).unwrap();
    let mut by_file = ListenProcess::start(&hub.address, &["--token-file", file.to_str().unwrap()]);
    by_file.read_until("Listening to");
    let mut by_variable =
        ListenProcess::start_with(&hub.address, &[], |command| command.env("SAYSO_TOKEN", &token));
    by_variable.read_until("Listening to");
    let (output, code) = ListenProcess::start(&hub.address, &["--token", "sayso_guess"]).wait_for_exit();
    assert_eq!(code, 2, "{output:?}");
}

#[test]
fn listening_resumes_after_the_hub_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let address = reserved_address();
    let start =
        || HubProcess::start(&["--open", "--listen", &address, "--data", folder.path().to_str().unwrap()]);
    let mut hub = start();
    let mut person = ListenProcess::start_connected(&address, &[]);
    let agent = AgentSession::start(hub.client());
    let token = agent.ask_confirmation();
    person.read_until("ask: Yes or no?");
    hub.kill();
    person.read_until("notice: Connection to the hub lost");
    person.type_line("status");
    let lines = person.read_until("status: Question 1 from local: ");
    let not_connected = "status: Not connected; still trying. This is what was last known:";
    assert_eq!(lines[0], not_connected);
    assert!(lines[1].starts_with("status: Session 1, local."), "{lines:#?}");
    let hub = start();
    let lines = person.read_until("is still open");
    let position_of = |line: &str| lines.iter().position(|printed| printed == line);
    let (reconnected, missed_nothing) =
        (position_of("notice: Reconnected."), position_of("notice: You missed nothing."));
    assert!(reconnected.is_some() && reconnected < missed_nothing, "{lines:#?}");
    let reminder = &lines[lines.len() - 1];
    assert!(reminder.starts_with("ask: Question 1 from local is still open: about"), "{reminder}");
    assert!(reminder.ends_with("Type repeat 1 to hear it."), "{reminder}");
    person.type_line("status");
    let lines = person.read_until("status: Question 1 from local: ");
    assert!(!lines.iter().any(|line| line.contains("Not connected")), "{lines:#?}");
    person.type_line("yes");
    assert!(agent.wait_for_reply(&token, 30).contains(r#""decision":"accept""#));
    let lines = person.read_until("answer: Accepted.");
    assert!(!lines.iter().any(|line| line.starts_with("ask: ")), "the question was repeated: {lines:#?}");
    drop(hub);
}

#[test]
fn events_during_a_hub_restart_are_announced_once() {
    let folder = tempfile::tempdir().unwrap();
    let address = reserved_address();
    let start =
        || HubProcess::start(&["--open", "--listen", &address, "--data", folder.path().to_str().unwrap()]);
    let mut hub = start();
    let mut person = ListenProcess::start_connected(&address, &[]);
    let agent = AgentSession::start(hub.client());
    person.read_until("has started");
    person.signal("-STOP");
    agent.publish(r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_1","summary_normal":"Looking."}"#);
    assert_eq!(hub.stop(), 0);
    let _hub = start();
    agent.publish(
        r#"{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_1","status":"success"}"#,
    );
    person.signal("-CONT");
    let lines = person.read_until("tool: The tool look has finished.");
    let tool_lines: Vec<_> = lines.iter().filter(|line| line.starts_with("tool: ")).collect();
    assert_eq!(tool_lines, ["tool: Looking.", "tool: The tool look has finished."]);
    assert!(lines.contains(&"notice: Reconnected.".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"notice: The hub is shutting down.".to_owned()), "{lines:#?}");
}

#[test]
fn a_hub_without_stored_state_gets_a_new_subscription() {
    let address = reserved_address();
    let start = || HubProcess::start(&["--open", "--memory", "--listen", &address]);
    let mut hub = start();
    let mut person = ListenProcess::start_connected(&address, &[]);
    hub.kill();
    person.read_until("Connection to the hub lost");
    let hub = start();
    person.read_until("notice: Reconnected, but what you missed was not stored.");
    person.read_until("notice: No agent is working.");
    AgentSession::start(hub.client());
    person.read_until("session: local has started. Moving money.");
}

#[test]
fn signals_exit_with_code_0_and_the_end_of_input_keeps_listening() {
    let hub = HubProcess::start_in_memory();
    for signal in ["-INT", "-TERM", "-HUP"] {
        let person = ListenProcess::start_connected(&hub.address, &[]);
        person.signal(signal);
        let goodbye = vec!["notice: You are no longer listening.".to_owned()];
        assert_eq!(person.wait_for_exit(), (goodbye, 0), "{signal}");
    }
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    person.send_eof();
    let agent = AgentSession::start(hub.client());
    person.read_until("has started");
    agent.publish(r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#);
    person.read_until("has finished");
}

#[test]
fn a_pending_answer_is_sent_before_quitting() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    let token = agent.ask_confirmation();
    person.read_until("ask: Yes or no?");
    person.type_line("yes\nquit");
    assert_eq!(person.wait_for_exit().1, 0);
    let reply = agent.wait_for_reply(&token, 0);
    assert!(reply.contains(r#""decision":"accept","by":"reply""#), "{reply}");
}

#[test]
fn tls_works_if_the_certificate_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let generated = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("hub.crt"), folder.path().join("hub.key"));
    std::fs::write(&cert, generated.cert.pem()).unwrap();
    testing::cli::write_private_file(&key, &generated.signing_key.serialize_pem());
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let hub = HubProcess::start(&[
        "--open",
        "--memory",
        "--listen",
        "127.0.0.1:0",
        "--tls-cert",
        cert,
        "--tls-key",
        key,
        "--demo-agent",
    ]);
    let url = format!("https://{}", hub.address);
    let (output, code) = ListenProcess::start_at_url(&url, &[], |command| command).wait_for_exit();
    assert_eq!(code, 2);
    let untrusted = "the hub's certificate is not signed by anyone this machine trusts; give the signer's certificate with --ca";
    assert_eq!(output, [format!("sayso: cannot reach {url}: {untrusted}")]);
    let other_name = url.replace("127.0.0.1", "localhost");
    let (output, _) =
        ListenProcess::start_at_url(&other_name, &["--ca", cert], |command| command).wait_for_exit();
    assert_eq!(
        output,
        [format!("sayso: cannot reach {other_name}: the hub's certificate is for another name")]
    );
    let mut person = ListenProcess::start_at_url(&url, &["--ca", cert], |command| command);
    person.read_until(&format!("Listening to {url}."));
    person.type_line("quit");
    assert_eq!(person.wait_for_exit(), (vec!["notice: You are no longer listening.".to_owned()], 0));
    let (output, code) = ListenProcess::start_at_url(&url, &["--ca", key], |command| command).wait_for_exit();
    assert_eq!(
        (output[0].as_str(), code),
        ("sayso: the file of trusted certificates contains no certificate", 2)
    );
}

#[test]
fn a_ca_certificate_used_as_the_server_certificate_gets_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut parameters = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let signer = rcgen::KeyPair::generate().unwrap();
    let (cert, key) = (folder.path().join("hub.crt"), folder.path().join("hub.key"));
    std::fs::write(&cert, parameters.self_signed(&signer).unwrap().pem()).unwrap();
    testing::cli::write_private_file(&key, &signer.serialize_pem());
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let hub = HubProcess::start_in_memory_with(&["--tls-cert", cert, "--tls-key", key]);
    let url = format!("https://{}", hub.address);
    let (output, code) =
        ListenProcess::start_at_url(&url, &["--ca", cert], |command| command).wait_for_exit();
    assert_eq!(code, 2);
    assert!(output[0].ends_with("it must be made with CA:FALSE"), "{output:?}");
}

#[test]
fn removing_the_token_ends_listening_without_a_retry() {
    let folder = tempfile::tempdir().unwrap();
    let [hub_token_file, listener_token_file] = ["tokens", "own"].map(|name| folder.path().join(name));
    let token_args = ["token", "new", "--role", "listener", "--name", "ada", "--tokens"];
    let created =
        Command::new(env!("CARGO_BIN_EXE_sayso")).args(token_args).arg(&hub_token_file).output().unwrap();
    assert!(created.status.success());
    std::fs::write(&listener_token_file, &created.stdout).unwrap();
    let hub = HubProcess::start(&[
        "--memory",
        "--listen",
        "127.0.0.1:0",
        "--tokens",
        hub_token_file.to_str().unwrap(),
    ]);
    let mut person = ListenProcess::start_connected(
        &hub.address,
        &["--token-file", listener_token_file.to_str().unwrap()],
    );
    std::fs::write(&hub_token_file, "").unwrap();
    hub.signal("-HUP");
    person.read_until("notice: The hub no longer accepts your token");
    let (output, code) = person.wait_for_exit();
    assert_eq!((output, code), (vec!["sayso: The hub no longer accepts this token.".to_owned()], 2));
}

#[test]
fn a_slow_listener_is_disconnected_and_resubscribes() {
    let hub = HubProcess::start_in_memory_with(&["--delivery-frames", "100"]);
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    person.read_until("has started");
    let token = agent.ask_confirmation();
    person.read_until("ask: Yes or no?");
    person.signal("-STOP");
    let long = "All of it. ".repeat(1400);
    for batch in 0..20 {
        let calls: Vec<_> = (0..30)
            .flat_map(|at| {
                let number = batch * 30 + at;
                [
                    format!(r#"{{"type":"aaep:agent.tool.invoked","tool":"t","tool_call_id":"call_{number}","summary_normal":"{long}"}}"#),
                    format!(r#"{{"type":"aaep:agent.tool.completed","tool":"t","tool_call_id":"call_{number}","status":"success","summary_normal":"{long}"}}"#),
                ]
            })
            .collect();
        let path = format!("/agent/v1/sessions/{}/events", agent.session_id);
        let client = agent.client.with_header("Content-Type: application/x-ndjson");
        assert_eq!(client.post(&path, &calls.join("\n")).status, 200);
    }
    hub.wait_for_log("slow");
    person.signal("-CONT");
    person.read_until("Reconnected, but what you missed was not stored.");
    // Nobody could answer in the meantime, so the hub rejected the question. A yes now must not appear to count.
    assert!(agent.wait_for_reply(&token, 30).contains(r#""decision":"reject","by":"closure""#));
    person.read_until("answer: Question 1 is no longer open. Its outcome is not known.");
    person.type_line("yes");
    person.read_until("error: No question is open. Nothing was sent.");
}

#[test]
fn quitting_closes_the_subscription() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    let token = agent.ask_confirmation();
    person.read_until("ask: Yes or no?");
    person.type_line("quit");
    // After a lost connection, the hub keeps the question open for 30 seconds. After a close, it must decide at once.
    let reply = agent.wait_for_reply(&token, 20);
    assert!(reply.contains(r#""decision":"reject","by":"closure""#), "{reply}");
    let goodbye =
        "notice: You are no longer listening. The agent continues. You have not answered question 1.";
    assert_eq!(person.wait_for_exit(), (vec![goodbye.to_owned()], 0));
}

#[test]
fn a_late_listener_hears_the_open_question_and_can_answer() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    // Another listener must be present, or the question is rejected immediately.
    let other_subscription = client.subscribe(REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&other_subscription, None);
    let agent = AgentSession::start(client.clone());
    let token = agent.ask_confirmation();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let lines = person.read_until("ask: Yes or no?");
    assert_eq!(lines[0], "agent: local is waiting for an answer. About: Moving money.");
    assert_eq!(lines[1], "ask: local: Send 5 euros to Ben.");
    person.type_line("yes");
    assert!(agent.wait_for_reply(&token, 30).contains(r#""decision":"accept","by":"reply""#));
    person.read_until("answer: Accepted.");
}

#[test]
fn a_gap_is_announced_with_the_current_state() {
    let folder = tempfile::tempdir().unwrap();
    let address = reserved_address();
    let data = folder.path().to_str().unwrap();
    let start = || HubProcess::start(&["--open", "--listen", &address, "--data", data, "--hub-replay", "5"]);
    let mut hub = start();
    let mut person = ListenProcess::start_connected(&address, &[]);
    let (first, second) = (AgentSession::start(hub.client()), AgentSession::start(hub.client()));
    first.publish(r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#);
    person.read_until("has started");
    person.read_until("has started");
    person.signal("-STOP");
    assert_eq!(hub.stop(), 0);
    let _hub = start();
    for number in 0..20 {
        first.publish(&format!(r#"{{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_{number}","summary_normal":"Looking."}}"#));
    }
    second.publish(r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#);
    person.signal("-CONT");
    person.read_until("notice: Some of what you missed is no longer stored. Here is how things stand.");
    person.read_until("agent: In session 1: local is using a tool.");
    person.read_until("session: In session 2: local has ended. How it ended is not known.");
}
