//! What a connection is made of, plain or under TLS, and how it becomes a stream of events.

use std::time::Duration;

use hub::ListenerId;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use super::Server;
use crate::fanout::Sink;
use crate::inbox::Inbox;
use crate::observe::Wire;
use crate::sse;

/// Bytes both ways.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Sized + Unpin {
    /// From here on it hears events, and nothing else; the head is sent.
    fn hand_over(self, server: &Server, listener: ListenerId) -> impl Future<Output = ()> + Send;

    /// The last word has been said.
    fn end(&mut self) -> impl Future<Output = ()> + Send;
}

impl Stream for TcpStream {
    /// The socket goes to the fan-out: from then on it costs no task.
    async fn hand_over(self, server: &Server, listener: ListenerId) {
        match self.into_std() {
            Ok(socket) => {
                // Whatever lies in the system's buffer can no longer be overtaken by what is critical.
                #[cfg(any(target_os = "linux", target_os = "android"))]
                let _ = u32::try_from(server.limits.unsent_bytes)
                    .map(|most| socket2::SockRef::from(&socket).set_tcp_notsent_lowat(most));
                server.bridge.connect(listener, Sink::Socket(mio::net::TcpStream::from_std(socket)));
            }
            Err(_) => nobody(server, listener),
        }
    }

    async fn end(&mut self) {}
}

/// A channel that nobody reads is how the fan-out learns that the listener is gone.
pub(super) fn nobody(server: &Server, listener: ListenerId) {
    let (inbox, sink) = Inbox::new(&server.bridge, listener);
    server.bridge.connect(listener, sink);
    drop(inbox);
}

/// So many bytes go into one write, where there are as many.
const TOGETHER: usize = 16 * 1024;
/// Nobody takes longer for one write and is still there.
const PATIENCE: Duration = Duration::from_mins(1);

impl Stream for TlsStream<TcpStream> {
    /// What is written must be sealed first, so it stays a task.
    async fn hand_over(self, server: &Server, listener: ListenerId) {
        let _here = server.bridge.observe().listens(Wire::Sse);
        let (mut inbox, sink) = Inbox::new(&server.bridge, listener);
        server.bridge.connect(listener, sink);
        let (mut reader, mut writer) = tokio::io::split(self);
        let writing = async {
            while let Some(frame) = inbox.next().await {
                let mut bytes = sse::bytes(&frame).to_vec();
                while bytes.len() < TOGETHER
                    && let Some(frame) = inbox.at_hand()
                {
                    bytes.extend_from_slice(sse::bytes(&frame));
                }
                if !written(&mut writer, &bytes, PATIENCE).await {
                    return;
                }
            }
            let _ = timeout(super::FAREWELL, writer.shutdown()).await;
        };
        tokio::select! {
            () = writing => {}
            () = hung_up(&mut reader) => {}
        }
    }

    /// TLS has a word for it, without which the other side cannot tell an end from a cut.
    async fn end(&mut self) {
        let _ = timeout(super::FAREWELL, self.shutdown()).await;
    }
}

/// Whether all of it was written in time.
pub(crate) async fn written(
    stream: &mut (impl AsyncWrite + Unpin),
    bytes: &[u8],
    patience: Duration,
) -> bool {
    let write = async {
        stream.write_all(bytes).await?;
        stream.flush().await
    };
    timeout(patience, write).await.is_ok_and(|written| written.is_ok())
}

/// A listener of SSE has nothing to say; that it hangs up is what there is to hear. A flood is a reason to part, too.
pub(crate) async fn hung_up(reader: &mut (impl AsyncRead + Unpin)) {
    let mut heard = [0; 512];
    for _ in 0..16 {
        if reader.read(&mut heard).await.unwrap_or(0) == 0 {
            return;
        }
    }
}
