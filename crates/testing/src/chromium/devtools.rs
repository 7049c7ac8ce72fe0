//! One DevTools connection, which carries JSON over a WebSocket. Responses are matched to commands by id, and events may
//! arrive at any time.

use std::collections::{HashMap, VecDeque};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message, WebSocket};

/// How long a test waits for the browser. The limit is generous, because a machine may be busy and only failures take
/// that long.
pub const BROWSER_TIMEOUT: Duration = Duration::from_mins(3);

pub(super) struct DevToolsConnection {
    socket: WebSocket<TcpStream>,
    last_id: u64,
    /// Events that arrived during the wait for a response.
    pending_events: VecDeque<Value>,
    /// Mock responses by URL prefix, and whether each is permanent. A paused request blocks all commands, so it is
    /// answered as soon as the browser reports it.
    mock_responses: HashMap<String, (Value, bool)>,
}

impl DevToolsConnection {
    pub(super) fn connect(address: &str, path: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        // A screenshot of a long page exceeds the default frame limit.
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let url = format!("ws://{address}{path}");
        let (socket, _) = tungstenite::client::client_with_config(url, stream, Some(config))
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { socket, last_id: 0, pending_events: VecDeque::new(), mock_responses: HashMap::new() }
    }

    /// Sends a command and returns its result.
    pub(super) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.try_call(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Like [`Self::call`], for a command that may fail.
    pub(super) fn try_call(&mut self, method: &str, parameters: &Value) -> Result<Value, String> {
        let id = self.send_command(method, parameters);
        let deadline = Instant::now() + BROWSER_TIMEOUT;
        loop {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let Some(message) = self.read_message(remaining) else {
                return Err(format!("no response in {BROWSER_TIMEOUT:?}"));
            };
            if message["id"] == id {
                let error_text = message.get("error").map(Value::to_string);
                return error_text.map_or_else(|| Ok(message["result"].clone()), Err);
            }
            self.dispatch(message);
        }
    }

    /// Sends a command without waiting for its result.
    pub(super) fn send_command(&mut self, method: &str, parameters: &Value) -> u64 {
        self.last_id += 1;
        let command = json!({ "id": self.last_id, "method": method, "params": parameters });
        let _ = self.socket.send(Message::text(command.to_string()));
        self.last_id
    }

    /// Answers requests for URLs with this prefix, permanently or once.
    pub(super) fn mock_response(&mut self, url_prefix: &str, response: Value, is_permanent: bool) {
        self.mock_responses.insert(url_prefix.to_owned(), (response, is_permanent));
        let patterns: Vec<_> =
            self.mock_responses.keys().map(|prefix| json!({ "urlPattern": format!("{prefix}*") })).collect();
        self.call("Fetch.enable", &json!({ "patterns": patterns }));
    }

    /// Returns the next event, or `None` if none arrives within this time.
    pub(super) fn next_event(&mut self, timeout: Duration) -> Option<Value> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(event) = self.pending_events.pop_front() {
                return Some(event);
            }
            let message = self.read_message(deadline.saturating_duration_since(Instant::now()))?;
            self.dispatch(message);
        }
    }

    fn dispatch(&mut self, message: Value) {
        if message["method"] == "Fetch.requestPaused" {
            self.answer_paused_request(&message["params"]);
        } else if message.get("id").is_none() {
            // Messages with an id are responses that no caller waits for. They are dropped.
            self.pending_events.push_back(message);
        }
    }

    fn answer_paused_request(&mut self, paused: &Value) {
        let url = paused["request"]["url"].as_str().unwrap_or_default();
        let longest_prefix = self
            .mock_responses
            .keys()
            .filter(|prefix| url.starts_with(prefix.as_str()))
            .max_by_key(|prefix| prefix.len())
            .cloned();
        let mocked = longest_prefix.and_then(|prefix| {
            let (response, is_permanent) = self.mock_responses.get(&prefix)?.clone();
            if !is_permanent {
                self.mock_responses.remove(&prefix);
            }
            Some(response)
        });
        let (method, mut response) = match mocked {
            Some(response) => ("Fetch.fulfillRequest", response),
            None => ("Fetch.continueRequest", json!({})),
        };
        response["requestId"] = paused["requestId"].clone();
        self.send_command(method, &response);
    }

    fn read_message(&mut self, timeout: Duration) -> Option<Value> {
        let deadline = Instant::now() + timeout;
        loop {
            // At least 1 ms, because a timeout of zero is an error.
            let remaining = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.socket.get_ref().set_read_timeout(Some(remaining)).unwrap();
            match self.socket.read() {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(_) => {}
                Err(Error::Io(error)) if is_timeout(&error) => {}
                Err(error) => panic!("the browser disconnected: {error}"),
            }
            if Instant::now() >= deadline {
                return None;
            }
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}
