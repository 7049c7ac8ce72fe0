//! The byte stream of a connection, with or without TLS, and its conversion to an SSE stream.

use std::time::Duration;

use hub::ListenerId;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use super::{ConnectionSlot, Server};
use crate::fanout::ListenerSink;
use crate::outbound_queue::OutboundQueue;
use crate::sse;
use crate::telemetry::TransportKind;

/// A bidirectional byte stream.
pub(super) trait ConnectionStream: AsyncRead + AsyncWrite + Send + Sized + Unpin {
    /// Turns the connection into an SSE stream, after the response head was sent.
    fn into_event_stream(
        self,
        server: &Server,
        listener: ListenerId,
        slot: ConnectionSlot,
    ) -> impl Future<Output = ()> + Send;

    /// Tells the client that no more bytes follow, if the transport has a message for that.
    fn close_stream(&mut self) -> impl Future<Output = ()> + Send;
}

impl ConnectionStream for TcpStream {
    /// Hands the socket to the fan-out, so that the stream needs no task.
    async fn into_event_stream(self, server: &Server, listener: ListenerId, slot: ConnectionSlot) {
        match self.into_std() {
            Ok(socket) => {
                // Keeps the kernel's send buffer small, because critical events cannot overtake bytes that are already in
                // it.
                #[cfg(any(target_os = "linux", target_os = "android"))]
                let _ = u32::try_from(server.limits.unsent_bytes)
                    .map(|limit| socket2::SockRef::from(&socket).set_tcp_notsent_lowat(limit));
                let socket = mio::net::TcpStream::from_std(socket);
                server.hub.connect_listener(listener, ListenerSink::Socket(socket, Some(slot)));
            }
            Err(_) => report_disconnected(server, listener),
        }
    }

    async fn close_stream(&mut self) {}
}

/// Reports a listener as disconnected, by connecting it to a channel that is already closed.
pub(super) fn report_disconnected(server: &Server, listener: ListenerId) {
    let (queue, sink) = OutboundQueue::new(&server.hub, listener);
    server.hub.connect_listener(listener, sink);
    drop(queue);
}

/// Number of bytes after which no more frames are added to a write.
const MAX_WRITE_BYTES: usize = 16 * 1024;
/// How long one write may take before the connection is considered lost.
const WRITE_TIMEOUT: Duration = Duration::from_mins(1);

impl ConnectionStream for TlsStream<TcpStream> {
    /// Writes frames in this task, because the bytes must be encrypted first.
    async fn into_event_stream(self, server: &Server, listener: ListenerId, _slot: ConnectionSlot) {
        let _listener_guard = server.hub.telemetry().track_listener(TransportKind::Sse);
        let (mut queue, sink) = OutboundQueue::new(&server.hub, listener);
        server.hub.connect_listener(listener, sink);
        let (mut reader, mut writer) = tokio::io::split(self);
        let writing = async {
            while let Some(frame) = queue.next().await {
                let mut bytes = sse::frame_bytes(&frame).to_vec();
                while bytes.len() < MAX_WRITE_BYTES
                    && let Some(frame) = queue.try_next()
                {
                    bytes.extend_from_slice(sse::frame_bytes(&frame));
                }
                if !write_with_timeout(&mut writer, &bytes, WRITE_TIMEOUT).await {
                    return;
                }
            }
            let _ = timeout(super::CLOSE_TIMEOUT, writer.shutdown()).await;
        };
        tokio::select! {
            () = writing => {}
            () = wait_for_disconnect(&mut reader) => {}
        }
    }

    /// Sends the TLS `close_notify` alert. Without it, the client cannot tell whether the response was truncated.
    async fn close_stream(&mut self) {
        let _ = timeout(super::CLOSE_TIMEOUT, self.shutdown()).await;
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
