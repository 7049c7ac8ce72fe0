//! A hub in this process.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aaep::event::Producer;
use aaep::manifest::ManifestDocument;
use aaep::message::{Manifest, Message};
use hub::{Core, Principal, Role};
use journal::{Journal, MemoryJournal, Retention, SqliteJournal, SqliteSettings as JournalSettings};
use seal::es256::SigningKey;
use seal::{Random, SystemRandom};
use wire::auth::Tokens;
use wire::{AuthPolicy, HubHandle, Server, ServerLimits};

use super::{Hub, HubSettings, hub_settings_setters, io_unreachable, spawn_dispatcher, spawn_runtime_thread};
use crate::dispatcher::{CommandQueue, InlineDispatcher};
use crate::error::{Error, MalformedInput, SharedError, StorageError};
use crate::member;
use crate::transport::embedded::EmbeddedTransport;

/// A builder for a hub in this process.
///
/// ```
/// # fn main() -> Result<(), sayso::Error> {
/// let hub = sayso::Hub::embedded().agent("bank").listen("127.0.0.1:0").open()?;
/// println!("listen at http://{}", hub.address().unwrap());
/// # Ok(())
/// # }
/// ```
#[must_use = "the hub does not exist until `open` is called"]
pub struct EmbeddedHubBuilder {
    agent: String,
    journal: Option<PathBuf>,
    listen: Option<String>,
    tokens: Option<PathBuf>,
    manifest: Option<String>,
    receipt_key: Option<PathBuf>,
    limits: hub::HubLimits,
    settings: HubSettings,
}

/// The name of the principal that owns the sessions of an agent in the hub's own process.
const EMBEDDED_OWNER: &str = "sayso-embedded";
const HOUR_MS: i64 = 60 * 60 * 1000;
/// The default retention of a hub without a journal file. It bounds the memory that the hub takes from the agent's process.
const IN_MEMORY_RETENTION: Retention = Retention {
    max_event_age_ms: Some(HOUR_MS),
    max_decision_age_ms: Some(24 * HOUR_MS),
    max_idempotency_key_age_ms: Some(24 * HOUR_MS),
    max_idempotency_keys_per_principal: Some(100_000),
    max_bytes: Some(64 * 1024 * 1024),
    max_rows_per_step: 200,
};
/// The interval between heartbeats to listeners.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

impl Default for EmbeddedHubBuilder {
    fn default() -> Self {
        Self {
            agent: "local".to_owned(),
            journal: None,
            listen: None,
            tokens: None,
            manifest: None,
            receipt_key: None,
            limits: hub::HubLimits::default(),
            settings: HubSettings::default(),
        }
    }
}

impl EmbeddedHubBuilder {
    setters! {
        /// Sets the agent's id.
        agent(id: impl Into<String>) => agent = id.into();

        /// Stores everything in this SQLite file, which is created if it does not exist. The default is memory only.
        journal(file: impl Into<PathBuf>) => journal = Some(file.into());

        /// Accepts listeners at this address. Without tokens every program on this machine can listen and answer, so the address
        /// must then be a loopback address.
        listen(address: impl Into<String>) => listen = Some(address.into());

        /// Accepts only clients with a token from this file, which `sayso token new` writes.
        tokens(file: impl Into<PathBuf>) => tokens = Some(file.into());

        /// Publishes this manifest of the agent (§5.10): JSON, or the compact JWS that `sayso manifest sign` prints. Listeners find
        /// it at `/.well-known/aaep-manifest.json`, and its address in the producer of every event. It describes the hub as well,
        /// so it must have the AAEP version 1.0.0, level 3 and the transports `sse` and `websocket`.
        manifest(document: impl Into<String>) => manifest = Some(document.into());

        /// Signs the receipts of answers with the key in this file, which `sayso manifest keygen` creates. The public key is at
        /// `/.well-known/sayso-receipt-key.json`. Without a key, receipts have no signature.
        receipt_key(file: impl Into<PathBuf>) => receipt_key = Some(file.into());

        /// Sets the hub's limits and retention. If there is no journal file and no [`hub::HubLimits::retention`] is set, the hub
        /// deletes events of ended sessions after one hour and decisions after 24 hours. Above 64 MiB it deletes the oldest events
        /// earlier.
        limits(limits: hub::HubLimits) => limits = limits;
    }

    /// Returns the limits, with [`IN_MEMORY_RETENTION`] for a hub without a journal file unless a retention was set.
    fn effective_limits(&self) -> hub::HubLimits {
        if self.journal.is_some() || self.limits.retention != hub::HubLimits::default().retention {
            return self.limits;
        }
        hub::HubLimits { retention: IN_MEMORY_RETENTION, ..self.limits }
    }

