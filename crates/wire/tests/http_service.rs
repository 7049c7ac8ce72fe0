//! A small service on `HttpServer`: it is admitted, authenticated, limited and measured as the hub is.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a failed test panics")]

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use hub::Role;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::{Error, Message};
use wire::auth::{NewToken, Tokens};
use wire::http::{HttpResponse, Method, RequestHead, StatusCode};
use wire::telemetry::Telemetry;
use wire::{
    Access, AuthPolicy, HttpServer, HttpService, ServerLimits, ServiceOutcome, ServiceRequest,
    ServiceWebSocket, close_websocket, unix_now,
};

/// How long to wait before a test fails. Even a slow machine needs much less.
const TEST_TIMEOUT: Duration = Duration::from_mins(2);
const MAX_NOTE_BYTES: usize = 16;
const MAX_SIGNED_BYTES: usize = 32;

/// An action of the service, recorded for the tests.
#[derive(Debug, PartialEq)]
enum Event {
    Handled(String),
    LongPollStarted,
    /// The future of a long poll was dropped.
    LongPollEnded,
    StreamClosed,
    WebSocketEnded,
}

struct TestService {
    events: mpsc::UnboundedSender<Event>,
    is_ready: bool,
}

/// Reports an event when dropped.
struct ReportOnDrop(mpsc::UnboundedSender<Event>, Option<Event>);

impl Drop for ReportOnDrop {
    fn drop(&mut self) {
        let _ = self.0.send(self.1.take().unwrap());
    }
}

impl HttpService for TestService {
    type Caller = String;

    fn admit(&self, head: &RequestHead, peer: IpAddr) -> Result<Access<String>, HttpResponse> {
        match head.path.as_str() {
            "/notes" => Ok(Access::Anyone { max_body_bytes: MAX_NOTE_BYTES }),
            "/address" => Err(HttpResponse::new(StatusCode::Forbidden).body("text/plain", peer.to_string())),
            "/signed" => match head.header("x-signature") {
                Some(caller) => {
                    Ok(Access::Authenticated { caller: caller.to_owned(), max_body_bytes: MAX_SIGNED_BYTES })
                }
                None => Err(HttpResponse::problem(StatusCode::Unauthorized, "Sign the request.")),
            },
            _ => Ok(Access::Token),
        }
    }

    async fn handle(&self, request: ServiceRequest<String>) -> ServiceOutcome {
        let name = request.principal.map(|principal| principal.name.to_string());
        let name = name.or(request.caller).unwrap_or_else(|| "anyone".to_owned());
        let parts: Vec<&str> = request.head.path.split('/').skip(1).collect();
        match (request.head.method, parts.as_slice()) {
            (Method::Post, ["notes" | "signed" | "private"]) => {
                let text = format!("{name}: {}", String::from_utf8(request.body).unwrap());
                self.events.send(Event::Handled(text.clone())).unwrap();
                HttpResponse::new(StatusCode::Accepted).body("text/plain", text).into()
            }
            (Method::Get, ["items", _]) => HttpResponse::new(StatusCode::NoContent).into(),
            (Method::Get, ["stream"]) => {
                let (sender, receiver) = mpsc::channel(4);
                let events = self.events.clone();
                tokio::spawn(async move {
                    sender.send(b"data: first\n\n".to_vec()).await.unwrap();
                    sender.send(b"data: second\n\n".to_vec()).await.unwrap();
                    sender.closed().await;
                    events.send(Event::StreamClosed).unwrap();
                });
                ServiceOutcome::EventStream(receiver)
            }
            (Method::Get, ["finite"]) => {
                let (sender, receiver) = mpsc::channel(4);
                sender.try_send(b"data: only\n\n".to_vec()).unwrap();
                ServiceOutcome::EventStream(receiver)
            }
            (_, ["echo"]) => {
                let report = ReportOnDrop(self.events.clone(), Some(Event::WebSocketEnded));
                let run = move |socket| -> wire::HandlerFuture<()> { Box::pin(echo(socket, report)) };
                ServiceOutcome::WebSocket { subprotocol: Some("echo.v1"), run: Box::new(run) }
            }
            (Method::Get, ["wait"]) => {
                let _report = ReportOnDrop(self.events.clone(), Some(Event::LongPollEnded));
                self.events.send(Event::LongPollStarted).unwrap();
                std::future::pending().await
            }
            _ => HttpResponse::problem(StatusCode::NotFound, "There is no such path.").into(),
        }
    }

