//! Questions: asked, answered, waited for.

use aaep::consent::{Action, Answer as Said, By, Decided, NotAsked, Outcome, Resolution, Status};
use aaep::event::{Decision, Event, State};
use aaep::json::{Kind, Tape, Writer};
use aaep::message::Response;
use aaep::rule::Finding;
use aaep::{ReplyToken, SubscriptionId};
use seal::{Digest, UnixMillis};

use super::told::{self, Told};
use super::tongues::{self, End};
use super::{After, Core, Write};
use crate::Principal;
use crate::command::{Answer, Output, RequestId};
use crate::compose::SAYSO_EXTENSION;

/// What an agent is told of a question that is open.
const PENDING: &str = r#"{"status":"pending"}"#;

impl Core {
    /// `POST /agent/v1/sessions/{id}/confirmations` and `…/clarifications`
    pub(super) fn ask(
        &mut self,
        who: &Principal,
        session: &str,
        text: &str,
        clarify: bool,
        key: Option<&str>,
        now: UnixMillis,
    ) -> Answer {
        let keyed =
            key.map(|key| (key, Digest::of_all([session.as_bytes(), text.as_bytes(), &[u8::from(clarify)]])));
        if let Some(answer) = self.remembered(who, keyed.as_ref(), Answer::Made) {
            return answer;
        }
        let Some(live) = self.own(who, session) else { return Answer::NotFound };
        live.seen = Some(now);
        let agent = live.agent_and_person();
        let most = self.limits.questions_per_minute;
        if !self.asked.has_room(&agent, most, now) {
            return Answer::Full(format!(
                "An agent may ask a person {most} questions in a minute; nothing was asked."
            ));
        }
        match self.put_question(session, text, clarify, now) {
            Ok(answer) => {
                self.asked.take(&agent, 1, most, now);
                self.remember(who, keyed.as_ref(), &answer, now);
                Answer::Made(answer)
            }
            Err(answer) => answer,
        }
    }

    fn put_question(
        &mut self,
        session: &str,
        text: &str,
        clarify: bool,
        now: UnixMillis,
    ) -> Result<String, Answer> {
        let mut tape = Tape::default();
        let doc = tape.read(text).map_err(|error| Answer::Bad(format!("not JSON: {error}")))?;
        let root = doc.root();
        if root.kind() != Kind::Object {
            return Err(Answer::Bad("a question is a JSON object".to_owned()));
        }
        let mut random = [0; 16];
        self.fill(&mut random);
        let token =
            ReplyToken::generate(&mut |bytes: &mut [u8]| bytes.copy_from_slice(&random[..bytes.len()]));
        let tool = root.member("tool").and_then(|tool| tool.text());
        let binding = match (&tool, root.member("arguments")) {
            (Some(tool), Some(arguments)) => {
                let action =
                    Action::new(tool, arguments.source()).map_err(|why| Answer::Bad(why.to_string()))?;
                Some(binding(tool, Some(&action.digest())))
            }
            (Some(tool), None) => Some(binding(tool, None)),
            (None, Some(_)) => return Err(Answer::Bad("arguments need a tool".to_owned())),
            (None, None) => None,
        };
        let said = question(&root, clarify, &token);
        let (writes, after, position) = (self.staged.writes.len(), self.staged.after.len(), self.position);
        let before = self.sessions.get(session).map(|live| (live.machine.clone(), live.state.clone()));
        let asked = self.stage_question(session, &said, binding.as_deref(), now);
        match asked {
            Ok(deadline) => Ok(format!("{{\"reply_token\":\"{token}\",\"deadline\":\"{deadline}\"}}")),
            Err(answer) => {
                self.staged.writes.truncate(writes);
                self.staged.after.truncate(after);
                self.position = position;
                if let (Some(live), Some((machine, state))) = (self.sessions.get_mut(session), before) {
                    (live.machine, live.state) = (machine, state);
                }
                Err(answer)
            }
        }
    }

