//! Connections: who may hold one, what is read from callers without a token, and what happens when file descriptors run out.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use testing::cli::create_token;
use testing::http::{TIMEOUT, TestClient};
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;

use crate::serve::observability::metrics;

/// A connection that stays open between requests.
struct KeepAliveConnection {
    stream: TcpStream,
    headers: String,
}

impl KeepAliveConnection {
    fn new(hub: &HubProcess, token: Option<&str>) -> Self {
        let authorization =
            token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        Self {
            stream: hub.client().connect(),
            headers: format!("Host: {}\r\n{authorization}\r\n", hub.address),
        }
    }

    /// Whether the hub has closed the connection. Does not wait.
    fn is_closed(&self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).unwrap();
        match peeked {
            Ok(count) => count == 0,
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }

    /// Sends a request. Returns the status and the body, or `None` if the hub has closed the connection.
    fn get(&mut self, path: &str) -> Option<(u16, String)> {
        self.stream.write_all(format!("GET {path} HTTP/1.1\r\n{}", self.headers).as_bytes()).ok()?;
        let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            let text = String::from_utf8_lossy(&received);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?;
                if body.len() >= length.parse().unwrap() {
                    return Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()));
                }
            }
            match self.stream.read(&mut buffer) {
                Ok(count @ 1..) => received.extend_from_slice(&buffer[..count]),
                Ok(0) => return None,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{path}: {error}"),
            }
        }
    }
}

/// Opens a connection without a token, and asserts that the hub answers a request on it.
fn connect_without_token(hub: &HubProcess) -> KeepAliveConnection {
    let mut connection = KeepAliveConnection::new(hub, None);
    assert_eq!(connection.get("/healthz").unwrap().0, 200);
    connection
}

/// Creates a token file with the listener `ada` and the admin `root`. Returns the file's path, the listener's token and the
/// admin's token.
fn create_tokens(folder: &Path) -> (String, String, String) {
    let file = folder.join("tokens").to_str().unwrap().to_owned();
    let ada = create_token(&file, &["--role", "listener", "--name", "ada"]);
    let admin = create_token(&file, &["--role", "admin", "--name", "root"]);
    (file, ada, admin)
}

fn remove_token(file: &str, name: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    let is_other = |line: &&str| !line.contains(&format!("\"name\":\"{name}\""));
    let remaining: String = text.split_inclusive('\n').filter(is_other).collect();
    assert_ne!(remaining, text);
    std::fs::write(file, remaining).unwrap();
}

#[test]
fn a_bad_token_is_refused_before_the_body_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (file, ada, _) = create_tokens(folder.path());
    // This body timeout is longer than the client's timeout, so the test fails if the hub waits for the body.
    let arguments = ["--memory", "--listen", "127.0.0.1:0", "--tokens", &file, "--http-body-timeout", "1h"];
    let hub = HubProcess::start(&arguments);
    let host = format!("Host: {}\r\n", hub.address);
    for credentials in ["", "Authorization: Bearer sayso_guess\r\n", "Cookie: sayso=guess\r\n"] {
        for framing in ["Content-Length: 1000000", "Transfer-Encoding: chunked"] {
            for expect in ["", "Expect: 100-continue\r\n"] {
                let head = format!(
                    "POST /agent/v1/sessions HTTP/1.1\r\n{host}{credentials}{expect}{framing}\r\n\r\n"
                );
                let mut stream = hub.client().connect();
                stream.write_all(head.as_bytes()).unwrap();
                let mut status = [0; 13];
                stream.read_exact(&mut status).unwrap();
                assert_eq!(&status, b"HTTP/1.1 401 ", "{head}");
            }
        }
    }
    // A client that sends the whole body at once still gets the response.
    let body = "x".repeat(1_000_000);
    assert_eq!(hub.client().with_bearer("sayso_guess").post("/agent/v1/sessions", &body).status, 401);
    assert_eq!(
        hub.client().post("/login", &format!("token={ada}{body}")).status,
        413,
        "a sign-in form must be short"
    );
    hub.client().with_bearer(&ada).subscribe(REPLY_CAPABILITIES);
}

