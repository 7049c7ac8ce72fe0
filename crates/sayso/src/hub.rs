//! The handle to a hub, in this process or elsewhere.

#[cfg(feature = "embedded")]
mod embedded;
#[cfg(feature = "client")]
mod remote;

use std::net::SocketAddr;
use std::sync::Arc;

use seal::json::TapeWriter;
use tokio::sync::{mpsc, oneshot};

#[cfg(feature = "embedded")]
pub use embedded::EmbeddedHubBuilder;
#[cfg(feature = "client")]
pub use remote::RemoteHubBuilder;

use crate::dispatcher::{self, CommandQueue, Dispatcher, SessionCommand};
use crate::error::{Error, SharedError, UnreachableReason};
use crate::localized_text::LocalizedText;
use crate::member;
use crate::redact::{CountingRedactor, Redact, SecretRedactor};
use crate::session::SessionBuilder;
use crate::transport::Transport;

/// A handle to a hub. Clones are cheap and refer to the same hub.
///
/// ```
/// # testing::run_example!({
/// let hub = sayso::Hub::embedded().agent("bank").open()?;
/// let same = hub.clone();
/// let session = same.session("Pay Ben.").start().await?;
/// session.cancel("Nothing was sent.").await?;
/// hub.close().await;
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Hub {
    pub(crate) commands: CommandQueue,
    pub(crate) redactor: CountingRedactor,
    pub(crate) language: Arc<str>,
    pub(crate) producer: Arc<ProducerInfo>,
    pub(crate) states: Arc<[(String, LocalizedText)]>,
    address: Option<SocketAddr>,
}

pub(crate) struct HubSettings {
    redactor: Arc<dyn Redact>,
    language: String,
    producer: ProducerInfo,
    /// The author's own states and their words.
    states: Vec<(String, LocalizedText)>,
}

#[cfg(feature = "embedded")]
impl HubSettings {
    /// Writes the author's own states and their words, if there are any.
    pub(crate) fn write_states(&self, out: &mut TapeWriter) {
        write_states(out, &self.states, &self.language, member::text);
    }
}

/// Writes states of the author's own with their words. `write_words` writes the words in one language.
pub(crate) fn write_states(
    out: &mut TapeWriter,
    states: &[(String, LocalizedText)],
    primary_language: &str,
    write_words: impl Fn(&mut TapeWriter, &str, &str),
) {
    if states.is_empty() {
        return;
    }
    out.key("states").array(|out| {
        for (name, words) in states {
            out.object(|out| {
                member::text(out, "state", name);
                out.key("words").object(|out| {
                    write_words(out, primary_language, words.normal());
                    for tag in words.languages() {
                        write_words(out, tag, words.text_for_language(tag).unwrap_or_default());
                    }
                });
            });
        }
    });
}

/// Information about the agent besides its id (§3.2.6).
#[derive(Debug, Default)]
pub(crate) struct ProducerInfo {
    name: Option<String>,
    version: Option<String>,
    model: Option<String>,
    manifest_uri: Option<String>,
}