    fn stage_question(
        &mut self,
        session: &str,
        said: &str,
        binding: Option<&str>,
        now: UnixMillis,
    ) -> Result<String, Answer> {
        let waits = self.sessions.get(session).is_some_and(|live| live.state == State::AwaitingInput);
        if !waits {
            let words = [(SAYSO_EXTENSION, told::HUBS_WORDS)];
            self.emit_one(session, &tongues::state(None, &State::AwaitingInput), &words, now)?;
        }
        let extra: Vec<_> = binding.map(|json| (SAYSO_EXTENSION, json)).into_iter().collect();
        self.emit_one(session, said, &extra, now)?;
        let Some(After::Event { heard, agent, person }) = self.staged.after.last() else {
            return Err(Answer::NotFound);
        };
        let (heard, agent, person) = (heard.clone(), agent.clone(), person.clone());
        let repliers = self.repliers(&heard.event, &agent, person.as_deref());
        let decided = self.questions.ask(&heard.event, repliers, now).map_err(|why| not_asked(&why))?;
        let deadline = decided.outcomes().iter().find_map(|outcome| match outcome {
            Outcome::Asked(asked) => Some(asked.deadline),
            _ => None,
        });
        self.decide(decided, now);
        let deadline = deadline.and_then(aaep::Timestamp::from_unix_millis);
        Ok(deadline.map(|at| at.to_string()).unwrap_or_default())
    }

    /// Those who will be sent this question and may answer it.
    fn repliers(&self, event: &Event, agent: &str, person: Option<&str>) -> Vec<SubscriptionId> {
        let confirms = matches!(event.payload, aaep::event::Payload::AwaitingConfirmation(_));
        self.subscriptions
            .values()
            .filter(|one| one.scope.covers(agent, person))
            .filter(|one| if confirms { one.wants.confirmations } else { one.wants.clarifications })
            .map(|one| one.id.clone())
            .collect()
    }

    /// Stages what was decided about questions: the ledger's entries, and the events that tell of it.
    pub(super) fn decide(&mut self, decided: Decided, now: UnixMillis) {
        if decided.is_empty() {
            return;
        }
        for outcome in decided.outcomes() {
            match outcome {
                Outcome::Asked(asked) => {
                    let record = decided.questions().iter().find(|question| question.token == asked.token);
                    self.staged.writes.push(Write::QuestionOpened {
                        token: asked.token.as_str().into(),
                        session: asked.session.as_str().into(),
                        deadline: asked.deadline,
                        record: record.map(aaep::consent::Question::to_record).unwrap_or_default(),
                    });
                }
                Outcome::Resolved(resolution) => self.stage_resolution(resolution),
                Outcome::Extended(extended) => self.staged.writes.push(Write::DeadlineMoved {
                    token: extended.token.as_str().into(),
                    deadline: extended.deadline,
                }),
                Outcome::Spent(spent) => self.staged.writes.push(Write::Spent {
                    token: spent.token.as_str().into(),
                    call: spent.digest.map(|digest| digest.to_string()).unwrap_or_default(),
                    at: now,
                }),
                _ => {}
            }
        }
        let told: Vec<_> = decided.outcomes().to_vec();
        self.staged.after.push(After::Decided(decided));
        for outcome in told {
            match outcome {
                Outcome::Resolved(resolution) => self.tell_resolution(&resolution, now),
                Outcome::Reminder(reminder) => {
                    self.tell(reminder.session.as_str(), &told::reminder(&reminder), now);
                }
                Outcome::Extended(extended) => {
                    self.tell(extended.session.as_str(), &told::more_time(&extended, now), now);
                }
                Outcome::Stopped(stopped) => {
                    let unused_yes = self.has_unused_yes(&stopped.session);
                    self.end_with(stopped.session.as_str(), End::Stopped { unused_yes }, now);
                }
                _ => {}
            }
        }
    }

    fn tell(&mut self, session: &str, told: &Told, now: UnixMillis) {
        self.say_itself(session, &told.said, &[(SAYSO_EXTENSION, &told.mark)], now);
    }

    fn stage_resolution(&mut self, resolution: &Resolution) {
        self.staged.writes.push(Write::Decided {
            token: resolution.token.as_str().into(),
            decision: word(&resolution.answer).to_owned(),
            by: resolution.by.as_str(),
            receipt: resolution.receipt().to_json().to_owned(),
            at: resolution.at,
        });
    }

