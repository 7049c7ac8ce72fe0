//! The manifest of an agent, published by an embedded hub and by a remote hub.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use sayso::{Error, Hub, MalformedInput};
use seal::es256::SigningKey;

const BANK: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:producer.manifest","agent_id":"bank","agent_name":"Ada's Bank","aaep_versions_supported":["1.0.0"],"conformance_levels_supported":[1,2,3],"transports_supported":["sse","websocket"]}"#;
const HUB_MANIFEST: &str = "/.well-known/aaep-manifest.json";
const BANK_MANIFEST: &str = "/.well-known/aaep-manifests/bank.json";

/// Returns the body of a successful response, or `None`.
fn get(address: SocketAddr, path: &str, accept: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    head.starts_with("HTTP/1.1 200").then(|| body.to_owned())
}

#[test]
fn an_embedded_hub_publishes_the_authors_manifest() {
    let signed = aaep::manifest::sign(BANK, &SigningKey::generate(&mut seal::SystemRandom)).unwrap();
    for (document, jose) in [(BANK, BANK), (signed.as_str(), signed.as_str())] {
        let hub = Hub::embedded().agent("bank").manifest(document).listen("127.0.0.1:0").open().unwrap();
        let address = hub.address().unwrap();
        for path in [HUB_MANIFEST, BANK_MANIFEST] {
            assert_eq!(get(address, path, "application/json").as_deref(), Some(BANK), "{path}");
            assert_eq!(get(address, path, "application/jose").as_deref(), Some(jose), "{path}");
        }
    }
    let hub = Hub::embedded().agent("bank").state("comparing", "Comparing prices.");
    let hub = hub.listen("127.0.0.1:0").open().unwrap();
    assert_eq!(get(hub.address().unwrap(), BANK_MANIFEST, "*/*"), None);
    let default = get(hub.address().unwrap(), HUB_MANIFEST, "application/json").unwrap();
    for part in [
        r#""multi_agent":["shared_session","linked_sessions"]"#,
        r#""states":[{"state":"comparing","words":{"en":"Comparing prices."}}]"#,
    ] {
        assert!(default.contains(part), "{part} is not in {default}");
    }
    assert!(Hub::embedded().agent("bank").manifest(BANK).open().is_ok(), "an address is not needed");
}

#[test]
fn a_manifest_that_does_not_describe_the_embedded_hub_is_refused() {
    for (from, to, claim) in [
        (r#""bank""#, r#""post""#, "the agent_id \"bank\""),
        (r#""1.0.0""#, r#""2.0.0""#, "aaep_versions_supported"),
        ("[1,2,3]", "[1,2]", "conformance_levels_supported"),
        (r#","websocket""#, "", "transports_supported"),
    ] {
        let opened = Hub::embedded().agent("bank").manifest(BANK.replace(from, to)).open();
        match opened {
            Err(Error::Malformed(MalformedInput::ManifestClaim(missing))) => {
                assert!(missing.contains(claim), "{missing}");
            }
            other => panic!("{other:?}"),
        }
    }
    let opened = Hub::embedded().agent("bank").manifest("{}").open();
    assert!(matches!(opened, Err(Error::Malformed(MalformedInput::Manifest(_)))), "{opened:?}");
}

#[tokio::test]
async fn a_connection_publishes_the_manifest_at_the_hub() {
    let serving = Hub::embedded().agent("serving").listen("127.0.0.1:0").open().unwrap();
    let address = serving.address().unwrap();
    let url = format!("http://{address}");
    let hub = Hub::connect(&url).manifest(BANK).open().await.unwrap();
    assert_eq!(get(address, BANK_MANIFEST, "*/*").as_deref(), Some(BANK));
    let session = hub.session("Pay Ben.").start().await.unwrap();
    session.cancel("Nothing was sent.").await.unwrap();
    let refused = Hub::connect(&url).manifest(BANK.replace("bank", "serving")).open().await;
    assert!(matches!(refused, Err(Error::Malformed(MalformedInput::Hub(_)))), "{refused:?}");
    let refused = Hub::connect(&url).manifest(BANK.replace("[1,2,3]", "[7]")).open().await;
    assert!(matches!(refused, Err(Error::RuleViolations(_))), "{refused:?}");
}
