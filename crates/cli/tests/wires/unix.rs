//! A Unix socket, with newline-delimited or length-prefixed messages.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use testing::unix::UnixSocketClient;

use crate::fixture::TransportHub;
use crate::transport::{
    CloseSignal, ListenerConnection, ReceivedMessage, Reconnection, classify, wait_for_message,
};

pub(crate) struct UnixSocketListener {
    client: UnixSocketClient,
    is_newline_framed: bool,
    pending: VecDeque<ReceivedMessage>,
}

impl UnixSocketListener {
    pub(crate) fn connect(path: &Path, is_newline_framed: bool) -> Self {
        let mut client = UnixSocketClient::new(path, is_newline_framed);
        client.stream().set_read_timeout(Some(Duration::from_mins(2))).unwrap();
        Self { client, is_newline_framed, pending: VecDeque::new() }
    }

    fn read(client: &mut UnixSocketClient) -> ReceivedMessage {
        client.try_next().map_or(ReceivedMessage::End(CloseSignal::End), classify)
    }
}

impl ListenerConnection for UnixSocketListener {
    fn subscribe(&mut self, request: &str) -> Value {
        self.request(request)
    }

    fn send(&mut self, message: &str) {
        self.client.send(message);
    }

    fn request(&mut self, message: &str) -> Value {
        self.send(message);
        let Self { client, pending, .. } = self;
        wait_for_message(pending, || Self::read(client))
    }

    fn next_incoming(&mut self) -> ReceivedMessage {
        self.pending.pop_front().unwrap_or_else(|| Self::read(&mut self.client))
    }

    fn close_signal(&mut self) -> CloseSignal {
        match self.next_incoming() {
            ReceivedMessage::End(signal) => signal,
            other => panic!("expected the end, got {other:?}"),
        }
    }

    fn wait_for_heartbeat(&mut self) -> bool {
        false
    }

    fn reconnect(&mut self, hub: &mut TransportHub, request: &str) -> Reconnection {
        *self = Self::connect(&hub.socket, self.is_newline_framed);
        let accepted = self.subscribe(request);
        Reconnection::NewSubscription(accepted["subscription_id"].as_str().unwrap().to_owned())
    }

    fn drop_connection(&mut self) -> bool {
        self.client.stream().shutdown(std::net::Shutdown::Both).unwrap();
        true
    }
}
