//! The hub with TLS and a self-signed certificate.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, StreamOwned};
use serde_json::Value;
use tungstenite::{ClientRequestBuilder, Message};

use crate::serve::reload::reload;
use testing::cli::{create_token, write_private_file};
use testing::hub::HubProcess;
use testing::messages::{CONFIRMATION_BODY, REPLY_CAPABILITIES};
use testing::messages::{confirmation_reply, short_type, subscription_request};

pub(crate) struct TestCertificate {
    der: CertificateDer<'static>,
    cert: PathBuf,
    pub(crate) key: PathBuf,
}

/// Creates a certificate for this machine and writes its files.
pub(crate) fn create_certificate(folder: &Path, name: &str) -> TestCertificate {
    let generated =
        rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.join(format!("{name}.crt")), folder.join(format!("{name}.key")));
    std::fs::write(&cert, generated.cert.pem()).unwrap();
    write_private_file(&key, &generated.signing_key.serialize_pem());
    TestCertificate { der: generated.cert.der().clone(), cert, key }
}

impl TestCertificate {
    pub(crate) fn arguments(&self) -> [&str; 4] {
        ["--tls-cert", self.cert.to_str().unwrap(), "--tls-key", self.key.to_str().unwrap()]
    }

    pub(crate) fn start_hub(&self, extra_args: &[&str]) -> HubProcess {
        HubProcess::start(
            &[&self.arguments()[..], &["--memory", "--listen", "127.0.0.1:0"], extra_args].concat(),
        )
    }

    /// Returns a client of the hub that trusts only this certificate.
    pub(crate) fn client<'a>(&'a self, hub: &'a HubProcess) -> TlsTestClient<'a> {
        TlsTestClient { trusted: self, hub }
    }
}

/// A client that trusts only one certificate.
pub(crate) struct TlsTestClient<'a> {
    trusted: &'a TestCertificate,
    hub: &'a HubProcess,
}

impl TlsTestClient<'_> {
    fn connect(
        &self,
        alpn: &[&str],
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> TlsClientStream {
        let mut roots = RootCertStore::empty();
        roots.add(self.trusted.der.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), self.hub.client().connect())
    }

    fn open_connection(&self) -> TlsClientStream {
        self.connect(&["http/1.1"], rustls::ALL_VERSIONS)
    }

    /// Sends a request and returns the status, the head and the body.
    pub(crate) fn send(&self, headers: &str, method: &str, path: &str, body: &str) -> (u16, String, String) {
        let mut stream = self.open_connection();
        let length = body.len();
        let host = &self.hub.address;
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut response = String::new();
        // A connection that ends without a TLS close_notify is an error here.
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_owned(), body.to_owned())
    }

    fn post(&self, path: &str, body: &str) -> Value {
        let (status, _, body) = self.send("", "POST", path, body);
        assert!((200..300).contains(&status), "{path}: {status} {body}");
        serde_json::from_str(&body).unwrap_or(Value::Null)
    }

    fn start_session(&self) -> String {
        let start = r#"{"summary_normal":"Moving money.","localization_hints":{"primary_language":"en"}}"#;
        self.post("/agent/v1/sessions", start)["session_id"].as_str().unwrap().to_owned()
    }

    fn ask(&self, session: &str) -> String {
        let path = format!("/agent/v1/sessions/{session}/confirmations");
        self.post(&path, CONFIRMATION_BODY)["reply_token"].as_str().unwrap().to_owned()
    }

    fn wait_for_decision(&self, session: &str, token: &str) -> Value {
        let path = format!("/agent/v1/sessions/{session}/replies/{token}?wait=20");
        serde_json::from_str(&self.send("", "GET", &path, "").2).unwrap()
    }

    /// Opens an event stream and reads its head.
    fn open_event_stream(&self, subscription: &str) -> BufReader<TlsClientStream> {
        let mut stream = self.open_connection();
        let path = format!("/aaep/v1/events?subscription_id={subscription}");
        let text =
            format!("GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n\r\n", self.hub.address);
        stream.write_all(text.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        while line != "\r\n" {
            line.clear();
            lines.read_line(&mut line).unwrap();
        }
        lines
    }
}