    fn route_template(&self, head: &RequestHead) -> Option<&'static str> {
        let parts: Vec<&str> = head.path.split('/').skip(1).collect();
        Some(match parts.as_slice() {
            ["notes"] => "/notes",
            ["private"] => "/private",
            ["items", _] => "/items/{id}",
            ["stream"] => "/stream",
            ["echo"] => "/echo",
            _ => return None,
        })
    }

    fn is_long_poll(&self, head: &RequestHead) -> bool {
        head.path == "/wait"
    }

    fn readiness(&self) -> Result<(), String> {
        if self.is_ready { Ok(()) } else { Err("The disk is missing.".to_owned()) }
    }
}

/// Echoes text until the client sends "end" or closes.
async fn echo(mut socket: ServiceWebSocket, _report: ReportOnDrop) {
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Message::Text(text) if text.as_str() == "end" => {
                return close_websocket(socket, 4000, "ended").await;
            }
            Message::Text(_) => socket.send(message).await.unwrap(),
            _ => {}
        }
    }
}

struct TestServer {
    server: Arc<HttpServer<TestService>>,
    address: String,
    events: mpsc::UnboundedReceiver<Event>,
    user: String,
    admin: String,
}

impl TestServer {
    async fn start() -> Self {
        Self::start_with(&ServerLimits::default(), true, |server| server).await
    }

    async fn start_with(
        limits: &ServerLimits,
        is_ready: bool,
        configure: fn(HttpServer<TestService>) -> HttpServer<TestService>,
    ) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let mut tokens = Tokens::default();
        let mut add = |name: &str, role| {
            tokens.add(&NewToken::new(name, role, unix_now()), &mut seal::SystemRandom).unwrap().0
        };
        let (user, admin) = (add("user", Role::Listener), add("admin", Role::Admin));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = HttpServer::new(
            TestService { events: sender, is_ready },
            AuthPolicy::Tokens(tokens),
            *limits,
            vec![address.clone(), "service.example".to_owned()],
            Arc::new(Telemetry::default()),
        );
        let server = Arc::new(configure(server));
        tokio::spawn(server.clone().serve(listener));
        Self { server, address, events, user, admin }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).await.unwrap()
    }

    /// Sends a request with these headers, and returns everything until the server closes the connection.
    async fn exchange(&self, request_line: &str, headers: &str, body: &str) -> String {
        let request = format!(
            "{request_line} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}\r\n{body}",
            self.address
        );
        self.exchange_raw(&request).await
    }

    async fn exchange_raw(&self, request: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        read_to_end(&mut stream).await
    }

    async fn get(&self, path: &str, token: &str) -> String {
        self.exchange(&format!("GET {path}"), &bearer(token), "").await
    }

    async fn next_event(&mut self) -> Event {
        timeout(TEST_TIMEOUT, self.events.recv()).await.expect("the event arrives in time").unwrap()
    }

    /// Opens a request that stays open, and returns its connection.
    async fn open(&self, path: &str, headers: &str) -> TcpStream {
        let mut stream = self.connect().await;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", self.address);
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    timeout(TEST_TIMEOUT, stream.read_to_end(&mut bytes)).await.expect("the server closes in time").unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Reads until the text ends with `end`.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end.as_bytes()) {
        let read =
            timeout(TEST_TIMEOUT, stream.read_buf(&mut bytes)).await.expect("the bytes arrive in time");
        assert_ne!(read.unwrap(), 0, "the stream ended: {}", String::from_utf8_lossy(&bytes));
    }
    String::from_utf8(bytes).unwrap()
}

fn status(response: &str) -> &str {
    response.get(9..12).unwrap_or(response)
}

