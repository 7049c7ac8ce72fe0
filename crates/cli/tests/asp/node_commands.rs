//! The commands that talk to a running node: `sayso asp invite`, `send`, `show`, `watch`, `transcript` and `trust`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testing::cli::{CommandOutput, binary, check_output, create_token, run_sayso};
use testing::hub::{HubProcess, reserved_address};

/// Two nodes that have pinned each other's cards. The fields with `press` belong to the invited side.
pub(crate) struct TwoNodes {
    buyer: HubProcess,
    press: HubProcess,
    press_agent: String,
    folder: tempfile::TempDir,
}

impl TwoNodes {
    fn start() -> Self {
        Self::start_with("", "The Press")
    }

    /// Starts the nodes with this policy for the buyer and this name for the press.
    fn start_with(buyer_policy: &str, press_name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let addresses = [reserved_address(), reserved_address()];
        for (name, display_name, address) in
            [("buyer", "The Buyer", &addresses[0]), ("press", press_name, &addresses[1])]
        {
            let agent = format!("agent://{address}/{name}");
            let run = run_in(
                folder.path(),
                &["asp", "keygen", "--agent", &agent, "--name", display_name, "--out", name],
            );
            assert_eq!(run.exit_code, 0, "{}", run.stderr);
        }
        std::fs::write(folder.path().join("policy.toml"), buyer_policy).unwrap();
        std::fs::write(folder.path().join("peers.txt"), "buyer/card.json\npress/card.json\n").unwrap();
        let start = |name: &str, address: &str| {
            let mut command = Command::new(binary());
            command.args(["asp", "serve", "--open", "--memory", "--peers", "peers.txt"]);
            command.args(["--identity", name, "--listen", address]);
            if name == "buyer" && !buyer_policy.is_empty() {
                command.args(["--policy", "policy.toml"]);
            }
            HubProcess::start_command(command.current_dir(folder.path()))
        };
        let (buyer, press) = (start("buyer", &addresses[0]), start("press", &addresses[1]));
        Self { buyer, press, press_agent: format!("agent://{}/press", addresses[1]), folder }
    }

    /// Runs a command for the buyer.
    fn buyer(&self, arguments: &[&str]) -> CommandOutput {
        let node = format!("http://{}", self.buyer.address);
        run_in(self.folder.path(), &[&["asp"], arguments, &["--node", &node]].concat())
    }

    /// Runs a command for the press.
    fn press(&self, arguments: &[&str]) -> CommandOutput {
        let node = format!("http://{}", self.press.address);
        run_in(self.folder.path(), &[&["asp"], arguments, &["--node", &node]].concat())
    }