type TlsClientStream = StreamOwned<ClientConnection, TcpStream>;

fn next(lines: &mut BufReader<TlsClientStream>) -> Value {
    loop {
        let mut line = String::new();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "the stream ended");
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str(data).unwrap();
        }
    }
}

#[test]
fn a_question_is_delivered_and_answered_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = create_certificate(folder.path(), "hub");
    let hub = certificate.start_hub(&["--open"]);
    let client = certificate.client(&hub);
    let accepted = client.post("/aaep/v1/subscriptions", &subscription_request(REPLY_CAPABILITIES));
    let manifest = format!("https://{}/.well-known/aaep-manifest.json", hub.address);
    assert_eq!(accepted["manifest_uri"], manifest.as_str());
    let subscription = accepted["subscription_id"].as_str().unwrap();
    let mut events = client.open_event_stream(subscription);
    let session = client.start_session();
    assert_eq!(short_type(&next(&mut events)), "session.started");
    let token = client.ask(&session);
    while next(&mut events)["reply_token"] != token.as_str() {}
    client.post("/aaep/v1/replies", &confirmation_reply(subscription, &token, "accept"));
    assert_eq!(client.wait_for_decision(&session, &token)["decision"], "accept");
    assert_eq!(next(&mut events)["extensions"]["sayso"]["decision"], "accept");
    let close = testing::messages::subscription_close(subscription);
    client.post("/aaep/v1/replies", &close);
    let mut rest = String::new();
    events.read_to_string(&mut rest).unwrap();
}

#[test]
fn many_events_arrive_in_order_and_a_listener_can_reconnect() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = create_certificate(folder.path(), "hub");
    let hub = certificate.start_hub(&["--open"]);
    let client = certificate.client(&hub);
    let accepted = client.post("/aaep/v1/subscriptions", &subscription_request(REPLY_CAPABILITIES));
    let subscription = accepted["subscription_id"].as_str().unwrap();
    let mut events = client.open_event_stream(subscription);
    let session = client.start_session();
    let sentences: Vec<_> =
        (0..200).map(|number| format!("Sentence {number} {}. ", "word ".repeat(200))).collect();
    // This is more text than fits in the buffers between the hub and the client, which is not reading yet.
    let path = format!("/agent/v1/sessions/{session}/output?complete=true");
    client.post(&path, &sentences.concat());
    let mut received = String::new();
    while received.len() < sentences.concat().len() {
        let event = next(&mut events);
        received += event["chunk"].as_str().unwrap_or("");
    }
    assert_eq!(received, sentences.concat());
    drop(events);
    // The subscription can be resumed and still delivers events.
    let mut events = client.open_event_stream(subscription);
    client.ask(&session);
    while short_type(&next(&mut events)) != "awaiting.confirmation" {}
}

