//! Connections: where they begin to listen, and what they are told first.

use std::collections::HashMap;
use std::sync::Arc;

use aaep::event::Event;
use aaep::json::{Scribe, Tape, Writer};
use aaep::shape::{Shaper, Wants};
use aaep::{SessionId, SubscriptionId};
use journal::Position;
use seal::UnixMillis;

use super::agent::requested_by;
use super::lanes::{Left, is_timed, leave, resumes_from, shaper};
use super::subscription::Subscription;
use super::told::{self, OwnEvent};
use super::{After, Core, Heard, TurnContext, tongues};
use crate::command::{Output, Reply};
use crate::compose::{self, SaysoExtension, Stamp};
use crate::delivery::{Frame, Part, Reason, id_place, place_id};
use crate::{ListenerId, Principal, Scope};

/// Text that a listener was waiting for when it left began at most so many events before.
const HELD: u64 = 256;

/// Terms, and the last place in the log that was told by them.
pub(super) type Turn = (u64, Arc<Wants>);

/// From where a connection listens.
pub(super) enum Since {
    /// From now on.
    Now,
    /// From the event that it had last.
    Event(String),
    /// From the start of the sessions that are open.
    Start,
}

/// A connection that is to listen once the turn is on disk.
pub(super) struct Attach {
    subscription: SubscriptionId,
    listener: ListenerId,
    since: Since,
}

impl Attach {
    pub(super) fn who(&self) -> (ListenerId, &SubscriptionId) {
        (self.listener, &self.subscription)
    }
}

impl Core {
    /// `GET /aaep/v1/events`
    pub(super) fn attach(
        &mut self,
        who: &Principal,
        subscription: &SubscriptionId,
        since: Since,
        listener: ListenerId,
        context: &TurnContext,
    ) -> Reply {
        let known = self.subscriptions.get_mut(subscription);
        let Some(known) = known.filter(|one| one.is_of(who) && !one.is_over(context.now)) else {
            return Reply::NotFound;
        };
        known.token = who.token;
        let since = match (since, &known.after) {
            (Since::Now, Some(after)) => Since::Event(after.to_string()),
            (since, _) => since,
        };
        // A second connection takes the place of the first.
        let mut replaced = None;
        if let Some((old, lane)) = known.listener.replace((listener, None)) {
            self.listeners.remove(&old);
            if let Some(lane) = lane {
                self.lanes.leave(lane);
            }
            replaced = Some(old);
        }
        if let Some(until) = known.lost.take() {
            self.lost.remove(&(until, subscription.clone()));
        }
        let id = known.id.clone();
        if let Some(old) = replaced {
            self.tell_end(subscription, old, Reason::Replaced);
        }
        self.questions.subscription_resumed(&id, context.now);
        self.listeners.insert(listener, subscription.clone());
        let attach = Attach { subscription: subscription.clone(), listener, since };
        self.staged.after.push(After::Attach(attach));
        self.entitle_to_open(subscription, context);
        Reply::Done
    }

    /// Open questions that a new listener may answer become its own too.
    fn entitle_to_open(&mut self, subscription: &SubscriptionId, context: &TurnContext) {
        let Some(known) = self.subscriptions.get(subscription).filter(|one| one.may_answer) else { return };
        let (id, wants, scope) = (known.id.clone(), known.wants.clone(), known.scope.clone());
        let open: Vec<_> = self
            .questions
            .questions()
            .filter(|question| question.is_open() && question.repliers().binary_search(&id).is_err())
            .filter(|one| if one.is_confirmation() { wants.confirmations } else { wants.clarifications })
            .filter(|question| {
                self.sessions
                    .get(&question.session)
                    .is_some_and(|live| scope.covers(&live.agent, live.person.as_deref()))
            })
            .map(|question| question.token.clone())
            .collect();
        for token in open {
            // Nothing of it is written, so it holds at once: others may join in the same turn.
            if let Ok(decided) = self.questions.entitle(&token, &id, context.now) {
                self.questions.commit(decided);
            }
        }
    }