    /// Opens the hub.
    pub fn open(self) -> Result<Hub, Error> {
        let journal: Box<dyn Journal> = match &self.journal {
            None => Box::new(MemoryJournal::default()),
            Some(path) => {
                let opened = SqliteJournal::open(path, &JournalSettings::default());
                Box::new(opened.map_err(storage_error)?)
            }
        };
        let random = |bytes: &mut [u8]| SystemRandom.fill(bytes);
        let core = Core::new(
            journal,
            Producer::new(self.agent.as_str()),
            self.effective_limits(),
            random,
            wire::unix_now(),
        );
        let mut core = core.map_err(storage_error)?;
        // Sessions left in the journal belong to an agent whose process has exited.
        core.orphan_sessions_of(EMBEDDED_OWNER, wire::unix_now());
        let load_tokens = |path: &PathBuf| Tokens::load(path).map_err(|error| file_error(path, error));
        let tokens = self.tokens.as_ref().map(load_tokens).transpose()?;
        let load_key = |path: &PathBuf| SigningKey::load(path).map_err(|error| file_error(path, error));
        let receipt_key = self.receipt_key.as_ref().map(load_key).transpose()?;
        if tokens.as_ref().is_some_and(|tokens| tokens.has_agent_id(&self.agent)) {
            return Err(Error::Malformed(MalformedInput::AgentIdTaken(self.agent)));
        }
        let manifest = self.manifest.as_deref().map(|text| read_manifest(text, &self.agent)).transpose()?;
        let listener = self.listen.as_deref().map(|address| bind(address, tokens.is_some())).transpose()?;
        let origin = listener.as_ref().map(|(_, address)| format!("http://{address}"));
        let uri = origin.as_ref().map(|origin| format!("{origin}/.well-known/aaep-manifest.json"));
        if let Some(document) = &manifest {
            if let Some(signed) = &document.signed {
                core.set_hub_manifest(uri, signed.clone());
            }
            core.set_manifests(origin, None, vec![document.clone()]).map_err(storage_error)?;
        }
        let mut handle = HubHandle::start(core, wire::fanout::FanoutLimits::default(), wire::unix_now)
            .map_err(io_unreachable)?;
        if let Some(key) = receipt_key {
            handle = handle.with_receipt_key(key);
        }
        let principal = principal(EMBEDDED_OWNER, &self.agent);
        let (mut commands, receiver) = CommandQueue::channel();
        let address = listener.as_ref().map(|(_, address)| *address);
        let auth_policy = tokens.map_or(AuthPolicy::Open, AuthPolicy::Tokens);
        let manifests = match manifest {
            Some(document) => (document.json, document.signed),
            None => (default_manifest(&self.agent, &self.settings), None),
        };
        let agent_handle = handle.clone();
        let start_server = move || match listener {
            Some((listener, address)) => serve(listener, address, handle, auth_policy, manifests),
            None => Some(()),
        };
        if self.journal.is_some() {
            let transport = EmbeddedTransport::new(&agent_handle, principal);
            spawn_dispatcher(&commands, receiver, async move || start_server().map(|()| transport))?;
        } else {
            let dispatcher = InlineDispatcher::new(
                EmbeddedTransport::inline(&agent_handle, principal),
                commands.downgrade(),
            );
            commands = commands.with_inline(dispatcher.clone());
            spawn_runtime_thread(async move || {
                if start_server().is_some() {
                    dispatcher.run(receiver).await;
                }
            })?;
        }
        Ok(Hub::new(commands, self.settings, address))
    }
}

impl EmbeddedHubBuilder {
    /// Attaches to a hub that already runs in this process and keeps its own journal, listeners and limits.
    ///
    /// The sessions belong to the agent, as if it had a token for its id. Dropping them, or the returned hub, affects nothing else.
    pub fn attach(self, running: &HubHandle) -> Result<Hub, Error> {
        let files = [&self.journal, &self.tokens, &self.receipt_key];
        if files.into_iter().any(Option::is_some) || self.listen.is_some() || self.manifest.is_some() {
            return Err(Error::Malformed(MalformedInput::ConflictingHubSettings));
        }
        let transport = EmbeddedTransport::shared(running, principal(&self.agent, &self.agent));
        let (commands, receiver) = CommandQueue::channel();
        spawn_dispatcher(&commands, receiver, async move || Some(transport))?;
        Ok(Hub::new(commands, self.settings, None))
    }
}

fn principal(name: &str, agent: &str) -> Principal {
    Principal {
        name: name.into(),
        role: Role::Agent,
        agent_id: Some(agent.into()),
        scope: Arc::default(),
        is_local: false,
        token_digest: None,
        expires_at: None,
        sign_in: None,
        naming: hub::AgentNaming::InProcess,
    }
}

hub_settings_setters!(EmbeddedHubBuilder);

debug_tuple!(EmbeddedHubBuilder, agent);

