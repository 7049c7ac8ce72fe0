//! JSON-RPC 2.0 on the hub's standard input and output.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};

use serde_json::{Value, json};

use crate::fixture::TransportHub;
use crate::transport::{CloseSignal, ListenerConnection, ReceivedMessage, Reconnection, classify};

pub(crate) struct StdioListener {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_request_id: u64,
    pending: VecDeque<ReceivedMessage>,
}

impl StdioListener {
    pub(crate) fn new(hub: &mut TransportHub) -> Self {
        let (input, output) = hub.pipes.take().expect("only one listener can use standard input");
        Self { input, output: BufReader::new(output), last_request_id: 0, pending: VecDeque::new() }
    }

    fn write_line(&mut self, json: &str) {
        // If the write fails, the response is an error or is missing.
        let _ = writeln!(self.input, "{json}");
    }

    /// Returns the next message, or `None` at the end of the stream.
    fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        if self.output.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        assert!(line.ends_with('\n'), "incomplete line: {line}");
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0");
        Some(message)
    }

    fn from_notification(mut message: Value) -> ReceivedMessage {
        let received = classify(message["params"].take());
        let method = match &received {
            ReceivedMessage::Event(_) => "aaep.event",
            ReceivedMessage::Message(message) if message["type"] == "subscription.close" => "aaep.close",
            _ => "sayso.message",
        };
        assert_eq!((&message["method"], message.get("id")), (&json!(method), None));
        received
    }

    /// Calls a method and returns its result or error.
    fn call(&mut self, method: &str, params: &str) -> Value {
        self.last_request_id += 1;
        let id = self.last_request_id;
        self.write_line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        loop {
            let mut message = self.read().expect("no response");
            // An oversized request is refused without its id.
            if message["id"] == id || message["error"].is_object() {
                let result = message["result"].take();
                return if result.is_null() { message["error"].take() } else { result };
            }
            self.pending.push_back(Self::from_notification(message));
        }
    }
}

impl ListenerConnection for StdioListener {
    fn subscribe(&mut self, request: &str) -> Value {
        self.call("aaep.subscribe", request)
    }

    fn send(&mut self, message: &str) {
        let is_close = message.contains(r#""type":"subscription.close""#);
        let method = if is_close { "aaep.close" } else { "aaep.reply" };
        self.write_line(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{message}}}"#));
    }

    fn request(&mut self, message: &str) -> Value {
        self.call("aaep.renegotiate", message)
    }

    fn next_incoming(&mut self) -> ReceivedMessage {
        if let Some(received) = self.pending.pop_front() {
            return received;
        }
        self.read().map_or(ReceivedMessage::End(CloseSignal::End), Self::from_notification)
    }

    /// Pings the hub, because a stdio connection stays open after a subscription ends.
    fn close_signal(&mut self) -> CloseSignal {
        self.last_request_id += 1;
        let id = self.last_request_id;
        self.write_line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"aaep.ping"}}"#));
        match self.read() {
            None => CloseSignal::End,
            Some(message) => {
                assert_eq!(message["id"], id, "not the response to the ping: {message}");
                CloseSignal::StaysOpen
            }
        }
    }

    fn wait_for_heartbeat(&mut self) -> bool {
        assert_eq!(self.call("aaep.ping", "{}"), json!({}));
        true
    }

    fn reconnect(&mut self, hub: &mut TransportHub, request: &str) -> Reconnection {
        if hub.pipes.is_some() {
            *self = Self::new(hub);
        }
        let accepted = self.subscribe(request);
        Reconnection::NewSubscription(accepted["subscription_id"].as_str().unwrap().to_owned())
    }

    fn drop_connection(&mut self) -> bool {
        false
    }
}
