//! The identity of a hub: its manifest, its signature, and which answers are sent to an unverified hub.

use std::path::Path;

use seal::es256::SigningKey;
use seal::{Jwk, SystemRandom};

use crate::listen::fake_hub::{FakeHub, FakeHubScript, accepted_message};
use testing::hub::{HubProcess, reserved_address};
use testing::terminal::{AgentSession, ListenProcess};

const BANK_MANIFEST: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:producer.manifest","agent_id":"bank","aaep_versions_supported":["1.0.0"],"conformance_levels_supported":[1,2,3],"transports_supported":["sse"]}"#;
const QUESTION: &str = r#""urgency":"critical","action":"Send it.","consequence":"It is gone.","reply_token":"rpl_1","timeout_seconds":300,"default_decision":"reject""#;
const VERIFIED: &str = "The hub is sayso-hub: its manifest is signed with a key you trust.";
const NOT_SENT: &str =
    "error: Question 1: The hub's identity could not be confirmed, so only a no is sent to it.";

/// Generates a key and writes its public JWK to a file. Returns the key and the file name.
fn generate_key(folder: &Path) -> (SigningKey, String) {
    let key = SigningKey::generate(&mut SystemRandom);
    let file = folder.join("known.jwk");
    std::fs::write(&file, Jwk::P256(key.verifying_key().clone()).to_json()).unwrap();
    (key, file.to_str().unwrap().to_owned())
}

/// Starts a hub that stores its own key in this folder.
fn start_hub_in(folder: &Path, address: &str) -> HubProcess {
    HubProcess::start(&["--open", "--listen", address, "--data", folder.to_str().unwrap()])
}

fn jwk_path(folder: &Path) -> String {
    folder.join("manifest.jwk").to_str().unwrap().to_owned()
}

