//! The hub under TLS, with a certificate that was made for the test.

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
use testing::cli::token;
use testing::hub::Hub;
use testing::messages::{CAN_REPLY, QUESTION};
use testing::messages::{kind, reply, request};

struct Certificate {
    der: CertificateDer<'static>,
    cert: PathBuf,
    key: PathBuf,
}

/// A certificate for this machine, and its files.
fn certificate(folder: &Path, name: &str) -> Certificate {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.join(format!("{name}.crt")), folder.join(format!("{name}.key")));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    Certificate { der: made.cert.der().clone(), cert, key }
}

impl Certificate {
    fn arguments(&self) -> [&str; 4] {
        ["--tls-cert", self.cert.to_str().unwrap(), "--tls-key", self.key.to_str().unwrap()]
    }

    fn hub(&self, more: &[&str]) -> Hub {
        Hub::start(&[&self.arguments()[..], &["--memory", "--listen", "127.0.0.1:0"], more].concat())
    }

    /// A connection that trusts this certificate and no other.
    fn connect(
        &self,
        hub: &Hub,
        alpn: &[&str],
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Tls {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), hub.client().connect())
    }

    fn tls(&self, hub: &Hub) -> Tls {
        self.connect(hub, &["http/1.1"], rustls::ALL_VERSIONS)
    }

    /// A request and its answer, whole: the status, the head and the body.
    fn send(&self, hub: &Hub, headers: &str, method: &str, path: &str, body: &str) -> (u16, String, String) {
        let mut stream = self.tls(hub);
        let length = body.len();
        let host = &hub.address;
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        // An end that TLS did not announce would be an error here.
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_owned(), body.to_owned())
    }

    fn post(&self, hub: &Hub, path: &str, body: &str) -> Value {
        let (status, _, body) = self.send(hub, "", "POST", path, body);
        assert!((200..300).contains(&status), "{path}: {status} {body}");
        serde_json::from_str(&body).unwrap_or(Value::Null)
    }

    fn start(&self, hub: &Hub) -> String {
        let started = r#"{"summary_normal":"Moving money.","localization_hints":{"primary_language":"en"}}"#;
        self.post(hub, "/agent/v1/sessions", started)["session_id"].as_str().unwrap().to_owned()
    }

    fn ask(&self, hub: &Hub, session: &str) -> String {
        let path = format!("/agent/v1/sessions/{session}/confirmations");
        self.post(hub, &path, QUESTION)["reply_token"].as_str().unwrap().to_owned()
    }

    fn decision(&self, hub: &Hub, session: &str, token: &str) -> Value {
        let path = format!("/agent/v1/sessions/{session}/replies/{token}?wait=20");
        serde_json::from_str(&self.send(hub, "", "GET", &path, "").2).unwrap()
    }

    /// A stream of events, its head read.
    fn listen(&self, hub: &Hub, subscription: &str) -> BufReader<Tls> {
        let mut stream = self.tls(hub);
        let path = format!("/aaep/v1/events?subscription_id={subscription}");
        let text =
            format!("GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n\r\n", hub.address);
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

type Tls = StreamOwned<ClientConnection, TcpStream>;

fn next(lines: &mut BufReader<Tls>) -> Value {
    loop {
        let mut line = String::new();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "it ended");
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str(data).unwrap();
        }
    }
}

#[test]
fn a_question_is_heard_and_answered_under_tls() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = certificate(folder.path(), "hub");
    let hub = certificate.hub(&["--open"]);
    let accepted = certificate.post(&hub, "/aaep/v1/subscriptions", &request(CAN_REPLY));
    let manifest = format!("https://{}/.well-known/aaep-manifest.json", hub.address);
    assert_eq!(accepted["manifest_uri"], manifest.as_str());
    let subscription = accepted["subscription_id"].as_str().unwrap();
    let mut ear = certificate.listen(&hub, subscription);
    let session = certificate.start(&hub);
    assert_eq!(kind(&next(&mut ear)), "session.started");
    let token = certificate.ask(&hub, &session);
    while next(&mut ear)["reply_token"] != token.as_str() {}
    certificate.post(&hub, "/aaep/v1/replies", &reply(subscription, &token, "accept"));
    assert_eq!(certificate.decision(&hub, &session, &token)["decision"], "accept");
    assert_eq!(next(&mut ear)["extensions"]["sayso"]["decision"], "accept");
    let close = testing::messages::close(subscription);
    certificate.post(&hub, "/aaep/v1/replies", &close);
    let mut rest = String::new();
    ear.read_to_string(&mut rest).unwrap();
}

