//! A connection between two nodes: messages with their lengths, heartbeats, and a bounded queue for sending.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hub::encoding;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::RouterLimits;
use super::protocol::{Message, MessageKind};

/// Number of bytes of the length before each message.
const LENGTH_BYTES: usize = 4;
/// Messages are written together up to this number of bytes.
const WRITE_BYTES: usize = 64 * 1024;

/// The sender of a connection's messages. Clones share its queue.
#[derive(Clone)]
pub(super) struct MessageSender {
    queue: mpsc::UnboundedSender<Vec<u8>>,
    state: Arc<SenderState>,
    max_bytes: usize,
}

#[derive(Default)]
struct SenderState {
    queued_bytes: AtomicUsize,
    is_closed: AtomicBool,
    closed: Notify,
}

/// The receiving end of a [`MessageSender`].
pub(super) struct MessageQueue {
    queue: mpsc::UnboundedReceiver<Vec<u8>>,
    state: Arc<SenderState>,
}

/// Creates the queue of a connection.
pub(super) fn message_queue(limits: &RouterLimits) -> (MessageSender, MessageQueue) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let state: Arc<SenderState> = Arc::default();
    let sender = MessageSender { queue: sender, state: state.clone(), max_bytes: limits.queued_bytes };
    (sender, MessageQueue { queue: receiver, state })
}

impl MessageSender {
    /// Queues a message. If too many bytes are queued already, closes the connection. Returns `false` if it is closed.
    pub(super) fn send(&self, message: &Message) -> bool {
        let Ok(frame) = encode(message) else { return false };
        let size = frame.len();
        let queued = self.state.queued_bytes.fetch_add(size, Ordering::AcqRel);
        if queued > 0 && queued + size > self.max_bytes {
            self.close();
        }
        !self.is_closed() && self.queue.send(frame).is_ok()
    }

    /// Returns the number of bytes that wait to be sent.
    pub(super) fn queued_bytes(&self) -> usize {
        self.state.queued_bytes.load(Ordering::Acquire)
    }

    pub(super) fn close(&self) {
        self.state.is_closed.store(true, Ordering::Release);
        self.state.closed.notify_one();
    }

    fn is_closed(&self) -> bool {
        self.state.is_closed.load(Ordering::Acquire)
    }
}

fn encode(message: &Message) -> io::Result<Vec<u8>> {
    let body = encoding::encode(message).map_err(io::Error::other)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    let mut frame = Vec::with_capacity(LENGTH_BYTES + body.len());
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&body);
    Ok(frame)
}

/// The reading half of a connection.
pub(super) struct MessageReader<S> {
    stream: ReadHalf<S>,
    limits: RouterLimits,
}

/// The writing half of a connection.
pub(super) struct MessageWriter<S> {
    stream: WriteHalf<S>,
    limits: RouterLimits,
}

/// Splits a stream into its halves.
pub(super) fn split<S: AsyncRead + AsyncWrite>(
    stream: S,
    limits: &RouterLimits,
) -> (MessageReader<S>, MessageWriter<S>) {
    let (reader, writer) = tokio::io::split(stream);
    (MessageReader { stream: reader, limits: *limits }, MessageWriter { stream: writer, limits: *limits })
}

impl<S: AsyncRead> MessageReader<S> {
    /// Reads the next message. Fails if the connection ends, if nothing arrives for too long, or if the message is too large or
    /// cannot be decoded.
    pub(super) async fn read(&mut self) -> io::Result<Message> {
        let mut length = [0; LENGTH_BYTES];
        self.fill(&mut length).await?;
        let length = usize::try_from(u32::from_be_bytes(length)).map_err(io::Error::other)?;
        if length > self.limits.message_bytes {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too large"));
        }
        // The buffer grows with what arrives, so that a length alone costs no memory.
        let mut body = Vec::new();
        while body.len() < length {
            let start = body.len();
            body.resize(length.min(start + WRITE_BYTES), 0);
            let part = body.get_mut(start..).unwrap_or_default();
            self.fill(part).await?;
        }
        encoding::decode(&body).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
    }

    async fn fill(&mut self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            let read = timeout(self.limits.idle_timeout, self.stream.read(buffer)).await??;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            buffer = buffer.get_mut(read..).unwrap_or_default();
        }
        Ok(())
    }
}

impl<S: AsyncWrite> MessageWriter<S> {
    /// Writes one message.
    pub(super) async fn write(&mut self, message: &Message) -> io::Result<()> {
        self.write_bytes(&encode(message)?).await
    }

