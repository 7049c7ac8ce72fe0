//! The Unix socket (§B.4), for programs of the same user only. A connection carries either AAEP messages (listeners) or
//! HTTP, with the same routes as on TCP (agents and everything else). The first byte tells them apart: a request starts
//! with a capital letter, which as a length prefix would announce a message of more than 1 GB.

use std::fs::{File, TryLockError};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hub::Principal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use super::framing::{FrameError, FrameReader, MessageFraming};
use super::subscription_flow::close_message;
use super::{
    DisconnectReason, InboundItem, MessageSink, MessageSource, OutboundItem, WireLimits, lingering_close,
    run_subscription,
};
use crate::http_server::ConnectionSlot;
use crate::server::{Server, serve_local_http};
use crate::telemetry::TransportKind;

/// A Unix socket that accepts only connections of the current user. Dropping it removes the socket file.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// The inode of the socket file, by which `drop` recognizes it.
    inode: u64,
    owner_uid: u32,
    /// Held as long as the socket is in use.
    lock: Option<File>,
}

impl UnixSocket {
    /// Creates the socket, readable and writable for its owner only. Replaces a stale socket left by an earlier
    /// run, but not a socket that is in use or another kind of file. Requires a tokio runtime.
    pub fn bind(path: &Path) -> Result<Self> {
        if Self::check(path)? {
            std::fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        // Other users could connect between these two calls, but `accept` checks the peer's user in any case.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        let inode = std::fs::symlink_metadata(path)?.ino();
        Ok(Self { listener, path: path.to_owned(), inode, owner_uid: current_uid()?, lock: None })
    }

    /// Checks whether a socket can be created at this path, without creating anything. Returns whether a stale socket is there.
    pub fn check(path: &Path) -> Result<bool> {
        // Fails if the path is too long.
        std::os::unix::net::SocketAddr::from_pathname(path)?;
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
            Ok(metadata) if !metadata.file_type().is_socket() => {
                Err(Error::new(ErrorKind::AlreadyExists, "the file exists and is not a socket"))
            }
            Ok(_) => match std::os::unix::net::UnixStream::connect(path) {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(true),
                Err(error) => Err(error),
                Ok(_) => Err(Error::new(ErrorKind::AddrInUse, "the socket is already in use")),
            },
        }
    }

    /// Like [`Self::bind`], for a path that several processes may want at the same time. A lock file beside the socket, which
    /// stays, prevents two of them from replacing the same stale socket.
    pub fn bind_locked(path: &Path) -> Result<Self> {
        let lock = lock_path(path)?;
        let mut socket = Self::bind(path)?;
        socket.lock = Some(lock);
        Ok(socket)
    }

    /// Creates the folder of a socket, accessible to the current user only. Refuses a folder that other users can write
    /// to.
    pub fn create_folder(folder: &Path) -> Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // In a shared temporary folder, another user may have created this path first.
        let metadata = std::fs::symlink_metadata(folder)?;
        if !metadata.is_dir() {
            return Err(Error::new(ErrorKind::NotADirectory, "the socket's parent path is not a folder"));
        }
        if metadata.uid() != current_uid()? {
            return Err(Error::new(ErrorKind::PermissionDenied, "the folder belongs to another user"));
        }
        if metadata.permissions().mode() & 0o022 != 0 {
            return Err(Error::new(ErrorKind::PermissionDenied, "the folder is writable by other users"));
        }
        Ok(())
    }

    /// Accepts the next connection from the current user. Connections from other users are dropped.
    pub async fn accept(&self) -> Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            if stream.peer_cred().is_ok_and(|peer| peer.uid() == self.owner_uid) {
                return Ok(stream);
            }
        }
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        let is_own = |metadata: std::fs::Metadata| metadata.ino() == self.inode;
        if std::fs::symlink_metadata(&self.path).is_ok_and(is_own) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Locks the path of a socket, in a file beside it. Fails if another process holds the lock.
fn lock_path(path: &Path) -> Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = seal::private_file::open_options().write(true).create(true).truncate(false).open(&name)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Error::new(ErrorKind::AddrInUse, "the socket is already in use"))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns the id of the current user. Requires a tokio runtime.
fn current_uid() -> Result<u32> {
    let (socket, _) = std::os::unix::net::UnixStream::pair()?;
    Ok(File::from(socket.as_fd().try_clone_to_owned()?).metadata()?.uid())
}

/// Runs one connection. It needs no token, because the peer is the user who runs the hub.
pub(crate) async fn run(server: &Arc<Server>, mut stream: UnixStream, mut slot: ConnectionSlot) {
    // The operating system has authenticated the user.
    slot.mark_authenticated();
    let mut first_bytes = Vec::with_capacity(4096);
    let read = timeout(server.core.limits.head_timeout, stream.read_buf(&mut first_bytes)).await;
    let Ok(Ok(1..)) = read else { return };
    if first_bytes.first().is_some_and(u8::is_ascii_uppercase) {
        return serve_local_http(server.clone(), stream, first_bytes, slot).await;
    }
    let (reader, writer) = stream.into_split();
    let mut source = FrameReader::detect(reader, first_bytes, server.core.limits.unix_bytes);
    let mut sink = FramedWriter { framing: source.framing(), writer };
    let _listener_guard = server.hub.telemetry().track_listener(TransportKind::Unix);
    let limits = WireLimits {
        first_message_timeout: Some(server.core.limits.head_timeout),
        ping_interval: None,
        max_malformed: Some(server.core.limits.malformed_messages),
        write_timeout: server.core.limits.message_write_timeout,
    };
    run_subscription(&server.hub, &Principal::local(), &limits, &mut source, &mut sink).await;
    if let Ok(stream) = source.into_reader().reunite(sink.writer) {
        lingering_close(stream).await;
    }
}

impl MessageSource for FrameReader<OwnedReadHalf> {
    async fn receive(&mut self) -> InboundItem {
        match self.next().await {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => InboundItem::Message { text, request_id: None },
                Err(_) => InboundItem::Malformed,
            },
            Err(FrameError::Eof) => InboundItem::End(DisconnectReason::ConnectionLost),
            Err(FrameError::TooLarge) => InboundItem::End(DisconnectReason::TooLarge),
        }
    }
}

struct FramedWriter {
    framing: MessageFraming,
    writer: OwnedWriteHalf,
}

impl MessageSink for FramedWriter {
    async fn transmit(&mut self, item: OutboundItem) -> bool {
        let framed = match item {
            OutboundItem::Frame(frame) => self.framing.encode(frame.json()),
            OutboundItem::Reply { json, .. } => self.framing.encode(&json),
            OutboundItem::Raw(text) => self.framing.encode(&text),
            OutboundItem::Close { reason, subscription: Some(subscription) }
                if reason != DisconnectReason::ClosedByPeer =>
            {
                self.framing.encode(&close_message(&subscription, reason))
            }
            OutboundItem::InvalidMessage { .. } | OutboundItem::Ping | OutboundItem::Close { .. } => {
                return true;
            }
        };
        self.writer.write_all(&framed).await.is_ok()
    }
}
