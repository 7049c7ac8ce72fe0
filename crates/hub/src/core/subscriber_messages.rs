//! Messages from listeners: replies, requests for more time, stops, renegotiations and closes.

use aaep::SubscriptionId;
use aaep::consent::{ConsentMessage, IgnoreReason, MessageSender, ReplyChannel, StagedChange};
use aaep::negotiate::renegotiate;

use super::subscription::{LiveSubscription, rejection};
use super::{Core, DeferToNextTurn, OwnedEntry, TurnContext};
use crate::Principal;
use crate::command::{HubReply, SubscriberMessage};

/// The result code of a reply that took effect, in the journal and in the metrics.
pub(super) const REPLY_APPLIED: &str = "applied";

impl Core {
    /// Handles `POST /aaep/v1/replies`, or a message over the connection of the subscription `via`. The response
    /// never tells the sender whether a reply had an effect (C-D1).
    pub(super) fn handle_message(
        &mut self,
        principal: &Principal,
        via: Option<&SubscriptionId>,
        message: &SubscriberMessage,
        context: &TurnContext,
    ) -> Result<HubReply, DeferToNextTurn> {
        Ok(match message {
            SubscriberMessage::Renegotiate(renegotiation) => {
                let Some(live) = self.owned_subscription(principal, &renegotiation.subscription_id) else {
                    return Ok(HubReply::NotFound);
                };
                let terms = live.terms.clone();
                let offer = self.offer_to(principal);
                match renegotiate(&terms, renegotiation, &offer) {
                    Ok((accepted, terms)) => {
                        let reply = HubReply::Renegotiated(Box::new(accepted));
                        let accepted = reply.to_json().unwrap_or_default();
                        self.change_terms(&renegotiation.subscription_id, terms, &accepted);
                        reply
                    }
                    Err(rejected) => {
                        self.close_subscription(&renegotiation.subscription_id, context);
                        rejection(rejected)
                    }
                }
            }
            SubscriberMessage::Close(id) => {
                if self.owned_subscription(principal, id).is_none() {
                    return Ok(HubReply::NotFound);
                }
                self.close_subscription(id, context);
                HubReply::Done
            }
            SubscriberMessage::Consent(reply) => self.handle_reply(principal, via, reply, context)?,
        })
    }

    fn owned_subscription(&self, principal: &Principal, id: &SubscriptionId) -> Option<&LiveSubscription> {
        self.subscriptions.get(id).filter(|subscription| {
            *subscription.principal == *principal.name && subscription.accepts_token_of(principal)
        })
    }

    /// Handles a reply, a request for more time or a stop. Every attempt is stored in the journal and gets the same
    /// response.
    fn handle_reply(
        &mut self,
        principal: &Principal,
        via: Option<&SubscriptionId>,
        reply: &Result<Box<ConsentMessage>, IgnoreReason>,
        context: &TurnContext,
    ) -> Result<HubReply, DeferToNextTurn> {
        let channel = via.map_or(ReplyChannel::Shared, ReplyChannel::Subscription);
        let sender = MessageSender { principal: &principal.name, channel };
        let staged = match reply.as_deref() {
            Err(reason) => Err(reason.clone()),
            // The role of the token that sends the message decides, whatever subscription the message names.
            Ok(_) if !principal.role.can_answer() => Err(IgnoreReason::NotEntitled),
            Ok(ConsentMessage::Reply(reply))
                if self
                    .subscriptions
                    .get(reply.subscription_id())
                    .is_some_and(|subscription| !subscription.accepts_token_of(principal)) =>
            {
                Err(IgnoreReason::WrongPrincipal)
            }
            Ok(ConsentMessage::Stop(stop)) => {
                let may_stop =
                    self.owned_subscription(principal, &stop.subscription_id).is_some_and(|subscription| {
                        subscription.may_answer
                            && self.sessions.get(&stop.session_id).is_some_and(|live| {
                                subscription.scope.covers(&live.agent, live.person.as_deref())
                            })
                    });
                self.questions.stop_session(stop, &sender, may_stop, context.now)
            }
            Ok(ConsentMessage::Handoff(reply)) => {
                self.answer_handoff(principal, via, reply, context).map(|()| StagedChange::default())
            }
            Ok(ConsentMessage::Reply(reply)) => self.questions.handle_reply(reply, &sender, context.now),
            Ok(_) => return Ok(HubReply::Done),
        };
        // If a listener asks for more time and answers in the same turn, the answer must not be lost.
        if matches!(staged, Err(IgnoreReason::ChangeStaged)) {
            return Err(DeferToNextTurn);
        }
        let result_code = match &staged {
            Ok(_) => REPLY_APPLIED,
            Err(reason) => reason.as_str(),
        };
        self.staged.writes.push(OwnedEntry::ReplyAttempted {
            at: context.now,
            principal: (&*principal.name).into(),
            result: result_code.to_owned(),
        });
        if let Ok(change) = staged {
            self.stage_question_change(change, context);
        }
        Ok(HubReply::Done)
    }
}