#[test]
fn event_streams_count_as_connections() {
    let hub = HubProcess::start_in_memory_with(&[
        "--http-connections",
        "3",
        "--http-reserved-connections",
        "0",
        "--http-heartbeat",
        "1h",
    ]);
    let client = hub.client();
    let subscriptions: Vec<_> = (0..3).map(|_| client.subscribe("{}")).collect();
    let mut streams: Vec<_> =
        subscriptions.iter().map(|subscription| client.open_event_stream(subscription, None)).collect();
    assert!(
        KeepAliveConnection::new(&hub, None).get("/healthz").is_none(),
        "three streams take all connections"
    );
    hub.wait_for_log("limit.reached limit=connections");
    drop(streams.remove(0));
    hub.wait_for_log("listener.left");
    assert_eq!(
        connect_without_token(&hub).get("/healthz").unwrap().0,
        200,
        "the closed stream no longer counts"
    );
}

#[test]
fn callers_without_a_token_cannot_keep_out_callers_with_one() {
    let folder = tempfile::tempdir().unwrap();
    let (file, ada, admin) = create_tokens(folder.path());
    let hub = HubProcess::start(&[
        "--memory",
        "--listen",
        "127.0.0.1:0",
        "--tokens",
        &file,
        "--http-connections",
        "6",
        "--http-reserved-connections",
        "3",
    ]);
    let ada = hub.client().with_bearer(&ada);
    let _stream = ada.open_event_stream(&ada.subscribe("{}"), None);
    let mut without_token: Vec<_> = (0..40).map(|_| connect_without_token(&hub)).collect();
    assert!(without_token[0].get("/healthz").is_none(), "the oldest caller without a token was disconnected");
    assert_eq!(
        without_token[39].get("/healthz").unwrap().0,
        200,
        "the newest caller without a token is still connected"
    );
    let mut operator = KeepAliveConnection::new(&hub, Some(&admin));
    assert_eq!(operator.get("/metrics").unwrap().0, 200, "a caller with a token can always connect");
    without_token.extend((0..40).map(|_| connect_without_token(&hub)));
    assert_eq!(operator.get("/metrics").unwrap().0, 200, "a caller with a token stays connected");
    assert!(
        operator.get("/metrics").unwrap().1.contains("sayso_listeners{transport=\"sse\"} 1\n"),
        "Ada's stream stays open too"
    );
}

#[test]
fn one_address_cannot_take_all_connections() {
    let arguments = ["--http-connections-per-address", "2", "--http-trusted-proxies", "127.0.0.4"];
    let hub = HubProcess::start_in_memory_with(&arguments);
    let connect = |source: &str| {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&format!("{source}:0").parse::<SocketAddr>().unwrap().into()).unwrap();
        socket.connect(&hub.address.parse::<SocketAddr>().unwrap().into()).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        KeepAliveConnection { stream: socket.into(), headers: format!("Host: {}\r\n\r\n", hub.address) }
    };
    let mut held: Vec<_> = (0..2).map(|_| connect("127.0.0.2")).collect();
    for connection in &mut held {
        assert_eq!(connection.get("/healthz").unwrap().0, 200);
    }
    assert!(connect("127.0.0.2").get("/healthz").is_none());
    hub.wait_for_log("limit.reached limit=connections_per_address");
    assert_eq!(connect("127.0.0.3").get("/healthz").unwrap().0, 200, "another address has its own limit");
    // All clients of a proxy share its address, which has no limit.
    let mut proxied: Vec<_> = (0..5).map(|_| connect("127.0.0.4")).collect();
    assert!(proxied.iter_mut().all(|connection| connection.get("/healthz").unwrap().0 == 200));
    // All programs on this machine share 127.0.0.1, which has no limit either.
    let _local: Vec<_> = (0..5).map(|_| connect_without_token(&hub)).collect();
    assert_eq!(held[0].get("/healthz").unwrap().0, 200);
}

