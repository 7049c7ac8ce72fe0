//! Attaching listeners: where they start, and what they receive first.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use aaep::event::{Event, Payload, Verbosity};
use aaep::json::{JsonWriter, Tape, TapeWriter};
use aaep::shaping::{self, Shaper, ShapingTerms};
use aaep::{EventId, SessionId, SubscriptionId};
use journal::Position;
use seal::UnixMillis;

use super::delivery_groups::{
    ShapedEvent, is_time_dependent, new_shaper, next_shaped_event, resume_position,
};
use super::notifications::{self, HubEvent};
use super::sessions::requested_by;
use super::subscription::LiveSubscription;
use super::{CommittedEvent, Core, PostCommit, TurnContext, hub_messages};
use crate::command::{HubReply, TurnOutput};
use crate::compose::{self, EnvelopeFields, SessionSnapshot};
use crate::delivery::{CloseReason, Frame, OrderingClass, position_from_id, position_to_id};
use crate::shards::{UNKNOWN_ID, has_shard_number, is_log_position};
use crate::{ListenerId, Principal, ResumeCursor, Scope, Shard};

/// A replay starts this many events before the resume position, to recreate text that was held back or merged there.
const REPLAY_LOOKBACK_EVENTS: u64 = 256;

/// Number of events that a replay reads from the journal first. Each can have more than 1 MiB.
const FIRST_REPLAY_PAGE_EVENTS: usize = 16;

/// Number of events that it reads at a time after a page of small events. In a database, each page costs a round trip.
const REPLAY_PAGE_EVENTS: usize = 256;

/// The average size of small events, in bytes.
const SMALL_EVENT_BYTES: usize = 8 * 1024;

/// A period of a subscription: the last log position of the period, and the terms that applied in it.
pub(super) type TermsPeriod = (u64, Arc<ShapingTerms>);

/// The point from which a connection listens.
pub(super) enum AttachPoint {
    /// New events only.
    Now,
    /// After the last event that the client received.
    Event(String),
    /// The start of each open session.
    Start,
}

/// A connection that will be attached once the turn is stored.
pub(super) struct PendingAttach {
    subscription: SubscriptionId,
    listener: ListenerId,
    start: AttachPoint,
}

impl PendingAttach {
    pub(super) fn ids(&self) -> (ListenerId, &SubscriptionId) {
        (self.listener, &self.subscription)
    }
}

impl Core {
    /// Handles `HubCommand::Attach` and `HubCommand::AttachFromStart`.
    pub(super) fn attach(
        &mut self,
        principal: &Principal,
        subscription: &SubscriptionId,
        start: AttachPoint,
        listener: ListenerId,
        context: &TurnContext,
    ) -> HubReply {
        let live = self.subscriptions.get_mut(subscription);
        let Some(live) = live.filter(|live| live.is_owned_by(principal) && !live.is_expired(context.now))
        else {
            return HubReply::NotFound;
        };
        let start = match (start, &live.resume_after) {
            (AttachPoint::Now, Some(after)) => AttachPoint::Event(own_start(&self.shard, after)),
            (AttachPoint::Event(id), _) => AttachPoint::Event(own_entry(&self.shard, &id)),
            (start, _) => start,
        };
        // A second connection replaces the first.
        let mut replaced = None;
        if let Some((old, group)) = live.listener.replace((listener, None)) {
            self.listeners.remove(&old);
            if let Some(group) = group {
                self.delivery_groups.leave(group);
            }
            replaced = Some(old);
        }
        if let Some(until) = live.resume_deadline.take() {
            self.resume_deadlines.remove(&(until, subscription.clone()));
        }
        let id = live.id.clone();
        if let Some(old) = replaced {
            self.close_listener(subscription, old, CloseReason::Replaced);
        }
        self.set_credential(&id, principal);
        self.questions.subscription_resumed(&id, context.now);
        self.listeners.insert(listener, subscription.clone());
        let attach = PendingAttach { subscription: subscription.clone(), listener, start };
        self.staged.post_commit.push(PostCommit::Attach(attach));
        self.entitle_to_open_questions(subscription, context);
        HubReply::Done
    }

