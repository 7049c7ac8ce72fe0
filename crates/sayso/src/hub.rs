//! Where sessions are heard: a hub in this process, or one elsewhere.

#[cfg(feature = "client")]
mod connect;
#[cfg(feature = "embedded")]
mod embedded;

use std::net::SocketAddr;
use std::sync::Arc;

use aaep::shape::is_right_to_left;
use seal::json::Writer;
use tokio::sync::{mpsc, oneshot};

#[cfg(feature = "client")]
pub use connect::Connect;
#[cfg(feature = "embedded")]
pub use embedded::Embedded;

use crate::desk::{self, Desk, Order, Orders};
use crate::error::Error;
use crate::line::Line;
use crate::redact::{Cleaner, Redact, Secrets};
use crate::session::Session;
use crate::words::Words;

/// A hub. Handles are cheap to clone and all mean the same one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sayso::Error> {
/// let hub = sayso::Hub::embedded().agent("bank").open()?;
/// let same = hub.clone();
/// let session = same.session("Pay Ben.").start().await?;
/// session.cancel("Nothing was sent.").await?;
/// hub.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Hub {
    orders: Orders,
    cleaner: Cleaner,
    language: Arc<str>,
    name: Option<Arc<str>>,
    address: Option<SocketAddr>,
}

/// What both kinds of hub are told when they are opened.
pub(crate) struct Settings {
    pub(crate) redact: Arc<dyn Redact>,
    pub(crate) language: String,
    pub(crate) name: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { redact: Arc::new(Secrets), language: "en".to_owned(), name: None }
    }
}

impl Hub {
    /// A hub in this process.
    #[cfg(feature = "embedded")]
    pub fn embedded() -> Embedded {
        Embedded::default()
    }

    /// The hub at `http://HOST:PORT`.
    #[cfg(feature = "client")]
    pub fn connect(url: impl Into<String>) -> Connect {
        Connect::new(url.into())
    }

    /// A session for what the person asked.
    pub fn session(&self, request: impl Into<String>) -> Begin {
        Begin {
            hub: self.clone(),
            request: request.into(),
            words: None,
            person: None,
            language: None,
            agent: None,
            quoted: true,
        }
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
        let Settings { redact, language, name } = settings;
        let (cleaner, language, name) = (Cleaner::new(redact), language.into(), name.map(Arc::from));
        Self { orders, cleaner, language, name, address }
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
    let failed = |error: std::io::Error| Error::Unreachable(seal::in_words(&error));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let work = move || runtime.block_on(work());
    std::thread::Builder::new().name("sayso".to_owned()).spawn(work).map(drop).map_err(failed)
}

/// A session that has not begun.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sayso::Error> {
/// # let hub = sayso::Hub::embedded().open()?;
/// let session = hub.session("Paga a Ben.").says("Pago a Ben.").person("ana").language("es").start().await?;
/// # session.cancel("No he pagado.").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "it begins when it is started"]
pub struct Begin {
    hub: Hub,
    request: String,
    words: Option<Words>,
    person: Option<String>,
    language: Option<String>,
    agent: Option<String>,
    quoted: bool,
}

impl Begin {
    /// What the agent will do, in its own words; the request itself if nothing is said.
    pub fn says(mut self, words: impl Into<Words>) -> Self {
        self.words = Some(words.into());
        self
    }

    /// These words only: what the person asked is told to nobody, because it may hold what others should not hear.
    pub fn says_only(mut self, words: impl Into<Words>) -> Self {
        self.quoted = false;
        self.says(words)
    }

    /// For whom: only those who listen for that person hear it, where listeners are told apart so.
    pub fn person(mut self, name: impl Into<String>) -> Self {
        self.person = Some(name.into());
        self
    }

    /// The language of all that is said, as a tag like `es` or `yo`; other languages stand beside it in [`Words`].
    pub fn language(mut self, tag: impl Into<String>) -> Self {
        self.language = Some(tag.into());
        self
    }

    /// Which agent speaks, where the token does not say so.
    pub fn agent(mut self, id: impl Into<String>) -> Self {
        self.agent = Some(id.into());
        self
    }

    /// Begins it.
    pub async fn start(self) -> Result<Session, Error> {
        let cleaner = self.hub.cleaner.of_session();
        let body = self.body(&cleaner);
        let started = self.hub.orders.start(body, cleaner.clone()).await?;
        Ok(Session::new(started, cleaner, self.language.as_deref().unwrap_or(&self.hub.language)))
    }

    /// What the hub is told.
    fn body(&self, cleaner: &Cleaner) -> String {
        let mut out = Writer::default();
        out.open_object();
        let request = Words::new(self.request.as_str());
        let words = self.words.as_ref().unwrap_or(&request);
        words.write(&mut out, cleaner);
        out.key("urgency");
        out.text("normal");
        if self.quoted {
            words.write_beside(&mut out, cleaner, "request_text", &request);
        }
        if let Some(person) = &self.person {
            out.key("requested_by");
            out.text(&format!("user:{person}"));
        }
        out.key("localization_hints");
        self.hints(&mut out, words);
        let producer = [("agent_id", self.agent.as_deref()), ("agent_name", self.hub.name.as_deref())];
        if producer.iter().any(|(_, text)| text.is_some()) {
            out.key("producer");
            out.open_object();
            for (name, text) in producer {
                if let Some(text) = text {
                    out.key(name);
                    out.text(text);
                }
            }
            out.close_object();
        }
        out.close_object();
        out.finish()
    }

    /// The languages of the session: that of all that is said, and those that its first words are in beside it.
    fn hints(&self, out: &mut Writer, words: &Words) {
        let language = self.language.as_deref().unwrap_or(&self.hub.language);
        out.open_object();
        out.key("primary_language");
        out.text(language);
        if is_right_to_left(language) {
            out.key("text_direction");
            out.text("rtl");
        }
        let mut others = words.languages().filter(|tag| !tag.eq_ignore_ascii_case(language)).peekable();
        if others.peek().is_some() {
            out.key("available_languages");
            out.open_array();
            for tag in std::iter::once(language).chain(others) {
                out.text(tag);
            }
            out.close_array();
        }
        out.close_object();
    }
}
