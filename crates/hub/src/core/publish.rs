//! Events: judged, staged, and heard once they are on disk.

use std::sync::Arc;

use aaep::check::Checked;
use aaep::consent::{Action, Call};
use aaep::event::{Event, EventType};
use aaep::json::Doc;
use aaep::rule::{Face, Finding, Findings, Severity};
use aaep::session::{Body, Session};
use aaep::{ReplyToken, SessionId};
use seal::Digest;

use super::agent::Live;
use super::ask::broken;
use super::told::{self, OwnEvent};
use super::{After, Core, Heard, TurnContext, Write};
use crate::Principal;
use crate::command::{LimitReached, Malformed, Output, Reply, RequestBody};
use crate::compose::{self, SaysoExtension, Stamp};
use crate::delivery::{Frame, Part};
use crate::watch::Note;

impl Core {
    /// `POST /agent/v1/sessions/{id}/events`: all or nothing.
    pub(super) fn publish(
        &mut self,
        who: &Principal,
        session: &SessionId,
        events: &[RequestBody],
        key: Option<&str>,
        context: &TurnContext,
    ) -> Reply {
        let keyed = key.map(|key| {
            let events = events.iter().map(RequestBody::source).collect::<Vec<_>>().join("\n");
            (key, Digest::of_all([session.as_str().as_bytes(), events.as_bytes()]))
        });
        // Before the session is looked for: what was asked may have ended it.
        if let Some(answer) = self.remembered(who, keyed.as_ref()) {
            return answer;
        }
        if self.own(who, session).is_none() {
            return Reply::NotFound;
        }
        if events.is_empty() || events.len() > self.limits.events_in_request {
            return Malformed::EventCount { most: self.limits.events_in_request }.into();
        }
        match self.emit(session, Events::FromAgent(events), context) {
            Ok(event_ids) => {
                let reply = Reply::EventsPublished { event_ids };
                self.remember(who, keyed.as_ref(), &reply, context);
                reply
            }
            Err(answer) => answer,
        }
    }

    /// Stages events of a session, all or none; returns their ids. What an agent says of itself asks nobody, and is critical
    /// only so often.
    pub(super) fn emit(
        &mut self,
        session: &SessionId,
        events: Events<'_>,
        context: &TurnContext,
    ) -> Result<Vec<Arc<str>>, Reply> {
        let (count, by_agent) = match &events {
            Events::FromAgent(bodies) => (bodies.len(), true),
            Events::Own(events) => (events.len(), false),
        };
        let mut savepoint = self.savepoint(count > 1);
        let mut ids = Vec::with_capacity(count);
        let staged = match events {
            Events::FromAgent(bodies) => bodies.iter().try_for_each(|body| {
                ids.push(self.emit_body(session, body, &mut savepoint, context)?);
                Ok::<(), Reply>(())
            }),
            Events::Own(events) => events.into_iter().try_for_each(|event| {
                ids.push(self.emit_own(session, event, Some(&mut savepoint), context)?);
                Ok(())
            }),
        };
        let staged = staged
            .and_then(|()| if by_agent { self.criticals_left(session, &savepoint, context) } else { Ok(()) });
        if staged.is_err() {
            self.roll_back(session, savepoint);
        }
        let mut over = false;
        if let Some(live) = self.sessions.get_mut(session) {
            live.lease = live.lease.max(context.now.saturating_add(self.limits.lease));
            if by_agent && staged.is_ok() {
                live.seen = Some(context.now);
            }
            over = !live.machine.is_open();
        }
        if staged.is_ok() && over {
            self.end(session, context);
        }
        staged.map(|()| ids)
    }

    /// Marks the end of what is staged so far.
    pub(super) fn savepoint(&self, has_several_events: bool) -> Savepoint {
        Savepoint {
            writes: self.staged.writes.len(),
            after: self.staged.after.len(),
            position: self.position,
            has_several_events,
            machine: None,
        }
    }