    /// Adds a new listener to the repliers of the open questions that it may answer.
    fn entitle_to_open_questions(&mut self, subscription: &SubscriptionId, context: &TurnContext) {
        let Some(subscription) = self.subscriptions.get(subscription).filter(|live| live.may_answer) else {
            return;
        };
        let (id, shaping_terms, scope) =
            (subscription.id.clone(), subscription.shaping_terms.clone(), subscription.scope.clone());
        let open: Vec<_> = self
            .questions
            .questions()
            .filter(|question| question.is_open() && question.replier_ids().binary_search(&id).is_err())
            .filter(|question| {
                if question.is_confirmation() {
                    shaping_terms.answers_confirmations
                } else {
                    shaping_terms.answers_clarifications
                }
            })
            .filter(|question| {
                self.sessions
                    .get(&question.session_id)
                    .is_some_and(|live| scope.covers(&live.agent, live.person.as_deref()))
            })
            .map(|question| question.token.clone())
            .collect();
        for token in open {
            // This change is not written to the journal, so it is applied immediately. Other listeners that join in the
            // same turn must see it.
            if let Ok(change) = self.questions.add_replier(&token, &id, context.now) {
                self.questions.commit(change);
            }
        }
    }

    /// Joins a delivery group after the turn is stored, with the frames that the listener missed.
    pub(super) fn complete_attach(
        &mut self,
        attach: PendingAttach,
        context: &TurnContext,
        outputs: &mut Vec<TurnOutput>,
    ) {
        let PendingAttach { subscription, listener, start } = attach;
        // The listener may have been detached or replaced within the same turn.
        let is_current = |live: &&LiveSubscription| live.listener == Some((listener, None));
        let Some(live) = self.subscriptions.get(&subscription).filter(is_current) else {
            outputs.push(TurnOutput::Close(listener));
            return;
        };
        let (shaping_terms, scope) = (live.shaping_terms.clone(), live.scope.clone());
        let mut periods: Vec<_> = live
            .previous_terms
            .iter()
            .map(|terms| (terms.last_position, terms.shaping_terms.clone()))
            .collect();
        periods.push((u64::MAX, shaping_terms.clone()));
        let mut shaper = new_shaper(&shaping_terms, self.limits.shaping);
        let missed = match &start {
            AttachPoint::Now => None,
            AttachPoint::Event(id) => self.missed_frames(id, &periods, &scope, context),
            AttachPoint::Start => self.replay_open_sessions(&periods, &scope, context),
        };
        let missed = missed.map(|(replayed, frames)| {
            shaper = replayed;
            frames
        });
        let last_event_id = match start {
            AttachPoint::Event(id) => Some(id),
            AttachPoint::Now | AttachPoint::Start => None,
        };
        self.record_resume(last_event_id.as_ref().map(|_| missed.is_some()), listener, outputs);
        let is_resumed = missed.is_some();
        let spans_shards = self.shard.map.of_scope(&scope).len() > 1;
        let private_frames = missed.unwrap_or_else(|| {
            // Feed recent events to the new group's shaper and discard its output, so that text is split the same way no
            // matter when the group was created.
            if !is_time_dependent(&shaping_terms) && !self.delivery_groups.contains(&shaping_terms, &scope) {
                let from = self.last_position.saturating_sub(REPLAY_LOOKBACK_EVENTS);
                let periods = [(u64::MAX, shaping_terms.clone())];
                if self.replay_log(from, &mut shaper, &periods, &scope, context).is_none() {
                    // The shaper holds text from before the events that it has not read.
                    shaper = new_shaper(&shaping_terms, self.limits.shaping);
                }
            }
            self.snapshot_frames(&subscription, last_event_id.as_deref(), &shaping_terms, &scope, context)
        });
        let has_resume_id = last_event_id.is_some() || !private_frames.is_empty();
        let from = (!has_resume_id).then(|| resume_position(&shaper, self.last_position));
        let origin_id = spans_shards.then(|| match (last_event_id, from) {
            (Some(id), _) if is_resumed => id.into(),
            (_, Some(position)) => self.resume_id(position).into(),
            // A client that disconnects before it has received these frames must receive them again.
            _ => UNKNOWN_ID.into(),
        });
        // Events that are held because of earlier terms concern only this listener.
        let needs_private_group = periods.len() > 1 && shaper.oldest_position().is_some();
        let group = if needs_private_group {
            self.delivery_groups.create_private(&shaping_terms, &scope, shaper)
        } else {
            self.delivery_groups.join(&shaping_terms, &scope, shaper)
        };
        if let Some(live) = self.subscriptions.get_mut(&subscription) {
            live.listener = Some((listener, Some(group)));
        }
        outputs.push(TurnOutput::Join { listener, group, private_frames, resume_position: from, origin_id });
    }

