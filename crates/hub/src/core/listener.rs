//! Subscriptions: asked for, listened on, changed, closed; and what their listeners say.

use std::collections::HashMap;
use std::sync::Arc;

use aaep::SubscriptionId;
use aaep::consent::{Link, Said, Sender};
use aaep::event::Event;
use aaep::json::{Tape, Writer};
use aaep::message::{Message, SubscriptionClose, SubscriptionRejected};
use aaep::negotiate::{Offer, Terms, answer, renegotiate};
use aaep::shape::{Out, Shaper, Wants};
use journal::Position;

use super::agent::requested_by;
use super::lanes::{frame, is_timed, shaper};
use super::{After, Core, Heard, Write};
use crate::command::{Answer, Output};
use crate::compose::{self, Stamp};
use crate::delivery::{Frame, Part};
use crate::{LaneId, ListenerId, Principal, Scope};

/// A subscription that is open.
pub(super) struct Subscription {
    pub(super) id: SubscriptionId,
    pub(super) principal: Arc<str>,
    pub(super) may_answer: bool,
    pub(super) terms: Terms,
    /// The message that said so.
    accepted: Box<str>,
    pub(super) wants: Arc<Wants>,
    pub(super) scope: Arc<Scope>,
    /// The connection that listens, and its lane; not before it is attached.
    pub(super) listener: Option<(ListenerId, Option<LaneId>)>,
    /// Until when it may come back.
    pub(super) lost: Option<i64>,
}

/// Text that a listener was waiting for when it left began at most so many events before.
const HELD: u64 = 256;

/// A connection that is to listen once the turn is on disk.
pub(super) struct Attach {
    subscription: Box<str>,
    listener: ListenerId,
    last_event_id: Option<String>,
}

impl Core {
    /// `POST /aaep/v1/subscriptions`
    pub(super) fn subscribe(&mut self, who: &Principal, text: &str, now: i64) -> Answer {
        if !who.role.hears() {
            return Answer::Forbidden;
        }
        let Some(Message::SubscriptionRequest(request)) = Message::parse(text) else {
            return Answer::Bad("not a subscription.request".to_owned());
        };
        if self.subscriptions.len() >= self.limits.subscriptions {
            return Answer::Full("too many subscriptions are open".to_owned());
        }
        let mut random = [0; 16];
        self.fill(&mut random);
        let id =
            SubscriptionId::generate(&mut |bytes: &mut [u8]| bytes.copy_from_slice(&random[..bytes.len()]));
        let offer = self.offer_to(who);
        match answer(&request, &offer, id.clone()) {
            Err(rejected) => rejection(rejected),
            Ok((accepted, terms)) => {
                self.questions.subscription_opened(&id, &who.name);
                let accepted = Message::SubscriptionAccepted(accepted).to_json();
                let mut subscription = Subscription::new(id.clone(), who, terms, &accepted);
                // One that nobody ever listens on is let go like one whose connection is gone.
                let until = now.saturating_add(self.limits.resume_window);
                subscription.lost = Some(until);
                self.lost.insert((until, id.as_str().into()));
                self.staged.writes.push(Write::SubscriptionOpened {
                    id: id.as_str().into(),
                    principal: (&*who.name).into(),
                    record: subscription.record(),
                });
                self.subscriptions.insert(id.as_str().into(), subscription);
                Answer::Accepted(accepted)
            }
        }
    }

    fn offer_to(&self, who: &Principal) -> Offer {
        let mut offer = self.offer.clone();
        offer.confirmation_reply = who.role.answers();
        offer.clarification_reply = who.role.answers();
        offer
    }

    /// `GET /aaep/v1/events`
    pub(super) fn attach(
        &mut self,
        who: &Principal,
        subscription: &str,
        last_event_id: Option<String>,
        listener: ListenerId,
        now: i64,
    ) -> Answer {
        let known = self.subscriptions.get_mut(subscription);
        let Some(known) = known.filter(|one| *one.principal == *who.name && !one.is_over(now)) else {
            return Answer::NotFound;
        };
        // A second connection takes the place of the first.
        if let Some((old, lane)) = known.listener.replace((listener, None)) {
            self.listeners.remove(&old);
            self.staged.after.push(After::Output(Output::Close(old)));
            if let Some(lane) = lane {
                self.lanes.leave(lane);
            }
        }
        if let Some(until) = known.lost.take() {
            self.lost.remove(&(until, subscription.into()));
        }
        let id = known.id.clone();
        self.questions.subscription_resumed(&id, now);
        self.listeners.insert(listener, subscription.into());
        let attach = Attach { subscription: subscription.into(), listener, last_event_id };
        self.staged.after.push(After::Attach(attach));
        self.entitle_to_open(subscription, now);
        Answer::Done
    }

