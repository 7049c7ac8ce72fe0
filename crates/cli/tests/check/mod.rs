//! `sayso check` with real hubs, and with hubs whose messages a proxy changes.

mod tampering_proxy;

use testing::cli::{CommandOutput, create_token, run_sayso};
use testing::hub::HubProcess;

use tampering_proxy::{Fault, TamperingProxy};

/// Runs the check with the agent of the check. The exit code and the number of findings must agree.
fn check(url: &str, options: &[&str]) -> CommandOutput {
    let output = run_sayso(&[&["check", url, "--agent", "--timeout", "5"], options].concat(), "");
    let has_errors = !output.summary().contains(": 0 errors, ");
    assert_eq!(output.exit_code == 1, has_errors, "{}\n{}", output.stdout, output.stderr);
    output
}

#[test]
fn a_hub_keeps_every_rule_on_every_transport() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("hub.sock");
    let hub = HubProcess::start_in_memory_with(&["--unix", socket.to_str().unwrap()]);
    let urls = [
        format!("http://{}", hub.address),
        format!("ws://{}", hub.address),
        format!("unix:{}", socket.display()),
    ];
    for url in urls {
        let output = check(&url, &[]);
        let (stdout, stderr) = (&output.stdout, &output.stderr);
        assert_eq!((output.exit_code, output.findings()), (0, Vec::<&str>::new()), "{url}: {stderr}");
        for level in 1..=3 {
            let line = format!("level {level}, claimed: no errors");
            let is_reported = stderr.lines().any(|one| one.starts_with(&line));
            assert!(is_reported || url.starts_with("unix:"), "{url}: {stderr}");
        }
        // The questions were asked, and the session ended.
        assert!(!stderr.contains("questions (level 2): not checked"), "{stderr}");
        assert!(stdout.ends_with("0 errors, 0 warnings\n"), "{stdout}");
    }
}

#[test]
fn a_hub_with_tokens_and_a_trusted_key_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let tokens = path("tokens");
    let listener = create_token(&tokens, &["--role", "listener", "--name", "ada"]);
    let agent = create_token(&tokens, &["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    std::fs::write(path("agent.token"), agent).unwrap();
    std::fs::write(path("listener.token"), listener).unwrap();
    let data = path("data");
    let hub = HubProcess::start(&["--listen", "127.0.0.1:0", "--data", &data, "--tokens", &tokens]);
    let jwk = folder.path().join("data").join("manifest.jwk");
    let options = [
        "--token-file",
        &path("listener.token"),
        "--agent-token-file",
        &path("agent.token"),
        "--jwk",
        jwk.to_str().unwrap(),
    ];
    for scheme in ["http", "ws"] {
        let output = check(&format!("{scheme}://{}", hub.address), &options);
        assert_eq!(output.findings(), Vec::<&str>::new(), "{}", output.stderr);
        assert!(output.stderr.contains("stranger (level 1): no errors"), "{}", output.stderr);
        assert!(output.stderr.contains("signature (level 3): no errors"), "{}", output.stderr);
    }
}

#[test]
fn every_fault_of_a_hub_is_found() {
    let hub = HubProcess::start_in_memory();
    let mut missed = Vec::new();
    for fault in Fault::all() {
        let rule = fault.rule;
        let proxy = TamperingProxy::start(&hub.address, fault);
        let timeout = if rule == "AAEP-9.4.1-3" { "2" } else { "10" };
        let url = format!("http://{}", proxy.address);
        let output = run_sayso(&["check", &url, "--agent", "--timeout", timeout], "");
        let finding = format!(": error {rule} ");
        if output.exit_code != 1 || !output.findings().iter().any(|line| line.contains(&finding)) {
            let errors: Vec<_> =
                output.findings().into_iter().filter(|line| line.contains(": error ")).collect();
            missed.push(format!("{rule}: exit code {}, {errors:#?}\n{}", output.exit_code, output.stderr));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn a_manifest_with_a_foreign_signature_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let hub = HubProcess::start_on_disk(&data);
    let key = seal::es256::SigningKey::generate(&mut seal::SystemRandom);
    let jwk = folder.path().join("other.jwk");
    std::fs::write(&jwk, seal::Jwk::P256(key.verifying_key().clone()).to_json()).unwrap();
    let output = check(&format!("http://{}", hub.address), &["--jwk", jwk.to_str().unwrap()]);
    let findings = output.findings();
    let [finding] = findings[..] else { panic!("{findings:?}") };
    assert!(finding.contains("#signature:2: error AAEP-10.4.2-2 : "), "{finding}");
}

#[test]
fn a_recording_of_the_check_can_be_validated() {
    let folder = tempfile::tempdir().unwrap();
    let output_folder = folder.path().join("check");
    let hub = HubProcess::start_in_memory();
    let proxy = TamperingProxy::start(&hub.address, Fault::broken_event());
    let url = format!("http://{}", proxy.address);
    let output = check(&url, &["--output", output_folder.to_str().unwrap(), "--level", "2"]);
    let events = output_folder.join("events.jsonl");
    let validated = run_sayso(&["validate", events.to_str().unwrap()], "");
    let of_events = |output: &CommandOutput| {
        let lines = output.findings().into_iter().filter(|line| line.contains("events.jsonl"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(!of_events(&output).is_empty());
    assert_eq!(of_events(&output), of_events(&validated));
    // The handshake is not part of level 2.
    assert!(!output.stderr.contains("version (level 3)"), "{}", output.stderr);
}

#[test]
fn the_result_is_also_printed_as_json() {
    let hub = HubProcess::start_in_memory();
    let output = run_sayso(&["check", &format!("http://{}", hub.address), "--json", "--listen", "0"], "");
    let summary: serde_json::Value = serde_json::from_str(output.summary()).unwrap();
    let summary = &summary["summary"];
    assert_eq!((&summary["errors"], &summary["warnings"]), (&0.into(), &0.into()));
    assert_eq!(summary["check"]["claimed_levels"], serde_json::json!([1, 2, 3]));
    let parts = summary["check"]["parts"].as_array().unwrap();
    let questions = parts.iter().find(|part| part["name"] == "questions").unwrap();
    assert_eq!(questions["is_checked"], false);
    assert_eq!(questions["reason"], "no agent asked anything; --agent asks");
    assert!(parts.iter().any(|part| part["name"] == "version" && part["errors"] == 0), "{parts:#?}");
    assert_eq!((output.exit_code, output.stderr.as_str()), (0, ""));
}

#[test]
fn a_hub_that_cannot_be_checked_is_not_reported_as_faulty() {
    let unused = testing::hub::reserved_address();
    let output = run_sayso(&["check", &format!("http://{unused}")], "");
    assert_eq!((output.exit_code, output.stdout.as_str()), (2, ""));
    assert_eq!(output.stderr, format!("sayso: cannot check http://{unused}: nothing is listening there\n"));
    let hub = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0"]);
    let output = run_sayso(&["check", &format!("http://{}", hub.address)], "");
    assert_eq!(output.exit_code, 2, "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("token"), "{}", output.stderr);
}

#[test]
fn the_rules_of_the_check_are_explained() {
    let output = run_sayso(&["explain", "AAEP-6.3.4-8"], "");
    assert_eq!(
        output.stdout,
        "AAEP-6.3.4-8: the sender of a reply must not learn which check it failed\n\
         It comes from section 6.3.4 of the AAEP specification.\n\
         `sayso check` reports it if a running producer breaks it.\n"
    );
    assert!(run_sayso(&["explain"], "").stdout.contains("\nAAEP-5.5.4-1 a critical event must reach every"));
}
