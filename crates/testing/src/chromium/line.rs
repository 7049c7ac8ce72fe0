//! One connection for DevTools commands: JSON over a WebSocket, answers by number, events in between.

use std::collections::{HashMap, VecDeque};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message, WebSocket};

/// How long anything is waited for. Generous: a machine may be busy, and only what fails takes so long.
pub const PATIENCE: Duration = Duration::from_mins(3);

pub(super) struct Line {
    socket: WebSocket<TcpStream>,
    last: u64,
    /// Events that came while something else was waited for.
    heard: VecDeque<Value>,
    /// What is answered in the place of servers, by address, and whether that holds for longer than once. It cannot wait:
    /// while a request waits, so do all commands.
    served: HashMap<String, (Value, bool)>,
}

impl Line {
    pub(super) fn to(address: &str, path: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        // A picture of a long page is more than the usual limit of a frame.
        let roomy = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let url = format!("ws://{address}{path}");
        let (socket, _) = tungstenite::client::client_with_config(url, stream, Some(roomy))
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { socket, last: 0, heard: VecDeque::new(), served: HashMap::new() }
    }

    /// Gives a command and returns its result.
    pub(super) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.try_call(method, parameters).unwrap_or_else(|why| panic!("{method}: {why}"))
    }

    /// As [`Self::call`], of what may be refused.
    pub(super) fn try_call(&mut self, method: &str, parameters: &Value) -> Result<Value, String> {
        let id = self.tell(method, parameters);
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Some(message) = self.read(left) else { return Err(format!("no answer in {PATIENCE:?}")) };
            if message["id"] == id {
                let refused = message.get("error").map(Value::to_string);
                return refused.map_or_else(|| Ok(message["result"].clone()), Err);
            }
            self.keep(message);
        }
    }

    /// Gives a command and does not wait for what comes of it.
    pub(super) fn tell(&mut self, method: &str, parameters: &Value) -> u64 {
        self.last += 1;
        let command = json!({ "id": self.last, "method": method, "params": parameters });
        let _ = self.socket.send(Message::text(command.to_string()));
        self.last
    }

    /// Whoever asks for an address that begins so is answered with this, for ever or once.
    pub(super) fn serve(&mut self, url: &str, answer: Value, for_ever: bool) {
        self.served.insert(url.to_owned(), (answer, for_ever));
        let patterns: Vec<_> =
            self.served.keys().map(|url| json!({ "urlPattern": format!("{url}*") })).collect();
        self.call("Fetch.enable", &json!({ "patterns": patterns }));
    }

    /// The next event, if one comes within that time.
    pub(super) fn event(&mut self, time: Duration) -> Option<Value> {
        let until = Instant::now() + time;
        loop {
            if let Some(event) = self.heard.pop_front() {
                return Some(event);
            }
            let message = self.read(until.saturating_duration_since(Instant::now()))?;
            self.keep(message);
        }
    }

    fn keep(&mut self, message: Value) {
        if message["method"] == "Fetch.requestPaused" {
            self.answer(&message["params"]);
        } else if message.get("id").is_none() {
            // What has a number is the answer to what nobody waits for.
            self.heard.push_back(message);
        }
    }

    fn answer(&mut self, paused: &Value) {
        let url = paused["request"]["url"].as_str().unwrap_or_default();
        // The longest beginning is meant.
        let found = self
            .served
            .keys()
            .filter(|from| url.starts_with(from.as_str()))
            .max_by_key(|from| from.len())
            .cloned();
        let served = found.and_then(|from| {
            let (answer, for_ever) = self.served.get(&from)?.clone();
            if !for_ever {
                self.served.remove(&from);
            }
            Some(answer)
        });
        let (method, mut answer) = match served {
            Some(answer) => ("Fetch.fulfillRequest", answer),
            None => ("Fetch.continueRequest", json!({})),
        };
        answer["requestId"] = paused["requestId"].clone();
        self.tell(method, &answer);
    }

    fn read(&mut self, time: Duration) -> Option<Value> {
        let until = Instant::now() + time;
        loop {
            // Zero would mean for ever.
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.socket.get_ref().set_read_timeout(Some(left)).unwrap();
            match self.socket.read() {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(_) => {}
                Err(Error::Io(error)) if is_timeout(&error) => {}
                Err(error) => panic!("the browser has hung up: {error}"),
            }
            if Instant::now() >= until {
                return None;
            }
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}
