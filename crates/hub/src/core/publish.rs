//! Events: judged, staged, and heard once they are on disk.

use std::sync::Arc;

use aaep::check::Checked;
use aaep::consent::{Action, Call};
use aaep::event::{Event, EventType, State};
use aaep::json::{Doc, Writer};
use aaep::rule::{Face, Finding, Findings, Severity};
use aaep::session::{Body, Session, Step};
use aaep::{ReplyToken, SessionId};
use seal::{Digest, UnixMillis};

use super::agent::{Live, OpenOutputs, OpenTools};
use super::ask::{binding, broken};
use super::told;
use super::{After, Core, Heard, Write};
use crate::Principal;
use crate::command::{Answer, Output};
use crate::compose::{self, SAYSO_EXTENSION, Stamp};
use crate::delivery::{Frame, Part};
use crate::watch::Note;

impl Core {
    /// `POST /agent/v1/sessions/{id}/events`: all or nothing.
    pub(super) fn publish(
        &mut self,
        who: &Principal,
        session: &str,
        events: &[String],
        key: Option<&str>,
        now: UnixMillis,
    ) -> Answer {
        let keyed = key.map(|key| (key, Digest::of_all([session.as_bytes(), events.join("\n").as_bytes()])));
        // Before the session is looked for: what was asked may have ended it.
        if let Some(answer) = self.remembered(who, keyed.as_ref(), Answer::Found) {
            return answer;
        }
        if self.own(who, session).is_none() {
            return Answer::NotFound;
        }
        if events.is_empty() || events.len() > self.limits.events_in_request {
            return Answer::Bad(format!("a request has 1 to {} events", self.limits.events_in_request));
        }
        match self.emit(session, events, true, now) {
            Ok(ids) => {
                let answer = published(&ids);
                self.room.ids = ids;
                self.remember(who, keyed.as_ref(), &answer, now);
                Answer::Found(answer)
            }
            Err(answer) => answer,
        }
    }

    /// Stages events of a session, all or none; returns their ids. What an agent says of itself asks nobody, and is critical
    /// only so often.
    pub(super) fn emit(
        &mut self,
        session: &str,
        events: &[String],
        by_agent: bool,
        now: UnixMillis,
    ) -> Result<Vec<Arc<str>>, Answer> {
        let (writes, after, position) = (self.staged.writes.len(), self.staged.after.len(), self.position);
        let mut before = Before { several: events.len() > 1, was: None };
        let staged = self.stage_all(session, events, by_agent, &mut before, now);
        let staged = staged.and_then(|ids| self.criticals_left(session, by_agent, writes, now).map(|()| ids));
        if staged.is_err() {
            self.staged.writes.truncate(writes);
            for undone in self.staged.after.split_off(after) {
                if let After::Decided(decided) = undone {
                    self.questions.abandon(decided);
                }
            }
            self.position = position;
        }
        let mut over = false;
        if let Some(live) = self.sessions.get_mut(session) {
            if let (Err(_), Some(was)) = (&staged, before.was) {
                (live.machine, live.state, live.tools, live.outputs) = was;
            }
            live.lease = live.lease.max(now.saturating_add(self.limits.lease));
            if by_agent && staged.is_ok() {
                live.seen = Some(now);
            }
            over = !live.machine.is_open();
        }
        if staged.is_ok() && over {
            self.end(session, now);
        }
        staged
    }

    fn stage_all(
        &mut self,
        session: &str,
        events: &[String],
        by_agent: bool,
        before: &mut Before,
        now: UnixMillis,
    ) -> Result<Vec<Arc<str>>, Answer> {
        let mut ids = std::mem::take(&mut self.room.ids);
        ids.clear();
        for event in events {
            let hubs_words = by_agent.then(|| told::state_without_words(event)).flatten();
            let words: &[_] = if hubs_words.is_some() || !by_agent && told::is_state(event) {
                &[(SAYSO_EXTENSION, told::HUBS_WORDS)]
            } else {
                &[]
            };
            let event = hubs_words.as_ref().unwrap_or(event);
            ids.push(self.emit_said(session, event, words, by_agent, Some(before), now)?);
        }
        Ok(ids)
    }

    /// Whether an agent may say as much that waits for nobody as it has staged since that write.
    fn criticals_left(
        &mut self,
        session: &str,
        by_agent: bool,
        since: usize,
        now: UnixMillis,
    ) -> Result<(), Answer> {
        let new = self.staged.writes.get(since..).unwrap_or_default();
        let critical =
            new.iter().filter(|write| matches!(write, Write::Event { critical: true, .. })).count();
        if !by_agent || critical == 0 {
            return Ok(());
        }
        let agent = self.sessions.get(session).map(Live::agent_and_person).unwrap_or_default();
        let most = self.limits.criticals_per_minute;
        if !self.criticals.take(&agent, critical, most, now) {
            let why =
                format!("An agent may publish {most} critical events in a minute; nothing was applied.");
            return Err(Answer::Full(why));
        }
        Ok(())
    }

