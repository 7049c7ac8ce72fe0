//! The hub as it was: open sessions from their events, questions from the ledger, subscriptions from their terms.

use std::hash::RandomState;
use std::sync::Arc;

use aaep::SubscriptionId;
use aaep::check::Checked;
use aaep::consent::{Question, Questions};
use aaep::event::Producer;
use aaep::json::Tape;
use aaep::message::{Message, SubscriptionAccepted};
use aaep::negotiate::{Offer, Terms};
use aaep::rule::{Face, Findings};
use aaep::shape::Wants;
use journal::{Error, Place, Position};
use seal::UnixMillis;

use super::Core;
use super::agent::Live;
use super::ask::status_of;
use super::onward::Onward;
use super::subscription::{Before, Subscription};
use crate::{Principal, Role, Scope};

/// So many events are read at a time.
const PAGE: usize = 512;

impl Core {
    /// Makes everything again from the journal. Connections are gone; who had one may come back within the window.
    pub(super) fn restore(&mut self, now: UnixMillis) -> Result<(), Error> {
        let alive = self.journal.restore()?;
        self.position = alive.last.get();
        self.floor = alive.floor.get();
        self.lanes.clear();
        self.listeners.clear();
        self.sessions.clear();
        self.subscriptions.clear();
        self.lost.clear();
        for stored in &alive.sessions {
            let lease = now.saturating_add(self.limits.lease);
            let mut live = Live::restored(stored, self.limits.open_in_session, lease)
                .ok_or_else(|| unreadable(Place::Session, &stored.id))?;
            if self.orphans.contains(&live.id) {
                (live.lease, live.looked_at) = (now, now);
            }
            self.replay(&mut live)?;
            self.sessions.insert(live.id.clone(), live);
        }
        self.leases = self.sessions.iter().map(|(id, live)| (live.lease, id.clone())).collect();
        let mut questions = Vec::with_capacity(alive.questions.len() + alive.unspent.len());
        for stored in &alive.questions {
            questions.push(question(&stored.token, &stored.record, stored.deadline)?);
        }
        for stored in &alive.unspent {
            let mut question = question(&stored.token, &stored.record, stored.deadline)?;
            question.status = status_of(stored);
            questions.push(question);
        }
        questions.sort_by_key(|question| question.asked);
        self.questions = Questions::restore(
            self.limits.questions,
            RandomState::new(),
            questions,
            now,
            self.limits.resume_window,
        );
        for stored in &alive.subscriptions {
            let mut subscription =
                restored(stored).ok_or_else(|| unreadable(Place::Subscription, &stored.id))?;
            self.questions.subscription_opened(&subscription.id, &stored.principal);
            let until = now.saturating_add(self.limits.resume_window);
            subscription.lost = Some(until);
            self.lost.insert((until, subscription.id.clone()));
            self.subscriptions.insert(subscription.id.clone(), subscription);
        }
        self.needs_rebuild = false;
        self.recount();
        Ok(())
    }

    /// Brings a session's machine to where its events have led.
    fn replay(&mut self, live: &mut Live) -> Result<(), Error> {
        let mut after = Position::START;
        loop {
            let page = self.journal.events_of(live.id.as_str(), after, PAGE)?;
            for stored in &page {
                after = stored.position;
                let unreadable = || unreadable(Place::Event, &stored.event_id);
                let text = std::str::from_utf8(&stored.body).map_err(|_| unreadable())?;
                let mut tape = Tape::default();
                let doc = tape.read(text).map_err(|_| unreadable())?;
                let mut findings = Findings::new(Face::Strict);
                let Checked::Event(step) = self.validator.check(&doc, &mut findings) else {
                    return Err(unreadable());
                };
                let step = step.borrow();
                live.machine.event(&step, &mut findings);
                live.stamped = step.at.map_or(live.stamped, |at| live.stamped.max(at.unix_millis()));
            }
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }
}

/// A row that is whole but not in a form that this version knows.
#[derive(Debug)]
struct UnreadableRow(String);

impl std::fmt::Display for UnreadableRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} cannot be read; a newer version of sayso may have written it", self.0.escape_debug())
    }
}

impl std::error::Error for UnreadableRow {}

pub(super) fn unreadable(place: Place, id: &str) -> Error {
    Error::Corrupt(place, Some(Box::new(UnreadableRow(id.to_owned()))))
}

/// A stored question, with its deadline as it stands now.
fn question(token: &str, record: &[u8], deadline: UnixMillis) -> Result<Question, Error> {
    let read = || Question::parse_record(std::str::from_utf8(record).ok()?);
    let mut question = read().ok_or_else(|| unreadable(Place::Question, token))?;
    question.deadline = deadline;
    Ok(question)
}

fn restored(stored: &journal::stored::OpenSubscription) -> Option<Subscription> {
    let mut tape = Tape::default();
    let doc = tape.read(std::str::from_utf8(&stored.record).ok()?).ok()?;
    let root = doc.root();
    let accepted = root.member("accepted")?.source();
    let mut granted = parse_accepted(accepted)?;
    let onward = Onward::take(&mut granted.honored_capabilities);
    let terms = terms_of(&granted)?;
    let scope = Scope::read(&root.member("scope")?)?;
    let may_answer = root.member("may_answer")?.boolean()?;
    let who = Principal {
        name: stored.principal.as_str().into(),
        role: if may_answer { Role::Listener } else { Role::Observer },
        agent_id: None,
        scope: Arc::new(scope),
        open: false,
        token: None,
    };
    let mut subscription = Subscription::new(SubscriptionId::parse(&stored.id).ok()?, &who, terms, accepted);
    subscription.after = onward.after;
    for earlier in root.member("before").iter().flat_map(aaep::json::Value::items) {
        let until = u64::try_from(earlier.member("until")?.number()?.as_i64()?).ok()?;
        let accepted = earlier.member("accepted")?.source();
        let wants = Arc::new(Wants::from(&terms_of(&parse_accepted(accepted)?)?));
        subscription.before.push(Before { until, wants, accepted: accepted.into() });
    }
    Some(subscription)
}

fn parse_accepted(text: &str) -> Option<SubscriptionAccepted> {
    let Some(Message::SubscriptionAccepted(accepted)) = Message::parse(text) else { return None };
    Some(accepted)
}

/// The terms that a message has granted.
fn terms_of(accepted: &SubscriptionAccepted) -> Option<Terms> {
    let known = Offer::new(Producer::new("any")).extensions;
    Terms::from_capabilities(&accepted.aaep_version, &accepted.honored_capabilities, &known)
}
