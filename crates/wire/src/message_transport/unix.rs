//! The Unix socket transport (§B.4), for listeners of the same user only.

use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hub::Principal;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use super::framing::{FrameError, FrameReader, MessageFraming};
use super::subscription_flow::close_message;
use super::{
    DisconnectReason, InboundItem, MessageSink, MessageSource, OutboundItem, WireLimits, lingering_close,
    run_subscription,
};
use crate::server::Server;
use crate::telemetry::TransportKind;

/// A Unix socket that accepts only connections of the current user. Dropping it removes the socket file.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    owner_uid: u32,
}

impl UnixSocket {
    /// Creates the socket, readable and writable for its owner only. Replaces a stale socket left by an earlier
    /// run, but not a socket that is in use or another kind of file. Requires a tokio runtime.
    pub fn bind(path: &Path) -> Result<Self> {
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(metadata) if !metadata.file_type().is_socket() => {
                return Err(Error::new(ErrorKind::AlreadyExists, "the file exists and is not a socket"));
            }
            Ok(_) => match std::os::unix::net::UnixStream::connect(path) {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
                Err(error) => return Err(error),
                Ok(_) => return Err(Error::new(ErrorKind::AddrInUse, "the socket is already in use")),
            },
        }
        let listener = UnixListener::bind(path)?;
        // Other users could connect between these two calls, but `accept` checks the peer's user in any case.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        let owner_uid = UnixStream::pair()?.0.peer_cred()?.uid();
        Ok(Self { listener, path: path.to_owned(), owner_uid })
    }

    /// Returns the path at which listeners look for a producer's socket (§B.4.1). Creates its folder, accessible to the
    /// current user only.
    pub fn default_path(producer: &str) -> Result<PathBuf> {
        let env_path = |name| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let folder = if cfg!(target_os = "macos") {
            env_path("HOME").map(|home| home.join("Library/Application Support/AAEP"))
        } else {
            env_path("XDG_RUNTIME_DIR").map(|folder| folder.join("aaep"))
        };
        let per_user_folder = || -> Result<PathBuf> {
            let stream = std::os::unix::net::UnixStream::pair()?.0;
            let descriptor = std::os::fd::AsFd::as_fd(&stream).try_clone_to_owned()?;
            let owner_uid = std::fs::File::from(descriptor).metadata()?.uid();
            Ok(std::env::temp_dir().join(format!("aaep-{owner_uid}")))
        };
        let folder = folder.map_or_else(per_user_folder, Ok)?;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        // In a shared temporary folder, another user may have created this path first.
        let metadata = std::fs::symlink_metadata(&folder)?;
        if !metadata.is_dir() {
            return Err(Error::new(ErrorKind::NotADirectory, "the socket's parent path is not a folder"));
        }
        if metadata.permissions().mode() & 0o022 != 0 {
            return Err(Error::new(ErrorKind::PermissionDenied, "the folder is writable by other users"));
        }
        Ok(folder.join(format!("{producer}.sock")))
    }

    /// Accepts the next connection of the current user. Connections of other users are dropped.
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
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Runs one connection. It needs no token, because the peer is the user who runs the hub.
pub(crate) async fn run(server: &Server, stream: UnixStream) {
    let (reader, writer) = stream.into_split();
    let frames = FrameReader::detect(reader, server.core.limits.unix_bytes);
    let Ok(Some(mut source)) = timeout(server.core.limits.head_timeout, frames).await else { return };
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
            OutboundItem::Event(frame) => self.framing.encode(frame.json()),
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
