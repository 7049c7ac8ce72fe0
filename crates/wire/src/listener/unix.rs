//! Unix socket (§B.4): listeners of our own user, and nobody else.

use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hub::Principal;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use super::flow::closing;
use super::frames::{Frames, Framing, NoMessage};
use super::{Ear, Ending, Heard, Manners, Mouth, Word, hang_up, listen};
use crate::observe::Wire;
use crate::server::Server;

/// A socket in the file system on which our own user is heard. Its file is removed when it is dropped.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    owner: u32,
}

impl UnixSocket {
    /// Makes the socket, readable and writable for its owner only. A file that an earlier run has left is replaced; one on
    /// which somebody listens, or that is no socket, is not. Needs a runtime of tokio.
    pub fn bind(path: &Path) -> Result<Self> {
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(found) if !found.file_type().is_socket() => {
                return Err(Error::new(ErrorKind::AlreadyExists, "there is a file that is no socket"));
            }
            Ok(_) => match std::os::unix::net::UnixStream::connect(path) {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
                Err(error) => return Err(error),
                Ok(_) => return Err(Error::new(ErrorKind::AddrInUse, "somebody listens there already")),
            },
        }
        let listener = UnixListener::bind(path)?;
        // Between the two lines anybody could connect; whose connection it is, is looked at all the same.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        let owner = UnixStream::pair()?.0.peer_cred()?.uid();
        Ok(Self { listener, path: path.to_owned(), owner })
    }

    /// Where those who listen look for a producer's socket (§B.4.1). The folder is made, for our own user alone.
    pub fn usual_path(producer: &str) -> Result<PathBuf> {
        let home = |folder| std::env::var_os(folder).filter(|path| !path.is_empty()).map(PathBuf::from);
        let folder = if cfg!(target_os = "macos") {
            home("HOME").map(|home| home.join("Library/Application Support/AAEP"))
        } else {
            home("XDG_RUNTIME_DIR").map(|folder| folder.join("aaep"))
        };
        let own = || -> Result<PathBuf> {
            let owner = std::os::unix::net::UnixStream::pair()?.0;
            let owner = std::os::fd::AsFd::as_fd(&owner).try_clone_to_owned()?;
            let owner = std::fs::File::from(owner).metadata()?.uid();
            Ok(std::env::temp_dir().join(format!("aaep-{owner}")))
        };
        let folder = folder.map_or_else(own, Ok)?;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        // In a folder that is everybody's, somebody else may have been there first.
        let found = std::fs::symlink_metadata(&folder)?;
        if !found.is_dir() || found.permissions().mode() & 0o022 != 0 {
            return Err(Error::new(ErrorKind::PermissionDenied, "the folder is not ours alone"));
        }
        Ok(folder.join(format!("{producer}.sock")))
    }

    /// The next connection of our own user; those of others are dropped.
    pub(crate) async fn accept(&self) -> Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            if stream.peer_cred().is_ok_and(|peer| peer.uid() == self.owner) {
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

/// One connection. Its user is ours, so it may do what whoever started the hub may.
pub(crate) async fn run(server: &Server, stream: UnixStream) {
    let (reader, writer) = stream.into_split();
    let frames = Frames::detect(reader, server.limits.unix_bytes);
    let Ok(Some(mut ear)) = timeout(server.limits.head_time, frames).await else { return };
    let mut mouth = Written { framing: ear.framing(), writer };
    let _here = server.bridge.observe().listens(Wire::Unix);
    let manners = Manners {
        first: Some(server.limits.head_time),
        ping: None,
        malformed: Some(server.limits.malformed),
        patience: server.limits.message_time,
    };
    listen(&server.bridge, &Principal::anybody(), &manners, &mut ear, &mut mouth).await;
    if let Ok(stream) = ear.into_reader().reunite(mouth.writer) {
        hang_up(stream).await;
    }
}

impl Ear for Frames<OwnedReadHalf> {
    async fn hear(&mut self) -> Heard {
        match self.next().await {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Heard::Message { text, to: None },
                Err(_) => Heard::Malformed,
            },
            Err(NoMessage::End) => Heard::End(Ending::Gone),
            Err(NoMessage::TooLarge) => Heard::End(Ending::TooLarge),
        }
    }
}

struct Written {
    framing: Framing,
    writer: OwnedWriteHalf,
}

impl Mouth for Written {
    async fn say(&mut self, word: Word) -> bool {
        let framed = match word {
            Word::Event(frame) => self.framing.wrap(frame.json()),
            Word::Answer { json, .. } => self.framing.wrap(&json),
            Word::Aside(text) => self.framing.wrap(&text),
            Word::End { ending, subscription: Some(subscription) } if ending != Ending::Closed => {
                self.framing.wrap(&closing(&subscription, ending))
            }
            Word::Refused { .. } | Word::Ping | Word::End { .. } => return true,
        };
        self.writer.write_all(&framed).await.is_ok()
    }
}
