//! The set of valid tokens. Requests with a token that is no longer valid are refused, even on connections that were
//! admitted before.

use std::collections::HashMap;
use std::sync::Arc;

use seal::Digest;

use super::subscription::LiveSubscription;
use super::{Core, PostCommit, TurnContext};
use crate::Principal;
use crate::command::{HubReply, TurnOutput};
use crate::delivery::{CloseReason, Frame};

/// The valid tokens by hash; principals without a token are not checked here.
#[derive(Default)]
pub(super) struct TokenRegistry(Option<HashMap<Digest, Principal>>);

impl TokenRegistry {
    /// Whether requests of this principal are accepted. Until the set is known, all requests are accepted.
    pub(super) fn accepts(&self, principal: &Principal) -> bool {
        match (&self.0, &principal.token_digest) {
            (Some(tokens), Some(token)) => tokens.get(token) == Some(principal),
            _ => true,
        }
    }

    /// Whether a subscription may stay open. It may if it needs no token, or if its principal has a valid token with the
    /// same permissions. If the token of the last connection is known, that token must still be valid.
    fn covers_subscription(&self, subscription: &LiveSubscription) -> bool {
        let Some(tokens) = &self.0 else { return true };
        if subscription.token_digest.is_none() && subscription.principal == Principal::unauthenticated().name
        {
            return true;
        }
        let mut tokens_of_principal =
            tokens.values().filter(|principal| principal.name == subscription.principal);
        tokens_of_principal.any(|principal| {
            principal.role.can_subscribe()
                && principal.role.can_answer() == subscription.may_answer
                && principal.scope == subscription.scope
                && (subscription.token_digest.is_none()
                    || subscription.token_digest == principal.token_digest)
        })
    }
}

impl Core {
    /// Replaces the set of valid tokens, and closes the subscriptions of all other tokens.
    pub(super) fn set_valid_tokens(&mut self, principals: &[Principal], context: &TurnContext) -> HubReply {
        let tokens =
            principals.iter().filter_map(|principal| Some((principal.token_digest?, principal.clone())));
        self.tokens = TokenRegistry(Some(tokens.collect()));
        let invalid: Vec<_> = self
            .subscriptions
            .iter()
            .filter(|(_, subscription)| !self.tokens.covers_subscription(subscription))
            .map(|(id, subscription)| (id.clone(), subscription.listener))
            .collect();
        for (subscription, listener) in invalid {
            if let Some((listener, _)) = listener {
                let close_frame = Arc::new(Frame::close(subscription.as_str(), CloseReason::TokenRemoved));
                self.staged.post_commit.push(PostCommit::Emit(TurnOutput::Send(listener, close_frame)));
            }
            self.close_subscription(&subscription, context);
        }
        HubReply::Done
    }
}