    /// The event that tells everybody how a question was resolved, and the end of the agent's wait.
    fn tell_resolution(&mut self, resolution: &Resolution, now: UnixMillis) {
        let outcome = resolved(resolution);
        let away = self.is_away(resolution.session.as_str(), &resolution.token, now);
        self.tell_followers(resolution.session.as_str(), &resolution.token, &outcome);
        let answer = Answer::Found(outcome);
        self.waits.resolve(&resolution.token, &answer);
        self.staged.resolved.push((resolution.token.clone(), resolution.session.clone(), answer));
        let session = resolution.session.as_str();
        let asks = self.still_asks(&resolution.session);
        let Some(live) = self.sessions.get_mut(session).filter(|live| live.machine.is_open()) else { return };
        if resolution.by == By::Timeout
            && let Some(deadline) = live.machine.deadline_of(resolution.token.as_str())
        {
            // By a clock that went back, the time that listeners were told would not be over yet (§6.4).
            live.stamped = live.stamped.max(deadline);
        }
        let to = match () {
            () if asks => State::AwaitingInput,
            () if live.tools.is_empty() => State::Thinking,
            () => State::CallingTool,
        };
        let said = told::resolution(resolution, &to);
        // What was meant is no decision; that it was said is what listeners are told (decision 15).
        let decision = match &resolution.answer {
            Said::Decision(_) => format!(r#""decision":"{}","#, word(&resolution.answer)),
            _ => String::new(),
        };
        let told = format!(
            r#"{{"reply_token":"{}",{decision}"by":"{}"}}"#,
            resolution.token,
            // That the person stopped the session is the next thing that everybody hears.
            if resolution.by == By::Stopped { By::Cancelled } else { resolution.by }.as_str()
        );
        self.say_itself(session, &said, &[(SAYSO_EXTENSION, &told)], now);
        if away {
            self.tell_away(resolution, now);
        }
    }

    /// Whether a session has an open question, once this turn is on disk.
    fn still_asks(&self, session: &aaep::SessionId) -> bool {
        let resolved = |token: &str| self.staged.resolved.iter().any(|(one, ..)| one.as_str() == token);
        let mut known = self.questions.of_session(session).filter(|question| question.is_open());
        let mut new = self.staged.writes.iter().filter_map(|write| match write {
            Write::QuestionOpened { token, session: of, .. } if **of == *session.as_str() => Some(&**token),
            _ => None,
        });
        known.any(|question| !resolved(question.token.as_str())) || new.any(|token| !resolved(token))
    }

    /// `GET /agent/v1/sessions/{id}/replies/{token}`: answered at once, or when it is resolved, or when its time is over.
    pub(super) fn wait(
        &mut self,
        request: RequestId,
        who: &Principal,
        session: &str,
        token: &str,
        until: UnixMillis,
        now: UnixMillis,
    ) -> Option<Answer> {
        let Ok(token) = ReplyToken::parse(token) else { return Some(Answer::NotFound) };
        let until = until.min(now.saturating_add(self.limits.longest_wait));
        let own = self.own(who, session).map(|live| {
            live.lease = live.lease.max(until.max(now).saturating_add(1000));
            live.seen = Some(until.max(now));
        });
        // Resolved in this very turn: the book says so only when it is on disk, and so does this answer.
        let now_resolved = self.staged.resolved.iter().find(|(resolved, ..)| *resolved == token);
        if let Some((_, of, answer)) = now_resolved {
            return Some(if of.as_str() == session && own.is_some() {
                answer.clone()
            } else {
                Answer::NotFound
            });
        }
        match self.questions.question(&token) {
            Some(question) if question.session.as_str() != session => return Some(Answer::NotFound),
            Some(question) if question.is_open() && own.is_some() => {
                if until <= now {
                    return Some(Answer::Found(PENDING.to_owned()));
                }
                if self.waits.of_principal(&who.name) >= self.limits.waits_of_principal {
                    return Some(Answer::Full("too many of yours wait for an answer".to_owned()));
                }
                self.waits.insert(request, until, token, who.name.clone());
                return None;
            }
            _ => {}
        }
        let own = match own {
            Some(()) => Ok(true),
            None => self.owned(who, session),
        };
        let decision = own.and_then(|own| if own { self.journal.decision(token.as_str()) } else { Ok(None) });
        Some(match decision {
            Ok(Some(decision)) if decision.session == session => Answer::Found(stored(&decision)),
            Ok(_) => Answer::NotFound,
            Err(error) => Answer::Unavailable(error.to_string()),
        })
    }

    /// `DELETE /agent/v1/sessions/{id}/replies/{token}`: says what it came to, as a wait does.
    pub(super) fn withdraw(
        &mut self,
        request: RequestId,
        who: &Principal,
        session: &str,
        token: &str,
        now: UnixMillis,
    ) -> Option<Answer> {
        if self.own(who, session).is_some()
            && let Ok(token) = ReplyToken::parse(token)
            && self.questions.question(&token).is_some_and(|question| question.session.as_str() == session)
            // Where it is resolved already, or is in this very turn, that holds.
            && let Ok(decided) = self.questions.cancel(&token, now)
        {
            self.decide(decided, now);
        }
        self.wait(request, who, session, token, now, now)
    }

    /// Whether a session that is over was this principal's: its agent's name alone is no proof.
    fn owned(&mut self, who: &Principal, session: &str) -> Result<bool, journal::Error> {
        if !who.speaks() || self.sessions.contains_key(session) {
            return Ok(false);
        }
        let known = self.journal.session(session)?;
        Ok(known.is_some_and(|known| known.opened.principal == *who.name))
    }

    pub(super) fn end_waits(&mut self, now: UnixMillis) {
        if self.waits.next_deadline().is_some_and(|at| at <= now) {
            self.waits.expire(now, &Answer::Found(PENDING.to_owned()));
        }
    }

    pub(super) fn answer_waits(&mut self, outputs: &mut Vec<Output>) {
        let answered = self.waits.take_answered();
        outputs.extend(answered.into_iter().map(|(request, answer)| Output::Answer(request, answer)));
    }
}

fn question(root: &aaep::json::Value<'_>, clarify: bool, token: &ReplyToken) -> String {
    let mut writer = Writer::default();
    writer.open_object();
    writer.key("type");
    writer.text(if clarify {
        "aaep:agent.awaiting.clarification"
    } else {
        "aaep:agent.awaiting.confirmation"
    });
    writer.key("reply_token");
    writer.text(token.as_str());
    for (name, value) in root.members() {
        if !["type", "reply_token", "tool", "arguments"].iter().any(|ours| name.is(ours)) {
            writer.key(&name.text().unwrap_or_default());
            writer.raw(value.source());
        }
    }
    writer.close_object();
    writer.finish()
}

/// What ties a question to its call, in sayso's own extension.
pub(super) fn binding(tool: &str, digest: Option<&Digest>) -> String {
    let mut writer = Writer::default();
    writer.open_object();
    writer.key("tool");
    writer.text(tool);
    if let Some(digest) = digest {
        writer.key("action_digest");
        writer.text(&digest.to_string());
    }
    writer.close_object();
    writer.finish()
}

fn not_asked(why: &NotAsked) -> Answer {
    match (why, why.rule()) {
        (NotAsked::TooMany(_), _) => Answer::Full(why.to_string()),
        (NotAsked::Unlawful(findings), _) => Answer::Unlawful(findings.clone()),
        (_, Some(rule)) => Answer::Unlawful(vec![broken(rule, "", why.to_string())]),
        _ => Answer::Bad(why.to_string()),
    }
}

/// A rule that is broken.
pub(super) fn broken(rule: aaep::rule::Rule, pointer: &str, found: String) -> Finding {
    Finding { rule, severity: aaep::rule::Severity::Error, pointer: pointer.to_owned(), found }
}

fn word(answer: &Said) -> &'static str {
    match answer {
        Said::Decision(Decision::Accept) => "accept",
        Said::Decision(_) => "reject",
        Said::Response(_) => "answered",
        _ => "unavailable",
    }
}