    /// Stages one event of the hub's own making.
    pub(super) fn emit_one(
        &mut self,
        session: &str,
        said: &str,
        extra: &[(&str, &str)],
        now: UnixMillis,
    ) -> Result<Arc<str>, Answer> {
        self.emit_said(session, said, extra, false, None, now)
    }

    fn emit_said(
        &mut self,
        session: &str,
        said: &str,
        extra: &[(&str, &str)],
        by_agent: bool,
        before: Option<&mut Before>,
        now: UnixMillis,
    ) -> Result<Arc<str>, Answer> {
        let id = self.new_id("evt_", now);
        let Some(live) = self.sessions.get_mut(session) else { return Err(Answer::NotFound) };
        // A clock that goes back does not take the session's stamps with it (§3.2.5).
        let at = now.max(live.stamped);
        let mut tape = std::mem::take(&mut self.room.said);
        let mut event = std::mem::take(&mut self.room.event);
        let timestamp = self.room.stamp(at);
        let doc = tape.read(said).map_err(|error| Answer::Bad(format!("not JSON: {error}")))?;
        let stamp = Stamp {
            event_id: &id,
            session_id: session,
            timestamp,
            producer: &live.producer,
            hints: live.hints.as_ref(),
            state: Some(&live.state),
        };
        // What binds a call to its question stands beside the payload, and is not told to listeners.
        let root = doc.root();
        let kind = doc.type_value().and_then(|kind| Some(EventType::of(&kind.text()?)));
        // What is only published could not be answered.
        if by_agent
            && matches!(kind, Some(EventType::AwaitingConfirmation | EventType::AwaitingClarification))
        {
            return Err(Answer::Bad("a question is asked as a confirmation or a clarification".to_owned()));
        }
        let is_call = kind == Some(EventType::ToolInvoked);
        let of_call = |name| if is_call { root.member(name) } else { None };
        let token = of_call("reply_token").and_then(|token| ReplyToken::parse(&token.text()?).ok());
        let arguments = of_call("arguments").map(|arguments| arguments.source());
        let hidden: &[&str] = if is_call { &["reply_token", "arguments"] } else { &[] };
        let bound = match (of_call("tool").and_then(|tool| tool.text()), arguments) {
            (Some(tool), Some(arguments)) => {
                let action = Action::new(&tool, arguments).map_err(|why| Answer::Bad(why.to_string()))?;
                Some(binding(&tool, Some(&action.digest())))
            }
            _ => None,
        };
        let mut added = extra.to_vec();
        added.extend(bound.iter().map(|json| (SAYSO_EXTENSION, json.as_str())));
        let critical = compose::event(&root, &stamp, &added, hidden, &mut event)
            .map_err(|why| Answer::Bad(why.to_string()))?;
        let doc = event.doc().map_err(|error| Answer::Bad(format!("not JSON: {error}")))?;
        let new = New { id: &id, doc, critical, token: token.as_ref(), arguments };
        let owner = self.stage(session, &new, before, now)?;
        let body = event.take(self.room.texts.pop());
        (self.room.said, self.room.event) = (tape, event);
        self.staged.writes.push(Write::Event {
            position: self.position,
            session: owner,
            event_id: id.clone(),
            at: now,
            critical,
            body,
        });
        Ok(id)
    }

    /// Stages an event that is the hub's own to say.
    pub(super) fn say_itself(&mut self, session: &str, said: &str, extra: &[(&str, &str)], now: UnixMillis) {
        let said = self.emit_one(session, said, extra, now).map(drop);
        self.was_said(session, said);
    }

    /// What the hub itself had to say and was refused is lacking to everybody, so whoever runs it is told. In a session that
    /// is over there is nothing to say.
    pub(super) fn was_said(&mut self, session: &str, said: Result<(), Answer>) {
        let rules = match said {
            Ok(()) | Err(Answer::NotFound) => return,
            Err(Answer::Unlawful(findings)) => findings.iter().map(|finding| finding.rule.id()).collect(),
            Err(_) => Vec::new(),
        };
        let note = Note::Unsaid { session: session.into(), rules };
        self.staged.after.push(After::Output(Output::Note(note)));
    }

