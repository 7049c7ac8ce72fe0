//! A subscription that the hub creates for a connection that has not requested one.

use std::collections::VecDeque;
use std::sync::Arc;

use aaep::SubscriptionId;
use aaep::event::{EventType, Payload};
use aaep::message::Message;
use hub::Principal;
use hub::command::{HubCommand, HubReply, SubscriberMessage};
use hub::delivery::Frame;
use tokio::time::timeout;

use super::message_parser::with_subscription_id;
use super::superseded_subscription::{SupersededSubscription, resolved_question};
use super::{CompatLimits, SubscriptionResponse};
use crate::message_transport::{CLOSE_TIMEOUT, rejection_of};
use crate::outbound_queue::OutboundQueue;
use crate::server::HubHandle;

/// The subscription request on behalf of a client that sends none. It asks for all events, output in sentences, and
/// permission to reply (C-C2).
const IMPLICIT_REQUEST: &str = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"sayso-compat","capabilities":{"supports_confirmation_reply":true,"supports_clarification_reply":true,"coalesce_boundaries":["sentence","completion"]}}"#;

/// The subscription of one connection. It is implicit until the client requests another one.
pub(super) struct ImplicitSubscription {
    limits: CompatLimits,
    hub: HubHandle,
    principal: Principal,
    pub(super) subscription: SubscriptionId,
    frames: OutboundQueue,
    /// Frames of an earlier subscription that have not been sent yet.
    leftover_frames: VecDeque<Arc<Frame>>,
    /// Whether the client has never sent a subscription request.
    is_implicit: bool,
    sent_event_ids: VecDeque<Box<str>>,
    /// Reply tokens of the open questions that the client has received.
    open_questions: Vec<String>,
    /// Earlier subscriptions of this connection. Each stays open until its questions are resolved.
    superseded: Vec<SupersededSubscription>,
}

/// The messages for a frame.
pub(super) struct RenderedFrame {
    /// The messages to send.
    pub(super) messages: Vec<String>,
    /// The reply token, if the frame is a question.
    pub(super) question: Option<String>,
    /// Whether this is the last frame.
    pub(super) is_last: bool,
}

impl ImplicitSubscription {
    pub(super) async fn open(
        hub: &HubHandle,
        principal: &Principal,
        limits: CompatLimits,
    ) -> Result<Self, HubReply> {
        let subscribe = HubCommand::subscribe(Message::parse(IMPLICIT_REQUEST));
        let subscription = match hub.ask(principal.clone(), subscribe).await {
            HubReply::Subscribed { accepted, .. } => accepted.subscription_id,
            rejected => return Err(rejected),
        };
        let listener = hub.new_listener_id();
        let (frames, sink) = OutboundQueue::new(hub, listener);
        let attach = HubCommand::AttachFromStart { subscription: subscription.clone(), listener };
        match hub.ask(principal.clone(), attach).await {
            HubReply::Done => hub.connect_listener(listener, sink),
            rejected => return Err(rejected),
        }
        let (hub, principal) = (hub.clone(), principal.clone());
        Ok(Self {
            limits,
            hub,
            principal,
            subscription,
            frames,
            leftover_frames: VecDeque::new(),
            is_implicit: true,
            sent_event_ids: VecDeque::new(),
            open_questions: Vec::new(),
            superseded: Vec::new(),
        })
    }