/// What an agent is told of a question that is resolved.
fn resolved(resolution: &Resolution) -> String {
    let mut writer = Writer::default();
    writer.open_object();
    let mut member = |name: &str, text: &str| {
        writer.key(name);
        writer.text(text);
    };
    member("status", if resolution.by == By::Stopped { "stopped" } else { "resolved" });
    match &resolution.answer {
        Said::Decision(_) => member("decision", word(&resolution.answer)),
        Said::Response(Response::Text(text)) => member("response", text),
        Said::Response(other) => {
            writer.key("response");
            writer.raw(&response_json(other));
        }
        _ => {}
    }
    writer.key("by");
    writer.text(resolution.by.as_str());
    writer.key("receipt");
    writer.raw(resolution.receipt().to_json());
    writer.close_object();
    writer.finish()
}

fn response_json(response: &Response) -> String {
    match response {
        Response::YesNo(yes) => yes.to_string(),
        Response::Number(number) => seal::number_text(*number).unwrap_or_else(|| "null".to_owned()),
        Response::Text(_) => "null".to_owned(),
    }
}

/// The same, of a decision that is on disk.
pub(super) fn stored(decision: &journal::stored::StoredDecision) -> String {
    let receipt = String::from_utf8_lossy(&decision.receipt);
    if let Some(receipt) = aaep::consent::Receipt::parse(&receipt) {
        return resolved(receipt.resolution());
    }
    format!("{{\"status\":\"resolved\",\"decision\":\"reject\",\"by\":\"{}\"}}", decision.by)
}

/// How a question that was decided stands, as far as the ledger tells.
pub(super) fn status_of(decision: &journal::stored::StoredDecision) -> Status {
    if decision.spent.is_some() {
        Status::Spent
    } else if decision.decision == "accept" {
        Status::Accepted { silent: decision.by != "reply" }
    } else {
        Status::Refused { modified: false }
    }
}
