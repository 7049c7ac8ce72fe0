//! gRPC (§B.5): a stream of messages in both directions, over HTTP/2.
//!
//! The call has no deadline (§B.5.4). HTTP/2 pings show that the hub is alive.

use client::HttpClient;
use futures_util::stream;
use grpc::tonic::metadata::MetadataValue;
use grpc::tonic::{Code, Request, Response, Status, Streaming};
use grpc::{AaepMessage, ClientConnection, ConnectionTask};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Incoming, MessageConnection, MessageReader, MessageWriter};
use crate::client::follow::MAX_MESSAGE_BYTES;
use crate::client::{ConnectionError, ConnectionLoss};
use crate::sanitize;

/// The half of a call that receives.
pub(in crate::client) struct Reader {
    state: CallState,
    _task: ConnectionTask,
}

enum CallState {
    /// The hub has not responded yet. It may wait for the first message.
    Calling(JoinSet<Result<Response<Streaming<AaepMessage>>, Status>>),
    Open(Box<Streaming<AaepMessage>>),
    Ended,
}

/// The half of a call that sends.
pub(in crate::client) struct Writer(mpsc::Sender<AaepMessage>);

pub(super) async fn open(client: &HttpClient) -> Result<MessageConnection, ConnectionLoss> {
    let unreachable = ConnectionLoss::Unreachable;
    let stream = client.connect_http2().await.map_err(|error| unreachable(error.into()))?;
    let scheme = if client.url().is_tls() { "https" } else { "http" };
    let origin = http::Uri::try_from(format!("{scheme}://{}", client.url().authority()))
        .map_err(|_| unreachable(ConnectionError::InvalidHost))?;
    let connection = grpc::connect(stream, origin).await;
    let ClientConnection { client: stub, task } =
        connection.map_err(|_| unreachable(ConnectionError::NotHttp))?;
    let (outgoing, queue) = mpsc::channel(1);
    let mut request = Request::new(stream::unfold(queue, async |mut queue: mpsc::Receiver<_>| {
        queue.recv().await.map(|message| (message, queue))
    }));
    if let Some(bearer) = client.authorization() {
        let value = MetadataValue::try_from(bearer.as_bytes())
            .map_err(|_| ConnectionLoss::Refused(ConnectionError::InvalidToken))?;
        request.metadata_mut().insert("authorization", value);
    }
    let mut stub = stub.max_decoding_message_size(MAX_MESSAGE_BYTES);
    let mut call = JoinSet::new();
    call.spawn(async move { stub.subscribe(request).await });
    Ok(MessageConnection {
        reader: MessageReader::Grpc(Reader { state: CallState::Calling(call), _task: task }),
        writer: MessageWriter::Grpc(Writer(outgoing)),
    })
}

impl Reader {
    pub(super) async fn next(&mut self) -> Result<Incoming, ConnectionError> {
        if let CallState::Calling(call) = &mut self.state {
            let outcome = call.join_next().await;
            self.state = CallState::Ended;
            let Some(Ok(outcome)) = outcome else { return Ok(Incoming::End) };
            let response = outcome.map_err(|status| describe_status(&status))?;
            self.state = CallState::Open(Box::new(response.into_inner()));
        }
        let CallState::Open(messages) = &mut self.state else { return Ok(Incoming::End) };
        match messages.message().await {
            Ok(Some(message)) => {
                let text = String::from_utf8(message.json).map_err(|_| ConnectionError::NotUtf8)?;
                Ok(Incoming::Message(text))
            }
            Ok(None) => Ok(Incoming::End),
            Err(status) => Err(describe_status(&status)),
        }
    }
}

impl Writer {
    /// Sends a message, and waits until the call has taken it.
    pub(super) async fn send(&mut self, text: &str) -> Result<(), ConnectionError> {
        let message = AaepMessage { json: text.as_bytes().to_vec(), message_type: String::new() };
        self.0.send(message).await.map_err(|_| ConnectionError::ConnectionReset)?;
        self.0.reserve().await.map(drop).map_err(|_| ConnectionError::ConnectionReset)
    }
}

fn describe_status(status: &Status) -> ConnectionError {
    match status.code() {
        Code::Unauthenticated | Code::PermissionDenied => ConnectionError::TokenRequired,
        Code::Unimplemented => ConnectionError::NotAHub(None),
        Code::Unavailable | Code::Cancelled | Code::Unknown => ConnectionError::ClosedByHub,
        _ => ConnectionError::Other(sanitize(status.message(), true)),
    }
}