    /// Opens a session in which both sides can talk.
    fn introduced(&self, subject: &str) -> String {
        let run = self.buyer(&["invite", &self.press_agent, subject]);
        assert_eq!(run.exit_code, 0, "{}", run.stderr);
        let session = run.stdout.trim().to_owned();
        let body = format!(r#"{{"referenceId":"prop_{session}"}}"#);
        let accepted = self.press(&["send", &session, "ACCEPT", &body, "--wait"]);
        assert_eq!(accepted.exit_code, 0, "{}", accepted.stderr);
        // The nodes introduce the agents to each other.
        loop {
            let (view, _) = self.view(&session);
            if view["state"] == "INTRODUCED" {
                return session;
            }
        }
    }

    fn view(&self, session: &str) -> (Value, String) {
        let run = self.buyer(&["show", session, "--json"]);
        assert_eq!(run.exit_code, 0, "{}", run.stderr);
        (serde_json::from_str(&run.stdout).unwrap(), run.stdout)
    }
}

/// Runs the binary in a folder, without settings from the environment.
fn run_in(folder: &Path, arguments: &[&str]) -> CommandOutput {
    let mut command = testing::cli::command(arguments);
    for name in ["SAYSO_ASP_URL", "SAYSO_TOKEN", "SAYSO_URL"] {
        command.env_remove(name);
    }
    check_output(command.current_dir(folder).output().unwrap())
}

const UNKNOWN_SESSION: &str = "0190a1b2-0000-7000-8000-000000000000";

#[test]
fn messages_are_sent_described_and_refused() {
    let nodes = TwoNodes::start();
    let session = nodes.introduced("two cards");
    let propose = r#"{"proposalId":"prop_1","type":"service","subject":"two cards","terms":{}}"#;
    let sent = nodes.buyer(&["send", &session, "propose", propose, "--wait"]);
    assert_eq!(sent.exit_code, 0, "{}", sent.stderr);
    let mut words = sent.stdout.split_whitespace();
    assert_eq!((words.next().unwrap().len(), words.next(), words.next()), (36, Some("CONVERSING"), None));
    let again = nodes.buyer(&["send", &session, "PROPOSE", propose, "--wait"]);
    assert_eq!((again.exit_code, again.stdout.as_str()), (1, ""));
    assert!(again.stderr.starts_with("sayso: refused: duplicate: "), "{}", again.stderr);
    let own = nodes.buyer(&["send", &session, "ACCEPT", r#"{"referenceId":"prop_1"}"#]);
    assert_eq!(own.exit_code, 1, "{}", own.stderr);
    let shown = nodes.press(&["show", &session]);
    assert_eq!((shown.exit_code, shown.stderr.as_str()), (0, ""));
    for expected in [
        "invited your agent: two cards.",
        "Trust in the other side: 37 of 100, level 1.",
        "State: CONVERSING. Either side can act.",
        "Deadline (session): ",
        "2. ",
        "Your agent accepts the invitation. (ACCEPT)",
        "The Buyer proposes two cards. (PROPOSE prop_1)",
    ] {
        assert!(shown.stdout.contains(expected), "{expected:?} is not in:\n{}", shown.stdout);
    }
    let listed = nodes.press(&["show"]);
    assert!(
        listed.stdout.starts_with(&format!("{session} CONVERSING invited by The Buyer (agent://")),
        "{}",
        listed.stdout
    );
    let (view, _) = nodes.view(&session);
    assert_eq!((view["messageCount"].as_u64(), view["waitingFor"].as_str()), (Some(5), Some("anyone")));
}

#[test]
fn a_body_can_come_from_a_file() {
    let nodes = TwoNodes::start();
    let session = nodes.introduced("two cards");
    let path = nodes.folder.path().join("query.json");
    std::fs::write(&path, r#"{"queryId":"qry_1","queryType":"price","subject":"how much?"}"#).unwrap();
    let sent = nodes.buyer(&["send", &session, "QUERY", "@query.json"]);
    assert_eq!(sent.exit_code, 0, "{}", sent.stderr);
    for (body, expected) in [
        ("@missing.json", "sayso: cannot read missing.json: there is no such file\n"),
        ("[1]", "sayso: the body must be a JSON object\n"),
        ("{", "sayso: the body is not JSON: "),
    ] {
        let run = nodes.buyer(&["send", &session, "QUERY", body]);
        assert_eq!((run.exit_code, run.stdout.as_str()), (2, ""));
        assert!(run.stderr.starts_with(expected), "{}", run.stderr);
    }
    let run = nodes.buyer(&["send", &session, "QUERY", r#"{"queryId":"qry_2"}"#]);
    assert_eq!(run.exit_code, 1, "{}", run.stderr);
    assert!(run.stderr.starts_with("sayso: refused: schema_unsupported: "), "{}", run.stderr);
    let terms = nodes.buyer(&["invite", &nodes.press_agent, "x", "--terms", "[]"]);
    assert_eq!((terms.exit_code, terms.stderr.as_str()), (2, "sayso: terms must be a JSON object\n"));
}

#[test]
fn watch_follows_a_session_to_its_end() {
    let nodes = TwoNodes::start();
    let session = nodes.introduced("two cards");
    let watch = |address: &str| {
        testing::cli::command(&["asp", "watch", &session, "--node", &format!("http://{address}")])
            .spawn()
            .unwrap()
    };
    let watching = [watch(&nodes.buyer.address), watch(&nodes.press.address)];
    let closed = nodes.press(&["send", &session, "CLOSE", r#"{"reason":"no paper"}"#, "--wait"]);
    assert_eq!(closed.exit_code, 0, "{}", closed.stderr);
    for (process, closing_line) in
        watching.into_iter().zip(["The Press closes the session: no paper.", "Your agent closes the session"])
    {
        let run = check_output(process.wait_with_output().unwrap());
        assert_eq!((run.exit_code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
        assert!(run.stdout.contains(closing_line), "{}", run.stdout);
        assert_eq!(run.stdout.matches("(CLOSE)").count(), 1, "{}", run.stdout);
        assert_eq!(run.stdout.matches("(INFORM)").count(), 2, "{}", run.stdout);
        assert!(
            run.stdout.ends_with("State: CLOSED.\nThe session ended in state CLOSED: no paper.\n"),
            "{}",
            run.stdout
        );
    }
    // Later, it prints the same.
    let later = nodes.buyer(&["watch", &session]);
    assert_eq!(later.exit_code, 0);
    assert!(later.stdout.ends_with("The session ended in state CLOSED: no paper.\n"), "{}", later.stdout);
}

#[test]
fn a_rejected_invitation_ends_with_exit_code_1() {
    let nodes = TwoNodes::start();
    let node = format!("http://{}", nodes.buyer.address);
    let inviting =
        testing::cli::command(&["asp", "invite", &nodes.press_agent, "two cards", "--wait", "--node", &node])
            .spawn()
            .unwrap();
    let session = loop {
        let listed = nodes.press(&["show"]);
        if let Some(session) = listed.stdout.split_whitespace().next() {
            break session.to_owned();
        }
    };
    let body =
        format!(r#"{{"code":"capacity_unavailable","reason":"booked","referenceId":"prop_{session}"}}"#);
    let rejected = nodes.press(&["send", &session, "REJECT", &body]);
    assert_eq!(rejected.exit_code, 0, "{}", rejected.stderr);
    let invited = check_output(inviting.wait_with_output().unwrap());
    assert_eq!((invited.exit_code, invited.stdout.trim()), (1, session.as_str()));
    assert!(
        invited.stderr.contains("sayso: refused: the session ended in state FAILED: "),
        "{}",
        invited.stderr
    );
    assert_eq!(nodes.buyer(&["watch", &session]).exit_code, 1);
}

#[test]
fn transcripts_of_both_sides_are_identical_and_verified() {
    let nodes = TwoNodes::start();
    let session = nodes.introduced("two cards");
    nodes.buyer(&["send", &session, "CLOSE", r#"{"reason":"done"}"#, "--wait"]);
    let written = nodes.buyer(&["transcript", &session, "-o", "talk.jsonl", "--cards", "cards.jsonl"]);
    assert_eq!((written.exit_code, written.stdout.as_str()), (0, ""), "{}", written.stderr);
    let printed = nodes.press(&["transcript", &session]);
    let file = std::fs::read_to_string(nodes.folder.path().join("talk.jsonl")).unwrap();
    assert_eq!((printed.stdout == file, printed.stderr.as_str()), (true, ""));
    let verified = run_in(nodes.folder.path(), &["asp", "verify", "talk.jsonl", "--cards", "cards.jsonl"]);
    assert_eq!(verified.exit_code, 0, "{}", verified.stdout);
    assert!(verified.stdout.starts_with("talk.jsonl: 5 messages"), "{}", verified.stdout);
    let same = nodes.buyer(&["transcript", &session, "-o", "x", "--cards", "x"]);
    assert_eq!(
        (same.exit_code, same.stderr.as_str()),
        (2, "sayso: the transcript and the cards cannot be the same file\n")
    );
    let nowhere = nodes.buyer(&["transcript", &session, "-o", "missing/x"]);
    assert_eq!(nowhere.exit_code, 2);
    assert!(nowhere.stderr.contains("cannot write missing/x"), "{}", nowhere.stderr);
}

#[test]
fn trust_is_explained_with_its_events() {
    let nodes = TwoNodes::start();
    let stranger = nodes.buyer(&["trust", "agent://nobody.example/x"]);
    assert!(
        stranger.stdout.starts_with(
            "agent://nobody.example/x has a trust score of 17.0 out of 100. That is level 0, unverified.\n"
        ),
        "{}",
        stranger.stdout
    );
    let known = nodes.buyer(&["trust", &nodes.press_agent]);
    assert_eq!((known.exit_code, known.stderr.as_str()), (0, ""));
    for expected in [
        "has a trust score of 37.0 out of 100. That is level 1, verified.",
        "Identity: 100.0 of 100, with a weight of 0.20, adds 20.0 points.",
        "  its card was pinned by the operator: 1\n",
        "card_pinned\n",
    ] {
        assert!(known.stdout.contains(expected), "{expected:?} is not in:\n{}", known.stdout);
    }
    // The parts add up to the score.
    let points = known
        .stdout
        .lines()
        .filter_map(|line| line.split_once("adds ")?.1.split_once(" points")?.0.parse::<f64>().ok());
    let (count, sum) = points.fold((0, 0.0), |(count, sum), points| (count + 1, sum + points));
    assert!(count == 8 && (sum - 37.0).abs() < 0.5, "{count} components, {sum} points");
    let json = nodes.buyer(&["trust", &nodes.press_agent, "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["components"].as_array().unwrap().len(), 8);
}

/// If the policy demands consent and there is no hub, nobody can be asked, so no binding message is sent.
#[test]
fn a_commitment_that_nobody_can_consent_to_is_not_sent() {
    let nodes = TwoNodes::start_with("[consent]\ncommit = true\n", "The Press");
    let session = nodes.introduced("two cards");
    nodes.buyer(&["send", &session, "OBSERVE", r#"{"subject":"paper"}"#, "--wait"]);
    let commit = format!(
        r#"{{"commitmentId":"cmt_1","terms":{{"obligations":[{{"party":"{}","action":"print","deadline":"2035-01-01T00:00:00Z"}}]}}}}"#,
        nodes.press_agent
    );
    for arguments in [&["--wait"][..], &[]] {
        let run = nodes.buyer(&[&["send", &session, "COMMIT", &commit], arguments].concat());
        assert_eq!((run.exit_code, run.stdout.as_str()), (1, ""));
        assert!(run.stderr.starts_with("sayso: refused: policy_violation: "), "{}", run.stderr);
    }
    let shown = nodes.press(&["show", &session]);
    assert!(!shown.stdout.contains("COMMIT"), "{}", shown.stdout);
}

#[test]
fn text_from_the_other_side_is_made_printable() {
    let nodes = TwoNodes::start_with("", "Press\u{1b}[2J\u{202e}");
    let session = nodes.introduced("two\u{7} cards\nState: CLOSED.");
    nodes.press(&[
        "send",
        &session,
        "CLOSE",
        "{\"reason\":\"\\u001b]0;x\\u0007\\nState: FAILED.\"}",
        "--wait",
    ]);
    for arguments in [&["show", &session][..], &["watch", &session], &["show"]] {
        let run = nodes.buyer(arguments);
        let is_safe = |c: char| c == '\n' || !(c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c));
        assert!(run.stdout.chars().all(is_safe), "{:?}", run.stdout);
        assert!(!run.stdout.lines().any(|line| line == "State: FAILED."), "{}", run.stdout);
    }
}

#[test]
fn a_node_with_tokens_refuses_a_command_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let address = reserved_address();
    let agent = format!("agent://{address}/a");
    let run = run_in(folder.path(), &["asp", "keygen", "--agent", &agent, "--name", "A", "--out", "a"]);
    assert_eq!(run.exit_code, 0, "{}", run.stderr);
    let tokens = folder.path().join("tokens");
    let token =
        create_token(tokens.to_str().unwrap(), &["--role", "agent", "--agent-id", "a", "--name", "a"]);
    let listener = create_token(tokens.to_str().unwrap(), &["--role", "listener", "--name", "l"]);
    let node = HubProcess::start_command(
        Command::new(binary())
            .args(["asp", "serve", "--identity", "a", "--memory", "--listen", &address, "--tokens", "tokens"])
            .current_dir(folder.path()),
    );
    let url = format!("http://{}", node.address);
    for arguments in [&[][..], &["--token", "sayso_wrong"], &["--token", &listener]] {
        let run = run_in(folder.path(), &[&["asp", "show", "--node", &url], arguments].concat());
        assert_eq!((run.exit_code, run.stdout.as_str()), (2, ""));
        assert!(run.stderr.contains("the token is missing or does not allow this"), "{}", run.stderr);
    }
    std::fs::write(folder.path().join("token"), &token).unwrap();
    for arguments in [&["--token", token.as_str()][..], &["--token-file", "token"]] {
        let run = run_in(folder.path(), &[&["asp", "show", "--node", &url], arguments].concat());
        assert_eq!((run.exit_code, run.stderr.as_str()), (0, "There are no open sessions.\n"));
    }
}

#[test]
fn bad_input_is_named() {
    let nodes = TwoNodes::start();
    for (arguments, expected) in [
        (&["show", UNKNOWN_SESSION][..], "sayso: the node has no such session\n"),
        (&["watch", UNKNOWN_SESSION], "sayso: the node has no such session\n"),
        (&["transcript", UNKNOWN_SESSION], "sayso: the node has no such session\n"),
        (&["send", UNKNOWN_SESSION, "CLOSE", "{}"], "sayso: the node has no such session\n"),
        (&["show", "17"], "does not accept 17: it must be the id of a session"),
        (&["send", UNKNOWN_SESSION, "SHOUT", "{}"], "does not accept SHOUT: use one of PROPOSE, ACCEPT"),
        (&["send", UNKNOWN_SESSION], "PERFORMATIVE and BODY are missing."),
        (&["trust", "nobody"], "AGENT does not accept nobody: "),
        (&["invite", "x", "y", "--valid-for", "0"], "--valid-for SECONDS does not accept 0"),
        (&["show", "--json"], "SESSION is missing."),
    ] {
        let run = nodes.buyer(arguments);
        assert_eq!((run.exit_code, run.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(run.stderr.contains(expected), "{arguments:?}: {}", run.stderr);
    }
    let stranger = nodes.buyer(&["invite", "agent://127.0.0.1:1/x", "hello"]);
    assert_eq!((stranger.exit_code, stranger.stdout.as_str()), (1, ""));
    assert_eq!(
        stranger.stderr,
        "sayso: refused: unauthorized: the card of agent://127.0.0.1:1/x is not pinned\n"
    );
    for (url, expected) in [
        ("http://127.0.0.1:1", "sayso: http://127.0.0.1:1: the node cannot be reached: "),
        ("node.example", "sayso: node.example has no scheme"),
        ("ftp://node.example", "is not the address of a node"),
    ] {
        let run = run_sayso(&["asp", "show", "--node", url], "");
        assert_eq!((run.exit_code, run.stdout.as_str()), (2, ""));
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
}

#[test]
fn the_network_demo_ends_with_one_verified_transcript() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let output =
        testing::cli::command(&["asp", "demo", "--network", "--no-person", "--transcript", "talk.jsonl"])
            .current_dir(folder.path())
            .env("TMPDIR", &temporary)
            .output()
            .unwrap();
    let run = check_output(output);
    assert_eq!(run.exit_code, 0, "{}\n{}", run.stdout, run.stderr);
    assert!(
        run.stdout.ends_with("Both sides have the same transcript of 15 messages, and it is valid.\n"),
        "{}",
        run.stdout
    );
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "the temporary folder is removed");
    let verified = run_in(folder.path(), &["asp", "verify", "talk.jsonl", "--cards", "talk.cards.json"]);
    assert_eq!(verified.exit_code, 0, "{}", verified.stdout);
    for arguments in [
        &["asp", "demo", "--auto", "accept"][..],
        &["asp", "demo", "--network", "--seed", "7"],
        &["asp", "demo", "--network", "--no-person", "--auto", "accept"],
    ] {
        assert_eq!(run_in(folder.path(), arguments).exit_code, 2, "{arguments:?}");
    }
}

/// The person's answer decides whether the commitment is sent, and the transcript proves a yes.
#[test]
fn the_network_demo_asks_the_person() {
    for (auto, message_count, expected) in [
        ("accept", 15, "The transcript proves it: "),
        ("reject", 9, "The commitment was not sent: "),
        ("none", 9, "The commitment was not sent: "),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["asp", "demo", "--network", "--auto", auto, "--transcript", "talk.jsonl"];
        let run = run_in(folder.path(), &arguments);
        assert_eq!(run.exit_code, 0, "{auto}: {}\n{}", run.stdout, run.stderr);
        let count =
            format!("Both sides have the same transcript of {message_count} messages, and it is valid.");
        for expected in [expected, &count, "\nask: You have "] {
            assert!(run.stdout.contains(expected), "{auto}: {expected:?} is not in:\n{}", run.stdout);
        }
        let verified = run_in(
            folder.path(),
            &["asp", "verify", "talk.jsonl", "--cards", "talk.cards.json", "--hub-key", "talk.hub.jwk"],
        );
        assert_eq!(verified.exit_code, 0, "{auto}: {}", verified.stdout);
        assert_eq!(verified.stdout.contains(": a person"), auto == "accept", "{}", verified.stdout);
    }
}

#[test]
fn the_network_demo_takes_an_answer_from_a_pipe() {
    let run = run_sayso(&["asp", "demo", "--network"], "yes\n");
    assert_eq!(run.exit_code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("answer: Accepted."), "{}", run.stdout);
    assert!(run.stdout.contains("The transcript proves it: "), "{}", run.stdout);
}