#[test]
fn many_events_come_whole_and_in_order_and_a_listener_can_return() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = certificate(folder.path(), "hub");
    let hub = certificate.hub(&["--open"]);
    let accepted = certificate.post(&hub, "/aaep/v1/subscriptions", &request(CAN_REPLY));
    let subscription = accepted["subscription_id"].as_str().unwrap();
    let mut ear = certificate.listen(&hub, subscription);
    let session = certificate.start(&hub);
    let sentences: Vec<_> =
        (0..200).map(|number| format!("Sentence {number} {}. ", "word ".repeat(200))).collect();
    // More than the channel, the socket and a record hold at once, and nobody reads meanwhile.
    let path = format!("/agent/v1/sessions/{session}/output?complete=true");
    certificate.post(&hub, &path, &sentences.concat());
    let mut heard = String::new();
    while heard.len() < sentences.concat().len() {
        let event = next(&mut ear);
        heard += event["chunk"].as_str().unwrap_or("");
    }
    assert_eq!(heard, sentences.concat());
    drop(ear);
    // The subscription can be taken up again and hears on.
    let mut ear = certificate.listen(&hub, subscription);
    certificate.ask(&hub, &session);
    while kind(&next(&mut ear)) != "awaiting.confirmation" {}
}

#[test]
fn a_websocket_works_under_tls() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = certificate(folder.path(), "hub");
    let hub = certificate.hub(&["--open"]);
    let address = format!("wss://{}/aaep/v1/ws", hub.address).parse().unwrap();
    let origin = format!("https://{}", hub.address);
    let wanted = ClientRequestBuilder::new(address)
        .with_header("Sec-WebSocket-Protocol", "aaep.v1")
        .with_header("Origin", origin);
    let (mut socket, _) = tungstenite::client(wanted, certificate.tls(&hub)).unwrap();
    socket.send(Message::text(request(CAN_REPLY))).unwrap();
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
    let session = certificate.start(&hub);
    assert_eq!(kind(&next()), "session.started");
    let token = certificate.ask(&hub, &session);
    while next()["reply_token"] != token.as_str() {}
    socket.send(Message::text(reply(&subscription, &token, "reject"))).unwrap();
    assert_eq!(certificate.decision(&hub, &session, &token)["decision"], "reject");
}

#[test]
fn a_cookie_is_secure_and_pages_come_by_https() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = certificate(folder.path(), "hub");
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let ada = token(&file, &["--role", "listener", "--name", "ada"]);
    let hub = certificate.hub(&["--tokens", &file]);
    let form = format!("token={ada}");
    let headers = |scheme: &str| {
        let host = &hub.address;
        format!("Origin: {scheme}://{host}\r\nContent-Type: application/x-www-form-urlencoded\r\n")
    };
    let (status, head, _) = certificate.send(&hub, &headers("https"), "POST", "/login", &form);
    assert_eq!(status, 303, "{head}");
    assert!(
        head.lines().any(|line| line.starts_with("Set-Cookie: sayso=") && line.ends_with("; Secure")),
        "{head}"
    );
    assert_eq!(certificate.send(&hub, &headers("http"), "POST", "/login", &form).0, 403);
}

#[test]
fn both_versions_are_spoken_and_http_1_1_only() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = certificate(folder.path(), "hub");
    let hub = certificate.hub(&["--open"]);
    for (versions, spoken) in [
        (&[&rustls::version::TLS12], ProtocolVersion::TLSv1_2),
        (&[&rustls::version::TLS13], ProtocolVersion::TLSv1_3),
    ] {
        let mut stream = certificate.connect(&hub, &["h2", "http/1.1"], versions);
        stream.conn.complete_io(&mut stream.sock).unwrap();
        assert_eq!(stream.conn.protocol_version(), Some(spoken));
        assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    }
    let mut stream = certificate.connect(&hub, &["h2"], rustls::ALL_VERSIONS);
    assert!(stream.conn.complete_io(&mut stream.sock).is_err());
    let other = self::certificate(folder.path(), "other");
    let mut stream = other.tls(&hub);
    assert!(stream.conn.complete_io(&mut stream.sock).is_err(), "another's certificate");
}

/// Reads to the end of a connection that the hub closes; fails if it hangs.
fn ends(stream: &mut TcpStream) -> Vec<u8> {
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
fn who_does_not_speak_tls_is_let_go() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = certificate(folder.path(), "hub");
    let hub = certificate.hub(&["--open"]);
    let mut plain = hub.client().connect();
    let text = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", hub.address);
    plain.write_all(text.as_bytes()).unwrap();
    let answer = String::from_utf8_lossy(&ends(&mut plain)).into_owned();
    assert!(!answer.contains("HTTP/1.1"), "{answer}");
    // One says nothing, one stops in the middle: both are let go when their time is over.
    let (mut silent, mut half) = (hub.client().connect(), hub.client().connect());
    half.write_all(&[22, 3, 1, 2, 0, 1, 0]).unwrap();
    ends(&mut silent);
    ends(&mut half);
    assert_eq!(certificate.send(&hub, "", "GET", "/healthz", "").0, 200, "others are served");
}

