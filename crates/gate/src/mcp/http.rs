//! A server behind a URL: streamable HTTP, in the older and the newer versions of the protocol.
//!
//! Each line from the host becomes a POST. The server answers with JSON or with a stream of events, whose messages become lines for
//! the host. Older servers have a session, a stream for their own messages (GET), and streams that can be resumed.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::sse::{SseEvent, SseParser};
use client::{ClientError, HttpClient, HttpResponse, send_request};
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE};
use seal::json::Tape;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};

use super::limits::{MAX_HTTP_REQUESTS, MAX_LINE_BYTES};
use super::message::{RequestId, RpcEnvelope, error_line};
use super::outbox::{LineSink, lock};
use super::param_headers::ParamHeader;
use super::shared::GateShared;

/// How long the server has to accept a notification before the next message is sent.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the server has to end a session.
const DELETE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long to wait before a stream is reopened, if the server does not say.
const DEFAULT_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How often a stream that ended without an answer is resumed.
const MAX_RESUMPTIONS: usize = 20;
/// JSON-RPC's code for a transport error.
const TRANSPORT_ERROR: i64 = -32000;

/// Passes lines for the server to the task that sends them.
pub(super) struct HttpSink(pub(super) mpsc::Sender<Vec<u8>>);

impl LineSink for HttpSink {
    fn send(&mut self, line: Vec<u8>) -> io::Result<()> {
        self.0.blocking_send(line).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn send_part(&mut self, _: &[u8]) -> io::Result<()> {
        // Only lines from the server are passed on in parts.
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The connection to a server behind a URL.
pub(super) struct HttpServer {
    client: HttpClient,
    shared: Arc<GateShared>,
    state: Mutex<HttpState>,
}

#[derive(Clone, Debug, Default)]
struct HttpState {
    /// The session that the server opened, in the older protocol.
    session_id: Option<String>,
    /// The version that was negotiated in the older protocol.
    protocol_version: Option<String>,
}

/// The headers of a message, and how it is treated.
#[derive(Debug, Default)]
struct Outgoing {
    body: Vec<u8>,
    /// The id, if the message is a request.
    id: Option<RequestId>,
    method: Option<String>,
    /// `params.name` or `params.uri`.
    name: Option<String>,
    /// The version in `_meta`, which only messages of the newer protocol have.
    version: Option<String>,
    /// The arguments that the server also wants as headers.
    param_headers: Vec<(String, String)>,
    /// The request that this message cancels.
    cancels: Option<RequestId>,
}

impl HttpServer {
    pub(super) fn new(client: HttpClient, shared: Arc<GateShared>) -> Self {
        Self { client, shared, state: Mutex::default() }
    }

    /// Sends lines until their source is closed and all requests are answered.
    pub(super) async fn run(self: Arc<Self>, mut lines: mpsc::Receiver<Vec<u8>>) {
        let slots = Arc::new(Semaphore::new(MAX_HTTP_REQUESTS));
        let mut requests = JoinSet::new();
        let mut running: Vec<(RequestId, AbortHandle)> = Vec::new();
        let mut own_messages: Option<AbortHandle> = None;
        while let Some(line) = lines.recv().await {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let message = Outgoing::read(&line, &self.shared);
            while requests.try_join_next().is_some() {}
            running.retain(|(_, task)| !task.is_finished());
            // In the newer protocol, closing the stream is what cancels a request.
            let is_modern = message.version.is_some() || lock(&self.state).protocol_version.is_none();
            if is_modern
                && let Some(cancelled) = &message.cancels
                && let Some(index) = running.iter().position(|(id, _)| id == cancelled)
            {
                running.swap_remove(index).1.abort();
                continue;
            }
            if let Some(id) = message.id.clone() {
                let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { break };
                let server = Arc::clone(&self);
                let task = requests.spawn(async move {
                    server.send_request(message).await;
                    drop(slot);
                });
                running.push((id, task));
            } else {
                let is_initialized = message.method.as_deref() == Some("notifications/initialized");
                // The next message may depend on this one, so it waits.
                let _ = tokio::time::timeout(NOTIFICATION_TIMEOUT, self.post(&message)).await;
                if is_initialized && own_messages.is_none() {
                    let server = Arc::clone(&self);
                    own_messages = Some(tokio::spawn(async move { server.listen().await }).abort_handle());
                }
            }
        }
        while requests.join_next().await.is_some() {}
        if let Some(task) = own_messages {
            task.abort();
        }
    }

    /// Ends the session, if there is one.
    pub(super) async fn end_session(&self) {
        if lock(&self.state).session_id.is_some() {
            let request = self.request(Method::DELETE, None);
            let _ = tokio::time::timeout(DELETE_TIMEOUT, self.send(request, Vec::new())).await;
        }
    }

    /// Sends a request and passes the server's messages on until the request is answered.
    async fn send_request(&self, message: Outgoing) {
        let result = match self.post(&message).await {
            Ok(response) => self.receive(response, message.id.as_ref()).await,
            Err(error) => Err(error),
        };
        if let (Err(reason), Some(id)) = (result, &message.id) {
            let text = format!("sayso: the server behind the URL did not answer: {reason}");
            self.pass_on(error_line(Some(id), TRANSPORT_ERROR, &text)).await;
        }
    }

    async fn post(&self, message: &Outgoing) -> Result<HttpResponse, String> {
        let request = self.request(Method::POST, Some(message)).header(CONTENT_TYPE, "application/json");
        self.send(request, message.body.clone()).await
    }

    fn request(&self, method: Method, message: Option<&Outgoing>) -> http::request::Builder {
        let path = if self.client.url().path().is_empty() { "/" } else { "" };
        let mut request =
            self.client.request(method, path).header(ACCEPT, "application/json, text/event-stream");
        let state = lock(&self.state).clone();
        let version = message.and_then(|message| message.version.clone());
        if let Some(version) = version.as_ref().or(state.protocol_version.as_ref()) {
            request = request.header("MCP-Protocol-Version", version);
        }
        if let Some(session) = &state.session_id {
            request = request.header("Mcp-Session-Id", session);
        }
        if let Some(message) = message.filter(|_| version.is_some()) {
            for (header, value) in [("Mcp-Method", &message.method), ("Mcp-Name", &message.name)] {
                if let Some(value) = value {
                    request = request.header(header, encode_header(value));
                }
            }
            for (header, value) in &message.param_headers {
                request = request.header(header, encode_header(value));
            }
        }
        request
    }

    async fn send(&self, request: http::request::Builder, body: Vec<u8>) -> Result<HttpResponse, String> {
        let request = request.body(body).map_err(|error| error.to_string())?;
        let describe = |error: ClientError| error.to_string();
        let connection = self.client.connect().await.map_err(describe)?;
        let response = send_request(connection, request).await.map_err(describe)?;
        if let Some(session) = response.header("mcp-session-id") {
            lock(&self.state).session_id.get_or_insert_with(|| session.to_owned());
        }
        Ok(response)
    }

    /// Passes on what a response contains. Fails if the request with this id was not answered.
    async fn receive(&self, response: HttpResponse, id: Option<&RequestId>) -> Result<(), String> {
        let status = response.status;
        if response.is_event_stream() {
            return self.receive_stream(response, id).await;
        }
        let text = response
            .text(MAX_LINE_BYTES, Duration::from_mins(10))
            .await
            .map_err(|error| error.to_string())?;
        if Tape::default().read(&text).is_ok() {
            let is_answered = id.is_none_or(|id| is_response_to(&text, id));
            // An error without an id, or with `null`, would leave the host waiting.
            if is_answered {
                self.pass_on(to_one_line(&text)).await;
                return Ok(());
            }
        }
        Err(match status {
            200..=299 => "its response is not a JSON-RPC response".to_owned(),
            401 | 403 => format!("HTTP status {status}; set SAYSO_MCP_TOKEN to an access token for it"),
            404 if lock(&self.state).session_id.is_some() => {
                "it has ended the session (HTTP status 404)".to_owned()
            }
            status => format!("HTTP status {status}"),
        })
    }

    /// Passes on the messages of a stream until the request is answered. A stream of an older server that ends before is resumed.
    async fn receive_stream(&self, response: HttpResponse, id: Option<&RequestId>) -> Result<(), String> {
        let (mut response, mut last_event) = (response, None);
        let mut retry_delay = DEFAULT_RETRY_DELAY;
        for _ in 0..MAX_RESUMPTIONS {
            let mut parser = SseParser::new(MAX_LINE_BYTES);
            let mut events = Vec::new();
            loop {
                let chunk = response.chunk().await;
                match &chunk {
                    Ok(Some(bytes)) => parser.feed(bytes, &mut events),
                    _ => events.extend(parser.finish()),
                }
                for SseEvent { data, id: event_id, .. } in events.drain(..) {
                    last_event = event_id.filter(|id| !id.is_empty()).or(last_event);
                    let Some(data) = data.filter(|data| !data.trim().is_empty()) else { continue };
                    let is_answer = id.is_some_and(|id| is_response_to(&data, id));
                    self.pass_on(to_one_line(&data)).await;
                    if is_answer {
                        return Ok(());
                    }
                }
                if !matches!(chunk, Ok(Some(_))) {
                    break;
                }
            }
            retry_delay = parser.retry().unwrap_or(retry_delay);
            let (Some(event), Some(_)) = (&last_event, id) else { break };
            tokio::time::sleep(retry_delay).await;
            let request = self.request(Method::GET, None).header("Last-Event-ID", event);
            response = self.send(request, Vec::new()).await?;
            if !response.is_event_stream() {
                return Err(format!("the stream could not be resumed: HTTP status {}", response.status));
            }
        }
        if id.is_none() { Ok(()) } else { Err("its stream ended without an answer".to_owned()) }
    }

    /// Receives the messages that an older server sends on its own. Ends if the server offers no such stream.
    async fn listen(&self) {
        loop {
            let request = self.request(Method::GET, None);
            match self.send(request, Vec::new()).await {
                Ok(response) if response.is_event_stream() => drop(self.receive_stream(response, None).await),
                Ok(_) => return,
                Err(_) => {}
            }
            tokio::time::sleep(DEFAULT_RETRY_DELAY).await;
        }
    }

    /// Passes a line on to the host, through the gate.
    async fn pass_on(&self, line: Vec<u8>) {
        if let Some(version) = read_negotiated_version(&line) {
            lock(&self.state).protocol_version.get_or_insert(version);
        }
        let shared = Arc::clone(&self.shared);
        let _ = tokio::task::spawn_blocking(move || shared.handle_server_line(line)).await;
    }
}

impl Outgoing {
    fn read(line: &[u8], shared: &GateShared) -> Self {
        let mut tape = Tape::default();
        let mut outgoing = Self::default();
        if let Some(doc) = std::str::from_utf8(line).ok().and_then(|text| tape.read(text).ok()) {
            let root = doc.root();
            let envelope = RpcEnvelope::read(&root);
            let text = |name: &str| envelope.text_param(name);
            outgoing.method =
                envelope.method.and_then(|method| method.text()).map(std::borrow::Cow::into_owned);
            outgoing.id = outgoing.method.as_ref().and(envelope.request_id());
            outgoing.name = match outgoing.method.as_deref() {
                Some("tools/call" | "prompts/get") => text("name"),
                Some("resources/read") => text("uri"),
                _ => None,
            };
            let meta = envelope.params.and_then(|params| params.member("_meta"));
            let version = meta.and_then(|meta| meta.member("io.modelcontextprotocol/protocolVersion"));
            outgoing.version = version.and_then(|version| version.text()).map(std::borrow::Cow::into_owned);
            if envelope.is_method("tools/call")
                && let Some(tool) = &outgoing.name
                && let Some(arguments) = envelope.params.and_then(|params| params.member("arguments"))
            {
                let params = shared.run(|core, _| core.param_headers(tool));
                let header = |param: ParamHeader| Some((param.value(&arguments)?, param.header));
                let headers = params.into_iter().filter_map(header);
                outgoing.param_headers = headers.map(|(value, header)| (header, value)).collect();
            }
            if envelope.is_method("notifications/cancelled") {
                let id = envelope.params.and_then(|params| params.member("requestId"));
                outgoing.cancels = id.as_ref().and_then(RequestId::read);
            }
            // A batch is answered as a whole; its first request stands for all of them.
            if outgoing.method.is_none() {
                let first =
                    root.items().map(|item| RpcEnvelope::read(&item)).find(|item| item.method.is_some());
                outgoing.id = first.and_then(|first| first.request_id());
            }
        }
        outgoing.body = line.trim_ascii_end().to_vec();
        outgoing
    }
}

/// Whether a message, or one in a batch, answers the request with this id.
fn is_response_to(text: &str, id: &RequestId) -> bool {
    let mut tape = Tape::default();
    let Ok(doc) = tape.read(text) else { return false };
    let answers = |message: &seal::json::JsonValue<'_>| {
        let envelope = RpcEnvelope::read(message);
        envelope.method.is_none() && envelope.request_id().as_ref() == Some(id)
    };
    answers(&doc.root()) || doc.root().items().any(|item| answers(&item))
}

/// Returns the version in the answer to `initialize`.
fn read_negotiated_version(line: &[u8]) -> Option<String> {
    let mut tape = Tape::default();
    let doc = tape.read(std::str::from_utf8(line).ok()?).ok()?;
    let result = doc.root().member("result")?;
    result.member("serverInfo")?;
    result.member("protocolVersion")?.text().map(std::borrow::Cow::into_owned)
}

/// Returns JSON as one line. A line break in JSON is only white space, because in texts it is escaped.
fn to_one_line(text: &str) -> Vec<u8> {
    let mut line = text.trim_ascii().as_bytes().to_vec();
    for byte in &mut line {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line.push(b'\n');
    line
}

/// Returns a value for a header. What a header cannot contain is written in base64, as the protocol requires.
fn encode_header(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && value.trim() == value;
    if is_plain && !value.starts_with("=?base64?") {
        return value.to_owned();
    }
    format!("=?base64?{}?=", encode_base64(value.as_bytes()))
}

/// Encodes bytes in base64 with padding.
fn encode_base64(bytes: &[u8]) -> String {
    let mut text = seal::base64url::encode(bytes).replace('-', "+").replace('_', "/");
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_values_are_safe() {
        assert_eq!(encode_header("get_weather"), "get_weather");
        assert_eq!(encode_header("a\r\nX: y"), "=?base64?YQ0KWDogeQ==?=");
        assert_eq!(encode_header("ü"), "=?base64?w7w=?=");
        assert_eq!(encode_header("=?base64?eA==?="), "=?base64?PT9iYXNlNjQ/ZUE9PT89?=");
    }

    #[test]
    fn pretty_json_becomes_one_line() {
        assert_eq!(to_one_line("{\r\n  \"a\": \"b\\n\"\n}\n"), b"{    \"a\": \"b\\n\" }\n");
    }
}