    /// Undoes what was staged for a session since the savepoint.
    pub(super) fn roll_back(&mut self, session: &SessionId, savepoint: Savepoint) {
        self.staged.writes.truncate(savepoint.writes);
        for undone in self.staged.after.split_off(savepoint.after) {
            if let After::Decided(decided) = undone {
                self.questions.abandon(decided);
            }
        }
        self.position = savepoint.position;
        if let (Some(live), Some(machine)) = (self.sessions.get_mut(session), savepoint.machine) {
            live.machine = machine;
        }
    }

    /// Whether an agent may say as much that waits for nobody as it has staged since that write.
    fn criticals_left(
        &mut self,
        session: &SessionId,
        savepoint: &Savepoint,
        context: &TurnContext,
    ) -> Result<(), Reply> {
        let new = self.staged.writes.get(savepoint.writes..).unwrap_or_default();
        let critical =
            new.iter().filter(|write| matches!(write, Write::Event { critical: true, .. })).count();
        if critical == 0 {
            return Ok(());
        }
        let agent = self.sessions.get(session).map(Live::agent_and_person).unwrap_or_default();
        let most = self.limits.criticals_per_minute;
        if !self.criticals.take(&agent, critical, most, context.now) {
            return Err(LimitReached::CriticalsPerMinute { most }.into());
        }
        Ok(())
    }

    /// Stages one event that an agent has said.
    fn emit_body(
        &mut self,
        session: &SessionId,
        body: &RequestBody,
        savepoint: &mut Savepoint,
        context: &TurnContext,
    ) -> Result<Arc<str>, Reply> {
        let mut tape = std::mem::take(&mut self.room.said);
        let doc = body.doc(&mut tape)?;
        let id = if let Some(in_hubs_words) = told::state_without_words(&doc, &mut self.room) {
            self.emit_own(session, in_hubs_words, Some(savepoint), context)?
        } else {
            let said = Said { doc: &doc, source: Source::Agent, extension: None };
            self.emit_doc(session, &said, Some(savepoint), context)?
        };
        self.room.said = tape;
        Ok(id)
    }

    /// Stages one event of the hub's own making.
    pub(super) fn emit_own(
        &mut self,
        session: &SessionId,
        event: OwnEvent,
        savepoint: Option<&mut Savepoint>,
        context: &TurnContext,
    ) -> Result<Arc<str>, Reply> {
        let doc = event.payload.doc()?;
        let said = Said { doc: &doc, source: Source::Hub, extension: event.extension.as_ref() };
        let id = self.emit_doc(session, &said, savepoint, context)?;
        self.room.keep_scribe(event.payload);
        Ok(id)
    }

