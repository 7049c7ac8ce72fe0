//! Opening, changing, detaching and closing subscriptions.

use std::sync::Arc;

use aaep::SubscriptionId;
use aaep::json::JsonWriter;
use aaep::message::{ReasonCode, SubscriptionRejected, SubscriptionRequest};
use aaep::negotiate::{Offer, Terms, answer_request};
use aaep::shaping::ShapingTerms;
use seal::{Digest, UnixMillis};

use super::sayso_capabilities::SaysoCapabilities;
use super::{Core, OwnedEntry, PostCommit, TurnContext};
use crate::command::{HubReply, LimitReached, MalformedRequest, TurnOutput};
use crate::delivery::{CloseReason, Frame};
use crate::shards::{CountGuard, CountKind, CountRequest};
use crate::{DeliveryGroupId, ListenerId, Principal, Role, Scope, SignIn};

/// An open subscription.
pub(super) struct LiveSubscription {
    pub(super) id: SubscriptionId,
    pub(super) principal: Arc<str>,
    /// The hash of the token with which the subscription was opened. It is unknown if no token was needed, or if the
    /// subscription was stored by a version that did not store the hash and nobody has attached since.
    pub(super) token_digest: Option<Digest>,
    /// The browser sign-in that stood for the token, if any.
    pub(super) sign_in: Option<SignIn>,
    /// When the token or the sign-in expires.
    pub(super) valid_until: Option<UnixMillis>,
    pub(super) may_answer: bool,
    /// Whether its token may take over from agents.
    pub(super) may_take_handoffs: bool,
    /// Whether its token may take over from agents, and its listener can.
    pub(super) takes_handoffs: bool,
    pub(super) terms: Terms,
    /// The `subscription.accepted` message.
    pub(super) accepted_json: Box<str>,
    pub(super) shaping_terms: Arc<ShapingTerms>,
    pub(super) scope: Arc<Scope>,
    /// The connected listener, and its delivery group once it is attached.
    pub(super) listener: Option<(ListenerId, Option<DeliveryGroupId>)>,
    /// The event after which delivery starts; `None` if delivery starts when a listener attaches.
    pub(super) resume_after: Option<Box<str>>,
    /// The deadline for a listener to attach; `None` while one is connected.
    pub(super) resume_deadline: Option<UnixMillis>,
    /// The previous terms, oldest first. A listener that reconnects gets the missed events with the terms that
    /// applied at the time.
    pub(super) previous_terms: Vec<PreviousTerms>,
    /// Counts the subscription, if there are several shards and this is its home.
    pub(super) count: Option<CountGuard>,
}

/// Terms that no longer apply.
pub(super) struct PreviousTerms {
    /// The log position of the last event to which they applied.
    pub(super) last_position: u64,
    pub(super) shaping_terms: Arc<ShapingTerms>,
    pub(super) accepted_json: Box<str>,
}

/// Maximum number of previous terms that are stored.
const MAX_PREVIOUS_TERMS: usize = 4;

