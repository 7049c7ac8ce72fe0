//! Finds speech-dispatcher, connects to it and, if needed, starts it.

use std::env;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use super::engine_error::SpeechEngineError;

/// A connection over any kind of socket.
pub(super) trait DispatcherStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> DispatcherStream for T {}

/// Where speech-dispatcher listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DispatcherAddress {
    Unix(PathBuf),
    Tcp(String),
}

/// How long speech-dispatcher may take to start and accept connections.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between connection attempts while speech-dispatcher starts.
const CONNECT_RETRY_INTERVAL: Duration = Duration::from_millis(100);
const DEFAULT_PORT: &str = "6560";

impl DispatcherAddress {
    /// Reads `SPEECHD_ADDRESS`. If it is not set, uses speech-dispatcher's default socket.
    pub(super) fn from_env() -> Result<Self, SpeechEngineError> {
        Self::parse(env::var("SPEECHD_ADDRESS").ok().as_deref(), default_socket())
    }

    fn parse(address: Option<&str>, default_socket_path: Option<PathBuf>) -> Result<Self, SpeechEngineError> {
        let Some(address) = address.filter(|address| !address.is_empty()) else {
            return default_socket_path.map(Self::Unix).ok_or(SpeechEngineError::NoRuntimeDir);
        };
        let (method, rest) = address.split_once(':').unwrap_or((address, ""));
        match method {
            "unix_socket" if rest.is_empty() => {
                default_socket_path.map(Self::Unix).ok_or(SpeechEngineError::NoRuntimeDir)
            }
            "unix_socket" => Ok(Self::Unix(rest.into())),
            "inet_socket" => {
                let (host, port) = rest.split_once(':').unwrap_or((rest, DEFAULT_PORT));
                let host = if host.is_empty() { "127.0.0.1" } else { host };
                Ok(Self::Tcp(format!("{host}:{port}")))
            }
            _ => Err(SpeechEngineError::InvalidAddress),
        }
    }

    /// Connects to speech-dispatcher. If it is not running and the address is a local socket, starts it first.
    pub(super) async fn connect_or_start(&self) -> Result<Box<dyn DispatcherStream>, SpeechEngineError> {
        let error = match self.connect().await {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        if matches!(self, Self::Tcp(_)) {
            return Err(SpeechEngineError::Unreachable(error.to_string()));
        }
        timeout(START_TIMEOUT, self.start_dispatcher()).await.unwrap_or(Err(SpeechEngineError::StartTimeout))
    }

    async fn start_dispatcher(&self) -> Result<Box<dyn DispatcherStream>, SpeechEngineError> {
        let Self::Unix(path) = self else { return Err(SpeechEngineError::NotLocal) };
        let mut command = Command::new("speech-dispatcher");
        command.args(["--spawn", "--communication-method", "unix_socket", "--socket-path"]).arg(path);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status().await.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => SpeechEngineError::NotInstalled,
            _ => SpeechEngineError::SpawnFailed(error.to_string()),
        })?;
        if !status.success() {
            return Err(SpeechEngineError::StartFailed);
        }
        loop {
            match self.connect().await {
                Ok(stream) => return Ok(stream),
                Err(_) => sleep(CONNECT_RETRY_INTERVAL).await,
            }
        }
    }

    async fn connect(&self) -> io::Result<Box<dyn DispatcherStream>> {
        match self {
            #[cfg(unix)]
            Self::Unix(path) => Ok(Box::new(tokio::net::UnixStream::connect(path).await?)),
            #[cfg(not(unix))]
            Self::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
            Self::Tcp(address) => Ok(Box::new(tokio::net::TcpStream::connect(address.as_str()).await?)),
        }
    }
}

fn default_socket() -> Option<PathBuf> {
    let path_from_env = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let directory = path_from_env("XDG_RUNTIME_DIR")
        .or_else(|| path_from_env("XDG_CACHE_HOME"))
        .or_else(|| path_from_env("HOME").map(|home| home.join(".cache")))?;
    Some(directory.join("speech-dispatcher/speechd.sock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_parsed_the_way_speech_dispatcher_parses_it() {
        let default_socket_path = || Some(PathBuf::from("/run/user/1/speech-dispatcher/speechd.sock"));
        let unix = |path: &str| Ok(DispatcherAddress::Unix(path.into()));
        let inet = |address: &str| Ok(DispatcherAddress::Tcp(address.to_owned()));
        for (address, expected) in [
            (None, Ok(DispatcherAddress::Unix(default_socket_path().unwrap()))),
            (Some(""), Ok(DispatcherAddress::Unix(default_socket_path().unwrap()))),
            (Some("unix_socket"), Ok(DispatcherAddress::Unix(default_socket_path().unwrap()))),
            (Some("unix_socket:/tmp/x.sock"), unix("/tmp/x.sock")),
            (Some("inet_socket"), inet("127.0.0.1:6560")),
            (Some("inet_socket:host"), inet("host:6560")),
            (Some("inet_socket:host:1"), inet("host:1")),
        ] {
            assert_eq!(DispatcherAddress::parse(address, default_socket_path()), expected, "{address:?}");
        }
        assert!(DispatcherAddress::parse(Some("dbus:x"), default_socket_path()).is_err());
        assert!(DispatcherAddress::parse(None, None).is_err());
    }
}