    /// The turn is on disk: the connection joins its lane with what it missed.
    pub(super) fn attached(&mut self, attach: Attach, context: &TurnContext, outputs: &mut Vec<Output>) {
        let Attach { subscription, listener, since } = attach;
        // It may be gone again, or replaced, within the same turn.
        let here = |one: &&Subscription| one.listener == Some((listener, None));
        let Some(known) = self.subscriptions.get(&subscription).filter(here) else {
            outputs.push(Output::Close(listener));
            return;
        };
        let (wants, scope) = (known.wants.clone(), known.scope.clone());
        let mut turns: Vec<_> = known.before.iter().map(|it| (it.until, it.wants.clone())).collect();
        turns.push((u64::MAX, wants.clone()));
        let mut made = shaper(&wants, self.limits.shape);
        let missed = match &since {
            Since::Now => None,
            Since::Event(id) => self.missed(id, &turns, &scope, context),
            Since::Start => self.running(&turns, &scope, context),
        };
        let missed = missed.map(|(shaper, frames)| {
            made = shaper;
            frames
        });
        let last_event_id = match since {
            Since::Event(id) => Some(id),
            Since::Now | Since::Start => None,
        };
        self.returned(last_event_id.as_ref().map(|_| missed.is_some()), listener, outputs);
        let own = missed.unwrap_or_else(|| {
            // All lanes of a shape hold the same text, whoever joined when.
            if !is_timed(&wants) && !self.lanes.has(&wants, &scope) {
                let from = self.position.saturating_sub(HELD);
                self.retell(from, &mut made, &[(u64::MAX, wants.clone())], &scope, context);
            }
            self.present(&subscription, last_event_id.as_deref(), &wants, &scope, context)
        });
        let is_new = last_event_id.is_none() && own.is_empty();
        let from = is_new.then(|| resumes_from(&made, self.position));
        // What is held by terms that were others is held for nobody else.
        let apart = turns.len() > 1 && made.oldest().is_some();
        let lane = if apart {
            self.lanes.apart(&wants, &scope, made)
        } else {
            self.lanes.join(&wants, &scope, made)
        };
        if let Some(known) = self.subscriptions.get_mut(&subscription) {
            known.listener = Some((listener, Some(lane)));
        }
        outputs.push(Output::Join { listener, lane, own, from });
    }

    /// Whether all that came after this event is kept. A mere place is none that another subscription could know of: it means
    /// nothing where the log has begun anew.
    pub(super) fn is_kept_after(&mut self, event: &str) -> bool {
        let known = self.journal.position_of(event).ok().flatten().map(Position::get);
        known.is_some_and(|known| self.is_told_again(known))
    }

    /// Whether who has heard all up to this place can be told the rest.
    fn is_told_again(&self, place: u64) -> bool {
        let missed = self.position.checked_sub(place);
        place >= self.floor && missed.is_some_and(|missed| missed <= self.limits.replay as u64)
    }

    /// What came after that event, as this shape hears it; `None` if it is not known any more.
    fn missed(
        &mut self,
        last: &str,
        turns: &[Turn],
        scope: &Scope,
        context: &TurnContext,
    ) -> Option<(Shaper<Heard>, Vec<Arc<Frame>>)> {
        let end = self.position;
        let known = match id_place(last) {
            Some(place) => Some(place),
            None => self.journal.position_of(last).ok()?.map(Position::get),
        };
        let timed = turns.iter().any(|(_, wants)| is_timed(wants));
        if known.is_none() && timed {
            return None;
        }
        let replay = self.limits.replay as u64;
        if known.is_some_and(|known| !self.is_told_again(known)) {
            return None;
        }
        // An event that was merged for a shape is on no disk; it comes again when its parts are shaped again. So does text
        // that was held when the listener left.
        let from = match known {
            Some(known) if timed => known,
            Some(known) => known.saturating_sub(HELD),
            None => end.saturating_sub(replay).max(self.floor),
        };
        let mut found = known == Some(from);
        let mut frames = Vec::new();
        let first = turns.iter().find(|(until, _)| *until > from).map(|(_, wants)| wants);
        let mut made = shaper(first?, self.limits.shape);
        let (all, whole) = self.retell(from, &mut made, turns, scope, context)?;
        if !whole {
            return None;
        }
        for left in all {
            found |= known.is_some_and(|known| left.position > known);
            if found {
                left.frames(|frame| frames.push(frame));
            }
            found |= left.out.event().envelope.event_id.as_str() == last;
        }
        (found || known.is_some()).then_some((made, frames))
    }

