//! Starting and ending sessions, leases, and idempotency keys.

use std::sync::Arc;

use aaep::SessionId;
use aaep::event::{AgentState, EventType};
use aaep::json::{JsonKind, JsonValue, JsonWriter, OwnedDoc, Tape, TapeWriter};
use aaep::session::SessionMachine;
use journal::DamageLocation;
use seal::{Digest, UnixMillis};

use super::hub_messages::SessionEnd;
use super::notifications::HubEvent;
use super::output;
use super::publish::EventBatch;
use super::restore::unreadable;
use super::{Core, OwnedEntry, TurnContext};
use crate::command::{ClosedItem, HubReply, LimitReached, MalformedRequest, RequestBody};
use crate::compose::SaysoExtension;
use crate::{AgentConnectionId, AgentNaming, Principal};

/// The error code of a session that the hub ended because its agent disappeared.
pub(super) const AGENT_GONE_CODE: &str = "AGENT_GONE";

/// An open session.
pub(super) struct LiveSession {
    pub(super) id: SessionId,
    /// The principal that started the session. Only this principal may publish events in it.
    pub(super) owner: Arc<str>,
    pub(super) agent: Arc<str>,
    /// The person that the session is for, if given.
    pub(super) person: Option<Arc<str>>,
    /// The producer of its events.
    pub(super) producer: OwnedDoc,
    /// Localization hints for events that have none.
    pub(super) hints: Option<OwnedDoc>,
    pub(super) machine: SessionMachine,
    /// The latest timestamp of its events, in milliseconds since 1970.
    pub(super) last_timestamp: UnixMillis,
    /// When the agent counts as gone, unless a connection follows the session. Normally this time only moves forward.
    pub(super) lease_until: UnixMillis,
    /// When the agent last sent a request, or the time until which it waits for an answer. `None` if that is unknown, or
    /// if the agent has disconnected since.
    pub(super) last_seen: Option<UnixMillis>,
    /// When its lease is checked next.
    pub(super) lease_check_at: UnixMillis,
}

/// An idempotency key, and the digest of its request.
pub(super) type KeyedRequest<'k> = (&'k str, Digest);

impl Core {
    /// Handles `POST /agent/v1/sessions`.
    pub(super) fn start_session(
        &mut self,
        principal: &Principal,
        body: &RequestBody,
        key: Option<&str>,
        context: &TurnContext,
    ) -> HubReply {
        if !principal.can_publish() {
            return HubReply::Forbidden;
        }
        let keyed_request = key.map(|key| (key, Digest::of(body.source().as_bytes())));
        if let Some(reply) = self.begin_request(principal, keyed_request.as_ref(), context) {
            return reply;
        }
        if self.sessions.len() >= self.limits.sessions {
            return LimitReached::Sessions.into();
        }
        if self.is_at_session_limit(principal) {
            return LimitReached::SessionsPerPrincipal { max: self.limits.sessions_per_principal }.into();
        }
        let mut tape = Tape::default();
        let doc = match body.doc(&mut tape) {
            Ok(doc) if doc.root().kind() == JsonKind::Object => doc,
            Ok(_) => return MalformedRequest::SessionNotObject.into(),
            Err(error) => return error.into(),
        };
        let root = doc.root();
        let Some((agent, producer)) = read_producer(&root, principal) else {
            return MalformedRequest::InvalidProducer.into();
        };
        let hints = root.member("localization_hints");
        let shared = self
            .check_shared_object("producer", Some(&producer.doc().root()))
            .and_then(|()| self.check_shared_object("localization_hints", hints.as_ref()));
        if let Err(error) = shared {
            return error.into();
        }
        let Ok(id) = SessionId::parse(&self.new_id("sess_", context)) else { return HubReply::NotFound };
        let person = requested_by(&root);
        let hints = session_hints(hints.as_ref(), &self.default_language);
        let live = LiveSession {
            machine: SessionMachine::new(id.as_str()).with_max_open(self.limits.open_per_session),
            id: id.clone(),
            owner: principal.owner().into(),
            agent,
            person,
            producer,
            hints,
            last_timestamp: UnixMillis::MIN,
            lease_until: context.now.saturating_add(self.limits.lease_ms),
            last_seen: Some(context.now),
            lease_check_at: context.now.saturating_add(self.limits.lease_ms),
        };
        self.staged.writes.push(OwnedEntry::SessionOpened {
            id: id.clone(),
            agent: (&*live.agent).into(),
            principal: (&*live.owner).into(),
            lease_expires_at: live.lease_until,
            record: live.to_record(),
        });
        self.lease_checks.insert((live.lease_until, id.clone()));
        self.sessions.insert(id.clone(), live);
        let mut event = started_event(&root);
        if principal.naming != AgentNaming::SelfDeclared {
            event = event.with_extension(SaysoExtension::VerifiedName);
        }
        match self.emit(&id, EventBatch::ForAgent(vec![event]), context) {
            Ok(_) => {
                let reply = HubReply::SessionStarted { session_id: id };
                self.finish_request(principal, keyed_request.as_ref(), &reply, context);
                reply
            }
            Err(reply) => {
                self.forget_session(&id);
                self.staged.writes.retain(
                    |write| !matches!(write, OwnedEntry::SessionOpened { id: opened, .. } if *opened == id),
                );
                reply
            }
        }
    }

