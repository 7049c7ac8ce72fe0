//! Requests to the hub, for one event.

use std::io;
use std::time::{Duration, Instant};

use client::{ClientError, HttpClient, HubLocation, PersistentConnection};
use seal::Digest;
use seal::json::{JsonWriter, OwnedDoc, write_object};

use super::event::HookEvent;
use super::session_store::{CallPhase, HookRecord, LockedRecord, SessionStore, WaitMark};
use super::{Gate, HookOptions};
use crate::description::speakable;
use crate::phrases::{GateText, Language, texts};

/// How long a request to the hub may take, in addition to the time that it waits for an answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// How long a session may be silent before the hub ends it. A person can think for hours.
const SESSION_LEASE_SECONDS: u64 = 12 * 60 * 60;
/// The same for a subagent, which works without pauses.
const SUBAGENT_LEASE_SECONDS: u64 = 60 * 60;
/// The agent's state between the announcement of a call and its start or the request for permission.
pub(super) const REQUESTING_TOOL: &str = "requesting_tool";

/// Why the hub could not be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum HubError {
    #[error("the address of the hub is invalid")]
    NoAddress,
    #[error("the state folder cannot be used: {0}")]
    Store(#[from] io::Error),
    #[error("the hub cannot be reached: {0}")]
    Client(#[from] ClientError),
    #[error("the hub did not answer in time")]
    Timeout,
    #[error("the hub answered with status {status}: {title}")]
    Refused { status: u16, title: String },
    #[error("the hub's answer cannot be read")]
    InvalidAnswer,
}

/// How to reach the hub, and what the processes of a harness session share.
pub(super) struct HubAccess {
    client: Option<HttpClient>,
    has_token: bool,
    store: io::Result<SessionStore>,
}

impl HubAccess {
    /// Finds the hub. Does not connect.
    pub(super) fn find(options: &HookOptions) -> Self {
        let location = HubLocation::find(options.hub.as_deref()).ok();
        let client = location.and_then(|location| {
            let client = HttpClient::new(location.url);
            match &options.token {
                Some(token) => client.with_token(token).ok(),
                None => Some(client),
            }
        });
        Self {
            client,
            has_token: options.token.is_some(),
            store: SessionStore::open(options.state_folder.as_deref()),
        }
    }
}

/// The question that this process asks.
pub(super) struct OwnQuestion {
    /// The route that asks it.
    pub(super) route: &'static str,
    /// Identifies it in the session.
    pub(super) question: String,
    pub(super) body: String,
    pub(super) _mark: WaitMark,
}

/// One event and the hub.
pub(super) struct Hook {
    access: HubAccess,
    event: HookEvent,
    gate: Gate,
    /// When a question is withdrawn.
    give_up_at: Instant,
    /// The time between the start of the hook and `give_up_at`, in whole seconds.
    available_seconds: u64,
    connection: Option<PersistentConnection>,
    own_question: Option<OwnQuestion>,
}

impl Hook {
    pub(super) fn new(
        access: HubAccess,
        event: HookEvent,
        gate: Gate,
        started_at: Instant,
        give_up_at: Instant,
    ) -> Self {
        let available_seconds = give_up_at.saturating_duration_since(started_at).as_secs();
        Self { access, event, gate, give_up_at, available_seconds, connection: None, own_question: None }
    }

    pub(super) fn event(&self) -> &HookEvent {
        &self.event
    }

    /// Whether the answer to the event decides about a call that a person must permit.
    pub(super) fn is_gated(&self) -> bool {
        self.event.is_gated(self.gate)
    }

    /// Whether the call of the event must be permitted before it is made.
    pub(super) fn needs_consent(&self) -> bool {
        self.event.is_call_gated(self.gate)
    }

    /// Returns how many seconds a person has for an answer, so that the hub ends the question this long before the hook
    /// gives up. It depends only on the options, because a repeated request must be identical.
    pub(super) fn question_seconds(&self, margin: u64) -> u64 {
        self.available_seconds.saturating_sub(margin).clamp(1, 86_400)
    }

    pub(super) fn give_up_at(&self) -> Instant {
        self.give_up_at
    }

    pub(super) fn set_own_question(&mut self, question: Option<OwnQuestion>) {
        self.own_question = question;
    }

    /// Withdraws the question that this process asks, whether or not it has learned the question's token. Failures are
    /// ignored: the next process that finds the question withdraws it, or its deadline ends it.
    pub(super) async fn withdraw_own_question(&mut self) {
        let Some(own) = self.own_question.take() else { return };
        // A request may have been interrupted on this connection.
        self.connection = None;
        let Ok(mut locked) = self.lock().await else { return };
        // The repeated request returns the same token.
        let asked = self.post(&mut locked, own.route, "", &own.question, own.body).await;
        let token = asked.ok().and_then(|asked| member_text(&asked, "reply_token"));
        if let Some((session, token)) = locked.record.hub_session.clone().zip(token) {
            drop(self.withdraw(&session, &token).await);
        }
    }

    /// Withdraws a question. Returns the response, which says how the question was resolved.
    pub(super) async fn withdraw(&mut self, session: &str, token: &str) -> Result<OwnedDoc, HubError> {
        let path = format!("/agent/v1/sessions/{session}/replies/{token}");
        self.request("DELETE", &path, String::new(), None, Duration::ZERO).await
    }

    /// Deletes the records of old sessions.
    pub(super) fn delete_old_records(&self) {
        if let Ok(store) = &self.access.store {
            store.delete_old();
        }
    }

    /// Locks the record of the event's session or subagent.
    pub(super) async fn lock(&self) -> Result<LockedRecord, HubError> {
        self.lock_agent(self.event.agent.as_deref()).await
    }

    async fn lock_agent(&self, agent: Option<&str>) -> Result<LockedRecord, HubError> {
        let store = self.access.store.as_ref().map_err(|error| io::Error::from(error.kind()))?;
        let client = self.access.client.as_ref().ok_or(HubError::NoAddress)?;
        let key = format!("{}\n{}", client.url(), self.agent_key(agent));
        Ok(store.lock(&key, self.give_up_at).await?)
    }

    /// Identifies the session, or one of its subagents.
    fn agent_key(&self, agent: Option<&str>) -> String {
        format!("{}\n{}\n{}", self.event.harness.name(), self.event.session, agent.unwrap_or_default())
    }

    /// Returns an idempotency key for something that happens once in this hub session.
    pub(super) fn idempotency_key(record: &HookRecord, what: &str) -> String {
        let text = format!("{}\n{}\n{what}", record.nonce, record.generation);
        Digest::of(text.as_bytes()).to_string().replace("sha256:", "hook-")
    }

    /// Starts the hub's session if there is none. Returns its id. The caller saves the record.
    pub(super) async fn ensure_session(&mut self, locked: &mut LockedRecord) -> Result<String, HubError> {
        if let Some(session) = &locked.record.hub_session {
            return Ok(session.clone());
        }
        let parent =
            if self.event.agent.is_some() { Some(Box::pin(self.ensure_parent()).await?) } else { None };
        let body = self.session_body(parent.as_deref());
        let key = Self::idempotency_key(&locked.record, "session");
        let started = self.request("POST", "/agent/v1/sessions", body, Some(&key), Duration::ZERO).await?;
        let session = member_text(&started, "session_id").ok_or(HubError::InvalidAnswer)?;
        locked.record.hub_session = Some(session.clone());
        locked.save()?;
        Ok(session)
    }

    /// Starts the session of the agent that started this subagent.
    async fn ensure_parent(&mut self) -> Result<String, HubError> {
        let mut locked = self.lock_agent(None).await?;
        let agent = self.event.agent.take();
        let parent = self.ensure_session(&mut locked).await;
        self.event.agent = agent;
        parent
    }

    fn session_body(&self, parent: Option<&str>) -> String {
        let name = self.event.harness.display_name();
        let folder = self.event.working_folder().unwrap_or_default();
        let project = folder.rsplit('/').find(|part| !part.is_empty());
        let subagent = self.event.text("agent_type").map(|kind| speakable(&kind, 100, Language::English));
        let summary = GateText::new(|language| {
            let project = match project {
                Some(project) => speakable(project, 100, language),
                None => texts::THIS_FOLDER.fill(language, &[]),
            };
            match (parent, &subagent) {
                (None, _) => texts::WORKING_IN.fill(language, &[&project]),
                (Some(_), Some(kind)) => texts::SUBAGENT_KIND.fill(language, &[kind, &project]),
                (Some(_), None) => texts::SUBAGENT.fill(language, &[&project]),
            }
        });
        write_object(|out| {
            summary.write(out, "summary_normal");
            out.key("producer");
            out.object(|out| {
                // A token has its own agent id.
                if !self.access.has_token {
                    out.key("agent_id").text(self.event.harness.name());
                }
                match &subagent {
                    Some(kind) if parent.is_some() => out.key("agent_name").text(&format!("{name} ({kind})")),
                    _ => out.key("agent_name").text(name),
                }
            });
            out.key("localization_hints");
            out.object(|out| out.plain_member("primary_language", "en"));
            out.key("lease_seconds").raw(
                &if parent.is_some() { SUBAGENT_LEASE_SECONDS } else { SESSION_LEASE_SECONDS }.to_string(),
            );
            out.key("states");
            out.array(|out| {
                out.object(|out| {
                    out.key("state").text(REQUESTING_TOOL);
                    out.key("words");
                    out.object(|out| {
                        for language in Language::ALL {
                            out.key(language.tag()).text(&texts::ABOUT_TO_USE.fill(language, &[]));
                        }
                    });
                });
            });
            if let Some(parent) = parent {
                out.key("parent").text(parent);
            }
        })
    }

    /// Sends events of the session. If the hub has ended the session, starts a new one and sends them there.
    pub(super) async fn send_events(
        &mut self,
        locked: &mut LockedRecord,
        what: &str,
        events: &[String],
    ) -> Result<(), HubError> {
        if events.is_empty() {
            return Ok(());
        }
        self.post(locked, "events", "", what, events.join("\n")).await.map(drop)
    }

    /// Sends a part of the agent's text.
    pub(super) async fn send_output(
        &mut self,
        locked: &mut LockedRecord,
        what: &str,
        output: &str,
        text: &str,
        is_complete: bool,
    ) -> Result<(), HubError> {
        let id: String = Digest::of(output.as_bytes()).to_string().chars().skip(7).take(16).collect();
        let complete = if is_complete { "&complete=true" } else { "" };
        let query = format!("?output_id=out_{id}&content_type=text/markdown{complete}");
        self.post(locked, "output", &query, what, text.to_owned()).await.map(drop)
    }

    /// Posts to the session. If the hub has ended or forgotten it, starts a new one and posts there.
    pub(super) async fn post(
        &mut self,
        locked: &mut LockedRecord,
        route: &str,
        query: &str,
        what: &str,
        body: String,
    ) -> Result<OwnedDoc, HubError> {
        for is_last in [false, true] {
            let session = self.ensure_session(locked).await?;
            let key = Self::idempotency_key(&locked.record, &format!("{route} {what}"));
            let path = format!("/agent/v1/sessions/{session}/{route}{query}");
            match self.request("POST", &path, body.clone(), Some(&key), Duration::ZERO).await {
                Err(HubError::Refused { status: 404, .. }) if !is_last => {
                    locked.record.hub_session = None;
                    locked.record.generation += 1;
                    // Questions of the old session are closed, and its calls belong to it.
                    for call in &mut locked.record.calls {
                        call.is_invoked = false;
                        call.reply_token = None;
                        if call.phase == CallPhase::Asked {
                            call.phase = CallPhase::Announced;
                        }
                    }
                }
                other => return other,
            }
        }
        Err(HubError::InvalidAnswer)
    }

    /// Waits up to `wait` for the answer to a question.
    pub(super) async fn wait_for_answer(
        &mut self,
        session: &str,
        token: &str,
        wait: Duration,
    ) -> Result<OwnedDoc, HubError> {
        let path = format!("/agent/v1/sessions/{session}/replies/{token}?wait={}", wait.as_secs().min(300));
        self.request("GET", &path, String::new(), None, wait).await
    }

    async fn request(
        &mut self,
        method: &str,
        path: &str,
        body: String,
        key: Option<&str>,
        wait: Duration,
    ) -> Result<OwnedDoc, HubError> {
        let client = self.access.client.clone().ok_or(HubError::NoAddress)?;
        let usable = self.connection.take().filter(PersistentConnection::is_usable);
        let exchange = async {
            let mut connection = match usable {
                Some(connection) => connection,
                None => PersistentConnection::open(client.connect().await?).await?,
            };
            let content_type = match path {
                path if path.contains("/output?") => "text/plain",
                path if path.ends_with("/events") => "application/x-ndjson",
                _ => "application/json",
            };
            let method = http::Method::from_bytes(method.as_bytes()).unwrap_or_default();
            let mut request = client.persistent_request(method, path).header("Content-Type", content_type);
            if let Some(key) = key {
                request = request.header("Idempotency-Key", key);
            }
            let request = request.body(body).map_err(ClientError::from)?;
            let response = connection.send(request, MAX_RESPONSE_BYTES).await?;
            Ok::<_, ClientError>((connection, response))
        };
        let timeout = wait + REQUEST_TIMEOUT;
        let (connection, response) =
            tokio::time::timeout(timeout, exchange).await.map_err(|_| HubError::Timeout)??;
        self.connection = Some(connection);
        let doc = OwnedDoc::read(&response.body);
        if (200..300).contains(&response.status) {
            return doc.map_err(|_| HubError::InvalidAnswer);
        }
        let title = doc.ok().and_then(|doc| {
            let finding = doc.doc().root().member("findings").and_then(|list| list.items().next());
            let message = finding.and_then(|finding| Some(finding.member("message")?.text()?.into_owned()));
            Some(format!("{} {}", member_text(&doc, "title")?, message.unwrap_or_default()))
        });
        Err(HubError::Refused { status: response.status, title: title.unwrap_or_default() })
    }
}

/// Returns a text member of a response.
pub(super) fn member_text(doc: &OwnedDoc, name: &str) -> Option<String> {
    Some(doc.doc().root().member(name)?.text()?.into_owned())
}

/// Writes an event of the agent API.
pub(super) fn write_event(event_type: &str, members: impl FnOnce(&mut JsonWriter)) -> String {
    write_object(|out| {
        out.key("type").text(&format!("aaep:agent.{event_type}"));
        members(out);
    })
}

/// Returns a tool name that AAEP permits (§4.3.1).
pub(super) fn aaep_tool_name(tool: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let name: String = tool.chars().take(200).map(|c| if is_allowed(c) { c } else { '_' }).collect();
    match name.chars().next() {
        Some(first) if first.is_ascii_alphabetic() || first == '_' => name,
        _ => format!("tool_{name}"),
    }
}
