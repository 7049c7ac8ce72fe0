//! Where a program finds the hub of the person it works for.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use crate::{Url, UrlError};

/// The name of the hub's socket, without its extension.
pub const HUB_SOCKET_NAME: &str = "sayso-hub";

/// Returns the path at which programs of this user look for the socket of a producer (AAEP §B.4.1). Nothing is created.
pub fn default_socket_path(producer: &str) -> io::Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let folder = if cfg!(target_os = "macos") {
        variable("HOME").map(|home| home.join("Library/Application Support/AAEP"))
    } else {
        variable("XDG_RUNTIME_DIR").map(|folder| folder.join("aaep"))
    };
    let folder = match folder {
        Some(folder) => folder,
        None => std::env::temp_dir().join(format!("aaep-{}", current_uid()?)),
    };
    Ok(folder.join(format!("{producer}.sock")))
}

/// Returns the id of the current user.
pub fn current_uid() -> io::Result<u32> {
    let (socket, _) = UnixStream::pair()?;
    Ok(std::fs::File::from(socket.as_fd().try_clone_to_owned()?).metadata()?.uid())
}

/// Where an address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HubSource {
    /// The command line.
    Argument,
    /// The environment variable `SAYSO_URL`.
    Environment,
    /// Neither was given, so it is the socket of the user's personal hub.
    PersonalHub,
}

/// The address of the hub that a program should use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubLocation {
    /// The address.
    pub url: Url,
    /// Where it comes from.
    pub source: HubSource,
}

/// Why there is no address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubLocationError {
    /// The given address is not valid.
    #[error("{text:?} is not the address of a hub: {source}")]
    Invalid {
        /// The address as it was given.
        text: String,
        /// What is wrong with it.
        source: UrlError,
    },
    /// The path of the personal hub's socket cannot be determined.
    #[error("the socket of the personal hub cannot be found: {0}")]
    Socket(io::Error),
}

impl HubLocation {
    /// Returns the given address, else the one in `SAYSO_URL`, else the socket of the personal hub. Does not connect.
    pub fn find(argument: Option<&str>) -> Result<Self, HubLocationError> {
        let environment = std::env::var("SAYSO_URL").ok().filter(|url| !url.is_empty());
        let given = argument
            .map(|text| (text.to_owned(), HubSource::Argument))
            .or_else(|| environment.map(|text| (text, HubSource::Environment)));
        let Some((text, source)) = given else {
            let path = default_socket_path(HUB_SOCKET_NAME).map_err(HubLocationError::Socket)?;
            let url = Url::unix(&path)
                .map_err(|source| HubLocationError::Invalid { text: path.display().to_string(), source })?;
            return Ok(Self { url, source: HubSource::PersonalHub });
        };
        let url = Url::parse_http(&text).map_err(|source| HubLocationError::Invalid { text, source })?;
        Ok(Self { url, source })
    }
}
