//! The connection to the hub and the gate's session there. It is opened when it is first needed, and again after it was lost.

use std::sync::Arc;
use std::time::Instant;

use sayso::{Error, Hub, Session, StopReason};
use tokio::sync::Mutex;

use super::limits::{HUB_CONNECT_TIMEOUT, HUB_RECONNECT_TIMEOUT, HUB_RETRY_DELAY};
use crate::phrases::texts;

/// The address of the hub, with the token.
#[derive(Clone, Debug)]
pub struct HubAddress {
    /// The address, such as `unix:/run/user/1000/aaep/sayso-hub.sock`.
    pub url: String,
    /// The access token, if the hub needs one.
    pub token: Option<String>,
}

/// The connection to the hub.
pub(crate) struct HubLink {
    address: HubAddress,
    server: String,
    state: Mutex<LinkState>,
}

#[derive(Default)]
struct LinkState {
    open: Option<OpenLink>,
    failed_at: Option<Instant>,
}

#[derive(Clone)]
struct OpenLink {
    hub: Hub,
    session: Arc<Session>,
}

/// How urgently the session is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionUrgency {
    /// A person must be asked.
    Question,
    /// Something must be announced. It is not worth waiting for a hub that was unreachable a moment ago.
    Narration,
}

impl HubLink {
    pub(crate) fn new(address: HubAddress, server: String) -> Self {
        Self { address, server, state: Mutex::default() }
    }

    /// Returns the session, and whether it is new.
    pub(crate) async fn session(&self, urgency: SessionUrgency) -> Result<(Arc<Session>, bool), Error> {
        let mut state = self.state.lock().await;
        if let Some(open) = &state.open {
            if !is_stopped(&open.session).await {
                return Ok((Arc::clone(&open.session), false));
            }
            state.open = None;
        }
        let is_recent = |failed_at: Instant| failed_at.elapsed() < HUB_RETRY_DELAY;
        if urgency == SessionUrgency::Narration && state.failed_at.is_some_and(is_recent) {
            return Err(Error::Stopped(StopReason::Unreachable));
        }
        match self.open().await {
            Ok(open) => {
                let session = Arc::clone(&open.session);
                *state = LinkState { open: Some(open), failed_at: None };
                Ok((session, true))
            }
            Err(error) => {
                state.failed_at = Some(Instant::now());
                Err(error)
            }
        }
    }

    async fn open(&self) -> Result<OpenLink, Error> {
        let mut builder = Hub::connect(&self.address.url)
            .agent_name(format!("MCP server {}", self.server))
            .connect_timeout(HUB_RECONNECT_TIMEOUT);
        if let Some(token) = &self.address.token {
            builder = builder.token(token);
        }
        let opened = async {
            let hub = builder.open().await?;
            let text = texts::MCP_SESSION.with(&[&self.server]);
            let session = hub.session("").summary_instead_of_request(text);
            let session = session.agent(agent_id(&self.server)).start().await?;
            Ok(OpenLink { hub, session: Arc::new(session) })
        };
        let timed_out = |_| Err(Error::Unreachable(sayso::UnreachableReason::TimedOut));
        tokio::time::timeout(HUB_CONNECT_TIMEOUT, opened).await.unwrap_or_else(timed_out)
    }

    /// Forgets a session that is over, so that the next use opens another one.
    pub(crate) async fn forget(&self, session: &Arc<Session>) {
        let mut state = self.state.lock().await;
        if state.open.as_ref().is_some_and(|open| Arc::ptr_eq(&open.session, session)) {
            state.open = None;
        }
    }

    /// Ends the session, if there is one and nothing else uses it any more.
    pub(crate) async fn finish(&self) {
        let Some(OpenLink { hub, session }) = self.state.lock().await.open.take() else { return };
        if let Some(session) = Arc::into_inner(session) {
            let _ = session.finish(texts::MCP_SESSION_ENDED.with(&[&self.server])).await;
        }
        hub.close().await;
    }
}

/// Whether somebody else has ended the session.
async fn is_stopped(session: &Session) -> bool {
    tokio::select! {
        biased;
        _ = session.watch_stop() => true,
        () = std::future::ready(()) => false,
    }
}

/// Returns the id of the gate's agent: `mcp-` and the letters of the server's name. Digits are left out, because AAEP does not
/// allow versions in an agent's id. A hash keeps servers apart whose names differ only in the rest.
fn agent_id(server: &str) -> String {
    let words = server.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    let mut id = words.fold("mcp".to_owned(), |id, word| format!("{id}-{word}"));
    id.truncate(64);
    if id.strip_prefix("mcp-") != Some(server) {
        // Letters only, so that no part looks like a version.
        let hash = seal::Digest::of(server.as_bytes());
        id.push('-');
        id.extend(hash.as_bytes().iter().take(8).map(|byte| char::from(b'a' + byte % 26)));
    }
    id
}

#[cfg(test)]
mod tests {
    use super::agent_id;

    #[test]
    fn the_agents_id_has_no_version_and_is_different_for_each_server() {
        assert_eq!(agent_id("files"), "mcp-files");
        assert_eq!(agent_id("git-hub"), "mcp-git-hub");
        let ids = ["127.0.0.1", "127.0.0.2", "files v1.2.3", "files", "Dateien ü", "", &"x".repeat(300)]
            .map(agent_id);
        for (index, id) in ids.iter().enumerate() {
            assert!(id.starts_with("mcp-") && id.len() < 80, "{id}");
            assert!(id.chars().all(|c| c.is_ascii_alphabetic() || c == '-'), "{id}");
            assert!(!ids[..index].contains(id), "{id}");
        }
    }
}
