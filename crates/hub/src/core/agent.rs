//! Sessions as agents start and leave them.

use std::sync::Arc;

use aaep::event::{EventType, State};
use aaep::json::{Kept, Kind, Scribe, Tape, Value, Writer};
use aaep::session::Session;
use aaep::{ReplyToken, SessionId};
use journal::Place;
use seal::{Digest, UnixMillis};

use super::output;
use super::publish::Events;
use super::restore::unreadable;
use super::told::OwnEvent;
use super::tongues::End;
use super::{Core, TurnContext, Write};
use crate::command::{LimitReached, Malformed, Reply, RequestBody};
use crate::{LineId, Principal};

/// The error code of a session that was ended for its agent.
pub(super) const GONE: &str = "AGENT_GONE";

/// A session that is open.
pub(super) struct Live {
    pub(super) id: SessionId,
    /// Whose it is: only this principal speaks in it.
    pub(super) owner: Arc<str>,
    pub(super) agent: Arc<str>,
    /// For whom it is, where that is said.
    pub(super) person: Option<Arc<str>>,
    /// The producer of its events.
    pub(super) producer: Kept,
    /// Localization hints for events that bring none.
    pub(super) hints: Option<Kept>,
    pub(super) machine: Session,
    /// The latest timestamp of its events, in milliseconds since 1970.
    pub(super) stamped: UnixMillis,
    /// When the agent counts as gone, if nobody follows the session on a line. It only ever grows.
    pub(super) lease: UnixMillis,
    /// When its agent was there last without a line, if that is known and it has not gone since.
    pub(super) seen: Option<UnixMillis>,
    /// The time at which it is looked at next.
    pub(super) looked_at: UnixMillis,
    /// Consents on which something was done that did not need them.
    pub(super) used: Vec<ReplyToken>,
}

/// A request's idempotency key, and the digest of what is asked with it.
pub(super) type Keyed<'k> = (&'k str, Digest);

impl Core {
    /// `POST /agent/v1/sessions`
    pub(super) fn start(
        &mut self,
        who: &Principal,
        body: &RequestBody,
        key: Option<&str>,
        context: &TurnContext,
    ) -> Reply {
        if !who.speaks() {
            return Reply::Forbidden;
        }
        let keyed = key.map(|key| (key, Digest::of(body.source().as_bytes())));
        if let Some(answer) = self.remembered(who, keyed.as_ref()) {
            return answer;
        }
        if self.sessions.len() >= self.limits.sessions {
            return LimitReached::Sessions.into();
        }
        let mut tape = Tape::default();
        let doc = match body.doc(&mut tape) {
            Ok(doc) if doc.root().kind() == Kind::Object => doc,
            Ok(_) => return Malformed::SessionForm.into(),
            Err(error) => return error.into(),
        };
        let root = doc.root();
        let Some((agent, producer)) = producer(&root, who) else {
            return Malformed::Producer.into();
        };
        let Ok(id) = SessionId::parse(&self.new_id("sess_", context)) else { return Reply::NotFound };
        let person = requested_by(&root);
        let hints = root.member("localization_hints").and_then(|hints| Kept::read(hints.source()).ok());
        let live = Live {
            machine: Session::new(id.as_str()).with_max_open(self.limits.open_in_session),
            id: id.clone(),
            owner: who.name.clone(),
            agent,
            person,
            producer,
            hints,
            stamped: UnixMillis::MIN,
            lease: context.now.saturating_add(self.limits.lease),
            seen: Some(context.now),
            looked_at: context.now.saturating_add(self.limits.lease),
            used: Vec::new(),
        };
        self.staged.writes.push(Write::SessionOpened {
            id: id.clone(),
            agent: (&*live.agent).into(),
            principal: (&*live.owner).into(),
            lease: live.lease,
            record: live.record(),
        });
        self.leases.insert((live.lease, id.clone()));
        self.sessions.insert(id.clone(), live);
        let event = started(&root);
        match self.emit(&id, Events::Own(vec![event]), context) {
            Ok(_) => {
                let reply = Reply::SessionStarted { session_id: id };
                self.remember(who, keyed.as_ref(), &reply, context);
                reply
            }
            Err(answer) => {
                self.forget_session(&id);
                self.staged.writes.retain(
                    |write| !matches!(write, Write::SessionOpened { id: opened, .. } if *opened == id),
                );
                answer
            }
        }
    }

    /// A session is no more.
    pub(super) fn forget_session(&mut self, id: &SessionId) {
        if let Some(live) = self.sessions.remove(id) {
            self.leases.remove(&(live.looked_at, id.clone()));
        }
    }

    /// The session, if it is this one's.
    pub(super) fn own(&mut self, who: &Principal, session: &SessionId) -> Option<&mut Live> {
        self.sessions.get_mut(session).filter(|live| who.speaks() && *live.owner == *who.name)
    }

    /// An agent that is gone has its session ended for it (design, decision 16).
    pub(super) fn end_leases(&mut self, context: &TurnContext) {
        let mut due = Vec::new();
        while self.leases.first().is_some_and(|(at, _)| *at <= context.now)
            && let Some((_, id)) = self.leases.pop_first()
        {
            due.push(id);
        }
        for id in due {
            let Some(live) = self.sessions.get_mut(&id) else { continue };
            if live.lease <= context.now && self.lines.of(&id).is_empty() {
                self.end_for_it(&id, context);
            }
            let Some(live) = self.sessions.get_mut(&id) else { continue };
            if live.lease <= context.now {
                // A line keeps it alive; or something stands in the way of a proper end, and it is tried again later.
                live.lease = context.now.saturating_add(self.limits.lease.max(1));
            }
            live.looked_at = live.lease;
            self.leases.insert((live.lease, id));
        }
    }