    async fn write_bytes(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = timeout(self.limits.idle_timeout, self.stream.write(bytes)).await??;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = bytes.get(written..).unwrap_or_default();
        }
        timeout(self.limits.idle_timeout, self.stream.flush()).await?
    }

    /// Writes the queued messages, and heartbeats, until the connection is closed.
    pub(super) async fn run(&mut self, queue: &mut MessageQueue) -> io::Result<()> {
        let mut buffer = Vec::new();
        loop {
            let next = tokio::select! {
                () = queue.state.closed.notified() => {
                    return Err(io::Error::other("the connection was closed, or the other node reads too slowly"));
                }
                next = timeout(self.limits.heartbeat, queue.queue.recv()) => next,
            };
            buffer.clear();
            let mut heartbeat_bytes = 0;
            match next {
                Ok(None) => return Ok(()),
                Ok(Some(frame)) => buffer.extend(frame),
                Err(_) => {
                    buffer.extend(encode(&Message::new(MessageKind::Ping))?);
                    heartbeat_bytes = buffer.len();
                }
            }
            while buffer.len() < WRITE_BYTES
                && let Ok(frame) = queue.queue.try_recv()
            {
                buffer.extend(frame);
            }
            tokio::select! {
                () = queue.state.closed.notified() => {
                    return Err(io::Error::other("the connection was closed, or the other node reads too slowly"));
                }
                written = self.write_bytes(&buffer) => written?,
            }
            queue.state.queued_bytes.fetch_sub(buffer.len() - heartbeat_bytes, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;
    use crate::cluster::protocol::Message;

    fn request(bytes: usize) -> Message {
        let body = vec![7; bytes].into();
        Message::of_request(MessageKind::Request, 3, 9).with_bodies(vec![body])
    }

    #[tokio::test(start_paused = true)]
    async fn messages_arrive_in_order_and_an_idle_connection_has_heartbeats() {
        let limits = RouterLimits::default();
        let (near, far) = duplex(1024);
        let (sender, mut queue) = message_queue(&limits);
        let (_reader, mut writer) = split(near, &limits);
        let (mut reader, _writer) = split(far, &limits);
        assert!(sender.send(&request(100_000)) && sender.send(&Message::of_shard(MessageKind::Started, 5)));
        let read = async {
            let first = reader.read().await.unwrap();
            assert_eq!((first.kind, first.shard, first.id), (MessageKind::Request, Some(3), Some(9)));
            assert_eq!(first.bodies[0].0.len(), 100_000);
            assert_eq!(reader.read().await.unwrap().kind, MessageKind::Started);
            assert_eq!(reader.read().await.unwrap().kind, MessageKind::Ping);
            assert_eq!(sender.state.queued_bytes.load(Ordering::Acquire), 0);
        };
        tokio::select! {
            () = read => {}
            result = writer.run(&mut queue) => panic!("{result:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_sends_nothing_counts_as_dead() {
        let limits = RouterLimits::default();
        let (_near, far) = duplex(1024);
        let (mut reader, _writer) = split(far, &limits);
        let started = tokio::time::Instant::now();
        assert_eq!(reader.read().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed(), limits.idle_timeout);
    }

    #[tokio::test]
    async fn a_message_that_is_too_large_or_unreadable_is_refused() {
        let limits = RouterLimits { message_bytes: 1_000, ..RouterLimits::default() };
        for (bytes, is_accepted) in [(500, true), (1_500, false)] {
            let (near, far) = duplex(1024 * 1024);
            let (_reader, mut writer) = split(near, &limits);
            let (mut reader, _writer) = split(far, &limits);
            writer.write(&request(bytes)).await.unwrap();
            assert_eq!(reader.read().await.is_ok(), is_accepted, "{bytes} bytes");
        }
        let (mut near, far) = duplex(1024);
        let (mut reader, _writer) = split(far, &limits);
        near.write_all(b"\0\0\0\x04nope").await.unwrap();
        assert_eq!(reader.read().await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[tokio::test]
    async fn a_node_that_reads_too_slowly_is_disconnected() {
        let limits = RouterLimits { queued_bytes: 10_000, ..RouterLimits::default() };
        let (near, _far) = duplex(16);
        let (sender, mut queue) = message_queue(&limits);
        let (_reader, mut writer) = split(near, &limits);
        let accepted = (0..100).take_while(|_| sender.send(&request(1_000))).count();
        assert!((5..10).contains(&accepted), "{accepted}");
        let error = writer.run(&mut queue).await.unwrap_err();
        assert!(error.to_string().contains("reads too slowly"), "{error}");
        // A single message of any size is sent if nothing else waits.
        let (sender, _queue) = message_queue(&limits);
        assert!(sender.send(&request(20_000)));
    }
}
