//! Sessions as agents start and leave them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aaep::event::State;
use aaep::json::{Kept, Kind, Tape, Value, Writer};
use aaep::session::Session;
use aaep::{ReplyToken, SessionId};
use seal::{Digest, UnixMillis};

use super::tongues::End;
use super::{Core, Write};
use crate::command::Answer;
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
    pub(super) state: State,
    /// The latest timestamp of its events, in milliseconds since 1970.
    pub(super) stamped: UnixMillis,
    /// When the agent counts as gone, if nobody follows the session on a line. It only ever grows.
    pub(super) lease: UnixMillis,
    /// When its agent was there last without a line, if that is known and it has not gone since.
    pub(super) seen: Option<UnixMillis>,
    /// The time at which it is looked at next.
    pub(super) looked_at: UnixMillis,
    /// Calls that are open: tool and call id.
    pub(super) tools: OpenTools,
    /// Outputs that are open, and how many code points each has.
    pub(super) outputs: OpenOutputs,
    /// Consents on which something was done that did not need them.
    pub(super) used: Vec<ReplyToken>,
}

pub(super) type OpenTools = BTreeSet<(Box<str>, Option<Box<str>>)>;
pub(super) type OpenOutputs = BTreeMap<Option<Box<str>>, u64>;

/// A request's idempotency key, and the digest of what is asked with it.
pub(super) type Keyed<'k> = (&'k str, Digest);

impl Core {
    /// `POST /agent/v1/sessions`
    pub(super) fn start(
        &mut self,
        who: &Principal,
        text: &str,
        key: Option<&str>,
        now: UnixMillis,
    ) -> Answer {
        if !who.speaks() {
            return Answer::Forbidden;
        }
        let keyed = key.map(|key| (key, Digest::of(text.as_bytes())));
        if let Some(answer) = self.remembered(who, keyed.as_ref(), Answer::Made) {
            return answer;
        }
        if self.sessions.len() >= self.limits.sessions {
            return Answer::Full("too many sessions are open".to_owned());
        }
        let mut tape = Tape::default();
        let doc = match tape.read(text) {
            Ok(doc) if doc.root().kind() == Kind::Object => doc,
            Ok(_) => return Answer::Bad("a session is started with a JSON object".to_owned()),
            Err(error) => return Answer::Bad(format!("not JSON: {error}")),
        };
        let root = doc.root();
        let Some((agent, producer)) = producer(&root, who) else {
            return Answer::Bad("producer must be an object; an agent_id in it is the token's".to_owned());
        };
        let id = self.new_id("sess_", now);
        let Ok(session_id) = SessionId::parse(&id) else { return Answer::Bad("no id".to_owned()) };
        let person = requested_by(&root);
        let hints = root.member("localization_hints").and_then(|hints| Kept::read(hints.source()).ok());
        let live = Live {
            machine: Session::new(&id).with_max_open(self.limits.open_in_session),
            id: session_id,
            owner: who.name.clone(),
            agent,
            person,
            producer,
            hints,
            state: State::Idle,
            stamped: UnixMillis::MIN,
            lease: now.saturating_add(self.limits.lease),
            seen: Some(now),
            looked_at: now.saturating_add(self.limits.lease),
            tools: BTreeSet::new(),
            outputs: BTreeMap::new(),
            used: Vec::new(),
        };
        self.staged.writes.push(Write::SessionOpened {
            id: (*id).into(),
            agent: (&*live.agent).into(),
            principal: (&*live.owner).into(),
            lease: live.lease,
            record: live.record(),
        });
        self.leases.insert((live.lease, (*id).into()));
        self.sessions.insert((*id).into(), live);
        let event = started(&root);
        match self.emit(&id, &[event], false, now) {
            Ok(_) => {
                let answer = format!("{{\"session_id\":\"{id}\"}}");
                self.remember(who, keyed.as_ref(), &answer, now);
                Answer::Made(answer)
            }
            Err(answer) => {
                self.forget_session(&id);
                self.staged.writes.retain(
                    |write| !matches!(write, Write::SessionOpened { id: opened, .. } if **opened == *id),
                );
                answer
            }
        }
    }

    /// A session is no more.
    pub(super) fn forget_session(&mut self, id: &str) {
        if let Some(live) = self.sessions.remove(id) {
            self.leases.remove(&(live.looked_at, id.into()));
        }
    }

    /// The session, if it is this one's.
    pub(super) fn own(&mut self, who: &Principal, session: &str) -> Option<&mut Live> {
        self.sessions.get_mut(session).filter(|live| who.speaks() && *live.owner == *who.name)
    }