impl Core {
    /// Handles `POST /aaep/v1/subscriptions`.
    pub(super) fn subscribe(
        &mut self,
        principal: &Principal,
        request: Option<&SubscriptionRequest>,
        context: &TurnContext,
    ) -> HubReply {
        if !principal.role.can_subscribe() {
            return HubReply::Forbidden;
        }
        let Some(mut request) = request.cloned() else {
            return MalformedRequest::NotSubscriptionRequest.into();
        };
        if self.subscriptions.len() >= self.limits.subscriptions {
            return LimitReached::Subscriptions.into();
        }
        let Ok(count) = self.count_subscription(self.limits.subscriptions) else {
            return LimitReached::Subscriptions.into();
        };
        if self.is_at_subscription_limit(principal) {
            let message = "This token has too many subscriptions open.";
            return rejection(SubscriptionRejected::new(ReasonCode::RateLimit, message));
        }
        let mut random = [0; 16];
        self.fill_random(&mut random);
        let id =
            SubscriptionId::generate(&mut |bytes: &mut [u8]| bytes.copy_from_slice(&random[..bytes.len()]));
        let offer = self.offer_to(principal);
        let mut sayso = SaysoCapabilities::take_from(&mut request.capabilities);
        sayso.after = sayso.after.filter(|after| self.can_resume_after(after));
        sayso.takes_handoffs &= principal.role.can_take_handoffs();
        match answer_request(&request, &offer, id.clone()) {
            Err(rejected) => rejection(rejected),
            Ok((mut accepted, terms)) => {
                sayso.grant(&mut accepted.honored_capabilities);
                self.questions.subscription_opened(&id, &principal.name);
                let reply = HubReply::Subscribed {
                    accepted: Box::new(accepted),
                    sends_resume_positions: sayso.sends_resume_positions,
                };
                let accepted = reply.to_json().unwrap_or_default();
                let takes_handoffs = sayso.takes_handoffs;
                let mut subscription =
                    LiveSubscription::new(id.clone(), principal, terms, &accepted, takes_handoffs);
                // A subscription that nobody attaches to expires like one whose connection is lost.
                let until = context.now.saturating_add(self.limits.attach_window_ms);
                subscription.resume_deadline = Some(until);
                subscription.resume_after = sayso.after;
                subscription.count = count;
                self.resume_deadlines.insert((until, id.clone()));
                self.staged.writes.push(OwnedEntry::SubscriptionOpened {
                    id: id.clone(),
                    principal: (&*principal.name).into(),
                    record: subscription.to_record(),
                });
                self.subscriptions.insert(id.clone(), subscription);
                self.set_credential(&id, principal);
                reply
            }
        }
    }

    /// Counts a subscription together with those of the other shards. Only its home counts it.
    pub(super) fn count_subscription(&self, max: usize) -> Result<Option<CountGuard>, CountKind> {
        self.count_with_other_shards(&[CountRequest { kind: CountKind::Subscriptions, key: "", max }])
    }

    /// Handles `HubCommand::AddSubscription`: opens the replica of a subscription that its home has accepted.
    pub(super) fn add_subscription(
        &mut self,
        principal: &Principal,
        accepted: &str,
        context: &TurnContext,
    ) -> HubReply {
        if !principal.role.can_subscribe() {
            return HubReply::Forbidden;
        }
        let Some(mut subscription) = LiveSubscription::from_accepted(principal, accepted) else {
            return MalformedRequest::NotSubscriptionRequest.into();
        };
        let id = subscription.id.clone();
        if self.subscriptions.contains_key(&id) {
            return HubReply::NotFound;
        }
        self.questions.subscription_opened(&id, &principal.name);
        let until = context.now.saturating_add(self.limits.attach_window_ms);
        subscription.resume_deadline = Some(until);
        self.resume_deadlines.insert((until, id.clone()));
        self.staged.writes.push(OwnedEntry::SubscriptionOpened {
            id: id.clone(),
            principal: (&*principal.name).into(),
            record: subscription.to_record(),
        });
        self.subscriptions.insert(id.clone(), subscription);
        self.set_credential(&id, principal);
        HubReply::Done
    }

    fn is_at_subscription_limit(&self, principal: &Principal) -> bool {
        let max = self.limits.subscriptions_per_principal;
        let is_own = |live: &&LiveSubscription| *live.principal == *principal.name;
        // If there are fewer than `max` subscriptions in total, they need not be counted.
        !principal.is_local
            && self.subscriptions.len() >= max
            && self.subscriptions.values().filter(is_own).count() >= max
    }

    pub(super) fn offer_to(&self, principal: &Principal) -> Offer {
        let mut offer = self.offer.clone();
        offer.answers_confirmations = principal.role.can_answer();
        offer.answers_clarifications = principal.role.can_answer();
        offer
    }

