//! Subscriptions: asked for, changed, lost and closed.

use std::sync::Arc;

use aaep::SubscriptionId;
use aaep::json::Writer;
use aaep::message::{ReasonCode, SubscriptionRejected, SubscriptionRequest};
use aaep::negotiate::{Offer, Terms, answer};
use aaep::shape::Wants;
use seal::{Digest, UnixMillis};

use super::onward::Onward;
use super::{After, Core, TurnContext, Write};
use crate::command::{LimitReached, Malformed, Output, Reply};
use crate::delivery::{Frame, Reason};
use crate::{LaneId, ListenerId, Principal, Scope};

/// A subscription that is open.
pub(super) struct Subscription {
    pub(super) id: SubscriptionId,
    pub(super) principal: Arc<str>,
    /// The token by which it was asked for, or heard last; not known after a restart.
    pub(super) token: Option<Digest>,
    pub(super) may_answer: bool,
    pub(super) terms: Terms,
    /// The message that said so.
    pub(super) accepted: Box<str>,
    pub(super) wants: Arc<Wants>,
    pub(super) scope: Arc<Scope>,
    /// The connection that listens, and its lane; not before it is attached.
    pub(super) listener: Option<(ListenerId, Option<LaneId>)>,
    /// The event after which it begins; nothing if it begins when it is attached.
    pub(super) after: Option<Box<str>>,
    /// Until when it may come back.
    pub(super) lost: Option<UnixMillis>,
    /// The terms that it had before, the oldest first: who returns is told by the terms that held then.
    pub(super) before: Vec<Before>,
}

/// Terms that held once.
pub(super) struct Before {
    /// The last event that was told by them.
    pub(super) until: u64,
    pub(super) wants: Arc<Wants>,
    pub(super) accepted: Box<str>,
}

/// So many earlier terms are remembered.
const MOST_BEFORE: usize = 4;

impl Core {
    /// `POST /aaep/v1/subscriptions`
    pub(super) fn subscribe(
        &mut self,
        who: &Principal,
        request: Option<&SubscriptionRequest>,
        context: &TurnContext,
    ) -> Reply {
        if !who.role.hears() {
            return Reply::Forbidden;
        }
        let Some(mut request) = request.cloned() else { return Malformed::SubscriptionRequest.into() };
        if self.subscriptions.len() >= self.limits.subscriptions {
            return LimitReached::Subscriptions.into();
        }
        if self.has_too_many(who) {
            let why = "This token has too many subscriptions open.";
            return rejection(SubscriptionRejected::new(ReasonCode::RateLimit, why));
        }
        let mut random = [0; 16];
        self.fill(&mut random);
        let id =
            SubscriptionId::generate(&mut |bytes: &mut [u8]| bytes.copy_from_slice(&random[..bytes.len()]));
        let offer = self.offer_to(who);
        let mut onward = Onward::take(&mut request.capabilities);
        onward.after = onward.after.filter(|event| self.is_kept_after(event));
        match answer(&request, &offer, id.clone()) {
            Err(rejected) => rejection(rejected),
            Ok((mut accepted, terms)) => {
                onward.grant(&mut accepted.honored_capabilities);
                self.questions.subscription_opened(&id, &who.name);
                let reply = Reply::Subscribed { accepted: Box::new(accepted), tells_places: onward.places };
                let accepted = reply.to_json().unwrap_or_default();
                let mut subscription = Subscription::new(id.clone(), who, terms, &accepted);
                // One that nobody ever listens on is let go like one whose connection is gone.
                let until = context.now.saturating_add(self.limits.attach_window);
                subscription.lost = Some(until);
                subscription.after = onward.after;
                self.lost.insert((until, id.clone()));
                self.staged.writes.push(Write::SubscriptionOpened {
                    id: id.clone(),
                    principal: (&*who.name).into(),
                    record: subscription.record(),
                });
                self.subscriptions.insert(id.clone(), subscription);
                reply
            }
        }
    }

    fn has_too_many(&self, who: &Principal) -> bool {
        let most = self.limits.subscriptions_per_principal;
        // As long as there are fewer in all, there is nothing to count.
        let own = |one: &&Subscription| *one.principal == *who.name;
        !who.open
            && self.subscriptions.len() >= most
            && self.subscriptions.values().filter(own).count() >= most
    }

    pub(super) fn offer_to(&self, who: &Principal) -> Offer {
        let mut offer = self.offer.clone();
        offer.confirmation_reply = who.role.answers();
        offer.clarification_reply = who.role.answers();
        offer
    }