impl ProducerInfo {
    pub(crate) fn members(&self) -> [(&'static str, Option<&str>); 4] {
        [
            ("agent_name", self.name.as_deref()),
            ("agent_version", self.version.as_deref()),
            ("model", self.model.as_deref()),
            ("manifest_uri", self.manifest_uri.as_deref()),
        ]
    }
}

impl Default for HubSettings {
    fn default() -> Self {
        Self {
            redactor: Arc::new(SecretRedactor),
            language: "en".to_owned(),
            producer: ProducerInfo::default(),
            states: Vec::new(),
        }
    }
}

/// Defines the setters that both hub builders share. The builder holds the settings in its field `settings`.
macro_rules! hub_settings_setters {
    ($builder:ty) => {
        impl $builder {
            setters! {
                /// Sets the agent's display name, which people hear instead of its id.
                agent_name(name: impl Into<String>) => settings.producer.name = Some(name.into());

                /// Sets the agent's version.
                agent_version(version: impl Into<String>) => settings.producer.version = Some(version.into());

                /// Sets the name of the model that the agent uses.
                model(model: impl Into<String>) => settings.producer.model = Some(model.into());

                /// Sets the URI of the agent's manifest.
                manifest_uri(uri: impl Into<String>) => settings.producer.manifest_uri = Some(uri.into());

                /// Sets the default language of all sessions, as a language tag. The default is `en`.
                language(tag: impl Into<String>) => settings.language = tag.into();

                /// Replaces the default redactor, [`SecretRedactor`](crate::SecretRedactor).
                redact(redactor: impl crate::Redact + 'static) => settings.redactor = std::sync::Arc::new(redactor);
            }

            /// Defines a state of your own, with words for it such as `Comparing prices.`, for all sessions.
            /// [`SessionBuilder::state`](crate::SessionBuilder::state) explains it.
            pub fn state(
                mut self,
                name: impl Into<String>,
                words: impl Into<crate::LocalizedText>,
            ) -> Self {
                self.settings.states.push((name.into(), words.into()));
                self
            }
        }
    };
}
use hub_settings_setters;

impl Hub {
    /// Returns a builder for a hub in this process.
    #[cfg(feature = "embedded")]
    pub fn embedded() -> EmbeddedHubBuilder {
        EmbeddedHubBuilder::default()
    }

    /// Returns a builder for a connection to the hub at `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`.
    #[cfg(feature = "client")]
    pub fn connect(url: impl Into<String>) -> RemoteHubBuilder {
        RemoteHubBuilder::new(url.into())
    }

    /// Returns a builder for a connection to the hub that the environment names: `SAYSO_URL` is its address and
    /// `SAYSO_TOKEN` the token, if the hub needs one. An empty variable counts as unset. Without an address, the builder uses
    /// the user's personal hub (`sayso listen`) if its socket exists, else `http://127.0.0.1:8787`.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), sayso::Error> {
    /// let hub = sayso::Hub::from_env().agent_name("Bank assistant").open().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "client")]
    pub fn from_env() -> RemoteHubBuilder {
        let socket = client::default_socket_path(client::HUB_SOCKET_NAME).ok().filter(|path| path.exists());
        let personal_hub = socket.and_then(|path| Some(client::Url::unix(&path).ok()?.to_string()));
        RemoteHubBuilder::from_variables(|name| std::env::var_os(name), personal_hub)
    }

    /// Returns a builder for a session. `request` is what the person asked for.
    pub fn session(&self, request: impl Into<String>) -> SessionBuilder {
        SessionBuilder::new(self.clone(), request.into())
    }

    /// Returns the address at which listeners connect, if the hub runs in this process and accepts them.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Returns how many secrets were removed from the texts of this hub.
    pub fn redaction_count(&self) -> u64 {
        self.redactor.count()
    }

    /// Waits until the hub has received everything sent so far. Call it before the program exits, or the last events may be lost.
    pub async fn close(self) {
        let (reply, flushed) = oneshot::channel();
        self.commands.send(SessionCommand::Flush(reply));
        let _ = flushed.await;
    }

    fn new(commands: CommandQueue, settings: HubSettings, address: Option<SocketAddr>) -> Self {
        let HubSettings { redactor, language, producer, states } = settings;
        let (redactor, language, producer) =
            (CountingRedactor::new(redactor), language.into(), Arc::new(producer));
        Self { commands, redactor, language, producer, states: states.into(), address }
    }
}

/// Starts the thread that sends the commands of all sessions over one transport.
fn spawn_dispatcher<T: Transport, F>(
    commands: &CommandQueue,
    receiver: mpsc::UnboundedReceiver<SessionCommand>,
    connect: impl FnOnce() -> F + Send + 'static,
) -> Result<(), Error>
where
    F: Future<Output = Option<T>>,
{
    let dispatcher = Dispatcher::new(commands.downgrade());
    spawn_runtime_thread(async move || {
        if let Some(transport) = connect().await {
            dispatcher::run(dispatcher, transport, receiver).await;
        }
    })
}

/// Starts a thread with a runtime of its own, so events are still sent if the agent's runtime is blocked or
/// shut down.
fn spawn_runtime_thread<F: Future<Output = ()>>(
    work: impl FnOnce() -> F + Send + 'static,
) -> Result<(), Error> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(io_unreachable)?;
    let work = move || runtime.block_on(work());
    std::thread::Builder::new().name("sayso".to_owned()).spawn(work).map(drop).map_err(io_unreachable)
}

fn io_unreachable(error: std::io::Error) -> Error {
    Error::Unreachable(UnreachableReason::Io(SharedError::new(error)))
}