    /// Removes a session.
    pub(super) fn forget_session(&mut self, id: &SessionId) {
        if let Some(live) = self.sessions.remove(id) {
            self.lease_checks.remove(&(live.lease_check_at, id.clone()));
        }
    }

    /// Returns the session if it belongs to this principal.
    pub(super) fn owned_session(
        &mut self,
        principal: &Principal,
        session: &SessionId,
    ) -> Option<&mut LiveSession> {
        self.sessions
            .get_mut(session)
            .filter(|live| principal.can_publish() && principal.is_owner(&live.owner))
    }

    /// Ends sessions whose agents are gone (decision 16).
    pub(super) fn expire_leases(&mut self, context: &TurnContext) {
        let mut due = Vec::new();
        while self.lease_checks.first().is_some_and(|(at, _)| *at <= context.now)
            && let Some((_, id)) = self.lease_checks.pop_first()
        {
            due.push(id);
        }
        for id in due {
            let Some(live) = self.sessions.get_mut(&id) else { continue };
            if live.lease_until <= context.now && self.agent_connections.followers_of(&id).is_empty() {
                self.end_abandoned_session(&id, context);
            }
            let Some(live) = self.sessions.get_mut(&id) else { continue };
            if live.lease_until <= context.now {
                // Either a connection keeps the session alive, or the session could not be ended. The hub checks again
                // after another lease period.
                live.lease_until = context.now.saturating_add(self.limits.lease_ms.max(1));
            }
            live.lease_check_at = live.lease_until;
            self.lease_checks.insert((live.lease_until, id));
        }
    }

    /// Removes a closed agent connection. The sessions that it followed stay open for at least one more lease.
    pub(super) fn disconnect_agent(&mut self, connection: AgentConnectionId, context: &TurnContext) {
        let lease_until = context.now.saturating_add(self.limits.lease_ms);
        for session in self.agent_connections.remove_connection(connection) {
            if let Some(live) = self.sessions.get_mut(&session) {
                live.lease_until = live.lease_until.max(lease_until);
                live.last_seen = None;
            }
        }
    }

    /// Ends a session on behalf of its agent. Closes open tools and outputs first, because otherwise the end would
    /// break the rules.
    pub(super) fn end_session_with(&mut self, id: &SessionId, end: SessionEnd, context: &TurnContext) {
        let Some(live) = self.sessions.get(id) else { return };
        let closing_events = live.closing_events(|tool, call| end.tool_completed_event(tool, call));
        let mut events: Vec<_> = closing_events.into_iter().map(|(_, event)| event).collect();
        events.push(end.final_event());
        let result = self.emit(id, EventBatch::FromHub(events), context).map(drop);
        self.log_if_rejected(id, result);
    }

    /// Returns the stored reply for an idempotency key, if the key was used.
    pub(super) fn idempotent_reply(
        &mut self,
        principal: &Principal,
        keyed_request: Option<&KeyedRequest<'_>>,
    ) -> Option<HubReply> {
        let (key, request) = keyed_request?;
        let stored_reply = |digest: &[u8], response: &[u8]| {
            if digest != request.as_bytes() {
                return HubReply::Conflict;
            }
            HubReply::from_journal(response)
                .unwrap_or_else(|| unreadable(DamageLocation::IdempotencyKey, key).into())
        };
        for write in &self.staged.writes {
            if let OwnedEntry::ResponseStored { principal: owner, key: used_key, request, response, .. } =
                write
                && (principal.is_owner(owner) && **used_key == **key)
            {
                return Some(stored_reply(request, response.as_bytes()));
            }
        }
        match self.journal.stored_response(&principal.owner(), key) {
            Ok(stored) => stored.map(|stored| stored_reply(&stored.request, &stored.response)),
            Err(error) => Some(error.into()),
        }
    }
}

impl LiveSession {
    /// Returns the state that the agent declared last.
    pub(super) fn state(&self) -> &AgentState {
        self.machine.declared_state_of(&self.agent)
    }

    /// Returns the open tools and outputs, and the event that closes each. The items have no event id yet.
    pub(super) fn closing_events(
        &self,
        complete_tool: impl Fn(&str, Option<&str>) -> HubEvent,
    ) -> Vec<(ClosedItem, HubEvent)> {
        let mut tools: Vec<_> = self.machine.open_tools().collect();
        tools.sort_unstable();
        let mut outputs: Vec<_> = self.machine.open_outputs().collect();
        outputs.sort_unstable();
        let event_id: Arc<str> = Arc::default();
        let tools = tools.into_iter().map(|(tool, call)| {
            let (event_id, call_id) = (event_id.clone(), call.map(Into::into));
            (ClosedItem::Tool { tool: tool.into(), call_id, event_id }, complete_tool(tool, call))
        });
        let outputs = outputs.into_iter().map(|(id, position)| {
            let (event_id, output_id) = (event_id.clone(), id.map(Into::into));
            (ClosedItem::Output { output_id, event_id }, output::closing_chunk(id, position))
        });
        tools.chain(outputs).collect()
    }

