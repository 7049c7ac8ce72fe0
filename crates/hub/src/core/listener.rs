//! What listeners say: answers, more time, stop, other terms, the end.

use aaep::SubscriptionId;
use aaep::consent::{Ignored, Link, Said, Sender};
use aaep::negotiate::renegotiate;

use super::subscription::{Subscription, rejection};
use super::{Core, Deferred, TurnContext, Write};
use crate::Principal;
use crate::command::{Reply, SubscriberMessage};

impl Core {
    /// `POST /aaep/v1/replies`, or a message over the connection of a subscription: whatever comes of a reply, its sender
    /// learns nothing from the answer (C-D1).
    pub(super) fn say(
        &mut self,
        who: &Principal,
        over: Option<&SubscriptionId>,
        message: &SubscriberMessage,
        context: &TurnContext,
    ) -> Result<Reply, Deferred> {
        Ok(match message {
            SubscriberMessage::Renegotiate(wish) => {
                let Some(known) = self.own_subscription(who, &wish.subscription_id) else {
                    return Ok(Reply::NotFound);
                };
                let terms = known.terms.clone();
                let offer = self.offer_to(who);
                match renegotiate(&terms, wish, &offer) {
                    Ok((accepted, terms)) => {
                        let reply = Reply::Renegotiated(Box::new(accepted));
                        let accepted = reply.to_json().unwrap_or_default();
                        self.change_terms(&wish.subscription_id, terms, &accepted);
                        reply
                    }
                    Err(rejected) => {
                        self.close_subscription(&wish.subscription_id, context);
                        rejection(rejected)
                    }
                }
            }
            SubscriberMessage::Close(id) => {
                if self.own_subscription(who, id).is_none() {
                    return Ok(Reply::NotFound);
                }
                self.close_subscription(id, context);
                Reply::Done
            }
            SubscriberMessage::Said(said) => self.reply(who, over, said, context)?,
        })
    }

    fn own_subscription(&self, who: &Principal, id: &SubscriptionId) -> Option<&Subscription> {
        self.subscriptions.get(id).filter(|one| *one.principal == *who.name)
    }

    /// A reply, more time or stop. Every attempt is written down and answered alike, once that is on disk.
    fn reply(
        &mut self,
        who: &Principal,
        over: Option<&SubscriptionId>,
        said: &Result<Box<Said>, Ignored>,
        context: &TurnContext,
    ) -> Result<Reply, Deferred> {
        let link = over.map_or(Link::Shared, Link::Of);
        let sender = Sender { principal: &who.name, link };
        let heard = match said.as_deref() {
            Err(why) => Err(why.clone()),
            Ok(Said::Stop(wish)) => {
                let hears = self.own_subscription(who, &wish.subscription_id).is_some_and(|one| {
                    one.may_answer
                        && self
                            .sessions
                            .get(&wish.session_id)
                            .is_some_and(|live| one.scope.covers(&live.agent, live.person.as_deref()))
                });
                self.questions.stop(wish, &sender, hears, context.now)
            }
            Ok(Said::Reply(reply)) => self.questions.hear(reply, &sender, context.now),
            Ok(_) => return Ok(Reply::Done),
        };
        // A listener that asks for more time and answers at once must not lose the answer.
        if matches!(heard, Err(Ignored::Pending)) && !context.is_last_round {
            return Err(Deferred);
        }
        let what = match &heard {
            Ok(_) => "taken",
            Err(why) => why.as_str(),
        };
        self.staged.writes.push(Write::Attempt {
            at: context.now,
            subscription: (&*who.name).into(),
            what: what.to_owned(),
        });
        if let Ok(decided) = heard {
            self.decide(decided, context);
        }
        Ok(Reply::Done)
    }
}