    /// Returns an id for a log position, from which a listener of several shards can resume. The id of the event there is
    /// valid for every subscription; the position itself is valid only for the current one.
    fn resume_id(&mut self, position: u64) -> String {
        let before = Position::new(position.saturating_sub(1));
        let stored = self.journal.events(before, 1).ok().and_then(|mut page| page.pop());
        match stored.filter(|stored| stored.position.get() == position) {
            Some(stored) => stored.event_id,
            None => position_to_id(position),
        }
    }

    /// Whether all events after this event can be replayed. An id that encodes a log position is not accepted here: it
    /// is valid only for the subscription that received it, and means nothing in a new log.
    /// The cursor of a listener of several shards is always accepted; each shard that cannot resume sends a gap message.
    pub(super) fn can_resume_after(&mut self, event: &str) -> bool {
        if !self.shard.map.is_single() && ResumeCursor::parse(event).is_some() {
            return true;
        }
        let position = self.journal.event_position(event).ok().flatten().map(Position::get);
        position.is_some_and(|position| self.can_replay_from(position))
    }

    /// Whether a listener that has everything up to this position can receive the rest.
    fn can_replay_from(&self, position: u64) -> bool {
        let missed_count = self.last_position.checked_sub(position);
        position >= self.trimmed_up_to
            && missed_count.is_some_and(|count| count <= self.limits.max_replay_events as u64)
    }

    /// Returns the frames after `last_event_id`, shaped by the terms, and the shaper that produced them. Returns `None`
    /// if the id is unknown, if some events are no longer stored, or if there are more events than may be replayed.
    fn missed_frames(
        &mut self,
        last_event_id: &str,
        periods: &[TermsPeriod],
        scope: &Scope,
        context: &TurnContext,
    ) -> Option<(Shaper<CommittedEvent>, Vec<Arc<Frame>>)> {
        let end = self.last_position;
        let position = match position_from_id(last_event_id) {
            Some(position) => Some(position),
            None => self.journal.event_position(last_event_id).ok()?.map(Position::get),
        };
        let depends_on_time = periods.iter().any(|(_, shaping_terms)| is_time_dependent(shaping_terms));
        if position.is_none() && depends_on_time {
            return None;
        }
        let max_replay_events = self.limits.max_replay_events as u64;
        if position.is_some_and(|position| !self.can_replay_from(position)) {
            return None;
        }
        // A merged event is not stored. Shaping its parts again recreates it. The same applies to text that was held
        // back when the listener left.
        let from = match position {
            Some(position) if depends_on_time => position,
            Some(position) => position.saturating_sub(REPLAY_LOOKBACK_EVENTS),
            None => end.saturating_sub(max_replay_events).max(self.trimmed_up_to),
        };
        let mut is_after_last = position == Some(from);
        let mut frames = Vec::new();
        let first_terms =
            periods.iter().find(|(until, _)| *until > from).map(|(_, shaping_terms)| shaping_terms);
        let mut shaper = new_shaper(first_terms?, self.limits.shaping);
        let (shaped_events, is_complete) = self.replay_log(from, &mut shaper, periods, scope, context)?;
        if !is_complete {
            return None;
        }
        for shaped in shaped_events {
            is_after_last |= position.is_some_and(|position| shaped.position > position);
            if is_after_last {
                shaped.for_each_frame(|frame| frames.push(frame));
            }
            is_after_last |= shaped.out.event().envelope.event_id.as_str() == last_event_id;
        }
        (is_after_last || position.is_some()).then_some((shaper, frames))
    }