    /// Returns what a restart needs to restore the session, besides its events.
    fn to_record(&self) -> String {
        let mut writer = JsonWriter::default();
        writer.open_object();
        writer.key("producer");
        writer.raw(self.producer.source());
        if let Some(hints) = &self.hints {
            writer.key("hints");
            writer.raw(hints.source());
        }
        if let Some(person) = &self.person {
            writer.key("person");
            writer.text(person);
        }
        writer.close_object();
        writer.finish()
    }

    /// Creates a session from its stored record; its events are replayed later.
    pub(super) fn from_stored(
        stored: &journal::stored::OpenSession,
        max_open: usize,
        lease_until: UnixMillis,
    ) -> Option<Self> {
        let record = std::str::from_utf8(&stored.record).ok()?;
        let mut tape = Tape::default();
        let doc = tape.read(record).ok()?;
        let root = doc.root();
        Some(Self {
            id: SessionId::parse(&stored.id).ok()?,
            owner: stored.principal.as_str().into(),
            agent: stored.agent.as_str().into(),
            person: match root.member("person") {
                Some(person) => Some(Arc::from(&*person.text()?)),
                None => None,
            },
            producer: OwnedDoc::read(root.member("producer")?.source()).ok()?,
            hints: root.member("hints").map(|hints| OwnedDoc::read(hints.source())).transpose().ok()?,
            machine: SessionMachine::new(&stored.id).with_max_open(max_open),
            last_timestamp: UnixMillis::MIN,
            lease_until,
            last_seen: None,
            lease_check_at: lease_until,
        })
    }
}

/// Returns the person that a session is for, from its start event.
pub(super) fn requested_by(root: &JsonValue<'_>) -> Option<Arc<str>> {
    let person = root.member("requested_by")?.text()?;
    Some(Arc::from(person.strip_prefix("user:").unwrap_or(&person)))
}

/// Returns the localization hints for a session's events: those of the request, with the default language if they state
/// none. Returns `None` if the request's are malformed; the rules then refuse the request.
fn session_hints(given: Option<&JsonValue<'_>>, default_language: &str) -> Option<OwnedDoc> {
    if given.is_some_and(|given| given.kind() != JsonKind::Object) {
        return None;
    }
    let mut hints = TapeWriter::default();
    hints.open_object();
    if given.is_none_or(|given| given.member("primary_language").is_none()) {
        hints.plain_key("primary_language");
        hints.text(default_language);
    }
    for (name, value) in given.iter().flat_map(|given| given.members()) {
        hints.copy_key(&name);
        hints.copy(&value);
    }
    hints.close_object();
    Some(OwnedDoc::from_doc(&hints.doc().ok()?))
}

/// Returns the session's agent, and the `producer` for its events. The agent is the one that the principal's token is
/// for, or else the one that the request names, or else `local`. If the token contains a name for the agent, `producer`
/// gets that name. Returns `None` if the request's producer is malformed or names another agent than the token.
fn read_producer(root: &JsonValue<'_>, principal: &Principal) -> Option<(Arc<str>, OwnedDoc)> {
    let given = root.member("producer");
    if given.is_some_and(|given| given.kind() != JsonKind::Object) {
        return None;
    }
    let given_agent = match given.and_then(|given| given.member("agent_id")) {
        Some(agent) => Some(agent.text()?),
        None => None,
    };
    let agent: Arc<str> = match (&given_agent, &principal.agent_id) {
        (Some(given), Some(token_agent)) if **given != **token_agent => return None,
        (_, Some(token_agent)) => token_agent.clone(),
        (Some(given), None) => Arc::from(&**given),
        (None, None) => "local".into(),
    };
    let token_name = match &principal.naming {
        AgentNaming::Token(name) => Some(name),
        _ => None,
    };
    if let (Some(given), Some(_), None) = (given, given_agent, token_name) {
        return Some((agent, OwnedDoc::read(given.source()).ok()?));
    }
    let mut producer = TapeWriter::default();
    producer.open_object();
    producer.key("agent_id");
    producer.text(&agent);
    if let Some(name) = token_name {
        producer.key("agent_name");
        producer.text(name);
    }
    for (name, value) in given.iter().flat_map(JsonValue::members) {
        let is_set_by_hub = name.is_text("agent_id") || token_name.is_some() && name.is_text("agent_name");
        if !is_set_by_hub {
            producer.copy_key(&name);
            producer.copy(&value);
        }
    }
    producer.close_object();
    Some((agent, OwnedDoc::from_doc(&producer.doc().ok()?)))
}

/// Creates the event that starts a session: the request without the members that the hub sets.
fn started_event(root: &JsonValue<'_>) -> HubEvent {
    HubEvent::new(TapeWriter::default(), &EventType::SessionStarted, &[], |out| {
        for (name, value) in root.members() {
            if !["type", "producer"].iter().any(|hub_member| name.is_text(hub_member)) {
                out.copy_key(&name);
                out.copy(&value);
            }
        }
    })
}