#[test]
fn answers_are_sent_to_a_hub_with_a_trusted_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let hub = start_hub_in(folder.path(), "127.0.0.1:0");
    let jwk = jwk_path(folder.path());
    for options in [&["--jwk", &jwk][..], &["--jwk", &jwk, "--signed-only"]] {
        let mut person = ListenProcess::start(&hub.address, options);
        assert_eq!(person.next_line().unwrap(), format!("notice: {VERIFIED}"));
        person.read_until("notice: Listening to");
        person.type_line("status");
        person.read_until(&format!("status: {VERIFIED}"));
        let agent = AgentSession::start(hub.client());
        let token = agent.ask_confirmation();
        person.read_until("ask: Yes or no?");
        person.type_line("yes");
        assert!(agent.wait_for_reply(&token, 30).contains(r#""decision":"accept""#));
    }
    let mut person = ListenProcess::start(&hub.address, &[]);
    assert_eq!(
        person.next_line().unwrap(),
        "notice: The hub calls itself sayso-hub; there is no key to check that."
    );
}

#[test]
fn only_rejections_are_sent_to_a_hub_with_another_key() {
    let folder = tempfile::tempdir().unwrap();
    let (_, jwk) = generate_key(folder.path());
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start(&hub.address, &["--jwk", &jwk]);
    let first = person.next_line().unwrap();
    assert!(
        first.starts_with(
            "error: The hub's identity could not be confirmed: its manifest is not signed with a key you trust. Only a no is sent to it."
        ),
        "{first}"
    );
    person.read_until("notice: Listening to");
    let agent = AgentSession::start(hub.client());
    let token = agent.ask_confirmation();
    person.read_until("ask: Yes or no?");
    person.type_line("yes");
    person.read_until(NOT_SENT);
    assert_eq!(agent.wait_for_reply(&token, 0), r#"{"status":"pending"}"#);
    person.type_line("status");
    person.read_until("status: The hub's identity could not be confirmed");
    person.type_line("no");
    assert!(agent.wait_for_reply(&token, 30).contains(r#""decision":"reject","by":"reply""#));
    let mut automatic = ListenProcess::start_connected(&hub.address, &["--jwk", &jwk, "--auto", "accept"]);
    let token = AgentSession::start(hub.client()).ask_confirmation();
    let lines = automatic.read_until("answer: Question");
    assert!(lines.last().unwrap().contains("cannot be answered automatically"), "{lines:#?} {token}");
    drop(automatic);
    let (output, code) =
        ListenProcess::start(&hub.address, &["--jwk", &jwk, "--signed-only"]).wait_for_exit();
    assert_eq!(code, 2, "{output:?}");
    assert!(
        output[0].starts_with("sayso: Not listening, because the hub must prove its identity. The hub's identity could not be confirmed: its manifest is not signed with a key you trust."),
        "{output:?}"
    );
}

#[test]
fn an_impostor_after_a_reconnect_is_detected() {
    let [own_folder, impostor_folder] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let address = reserved_address();
    let mut hub = start_hub_in(own_folder.path(), &address);
    let jwk = jwk_path(own_folder.path());
    let mut person = ListenProcess::start_connected(&address, &["--jwk", &jwk]);
    let mut signed_only = ListenProcess::start_connected(&address, &["--jwk", &jwk, "--signed-only"]);
    hub.kill();
    person.read_until("Connection to the hub lost");
    signed_only.read_until("Connection to the hub lost");
    let mut hub = start_hub_in(own_folder.path(), &address);
    let lines = person.read_until("notice: Reconnected");
    assert!(!lines.iter().any(|line| line.contains("manifest")), "announced again: {lines:#?}");
    signed_only.read_until("notice: Reconnected");
    hub.kill();
    person.read_until("Connection to the hub lost");
    signed_only.read_until("Connection to the hub lost");
    let _impostor = start_hub_in(impostor_folder.path(), &address);
    person.read_until("error: The hub's identity could not be confirmed");
    let (output, code) = signed_only.wait_for_exit();
    assert_eq!(code, 2, "{output:?}");
    assert!(
        output.last().unwrap().contains("Not listening, because the hub must prove its identity"),
        "{output:?}"
    );
}

#[test]
fn a_manifest_that_is_no_longer_signed_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let address = reserved_address();
    let mut hub = start_hub_in(folder.path(), &address);
    let mut person = ListenProcess::start_connected(&address, &["--jwk", &jwk_path(folder.path())]);
    hub.kill();
    person.read_until("Connection to the hub lost");
    let impostor = FakeHubScript {
        subscription_responses: [accepted_message("{}", "")].into(),
        manifest: Some(("404 Not Found", String::new())),
    };
    let impostor = FakeHub::start_at(&address, impostor);
    person.read_until(
        "error: The hub's identity could not be confirmed: its manifest used to be signed, and no longer is.",
    );
    impostor.next_stream().send_event(1, "awaiting.confirmation", QUESTION);
    person.read_until("ask: ");
    person.type_line("yes");
    person.read_until(NOT_SENT);
}

#[test]
fn the_manifest_must_match_the_subscription() {
    let folder = tempfile::tempdir().unwrap();
    let (key, jwk) = generate_key(folder.path());
    let honored = r#"{"supported_conformance_levels":[1,2,3]}"#;
    for (manifest, part) in [
        (
            BANK_MANIFEST.replace(r#""agent_id":"bank""#, r#""agent_id":"evil""#),
            "its manifest belongs to evil, but the hub calls itself bank",
        ),
        (BANK_MANIFEST.replace("[1,2,3]", "[1]"), "it offers level 3, but its manifest does not claim it"),
        (BANK_MANIFEST.replace("sse", "websocket"), "it offers sse, but its manifest does not claim it"),
    ] {
        let signed = aaep::manifest::sign(&manifest, &key).unwrap();
        for (text, options) in [(manifest, &[][..]), (signed, &["--jwk", &jwk])] {
            let script = FakeHubScript {
                subscription_responses: [accepted_message(honored, "")].into(),
                manifest: Some(("200 OK", text)),
            };
            let fake = FakeHub::start(script);
            let mut person = ListenProcess::start(&fake.address, options);
            let line = person.next_line().unwrap();
            assert!(
                line.starts_with("error: The hub's identity could not be confirmed") && line.contains(part),
                "{line}"
            );
            fake.next_stream().send_event(1, "awaiting.confirmation", QUESTION);
            person.read_until("ask: ");
            person.type_line("yes");
            person.read_until(NOT_SENT);
            person.type_line("no");
            assert_eq!(fake.next_request("POST /aaep/v1/replies")["decision"], "reject");
        }
    }
}

#[test]
fn a_missing_or_invalid_manifest_is_announced_and_listening_continues() {
    let unknown_identity = "notice: It is not known who the hub is: ";
    let long = format!(r#"{{"x":"{}"}}"#, "y".repeat(64 * 1024));
    for (manifest, expected) in [
        (Some(("404 Not Found", String::new())), "notice: The hub has no manifest that says who it is."),
        (
            Some(("302 Found\r\nLocation: /elsewhere", String::new())),
            "the hub redirects to another address for its manifest, and redirects are not followed.",
        ),
        (
            Some(("503 Busy", String::new())),
            "its manifest could not be fetched, because the hub responded with status 503.",
        ),
        (Some(("200 OK", long)), "its manifest could not be fetched, because the hub's answer is too long."),
        (Some(("200 OK", "<!doctype html>".to_owned())), "its manifest could not be read."),
        (Some(("200 OK", r#"{"name":"\u001b[2Jan agent"}"#.to_owned())), "its manifest could not be read."),
        (None, "its manifest could not be fetched, because the hub does not answer."),
    ] {
        let fake = FakeHub::start(FakeHubScript {
            subscription_responses: [accepted_message("{}", "")].into(),
            manifest,
        });
        let mut person = ListenProcess::start(&fake.address, &[]);
        let first = person.next_line().unwrap();
        let expected = if expected.starts_with("notice") {
            expected.to_owned()
        } else {
            format!("{unknown_identity}{expected}")
        };
        assert!(first.starts_with(&expected), "{first} is not {expected}");
        person.read_until("notice: Listening to");
        fake.next_stream().send_event(1, "tool.invoked", r#""tool":"t","summary_normal":"Heard.""#);
        person.read_until("tool: Heard.");
        assert!(!fake.requests_so_far().iter().any(|path| path.contains("elsewhere")));
    }
}

#[test]
fn signed_only_is_requested_and_unsigned_hubs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (key, jwk) = generate_key(folder.path());
    let options = ["--jwk", &jwk, "--signed-only"];
    let signed = aaep::manifest::sign(BANK_MANIFEST, &key).unwrap();
    let inline = accepted_message("{}", &format!(r#","signed_manifest":"{signed}""#));
    let fake = FakeHub::start_with_responses(&[inline]);
    let mut person = ListenProcess::start(&fake.address, &options);
    person.read_until("notice: The hub is bank: its manifest is signed with a key you trust.");
    let request = fake.next_request("POST /aaep/v1/subscriptions");
    assert_eq!(request["capabilities"]["accept_signed_manifests_only"], true, "{request}");
    fake.next_stream().send_event(1, "tool.invoked", r#""tool":"t","summary_normal":"Heard.""#);
    person.read_until("tool: Heard.");
    drop(person);
    for (manifest, part) in [
        (("404 Not Found", String::new()), "The hub has no manifest that says who it is."),
        (("200 OK", BANK_MANIFEST.to_owned()), "The hub calls itself bank, but its manifest is not signed."),
        (("200 OK", "<!doctype html>".to_owned()), "its manifest could not be read."),
    ] {
        let fake = FakeHub::start(FakeHubScript {
            subscription_responses: [accepted_message("{}", "")].into(),
            manifest: Some(manifest),
        });
        let (output, code) = ListenProcess::start(&fake.address, &options).wait_for_exit();
        assert_eq!(code, 2, "{output:?}");
        assert!(output[0].contains(part), "{output:?}");
        let requests = fake.requests_until("POST /aaep/v1/replies");
        assert!(
            !requests.iter().any(|path| path.contains("/events")),
            "the listener opened the stream although it refused the hub: {requests:?}"
        );
    }
    let fake = FakeHub::start_with_responses(&[crate::listen::fake_hub::rejected_message(
        "manifest_signature_required",
        "There is none.",
    )]);
    let (output, code) = ListenProcess::start(&fake.address, &options).wait_for_exit();
    assert_eq!(
        (output[0].as_str(), code),
        ("sayso: The hub has no signed manifest. The hub says: There is none.", 2)
    );
    let (output, code) = ListenProcess::start(&fake.address, &["--signed-only"]).wait_for_exit();
    assert!(code == 2 && output.iter().any(|line| line.contains("--jwk")), "{output:?}");
    let (output, code) = ListenProcess::start(&fake.address, &["--jwk", "/no/such/file"]).wait_for_exit();
    assert!(code == 2 && output[0].contains("there is no such file"), "{output:?}");
}