    /// Detaches a listener. It may reconnect to the subscription within the resume window. If it was too slow, the
    /// subscription is closed instead.
    pub(super) fn detach(&mut self, listener: ListenerId, is_too_slow: bool, context: &TurnContext) {
        let Some(subscription) = self.listeners.remove(&listener) else { return };

        let Some(live) = self.subscriptions.get_mut(&subscription) else { return };
        if let Some((_, Some(group))) = live.listener.take() {
            self.delivery_groups.leave(group);
        }
        let id = live.id.clone();
        if is_too_slow {
            self.close_listener(&subscription, listener, CloseReason::SlowConsumer);
            self.close_subscription(&subscription, context);
        } else {
            let window_ms = self.limits.resume_window_ms;
            let until = context.now.saturating_add(window_ms);
            live.resume_deadline = Some(until);
            self.resume_deadlines.insert((until, subscription.clone()));
            let change = self.questions.subscription_lost(&id, context.now, window_ms);
            self.stage_question_change(change, context);
        }
    }

    /// Stages a `subscription.close` with the reason, and the end of the connection.
    pub(super) fn close_listener(
        &mut self,
        subscription: &SubscriptionId,
        listener: ListenerId,
        reason: CloseReason,
    ) {
        let close_frame = Arc::new(Frame::close(subscription.as_str(), reason));
        self.staged.post_commit.push(PostCommit::Emit(TurnOutput::Send(listener, close_frame)));
        self.staged.post_commit.push(PostCommit::Emit(TurnOutput::Close(listener)));
    }

    /// Closes every connection because the hub is shutting down. Subscriptions and questions stay open for the next
    /// start.
    pub(super) fn shut_down(&mut self) {
        for (listener, subscription) in std::mem::take(&mut self.listeners) {
            self.close_listener(&subscription, listener, CloseReason::ProducerShutdown);
        }
    }

    /// Closes subscriptions whose listeners did not reconnect in time (C-C17).
    pub(super) fn close_expired_subscriptions(&mut self, context: &TurnContext) {
        while self.resume_deadlines.first().is_some_and(|(until, _)| *until <= context.now)
            && let Some((_, subscription)) = self.resume_deadlines.pop_first()
        {
            self.close_subscription(&subscription, context);
        }
    }

    pub(super) fn close_subscription(&mut self, subscription: &SubscriptionId, context: &TurnContext) {
        let Some(live) = self.subscriptions.remove(subscription) else { return };
        if let Some(until) = live.resume_deadline {
            self.resume_deadlines.remove(&(until, subscription.clone()));
        }
        if let Some(until) = live.valid_until {
            self.credential_deadlines.remove(&(until, subscription.clone()));
        }
        if let Some((listener, group)) = live.listener {
            self.listeners.remove(&listener);
            self.staged.post_commit.push(PostCommit::Emit(TurnOutput::Close(listener)));
            if let Some(group) = group {
                self.delivery_groups.leave(group);
            }
        }
        self.staged.writes.push(OwnedEntry::SubscriptionClosed { id: subscription.clone() });
        let change = self.questions.subscription_closed(&live.id, context.now);
        self.stage_question_change(change, context);
    }

    pub(super) fn change_terms(&mut self, subscription: &SubscriptionId, terms: Terms, accepted: &str) {
        let Some(live) = self.subscriptions.get_mut(subscription) else { return };
        let new_terms = shaping_terms(&terms, live.role());
        let shaping_terms = std::mem::replace(&mut live.shaping_terms, new_terms);
        live.terms = terms;
        let previous_json = std::mem::replace(&mut live.accepted_json, accepted.into());
        live.previous_terms.retain(|previous| {
            previous.last_position.saturating_add(self.limits.max_replay_events as u64) > self.last_position
        });
        live.previous_terms.push(PreviousTerms {
            last_position: self.last_position,
            shaping_terms,
            accepted_json: previous_json,
        });
        if live.previous_terms.len() > MAX_PREVIOUS_TERMS {
            live.previous_terms.remove(0);
        }
        let record = live.to_record();
        self.staged.writes.push(OwnedEntry::SubscriptionChanged { id: subscription.clone(), record });
        self.staged.post_commit.push(PostCommit::MoveListener(subscription.clone()));
    }