/// Starts a hub in a shell that first runs this `ulimit` command.
fn start_with_ulimit(ulimit_command: &str, arguments: &[&str]) -> HubProcess {
    let script = format!(r#"{ulimit_command} && exec "$0" serve "$@""#);
    HubProcess::start_command(
        Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_sayso")]).args(arguments),
    )
}

#[test]
fn the_limit_on_descriptors_is_raised_and_a_low_one_is_reported() {
    let arguments = ["--memory", "--open", "--listen", "127.0.0.1:0"];
    let hub = start_with_ulimit("ulimit -Sn 100", &arguments);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", hub.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let values: Vec<&str> = line.split_whitespace().skip(3).collect();
    assert_eq!(values[0], values[1], "the soft limit equals the hard limit: {line}");
    let hub = start_with_ulimit("ulimit -n 200", &arguments);
    let warning =
        "warning: http.connections is 20000, but the limit of 200 file descriptors permits only 136";
    assert!(hub.startup_lines.iter().any(|line| line.starts_with(warning)), "{:?}", hub.startup_lines);
    let hub = start_with_ulimit("ulimit -n 200", &[&arguments[..], &["--http-connections", "136"]].concat());
    assert!(!hub.startup_lines.iter().any(|line| line.contains("file descriptors")));
}

#[test]
fn a_token_is_revoked_even_if_connections_take_all_descriptors() {
    const DESCRIPTOR_LIMIT: usize = 120;
    let folder = tempfile::tempdir().unwrap();
    let (file, ada, _) = create_tokens(folder.path());
    let arguments = ["--memory", "--listen", "127.0.0.1:0", "--tokens", &file];
    let hub = start_with_ulimit(
        &format!("ulimit -n {DESCRIPTOR_LIMIT}"),
        &[&arguments[..], &["--http-reserved-connections", "0"]].concat(),
    );
    let mut listener = KeepAliveConnection::new(&hub, Some(&ada));
    // A listener may not read metrics. The response is 403 while its token is valid, and 401 afterwards.
    assert_eq!(listener.get("/metrics").unwrap().0, 403);
    // As many connections as the hub accepts. They end when the hub refuses one, or when it has no descriptor left.
    let mut connections = Vec::new();
    loop {
        let open_before = hub.open_descriptors();
        connections.push(KeepAliveConnection::new(&hub, None));
        let last = connections.last().unwrap();
        while hub.open_descriptors() <= open_before && !last.is_closed() && open_before < DESCRIPTOR_LIMIT {
            std::thread::yield_now();
        }
        if last.is_closed() || open_before >= DESCRIPTOR_LIMIT {
            break;
        }
    }
    assert!(connections.len() >= 40, "only {} connections were accepted", connections.len());
    remove_token(&file, "ada");
    hub.signal("-HUP");
    let line = hub.wait_for_log("reload");
    assert!(line.contains("reloaded what=tokens") && line.contains("removed=1"), "{line}");
    assert_eq!(listener.get("/metrics").unwrap().0, 401);
}

#[test]
fn a_reload_that_lacks_descriptors_is_retried_and_shown_until_it_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let (file, ada, admin) = create_tokens(folder.path());
    let hub = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", &file]);
    let set_descriptor_limit = |limit: &str| {
        let status =
            Command::new("prlimit").args(["--pid", &hub.pid(), &format!("--nofile={limit}:")]).status();
        assert!(status.unwrap().success());
    };
    // These connections are opened before the limit is lowered, because the hub cannot accept any afterwards.
    let mut listener = KeepAliveConnection::new(&hub, Some(&ada));
    let mut operator = KeepAliveConnection::new(&hub, Some(&admin));
    assert_eq!((listener.get("/metrics").unwrap().0, operator.get("/readyz").unwrap().0), (403, 200));
    remove_token(&file, "ada");
    set_descriptor_limit("3");
    hub.signal("-HUP");
    let failed = hub.wait_for_log("reload");
    assert!(failed.contains("reload.failed what=tokens") && failed.contains("tries again"), "{failed}");
    let (status, body) = operator.get("/readyz").unwrap();
    assert_eq!(status, 503);
    assert!(body.contains("removed tokens may still be accepted"), "{body}");
    let samples = operator.get("/metrics").unwrap().1;
    assert!(samples.contains("\nsayso_reload_healthy 0\n"), "{samples}");
    set_descriptor_limit("20000");
    let reloaded = hub.wait_for_log("reload");
    assert!(reloaded.contains("reloaded what=tokens") && reloaded.contains("removed=1"), "{reloaded}");
    assert_eq!(listener.get("/metrics").unwrap().0, 401, "no second SIGHUP is needed");
    assert_eq!(operator.get("/readyz").unwrap().0, 200);
    let samples = metrics(&TestClient::new(&hub.address).with_bearer(&admin));
    assert!(samples["sayso_reload_healthy"] > 0.5 && samples["sayso_reload_failures_total"] > 0.5);
}