#[tokio::test]
async fn ambiguous_and_misdirected_requests_never_reach_the_service() {
    let mut server = TestServer::start().await;
    let host = server.address.clone();
    for (request, expected) in [
        (
            format!(
                "POST /notes HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na"
            ),
            "400",
        ),
        (format!("POST /notes HTTP/1.1\nHost: {host}\r\nContent-Length: 1\r\n\r\na"), "400"),
        (
            format!(
                "POST /notes HTTP/1.1\r\nHost: {host}\r\nDPoP: a\r\nDPoP: b\r\nContent-Length: 1\r\n\r\na"
            ),
            "400",
        ),
        (format!("POST /notes?token=a HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"), "400"),
        ("POST /notes HTTP/1.1\r\nHost: elsewhere\r\nConnection: close\r\n\r\n".to_owned(), "421"),
        (
            format!(
                "POST /notes HTTP/1.1\r\nHost: {host}\r\nOrigin: http://elsewhere\r\nConnection: close\r\n\r\n"
            ),
            "403",
        ),
    ] {
        assert_eq!(status(&server.exchange_raw(&request).await), expected, "{request}");
    }
    let response = server.exchange("POST /notes", "Content-Length: 4\r\n", "last").await;
    assert_eq!(status(&response), "202", "{response}");
    assert_eq!(
        server.next_event().await,
        Event::Handled("anyone: last".to_owned()),
        "nothing came before it"
    );
}

#[tokio::test]
async fn a_request_without_its_credentials_is_refused_before_its_body_is_sent() {
    let mut server = TestServer::start().await;
    // The client waits for `100 Continue`, so a server that wants the body first would answer that instead.
    let waiting = "Content-Length: 5\r\nExpect: 100-continue\r\n";
    for (path, token) in [("/private", ""), ("/private", "wrong"), ("/signed", "")] {
        let headers = if token.is_empty() { waiting.to_owned() } else { bearer(token) + waiting };
        let response = server.exchange(&format!("POST {path}"), &headers, "").await;
        assert_eq!(status(&response), "401", "{path}: {response}");
    }
    for (path, headers, expected) in [
        ("/private", bearer(&server.user), "user: hello"),
        ("/signed", "X-Signature: peer-1\r\n".to_owned(), "peer-1: hello"),
    ] {
        let response = server.exchange(&format!("POST {path}"), &(headers + waiting), "hello").await;
        assert!(response.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\n"), "{response}");
        assert_eq!(server.next_event().await, Event::Handled(expected.to_owned()));
    }
}

#[tokio::test]
async fn a_body_is_limited_by_its_route_and_by_the_server() {
    let limits = ServerLimits { body_bytes: 24, ..ServerLimits::default() };
    let server = TestServer::start_with(&limits, true, |server| server).await;
    let user = bearer(&server.user);
    for (path, headers, max_bytes) in [
        ("/notes", "", MAX_NOTE_BYTES),
        ("/signed", "X-Signature: a\r\n", 24),
        ("/private", user.as_str(), 24),
    ] {
        for (bytes, expected) in [(max_bytes, "202"), (max_bytes + 1, "413")] {
            let body = "x".repeat(bytes);
            let with_length = format!("{headers}Content-Length: {bytes}\r\n");
            let response = server.exchange(&format!("POST {path}"), &with_length, &body).await;
            assert_eq!(status(&response), expected, "{path} {bytes}");
            let chunked = format!("{headers}Transfer-Encoding: chunked\r\n");
            let body = format!("{bytes:x}\r\n{body}\r\n0\r\n\r\n");
            let response = server.exchange(&format!("POST {path}"), &chunked, &body).await;
            assert_eq!(status(&response), expected, "{path} {bytes}, chunked");
        }
    }
}

#[tokio::test]
async fn events_are_streamed_unchanged_until_either_side_ends_the_stream() {
    let mut server = TestServer::start().await;
    let response = server.get("/finite", &server.user).await;
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"), "{head}");
    assert_eq!(body, "data: only\n\n");
    let mut stream = server.open("/stream", &bearer(&server.user)).await;
    let text = read_until(&mut stream, "data: second\n\n").await;
    assert!(text.ends_with("\r\n\r\ndata: first\n\ndata: second\n\n"), "{text}");
    drop(stream);
    assert_eq!(server.next_event().await, Event::StreamClosed, "the service notices the disconnect");
}

#[tokio::test]
async fn a_quiet_stream_gets_comments() {
    let limits = ServerLimits { ping_interval: Duration::from_millis(1), ..ServerLimits::default() };
    let server = TestServer::start_with(&limits, true, |server| server).await;
    let mut stream = server.open("/stream", &bearer(&server.user)).await;
    read_until(&mut stream, "data: second\n\n:\n\n").await;
}

async fn connect_websocket(
    server: &TestServer,
    token: &str,
    subprotocol: &'static str,
) -> Result<tokio_tungstenite::WebSocketStream<TcpStream>, Error> {
    use tokio_tungstenite::tungstenite::client::IntoClientRequest;
    let mut request = format!("ws://{}/echo", server.address).into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    request.headers_mut().insert("sec-websocket-protocol", subprotocol.parse().unwrap());
    client_async(request, server.connect().await).await.map(|(socket, _)| socket)
}

#[tokio::test]
async fn a_websocket_echoes_and_closes_with_a_reason() {
    let mut server = TestServer::start().await;
    let mut socket = connect_websocket(&server, &server.user, "echo.v1").await.unwrap();
    socket.send(Message::text("hello")).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("hello"));
    socket.send(Message::text("end")).await.unwrap();
    let Message::Close(Some(frame)) = socket.next().await.unwrap().unwrap() else { panic!("a close frame") };
    assert_eq!((u16::from(frame.code), frame.reason.as_str()), (4000, "ended"));
    drop(socket);
    assert_eq!(server.next_event().await, Event::WebSocketEnded);
}