#[test]
fn a_certificate_or_key_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (certificate(folder.path(), "one"), certificate(folder.path(), "other"));
    let garbage = folder.path().join("garbage.pem");
    let begin = "-----BEGIN CERTIFICATE-----\n";
    std::fs::write(&garbage, format!("{begin}!!!\n-----END CERTIFICATE-----\n")).unwrap();
    let wrong = folder.path().join("wrong.pem");
    std::fs::write(&wrong, format!("{begin}AAAA\n-----END CERTIFICATE-----\n")).unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let nothing = folder.path().join("nothing.pem");
    for (cert, key, word) in [
        (&nothing, &one.key, "nothing.pem: "),
        (&one.cert, &nothing, "nothing.pem: "),
        (&empty, &one.key, "empty.pem: there is no certificate in it"),
        (&one.key, &one.key, "one.key: there is no certificate in it"),
        (&one.cert, &one.cert, "one.crt: there is no private key in it"),
        (&garbage, &one.key, "garbage.pem: must be PEM"),
        (&wrong, &one.key, "cannot be used: "),
        (&one.cert, &other.key, "other.key: not the key of the certificate"),
    ] {
        let refused = Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(["serve", "--memory", "--open", "--listen", "127.0.0.1:0", "--tls-cert"])
            .args([cert.as_os_str(), "--tls-key".as_ref(), key.as_os_str()])
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{told}");
        assert!(told.contains(word) && !told.contains("listening"), "{word}: {told}");
    }
    let alone =
        Command::new(env!("CARGO_BIN_EXE_sayso")).args(["serve", "--tls-cert", "x"]).output().unwrap();
    assert_eq!(alone.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&alone.stderr).contains("--tls-key"));
}

#[test]
fn in_the_clear_beyond_this_machine_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = certificate(folder.path(), "hub");
    let warns = |hub: &Hub| hub.said.iter().any(|line| line.starts_with("warning: without TLS, tokens"));
    assert!(warns(&Hub::start(&["--memory", "--listen", "0.0.0.0:0"])));
    assert!(!warns(&Hub::start(&["--memory", "--listen", "127.0.0.1:0"])));
    let arguments = [&certificate.arguments()[..], &["--memory", "--listen", "0.0.0.0:0"]].concat();
    assert!(!warns(&Hub::start(&arguments)));
    let open = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .arg("serve")
        .args(&arguments)
        .arg("--open")
        .output()
        .unwrap();
    assert_eq!(open.status.code(), Some(2), "with TLS too");
    assert!(String::from_utf8_lossy(&open.stderr).contains("loopback"));
}

#[test]
fn an_agent_speaks_to_whom_it_trusts_and_to_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let bank = token(&file, &["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let (known, other) = (certificate(folder.path(), "known"), certificate(folder.path(), "other"));
    let hub = known.hub(&["--tokens", &file]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let connect = || sayso::Hub::connect(format!("https://{}", hub.address)).token(bank.as_str());
        let agent = connect().trust(&known.cert).open().await.unwrap();
        let session = agent.session("Pay Ben.").start().await.unwrap();
        session.finish("Paid.").await.unwrap();
        // At once, and not after all of its patience.
        for refused in [connect().trust(&other.cert).open().await, connect().open().await] {
            let refused = refused.err();
            assert!(matches!(refused, Some(sayso::Error::NotTrusted(_))), "{refused:?}");
        }
        let no_file = connect().trust(&known.key).open().await.err();
        assert!(matches!(no_file, Some(sayso::Error::Malformed(_))), "{no_file:?}");
    });
}

#[test]
fn a_certificate_that_is_renewed_is_shown_after_sighup_and_a_wrong_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let old = certificate(folder.path(), "hub");
    let hub = old.hub(&["--open"]);
    let accepted = old.post(&hub, "/aaep/v1/subscriptions", &request("{}"));
    let mut lines = old.listen(&hub, accepted["subscription_id"].as_str().unwrap());

    let spare = certificate(folder.path(), "spare");
    std::fs::copy(&spare.key, &old.key).unwrap();
    let said = reload(&hub);
    for part in ["error reload.failed what=certificate", "not the key of the certificate", "stays in force"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    old.start(&hub);
    assert_eq!(kind(&next(&mut lines)), "session.started");

    let new = certificate(folder.path(), "hub");
    assert!(reload(&hub).contains("reloaded what=certificate"));
    new.start(&hub);
    assert_eq!(kind(&next(&mut lines)), "session.started", "who was connected before goes on");
    let mut refused = old.tls(&hub);
    let refused = refused.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").and_then(|()| refused.flush());
    assert!(refused.is_err(), "the old one is not shown any more");
}

#[test]
fn who_writes_the_wrong_scheme_is_told_which_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = certificate(folder.path(), "hub");
    let (secure, plain) = (certificate.hub(&["--open"]), Hub::open());
    for (url, right) in [
        (format!("http://{}", secure.address), "it speaks TLS; write https:// in place of http://"),
        (format!("https://{}", plain.address), "it does not speak TLS; write http:// in place of https://"),
    ] {
        let ended = testing::cli::sayso(&["listen", &url], "");
        assert_eq!(ended.code, 2, "{}", ended.err);
        assert!(ended.err.contains(right), "{}", ended.err);
    }
}