    /// Stages one event that was read already.
    pub(super) fn emit_doc(
        &mut self,
        session: &SessionId,
        said: &Said<'_>,
        savepoint: Option<&mut Savepoint>,
        context: &TurnContext,
    ) -> Result<Arc<str>, Reply> {
        let id = self.new_id("evt_", context);
        let Some(live) = self.sessions.get_mut(session) else { return Err(Reply::NotFound) };
        // A clock that goes back does not take the session's stamps with it (§3.2.5).
        let at = context.now.max(live.stamped);
        let mut event = std::mem::take(&mut self.room.event);
        let timestamp = self.room.stamp(at);
        let stamp = Stamp {
            event_id: &id,
            session_id: session.as_str(),
            timestamp,
            producer: &live.producer,
            question: match said.source {
                Source::Question(kind, token) => Some((kind, token.as_str())),
                Source::Agent | Source::Hub => None,
            },
            hints: live.hints.as_ref(),
            state: Some(live.state()),
        };
        // What binds a call to its question stands beside the payload, and is not told to listeners.
        let root = said.doc.root();
        let kind = match said.source {
            Source::Agent => said.doc.type_value().and_then(|kind| Some(EventType::of(&kind.text()?))),
            Source::Hub | Source::Question(..) => None,
        };
        // What is only published could not be answered.
        if matches!(kind, Some(EventType::AwaitingConfirmation | EventType::AwaitingClarification)) {
            return Err(Malformed::QuestionPublished.into());
        }
        let is_call = kind == Some(EventType::ToolInvoked);
        let of_call = |name| if is_call { root.member(name) } else { None };
        let token = of_call("reply_token").and_then(|token| ReplyToken::parse(&token.text()?).ok());
        let arguments = of_call("arguments").map(|arguments| arguments.source());
        let hidden: &[&str] = match said.source {
            Source::Question(..) => &["reply_token", "tool", "arguments"],
            Source::Agent if is_call => &["reply_token", "arguments"],
            Source::Agent | Source::Hub => &[],
        };
        let tool = of_call("tool").and_then(|tool| tool.text());
        let bound = match (&tool, arguments) {
            (Some(tool), Some(arguments)) => {
                let action = Action::new(tool, arguments).map_err(Malformed::Action)?;
                Some(SaysoExtension::Call { tool, digest: Some(action.digest()) })
            }
            _ => None,
        };
        let extension = said.extension.or(bound.as_ref());
        let critical =
            compose::event(&root, &stamp, extension, hidden, &mut event).map_err(Malformed::Event)?;
        let doc = event.doc()?;
        let new = New { id: &id, doc, critical, token: token.as_ref(), arguments };
        let owner = self.stage(session, &new, savepoint, context)?;
        let body = event.take(self.room.texts.pop());
        self.room.event = event;
        self.staged.writes.push(Write::Event {
            position: self.position,
            session: owner,
            event_id: id.clone(),
            at: context.now,
            critical,
            body,
        });
        Ok(id)
    }

    /// Stages an event that is the hub's own to say.
    pub(super) fn say_itself(&mut self, session: &SessionId, event: OwnEvent, context: &TurnContext) {
        let said = self.emit_own(session, event, None, context).map(drop);
        self.was_said(session, said);
    }

    /// What the hub itself had to say and was refused is lacking to everybody, so whoever runs it is told. In a session that
    /// is over there is nothing to say.
    pub(super) fn was_said(&mut self, session: &SessionId, said: Result<(), Reply>) {
        let rules = match said {
            Ok(()) | Err(Reply::NotFound) => return,
            Err(Reply::Unlawful(findings)) => findings.iter().map(|finding| finding.rule.id()).collect(),
            Err(_) => Vec::new(),
        };
        let note = Note::Unsaid { session: session.clone(), rules };
        self.staged.after.push(After::Output(Output::Note(note)));
    }