    /// Shapes all events after a position, with the terms that applied at the time. Also returns whether the events
    /// are complete. They may be incomplete if the scope names people and the person of a session is unknown.
    /// Returns `None` if the events have more bytes than may be replayed.
    pub(super) fn replay_log(
        &mut self,
        from: u64,
        shaper: &mut Shaper<CommittedEvent>,
        periods: &[TermsPeriod],
        scope: &Scope,
        context: &TurnContext,
    ) -> Option<(Vec<ShapedEvent>, bool)> {
        let mut periods = periods.iter().skip_while(|(until, _)| *until <= from).peekable();
        let (mut shaped_events, mut is_complete) = (Vec::new(), true);
        let mut people = HashMap::new();
        let (mut after, mut bytes) = (from, 0);
        let mut page_events = FIRST_REPLAY_PAGE_EVENTS;
        while after < self.last_position {
            let left = usize::try_from(self.last_position - after).unwrap_or(usize::MAX);
            let page = self.journal.events(Position::new(after), left.min(page_events)).ok()?;
            let Some(last) = page.last() else { break };
            after = last.position.get();
            let page_bytes: usize = page.iter().map(|stored| stored.body.len()).sum();
            let is_small = page_bytes <= page.len() * SMALL_EVENT_BYTES;
            page_events = if is_small { REPLAY_PAGE_EVENTS } else { FIRST_REPLAY_PAGE_EVENTS };
            for stored in page {
                bytes += stored.body.len();
                if bytes > self.limits.max_replay_bytes {
                    return None;
                }
                while periods.next_if(|(until, _)| *until < stored.position.get()).is_some() {
                    if let Some((_, shaping_terms)) = periods.peek() {
                        shaper.renegotiate(shaping_terms.clone());
                    }
                }
                let text = std::str::from_utf8(&stored.body).ok()?;
                let event = Event::parse(text)?;
                if !people.contains_key(&stored.session) {
                    let (person, is_known) = self.person_of(&event.envelope.session_id);
                    is_complete &= is_known || scope.covers(&main_producer(&event), None);
                    people.insert(stored.session.clone(), person);
                }
                let person = people.get(&stored.session).and_then(Option::as_deref);
                if !scope.covers(&main_producer(&event), person) {
                    continue;
                }
                let (position, ordering) = (stored.position.get(), OrderingClass::of(&event));
                let is_critical = stored.is_critical || ordering == OrderingClass::Question;
                let frame = Frame::event(&stored.event_id, text, position, is_critical);
                let frame = Arc::new(frame.with_session(&stored.session, ordering));
                shaper.push_at(&Arc::new(CommittedEvent { event, frame }), position);
                shaped_events.extend(std::iter::from_fn(|| next_shaped_event(shaper, position, context.now)));
            }
        }
        if let Some((_, shaping_terms)) =
            periods.last().filter(|(_, shaping_terms)| !Arc::ptr_eq(shaper.terms(), shaping_terms))
        {
            shaper.renegotiate(shaping_terms.clone());
        }
        Some((shaped_events, is_complete))
    }

    /// Returns the person of a session, if it names one, and whether that is certain. It is not certain if the first event of
    /// an ended session was deleted.
    fn person_of(&mut self, session: &SessionId) -> (Option<Arc<str>>, bool) {
        if let Some(live) = self.sessions.get(session) {
            return (live.person.clone(), true);
        }
        let first = self
            .journal
            .session_events(session.as_str(), Position::START, 1)
            .ok()
            .and_then(|mut page| page.pop());
        let Some(Ok(text)) = first.as_ref().map(|first| std::str::from_utf8(&first.body)) else {
            return (None, false);
        };
        let mut tape = Tape::default();
        let Ok(doc) = tape.read(text) else { return (None, false) };
        let root = doc.root();
        let kind = root.member("type").and_then(|kind| kind.text());
        (requested_by(&root), kind.is_some_and(|kind| kind == "aaep:agent.session.started"))
    }