    /// What a shape makes of all after a position, with the terms that held when; and whether that is all that there was.
    pub(super) fn retell(
        &mut self,
        from: u64,
        made: &mut Shaper<Heard>,
        turns: &[Turn],
        scope: &Scope,
        context: &TurnContext,
    ) -> Option<(Vec<Left>, bool)> {
        let mut turns = turns.iter().skip_while(|(until, _)| *until <= from).peekable();
        let (mut all, mut whole) = (Vec::new(), true);
        let mut people = HashMap::new();
        let most = usize::try_from(self.position.saturating_sub(from)).unwrap_or(usize::MAX);
        for stored in self.journal.events(Position::new(from), most).ok()? {
            while turns.next_if(|(until, _)| *until < stored.position.get()).is_some() {
                if let Some((_, wants)) = turns.peek() {
                    made.renegotiate(wants.clone());
                }
            }
            let text = std::str::from_utf8(&stored.body).ok()?;
            let event = Event::parse(text)?;
            if !people.contains_key(&stored.session) {
                let (person, known) = self.person_of(&event.envelope.session_id);
                whole &= known || scope.covers(&event.envelope.producer.agent_id, None);
                people.insert(stored.session.clone(), person);
            }
            let person = people.get(&stored.session).and_then(Option::as_deref);
            if !scope.covers(&event.envelope.producer.agent_id, person) {
                continue;
            }
            let (position, part) = (stored.position.get(), Part::of(&event));
            let critical = stored.critical || part == Part::Question;
            let frame = Frame::event(&stored.event_id, text, position, critical);
            let frame = Arc::new(frame.of_session(&stored.session, part));
            made.push_at(&Arc::new(Heard { event, frame }), position);
            all.extend(std::iter::from_fn(|| leave(made, position, context.now)));
        }
        if let Some((_, wants)) = turns.last().filter(|(_, wants)| !Arc::ptr_eq(made.wants(), wants)) {
            made.renegotiate(wants.clone());
        }
        Some((all, whole))
    }

    /// For whom a session is, or was, and whether that is known: the beginning of one that is over may be forgotten.
    fn person_of(&mut self, session: &SessionId) -> (Option<Arc<str>>, bool) {
        if let Some(live) = self.sessions.get(session) {
            return (live.person.clone(), true);
        }
        let first =
            self.journal.events_of(session.as_str(), Position::START, 1).ok().and_then(|mut page| page.pop());
        let Some(Ok(text)) = first.as_ref().map(|first| std::str::from_utf8(&first.body)) else {
            return (None, false);
        };
        let mut tape = Tape::default();
        let Ok(doc) = tape.read(text) else { return (None, false) };
        let root = doc.root();
        let kind = root.member("type").and_then(|kind| kind.text());
        (requested_by(&root), kind.is_some_and(|kind| kind == "aaep:agent.session.started"))
    }

