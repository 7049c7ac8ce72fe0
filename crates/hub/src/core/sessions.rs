//! Starting and ending sessions, leases, and idempotency keys.

use std::sync::Arc;

use aaep::SessionId;
use aaep::event::{AgentState, EventType, StateDefinition};
use aaep::json::{JsonKind, JsonValue, JsonWriter, OwnedDoc, Tape, TapeWriter};
use aaep::session::SessionMachine;
use journal::DamageLocation;
use seal::{Digest, UnixMillis};

use super::hub_messages::SessionEnd;
use super::notifications::HubEvent;
use super::output;
use super::producers::{SessionProducer, SessionProducers, SessionRole};
use super::publish::EventBatch;
use super::quotas::UsageAccount;
use super::restore::unreadable;
use super::supplied_states::SuppliedStates;
use super::{Core, OwnedEntry, TurnContext};
use crate::command::{ClosedItem, HubReply, MalformedRequest, RequestBody};
use crate::compose::{HubMarks, SaysoExtension};
use crate::shards::{CountGuard, DEFAULT_AGENT};
use crate::{AgentConnectionId, AgentNaming, Principal};

/// The error code of a session that the hub ended because its agent disappeared.
pub(super) const AGENT_GONE_CODE: &str = "AGENT_GONE";

/// An open session.
pub(super) struct LiveSession {
    pub(super) id: SessionId,
    /// The principal that started the session. Other principals may publish events in it only if it invited them.
    pub(super) owner: Arc<str>,
    /// The id of the main producer. It decides which listeners receive the session.
    pub(super) agent: Arc<str>,
    /// The person that the session is for, if given.
    pub(super) person: Option<Arc<str>>,
    /// The agents that speak in it.
    pub(super) producers: SessionProducers,
    /// The session that this one is a part of (§A.9, pattern 2).
    pub(super) parent: Option<SessionId>,
    /// Localization hints for events that have none.
    pub(super) hints: Option<OwnedDoc>,
    /// The states that the agent's author defined.
    pub(super) own_states: Vec<StateDefinition>,
    /// The id that links its events to a trace elsewhere, for events that have none.
    pub(super) correlation_id: Option<Box<str>>,
    pub(super) machine: SessionMachine,
    /// The states that the hub announced for its producers.
    pub(super) supplied_states: SuppliedStates,
    /// The latest timestamp of its events, in milliseconds since 1970.
    pub(super) last_timestamp: UnixMillis,
    /// How long the session stays open after its agent was last heard from, in milliseconds.
    pub(super) lease_ms: i64,
    /// When the agent counts as gone, unless a connection follows the session. Normally this time only moves forward.
    pub(super) lease_until: UnixMillis,
    /// When the agent last sent a request, or the time until which it waits for an answer. `None` if that is unknown, or
    /// if the agent has disconnected since.
    pub(super) last_seen: Option<UnixMillis>,
    /// When its lease is checked next.
    pub(super) lease_check_at: UnixMillis,
    /// Counts the session, if there are several shards.
    pub(super) count: Option<CountGuard>,
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
        has_foreign_parent: bool,
        context: &TurnContext,
    ) -> HubReply {
        if !principal.can_publish() {
            return HubReply::Forbidden;
        }
        let keyed_request = key.map(|key| (key, Digest::of(body.source().as_bytes())));
        if let Some(reply) = self.begin_keyed_request(principal, keyed_request.as_ref()) {
            return reply;
        }
        let mut tape = Tape::default();
        let doc = match body.doc(&mut tape) {
            Ok(doc) if doc.root().kind() == JsonKind::Object => doc,
            Ok(_) => return MalformedRequest::SessionNotObject.into(),
            Err(error) => return error.into(),
        };
        let root = doc.root();
        let Some((agent, producer)) = read_producer(&root, principal, DEFAULT_AGENT) else {
            return MalformedRequest::InvalidProducer.into();
        };
        let account = UsageAccount::of(principal, &agent);
        if let Err(limit) = self.check_byte_rate(&account, context) {
            return limit.into();
        }
        let count = match self.count_session(principal, &account) {
            Ok(count) => count,
            Err(limit) => return limit.into(),
        };
        let others = match self.read_producers(&root, principal, &agent) {
            Ok(others) => others,
            Err(refusal) => return refusal,
        };
        let parent = match self.read_parent(&root, principal, has_foreign_parent) {
            Ok(parent) => parent,
            Err(refusal) => return refusal,
        };
        let lease_ms = match self.read_lease(&root) {
            Ok(lease_ms) => lease_ms,
            Err(refusal) => return refusal.into(),
        };
        let hints = root.member("localization_hints");
        let shared = self
            .check_shared_object("producer", Some(&producer.doc().root()))
            .and_then(|()| self.check_shared_object("localization_hints", hints.as_ref()));
        if let Err(error) = shared {
            return error.into();
        }
        let own_states = match root.member("states").as_ref().map(StateDefinition::read_list).transpose() {
            Ok(states) => states.unwrap_or_else(|| self.manifest_states(&agent)),
            Err(error) => return MalformedRequest::InvalidStates(error).into(),
        };
        let (producer, verification) = self.identify_producer(principal, &agent, producer);
        let Ok(id) = SessionId::parse(&self.new_id("sess_", context)) else { return HubReply::NotFound };
        // A part of a task is for the same person as the whole.
        let parent_person = parent.as_ref().and_then(|parent| self.sessions.get(parent)?.person.clone());
        let inherited_person = parent_person.filter(|_| root.member("requested_by").is_none());
        let person = inherited_person.clone().or_else(|| requested_by(&root));
        let hints = session_hints(hints.as_ref(), &self.default_language);
        let main = SessionProducer::of_owner(agent.clone(), producer, verification.has_verified_name);
        let live = LiveSession {
            machine: SessionMachine::new(id.as_str()).with_max_open(self.limits.open_items_per_session),
            id: id.clone(),
            owner: principal.owner().into(),
            agent,
            person,
            producers: SessionProducers::new(main, others),
            parent,
            hints,
            own_states,
            correlation_id: self.session_correlation_id(&root),
            supplied_states: SuppliedStates::default(),
            last_timestamp: UnixMillis::MIN,
            lease_ms,
            lease_until: context.now.saturating_add(lease_ms),
            last_seen: Some(context.now),
            lease_check_at: context.now.saturating_add(lease_ms),
            count,
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
        let mut event = started_event(&root, inherited_person.as_deref());
        if let Some(manifest) = verification.manifest {
            event = event.with_extension(SaysoExtension::Manifest(manifest));
        }
        match self.emit(&id, EventBatch::ForAgent(vec![event], &SessionRole::Owner), context) {
            Ok(_) => {
                let reply = HubReply::SessionStarted { session_id: id };
                self.finish_request(principal, &account, keyed_request.as_ref(), &reply, context);
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

    /// Returns the correlation id that the events of a session repeat. A very long one is not repeated.
    fn session_correlation_id(&self, root: &JsonValue<'_>) -> Option<Box<str>> {
        let id = root.member("correlation_id")?.text()?;
        (id.chars().count() <= self.limits.shared_member_chars).then(|| id.into())
    }

    /// Reads the member `lease_seconds` of a request that starts a session. Without it, the hub's default applies.
    fn read_lease(&self, root: &JsonValue<'_>) -> Result<i64, MalformedRequest> {
        let Some(given) = root.member("lease_seconds") else { return Ok(self.limits.lease_ms) };
        // A number that is too large for this type is larger than the maximum, too.
        let is_integer =
            !given.source().is_empty() && given.source().bytes().all(|byte| byte.is_ascii_digit());
        let seconds = given.source().parse().unwrap_or(i64::MAX);
        if !is_integer || seconds == 0 {
            return Err(MalformedRequest::InvalidLease);
        }
        Ok(seconds.saturating_mul(1000).min(self.limits.max_lease_ms))
    }

    /// Removes a session.
    pub(super) fn forget_session(&mut self, id: &SessionId) {
        if let Some(live) = self.sessions.remove(id) {
            self.lease_checks.remove(&(live.lease_check_at, id.clone()));
        }
    }

    /// Returns what the principal may do in an open session; `None` if the session is not open, or if the principal
    /// neither owns it nor joined it.
    pub(super) fn session_role(&self, principal: &Principal, session: &SessionId) -> Option<SessionRole> {
        self.sessions.get(session)?.role_of(principal)
    }

    /// Returns the session if the principal owns it or joined it.
    pub(super) fn accessible_session(
        &mut self,
        principal: &Principal,
        session: &SessionId,
    ) -> Option<&mut LiveSession> {
        self.sessions.get_mut(session).filter(|live| live.role_of(principal).is_some())
    }

    /// Reads the member `parent` of a request that starts a session. The parent must be a session that the principal owns
    /// or joined; it may have ended.
    fn read_parent(
        &mut self,
        root: &JsonValue<'_>,
        principal: &Principal,
        is_foreign: bool,
    ) -> Result<Option<SessionId>, HubReply> {
        let Some(given) = root.member("parent") else { return Ok(None) };
        let parent = given.text().and_then(|id| SessionId::parse(&id).ok());
        let parent = parent.ok_or(MalformedRequest::InvalidParent)?;
        // The shard of a parent in another shard was asked before.
        if !is_foreign
            && let refusal @ (HubReply::NotFound | HubReply::Unavailable(_)) =
                self.check_parent(principal, &parent)
        {
            return Err(refusal);
        }
        Ok(Some(parent))
    }

    /// Whether the principal owns or joined a session, so that it may start a part of it. The reply is `Done` if so.
    pub(super) fn check_parent(&mut self, principal: &Principal, session: &SessionId) -> HubReply {
        if self.session_role(principal, session).is_some() {
            return HubReply::Done;
        }
        match self.missing_session(principal, session) {
            HubReply::SessionEnded => HubReply::Done,
            refusal => refusal,
        }
    }

    /// Returns the stored reply to a request that started a session, or `NotFound`.
    pub(super) fn find_start_response(
        &mut self,
        principal: &Principal,
        body: &RequestBody,
        key: &str,
    ) -> HubReply {
        let keyed_request = (key, Digest::of(body.source().as_bytes()));
        self.idempotent_reply(principal, Some(&keyed_request)).unwrap_or(HubReply::NotFound)
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
                live.lease_until = context.now.saturating_add(live.lease_ms.max(1));
            }
            live.lease_check_at = live.lease_until;
            self.lease_checks.insert((live.lease_until, id));
        }
    }

    /// Removes a closed agent connection. The sessions that it followed stay open for at least one more lease.
    pub(super) fn disconnect_agent(&mut self, connection: AgentConnectionId, context: &TurnContext) {
        for session in self.agent_connections.remove_connection(connection) {
            if let Some(live) = self.sessions.get_mut(&session) {
                live.renew_lease(context.now);
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
    /// Returns the state that a producer declared last.
    pub(super) fn state_of(&self, producer: &str) -> &AgentState {
        self.machine.declared_state_of(producer)
    }

    /// Returns what listeners learn about a producer in each of its events. With `names_main`, the main
    /// producer is marked as verified. Set it only where a listener may hear the name for the first time.
    pub(super) fn marks<'l>(&'l self, producer: &SessionProducer, names_main: bool) -> HubMarks<'l> {
        let is_main = *producer.id == *self.agent;
        HubMarks {
            main_producer: (!is_main).then_some(&*self.agent),
            has_verified_name: producer.has_verified_name && (!is_main || names_main),
            parent_session_id: self.parent.as_ref().map(SessionId::as_str),
        }
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
        let tools = tools.into_iter().map(|open| {
            let (event_id, call_id) = (event_id.clone(), open.call_id.map(Into::into));
            let event = complete_tool(open.tool, open.call_id).with_producer(open.agent_id);
            (ClosedItem::Tool { tool: open.tool.into(), call_id, event_id }, event)
        });
        let outputs = outputs.into_iter().map(|open| {
            let (event_id, output_id) = (event_id.clone(), open.id.map(Into::into));
            let event = output::closing_chunk(open.id, open.next_position).with_producer(open.agent_id);
            (ClosedItem::Output { output_id, event_id }, event)
        });
        tools.chain(outputs).collect()
    }

    /// Returns what a restart needs to restore the session, besides its events.
    pub(super) fn to_record(&self) -> String {
        let mut writer = JsonWriter::default();
        writer.open_object();
        let main = self.producers.main();
        writer.key("producer");
        writer.raw(main.envelope.source());
        if main.has_verified_name {
            writer.key("verified_name").boolean(true);
        }
        self.producers.write_others(&mut writer);
        if let Some(parent) = &self.parent {
            writer.key("parent").text(parent.as_str());
        }
        if let Some(hints) = &self.hints {
            writer.key("hints");
            writer.raw(hints.source());
        }
        if !self.own_states.is_empty() {
            let mut states = TapeWriter::default();
            states.array(|out| self.own_states.iter().for_each(|state| state.write(out)));
            writer.key("states");
            writer.raw(states.source());
        }
        writer.key("lease_ms").integer(self.lease_ms);
        if let Some(id) = &self.correlation_id {
            writer.key("correlation_id");
            writer.text(id);
        }
        if let Some(person) = &self.person {
            writer.key("person");
            writer.text(person);
        }
        writer.close_object();
        writer.finish()
    }

    /// Renews the lease, because the agent was heard from now.
    pub(super) fn renew_lease(&mut self, now: UnixMillis) {
        self.lease_until = self.lease_until.max(now.saturating_add(self.lease_ms));
    }

    /// Creates a session from its stored record; its events are replayed later.
    pub(super) fn from_stored(
        stored: &journal::stored::OpenSession,
        max_open: usize,
        default_lease_ms: i64,
        now: UnixMillis,
    ) -> Option<Self> {
        let record = std::str::from_utf8(&stored.record).ok()?;
        let mut tape = Tape::default();
        let doc = tape.read(record).ok()?;
        let root = doc.root();
        let lease_ms = match root.member("lease_ms") {
            Some(lease) => lease.source().parse().ok()?,
            None => default_lease_ms,
        };
        let lease_until = now.saturating_add(lease_ms);
        Some(Self {
            id: SessionId::parse(&stored.id).ok()?,
            owner: stored.principal.as_str().into(),
            agent: stored.agent.as_str().into(),
            person: match root.member("person") {
                Some(person) => Some(Arc::from(&*person.text()?)),
                None => None,
            },
            producers: SessionProducers::read(&root, stored.agent.as_str().into())?,
            parent: match root.member("parent") {
                Some(parent) => Some(SessionId::parse(&parent.text()?).ok()?),
                None => None,
            },
            hints: root.member("hints").map(|hints| OwnedDoc::read(hints.source())).transpose().ok()?,
            own_states: match root.member("states") {
                Some(states) => StateDefinition::read_list(&states).ok()?,
                None => Vec::new(),
            },
            correlation_id: root.member("correlation_id").and_then(|id| Some(id.text()?.into())),
            machine: SessionMachine::new(&stored.id).with_max_open(max_open),
            supplied_states: SuppliedStates::default(),
            last_timestamp: UnixMillis::MIN,
            lease_ms,
            lease_until,
            last_seen: None,
            lease_check_at: lease_until,
            count: None,
        })
    }
}

/// Returns the person that a session is for, from its start event.
pub(crate) fn requested_by(root: &JsonValue<'_>) -> Option<Arc<str>> {
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

/// Returns the agent that a principal speaks as, and the `producer` for its events. The agent is the one that the
/// principal's token is for, or else the one that the request names, or else the default. If the token contains a name for the agent, `producer`
/// gets that name. Returns `None` if the request's producer is malformed or names an agent other than the token's.
pub(crate) fn read_producer(
    root: &JsonValue<'_>,
    principal: &Principal,
    default_agent: &str,
) -> Option<(Arc<str>, OwnedDoc)> {
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
        (None, None) => default_agent.into(),
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

/// Creates the event that starts a session: the request without the members that the hub sets. `person` is the person
/// that the session is for, if the request does not say so.
fn started_event(root: &JsonValue<'_>, person: Option<&str>) -> HubEvent {
    HubEvent::new(TapeWriter::default(), &EventType::SessionStarted, &[], |out| {
        for (name, value) in root.members() {
            let hub_members = ["type", "producer", "producers", "parent", "states", "lease_seconds"];
            if !hub_members.iter().any(|hub_member| name.is_text(hub_member)) {
                out.copy_key(&name);
                out.copy(&value);
            }
        }
        if let Some(person) = person {
            out.plain_key("requested_by");
            out.text(&format!("user:{person}"));
        }
    })
}
