//! Where sessions are heard: a hub in this process, or one elsewhere.

#[cfg(feature = "client")]
mod connect;
#[cfg(feature = "embedded")]
mod embedded;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

#[cfg(feature = "client")]
pub use connect::RemoteHubBuilder;
#[cfg(feature = "embedded")]
pub use embedded::EmbeddedHubBuilder;

use crate::desk::{self, Desk, Order, Orders};
use crate::error::{Error, Source, Unreachable};
use crate::line::Line;
use crate::redact::{Cleaner, Redact, Secrets};
use crate::session::SessionBuilder;

/// A hub. Handles are cheap to clone and all mean the same one.
///
/// ```
/// # testing::example!({
/// let hub = sayso::Hub::embedded().agent("bank").open()?;
/// let same = hub.clone();
/// let session = same.session("Pay Ben.").start().await?;
/// session.cancel("Nothing was sent.").await?;
/// hub.close().await;
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Hub {
    pub(crate) orders: Orders,
    pub(crate) cleaner: Cleaner,
    pub(crate) language: Arc<str>,
    pub(crate) producer: Arc<Producer>,
    address: Option<SocketAddr>,
}

pub(crate) struct Settings {
    redact: Arc<dyn Redact>,
    language: String,
    producer: Producer,
}

/// What is said of the agent beside its id (§3.2.6).
#[derive(Debug, Default)]
pub(crate) struct Producer {
    name: Option<String>,
    version: Option<String>,
    model: Option<String>,
    manifest_uri: Option<String>,
}

impl Producer {
    pub(crate) fn members(&self) -> [(&'static str, Option<&str>); 4] {
        [
            ("agent_name", self.name.as_deref()),
            ("agent_version", self.version.as_deref()),
            ("model", self.model.as_deref()),
            ("manifest_uri", self.manifest_uri.as_deref()),
        ]
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self { redact: Arc::new(Secrets), language: "en".to_owned(), producer: Producer::default() }
    }
}

/// The setters that the builders of both kinds of hub have; the settings are in their field `settings`.
macro_rules! settings {
    ($builder:ty) => {
        impl $builder {
            setters! {
                /// What people call the agent; they hear it instead of the agent's id.
                name(name: impl Into<String>) => settings.producer.name = Some(name.into());

                /// The agent's version.
                agent_version(version: impl Into<String>) => settings.producer.version = Some(version.into());

                /// The model behind the agent.
                model(model: impl Into<String>) => settings.producer.model = Some(model.into());

                /// Where the agent's manifest is.
                manifest_uri(uri: impl Into<String>) => settings.producer.manifest_uri = Some(uri.into());

                /// The language of all sessions that set no other, as a tag; `en` if not set.
                language(tag: impl Into<String>) => settings.language = tag.into();

                /// Takes secrets out by this instead of [`Secrets`](crate::Secrets).
                redact(redact: impl crate::Redact + 'static) => settings.redact = std::sync::Arc::new(redact);
            }
        }
    };
}
use settings;

impl Hub {
    /// A hub in this process.
    #[cfg(feature = "embedded")]
    pub fn embedded() -> EmbeddedHubBuilder {
        EmbeddedHubBuilder::default()
    }

    /// The hub at `http://HOST:PORT`.
    #[cfg(feature = "client")]
    pub fn connect(url: impl Into<String>) -> RemoteHubBuilder {
        RemoteHubBuilder::new(url.into())
    }

    /// A session for what the person asked.
    pub fn session(&self, request: impl Into<String>) -> SessionBuilder {
        SessionBuilder::new(self.clone(), request.into())
    }

    /// Where listeners find it, if it is in this process and they may.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// How many secrets have been taken out of what was said.
    pub fn redacted(&self) -> u64 {
        self.cleaner.count()
    }

    /// Waits until all that was said is with the hub. A program that ends right after its last session calls this.
    pub async fn close(self) {
        let (reply, settled) = oneshot::channel();
        self.orders.order(Order::Settle(reply));
        let _ = settled.await;
    }

    fn new(orders: Orders, settings: Settings, address: Option<SocketAddr>) -> Self {
        let Settings { redact, language, producer } = settings;
        let (cleaner, language, producer) = (Cleaner::new(redact), language.into(), Arc::new(producer));
        Self { orders, cleaner, language, producer, address }
    }
}

/// Starts a thread that speaks for all sessions over a line.
fn speak<L: Line, F>(
    orders: &Orders,
    inbox: mpsc::UnboundedReceiver<Order>,
    line: impl FnOnce() -> F + Send + 'static,
) -> Result<(), Error>
where
    F: Future<Output = Option<L>>,
{
    let desk = Desk::new(orders.downgrade());
    thread(async move || {
        if let Some(line) = line().await {
            desk::run(desk, line, inbox).await;
        }
    })
}

/// Starts the desk's thread. Its runtime is its own: an agent's runtime that is shut down, or blocked by its work, keeps
/// nothing from being said.
fn thread<F: Future<Output = ()>>(work: impl FnOnce() -> F + Send + 'static) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(unreachable)?;
    let work = move || runtime.block_on(work());
    std::thread::Builder::new().name("sayso".to_owned()).spawn(work).map(drop).map_err(unreachable)
}

fn unreachable(error: std::io::Error) -> Error {
    Error::Unreachable(Unreachable::Failed(Source::new(error)))
}
