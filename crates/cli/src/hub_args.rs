//! Arguments for commands that connect to a hub (address, token, certificates), and helpers for runtimes and signals.

use std::borrow::Cow;
#[cfg(unix)]
use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::task::Poll;

use client::Url;
use listen::client::Address;
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};
use wire::UnixSocket;

use crate::output::{describe_io_error, print_stderr, printable};

/// The keyword in `unix:default`, which stands for the default socket path.
pub(crate) const DEFAULT_SOCKET_KEYWORD: &str = "default";

#[derive(clap::Args)]
pub(crate) struct HubArgs {
    /// Address of the hub, as the hub prints it: http://HOST:PORT, https://HOST:PORT, ws://HOST:PORT, wss://HOST:PORT, grpc://HOST:PORT, grpcs://HOST:PORT or unix:PATH. For a hub on this machine, HOST:PORT is enough; unix:default is its default socket.
    url: String,
    #[command(flatten)]
    credentials: Credentials,
    #[command(flatten)]
    certificate: ClientCertificate,
}

/// How to authenticate, and which hub to trust.
#[derive(clap::Args)]
pub(crate) struct Credentials {
    /// Access token. Other users of this machine can see it in the process list; SAYSO_TOKEN and --token-file avoid that.
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    token: Option<String>,
    /// File that contains the access token.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// PEM file with certificates to trust for https, wss and grpcs, in addition to those of the system.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
}

/// The certificate of this client, for hubs that demand one.
#[derive(clap::Args)]
pub(crate) struct ClientCertificate {
    /// PEM file with the certificate of this client, for hubs that demand one.
    #[arg(long, value_name = "FILE", requires = "client_key")]
    client_cert: Option<PathBuf>,
    /// PEM file with the private key of that certificate. Nobody else may be able to read it.
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    client_key: Option<PathBuf>,
}

/// Maximum size of the file of a client's private key, in bytes.
const MAX_KEY_FILE_BYTES: u64 = 1024 * 1024;

impl HubArgs {
    /// Returns the hub's address with the token, or an error message.
    pub(crate) fn address(&self) -> Result<Address, String> {
        self.certificate.apply(self.credentials.address(&self.url)?)
    }

    /// Returns the URL at which agents connect to this hub, which may be given.
    pub(crate) fn agent_url(&self, given: Option<&str>) -> Result<String, String> {
        let url = complete_url(given.unwrap_or(&self.url))?;
        Ok(match url.split_once("://") {
            Some(("ws", rest)) => format!("http://{rest}"),
            Some(("wss", rest)) => format!("https://{rest}"),
            Some(("grpc" | "grpcs", _)) => {
                return Err(
                    "agents cannot connect over gRPC; give another address of the hub with --agent-url"
                        .to_owned(),
                );
            }
            _ => url.into_owned(),
        })
    }

    /// Returns the token, if there is one.
    pub(crate) fn token(&self) -> Result<Option<String>, String> {
        self.credentials.token()
    }

    /// Whether there is a token.
    pub(crate) fn has_token(&self) -> Result<bool, String> {
        Ok(self.token()?.is_some())
    }

    /// Returns the files of the client's certificate and of its key.
    pub(crate) fn client_certificate(&self) -> Option<(&Path, &Path)> {
        self.certificate.files()
    }

    /// Returns the file of trusted certificates.
    pub(crate) fn ca(&self) -> Option<&PathBuf> {
        self.credentials.ca.as_ref()
    }
}

impl Credentials {
    /// Returns the address of the hub at this URL, with the token, or an error message.
    pub(crate) fn address(&self, url: &str) -> Result<Address, String> {
        let url = complete_url(url)?;
        let address = Address::parse(&url, self.token()?.as_deref()).map_err(|error| error.to_string())?;
        let Some(path) = &self.ca else { return Ok(address) };
        let text = std::fs::read(path).map_err(|error| cannot_read(path, &error))?;
        address.with_certificates(&text).map_err(|error| error.to_string())
    }

    /// Whether the arguments contain a token.
    pub(crate) fn has_token_argument(&self) -> bool {
        self.token.is_some() || self.token_file.is_some()
    }