    /// A line is gone: what it alone kept alive has one more lease.
    pub(super) fn hung_up(&mut self, line: LineId, context: &TurnContext) {
        let lease = context.now.saturating_add(self.limits.lease);
        for session in self.lines.hang_up(line) {
            if let Some(live) = self.sessions.get_mut(&session) {
                live.lease = live.lease.max(lease);
                live.seen = None;
            }
        }
    }

    /// Ends a session for its agent: what is open in it is closed first, for else its end would not be lawful.
    pub(super) fn end_with(&mut self, id: &SessionId, end: End, context: &TurnContext) {
        let Some(live) = self.sessions.get(id) else { return };
        let mut tools: Vec<_> = live.machine.open_tools().collect();
        tools.sort_unstable();
        let mut outputs: Vec<_> = live.machine.open_outputs().collect();
        outputs.sort_unstable();
        let mut events: Vec<_> = tools.into_iter().map(|(tool, call)| end.of_tool(tool, call)).collect();
        events.extend(outputs.into_iter().map(|(id, position)| output::closed(id, position)));
        events.push(end.last());
        let said = self.emit(id, Events::Own(events), context).map(drop);
        self.was_said(id, said);
    }

    /// The reply to this idempotency key, if the key was used.
    pub(super) fn remembered(&mut self, who: &Principal, keyed: Option<&Keyed<'_>>) -> Option<Reply> {
        let (key, request) = keyed?;
        let again = |digest: &[u8], response: &[u8]| {
            if digest != request.as_bytes() {
                return Reply::Conflict;
            }
            Reply::from_journal(response).unwrap_or_else(|| unreadable(Place::Key, key).into())
        };
        for write in &self.staged.writes {
            if let Write::Idempotent { principal, key: used, request, response, .. } = write
                && (**principal == *who.name && **used == **key)
            {
                return Some(again(request, response.as_bytes()));
            }
        }
        match self.journal.idempotent(&who.name, key) {
            Ok(known) => known.map(|known| again(&known.request, &known.response)),
            Err(error) => Some(error.into()),
        }
    }

    /// Writes down the reply to an idempotency key.
    pub(super) fn remember(
        &mut self,
        who: &Principal,
        keyed: Option<&Keyed<'_>>,
        reply: &Reply,
        context: &TurnContext,
    ) {
        if let Some((key, request)) = keyed
            && let Some(response) = reply.to_json()
        {
            self.staged.writes.push(Write::Idempotent {
                principal: (&*who.name).into(),
                key: (*key).into(),
                request: request.as_bytes().to_vec(),
                response,
                at: context.now,
            });
        }
    }
}

impl Live {
    /// The state that its agent declared last.
    pub(super) fn state(&self) -> &State {
        self.machine.declared_state_of(&self.agent)
    }

    /// Who speaks to whom.
    pub(super) fn agent_and_person(&self) -> String {
        format!("{}\u{1f}{}", self.agent, self.person.as_deref().unwrap_or_default())
    }

    /// What is needed to go on with it after a restart, beside its events.
    fn record(&self) -> String {
        let mut writer = Writer::default();
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

    /// A session as it was stored; its events are yet to be replayed.
    pub(super) fn restored(
        stored: &journal::stored::OpenSession,
        max_open: usize,
        lease: UnixMillis,
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
            producer: Kept::read(root.member("producer")?.source()).ok()?,
            hints: root.member("hints").map(|hints| Kept::read(hints.source())).transpose().ok()?,
            machine: Session::new(&stored.id).with_max_open(max_open),
            stamped: UnixMillis::MIN,
            lease,
            seen: None,
            looked_at: lease,
            used: Vec::new(),
        })
    }
}

/// For whom a session is, as its start says.
pub(super) fn requested_by(root: &Value<'_>) -> Option<Arc<str>> {
    let person = root.member("requested_by")?.text()?;
    Some(Arc::from(person.strip_prefix("user:").unwrap_or(&person)))
}

/// Who speaks, and the producer of its events: the token's agent and no other; without a token, whom the request
/// names, or `local`.
fn producer(root: &Value<'_>, who: &Principal) -> Option<(Arc<str>, Kept)> {
    let named = root.member("producer");
    if named.is_some_and(|named| named.kind() != Kind::Object) {
        return None;
    }
    if let Some(named) = named
        && let Some(agent) = named.member("agent_id")
    {
        let agent = agent.text()?;
        let allowed = who.agent_id.as_deref().is_none_or(|own| own == agent);
        return if allowed { Some((Arc::from(&*agent), Kept::read(named.source()).ok()?)) } else { None };
    }
    let agent: Arc<str> = who.agent_id.clone().unwrap_or_else(|| "local".into());
    let mut producer = Scribe::default();
    producer.open_object();
    producer.key("agent_id");
    producer.text(&agent);
    for (name, value) in named.iter().flat_map(Value::members) {
        producer.copy_key(&name);
        producer.copy(&value);
    }
    producer.close_object();
    Some((agent, Kept::of(&producer.doc().ok()?)))
}

/// The event that starts a session: the request, without what is the hub's.
fn started(root: &Value<'_>) -> OwnEvent {
    OwnEvent::new(Scribe::default(), &EventType::SessionStarted, &[], |out| {
        for (name, value) in root.members() {
            if !["type", "producer"].iter().any(|ours| name.is(ours)) {
                out.copy_key(&name);
                out.copy(&value);
            }
        }
    })
}
