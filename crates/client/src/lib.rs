//! The one HTTP client of the workspace: HTTP/1.1 requests, streamed responses, server-sent events and WebSockets.
//!
//! - [`Url`]: the address of a server.
//! - [`Trust`]: the certificates that are trusted under TLS.
//! - [`HttpClient`]: connects to one server, with its token; feature `http` sends requests, feature `websocket` opens
//!   WebSockets.
//! - [`sse`]: server-sent events out of bytes.
//! - [`Backoff`]: the pauses between attempts to connect.
//!
//! A token is sent in a header to the server it was given for, and nowhere else: redirects are not followed, and a token is
//! never part of a URL. No function here has a timeout of its own except [`Response::text`]; callers know how long they can
//! wait.

mod backoff;
mod connect;
mod error;
#[cfg(feature = "http")]
mod request;
pub mod sse;
mod tls;
mod url;
#[cfg(feature = "websocket")]
mod websocket;

pub use backoff::Backoff;
pub use connect::{Connection, HttpClient, Stream};
pub use error::{CertificateFault, Error};
#[cfg(feature = "http")]
pub use request::{Response, send};
pub use tls::{Trust, TrustError};
pub use url::{Url, UrlError};
#[cfg(feature = "websocket")]
pub use websocket::{Message, WebSocket, WebSocketError};