#[tokio::test]
async fn a_websocket_needs_a_valid_upgrade_and_its_subprotocol() {
    let server = TestServer::start().await;
    let Err(Error::Http(response)) = connect_websocket(&server, &server.user, "other").await else {
        panic!("another subprotocol is refused");
    };
    assert_eq!(response.status(), 400);
    let Err(Error::Http(response)) = connect_websocket(&server, "wrong", "echo.v1").await else {
        panic!("a wrong token is refused");
    };
    assert_eq!(response.status(), 401);
    assert_eq!(status(&server.get("/echo", &server.user).await), "426");
    let upgrade = bearer(&server.user)
        + "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: echo.v1\r\n";
    let request = format!("POST /echo HTTP/1.0\r\nHost: {}\r\n{upgrade}\r\n", server.address);
    assert_eq!(status(&server.exchange_raw(&request).await), "405");
}

#[tokio::test]
async fn a_long_poll_is_cancelled_when_its_client_disconnects() {
    let mut server = TestServer::start().await;
    let stream = server.open("/wait", &bearer(&server.user)).await;
    assert_eq!(server.next_event().await, Event::LongPollStarted);
    drop(stream);
    assert_eq!(server.next_event().await, Event::LongPollEnded);
}

#[tokio::test]
async fn a_revoked_token_ends_its_long_polls_and_streams_and_is_refused() {
    let mut server = TestServer::start().await;
    let user = server.user.clone();
    let mut poll = server.open("/wait", &(bearer(&user) + "Connection: close\r\n")).await;
    assert_eq!(server.next_event().await, Event::LongPollStarted);
    let mut stream = server.open("/stream", &bearer(&user)).await;
    read_until(&mut stream, "data: second\n\n").await;
    let mut socket = connect_websocket(&server, &user, "echo.v1").await.unwrap();
    let changes = server.server.replace_tokens(Tokens::default());
    assert_eq!((changes.total, changes.added, changes.removed), (0, 0, 2));
    let response = read_to_end(&mut poll).await;
    assert_eq!(status(&response), "401", "{response}");
    assert_eq!(read_to_end(&mut stream).await, "", "the stream ends");
    assert!(!matches!(socket.next().await, Some(Ok(Message::Text(_)))), "the WebSocket ends");
    let mut ended = [server.next_event().await, server.next_event().await, server.next_event().await];
    ended.sort_by_key(|event| format!("{event:?}"));
    assert_eq!(ended, [Event::LongPollEnded, Event::StreamClosed, Event::WebSocketEnded]);
    assert_eq!(status(&server.get("/items/1", &user).await), "401");
}

#[tokio::test]
async fn a_trusted_proxy_reports_the_address_and_tls_adds_hsts() {
    let direct = TestServer::start().await;
    let forwarded = "X-Forwarded-For: 192.0.2.7\r\n";
    let response = direct.exchange("GET /address", forwarded, "").await;
    assert!(response.ends_with("\r\n\r\n127.0.0.1"), "an unknown proxy is not trusted: {response}");
    assert!(!response.contains("Strict-Transport-Security"), "{response}");
    let proxied = TestServer::start_with(&ServerLimits::default(), true, |server| {
        server.with_proxy(true).with_trusted_proxies(vec!["127.0.0.0/8".parse().unwrap()])
    })
    .await;
    let request =
        format!("GET /address HTTP/1.1\r\nHost: service.example\r\nConnection: close\r\n{forwarded}\r\n");
    let response = proxied.exchange_raw(&request).await;
    assert!(response.ends_with("\r\n\r\n192.0.2.7"), "{response}");
    assert!(response.contains("Strict-Transport-Security: max-age=31536000\r\n"), "{response}");
}