    /// Returns the token from the arguments. If they contain none, returns the one from the environment.
    pub(crate) fn token(&self) -> Result<Option<String>, String> {
        if let Some(token) = &self.token {
            return Ok(Some(token.clone()));
        }
        if let Some(path) = &self.token_file {
            let text = std::fs::read_to_string(path).map_err(|error| cannot_read(path, &error))?;
            let token = text.trim();
            if token.is_empty() {
                return Err(format!("{} contains no token", path.display()));
            }
            return Ok(Some(token.to_owned()));
        }
        Ok(std::env::var("SAYSO_TOKEN").ok().filter(|token| !token.is_empty()))
    }
}

impl ClientCertificate {
    /// Returns the address with this certificate, if there is one.
    pub(crate) fn apply(&self, address: Address) -> Result<Address, String> {
        let Some((certificate, key)) = self.files() else { return Ok(address) };
        let chain = std::fs::read(certificate).map_err(|error| cannot_read(certificate, &error))?;
        let key = seal::private_file::read(key, MAX_KEY_FILE_BYTES).map_err(|error| error.to_string())?;
        address.with_identity(&chain, key.as_bytes()).map_err(|error| error.to_string())
    }

    /// Returns the files of the certificate and of its key.
    pub(crate) fn files(&self) -> Option<(&Path, &Path)> {
        self.client_cert.as_deref().zip(self.client_key.as_deref())
    }
}

/// Adds the scheme to an address. An address without one is accepted only for a hub on this machine, where `http` is safe.
pub(crate) fn complete_url(url: &str) -> Result<Cow<'_, str>, String> {
    if url.strip_prefix("unix:") == Some(DEFAULT_SOCKET_KEYWORD) {
        return Ok(format!("unix:{}", default_socket_path()?.display()).into());
    }
    if url.contains("://") || url.starts_with("unix:") || url.starts_with('/') {
        return Ok(url.into());
    }
    let http = format!("http://{url}");
    if Url::parse(&http).is_ok_and(|url| url.is_loopback()) {
        print_stderr(&format!("using {http} for {url}"));
        return Ok(http.into());
    }
    let url = printable(url);
    Err(format!("{url} has no scheme: write https://{url}, or http://{url} if the hub has no TLS"))
}

/// Returns the path of the Unix socket where programs of this user look for a hub. Creates its folder.
pub(crate) fn default_socket_path() -> Result<PathBuf, String> {
    let path = client::default_socket_path(client::HUB_SOCKET_NAME);
    path.and_then(|path| path.parent().map_or(Ok(()), UnixSocket::create_folder).map(|()| path))
        .map_err(|error| format!("no default path for a Unix socket: {}", describe_io_error(&error)))
}

/// Parses the address to listen on: an IP address with a port, or `localhost:PORT`.
pub(crate) fn parse_listen_address(text: &str) -> Option<SocketAddr> {
    let port = text.strip_prefix("localhost:").map(str::parse);
    let local = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    port.map_or_else(|| text.parse().ok(), |port| port.ok().map(local))
}

/// Like [`parse_listen_address`], as a `clap` value parser.
pub(crate) fn parse_listen_address_arg(text: &str) -> Result<SocketAddr, &'static str> {
    parse_listen_address(text).ok_or("write an address with its port, such as 127.0.0.1:8787")
}

/// Builds a runtime with `threads` worker threads; with 0, the caller's thread does all the work.
pub(crate) fn build_runtime(threads: usize) -> Result<tokio::runtime::Runtime, String> {
    let built = match threads {
        0 => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        threads => tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build(),
    };
    built.map_err(|error| format!("cannot start: {}", describe_io_error(&error)))
}

/// Completes at SIGINT, SIGTERM or SIGHUP. Signals are caught from this call on, even before the first poll.
#[cfg(unix)]
pub(crate) fn shutdown_signal() -> impl Future<Output = ()> {
    wait_for_signal([SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()])
}

/// Completes at the first of these signals. Signals are caught from this call on, even before the first poll.
#[cfg(unix)]
pub(crate) fn wait_for_signal<const N: usize>(kinds: [SignalKind; N]) -> impl Future<Output = ()> {
    let signals: Result<Vec<_>, _> = kinds.into_iter().map(signal).collect();
    async {
        let Ok(mut signals) = signals else { return std::future::pending().await };
        poll_fn(|context| {
            let is_received = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if is_received { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// Completes when Ctrl-C is pressed.
#[cfg(not(unix))]
pub(crate) async fn shutdown_signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn cannot_read(path: &Path, error: &std::io::Error) -> String {
    format!("cannot read {}: {}", path.display(), describe_io_error(error))
}