    /// Returns the frames for a listener that joins late or was away too long: a gap message if it missed events, the
    /// state of each session, and the open questions.
    fn snapshot_frames(
        &mut self,
        subscription: &SubscriptionId,
        last_event_id: Option<&str>,
        shaping_terms: &ShapingTerms,
        scope: &Scope,
        context: &TurnContext,
    ) -> Vec<Arc<Frame>> {
        let sessions: Vec<SessionId> = self
            .sessions
            .iter()
            .filter(|(_, live)| scope.covers(&live.agent, live.person.as_deref()))
            .map(|(id, _)| id.clone())
            .collect();
        let takes_handoffs = self.subscriptions.get(subscription).is_some_and(|live| live.takes_handoffs);
        let mut frames: Vec<_> =
            last_event_id.map(|last_event_id| gap_frame(subscription, last_event_id)).into_iter().collect();
        for session in sessions {
            frames.extend(self.session_state_frames(
                &session,
                last_event_id.is_some(),
                shaping_terms,
                context,
            ));
            let Some(live) = self.sessions.get(&session) else { continue };
            let open: Vec<_> = self
                .questions
                .session_questions(&live.id)
                .filter(|question| question.is_open())
                .filter(|question| {
                    if question.is_confirmation() {
                        shaping_terms.answers_confirmations
                    } else {
                        shaping_terms.answers_clarifications
                    }
                })
                .map(|question| (question.event_id.clone(), new_deadline_event(question, context.now)))
                .collect();
            let handoffs: Vec<_> = self
                .handoffs
                .open_in(&session)
                .filter(|_| takes_handoffs)
                .map(|(_, handoff)| handoff.event_id.clone())
                .collect();
            frames.extend(handoffs.iter().filter_map(|event_id| self.stored_frame(event_id)));
            for (event_id, deadline_event) in open {
                // The question's event contains only the original deadline.
                frames.extend(deadline_event.and_then(|event| self.private_frame(&session, &event, context)));
                frames.extend(self.stored_frame(event_id.as_str()));
            }
        }
        if !frames.is_empty() {
            // Clients must resume from the end of the log, not from one of these frames.
            let position = self.last_position;
            let spans_shards = self.shard.map.of_scope(scope).len() > 1;
            let id = if spans_shards { self.resume_id(position) } else { position_to_id(position) };
            frames.push(Arc::new(Frame::resume_position(&id)));
        }
        frames
    }

    fn stored_frame(&mut self, event_id: &str) -> Option<Arc<Frame>> {
        let position = self.journal.event_position(event_id).ok()??;
        let before = Position::new(position.get().checked_sub(1)?);
        let stored =
            self.journal.events(before, 1).ok()?.pop().filter(|stored| stored.event_id == event_id)?;
        let text = std::str::from_utf8(&stored.body).ok()?;
        let ordering = OrderingClass::of(&Event::parse(text)?);
        let frame = Frame::event(event_id, text, position.get(), stored.is_critical);
        Some(Arc::new(frame.with_session(&stored.session, ordering)))
    }

    /// Creates a `state.changed` with the current state of the main producer and of every other producer that has spoken
    /// (§8.7, C-E15); `from_state` and `to_state` are equal.
    fn session_state_frames(
        &mut self,
        session: &SessionId,
        has_gap: bool,
        shaping_terms: &ShapingTerms,
        context: &TurnContext,
    ) -> Vec<Arc<Frame>> {
        let start = self.session_start(session, shaping_terms).unwrap_or_default();
        let Some(live) = self.sessions.get(session) else { return Vec::new() };
        let has_spoken = |id: &Arc<str>| *id == live.agent || live.machine.state_of(id).is_some();
        let states: Vec<_> = live
            .producers
            .iter()
            .filter(|producer| has_spoken(&producer.id))
            .map(|producer| {
                let state = live.state_of(&producer.id);
                let has_words = live.own_states.iter().any(|own| own.state == state.as_str());
                (producer.id.clone(), state.clone(), has_words)
            })
            .collect();
        let mut frames = Vec::new();
        let mut snapshot = SessionSnapshot { has_gap, ..start };
        for (producer, state, has_words) in states {
            // The main producer comes first, and the topic of the session is announced once.
            let snapshot =
                std::mem::replace(&mut snapshot, SessionSnapshot { has_gap, ..SessionSnapshot::default() });
            let hub_event = hub_messages::current_state_event(&mut self.scratch, &state, has_words, snapshot)
                .with_producer(producer);
            frames.extend(self.private_frame(session, &hub_event, context));
        }
        frames
    }

    /// Returns what the stored start of a session says about it, in the listener's language.
    fn session_start(
        &mut self,
        session: &SessionId,
        shaping_terms: &ShapingTerms,
    ) -> Option<SessionSnapshot> {
        let stored = self.journal.session_events(session.as_str(), Position::START, 1).ok()?.pop()?;
        let event = Event::parse(std::str::from_utf8(&stored.body).ok()?)?;
        let Payload::SessionStarted(_) = &event.payload else { return None };
        let localized = shaping::localize(&event, shaping_terms);
        let about = localized.as_ref().unwrap_or(&event).payload.summary(&Verbosity::Normal);
        Some(SessionSnapshot { about: about.map(str::to_owned), ..SessionSnapshot::default() })
    }