    /// Judges a whole event and stages what follows from it but its own writing; returns its session.
    fn stage(
        &mut self,
        session: &str,
        new: &New<'_>,
        before: Option<&mut Before>,
        now: UnixMillis,
    ) -> Result<SessionId, Answer> {
        let doc = &new.doc;
        let mut findings = Findings::new(Face::Strict);
        let checked = self.validator.check(doc, &mut findings);
        let errors = |list: Vec<Finding>| -> Vec<Finding> {
            list.into_iter().filter(|finding| finding.severity == Severity::Error).collect()
        };
        if findings.has_error() {
            return Err(Answer::Unlawful(errors(findings.take())));
        }
        let Checked::Event(step) = checked else { return Err(Answer::Bad("not an event".to_owned())) };
        let step = step.borrow();
        let Some(live) = self.sessions.get_mut(session) else { return Err(Answer::NotFound) };
        let critical = new.critical;
        // Where nobody listens there is nobody to read it for; a question and an end are looked at again.
        let event = if needs_reading(&step.body) || self.lanes.cover(&live.agent, live.person.as_deref()) {
            Some(Event::read(doc).ok_or_else(|| Answer::Bad("not an event".to_owned()))?)
        } else {
            None
        };
        let dangerous = match step.body {
            Body::ToolInvoked { high_risk, irreversible, .. } => high_risk || irreversible,
            _ => false,
        };
        if let Some(before) = before
            && (before.several || critical || dangerous)
        {
            before.keep(live);
        }
        live.machine.admit(&step).map_err(|found| Answer::Unlawful(errors(found)))?;
        live.note(&step);
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
                    Answer::Unlawful(vec![broken(why.rule(*irreversible), "/tool", why.to_string())])
                })?;
                self.decide(decided, now);
            } else {
                self.note_use(&call);
            }
        }
        self.position += 1;
        if let Some(event) = event {
            // What leads into a question goes in front of it, and so overtakes with it (design, decision 10).
            let part = Part::of(&event);
            let frame = Frame::event(new.id, doc.source(), self.position, critical || part == Part::Question);
            let heard = Heard { event, frame: Arc::new(frame.of_session(session, part)) };
            self.staged.after.push(After::Event { heard: Arc::new(heard), agent, person });
        }
        Ok(id)
    }

    /// A session that has said its last word is over: its questions are refused, and it is forgotten.
    fn end(&mut self, session: &str, now: UnixMillis) {
        let Some(live) = self.sessions.get(session) else { return };
        let decided = self.questions.end(&live.id.clone(), now);
        self.decide(decided, now);
        self.staged.writes.push(Write::SessionEnded { id: session.into(), at: now });
        self.forget_session(session);
        self.tell_session_end(session);
    }
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

/// A session as it was before a request, if that may have to be taken back after an event of it was taken.
struct Before {
    /// There is more than one event, and each may be refused.
    several: bool,
    was: Option<(Session, State, OpenTools, OpenOutputs)>,
}

impl Before {
    fn keep(&mut self, live: &Live) {
        if self.was.is_none() {
            let Live { machine, state, tools, outputs, .. } = live;
            self.was = Some((machine.clone(), state.clone(), tools.clone(), outputs.clone()));
        }
    }
}

/// What is answered to what was published.
pub(super) fn published(ids: &[Arc<str>]) -> String {
    let mut writer = Writer::with_capacity(20 + 40 * ids.len());
    writer.open_object();
    writer.key("event_ids");
    writer.open_array();
    for id in ids {
        writer.text(id);
    }
    writer.close_array();
    writer.close_object();
    writer.finish()
}

fn needs_reading(body: &Body<&str>) -> bool {
    matches!(
        body,
        Body::Confirmation(_) | Body::Clarification(_) | Body::Completed | Body::Errored | Body::Cancelled
    )
}

impl Live {
    /// What the hub itself remembers of an event.
    pub(super) fn note(&mut self, step: &Step<&str>) {
        self.stamped = step.at.map_or(self.stamped, |at| self.stamped.max(at.unix_millis()));
        match &step.body {
            Body::State { to, .. } => self.state = to.clone(),
            Body::ToolInvoked { tool, call, .. } => {
                self.tools.insert(((*tool).into(), call.map(Into::into)));
            }
            Body::Output { output, position, length, complete, .. } => {
                let id = output.map(Box::from);
                if *complete {
                    self.outputs.remove(&id);
                } else {
                    self.outputs.insert(id, position + length);
                }
            }
            Body::ToolCompleted { tool, call } => {
                let known = (Box::from(*tool), call.map(Box::from));
                if !self.tools.remove(&known) {
                    let other = self.tools.iter().find(|(name, _)| **name == **tool).cloned();
                    if let Some(other) = other {
                        self.tools.remove(&other);
                    }
                }
            }
            _ => {}
        }
    }
}
