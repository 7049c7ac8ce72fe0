//! The set of valid tokens. Requests with a token that is no longer valid are refused, even on connections that were
//! admitted before.

use std::collections::HashMap;
use std::sync::Arc;

use aaep::SubscriptionId;
use seal::{Digest, UnixMillis};

use super::subscription::LiveSubscription;
use super::{Core, OwnedEntry, PostCommit, TurnContext};
use crate::Principal;
use crate::command::{HubReply, TurnOutput};
use crate::delivery::{CloseReason, Frame};

/// The valid tokens by hash; principals without a token are not checked here.
#[derive(Default)]
pub(super) struct TokenRegistry(Option<HashMap<Digest, Principal>>);

impl TokenRegistry {
    /// Whether requests of this principal are accepted. Until the set is known, all tokens that have not expired are
    /// accepted.
    pub(super) fn accepts(&self, principal: &Principal, now: UnixMillis) -> bool {
        let is_known = match (&self.0, &principal.token_digest) {
            (Some(tokens), Some(token)) => {
                tokens.get(token).is_some_and(|known| known.has_same_token(principal))
            }
            _ => true,
        };
        is_known && principal.valid_until().is_none_or(|until| now < until)
    }

    /// Whether a token is for this agent.
    pub(super) fn has_agent(&self, agent_id: &str) -> bool {
        let is_of_agent = |principal: &Principal| principal.agent_id.as_deref() == Some(agent_id);
        self.0.as_ref().is_some_and(|tokens| tokens.values().any(is_of_agent))
    }

    /// Whether a subscription may stay open. It may if it needs no token, or if its principal has a valid token with the
    /// same permissions. If its token is known, that token must still be valid.
    fn covers_subscription(&self, subscription: &LiveSubscription) -> bool {
        let Some(tokens) = &self.0 else { return true };
        if subscription.token_digest.is_none() && subscription.principal == Principal::local().name {
            return true;
        }
        let mut tokens_of_principal =
            tokens.values().filter(|principal| principal.name == subscription.principal);
        tokens_of_principal.any(|principal| {
            principal.role.can_subscribe()
                && principal.role.can_answer() == subscription.may_answer
                && principal.role.can_take_handoffs() == subscription.may_take_handoffs
                && principal.scope == subscription.scope
                && (subscription.token_digest.is_none()
                    || subscription.token_digest == principal.token_digest)
        })
    }
}

impl Core {
    /// Replaces the set of valid tokens, and closes the subscriptions of all other tokens.
    pub(super) fn set_valid_tokens(&mut self, principals: &[Principal], context: &TurnContext) -> HubReply {
        let is_current = |principal: &&Principal| principal.expires_at.is_none_or(|at| context.now < at);
        let tokens = principals
            .iter()
            .filter(is_current)
            .filter_map(|principal| Some((principal.token_digest?, principal.clone())));
        self.tokens = TokenRegistry(Some(tokens.collect()));
        let invalid: Vec<_> = self
            .subscriptions
            .iter()
            .filter(|(_, subscription)| !self.tokens.covers_subscription(subscription))
            .map(|(id, _)| id.clone())
            .collect();
        for subscription in invalid {
            self.close_unauthorized(&subscription, context);
        }
        HubReply::Done
    }

    /// Closes the subscriptions of a browser sign-in that has ended, or of all sign-ins with the token.
    pub(super) fn end_sign_in(
        &mut self,
        token_digest: &Digest,
        id: Option<[u8; 16]>,
        context: &TurnContext,
    ) -> HubReply {
        let belongs_to_sign_in = |live: &LiveSubscription| {
            live.token_digest.as_ref() == Some(token_digest)
                && live.sign_in.is_some_and(|sign_in| id.is_none_or(|id| id == sign_in.id))
        };
        let ended: Vec<_> = self
            .subscriptions
            .iter()
            .filter(|(_, live)| belongs_to_sign_in(live))
            .map(|(subscription, _)| subscription.clone())
            .collect();
        for subscription in ended {
            self.close_unauthorized(&subscription, context);
        }
        HubReply::Done
    }

    /// Closes the subscriptions whose token or browser sign-in has expired.
    pub(super) fn close_unauthorized_subscriptions(&mut self, context: &TurnContext) {
        while self.credential_deadlines.first().is_some_and(|(until, _)| *until <= context.now)
            && let Some((_, subscription)) = self.credential_deadlines.pop_first()
        {
            self.close_unauthorized(&subscription, context);
        }
    }

    /// Remembers with which token and browser sign-in a subscription is used, so that it closes when they expire.
    pub(super) fn set_credential(&mut self, subscription: &SubscriptionId, principal: &Principal) {
        let Some(live) = self.subscriptions.get_mut(subscription) else { return };
        if let Some(until) = live.valid_until {
            self.credential_deadlines.remove(&(until, subscription.clone()));
        }
        if live.token_digest.is_none() && principal.token_digest.is_some() {
            live.token_digest = principal.token_digest;
            let (id, record) = (subscription.clone(), live.to_record());
            self.staged.writes.push(OwnedEntry::SubscriptionChanged { id, record });
        }
        live.sign_in = principal.sign_in;
        live.valid_until = principal.valid_until();
        if let Some(until) = live.valid_until {
            self.credential_deadlines.insert((until, subscription.clone()));
        }
    }

    /// Closes a subscription that may no longer be used, and tells its listener why.
    fn close_unauthorized(&mut self, subscription: &SubscriptionId, context: &TurnContext) {
        if let Some((listener, _)) = self.subscriptions.get(subscription).and_then(|live| live.listener) {
            let close_frame = Arc::new(Frame::close(subscription.as_str(), CloseReason::TokenRemoved));
            self.staged.post_commit.push(PostCommit::Emit(TurnOutput::Send(listener, close_frame)));
        }
        self.close_subscription(subscription, context);
    }
}