#[test]
fn a_websocket_works_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = create_certificate(folder.path(), "hub");
    let hub = certificate.start_hub(&["--open"]);
    let client = certificate.client(&hub);
    let address = format!("wss://{}/aaep/v1/ws", hub.address).parse().unwrap();
    let origin = format!("https://{}", hub.address);
    let request = ClientRequestBuilder::new(address)
        .with_header("Sec-WebSocket-Protocol", "aaep.v1")
        .with_header("Origin", origin);
    let (mut socket, _) = tungstenite::client(request, client.open_connection()).unwrap();
    socket.send(Message::text(subscription_request(REPLY_CAPABILITIES))).unwrap();
    let mut next = || -> Value {
        loop {
            match socket.read().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    let subscription = next()["subscription_id"].as_str().unwrap().to_owned();
    let session = client.start_session();
    assert_eq!(short_type(&next()), "session.started");
    let token = client.ask(&session);
    while next()["reply_token"] != token.as_str() {}
    socket.send(Message::text(confirmation_reply(&subscription, &token, "reject"))).unwrap();
    assert_eq!(client.wait_for_decision(&session, &token)["decision"], "reject");
}

#[test]
fn cookies_are_secure_and_origins_must_be_https() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = create_certificate(folder.path(), "hub");
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let ada = create_token(&file, &["--role", "listener", "--name", "ada"]);
    let hub = certificate.start_hub(&["--tokens", &file]);
    let client = certificate.client(&hub);
    let form = format!("token={ada}");
    let headers = |scheme: &str| {
        let host = &hub.address;
        format!("Origin: {scheme}://{host}\r\nContent-Type: application/x-www-form-urlencoded\r\n")
    };
    let (status, head, _) = client.send(&headers("https"), "POST", "/login", &form);
    assert_eq!(status, 303, "{head}");
    assert!(
        head.lines().any(|line| line.starts_with("Set-Cookie: sayso=") && line.ends_with("; Secure")),
        "{head}"
    );
    assert_eq!(client.send(&headers("http"), "POST", "/login", &form).0, 403);
}

#[test]
fn tls_1_2_and_1_3_are_supported_with_http_1_1_only() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = create_certificate(folder.path(), "hub");
    let hub = certificate.start_hub(&["--open"]);
    let client = certificate.client(&hub);
    for (versions, expected) in [
        (&[&rustls::version::TLS12], ProtocolVersion::TLSv1_2),
        (&[&rustls::version::TLS13], ProtocolVersion::TLSv1_3),
    ] {
        let mut stream = client.connect(&["h2", "http/1.1"], versions);
        stream.conn.complete_io(&mut stream.sock).unwrap();
        assert_eq!(stream.conn.protocol_version(), Some(expected));
        assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    }
    let mut stream = client.connect(&["h2"], rustls::ALL_VERSIONS);
    assert!(stream.conn.complete_io(&mut stream.sock).is_err());
    let other = create_certificate(folder.path(), "other");
    let mut stream = other.client(&hub).open_connection();
    assert!(
        stream.conn.complete_io(&mut stream.sock).is_err(),
        "a client that trusts only another certificate must not connect"
    );
}

/// Reads until the hub closes the connection. Fails after a minute.
fn read_to_close(stream: &mut TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{error}"),
    }
    rest
}

#[test]
fn clients_without_tls_are_disconnected() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = create_certificate(folder.path(), "hub");
    let hub = certificate.start_hub(&["--open"]);
    let client = certificate.client(&hub);
    let mut without_tls = hub.client().connect();
    let text = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", hub.address);
    without_tls.write_all(text.as_bytes()).unwrap();
    let response = String::from_utf8_lossy(&read_to_close(&mut without_tls)).into_owned();
    assert!(!response.contains("HTTP/1.1"), "{response}");
    // One client sends nothing, and one stops in the middle of the handshake. Both are disconnected after the timeout.
    let (mut silent, mut partial) = (hub.client().connect(), hub.client().connect());
    partial.write_all(&[22, 3, 1, 2, 0, 1, 0]).unwrap();
    read_to_close(&mut silent);
    read_to_close(&mut partial);
    assert_eq!(client.send("", "GET", "/healthz", "").0, 200, "others are served");
}