#[tokio::test]
async fn a_caller_that_the_service_authenticated_keeps_its_connection() {
    let limits = ServerLimits { connections: 2, reserved_connections: 1, ..ServerLimits::default() };
    let server = TestServer::start_with(&limits, true, |server| server).await;
    let request = |headers: &str| {
        format!("POST /signed HTTP/1.1\r\nHost: {}\r\nContent-Length: 1\r\n{headers}\r\na", server.address)
    };
    let mut signed = server.connect().await;
    signed.write_all(request("X-Signature: a\r\n").as_bytes()).await.unwrap();
    read_until(&mut signed, "a: a").await;
    let health = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    let mut unknown = server.connect().await;
    unknown.write_all(health.as_bytes()).await.unwrap();
    read_until(&mut unknown, "good\n").await;
    // One more connection: the caller that nobody has authenticated is closed to make room for it.
    let mut third = server.connect().await;
    third.write_all(health.as_bytes()).await.unwrap();
    read_until(&mut third, "good\n").await;
    assert_eq!(unknown.read(&mut [0; 1]).await.unwrap_or(0), 0, "the unknown caller is disconnected");
    signed.write_all(request("X-Signature: b\r\n").as_bytes()).await.unwrap();
    read_until(&mut signed, "b: a").await;
}

#[tokio::test]
async fn the_server_answers_the_routes_for_operators_itself() {
    let server = TestServer::start().await;
    for path in ["/healthz", "/readyz"] {
        assert!(server.exchange(&format!("GET {path}"), "", "").await.ends_with("\r\n\r\ngood\n"), "{path}");
        let request = format!("POST {path}");
        assert_eq!(status(&server.exchange(&request, "", "").await), "401", "{path}");
        assert_eq!(status(&server.exchange(&request, &bearer(&server.user), "").await), "405", "{path}");
    }
    server.server.telemetry().record_reload(true);
    assert_eq!(status(&server.exchange("GET /readyz", "", "").await), "503", "a failed reload");
    let unready = TestServer::start_with(&ServerLimits::default(), false, |server| server).await;
    let response = unready.exchange("GET /readyz", "", "").await;
    assert!(status(&response) == "503" && response.contains("The disk is missing."), "{response}");
    assert_eq!(status(&unready.exchange("GET /healthz", "", "").await), "200");
}

#[tokio::test]
async fn metrics_count_the_routes_of_the_service_and_need_an_admin() {
    let server = TestServer::start().await;
    let user = bearer(&server.user);
    for id in ["SECRET-1", "SECRET-2"] {
        assert_eq!(status(&server.get(&format!("/items/{id}"), &server.user).await), "204");
    }
    assert_eq!(status(&server.exchange("POST /private", "Content-Length: 1\r\n", "").await), "401");
    assert_eq!(status(&server.get("/SECRET-3", &server.user).await), "404");
    server.exchange("GET /finite", &user, "").await;
    assert!(connect_websocket(&server, &server.user, "echo.v1").await.is_ok());
    server.exchange_raw("nonsense\r\n\r\n").await;
    assert_eq!(status(&server.exchange("GET /metrics", "", "").await), "401");
    assert_eq!(status(&server.get("/metrics", &server.user).await), "403");
    let metrics = server.get("/metrics", &server.admin).await;
    assert_eq!(status(&metrics), "200");
    for line in [
        "sayso_http_requests_total{route=\"/items/{id}\",status=\"2xx\"} 2\n",
        "sayso_http_requests_total{route=\"/private\",status=\"4xx\"} 1\n",
        "sayso_http_requests_total{route=\"/echo\",status=\"1xx\"} 1\n",
        "sayso_http_requests_total{route=\"/metrics\",status=\"4xx\"} 2\n",
        "sayso_http_requests_total{route=\"other\",status=\"2xx\"} 1\n",
        "sayso_http_requests_total{route=\"other\",status=\"4xx\"} 1\n",
        "sayso_http_requests_total{route=\"unreadable\",status=\"4xx\"} 1\n",
        "sayso_auth_failures_total 2\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
    assert!(!metrics.contains("SECRET"), "{metrics}");
}
