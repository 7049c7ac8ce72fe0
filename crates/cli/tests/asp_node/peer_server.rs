//! The address of a raw peer: it serves the messages of the peer's transcript, and answers the messages that a node delivers.

use std::io::Write;
use std::net::TcpListener;
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};
use testing::http::TIMEOUT;

use crate::proxy::read_message;
use crate::raw_peer::{RawPeer, RawSession};

/// How a peer answers the messages that a node delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryReply {
    /// It acknowledges them.
    Accept,
    /// It refuses to take them now.
    Busy,
    /// It refuses them with this REJECT.
    Reject(String),
    /// It answers, and accepts them, when the test says so.
    Hold,
}

/// How a peer answers requests for its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageReply {
    Page,
    /// Another status and body.
    Error(&'static str, &'static str),
    /// It never answers.
    Silence,
}

#[derive(Clone)]
pub(crate) struct PeerServer {
    pub(crate) address: String,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<ServerState>,
    changed: Condvar,
}

struct ServerState {
    /// The peer's transcript.
    messages: Vec<String>,
    /// Maximum number of messages on a page.
    page_messages: usize,
    deliveries: DeliveryReply,
    pages: PageReply,
    /// The ids of the messages that arrived.
    delivered: Vec<String>,
    /// The number of deliveries that wait for the test.
    held: usize,
}

impl PeerServer {
    pub(crate) fn start(accepts: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let deliveries = if accepts { DeliveryReply::Accept } else { DeliveryReply::Busy };
        let state = ServerState {
            messages: Vec::new(),
            page_messages: 200,
            deliveries,
            pages: PageReply::Page,
            delivered: Vec::new(),
            held: 0,
        };
        let server = Self {
            address: listener.local_addr().unwrap().to_string(),
            shared: Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }),
        };
        let shared = server.shared.clone();
        std::thread::spawn(move || {
            for mut client in listener.incoming().map_while(Result::ok) {
                let shared = shared.clone();
                std::thread::spawn(move || {
                    while let Some(request) = read_message(&mut client) {
                        let (status, body) = shared.answer(&String::from_utf8(request).unwrap());
                        let length = body.len();
                        let _ = write!(client, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
                    }
                });
            }
        });
        server
    }

    pub(crate) fn peer(&self) -> RawPeer {
        RawPeer::with_agent(&format!("agent://{}/peer", self.address))
    }

    /// Publishes the transcript of a session.
    pub(crate) fn publish(&self, session: &RawSession) {
        let record = session.participant.record().unwrap();
        self.publish_messages(record.transcript().messages().map(str::to_owned).collect());
    }

    pub(crate) fn publish_messages(&self, messages: Vec<String>) {
        self.shared.state.lock().unwrap().messages = messages;
    }

    /// Sets the maximum number of messages on a page.
    pub(crate) fn set_page_messages(&self, count: usize) {
        self.shared.state.lock().unwrap().page_messages = count;
    }

    pub(crate) fn answer_deliveries(&self, reply: DeliveryReply) {
        self.shared.state.lock().unwrap().deliveries = reply;
        self.shared.changed.notify_all();
    }

    pub(crate) fn answer_pages(&self, reply: PageReply) {
        self.shared.state.lock().unwrap().pages = reply;
        self.shared.changed.notify_all();
    }

    /// Returns the ids of the messages that arrived, also of those that were refused.
    pub(crate) fn delivered(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().delivered.clone()
    }

    /// Returns how many deliveries wait for the test.
    pub(crate) fn held(&self) -> usize {
        self.shared.state.lock().unwrap().held
    }
}

impl Shared {
    fn answer(&self, request: &str) -> (&'static str, String) {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let mut state = self.state.lock().unwrap();
        if head.starts_with("GET") {
            let is_silent = |state: &mut ServerState| state.pages == PageReply::Silence;
            state = self.changed.wait_timeout_while(state, TIMEOUT, is_silent).unwrap().0;
            if let PageReply::Error(status, body) = state.pages {
                return (status, body.to_owned());
            }
            let since = head.split("since_sequence=").nth(1).and_then(|rest| rest.split(['&', ' ']).next());
            let since: usize = since.unwrap_or("0").parse().unwrap();
            let messages = &state.messages[since.min(state.messages.len())..];
            let page = messages[..messages.len().min(state.page_messages)].join(",");
            return ("200 OK", format!(r#"{{"messages":[{page}],"messageCount":{}}}"#, state.messages.len()));
        }
        let message: Value = serde_json::from_str(body).unwrap();
        state.delivered.push(message["messageId"].as_str().unwrap().to_owned());
        state.held += 1;
        let is_held = |state: &mut ServerState| state.deliveries == DeliveryReply::Hold;
        state = self.changed.wait_timeout_while(state, TIMEOUT, is_held).unwrap().0;
        state.held -= 1;
        match &state.deliveries {
            DeliveryReply::Busy => ("503 Service Unavailable", String::new()),
            DeliveryReply::Reject(reject) => {
                let body = json!({"code": "policy_violation", "reason": "no", "reject": reject});
                ("422 Unprocessable Content", body.to_string())
            }
            DeliveryReply::Accept | DeliveryReply::Hold => {
                let ack =
                    json!({"messageId": message["messageId"], "sequenceNumber": 0, "state": "CONVERSING"});
                ("200 OK", ack.to_string())
            }
        }
    }
}