    /// Moves a listener to the delivery group of its new terms, after the turn is stored.
    pub(super) fn move_listener(&mut self, subscription: &SubscriptionId, outputs: &mut Vec<TurnOutput>) {
        let Some(live) = self.subscriptions.get_mut(subscription) else { return };
        let Some((listener, Some(old))) = live.listener else { return };
        let group = self.delivery_groups.move_listener(old, &live.shaping_terms, &live.scope);
        live.listener = Some((listener, Some(group)));
        if group != old {
            outputs.push(TurnOutput::Move(listener, group));
        }
    }
}

impl LiveSubscription {
    pub(super) fn new(
        id: SubscriptionId,
        principal: &Principal,
        terms: Terms,
        accepted: &str,
        takes_handoffs: bool,
    ) -> Self {
        Self {
            id,
            accepted_json: accepted.into(),
            principal: principal.name.clone(),
            token_digest: principal.token_digest,
            sign_in: None,
            valid_until: None,
            may_answer: principal.role.can_answer(),
            may_take_handoffs: principal.role.can_take_handoffs(),
            takes_handoffs,
            shaping_terms: shaping_terms(&terms, principal.role),
            terms,
            scope: principal.scope.clone(),
            listener: None,
            resume_after: None,
            resume_deadline: None,
            previous_terms: Vec::new(),
            count: None,
        }
    }

    /// Whether it belongs to this principal, with the same token and permissions. A principal with other permissions
    /// must subscribe again.
    pub(super) fn is_owned_by(&self, principal: &Principal) -> bool {
        self.principal == principal.name
            && self.accepts_token_of(principal)
            && self.may_answer == principal.role.can_answer()
            && self.may_take_handoffs == principal.role.can_take_handoffs()
            && self.scope == principal.scope
    }

    /// Whether the principal has the token of the subscription. If that token is unknown, any is accepted; the caller
    /// also compares the principal's name.
    pub(super) fn accepts_token_of(&self, principal: &Principal) -> bool {
        self.token_digest.is_none() || self.token_digest == principal.token_digest
    }

    /// Whether the time to reconnect is over.
    pub(super) fn is_expired(&self, now: UnixMillis) -> bool {
        self.resume_deadline.is_some_and(|until| until <= now)
    }

    /// Returns a role with the rights of the subscription's token.
    fn role(&self) -> Role {
        role_of(self.may_answer, self.may_take_handoffs)
    }

    pub(super) fn to_record(&self) -> String {
        let mut writer = JsonWriter::default();
        writer.open_object();
        writer.key("may_answer");
        writer.boolean(self.may_answer);
        if let Some(digest) = &self.token_digest {
            writer.key("token_digest");
            writer.text(&digest.to_string());
        }
        if self.may_take_handoffs {
            writer.key("may_take_handoffs");
            writer.boolean(true);
        }
        writer.key("scope");
        self.scope.write(&mut writer);
        writer.key("accepted");
        writer.raw(&self.accepted_json);
        writer.key("before");
        writer.open_array();
        for previous in &self.previous_terms {
            writer.open_object();
            writer.key("until");
            writer.integer(i64::try_from(previous.last_position).unwrap_or(i64::MAX));
            writer.key("accepted");
            writer.raw(&previous.accepted_json);
            writer.close_object();
        }
        writer.close_array();
        writer.close_object();
        writer.finish()
    }
}

/// Returns the terms for the shaper. The context of a hand-off is only for those who may take over.
pub(super) fn shaping_terms(terms: &Terms, role: Role) -> Arc<ShapingTerms> {
    Arc::new(ShapingTerms { reads_handoff_context: role.can_take_handoffs(), ..ShapingTerms::from(terms) })
}

/// Returns the listening role that has these rights.
pub(super) fn role_of(may_answer: bool, may_take_handoffs: bool) -> Role {
    match (may_answer, may_take_handoffs) {
        (true, true) => Role::Receiver,
        (true, false) => Role::Listener,
        (false, _) => Role::Observer,
    }
}

pub(super) fn rejection(rejected: SubscriptionRejected) -> HubReply {
    HubReply::SubscriptionRejected(Box::new(rejected))
}