    /// Creates a frame with an event for one listener. The event is not stored, because it only describes the current
    /// state.
    fn private_frame(
        &mut self,
        session: &SessionId,
        hub_event: &HubEvent,
        context: &TurnContext,
    ) -> Option<Arc<Frame>> {
        let id = self.new_id("evt_", context);
        let live = self.sessions.get(session)?;
        let timestamp = aaep::Timestamp::from_unix_millis(context.now)?.to_string();
        let producer = hub_event.producer.as_deref().and_then(|id| live.producers.get(id));
        let producer = producer.unwrap_or(live.producers.main());
        let envelope = EnvelopeFields {
            event_id: &id,
            session_id: session.as_str(),
            timestamp: &timestamp,
            producer: &producer.envelope,
            question: None,
            hints: live.hints.as_ref(),
            default_language: &self.default_language,
            state: None,
            own_states: &live.own_states,
            correlation_id: live.correlation_id.as_deref(),
            marks: live.marks(producer, true),
            summary: None,
        };
        let mut event = TapeWriter::default();
        let payload = hub_event.payload.doc().ok()?.root();
        compose::write_event(&payload, &envelope, hub_event.extension.as_ref(), &[], &mut event).ok()?;
        let frame = Frame::event(&id, event.source(), self.last_position, false);
        Some(Arc::new(frame.with_session(session.as_str(), OrderingClass::Other)))
    }
}

/// Returns where a listener resumes in this shard: the shard's own entry in a cursor of several shards, or the id itself.
///
/// An event from before the hub had several shards is in shard 0. The other shards were empty then.
fn own_entry(shard: &Shard, id: &str) -> String {
    if shard.map.was_single() && shard.index > 0 && EventId::parse(id).is_ok() && !has_shard_number(id) {
        return position_to_id(0);
    }
    let cursor = if shard.map.is_single() { None } else { ResumeCursor::parse(id) };
    cursor.map_or_else(
        || id.to_owned(),
        |cursor| cursor.get(shard.index).unwrap_or_else(|| UNKNOWN_ID.to_owned()),
    )
}

/// Like [`own_entry`], for a new subscription. A position in the log means nothing to it, except for the start of the log.
fn own_start(shard: &Shard, after: &str) -> String {
    let id = own_entry(shard, after);
    if is_log_position(&id) { UNKNOWN_ID.to_owned() } else { id }
}

/// Returns the main producer of an event's session, which decides who receives the event. The hub names it in events of
/// other producers, in an extension that agents cannot write.
fn main_producer(event: &Event) -> Cow<'_, str> {
    let named = event.envelope.extensions.as_ref().and_then(|extensions| {
        let mut tape = Tape::default();
        let doc = tape.read(extensions.as_str()).ok()?;
        Some(doc.root().member("sayso")?.member(compose::MAIN_PRODUCER)?.text()?.into_owned())
    });
    named.map_or(Cow::Borrowed(event.envelope.producer.agent_id.as_str()), Cow::Owned)
}

/// Creates an event with the new deadline of a question, if the deadline was extended.
fn new_deadline_event(question: &aaep::consent::Question, now: UnixMillis) -> Option<HubEvent> {
    let original_ms = i64::try_from(question.timeout_seconds).unwrap_or(i64::MAX).saturating_mul(1000);
    let was_extended = question.deadline > question.asked_at.saturating_add(original_ms);
    was_extended.then(|| {
        notifications::deadline_notice_preceding_question(&question.token, question.deadline, now)
            .with_producer(&*question.agent_id)
    })
}

/// Creates the message which says that some events after `last_event_id` are no longer stored, or that this id is unknown.
fn gap_frame(subscription: &SubscriptionId, last_event_id: &str) -> Arc<Frame> {
    let mut writer = JsonWriter::default();
    writer.open_object();
    for (name, text) in [
        ("type", "sayso:gap"),
        ("subscription_id", subscription.as_str()),
        ("last_event_id", last_event_id),
        ("reason_message", "Some events after last_event_id are not available. The current state follows."),
    ] {
        writer.key(name);
        writer.text(text);
    }
    writer.close_object();
    Arc::new(Frame::gap(&writer.finish()))
}
