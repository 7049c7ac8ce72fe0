//! Which tokens hold. What was said with one that holds no more is not heard, also where it was let in before.

use std::collections::HashMap;
use std::sync::Arc;

use seal::Digest;

use super::subscription::Subscription;
use super::{After, Core, TurnContext};
use crate::Principal;
use crate::command::{Output, Reply};
use crate::delivery::{Frame, Reason};

/// The tokens that hold, by their hashes; whoever has shown none is not looked for here.
#[derive(Default)]
pub(super) struct Known(Option<HashMap<Digest, Principal>>);

impl Known {
    /// Whether what this one says is heard. Before anybody has said which tokens hold, everybody is.
    pub(super) fn hears(&self, who: &Principal) -> bool {
        match (&self.0, &who.token) {
            (Some(known), Some(token)) => known.get(token) == Some(who),
            _ => true,
        }
    }

    /// Whether a subscription is one of theirs, with the same rights, and no token heard it that holds no more; or of who
    /// needs no token.
    fn covers(&self, one: &Subscription) -> bool {
        let Some(known) = &self.0 else { return true };
        if one.token.is_none() && one.principal == Principal::anybody().name {
            return true;
        }
        let mut own = known.values().filter(|who| who.name == one.principal);
        own.any(|who| {
            who.role.hears()
                && who.role.answers() == one.may_answer
                && who.scope == one.scope
                && (one.token.is_none() || one.token == who.token)
        })
    }
}

impl Core {
    /// These tokens hold and no others: the subscriptions of others are closed.
    pub(super) fn know(&mut self, principals: &[Principal], context: &TurnContext) -> Reply {
        let known = principals.iter().filter_map(|who| Some((who.token?, who.clone())));
        self.known = Known(Some(known.collect()));
        let others: Vec<_> = self
            .subscriptions
            .iter()
            .filter(|(_, one)| !self.known.covers(one))
            .map(|(id, one)| (id.clone(), one.listener))
            .collect();
        for (subscription, listener) in others {
            if let Some((listener, _)) = listener {
                let last = Arc::new(Frame::close(subscription.as_str(), Reason::TokenRemoved));
                self.staged.after.push(After::Output(Output::Give(listener, last)));
            }
            self.close_subscription(&subscription, context);
        }
        Reply::Done
    }
}
