//! A hub in this process.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aaep::event::Producer;
use aaep::message::{Manifest, Message};
use hub::{Core, Principal, Role};
use journal::{Journal, Memory, Retention, Settings as JournalSettings, Sqlite};
use seal::{Random, SystemRandom};
use wire::auth::Tokens;
use wire::{Bridge, Door, Limits, Server};

use super::{Hub, Settings, settings, speak, thread, unreachable};
use crate::desk::{Here, Orders};
use crate::error::{Error, Malformed, NotStored, Source};
use crate::line::embedded::Embedded as Inside;

/// A hub for this process, before it is opened.
///
/// ```
/// # fn main() -> Result<(), sayso::Error> {
/// let hub = sayso::Hub::embedded().agent("bank").listen("127.0.0.1:0").open()?;
/// println!("listen at http://{}", hub.address().unwrap());
/// # Ok(())
/// # }
/// ```
#[must_use = "it is there when it is opened"]
pub struct EmbeddedHubBuilder {
    agent: String,
    journal: Option<PathBuf>,
    listen: Option<String>,
    tokens: Option<PathBuf>,
    limits: hub::Limits,
    settings: Settings,
}

/// Whose the sessions of an agent are that lives in the hub's own process.
const OWNER: &str = "sayso-embedded";
const HOUR: i64 = 60 * 60 * 1000;
/// A hub that writes to no disk has the agent's own memory, so it forgets, unless something else is said.
const IN_MEMORY: Retention = Retention {
    events: Some(HOUR),
    decisions: Some(24 * HOUR),
    keys: Some(24 * HOUR),
    bytes: Some(64 * 1024 * 1024),
    step: 200,
};
/// How often listeners get a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(15);

impl Default for EmbeddedHubBuilder {
    fn default() -> Self {
        Self {
            agent: "local".to_owned(),
            journal: None,
            listen: None,
            tokens: None,
            limits: hub::Limits::default(),
            settings: Settings::default(),
        }
    }
}

impl EmbeddedHubBuilder {
    setters! {
        /// The agent that speaks.
        agent(id: impl Into<String>) => agent = id.into();

        /// Keeps everything in this file, which is made if it is not there; else it is kept in memory, and gone with the process.
        journal(file: impl Into<PathBuf>) => journal = Some(file.into());

        /// Lets listeners in at this address. Without tokens every program on this machine may listen and answer, so it must be
        /// loopback then.
        listen(address: impl Into<String>) => listen = Some(address.into());

        /// Lets in only who has a token of this file, as `sayso token new` writes it.
        tokens(file: impl Into<PathBuf>) => tokens = Some(file.into());

        /// How much the hub takes on, and for how long it keeps what was said. Without a journal on disk and a word on that
        /// ([`hub::Limits::retention`]) it forgets sessions that ended an hour ago, and the oldest of them if all of it takes more
        /// than 64 MiB.
        limits(limits: hub::Limits) => limits = limits;
    }

    /// Its limits: as they were said, and where nothing was said of what is kept in memory, [`IN_MEMORY`].
    fn held(&self) -> hub::Limits {
        if self.journal.is_some() || self.limits.retention != hub::Limits::default().retention {
            return self.limits;
        }
        hub::Limits { retention: IN_MEMORY, ..self.limits }
    }

    /// Opens it.
    pub fn open(self) -> Result<Hub, Error> {
        let journal: Box<dyn Journal> = match &self.journal {
            None => Box::new(Memory::default()),
            Some(path) => {
                let opened = Sqlite::open(path, &JournalSettings::default());
                Box::new(opened.map_err(not_stored)?)
            }
        };
        let random = |bytes: &mut [u8]| SystemRandom.fill(bytes);
        let core = Core::new(journal, Producer::new(self.agent.as_str()), self.held(), random, wire::clock());
        let mut core = core.map_err(not_stored)?;
        // Their agent ended with the process that it lived in.
        core.orphan(OWNER, wire::clock());
        let load = |path: &PathBuf| {
            let file = |error| Malformed::File { path: path.clone(), source: Source::new(error) };
            Tokens::load(path).map_err(|error| Error::Malformed(file(error)))
        };
        let door = self.tokens.as_ref().map(load).transpose()?;
        let listener = self.listen.as_deref().map(|at| bind(at, door.is_some())).transpose()?;
        let bridge =
            Bridge::start(core, wire::fanout::Limits::default(), wire::clock).map_err(unreachable)?;
        let who = principal(OWNER, &self.agent);
        let (mut orders, inbox) = Orders::channel();
        let address = listener.as_ref().map(|(_, address)| *address);
        let door = door.map_or(Door::Open, Door::Tokens);
        let (agent, to_hub) = (self.agent, bridge.clone());
        let open_doors = move || match listener {
            Some((listener, address)) => serve(listener, address, bridge, door, &agent),
            None => Some(()),
        };
        if self.journal.is_some() {
            let line = Inside::new(&to_hub, who);
            speak(&orders, inbox, async move || open_doors().map(|()| line))?;
        } else {
            let desk = Here::new(Inside::here(&to_hub, who), orders.downgrade());
            orders = orders.with(desk.clone());
            thread(async move || {
                if open_doors().is_some() {
                    desk.run(inbox).await;
                }
            })?;
        }
        Ok(Hub::new(orders, self.settings, address))
    }
}

