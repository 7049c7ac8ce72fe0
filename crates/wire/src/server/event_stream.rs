//! Listeners on SSE streams.

use std::time::Duration;

use hub::ListenerId;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Server;
use crate::fanout::ListenerSink;
use crate::http_server::{
    ConnectionSlot, ConnectionStream, SSE_RESPONSE_HEAD, wait_for_disconnect, write_with_timeout,
};
use crate::message_transport::CLOSE_TIMEOUT;
use crate::outbound_queue::OutboundQueue;
use crate::sse;
use crate::telemetry::TransportKind;

/// Number of bytes after which no more frames are added to a write.
const MAX_WRITE_BYTES: usize = 16 * 1024;
/// How long one write may take before the connection is considered lost.
const WRITE_TIMEOUT: Duration = Duration::from_mins(1);

/// Sends the response head of an SSE stream and turns the connection into the stream.
pub(super) async fn run(
    server: &Server,
    mut stream: impl ConnectionStream,
    listener: ListenerId,
    slot: ConnectionSlot,
) {
    if !write_with_timeout(&mut stream, SSE_RESPONSE_HEAD, server.core.limits.response_timeout).await {
        return report_disconnected(server, listener);
    }
    match stream.into_plain_tcp() {
        Ok(stream) => hand_to_fanout(server, stream, listener, slot),
        Err(stream) => write_frames(server, stream, listener).await,
    }
}

/// Hands the socket to the fan-out, so that the stream needs no task.
fn hand_to_fanout(server: &Server, stream: TcpStream, listener: ListenerId, slot: ConnectionSlot) {
    match stream.into_std() {
        Ok(socket) => {
            // Keeps the kernel's send buffer small, because critical events cannot overtake bytes that are already in it.
            #[cfg(any(target_os = "linux", target_os = "android"))]
            let _ = u32::try_from(server.core.limits.unsent_bytes)
                .map(|limit| socket2::SockRef::from(&socket).set_tcp_notsent_lowat(limit));
            let socket = mio::net::TcpStream::from_std(socket);
            server.hub.connect_listener(listener, ListenerSink::Socket(socket, Some(slot)));
        }
        Err(_) => report_disconnected(server, listener),
    }
}

/// Writes frames in this task, because the bytes must be encrypted first.
async fn write_frames(server: &Server, stream: impl ConnectionStream, listener: ListenerId) {
    let _listener_guard = server.hub.telemetry().track_listener(TransportKind::Sse);
    let (mut queue, sink) = OutboundQueue::new(&server.hub, listener);
    server.hub.connect_listener(listener, sink);
    let (mut reader, mut writer) = tokio::io::split(stream);
    let writing = async {
        while let Some(frame) = queue.next().await {
            let mut bytes = sse::frame_parts(&frame).concat();
            while bytes.len() < MAX_WRITE_BYTES
                && let Some(frame) = queue.try_next()
            {
                bytes.extend(sse::frame_parts(&frame).into_iter().flatten());
            }
            if !write_with_timeout(&mut writer, &bytes, WRITE_TIMEOUT).await {
                return;
            }
        }
        let _ = timeout(CLOSE_TIMEOUT, writer.shutdown()).await;
    };
    tokio::select! {
        () = writing => {}
        () = wait_for_disconnect(&mut reader) => {}
    }
}

/// Reports a listener as disconnected, by connecting it to a channel that is already closed.
pub(super) fn report_disconnected(server: &Server, listener: ListenerId) {
    let (queue, sink) = OutboundQueue::new(&server.hub, listener);
    server.hub.connect_listener(listener, sink);
    drop(queue);
}