    /// Judges a whole event and stages what follows from it but its own writing; returns its session.
    fn stage(
        &mut self,
        session: &SessionId,
        new: &New<'_>,
        savepoint: Option<&mut Savepoint>,
        context: &TurnContext,
    ) -> Result<SessionId, Reply> {
        let doc = &new.doc;
        let mut findings = Findings::new(Face::Strict);
        let checked = self.validator.check(doc, &mut findings);
        let errors = |list: Vec<Finding>| -> Vec<Finding> {
            list.into_iter().filter(|finding| finding.severity == Severity::Error).collect()
        };
        if findings.has_error() {
            return Err(Reply::Unlawful(errors(findings.take())));
        }
        let Checked::Event(step) = checked else { return Err(Malformed::UnknownEvent.into()) };
        let step = step.borrow();
        let Some(live) = self.sessions.get_mut(session) else { return Err(Reply::NotFound) };
        let critical = new.critical;
        // Where nobody listens there is nobody to read it for; a question and an end are looked at again.
        let event = if needs_reading(&step.body) || self.lanes.cover(&live.agent, live.person.as_deref()) {
            Some(Event::read(doc).ok_or(Malformed::UnknownEvent)?)
        } else {
            None
        };
        let dangerous = match step.body {
            Body::ToolInvoked { high_risk, irreversible, .. } => high_risk || irreversible,
            _ => false,
        };
        if let Some(savepoint) = savepoint
            && (savepoint.has_several_events || critical || dangerous)
        {
            savepoint.keep(live);
        }
        live.machine.admit(&step).map_err(|found| Reply::Unlawful(errors(found)))?;
        live.stamped = step.at.map_or(live.stamped, |at| live.stamped.max(at.unix_millis()));
        let (id, agent, person) = (live.id.clone(), live.agent.clone(), live.person.clone());
        if let Body::ToolInvoked { tool, call, irreversible, .. } = &step.body
            && (dangerous || self.has_unused_yes(&id))
        {
            let call = Call {
                session: &id,
                token: new.token,
                tool,
                call: *call,
                arguments: new.arguments,
                irreversible: *irreversible,
            };
            if dangerous {
                let decided = self.questions.spend(&call).map_err(|why| {
                    Reply::Unlawful(vec![broken(why.rule(*irreversible), "/tool", why.to_string())])
                })?;
                self.decide(decided, context);
            } else {
                self.note_use(&call);
            }
        }
        self.position += 1;
        if let Some(event) = event {
            // What leads into a question goes in front of it, and so overtakes with it (design, decision 10).
            let part = Part::of(&event);
            let frame = Frame::event(new.id, doc.source(), self.position, critical || part == Part::Question);
            let heard = Heard { event, frame: Arc::new(frame.of_session(session.as_str(), part)) };
            self.staged.after.push(After::Event { heard: Arc::new(heard), agent, person });
        }
        Ok(id)
    }

    /// A session that has said its last word is over: its questions are refused, and it is forgotten.
    fn end(&mut self, session: &SessionId, context: &TurnContext) {
        let Some(live) = self.sessions.get(session) else { return };
        let decided = self.questions.end(&live.id.clone(), context.now);
        self.decide(decided, context);
        self.staged.writes.push(Write::SessionEnded { id: session.clone(), at: context.now });
        self.forget_session(session);
        self.tell_session_end(session, context);
    }
}

/// Events of one request, without their envelopes.
pub(super) enum Events<'e> {
    /// What an agent says, as it came.
    FromAgent(&'e [RequestBody]),
    /// What the hub writes itself.
    Own(Vec<OwnEvent>),
}

/// An event without its envelope.
pub(super) struct Said<'s> {
    pub(super) doc: &'s Doc<'s>,
    pub(super) source: Source<'s>,
    /// What the hub adds.
    pub(super) extension: Option<&'s SaysoExtension<'s>>,
}

/// Where an event comes from.
#[derive(Clone, Copy)]
pub(super) enum Source<'s> {
    /// An agent published it.
    Agent,
    /// The hub wrote it.
    Hub,
    /// An agent asks; the type and the token are the hub's to set.
    Question(&'s EventType, &'s ReplyToken),
}

/// A whole event that is to be judged.
struct New<'n> {
    id: &'n Arc<str>,
    doc: Doc<'n>,
    critical: bool,
    /// The consent that a call spends, and its arguments, where they are said.
    token: Option<&'n ReplyToken>,
    arguments: Option<&'n str>,
}

/// The end of what was staged before a request, so that a refused one leaves nothing behind.
pub(super) struct Savepoint {
    writes: usize,
    after: usize,
    position: u64,
    /// There is more than one event, and each may be refused.
    has_several_events: bool,
    /// The session's machine, where an event may be refused after the machine has taken it or one before it.
    machine: Option<Session>,
}

impl Savepoint {
    pub(super) fn keep(&mut self, live: &Live) {
        self.machine.get_or_insert_with(|| live.machine.clone());
    }
}

fn needs_reading(body: &Body<&str>) -> bool {
    matches!(
        body,
        Body::Confirmation(_) | Body::Clarification(_) | Body::Completed | Body::Errored | Body::Cancelled
    )
}
