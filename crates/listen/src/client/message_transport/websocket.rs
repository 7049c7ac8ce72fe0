//! WebSocket (§B.2): one message per frame.

use client::{ClientError, HttpClient, Message as Frame, WebSocket};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};

use super::{Incoming, MessageConnection, MessageReader, MessageWriter};
use crate::client::follow::MAX_MESSAGE_BYTES;
use crate::client::{ConnectionError, ConnectionLoss};

/// The half of a WebSocket that receives.
pub(in crate::client) struct Reader(SplitStream<WebSocket>);

/// The half of a WebSocket that sends.
pub(in crate::client) struct Writer(SplitSink<WebSocket, Frame>);

pub(super) async fn open(client: &HttpClient) -> Result<MessageConnection, ConnectionLoss> {
    let opened = client.open_websocket("/aaep/v1/ws", Some("aaep.v1"), MAX_MESSAGE_BYTES).await;
    match opened.map_err(ConnectionError::from) {
        Ok(socket) => {
            let (sink, stream) = socket.split();
            Ok(MessageConnection {
                reader: MessageReader::WebSocket(Reader(stream)),
                writer: MessageWriter::WebSocket(Writer(sink)),
            })
        }
        Err(error @ (ConnectionError::TokenRequired | ConnectionError::NotAHub(_))) => {
            Err(ConnectionLoss::Refused(error))
        }
        Err(error) => Err(ConnectionLoss::Unreachable(error)),
    }
}

impl Reader {
    pub(super) async fn next(&mut self) -> Result<Incoming, ConnectionError> {
        match self.0.next().await {
            Some(Ok(Frame::Text(text))) => Ok(Incoming::Message(text.as_str().to_owned())),
            // Binary frames with UTF-8 text are also accepted (C-E8).
            Some(Ok(Frame::Binary(bytes))) => {
                let text = String::from_utf8(bytes.into()).map_err(|_| ConnectionError::NotUtf8)?;
                Ok(Incoming::Message(text))
            }
            Some(Ok(Frame::Close(_))) | None => Ok(Incoming::End),
            // The library answers pings itself.
            Some(Ok(_)) => Ok(Incoming::Alive),
            Some(Err(error)) => Err(ClientError::from(error).into()),
        }
    }
}

impl Writer {
    pub(super) async fn send(&mut self, text: &str) -> Result<(), ConnectionError> {
        Ok(self.0.send(Frame::text(text)).await.map_err(ClientError::from)?)
    }
}
