//! Opens WebSockets.

use http::HeaderValue;
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
pub use tokio_tungstenite::tungstenite::{Error as WebSocketError, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::connection::from_io;
use crate::{ClientConnection, ClientError, HttpClient};

/// A WebSocket to a server.
pub type WebSocket = WebSocketStream<ClientConnection>;

impl HttpClient {
    /// Opens a WebSocket at a path below the server's address, with the token if there is one. `protocol` is the requested
    /// subprotocol. Messages longer than `max_message_bytes` are rejected.
    pub async fn open_websocket(
        &self,
        path: &str,
        protocol: Option<&'static str>,
        max_message_bytes: usize,
    ) -> Result<WebSocket, ClientError> {
        // TLS is handled by the connection, so the scheme in this URL is always `ws`.
        let url = format!("ws://{}{}{path}", self.url().authority(), self.url().path());
        let mut request = url.into_client_request()?;
        if let Some(protocol) = protocol {
            request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
        }
        if let Some(bearer) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, bearer.clone());
        }
        let limit = Some(max_message_bytes);
        let config = WebSocketConfig::default().max_message_size(limit).max_frame_size(limit);
        let (socket, _) = client_async_with_config(request, self.connect().await?, Some(config)).await?;
        Ok(socket)
    }
}

impl From<WebSocketError> for ClientError {
    fn from(error: WebSocketError) -> Self {
        match error {
            WebSocketError::Io(error) => from_io(error),
            WebSocketError::Http(response) => Self::WebSocketRejected(response.status().as_u16()),
            WebSocketError::Protocol(ProtocolError::HttparseError(_)) => Self::NotHttp,
            other => Self::WebSocket(Box::new(other)),
        }
    }
}
