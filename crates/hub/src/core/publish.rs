//! Events: judged, staged, and heard once they are on disk.

use std::sync::Arc;

use aaep::check::Checked;
use aaep::consent::{Action, Call};
use aaep::event::{Event, EventType, Urgency};
use aaep::json::Value;
use aaep::rule::{Face, Finding, Findings, Severity};
use aaep::session::{Body, Step};
use aaep::{ReplyToken, Timestamp};
use seal::Digest;

use super::agent::Live;
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
        now: i64,
    ) -> Answer {
        let keyed = key.map(|key| (key, Digest::of_all([session.as_bytes(), events.join("\n").as_bytes()])));
        // Before the session is looked for: what was asked may have ended it.
        if let Some(answer) = self.remembered(who, keyed.as_ref(), Answer::Found) {
            return answer;
        }
        let Some(agent) = self.own(who, session).map(|live| live.agent_and_person()) else {
            return Answer::NotFound;
        };
        if events.is_empty() || events.len() > self.limits.events_in_request {
            return Answer::Bad(format!("a request has 1 to {} events", self.limits.events_in_request));
        }
        match self.emit(session, events, Some(&agent), now) {
            Ok(ids) => {
                let ids: Vec<_> = ids.iter().map(|id| format!("\"{id}\"")).collect();
                let answer = format!("{{\"event_ids\":[{}]}}", ids.join(","));
                self.remember(who, keyed.as_ref(), &answer, now);
                Answer::Found(answer)
            }
            Err(answer) => answer,
        }
    }

    /// Stages events of a session, all or none; returns their ids. What an `agent` says of itself asks nobody, and is critical
    /// only so often.
    pub(super) fn emit(
        &mut self,
        session: &str,
        events: &[String],
        agent: Option<&str>,
        now: i64,
    ) -> Result<Vec<String>, Answer> {
        let Some(live) = self.sessions.get(session) else { return Err(Answer::NotFound) };
        let before = (live.machine.clone(), live.state.clone(), live.tools.clone(), live.outputs.clone());
        let (writes, after, position) = (self.staged.writes.len(), self.staged.after.len(), self.position);
        let staged = self.stage_all(session, events, agent, now);
        let staged = staged.and_then(|ids| self.criticals_left(agent, writes, now).map(|()| ids));
        let ids = match staged {
            Ok(ids) => ids,
            Err(answer) => {
                self.staged.writes.truncate(writes);
                for undone in self.staged.after.split_off(after) {
                    if let After::Decided(decided) = undone {
                        self.questions.abandon(decided);
                    }
                }
                self.position = position;
                if let Some(live) = self.sessions.get_mut(session) {
                    (live.machine, live.state, live.tools, live.outputs) = before;
                    live.lease = live.lease.max(now.saturating_add(self.limits.lease));
                }
                return Err(answer);
            }
        };
        if let Some(live) = self.sessions.get_mut(session) {
            live.lease = live.lease.max(now.saturating_add(self.limits.lease));
            if agent.is_some() {
                live.seen = Some(now);
            }
        }
        self.end_if_over(session, now);
        Ok(ids)
    }

    fn stage_all(
        &mut self,
        session: &str,
        events: &[String],
        agent: Option<&str>,
        now: i64,
    ) -> Result<Vec<String>, Answer> {
        let mut ids = Vec::with_capacity(events.len());
        for event in events {
            let words: &[_] = match agent {
                None if told::is_state(event) => &[(SAYSO_EXTENSION, told::HUBS_WORDS)],
                _ => &[],
            };
            ids.push(self.emit_said(session, event, words, agent.is_some(), now)?);
        }
        Ok(ids)
    }

    /// Whether an agent may say as much that waits for nobody as it has staged since that write.
    fn criticals_left(&mut self, agent: Option<&str>, since: usize, now: i64) -> Result<(), Answer> {
        let new = self.staged.writes.get(since..).unwrap_or_default();
        let critical =
            new.iter().filter(|write| matches!(write, Write::Event { critical: true, .. })).count();
        let most = self.limits.criticals_per_minute;
        if agent.is_some_and(|agent| !self.criticals.take(agent, critical, most, now)) {
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
        now: i64,
    ) -> Result<String, Answer> {
        self.emit_said(session, said, extra, false, now)
    }

    fn emit_said(
        &mut self,
        session: &str,
        said: &str,
        extra: &[(&str, &str)],
        by_agent: bool,
        now: i64,
    ) -> Result<String, Answer> {
        let id = self.new_id("evt_", now);
        let Some(live) = self.sessions.get_mut(session) else { return Err(Answer::NotFound) };
        // A clock that goes back does not take the session's stamps with it (§3.2.5).
        let at = now.max(live.stamped);
        let timestamp = Timestamp::from_unix_millis(at).map(|at| at.to_string()).unwrap_or_default();
        let mut tape = std::mem::take(&mut self.tapes.0);
        let doc = tape.read(said).map_err(|error| Answer::Bad(format!("not JSON: {error}")))?;
        let stamp = Stamp {
            event_id: &id,
            session_id: session,
            timestamp: &timestamp,
            producer: &live.producer,
            hints: live.hints.as_deref(),
            state: Some(&live.state),
        };
        // What binds a call to its question stands beside the payload, and is not told to listeners.
        let root = doc.root();
        let kind = type_of(&root);
        // What is only published could not be answered.
        if by_agent
            && matches!(kind, Some(EventType::AwaitingConfirmation | EventType::AwaitingClarification))
        {
            return Err(Answer::Bad("a question is asked as a confirmation or a clarification".to_owned()));
        }
        let token = root.member("reply_token").and_then(|token| ReplyToken::parse(&token.text()?).ok());
        let is_call = kind == Some(EventType::ToolInvoked);
        let arguments = root.member("arguments").map(|arguments| arguments.source().to_owned());
        let hidden: &[&str] = if is_call { &["reply_token", "arguments"] } else { &[] };
        let bound = match (is_call, root.member("tool").and_then(|tool| tool.text()), &arguments) {
            (true, Some(tool), Some(arguments)) => {
                let action = Action::new(&tool, arguments).map_err(|why| Answer::Bad(why.to_string()))?;
                Some(binding(&tool, Some(&action.digest())))
            }
            _ => None,
        };
        let mut added = extra.to_vec();
        added.extend(bound.iter().map(|json| (SAYSO_EXTENSION, json.as_str())));
        let text =
            compose::event(&root, &stamp, &added, hidden).map_err(|why| Answer::Bad(why.to_string()))?;
        self.tapes.0 = tape;
        self.stage(session, &id, &text, token.as_ref(), arguments.as_deref(), now)?;
        Ok(id)
    }

    /// Stages an event that is the hub's own to say.
    pub(super) fn say_itself(&mut self, session: &str, said: &str, extra: &[(&str, &str)], now: i64) {
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

    /// Judges a whole event and stages it.
    fn stage(
        &mut self,
        session: &str,
        id: &str,
        text: &str,
        token: Option<&ReplyToken>,
        arguments: Option<&str>,
        now: i64,
    ) -> Result<(), Answer> {
        let mut tape = std::mem::take(&mut self.tapes.1);
        let doc = tape.read(text).map_err(|error| Answer::Bad(format!("not JSON: {error}")))?;
        let mut findings = Findings::new(Face::Strict);
        let checked = self.validator.check(&doc, &mut findings);
        let errors = |list: Vec<Finding>| -> Vec<Finding> {
            list.into_iter().filter(|finding| finding.severity == Severity::Error).collect()
        };
        if findings.has_error() {
            return Err(Answer::Unlawful(errors(findings.take())));
        }
        let Checked::Event(step) = checked else { return Err(Answer::Bad("not an event".to_owned())) };
        let step = step.borrow();
        let Some(live) = self.sessions.get_mut(session) else { return Err(Answer::NotFound) };
        live.machine.admit(&step).map_err(|found| Answer::Unlawful(errors(found)))?;
        live.note(&step);
        let Some(event) = Event::read(&doc) else { return Err(Answer::Bad("not an event".to_owned())) };
        if let Body::ToolInvoked { tool, call, high_risk, irreversible, .. } = &step.body
            && (*high_risk || *irreversible)
        {
            let call =
                Call { session: &live.id, token, tool, call: *call, arguments, irreversible: *irreversible };
            let decided = self.questions.spend(&call).map_err(|why| {
                Answer::Unlawful(vec![broken(why.rule(*irreversible), "/tool", why.to_string())])
            })?;
            self.decide(decided, now);
        }
        let critical =
            event.envelope.event_type.is_critical() || event.envelope.urgency == Some(Urgency::Critical);
        self.position += 1;
        let body: Arc<str> = text.into();
        // What leads into a question goes in front of it, and so overtakes with it (design, decision 10).
        let part = Part::of(&event);
        let frame = Frame::event(id, &body, self.position, critical || part == Part::Question);
        let frame = frame.of_session(session, part);
        let frame = Arc::new(frame);
        self.staged.writes.push(Write::Event {
            position: self.position,
            session: session.into(),
            event_id: id.into(),
            at: now,
            critical,
            body,
        });
        let (agent, person) = match self.sessions.get(session) {
            Some(live) => (live.agent.clone(), live.person.clone()),
            None => return Err(Answer::NotFound),
        };
        self.staged.after.push(After::Event { heard: Arc::new(Heard { event, frame }), agent, person });
        self.tapes.1 = tape;
        Ok(())
    }

    /// A session that has said its last word is over: its questions are refused, and it is forgotten.
    fn end_if_over(&mut self, session: &str, now: i64) {
        let Some(live) = self.sessions.get(session).filter(|live| !live.machine.is_open()) else { return };
        let decided = self.questions.end(&live.id.clone(), now);
        self.decide(decided, now);
        self.staged.writes.push(Write::SessionEnded { id: session.into(), at: now });
        self.forget_session(session);
        self.tell_session_end(session);
    }
}

/// The type of an event, however it is spelled.
fn type_of(event: &Value<'_>) -> Option<EventType> {
    Some(EventType::of(&event.member("type")?.text()?))
}

impl Live {
    /// What the hub itself remembers of an event.
    pub(super) fn note(&mut self, step: &Step<&str>) {
        self.stamped = step.at.map_or(self.stamped, |at| self.stamped.max(at.unix_millis()));
        match &step.body {
            Body::State { to, .. } => self.state = (*to).into(),
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