impl EmbeddedHubBuilder {
    /// Speaks to a hub that runs in this process already, and has its journal, its doors and its limits from whoever runs it. The
    /// sessions are the agent's, as if it had a token of its id; letting go of them, or of this, ends nothing else there.
    pub fn beside(self, running: &Bridge) -> Result<Hub, Error> {
        if self.journal.is_some() || self.listen.is_some() || self.tokens.is_some() {
            return Err(Error::Malformed(Malformed::Beside));
        }
        let line = Inside::guest(running, principal(&self.agent, &self.agent));
        let (orders, inbox) = Orders::channel();
        speak(&orders, inbox, async move || Some(line))?;
        Ok(Hub::new(orders, self.settings, None))
    }
}

fn principal(name: &str, agent: &str) -> Principal {
    Principal {
        name: name.into(),
        role: Role::Agent,
        agent_id: Some(agent.into()),
        scope: Arc::default(),
        open: false,
        token: None,
    }
}

settings!(EmbeddedHubBuilder);

debug_tuple!(EmbeddedHubBuilder, agent);

fn not_stored(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::NotStored(NotStored::Journal(Source::new(error)))
}

fn bind(at: &str, guarded: bool) -> Result<(TcpListener, SocketAddr), Error> {
    let listener = TcpListener::bind(at).map_err(unreachable)?;
    listener.set_nonblocking(true).map_err(unreachable)?;
    let address = listener.local_addr().map_err(unreachable)?;
    if guarded || address.ip().is_loopback() {
        return Ok((listener, address));
    }
    Err(Error::Malformed(Malformed::Exposed(at.to_owned())))
}

fn serve(listener: TcpListener, address: SocketAddr, bridge: Bridge, door: Door, agent: &str) -> Option<()> {
    let listener = tokio::net::TcpListener::from_std(listener).ok()?;
    let mut hosts = vec![address.to_string()];
    if address.ip().is_loopback() {
        hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{}", address.port())));
    }
    let server = Server::new(bridge.clone(), door, Limits::default(), hosts, manifest(agent));
    tokio::spawn(Arc::new(server).serve(listener));
    tokio::spawn(async move {
        let mut every = tokio::time::interval(HEARTBEAT);
        loop {
            every.tick().await;
            bridge.heartbeat();
        }
    });
    Some(())
}

/// What a hub like this can do (§5.10).
fn manifest(agent: &str) -> String {
    let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let transports = owned(&["sse", "websocket"]);
    let mut manifest = Manifest::new(agent, owned(&["1.0.0"]), vec![1, 2, 3], transports);
    manifest.event_types_emitted = Some(owned(&["aaep:agent.*"]));
    manifest.extensions_supported = Some(owned(&["urn:sayso:context:v1"]));
    Message::Manifest(manifest).to_json()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_kept_in_memory_is_forgotten_unless_said_otherwise() {
        let few = hub::Limits { sessions: 4, ..hub::Limits::default() };
        let soon = hub::Limits { retention: Retention { events: Some(1), ..few.retention }, ..few };
        let kept = |hub: EmbeddedHubBuilder| (hub.held().sessions, hub.held().retention);
        assert_eq!(kept(EmbeddedHubBuilder::default().limits(few)), (4, IN_MEMORY));
        assert_eq!(kept(EmbeddedHubBuilder::default().limits(soon)), (4, soon.retention));
        assert_eq!(kept(EmbeddedHubBuilder::default().limits(few).journal("here")), (4, few.retention));
    }
}
