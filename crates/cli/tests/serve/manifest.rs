//! The hub's manifest, unsigned and signed.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use aaep::manifest::{TrustedKeys, verify};
use serde_json::Value;
use tungstenite::{ClientRequestBuilder, Message};

use testing::hub::HubProcess;
use testing::messages::subscription_request;

const WELL_KNOWN: &str = "/.well-known/aaep-manifest.json";
const SIGNED_ONLY: &str = r#"{"accept_signed_manifests_only":true}"#;

fn read_trusted_keys(folder: &Path) -> TrustedKeys {
    TrustedKeys::read(&std::fs::read_to_string(folder.join("manifest.jwk")).unwrap()).unwrap()
}

#[test]
fn the_manifest_is_json_unless_the_signed_form_is_requested() {
    let folder = tempfile::tempdir().unwrap();
    let hub = HubProcess::start_on_disk(folder.path());
    let mode = std::fs::metadata(folder.path().join("manifest.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let client = hub.client();
    let unsigned = client.get(WELL_KNOWN);
    assert!(unsigned.head.contains("Content-Type: application/json\r\n"), "{}", unsigned.head);
    assert!(client.with_header("Accept: */*").get(WELL_KNOWN).body == unsigned.body);
    let signed = client.with_header("Accept: application/jose").get(WELL_KNOWN);
    assert!(signed.head.contains("Content-Type: application/jose\r\n"), "{}", signed.head);
    assert!(signed.head.contains("Vary: Accept\r\n"));
    assert_eq!(verify(&signed.body, &read_trusted_keys(folder.path())).unwrap().agent_id, "sayso-hub");
    let payload = seal::base64url::decode(signed.body.split('.').nth(1).unwrap()).unwrap();
    assert_eq!(String::from_utf8(payload).unwrap(), unsigned.body, "both have the same content");

    drop(hub);
    let restarted = HubProcess::start_on_disk(folder.path());
    let signed_again = restarted.client().with_header("Accept: application/jose").get(WELL_KNOWN);
    assert!(verify(&signed_again.body, &read_trusted_keys(folder.path())).is_ok(), "the key is reused");
    drop(restarted);
    let other_signed =
        HubProcess::start_in_memory().client().with_header("Accept: application/jose").get(WELL_KNOWN);
    assert!(
        verify(&other_signed.body, &read_trusted_keys(folder.path())).is_err(),
        "another hub has another key"
    );
}

#[test]
fn a_signing_key_that_others_can_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(HubProcess::start_on_disk(folder.path()));
    let key = folder.path().join("manifest.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let data = folder.path().to_str().unwrap();
    let refused = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["serve", "--open", "--listen", "127.0.0.1:0", "--data", data])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("chmod 600"));
}

/// Sends a subscription request with these capabilities and returns the response.
type SubscribeFn<'a> = &'a dyn Fn(&str) -> Value;

#[test]
fn a_signed_manifest_is_inlined_on_every_transport() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("hub.sock");
    let data = folder.path().to_str().unwrap();
    let hub = HubProcess::start(&[
        "--open",
        "--listen",
        "127.0.0.1:0",
        "--data",
        data,
        "--unix",
        socket.to_str().unwrap(),
    ]);
    let subscribe_over_http = |capabilities: &str| -> Value {
        serde_json::from_str(
            &hub.client().post("/aaep/v1/subscriptions", &subscription_request(capabilities)).body,
        )
        .unwrap()
    };
    let subscribe_over_websocket = |capabilities: &str| -> Value {
        let address = format!("ws://{}/aaep/v1/ws", hub.address).parse().unwrap();
        let request = ClientRequestBuilder::new(address).with_header("Sec-WebSocket-Protocol", "aaep.v1");
        let (mut socket, _) = tungstenite::client(request, hub.client().connect()).unwrap();
        socket.send(Message::text(subscription_request(capabilities))).unwrap();
        serde_json::from_str(socket.read().unwrap().to_text().unwrap()).unwrap()
    };
    let subscribe_over_unix_socket = |capabilities: &str| -> Value {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let text = subscription_request(capabilities);
        stream.write_all(&u32::try_from(text.len()).unwrap().to_be_bytes()).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut length = [0; 4];
        stream.read_exact(&mut length).unwrap();
        let mut response = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut response).unwrap();
        serde_json::from_slice(&response).unwrap()
    };
    let transports: [(&str, SubscribeFn<'_>); 3] = [
        ("http", &subscribe_over_http),
        ("websocket", &subscribe_over_websocket),
        ("unix", &subscribe_over_unix_socket),
    ];
    for (name, subscribe) in transports {
        let accepted = subscribe(SIGNED_ONLY);
        let signed = accepted["signed_manifest"].as_str().unwrap_or_else(|| panic!("{name}: {accepted}"));
        let manifest = verify(signed, &read_trusted_keys(folder.path())).unwrap();
        assert_eq!(accepted["producer"]["agent_id"], manifest.agent_id.as_str(), "{name}");
        assert_eq!(accepted["honored_capabilities"]["accept_signed_manifests_only"], true, "{name}");
        let manifest_uri = format!("http://{}{WELL_KNOWN}", hub.address);
        assert_eq!(accepted["manifest_uri"], manifest_uri.as_str(), "{name}");
        assert_eq!(subscribe("{}")["signed_manifest"], Value::Null, "{name}: only on request");
    }
}