    /// A connection is gone. Its subscription may come back within the window.
    pub(super) fn detached(&mut self, listener: ListenerId, too_slow: bool, context: &TurnContext) {
        let Some(subscription) = self.listeners.remove(&listener) else { return };
        let window = if too_slow { 0 } else { self.limits.resume_window };
        let Some(known) = self.subscriptions.get_mut(&subscription) else { return };
        if let Some((_, Some(lane))) = known.listener.take() {
            self.lanes.leave(lane);
        }
        let id = known.id.clone();
        if too_slow {
            self.tell_end(&subscription, listener, Reason::SlowConsumer);
            self.close_subscription(&subscription, context);
        } else {
            let until = context.now.saturating_add(window);
            known.lost = Some(until);
            self.lost.insert((until, subscription.clone()));
            let decided = self.questions.subscription_lost(&id, context.now, window);
            self.decide(decided, context);
        }
    }

    /// A connection is let go, and told why.
    pub(super) fn tell_end(&mut self, subscription: &SubscriptionId, listener: ListenerId, reason: Reason) {
        let last = Arc::new(Frame::close(subscription.as_str(), reason));
        self.staged.after.push(After::Output(Output::Give(listener, last)));
        self.staged.after.push(After::Output(Output::Close(listener)));
    }

    /// The hub stops: every connection is told. Subscriptions and questions stay open, for when it is back.
    pub(super) fn say_goodbye(&mut self) {
        for (listener, subscription) in std::mem::take(&mut self.listeners) {
            self.tell_end(&subscription, listener, Reason::ProducerShutdown);
        }
    }

    /// Subscriptions that did not come back in time are closed (C-C17).
    pub(super) fn close_lost(&mut self, context: &TurnContext) {
        while self.lost.first().is_some_and(|(until, _)| *until <= context.now)
            && let Some((_, subscription)) = self.lost.pop_first()
        {
            self.close_subscription(&subscription, context);
        }
    }

    pub(super) fn close_subscription(&mut self, subscription: &SubscriptionId, context: &TurnContext) {
        let Some(known) = self.subscriptions.remove(subscription) else { return };
        if let Some(until) = known.lost {
            self.lost.remove(&(until, subscription.clone()));
        }
        if let Some((listener, lane)) = known.listener {
            self.listeners.remove(&listener);
            self.staged.after.push(After::Output(Output::Close(listener)));
            if let Some(lane) = lane {
                self.lanes.leave(lane);
            }
        }
        self.staged.writes.push(Write::SubscriptionClosed { id: subscription.clone() });
        let decided = self.questions.subscription_closed(&known.id, context.now);
        self.decide(decided, context);
    }

    pub(super) fn change_terms(&mut self, subscription: &SubscriptionId, terms: Terms, accepted: &str) {
        let Some(known) = self.subscriptions.get_mut(subscription) else { return };
        let wants = std::mem::replace(&mut known.wants, Arc::new(Wants::from(&terms)));
        known.terms = terms;
        let before = std::mem::replace(&mut known.accepted, accepted.into());
        known.before.retain(|before| before.until.saturating_add(self.limits.replay as u64) > self.position);
        known.before.push(Before { until: self.position, wants, accepted: before });
        if known.before.len() > MOST_BEFORE {
            known.before.remove(0);
        }
        let record = known.record();
        self.staged.writes.push(Write::SubscriptionChanged { id: subscription.clone(), record });
        self.staged.after.push(After::Moved(subscription.clone()));
    }

    /// The turn is on disk: a connection goes over to the lane of its new terms.
    pub(super) fn moved(&mut self, subscription: &SubscriptionId, outputs: &mut Vec<Output>) {
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
            token: who.token,
            may_answer: who.role.answers(),
            wants: Arc::new(Wants::from(&terms)),
            terms,
            scope: who.scope.clone(),
            listener: None,
            after: None,
            lost: None,
            before: Vec::new(),
        }
    }

    /// Whether it is this one's, with the rights that it was asked for: other rights ask anew.
    pub(super) fn is_of(&self, who: &Principal) -> bool {
        self.principal == who.name && self.may_answer == who.role.answers() && self.scope == who.scope
    }

    /// Whether it did not come back in time.
    pub(super) fn is_over(&self, now: UnixMillis) -> bool {
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
        writer.key("before");
        writer.open_array();
        for before in &self.before {
            writer.open_object();
            writer.key("until");
            writer.integer(i64::try_from(before.until).unwrap_or(i64::MAX));
            writer.key("accepted");
            writer.raw(&before.accepted);
            writer.close_object();
        }
        writer.close_array();
        writer.close_object();
        writer.finish()
    }
}

pub(super) fn rejection(rejected: SubscriptionRejected) -> Reply {
    Reply::SubscriptionRejected(Box::new(rejected))
}
