//! Unix sockets (§B.4): one message per line.

use std::path::Path;

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::line_reader::{Line, LineReader};
use super::{Incoming, MessageConnection, MessageReader, MessageWriter};
use crate::client::follow::MAX_MESSAGE_BYTES;
use crate::client::{ConnectionError, ConnectionLoss};

/// The half of a socket that receives.
pub(in crate::client) struct Reader(LineReader<OwnedReadHalf>);

/// The half of a socket that sends.
pub(in crate::client) struct Writer(OwnedWriteHalf);

pub(super) async fn open(path: &Path) -> Result<MessageConnection, ConnectionLoss> {
    let unreachable = |error: std::io::Error| ConnectionLoss::Unreachable(error.into());
    let stream = UnixStream::connect(path).await.map_err(unreachable)?;
    // Another user could have put a socket at this path in a shared folder.
    let owner = stream.peer_cred().map_err(unreachable)?.uid();
    if owner != client::current_uid().map_err(unreachable)? {
        return Err(ConnectionLoss::Unreachable(client::ClientError::ForeignSocket.into()));
    }
    let (reader, writer) = stream.into_split();
    Ok(MessageConnection {
        reader: MessageReader::Unix(Reader(LineReader::new(reader, MAX_MESSAGE_BYTES))),
        writer: MessageWriter::Unix(Writer(writer)),
    })
}

impl Reader {
    pub(super) async fn next(&mut self) -> Result<Incoming, ConnectionError> {
        Ok(match self.0.next().await? {
            Line::Text(line) if line.is_empty() => Incoming::Alive,
            Line::Text(line) => Incoming::Message(line),
            Line::TooLong => Incoming::TooLong,
            Line::End => Incoming::End,
        })
    }
}

impl Writer {
    pub(super) async fn send(&mut self, text: &str) -> Result<(), ConnectionError> {
        Ok(self.0.write_all(format!("{text}\n").as_bytes()).await?)
    }
}
