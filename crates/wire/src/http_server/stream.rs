//! The byte stream of a connection, with or without TLS.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use crate::message_transport::CLOSE_TIMEOUT;

/// The response head of an SSE stream.
pub(crate) const SSE_RESPONSE_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n";

/// A bidirectional byte stream.
pub(crate) trait ConnectionStream: AsyncRead + AsyncWrite + Send + Sized + Unpin {
    /// Returns the TCP stream if its bytes are sent without encryption.
    fn into_plain_tcp(self) -> Result<TcpStream, Self>;

    /// Tells the client that no more bytes follow, if the transport has a message for that.
    fn close_stream(&mut self) -> impl Future<Output = ()> + Send;
}

impl ConnectionStream for TcpStream {
    fn into_plain_tcp(self) -> Result<TcpStream, Self> {
        Ok(self)
    }

    async fn close_stream(&mut self) {}
}

impl ConnectionStream for UnixStream {
    fn into_plain_tcp(self) -> Result<TcpStream, Self> {
        Err(self)
    }

    async fn close_stream(&mut self) {}
}

impl ConnectionStream for TlsStream<TcpStream> {
    fn into_plain_tcp(self) -> Result<TcpStream, Self> {
        Err(self)
    }

    /// Sends the TLS `close_notify` alert. Without it, the client cannot tell whether the response was truncated.
    async fn close_stream(&mut self) {
        let _ = timeout(CLOSE_TIMEOUT, self.shutdown()).await;
    }
}

/// Writes all bytes. Returns whether that succeeded within the time limit.
pub(crate) async fn write_with_timeout(
    stream: &mut (impl AsyncWrite + Unpin),
    bytes: &[u8],
    time_limit: Duration,
) -> bool {
    let write = async {
        stream.write_all(bytes).await?;
        stream.flush().await
    };
    timeout(time_limit, write).await.is_ok_and(|result| result.is_ok())
}

/// Waits until the client disconnects. Also returns if the client sends a lot of data, because SSE clients send nothing.
pub(crate) async fn wait_for_disconnect(reader: &mut (impl AsyncRead + Unpin)) {
    let mut buffer = [0; 512];
    for _ in 0..16 {
        if reader.read(&mut buffer).await.unwrap_or(0) == 0 {
            return;
        }
    }
}