    /// Open questions that a new listener may answer become its own too.
    fn entitle_to_open(&mut self, subscription: &str, now: i64) {
        let Some(known) = self.subscriptions.get(subscription).filter(|one| one.may_answer) else { return };
        let (id, wants, scope) = (known.id.clone(), known.wants.clone(), known.scope.clone());
        let open: Vec<_> = self
            .questions
            .questions()
            .filter(|question| question.is_open() && question.repliers().binary_search(&id).is_err())
            .filter(|one| if one.is_confirmation() { wants.confirmations } else { wants.clarifications })
            .filter(|question| {
                self.sessions
                    .get(question.session.as_str())
                    .is_some_and(|live| scope.covers(&live.agent, live.person.as_deref()))
            })
            .map(|question| question.token.clone())
            .collect();
        for token in open {
            // Nothing of it is written, so it holds at once: others may join in the same turn.
            if let Ok(decided) = self.questions.entitle(&token, &id, now) {
                self.questions.commit(decided);
            }
        }
    }

    /// The turn is on disk: the connection joins its lane with what it missed.
    pub(super) fn attached(&mut self, attach: Attach, now: i64, outputs: &mut Vec<Output>) {
        let Attach { subscription, listener, last_event_id } = attach;
        // It may be gone again, or replaced, within the same turn.
        let here = |one: &&Subscription| one.listener == Some((listener, None));
        let Some(known) = self.subscriptions.get(&subscription).filter(here) else {
            outputs.push(Output::Close(listener));
            return;
        };
        let (wants, scope) = (known.wants.clone(), known.scope.clone());
        let mut made = shaper(&wants);
        let missed = last_event_id.and_then(|id| self.missed(&id, &mut made, &scope, now));
        let own = missed.unwrap_or_else(|| {
            made = shaper(&wants);
            // All lanes of a shape hold the same text, whoever joined when.
            if !is_timed(&wants) && !self.lanes.has(&wants, &scope) {
                self.retell(self.position.saturating_sub(HELD), &mut made, &scope, now);
            }
            self.present(&wants, &scope, now)
        });
        let lane = self.lanes.join(&wants, &scope, made);
        if let Some(known) = self.subscriptions.get_mut(&subscription) {
            known.listener = Some((listener, Some(lane)));
        }
        outputs.push(Output::Join(listener, lane, own));
    }

    /// What came after that event, as this shape hears it; `None` if it is not known any more.
    fn missed(
        &mut self,
        last: &str,
        made: &mut Shaper<Heard>,
        scope: &Scope,
        now: i64,
    ) -> Option<Vec<Arc<Frame>>> {
        let end = self.position;
        let known = self.journal.position_of(last).ok()?;
        if known.is_none() && is_timed(made.wants()) {
            return None;
        }
        let replay = self.limits.replay as u64;
        let known = known.map(Position::get);
        if known.is_some_and(|known| end - known > replay) {
            return None;
        }
        // An event that was merged for a shape is on no disk; it comes again when its parts are shaped again. So does text
        // that was held when the listener left.
        let from = match known {
            Some(known) if is_timed(made.wants()) => known,
            Some(known) => known.saturating_sub(HELD),
            None => end.saturating_sub(replay),
        };
        let mut found = known == Some(from);
        let mut frames = Vec::new();
        for (position, out) in self.retell(from, made, scope, now)? {
            found |= known.is_some_and(|known| position > known);
            if found {
                frames.push(frame(&out, position));
            }
            found |= out.event().envelope.event_id.as_str() == last;
        }
        found.then_some(frames)
    }