    /// For who joins late or has been away too long: that there is a gap, the state that each session is in, and the
    /// questions that are open.
    fn present(
        &mut self,
        subscription: &SubscriptionId,
        last: Option<&str>,
        wants: &Wants,
        scope: &Scope,
        context: &TurnContext,
    ) -> Vec<Arc<Frame>> {
        let sessions: Vec<SessionId> = self
            .sessions
            .iter()
            .filter(|(_, live)| scope.covers(&live.agent, live.person.as_deref()))
            .map(|(id, _)| id.clone())
            .collect();
        let mut frames: Vec<_> = last.map(|last| gap(subscription, last)).into_iter().collect();
        for session in sessions {
            frames.extend(self.summary(&session, last.is_some(), context));
            let Some(live) = self.sessions.get(&session) else { continue };
            let open: Vec<_> = self
                .questions
                .of_session(&live.id)
                .filter(|question| question.is_open())
                .filter(|one| if one.is_confirmation() { wants.confirmations } else { wants.clarifications })
                .map(|question| (question.event.clone(), more_time(question, context.now)))
                .collect();
            for (event, more_time) in open {
                // The question itself tells the time that it had at first.
                frames.extend(more_time.and_then(|told| self.own_frame(&session, &told, context)));
                frames.extend(self.stored_frame(event.as_str()));
            }
        }
        if !frames.is_empty() {
            // Nobody resumes from what is told of the past.
            frames.push(Arc::new(Frame::mark(&place_id(self.position))));
        }
        frames
    }

    fn stored_frame(&mut self, event_id: &str) -> Option<Arc<Frame>> {
        let position = self.journal.position_of(event_id).ok()??;
        let before = Position::new(position.get().checked_sub(1)?);
        let stored =
            self.journal.events(before, 1).ok()?.pop().filter(|stored| stored.event_id == event_id)?;
        let text = std::str::from_utf8(&stored.body).ok()?;
        let part = Part::of(&Event::parse(text)?);
        let frame = Frame::event(event_id, text, position.get(), stored.critical);
        Some(Arc::new(frame.of_session(&stored.session, part)))
    }

    /// A state.changed that says where a session is (§8.7, C-E15): from and to are the same.
    fn summary(&mut self, session: &SessionId, gap: bool, context: &TurnContext) -> Option<Arc<Frame>> {
        let state = self.sessions.get(session)?.state();
        let said = tongues::state(&mut self.room, Some(state), state).with(SaysoExtension::HubWords { gap });
        self.own_frame(session, &said, context)
    }

    /// An event for one listener alone, on no disk: it tells of what is.
    fn own_frame(
        &mut self,
        session: &SessionId,
        said: &OwnEvent,
        context: &TurnContext,
    ) -> Option<Arc<Frame>> {
        let id = self.new_id("evt_", context);
        let live = self.sessions.get(session)?;
        let timestamp = aaep::Timestamp::from_unix_millis(context.now)?.to_string();
        let stamp = Stamp {
            event_id: &id,
            session_id: session.as_str(),
            timestamp: &timestamp,
            producer: &live.producer,
            question: None,
            hints: None,
            state: None,
        };
        let mut event = Scribe::default();
        let payload = said.payload.doc().ok()?.root();
        compose::event(&payload, &stamp, said.extension.as_ref(), &[], &mut event).ok()?;
        let frame = Frame::event(&id, event.source(), self.position, false);
        Some(Arc::new(frame.of_session(session.as_str(), Part::Other)))
    }
}

/// That a question has more time than its event says, if it has.
fn more_time(question: &aaep::consent::Question, now: UnixMillis) -> Option<OwnEvent> {
    let first = i64::try_from(question.timeout_seconds).unwrap_or(i64::MAX).saturating_mul(1000);
    let moved = question.deadline > question.asked.saturating_add(first);
    moved.then(|| told::more_time_before(&question.token, question.deadline, now))
}

/// What came after the event that a listener had last is not known any more, or never was.
fn gap(subscription: &SubscriptionId, last: &str) -> Arc<Frame> {
    let mut writer = Writer::default();
    writer.open_object();
    for (name, text) in [
        ("type", "sayso:gap"),
        ("subscription_id", subscription.as_str()),
        ("last_event_id", last),
        (
            "reason_message",
            "Some of what was said in between is not kept any more. This is how things stand.",
        ),
    ] {
        writer.key(name);
        writer.text(text);
    }
    writer.close_object();
    Arc::new(Frame::message(&writer.finish()))
}
