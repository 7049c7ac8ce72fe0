//! A Unix socket, in either framing.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use testing::unix::UnixClient;

use crate::stage::Hub;
use crate::wire::{Back, Heard, Sign, Wire, answer, sorted};

pub(crate) struct Talk {
    client: UnixClient,
    lines: bool,
    kept: VecDeque<Heard>,
}

impl Talk {
    pub(crate) fn connect(path: &Path, lines: bool) -> Self {
        let mut client = UnixClient::new(path, lines);
        client.stream().set_read_timeout(Some(Duration::from_mins(2))).unwrap();
        Self { client, lines, kept: VecDeque::new() }
    }

    fn read(client: &mut UnixClient) -> Heard {
        client.try_next().map_or(Heard::End(Sign::End), sorted)
    }
}

impl Wire for Talk {
    fn subscribe(&mut self, request: &str) -> Value {
        self.ask(request)
    }

    fn say(&mut self, message: &str) {
        self.client.say(message);
    }

    fn ask(&mut self, message: &str) -> Value {
        self.say(message);
        let Self { client, kept, .. } = self;
        answer(kept, || Self::read(client))
    }

    fn next(&mut self) -> Heard {
        self.kept.pop_front().unwrap_or_else(|| Self::read(&mut self.client))
    }

    fn sign(&mut self) -> Sign {
        match self.next() {
            Heard::End(sign) => sign,
            other => panic!("not yet over: {other:?}"),
        }
    }

    fn is_alive(&mut self) -> bool {
        false
    }

    fn come_back(&mut self, hub: &mut Hub, request: &str) -> Back {
        *self = Self::connect(&hub.socket, self.lines);
        let accepted = self.subscribe(request);
        Back::Afresh(accepted["subscription_id"].as_str().unwrap().to_owned())
    }

    fn lose(&mut self) -> bool {
        self.client.stream().shutdown(std::net::Shutdown::Both).unwrap();
        true
    }
}