#[test]
fn the_error_names_an_unusable_certificate_or_key() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (create_certificate(folder.path(), "one"), create_certificate(folder.path(), "other"));
    let garbage = folder.path().join("garbage.pem");
    let begin = "-----BEGIN CERTIFICATE-----\n";
    std::fs::write(&garbage, format!("{begin}!!!\n-----END CERTIFICATE-----\n")).unwrap();
    let wrong = folder.path().join("wrong.pem");
    std::fs::write(&wrong, format!("{begin}AAAA\n-----END CERTIFICATE-----\n")).unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let missing = folder.path().join("missing.pem");
    let empty_key = folder.path().join("empty.key");
    write_private_file(&empty_key, "");
    for (cert, key, expected) in [
        (&missing, &one.key, "missing.pem: "),
        (&one.cert, &missing, "missing.pem: "),
        (&empty, &one.key, "empty.pem contains no certificate"),
        (&one.key, &one.key, "one.key contains no certificate"),
        (&one.cert, &empty_key, "empty.key contains no private key"),
        (&one.cert, &one.cert, "one.crt: other users can read or change it"),
        (&garbage, &one.key, "garbage.pem is not a PEM file"),
        (&wrong, &one.key, "cannot be used: "),
        (&one.cert, &other.key, "other.key is not the private key of the certificate"),
    ] {
        let refused = Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(["serve", "--memory", "--open", "--listen", "127.0.0.1:0", "--tls-cert"])
            .args([cert.as_os_str(), "--tls-key".as_ref(), key.as_os_str()])
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(expected) && !stderr.contains("listening"), "{expected}: {stderr}");
    }
    let cert_only =
        Command::new(env!("CARGO_BIN_EXE_sayso")).args(["serve", "--tls-cert", "x"]).output().unwrap();
    assert_eq!(cert_only.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&cert_only.stderr).contains("--tls-key"));
}

#[test]
fn open_access_beyond_loopback_is_refused_even_with_tls() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = create_certificate(folder.path(), "hub");
    let arguments = [&certificate.arguments()[..], &["--memory", "--listen", "0.0.0.0:0"]].concat();
    HubProcess::start(&arguments);
    let refused = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .arg("serve")
        .args(&arguments)
        .arg("--open")
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2), "--open is refused even with TLS");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("loopback"));
}

#[test]
fn an_agent_connects_only_to_a_trusted_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let bank = create_token(&file, &["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let (known, other) =
        (create_certificate(folder.path(), "known"), create_certificate(folder.path(), "other"));
    let hub = known.start_hub(&["--tokens", &file]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let connect = || sayso::Hub::connect(format!("https://{}", hub.address)).token(bank.as_str());
        let agent = connect().ca_file(&known.cert).open().await.unwrap();
        let session = agent.session("Pay Ben.").start().await.unwrap();
        session.finish("Paid.").await.unwrap();
        // The refusal is immediate, without retries.
        for refused in [connect().ca_file(&other.cert).open().await, connect().open().await] {
            let refused = refused.err();
            assert!(matches!(refused, Some(sayso::Error::UntrustedServer(_))), "{refused:?}");
        }
        let invalid_ca = connect().ca_file(&known.key).open().await.err();
        assert!(matches!(invalid_ca, Some(sayso::Error::Malformed(_))), "{invalid_ca:?}");
    });
}

#[test]
fn a_renewed_certificate_is_used_after_sighup_and_an_invalid_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let old = create_certificate(folder.path(), "hub");
    let hub = old.start_hub(&["--open"]);
    let accepted = old.client(&hub).post("/aaep/v1/subscriptions", &subscription_request("{}"));
    let mut lines = old.client(&hub).open_event_stream(accepted["subscription_id"].as_str().unwrap());

    let spare = create_certificate(folder.path(), "spare");
    std::fs::copy(&spare.key, &old.key).unwrap();
    let log_line = reload(&hub);
    for part in [
        "error reload.failed what=certificate",
        "is not the private key of the certificate",
        "stays in force",
    ] {
        assert!(log_line.contains(part), "{part}: {log_line}");
    }
    old.client(&hub).start_session();
    assert_eq!(short_type(&next(&mut lines)), "session.started");

    let new = create_certificate(folder.path(), "hub");
    assert!(reload(&hub).contains("reloaded what=certificate"));
    new.client(&hub).start_session();
    assert_eq!(short_type(&next(&mut lines)), "session.started", "existing connections continue");
    let mut refused = old.client(&hub).open_connection();
    let refused = refused.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").and_then(|()| refused.flush());
    assert!(refused.is_err(), "the hub must not use the old certificate");
}

