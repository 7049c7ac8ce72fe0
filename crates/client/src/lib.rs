//! The workspace's HTTP client: HTTP/1.1 requests, streamed responses, server-sent events and WebSockets.
//!
//! - [`Url`]: the address of a server.
//! - [`HubLocation`]: finds the hub of the person that a program works for.
//! - [`TrustRoots`]: the trusted certificate authorities.
//! - [`HttpClient`]: connects to one server and authenticates with a token. The feature `http` adds requests, the feature
//!   `websocket` adds WebSockets.
//! - [`sse`]: a parser for server-sent events.
//! - [`Backoff`]: the delays between connection attempts.
//!
//! A token is sent in a header, and only to the server for which it was set. Redirects are not followed, and a token is
//! never part of a URL. Only [`HttpResponse::text`] has a timeout of its own. For all other operations, the caller must
//! set one.

mod backoff;
mod connection;
mod error;
mod hub_location;
#[cfg(feature = "http")]
mod request;
pub mod sse;
mod tls;
mod url;
#[cfg(feature = "websocket")]
mod websocket;

pub use backoff::Backoff;
pub use connection::{ByteStream, ClientConnection, HttpClient};
pub use error::{CertificateErrorKind, ClientError};
pub use hub_location::{
    HUB_SOCKET_NAME, HubLocation, HubLocationError, HubSource, current_uid, default_socket_path,
};
#[cfg(feature = "http")]
pub use request::{CompleteResponse, HttpResponse, PersistentConnection, send_request};
pub use tls::{ClientIdentity, ClientIdentityError, TrustRoots, TrustRootsError};
pub use url::{Url, UrlError};
#[cfg(feature = "websocket")]
pub use websocket::{Message, WebSocket, WebSocketError};
