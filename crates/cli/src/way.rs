//! The way to a hub, for commands that listen: its address, who asks, and how it ends.

use std::borrow::Cow;
#[cfg(unix)]
use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::task::Poll;

use client::Url;
use listen::client::{Address, AddressError};
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};

use crate::print::{in_words, printable, tell};

#[derive(clap::Args)]
pub(crate) struct Way {
    /// The hub's address, as it prints it: http://HOST:PORT or https://HOST:PORT; on this machine HOST:PORT will do.
    url: String,
    /// The token by which the hub lets you in. Others on this machine may see it here; SAYSO_TOKEN and --token-file are hidden.
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    token: Option<String>,
    /// A file with the token.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A file of certificates (PEM) to trust besides those that the system trusts, for https.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

impl Way {
    /// The address, with what lets in; else why it cannot be used.
    pub(crate) fn address(&self) -> Result<Address, String> {
        self.trusted(Address::parse(&self.url()?, token(self)?.as_deref()))
    }

    /// The same on any wire, for who only listens.
    pub(crate) fn any_address(&self) -> Result<Address, String> {
        self.trusted(Address::parse_any(&self.url()?, token(self)?.as_deref()))
    }

    /// The address whole. On this machine there is no doubt what is meant by one that does not say how it is spoken to.
    fn url(&self) -> Result<Cow<'_, str>, String> {
        let url = &self.url;
        if url.contains("://") || url.starts_with("unix:") || url.starts_with('/') {
            return Ok(url.into());
        }
        let http = format!("http://{url}");
        if Url::parse(&http).is_ok_and(|url| url.is_loopback()) {
            tell(&format!("{url} is taken as {http}"));
            return Ok(http.into());
        }
        let url = printable(url);
        Err(format!(
            "{url} does not say how to speak to it: write https://{url}, or http://{url} if it has no TLS"
        ))
    }

    fn trusted(&self, address: Result<Address, AddressError>) -> Result<Address, String> {
        let address = address.map_err(|why| why.to_string())?;
        let Some(path) = &self.ca else { return Ok(address) };
        let text = std::fs::read(path).map_err(|error| cannot_read(path, &error))?;
        address.trusting(&text).map_err(|why| why.to_string())
    }
}

/// Where to listen: an address with its port, or localhost for this machine alone.
pub(crate) fn socket(text: &str) -> Option<SocketAddr> {
    let port = text.strip_prefix("localhost:").map(str::parse);
    let local = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    port.map_or_else(|| text.parse().ok(), |port| port.ok().map(local))
}

/// The same, for an argument.
pub(crate) fn listening(text: &str) -> Result<SocketAddr, &'static str> {
    socket(text).ok_or("write an address with its port, such as 127.0.0.1:8787")
}

/// A runtime with so many threads of its own; with none, everything is done by who waits for it.
pub(crate) fn runtime(threads: usize) -> Result<tokio::runtime::Runtime, String> {
    let built = match threads {
        0 => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        threads => tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build(),
    };
    built.map_err(|error| format!("cannot start: {}", in_words(&error)))
}

/// The first wish that this ends. It is heeded from this call on, also before it is waited for.
#[cfg(unix)]
pub(crate) fn stopped() -> impl Future<Output = ()> {
    wait_for_signal([SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()])
}

/// Completes at the first of these signals. Signals count from this call on, not from the first poll.
#[cfg(unix)]
pub(crate) fn wait_for_signal<const N: usize>(kinds: [SignalKind; N]) -> impl Future<Output = ()> {
    let signals: Result<Vec<_>, _> = kinds.into_iter().map(signal).collect();
    async {
        let Ok(mut signals) = signals else { return std::future::pending().await };
        poll_fn(|context| {
            let came = signals.iter_mut().any(|one| one.poll_recv(context).is_ready());
            if came { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// The first wish that this ends.
#[cfg(not(unix))]
pub(crate) async fn stopped() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The token: what was said here, else what the environment says.
fn token(way: &Way) -> Result<Option<String>, String> {
    if let Some(token) = &way.token {
        return Ok(Some(token.clone()));
    }
    if let Some(path) = &way.token_file {
        let text = std::fs::read_to_string(path).map_err(|error| cannot_read(path, &error))?;
        let token = text.trim();
        if token.is_empty() {
            return Err(format!("{} has no token in it", path.display()));
        }
        return Ok(Some(token.to_owned()));
    }
    Ok(std::env::var("SAYSO_TOKEN").ok().filter(|token| !token.is_empty()))
}

fn cannot_read(path: &Path, error: &std::io::Error) -> String {
    format!("cannot read {}: {}", path.display(), in_words(error))
}