#[test]
fn a_wrong_scheme_is_reported_with_the_right_one() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = create_certificate(folder.path(), "hub");
    let (tls_hub, plain_hub) = (certificate.start_hub(&["--open"]), HubProcess::start_in_memory());
    for (url, hint) in [
        (format!("http://{}", tls_hub.address), "the hub uses TLS; write https:// instead of http://"),
        (
            format!("https://{}", plain_hub.address),
            "the hub does not use TLS; write http:// instead of https://",
        ),
    ] {
        let output = testing::cli::run_sayso(&["listen", &url], "");
        assert_eq!(output.exit_code, 2, "{}", output.stderr);
        assert!(output.stderr.contains(hint), "{}", output.stderr);
    }
}

/// Creates a certificate authority, and a certificate that it signed. Returns the files of the authority, the certificate and its key.
fn create_client_certificate(folder: &Path, name: &str) -> [String; 3] {
    let path = |end: &str| folder.join(format!("{name}{end}"));
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let client = rcgen::CertificateParams::new(vec!["ada".to_owned()]).unwrap();
    let client = client.signed_by(&key, &issuer).unwrap();
    std::fs::write(path(".ca"), authority_pem).unwrap();
    std::fs::write(path(".crt"), client.pem()).unwrap();
    write_private_file(&path(".key"), &key.serialize_pem());
    [".ca", ".crt", ".key"].map(|end| path(end).to_str().unwrap().to_owned())
}

/// B.5.3: with certificates on both sides, a token alone is not enough.
#[test]
fn a_hub_can_demand_certificates_of_its_clients() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = create_certificate(folder.path(), "hub");
    let [authority, cert, key] = create_client_certificate(folder.path(), "ada");
    let [_, foreign_cert, foreign_key] = create_client_certificate(folder.path(), "mallory");
    let hub = certificate.start_hub(&["--open", "--tls-client-ca", &authority]);
    let trust = certificate.cert.to_str().unwrap();
    let run = |scheme: &str, identity: &[&str]| {
        let url = format!("{scheme}://{}", hub.address);
        let arguments = ["check", &url, "--ca", trust, "--agent", "--listen", "0"];
        testing::cli::run_sayso(&[&arguments[..], identity].concat(), "")
    };
    for scheme in ["https", "wss"] {
        let good = run(scheme, &["--client-cert", &cert, "--client-key", &key]);
        assert_eq!(good.exit_code, 0, "{}{}", good.stdout, good.stderr);
        for identity in [&[][..], &["--client-cert", &foreign_cert, "--client-key", &foreign_key]] {
            let refused = run(scheme, identity);
            assert_eq!((refused.exit_code, refused.stdout.as_str()), (2, ""), "{}", refused.stderr);
        }
    }
    #[cfg(feature = "grpc")]
    {
        let address = testing::hub::reserved_address();
        let _hub =
            certificate.start_hub(&["--open", "--tls-client-ca", &authority, "--grpc-listen", &address]);
        let url = format!("grpcs://{address}");
        let arguments = ["check", &url, "--ca", trust, "--listen", "0"];
        let identity = ["--client-cert", &cert, "--client-key", &key];
        let good = testing::cli::run_sayso(&[&arguments[..], &identity].concat(), "");
        assert_eq!(good.exit_code, 0, "{}{}", good.stdout, good.stderr);
        let refused = testing::cli::run_sayso(&arguments, "");
        assert_eq!((refused.exit_code, refused.stdout.as_str()), (2, ""), "{}", refused.stderr);
    }
    // The key file must be private, and a certificate without its key is useless.
    let mixed = run("https", &["--client-cert", &cert, "--client-key", &foreign_key]);
    assert!(mixed.stderr.contains("the client certificate and its key cannot be used"), "{}", mixed.stderr);
    let output = testing::cli::run_sayso(&["serve", "--check", "--tls-client-ca", &authority], "");
    assert!(output.stderr.contains("TLS also needs --tls-cert"), "{}{}", output.stdout, output.stderr);
}