    /// What a shape makes of all after a position.
    fn retell(
        &mut self,
        from: u64,
        made: &mut Shaper<Heard>,
        scope: &Scope,
        now: i64,
    ) -> Option<Vec<(u64, Out<Heard>)>> {
        let mut outs = Vec::new();
        let mut people = HashMap::new();
        let most = usize::try_from(self.position.saturating_sub(from)).unwrap_or(usize::MAX);
        for stored in self.journal.events(Position::new(from), most).ok()? {
            let text = std::str::from_utf8(&stored.body).ok()?;
            let event = Event::parse(text)?;
            if !people.contains_key(&stored.session) {
                let person = self.person_of(&stored.session);
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
            made.push(&Arc::new(Heard { event, frame }));
            outs.extend(std::iter::from_fn(|| made.pull(now)).map(|out| (position, out)));
        }
        Some(outs)
    }

    /// For whom a session is, or was.
    fn person_of(&mut self, session: &str) -> Option<Arc<str>> {
        if let Some(live) = self.sessions.get(session) {
            return live.person.clone();
        }
        let first = self.journal.events_of(session, Position::START, 1).ok()?.pop()?;
        let mut tape = Tape::default();
        let doc = tape.read(std::str::from_utf8(&first.body).ok()?).ok()?;
        requested_by(&doc.root())
    }

    /// For who joins late or has been away too long: the state that each session is in, and the questions that are open.
    fn present(&mut self, wants: &Wants, scope: &Scope, now: i64) -> Vec<Arc<Frame>> {
        let sessions: Vec<Box<str>> = self
            .sessions
            .iter()
            .filter(|(_, live)| scope.covers(&live.agent, live.person.as_deref()))
            .map(|(id, _)| id.clone())
            .collect();
        let mut frames = Vec::new();
        for session in sessions {
            frames.extend(self.summary(&session, now));
            let Some(live) = self.sessions.get(&session) else { continue };
            let open: Vec<_> = self
                .questions
                .of_session(&live.id)
                .filter(|question| question.is_open())
                .filter(|one| if one.is_confirmation() { wants.confirmations } else { wants.clarifications })
                .map(|question| question.event.clone())
                .collect();
            for event in open {
                frames.extend(self.stored_frame(event.as_str()));
            }
        }
        frames
    }

    fn stored_frame(&mut self, event_id: &str) -> Option<Arc<Frame>> {
        let position = self.journal.position_of(event_id).ok()??;
        let before = Position::new(position.get().checked_sub(1)?);
        let stored =
            self.journal.events(before, 1).ok()?.pop().filter(|stored| stored.event_id == event_id)?;
        let text = std::str::from_utf8(&stored.body).ok()?;
        Some(Arc::new(Frame::event(event_id, text, position.get(), stored.critical)))
    }

    /// A state.changed that says where a session is (§8.7, C-E15): from and to are the same.
    fn summary(&mut self, session: &str, now: i64) -> Option<Arc<Frame>> {
        let id = self.new_id("evt_", now);
        let live = self.sessions.get(session)?;
        let timestamp = aaep::Timestamp::from_unix_millis(now)?.to_string();
        let stamp = Stamp {
            event_id: &id,
            session_id: session,
            timestamp: &timestamp,
            producer: &live.producer,
            hints: None,
            state: None,
        };
        let mut said = Writer::default();
        said.open_object();
        for (name, text) in
            [("type", "aaep:agent.state.changed"), ("from_state", &live.state), ("to_state", &live.state)]
        {
            said.key(name);
            said.text(text);
        }
        said.close_object();
        let said = said.finish();
        let mut tape = Tape::default();
        let text = compose::event(&tape.read(&said).ok()?.root(), &stamp, &[], &[]).ok()?;
        Some(Arc::new(Frame::event(&id, &text, self.position, false)))
    }

    /// A connection is gone. Its subscription may come back within the window.
    pub(super) fn detached(&mut self, listener: ListenerId, too_slow: bool, now: i64) {
        let Some(subscription) = self.listeners.remove(&listener) else { return };
        let window = if too_slow { 0 } else { self.limits.resume_window };
        let Some(known) = self.subscriptions.get_mut(&subscription) else { return };
        if let Some((_, Some(lane))) = known.listener.take() {
            self.lanes.leave(lane);
        }
        let id = known.id.clone();
        if too_slow {
            self.close_subscription(&subscription, now);
        } else {
            let until = now.saturating_add(window);
            known.lost = Some(until);
            self.lost.insert((until, subscription.clone()));
            let decided = self.questions.subscription_lost(&id, now, window);
            self.decide(decided, now);
        }
    }

    /// Subscriptions that did not come back in time are closed (C-C17).
    pub(super) fn close_lost(&mut self, now: i64) {
        while self.lost.first().is_some_and(|(until, _)| *until <= now)
            && let Some((_, subscription)) = self.lost.pop_first()
        {
            self.close_subscription(&subscription, now);
        }
    }

    fn close_subscription(&mut self, subscription: &str, now: i64) {
        let Some(known) = self.subscriptions.remove(subscription) else { return };
        if let Some(until) = known.lost {
            self.lost.remove(&(until, subscription.into()));
        }
        if let Some((listener, lane)) = known.listener {
            self.listeners.remove(&listener);
            self.staged.after.push(After::Output(Output::Close(listener)));
            if let Some(lane) = lane {
                self.lanes.leave(lane);
            }
        }
        self.staged.writes.push(Write::SubscriptionClosed { id: subscription.into() });
        let decided = self.questions.subscription_closed(&known.id, now);
        self.decide(decided, now);
    }

    /// `POST /aaep/v1/replies`: whatever comes of a reply, its sender learns nothing from the answer (C-D1).
    pub(super) fn say(&mut self, who: &Principal, text: &str, now: i64) -> Answer {
        match Message::parse(text) {
            Some(Message::SubscriptionRenegotiate(wish)) => {
                let Some(known) = self.own_subscription(who, wish.subscription_id.as_str()) else {
                    return Answer::NotFound;
                };
                let terms = known.terms.clone();
                let offer = self.offer_to(who);
                match renegotiate(&terms, &wish, &offer) {
                    Ok((accepted, terms)) => {
                        let accepted = Message::SubscriptionAccepted(accepted).to_json();
                        self.change_terms(wish.subscription_id.as_str(), terms, &accepted);
                        Answer::Accepted(accepted)
                    }
                    Err(rejected) => {
                        self.close_subscription(wish.subscription_id.as_str(), now);
                        rejection(rejected)
                    }
                }
            }
            Some(Message::SubscriptionClose(SubscriptionClose { subscription_id, .. })) => {
                if self.own_subscription(who, subscription_id.as_str()).is_none() {
                    return Answer::NotFound;
                }
                self.close_subscription(subscription_id.as_str(), now);
                Answer::Done
            }
            _ => self.reply(who, text, now),
        }
    }

    fn own_subscription(&self, who: &Principal, id: &str) -> Option<&Subscription> {
        self.subscriptions.get(id).filter(|one| *one.principal == *who.name)
    }

    /// A reply, more time or stop. Every attempt is written down and answered alike, once that is on disk.
    fn reply(&mut self, who: &Principal, text: &str, now: i64) -> Answer {
        let sender = Sender { principal: &who.name, link: Link::Shared };
        let heard = match Said::parse(text) {
            Err(why) => Err(why),
            Ok(Said::Stop(wish)) => {
                let hears = self.own_subscription(who, wish.subscription_id.as_str()).is_some_and(|one| {
                    one.may_answer
                        && self
                            .sessions
                            .get(wish.session_id.as_str())
                            .is_some_and(|live| one.scope.covers(&live.agent, live.person.as_deref()))
                });
                self.questions.stop(&wish, &sender, hears, now)
            }
            Ok(Said::Reply(reply)) => self.questions.hear(&reply, &sender, now),
            Ok(_) => return Answer::Done,
        };
        let what = match &heard {
            Ok(_) => "taken",
            Err(why) => why.as_str(),
        };
        self.staged.writes.push(Write::Attempt {
            at: now,
            subscription: (&*who.name).into(),
            what: what.to_owned(),
        });
        if let Ok(decided) = heard {
            self.decide(decided, now);
        }
        Answer::Done
    }

    fn change_terms(&mut self, subscription: &str, terms: Terms, accepted: &str) {
        let Some(known) = self.subscriptions.get_mut(subscription) else { return };
        known.terms = terms;
        known.accepted = accepted.into();
        known.wants = Arc::new(Wants::from(&known.terms));
        let record = known.record();
        self.staged.writes.push(Write::SubscriptionChanged { id: subscription.into(), record });
        self.staged.after.push(After::Moved(subscription.into()));
    }

    /// The turn is on disk: a connection goes over to the lane of its new terms.
    pub(super) fn moved(&mut self, subscription: &str, outputs: &mut Vec<Output>) {
        let Some(known) = self.subscriptions.get_mut(subscription) else { return };
        let Some((listener, Some(old))) = known.listener else { return };
        let lane = self.lanes.go_over(old, &known.wants, &known.scope);
        known.listener = Some((listener, Some(lane)));
        if lane != old {
            outputs.push(Output::Move(listener, lane));
        }
    }
}

impl Subscription {
    pub(super) fn new(id: SubscriptionId, who: &Principal, terms: Terms, accepted: &str) -> Self {
        Self {
            id,
            accepted: accepted.into(),
            principal: who.name.clone(),
            may_answer: who.role.answers(),
            wants: Arc::new(Wants::from(&terms)),
            terms,
            scope: who.scope.clone(),
            listener: None,
            lost: None,
        }
    }

    /// Whether it did not come back in time.
    fn is_over(&self, now: i64) -> bool {
        self.lost.is_some_and(|until| until <= now)
    }

    fn record(&self) -> String {
        let mut writer = Writer::default();
        writer.open_object();
        writer.key("may_answer");
        writer.boolean(self.may_answer);
        writer.key("scope");
        self.scope.write(&mut writer);
        writer.key("accepted");
        writer.raw(&self.accepted);
        writer.close_object();
        writer.finish()
    }
}

fn rejection(rejected: SubscriptionRejected) -> Answer {
    let code = rejected.reason_code.as_str().to_owned();
    Answer::Rejected(Message::SubscriptionRejected(rejected).to_json(), code)
}