fn file_error(path: &Path, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Malformed(MalformedInput::File { path: path.to_owned(), source: SharedError::new(error) })
}

fn storage_error(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::StorageFailed(StorageError::Journal(SharedError::new(error)))
}

fn bind(requested: &str, has_tokens: bool) -> Result<(TcpListener, SocketAddr), Error> {
    let listener = TcpListener::bind(requested).map_err(io_unreachable)?;
    listener.set_nonblocking(true).map_err(io_unreachable)?;
    let address = listener.local_addr().map_err(io_unreachable)?;
    if has_tokens || address.ip().is_loopback() {
        return Ok((listener, address));
    }
    Err(Error::Malformed(MalformedInput::ExposedWithoutTokens(requested.to_owned())))
}

fn serve(
    listener: TcpListener,
    address: SocketAddr,
    handle: HubHandle,
    auth_policy: AuthPolicy,
    (manifest, signed_manifest): (String, Option<String>),
) -> Option<()> {
    let listener = tokio::net::TcpListener::from_std(listener).ok()?;
    let mut hosts = vec![address.to_string()];
    if address.ip().is_loopback() {
        hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{}", address.port())));
    }
    let mut server = Server::new(handle.clone(), auth_policy, ServerLimits::default(), hosts, manifest);
    server.signed_manifest = signed_manifest;
    tokio::spawn(Arc::new(server).serve(listener));
    tokio::spawn(async move {
        let mut interval = tokio::time::interval(HEARTBEAT_INTERVAL);
        loop {
            interval.tick().await;
            handle.send_heartbeats();
        }
    });
    Some(())
}

/// Reads the author's manifest, and checks that it states what an embedded hub does.
fn read_manifest(text: &str, agent: &str) -> Result<ManifestDocument, Error> {
    let invalid = |error| Error::Malformed(MalformedInput::Manifest(SharedError::new(error)));
    let document = ManifestDocument::parse(text).map_err(invalid)?;
    let manifest = &document.manifest;
    let has_transport = |name: &str| manifest.transports_supported.iter().any(|transport| transport == name);
    let claims = [
        (manifest.agent_id == agent, format!("the agent_id {agent:?}")),
        (
            manifest.aaep_versions_supported.iter().any(|version| version == "1.0.0"),
            "\"1.0.0\" in aaep_versions_supported".to_owned(),
        ),
        (manifest.conformance_levels_supported.contains(&3), "3 in conformance_levels_supported".to_owned()),
        (
            has_transport("sse") && has_transport("websocket"),
            "\"sse\" and \"websocket\" in transports_supported".to_owned(),
        ),
    ];
    match claims.into_iter().find(|(is_met, _)| !is_met) {
        Some((_, claim)) => Err(Error::Malformed(MalformedInput::ManifestClaim(claim))),
        None => Ok(document),
    }
}

/// Returns the manifest of an embedded hub whose author sets none (§5.10).
/// Returns the manifest of a hub whose author published none. Its extension says how several agents work together (A.9), and
/// which states the author defined (A.2).
fn default_manifest(agent: &str, settings: &HubSettings) -> String {
    let to_strings = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let transports = to_strings(&["sse", "websocket"]);
    let mut manifest = Manifest::new(agent, to_strings(&["1.0.0"]), vec![1, 2, 3], transports);
    manifest.event_types_emitted = Some(to_strings(&["aaep:agent.*"]));
    manifest.extensions_supported = Some(to_strings(&["urn:sayso:context:v1"]));
    let extension = member::object(|out| {
        out.key("sayso").object(|out| {
            member::text(out, "http_prefix", "/aaep/v1");
            member::texts(out, "multi_agent", ["shared_session", "linked_sessions"]);
            settings.write_states(out);
        });
    });
    if let Ok(extension) = aaep::json::RawJson::parse(extension.source()) {
        manifest.other.set("extensions", extension);
    }
    Message::Manifest(manifest).to_json()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_in_memory_hub_gets_the_default_retention() {
        let few_sessions = hub::HubLimits { sessions: 4, ..hub::HubLimits::default() };
        let short_retention = hub::HubLimits {
            retention: Retention { max_event_age_ms: Some(1), ..few_sessions.retention },
            ..few_sessions
        };
        let effective = |builder: EmbeddedHubBuilder| {
            (builder.effective_limits().sessions, builder.effective_limits().retention)
        };
        assert_eq!(effective(EmbeddedHubBuilder::default().limits(few_sessions)), (4, IN_MEMORY_RETENTION));
        assert_eq!(
            effective(EmbeddedHubBuilder::default().limits(short_retention)),
            (4, short_retention.retention)
        );
        assert_eq!(
            effective(EmbeddedHubBuilder::default().limits(few_sessions).journal("here")),
            (4, few_sessions.retention)
        );
    }
}
