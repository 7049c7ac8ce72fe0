//! gRPC: one `AaepMessage` per message.

use std::collections::VecDeque;
use std::time::Duration;

use grpc::tonic::{Code, Request, Status, Streaming};
use grpc::{AaepMessage, ConnectionTask};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::fixture::TransportHub;
use crate::transport::{
    CloseSignal, ListenerConnection, ReceivedMessage, Reconnection, classify, wait_for_message,
};

pub(crate) struct GrpcListener {
    runtime: Runtime,
    sender: mpsc::UnboundedSender<AaepMessage>,
    messages: Streaming<AaepMessage>,
    /// Keeps the connection open.
    _task: ConnectionTask,
    token: String,
    pending: VecDeque<ReceivedMessage>,
}

impl GrpcListener {
    /// Connects. Returns the HTTP status that corresponds to a refusal.
    pub(crate) fn connect(address: &str, token: &str) -> Result<Self, u16> {
        let runtime = build_runtime();
        let (sender, queue) = mpsc::unbounded_channel();
        let mut request = Request::new(MessageQueue(queue));
        if !token.is_empty() {
            let bearer = format!("Bearer {token}").parse().unwrap();
            request.metadata_mut().insert("authorization", bearer);
        }
        let opened = runtime.block_on(async {
            let stream = TcpStream::connect(address).await.unwrap();
            let origin = format!("http://{address}").parse().unwrap();
            let mut connection = grpc::connect(stream, origin).await.unwrap();
            let response = connection.client.subscribe(request).await?;
            Ok((response.into_inner(), connection.task))
        });
        match opened {
            Ok((messages, task)) => Ok(Self {
                runtime,
                sender,
                messages,
                _task: task,
                token: token.to_owned(),
                pending: VecDeque::new(),
            }),
            Err(status) => {
                let status: Status = status;
                assert_eq!(status.code(), Code::Unauthenticated, "{status:?}");
                Err(401)
            }
        }
    }

    fn read(runtime: &Runtime, messages: &mut Streaming<AaepMessage>) -> ReceivedMessage {
        let next = runtime.block_on(async { timeout(Duration::from_mins(2), messages.message()).await });
        match next.expect("no message") {
            Ok(Some(message)) => {
                let json: Value = serde_json::from_slice(&message.json).unwrap();
                assert_eq!(json["type"], message.message_type);
                classify(json)
            }
            Ok(None) => ReceivedMessage::End(CloseSignal::Grpc(Code::Ok as i32)),
            Err(status) => ReceivedMessage::End(CloseSignal::Grpc(status.code() as i32)),
        }
    }
}

impl ListenerConnection for GrpcListener {
    fn subscribe(&mut self, request: &str) -> Value {
        self.request(request)
    }

    fn send(&mut self, message: &str) {
        // If the call has ended, the response is an error or is missing.
        let json = message.as_bytes().to_vec();
        let _ = self.sender.send(AaepMessage { json, message_type: String::new() });
    }

    fn request(&mut self, message: &str) -> Value {
        self.send(message);
        let Self { runtime, messages, pending, .. } = self;
        wait_for_message(pending, || Self::read(runtime, messages))
    }

    fn next_incoming(&mut self) -> ReceivedMessage {
        self.pending.pop_front().unwrap_or_else(|| Self::read(&self.runtime, &mut self.messages))
    }

    fn close_signal(&mut self) -> CloseSignal {
        match self.next_incoming() {
            ReceivedMessage::End(signal) => signal,
            other => panic!("expected the end, got {other:?}"),
        }
    }

    /// HTTP/2 pings are invisible here.
    fn wait_for_heartbeat(&mut self) -> bool {
        false
    }

    fn reconnect(&mut self, hub: &mut TransportHub, request: &str) -> Reconnection {
        *self = Self::connect(&hub.grpc_address, &self.token).unwrap();
        let accepted = self.subscribe(request);
        Reconnection::NewSubscription(accepted["subscription_id"].as_str().unwrap().to_owned())
    }

    fn drop_connection(&mut self) -> bool {
        // Dropping the tasks closes the socket.
        std::mem::replace(&mut self.runtime, build_runtime()).shutdown_background();
        true
    }
}

fn build_runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// The messages that wait to be sent, as a stream.
struct MessageQueue(mpsc::UnboundedReceiver<AaepMessage>);

impl futures_util::Stream for MessageQueue {
    type Item = AaepMessage;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<AaepMessage>> {
        self.0.poll_recv(context)
    }
}
