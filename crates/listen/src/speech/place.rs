//! Where speech-dispatcher is.

use std::env;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use super::trouble::Trouble;

/// A connection of whatever sort.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Where it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Unix(PathBuf),
    Inet(String),
}

/// For it to start, and to listen then.
const START: Duration = Duration::from_secs(10);
/// Between two attempts to reach one that starts.
const AGAIN: Duration = Duration::from_millis(100);
const PORT: &str = "6560";

impl Place {
    /// As its documentation says: `SPEECHD_ADDRESS`, else the socket in the person's runtime folder.
    pub(super) fn usual() -> Result<Self, Trouble> {
        Self::of(env::var("SPEECHD_ADDRESS").ok().as_deref(), usual_socket())
    }

    fn of(address: Option<&str>, usual: Option<PathBuf>) -> Result<Self, Trouble> {
        let Some(address) = address.filter(|address| !address.is_empty()) else {
            return usual.map(Self::Unix).ok_or(Trouble::NoFolder);
        };
        let (method, rest) = address.split_once(':').unwrap_or((address, ""));
        match method {
            "unix_socket" if rest.is_empty() => usual.map(Self::Unix).ok_or(Trouble::NoFolder),
            "unix_socket" => Ok(Self::Unix(rest.into())),
            "inet_socket" => {
                let (host, port) = rest.split_once(':').unwrap_or((rest, PORT));
                let host = if host.is_empty() { "127.0.0.1" } else { host };
                Ok(Self::Inet(format!("{host}:{port}")))
            }
            _ => Err(Trouble::BadAddress),
        }
    }

    /// Reaches it; one that does not run is started, if it is on this machine's usual way.
    pub(super) async fn reach(&self) -> Result<Box<dyn Stream>, Trouble> {
        let error = match self.connect().await {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        if matches!(self, Self::Inet(_)) {
            return Err(Trouble::Unreachable(error.to_string()));
        }
        timeout(START, self.start()).await.unwrap_or(Err(Trouble::DoesNotStart))
    }

    async fn start(&self) -> Result<Box<dyn Stream>, Trouble> {
        let Self::Unix(path) = self else { return Err(Trouble::Elsewhere) };
        let mut command = Command::new("speech-dispatcher");
        command.args(["--spawn", "--communication-method", "unix_socket", "--socket-path"]).arg(path);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status().await.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Trouble::NotInstalled,
            _ => Trouble::CannotStart(error.to_string()),
        })?;
        if !status.success() {
            return Err(Trouble::DidNotStart);
        }
        loop {
            match self.connect().await {
                Ok(stream) => return Ok(stream),
                Err(_) => sleep(AGAIN).await,
            }
        }
    }

    async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            #[cfg(unix)]
            Self::Unix(path) => Ok(Box::new(tokio::net::UnixStream::connect(path).await?)),
            #[cfg(not(unix))]
            Self::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
            Self::Inet(address) => Ok(Box::new(tokio::net::TcpStream::connect(address.as_str()).await?)),
        }
    }
}

fn usual_socket() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_RUNTIME_DIR")
        .or_else(|| set("XDG_CACHE_HOME"))
        .or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    Some(folder.join("speech-dispatcher/speechd.sock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read_as_speech_dispatcher_reads_it() {
        let usual = || Some(PathBuf::from("/run/user/1/speech-dispatcher/speechd.sock"));
        let unix = |path: &str| Ok(Place::Unix(path.into()));
        let inet = |address: &str| Ok(Place::Inet(address.to_owned()));
        for (address, place) in [
            (None, Ok(Place::Unix(usual().unwrap()))),
            (Some(""), Ok(Place::Unix(usual().unwrap()))),
            (Some("unix_socket"), Ok(Place::Unix(usual().unwrap()))),
            (Some("unix_socket:/tmp/x.sock"), unix("/tmp/x.sock")),
            (Some("inet_socket"), inet("127.0.0.1:6560")),
            (Some("inet_socket:host"), inet("host:6560")),
            (Some("inet_socket:host:1"), inet("host:1")),
        ] {
            assert_eq!(Place::of(address, usual()), place, "{address:?}");
        }
        assert!(Place::of(Some("dbus:x"), usual()).is_err());
        assert!(Place::of(None, None).is_err());
    }
}