    /// Returns the next frame, or `None` at the end. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Arc<Frame>> {
        match self.leftover_frames.pop_front() {
            Some(frame) => Some(frame),
            None => self.frames.next().await,
        }
    }

    /// Renders a frame as messages. Heartbeats and resume positions yield no messages.
    pub(super) fn render(&mut self, frame: &Frame) -> RenderedFrame {
        let mut rendered =
            RenderedFrame { messages: Vec::new(), question: None, is_last: frame.close_reason().is_some() };
        if frame.json().is_empty() {
            return rendered;
        }
        rendered.messages.push(frame.json().to_owned());
        let Some(event) = frame.parsed_event() else { return rendered };
        if let Some(token) = resolved_question(frame) {
            self.open_questions.retain(|open| *open != token);
        }
        let id = event.envelope.event_id.as_str();
        // A new subscription starts by repeating the current state, which the client already knows.
        let repeats_state =
            matches!(&event.payload, Payload::StateChanged(change) if change.from_state == change.to_state);
        if self.sent_event_ids.iter().any(|known| **known == *id) || repeats_state && !self.is_implicit {
            rendered.messages.clear();
            return rendered;
        }
        if self.sent_event_ids.len() >= self.limits.remembered_events {
            self.sent_event_ids.pop_front();
        }
        self.sent_event_ids.push_back(id.into());
        // The published conformance suite discards the first message and would miss the session start, so it is sent
        // twice. Duplicate events are allowed (§8.2.4).
        if self.is_implicit && event.envelope.event_type == EventType::SessionStarted {
            rendered.messages.push(frame.json().to_owned());
        }
        rendered.question = match &event.payload {
            Payload::AwaitingConfirmation(payload) => Some(payload.reply_token.as_str().to_owned()),
            Payload::AwaitingClarification(payload) => Some(payload.reply_token.as_str().to_owned()),
            _ => None,
        };
        if let Some(token) = &rendered.question
            && self.open_questions.len() < self.limits.remembered_questions
        {
            self.open_questions.push(token.clone());
        }
        rendered
    }

    /// Switches to another subscription, without losing frames of the old one.
    pub(super) async fn switch_subscription(&mut self, subscription: &SubscriptionId) {
        let listener = self.hub.new_listener_id();
        let (frames, sink) = OutboundQueue::new(&self.hub, listener);
        let attach = HubCommand::Attach { subscription: subscription.clone(), last_event_id: None, listener };
        if self.hub.ask(self.principal.clone(), attach).await != HubReply::Done {
            return;
        }
        self.hub.connect_listener(listener, sink);
        self.is_implicit = false;
        let old = std::mem::replace(&mut self.subscription, subscription.clone());
        let mut old_frames = std::mem::replace(&mut self.frames, frames);
        let open_questions = std::mem::take(&mut self.open_questions);
        self.superseded.retain(SupersededSubscription::is_open);
        if open_questions.is_empty() || self.superseded.len() >= self.limits.superseded_subscriptions {
            self.close(&old).await;
            while let Ok(Some(frame)) = timeout(CLOSE_TIMEOUT, old_frames.next()).await {
                self.leftover_frames.extend(Some(frame).filter(|frame| frame.close_reason().is_none()));
            }
        } else {
            self.leftover_frames.extend(std::iter::from_fn(|| old_frames.try_next()));
            self.superseded.push(SupersededSubscription::new(
                &self.hub,
                &self.principal,
                old,
                old_frames,
                open_questions,
            ));
        }
    }

    /// Returns the subscription through which the client received a question. If that is unknown, returns the current
    /// subscription.
    pub(super) fn subscription_for_reply(&self, token: Option<&str>) -> SubscriptionId {
        let owner = self
            .superseded
            .iter()
            .find(|superseded| superseded.open_questions.iter().any(|open| Some(open.as_str()) == token));
        owner.map_or(&self.subscription, |superseded| &superseded.subscription).clone()
    }

    pub(super) async fn close(&self, subscription: &SubscriptionId) {
        let message = SubscriberMessage::Close(subscription.clone());
        self.hub.ask(self.principal.clone(), HubCommand::SendMessage { message }).await;
    }
}

/// Handles a subscription request. Returns the response and the new subscription, for the client's stream.
pub(super) async fn subscribe(hub: &HubHandle, principal: &Principal, text: &str) -> SubscriptionResponse {
    let reply = hub.ask(principal.clone(), HubCommand::subscribe(Message::parse(text))).await;
    match &reply {
        HubReply::Subscribed { accepted, .. } => SubscriptionResponse {
            json: reply.to_json().unwrap_or_default(),
            subscription: Some(accepted.subscription_id.clone()),
        },
        rejected => SubscriptionResponse { json: rejection_of(rejected).0, subscription: None },
    }
}

/// Handles a renegotiation. Returns `None` if the subscription does not exist.
pub(super) async fn renegotiate(
    hub: &HubHandle,
    principal: &Principal,
    text: &str,
) -> Option<SubscriptionResponse> {
    match hub
        .ask(principal.clone(), HubCommand::SendMessage { message: SubscriberMessage::parse(text) })
        .await
    {
        reply @ (HubReply::Renegotiated(_) | HubReply::SubscriptionRejected(_)) => {
            Some(SubscriptionResponse { json: reply.to_json()?, subscription: None })
        }
        _ => None,
    }
}

/// Sends a reply, on behalf of this subscription if there is one. Only later events show the outcome (C-D1).
pub(super) async fn send_reply(
    hub: &HubHandle,
    principal: &Principal,
    subscription: Option<SubscriptionId>,
    text: String,
) {
    let command = match subscription {
        Some(subscription) => {
            let message = SubscriberMessage::parse(&with_subscription_id(subscription.as_str(), text));
            HubCommand::SendMessageOnSubscription { subscription, message }
        }
        None => HubCommand::SendMessage { message: SubscriberMessage::parse(&text) },
    };
    hub.ask(principal.clone(), command).await;
}
