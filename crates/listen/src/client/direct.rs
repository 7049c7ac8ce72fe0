//! One connection to a producer, without reconnecting and without interpreting messages, for programs that examine a producer.

use std::collections::VecDeque;

use ::http::header::{ACCEPT, CACHE_CONTROL};
use aaep::SubscriptionId;
use aaep::message::Message;
use client::HttpResponse;
use client::sse::{SseEventError, SseParser};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::address::HubTransport;
use super::follow::MAX_MESSAGE_BYTES;
use super::manifest::MANIFEST_PATH;
use super::message_transport::{Incoming, MessageConnection};
use super::{Address, ConnectionError, ConnectionLoss, http};

/// One connection to a producer. It sends what it is given and returns what it receives, and never reconnects.
#[derive(Debug)]
pub struct DirectConnection {
    address: Address,
    channel: Channel,
    /// Received messages that were not returned yet.
    received: VecDeque<String>,
}

enum Channel {
    /// Requests go out over HTTP. The stream opens with the subscription.
    Sse {
        stream: Option<HttpResponse>,
        parser: Box<SseParser>,
    },
    Messages(Box<MessageConnection>),
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sse { .. } => "Sse",
            Self::Messages(_) => "Messages",
        })
    }
}

/// The acknowledgement of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The HTTP status.
    pub status: u16,
    /// The body of the response.
    pub body: String,
}

impl DirectConnection {
    /// Connects. Over HTTP, this sends nothing yet.
    pub async fn open(address: &Address) -> Result<Self, ConnectionError> {
        let channel = if address.transport == HubTransport::Sse {
            Channel::Sse { stream: None, parser: Box::new(SseParser::new(MAX_MESSAGE_BYTES)) }
        } else {
            // Only a producer that was started as a program reports events here.
            let (events, _receiver) = mpsc::channel(1);
            let opening = timeout(http::REQUEST_TIMEOUT, MessageConnection::open(address, &events));
            let (connection, _) = opening
                .await
                .map_err(|_| ConnectionError::TimedOut)?
                .map_err(|loss: ConnectionLoss| loss.error().clone())?;
            Channel::Messages(Box::new(connection))
        };
        Ok(Self { address: address.clone(), channel, received: VecDeque::new() })
    }

    /// Sends a subscription request and returns the response. If it accepts the request, the connection receives events.
    /// `None` means that the producer closed the connection.
    pub async fn subscribe(&mut self, request: &str) -> Result<Option<String>, ConnectionError> {
        if let Channel::Messages(connection) = &mut self.channel {
            connection.writer.send(request).await?;
            return timeout(http::REQUEST_TIMEOUT, self.next())
                .await
                .unwrap_or(Err(ConnectionError::TimedOut));
        }
        let response = http::post(&self.address, "/aaep/v1/subscriptions", request).await?;
        let body = http::read_body(response).await?;
        if let Some(Message::SubscriptionAccepted(accepted)) = Message::parse(&body) {
            self.open_stream(&accepted.subscription_id).await?;
        }
        Ok(Some(body))
    }

    async fn open_stream(&mut self, subscription: &SubscriptionId) -> Result<(), ConnectionError> {
        let path = format!("/aaep/v1/events?subscription_id={subscription}");
        let headers = [(ACCEPT, "text/event-stream"), (CACHE_CONTROL, "no-cache")];
        let response = http::get(&self.address, &path, &headers).await?;
        if response.status != 200 || !response.is_event_stream() {
            return Err(ConnectionError::UnexpectedStatus(response.status));
        }
        if let Channel::Sse { stream, .. } = &mut self.channel {
            *stream = Some(response);
        }
        Ok(())
    }

    /// Sends a message. Over HTTP, the response is returned; if it contains a message, [`next`](Self::next) returns that message too.
    pub async fn send(&mut self, message: &str) -> Result<Option<Acknowledgement>, ConnectionError> {
        match &mut self.channel {
            Channel::Messages(connection) => {
                let write = timeout(http::REQUEST_TIMEOUT, connection.writer.send(message));
                write.await.unwrap_or(Err(ConnectionError::TimedOut))?;
                Ok(None)
            }
            Channel::Sse { .. } => {
                let response = http::post(&self.address, self.address.messages_path, message).await?;
                let status = response.status;
                let body = http::read_body(response).await?;
                if Message::parse(&body).is_some() {
                    self.received.push_back(body.clone());
                }
                Ok(Some(Acknowledgement { status, body }))
            }
        }
    }

    /// Returns the next message; `None` when the producer has closed the connection. Waits for as long as it takes. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<String>, ConnectionError> {
        loop {
            if let Some(message) = self.received.pop_front() {
                return Ok(Some(message));
            }
            match &mut self.channel {
                Channel::Messages(connection) => match connection.reader.next().await? {
                    Incoming::Message(message) => return Ok(Some(message)),
                    Incoming::End => return Ok(None),
                    Incoming::TooLong => return Err(ConnectionError::ResponseTooLong),
                    Incoming::CallFailed(reason) => return Err(ConnectionError::Other(reason)),
                    Incoming::Alive | Incoming::Diagnostic(_) | Incoming::TransportReply(_) => {}
                },
                Channel::Sse { stream: None, .. } => return Ok(None),
                Channel::Sse { stream: Some(stream), parser } => {
                    let Some(bytes) = stream.chunk().await? else { return Ok(None) };
                    let mut blocks = Vec::new();
                    parser.feed(&bytes, &mut blocks);
                    if blocks.iter().any(|block| block.error == Some(SseEventError::TooLong)) {
                        return Err(ConnectionError::ResponseTooLong);
                    }
                    self.received.extend(blocks.into_iter().filter_map(|block| block.data));
                }
            }
        }
    }
}

/// Fetches the manifest from its well-known place. Returns its text, or the HTTP status if there is none. The outer `None` means that the
/// transport cannot fetch it.
pub async fn fetch_manifest(address: &Address) -> Result<Option<Result<String, u16>>, ConnectionError> {
    if !matches!(address.transport, HubTransport::Sse | HubTransport::WebSocket) {
        return Ok(None);
    }
    let response = http::get(address, MANIFEST_PATH, &[(ACCEPT, "application/json")]).await?;
    let status = response.status;
    let body = http::read_body(response).await?;
    Ok(Some(if status == 200 { Ok(body) } else { Err(status) }))
}