#[test]
fn a_signed_manifest_is_inlined_on_stdio() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["serve", "--memory", "--open", "--stdio", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let request = subscription_request(SIGNED_ONLY);
    writeln!(input, r#"{{"jsonrpc":"2.0","id":1,"method":"aaep.subscribe","params":{request}}}"#).unwrap();
    let response = BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let response: Value = serde_json::from_str(&response).unwrap();
    assert_eq!(response["result"]["signed_manifest"].as_str().unwrap().split('.').count(), 3);
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_manifest_claims_every_level_up_to_the_highest_and_only_released_versions() {
    let hub = HubProcess::start_in_memory();
    let manifest: Value = serde_json::from_str(&hub.client().get(WELL_KNOWN).body).unwrap();
    let levels: Vec<u64> = manifest["conformance_levels_supported"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_u64)
        .collect();
    let highest = *levels.iter().max().unwrap();
    assert_eq!(levels, (1..=highest).collect::<Vec<_>>(), "a level includes all lower ones");
    let versions = manifest["aaep_versions_supported"].as_array().unwrap();
    assert!(!versions.is_empty());
    for version in versions {
        let is_release = version.as_str().is_some_and(|text| !text.contains('-') && !text.starts_with("0."));
        assert!(is_release, "{version}");
    }
}

#[test]
fn the_manifest_lists_transports_and_socket_framings() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("hub.sock");
    let hub = HubProcess::start(&[
        "--open",
        "--memory",
        "--listen",
        "127.0.0.1:0",
        "--unix",
        socket.to_str().unwrap(),
    ]);
    let manifest: Value = serde_json::from_str(&hub.client().get(WELL_KNOWN).body).unwrap();
    assert_eq!(manifest["transports_supported"], serde_json::json!(["sse", "websocket", "unix-socket"]));
    let extension = &manifest["extensions"]["sayso"];
    assert_eq!(extension["unix_socket"]["framing"], serde_json::json!(["length-prefix", "ndjson"]));
    assert_eq!(extension["http_prefix"], "/aaep/v1");
    let without_unix_socket: Value =
        serde_json::from_str(&HubProcess::start_in_memory().client().get(WELL_KNOWN).body).unwrap();
    assert_eq!(without_unix_socket["transports_supported"], serde_json::json!(["sse", "websocket"]));
    assert_eq!(without_unix_socket["extensions"]["sayso"]["unix_socket"], Value::Null);
}

/// §7.3: the name of sayso's vocabulary has a version and resolves, and the document has every member that the hub writes.
#[test]
fn the_name_of_the_vocabulary_resolves() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let document = client.get("/uri-res/N2R?urn:sayso:context:v1");
    assert_eq!(document.status, 200, "{document:?}");
    assert!(document.head.contains("Content-Type: application/ld+json\r\n"), "{}", document.head);
    // The major version is in the name, the others are in the document.
    assert_eq!(document.json()["version"], "1.0.0");
    let context = document.json()["@context"]["sayso"].take();
    assert_eq!(context["@id"], "urn:sayso:context:v1#");
    for path in ["/uri-res/N2R", "/uri-res/N2R?urn:sayso:context:v2", "/uri-res/N2R?urn:isbn:1"] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
    let subscription = client.subscribe(testing::messages::REPLY_CAPABILITIES);
    let mut events = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    client.reply(&subscription, &token, "accept");
    let mut members = std::collections::BTreeSet::new();
    while !members.contains("decision") {
        let (_, _, event) = events.next();
        members
            .extend(event["extensions"]["sayso"].as_object().into_iter().flat_map(|all| all.keys().cloned()));
    }
    assert!(members.contains("action_digest") && members.contains("reply_token"), "{members:?}");
    for member in members {
        assert!(!context["@context"][&member].is_null(), "{member}");
    }
    // It is public, as the manifest is.
    let closed = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0"]);
    assert_eq!(closed.client().get("/uri-res/N2R?urn:sayso:context:v1").body, document.body);
}