    /// An agent that is gone has its session ended for it (design, decision 16).
    pub(super) fn end_leases(&mut self, now: UnixMillis) {
        let mut due = Vec::new();
        while self.leases.first().is_some_and(|(at, _)| *at <= now)
            && let Some((_, id)) = self.leases.pop_first()
        {
            due.push(id);
        }
        for id in due {
            let Some(live) = self.sessions.get_mut(&id) else { continue };
            if live.lease <= now && self.lines.of(&id).is_empty() {
                self.end_for_it(&id, now);
            }
            let Some(live) = self.sessions.get_mut(&id) else { continue };
            if live.lease <= now {
                // A line keeps it alive; or something stands in the way of a proper end, and it is tried again later.
                live.lease = now.saturating_add(self.limits.lease.max(1));
            }
            live.looked_at = live.lease;
            self.leases.insert((live.lease, id));
        }
    }

    /// A line is gone: what it alone kept alive has one more lease.
    pub(super) fn hung_up(&mut self, line: LineId, now: UnixMillis) {
        let lease = now.saturating_add(self.limits.lease);
        for session in self.lines.hang_up(line) {
            if let Some(live) = self.sessions.get_mut(&session) {
                live.lease = live.lease.max(lease);
                live.seen = None;
            }
        }
    }

    /// Ends a session for its agent: what is open in it is closed first, for else its end would not be lawful.
    pub(super) fn end_with(&mut self, id: &str, end: End, now: UnixMillis) {
        let Some(live) = self.sessions.get(id) else { return };
        let mut events: Vec<String> =
            live.tools.iter().map(|(tool, call)| end.of_tool(tool, call.as_deref())).collect();
        events.extend(live.outputs.iter().map(|(id, position)| closed_output(id.as_deref(), *position)));
        events.push(end.last());
        let said = self.emit(id, &events, false, now).map(drop);
        self.was_said(id, said);
    }

    /// What was answered to this key before, if it was used: the same `again`.
    pub(super) fn remembered(
        &mut self,
        who: &Principal,
        keyed: Option<&Keyed<'_>>,
        again: fn(String) -> Answer,
    ) -> Option<Answer> {
        let (key, request) = keyed?;
        let same = |digest: &[u8]| digest == request.as_bytes().as_slice();
        for write in &self.staged.writes {
            if let Write::Idempotent { principal, key: used, request, response, .. } = write
                && (**principal == *who.name && **used == **key)
            {
                return Some(if same(request) { again(response.clone()) } else { Answer::Conflict });
            }
        }
        match self.journal.idempotent(&who.name, key) {
            Ok(None) => None,
            Ok(Some(known)) if same(&known.request) => {
                Some(again(String::from_utf8_lossy(&known.response).into_owned()))
            }
            Ok(Some(_)) => Some(Answer::Conflict),
            Err(error) => Some(Answer::Unavailable(error.to_string())),
        }
    }

    pub(super) fn remember(
        &mut self,
        who: &Principal,
        keyed: Option<&Keyed<'_>>,
        answer: &str,
        now: UnixMillis,
    ) {
        if let Some((key, request)) = keyed {
            self.staged.writes.push(Write::Idempotent {
                principal: (&*who.name).into(),
                key: (*key).into(),
                request: request.as_bytes().to_vec(),
                response: answer.to_owned(),
                at: now,
            });
        }
    }
}

impl Live {
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
            state: State::Idle,
            stamped: UnixMillis::MIN,
            lease,
            seen: None,
            looked_at: lease,
            tools: BTreeSet::new(),
            outputs: BTreeMap::new(),
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
    let mut writer = Writer::default();
    writer.open_object();
    writer.key("agent_id");
    writer.text(&agent);
    for (name, value) in named.iter().flat_map(Value::members) {
        writer.key(&name.text().unwrap_or_default());
        writer.raw(value.source());
    }
    writer.close_object();
    Some((agent, Kept::read(&writer.finish()).ok()?))
}

/// The event that starts a session: the request, without what is the hub's.
fn started(root: &Value<'_>) -> String {
    let mut writer = Writer::default();
    writer.open_object();
    writer.key("type");
    writer.text("aaep:agent.session.started");
    for (name, value) in root.members() {
        if !["type", "producer"].iter().any(|ours| name.is(ours)) {
            writer.key(&name.text().unwrap_or_default());
            writer.raw(value.source());
        }
    }
    writer.close_object();
    writer.finish()
}

fn closed_output(id: Option<&str>, position: u64) -> String {
    let mut writer = Writer::default();
    writer.open_object();
    writer.key("type");
    writer.text("aaep:agent.output.streaming");
    if let Some(id) = id {
        writer.key("output_id");
        writer.text(id);
    }
    writer.key("chunk");
    writer.text("");
    writer.key("position");
    writer.integer(i64::try_from(position).unwrap_or(i64::MAX));
    writer.key("complete");
    writer.boolean(true);
    writer.key("coalesce_hint");
    writer.text("completion");
    writer.key("urgency");
    writer.text("normal");
    english(&mut writer);
    writer.close_object();
    writer.finish()
}

/// What the hub itself says is in English.
fn english(writer: &mut Writer) {
    writer.key("localization_hints");
    writer.raw(r#"{"primary_language":"en"}"#);
}
