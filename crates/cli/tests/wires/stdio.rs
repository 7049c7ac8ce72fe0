//! JSON-RPC 2.0 on the standard input and output of the hub.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};

use serde_json::{Value, json};

use crate::stage::Hub;
use crate::wire::{Back, Heard, Sign, Wire, sorted};

pub(crate) struct Parent {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    asked: u64,
    kept: VecDeque<Heard>,
}

impl Parent {
    pub(crate) fn new(hub: &mut Hub) -> Self {
        let (input, output) = hub.pipes.take().expect("one listener on standard input");
        Self { input, output: BufReader::new(output), asked: 0, kept: VecDeque::new() }
    }

    fn line(&mut self, json: &str) {
        // Whether anybody reads is seen by what comes back.
        let _ = writeln!(self.input, "{json}");
    }

    /// The next line, or none at the end.
    fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        if self.output.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        assert!(line.ends_with('\n'), "half a line: {line}");
        let said: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(said["jsonrpc"], "2.0");
        Some(said)
    }

    fn notified(mut said: Value) -> Heard {
        let heard = sorted(said["params"].take());
        let method = match &heard {
            Heard::Event(_) => "aaep.event",
            Heard::Message(message) if message["type"] == "subscription.close" => "aaep.close",
            _ => "sayso.message",
        };
        assert_eq!((&said["method"], said.get("id")), (&json!(method), None));
        heard
    }

    /// The answer to a call, result or error.
    fn call(&mut self, method: &str, params: &str) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        loop {
            let mut said = self.read().expect("an answer");
            // What is too long to be read is refused without its id.
            if said["id"] == id || said["error"].is_object() {
                let result = said["result"].take();
                return if result.is_null() { said["error"].take() } else { result };
            }
            self.kept.push_back(Self::notified(said));
        }
    }
}

impl Wire for Parent {
    fn subscribe(&mut self, request: &str) -> Value {
        self.call("aaep.subscribe", request)
    }

    fn say(&mut self, message: &str) {
        let close = message.contains(r#""type":"subscription.close""#);
        let method = if close { "aaep.close" } else { "aaep.reply" };
        self.line(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{message}}}"#));
    }

    fn ask(&mut self, message: &str) -> Value {
        self.call("aaep.renegotiate", message)
    }

    fn next(&mut self) -> Heard {
        if let Some(heard) = self.kept.pop_front() {
            return heard;
        }
        self.read().map_or(Heard::End(Sign::End), Self::notified)
    }

    /// Whoever started the hub can ask again; that it hears is seen by asking.
    fn sign(&mut self) -> Sign {
        self.asked += 1;
        let id = self.asked;
        self.line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"aaep.ping"}}"#));
        match self.read() {
            None => Sign::End,
            Some(said) => {
                assert_eq!(said["id"], id, "not yet over: {said}");
                Sign::Stays
            }
        }
    }

    fn is_alive(&mut self) -> bool {
        assert_eq!(self.call("aaep.ping", "{}"), json!({}));
        true
    }

    fn come_back(&mut self, hub: &mut Hub, request: &str) -> Back {
        if hub.pipes.is_some() {
            *self = Self::new(hub);
        }
        let accepted = self.subscribe(request);
        Back::Afresh(accepted["subscription_id"].as_str().unwrap().to_owned())
    }

    fn lose(&mut self) -> bool {
        false
    }
}
