//! A connection that hears without having asked.

use std::collections::VecDeque;
use std::sync::Arc;

use aaep::SubscriptionId;
use aaep::event::{EventType, Payload};
use aaep::message::Message;
use hub::Principal;
use hub::command::{Command, Reply, SubscriberMessage};
use hub::delivery::Frame;
use tokio::time::timeout;

use super::kept::{Kept, resolved};
use super::words::speaking_for;
use super::{Handover, Limits};
use crate::inbox::Inbox;
use crate::listener::{FAREWELL, refusal};
use crate::server::Bridge;

/// What is asked for whoever does not ask: everything, a sentence at a time, and a way to answer (C-C2).
const TERMS: &str = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"sayso-compat","capabilities":{"supports_confirmation_reply":true,"supports_clarification_reply":true,"coalesce_boundaries":["sentence","completion"]}}"#;

/// An implicit subscription, bound to its connection.
pub(super) struct Bare {
    limits: Limits,
    bridge: Bridge,
    who: Principal,
    pub(super) subscription: SubscriptionId,
    frames: Inbox,
    /// What was to be heard by earlier terms.
    left: VecDeque<Arc<Frame>>,
    /// It has never shaken hands.
    implicit: bool,
    told: VecDeque<Box<str>>,
    /// Questions that it was told and that are open, as far as it has heard.
    open: Vec<String>,
    /// Earlier subscriptions of this connection, each until the questions that it was told are answered.
    kept: Vec<Kept>,
}

/// What a frame comes to.
pub(super) struct Told {
    /// The messages to send.
    pub(super) messages: Vec<String>,
    /// The question in it.
    pub(super) question: Option<String>,
    /// It is the last.
    pub(super) last: bool,
}

impl Bare {
    pub(super) async fn open(bridge: &Bridge, who: &Principal, limits: Limits) -> Result<Self, Reply> {
        let subscribe = Command::subscribe(Message::parse(TERMS));
        let subscription = match bridge.ask(who.clone(), subscribe).await {
            Reply::Subscribed { accepted, .. } => accepted.subscription_id,
            refused => return Err(refused),
        };
        let listener = bridge.new_listener();
        let (frames, sink) = Inbox::new(bridge, listener);
        let attach = Command::AttachFromStart { subscription: subscription.clone(), listener };
        match bridge.ask(who.clone(), attach).await {
            Reply::Done => bridge.connect(listener, sink),
            refused => return Err(refused),
        }
        let (bridge, who) = (bridge.clone(), who.clone());
        Ok(Self {
            limits,
            bridge,
            who,
            subscription,
            frames,
            left: VecDeque::new(),
            implicit: true,
            told: VecDeque::new(),
            open: Vec::new(),
            kept: Vec::new(),
        })
    }

    /// The next frame; none at the end. A future that is dropped before it is done loses nothing.
    pub(super) async fn next(&mut self) -> Option<Arc<Frame>> {
        match self.left.pop_front() {
            Some(frame) => Some(frame),
            None => self.frames.next().await,
        }
    }

    /// What is to be said of a frame. A sign of life, and a place to resume from, is nothing here.
    pub(super) fn tell(&mut self, frame: &Frame) -> Told {
        let mut told = Told { messages: Vec::new(), question: None, last: frame.closes().is_some() };
        if frame.json().is_empty() {
            return told;
        }
        told.messages.push(frame.json().to_owned());
        let Some(event) = frame.parsed() else { return told };
        if let Some(token) = resolved(frame) {
            self.open.retain(|open| *open != token);
        }
        let id = event.envelope.event_id.as_str();
        // With other terms comes how things stand, which was told before.
        let stands = matches!(&event.payload, Payload::StateChanged(it) if it.from_state == it.to_state);
        if self.told.iter().any(|known| **known == *id) || stands && !self.implicit {
            told.messages.clear();
            return told;
        }
        if self.told.len() >= self.limits.told {
            self.told.pop_front();
        }
        self.told.push_back(id.into());
        // The published suite takes the first message that it hears for a sign of life only, and then misses the start of
        // the session. The same event twice is lawful (§8.2.4).
        if self.implicit && event.envelope.event_type == EventType::SessionStarted {
            told.messages.push(frame.json().to_owned());
        }
        told.question = match &event.payload {
            Payload::AwaitingConfirmation(asked) => Some(asked.reply_token.as_str().to_owned()),
            Payload::AwaitingClarification(asked) => Some(asked.reply_token.as_str().to_owned()),
            _ => None,
        };
        if let Some(token) = &told.question
            && self.open.len() < self.limits.questions
        {
            self.open.push(token.clone());
        }
        told
    }

    /// The terms change. Whoever heard by the old ones goes on to hear by the new ones.
    pub(super) async fn go_over(&mut self, subscription: &SubscriptionId) {
        let listener = self.bridge.new_listener();
        let (frames, sink) = Inbox::new(&self.bridge, listener);
        let attach = Command::Attach { subscription: subscription.clone(), last_event_id: None, listener };
        if self.bridge.ask(self.who.clone(), attach).await != Reply::Done {
            return;
        }
        self.bridge.connect(listener, sink);
        self.implicit = false;
        let old = std::mem::replace(&mut self.subscription, subscription.clone());
        let mut before = std::mem::replace(&mut self.frames, frames);
        let open = std::mem::take(&mut self.open);
        self.kept.retain(Kept::is_there);
        if open.is_empty() || self.kept.len() >= self.limits.earlier {
            self.close(&old).await;
            while let Ok(Some(frame)) = timeout(FAREWELL, before.next()).await {
                self.left.extend(Some(frame).filter(|frame| frame.closes().is_none()));
            }
        } else {
            self.left.extend(std::iter::from_fn(|| before.at_hand()));
            self.kept.push(Kept::new(&self.bridge, &self.who, old, before, open));
        }
    }

    /// The subscription that was told a question, as far as this connection knows.
    pub(super) fn replier(&self, token: Option<&str>) -> SubscriptionId {
        let told = self.kept.iter().find(|kept| kept.open.iter().any(|open| Some(open.as_str()) == token));
        told.map_or(&self.subscription, |kept| &kept.subscription).clone()
    }

    pub(super) async fn close(&self, subscription: &SubscriptionId) {
        let message = SubscriberMessage::Close(subscription.clone());
        self.bridge.ask(self.who.clone(), Command::Say { message }).await;
    }
}

/// A request for terms, and what is to be handed to the connection that made it.
pub(super) async fn terms(bridge: &Bridge, who: &Principal, text: &str) -> Handover {
    let reply = bridge.ask(who.clone(), Command::subscribe(Message::parse(text))).await;
    match &reply {
        Reply::Subscribed { accepted, .. } => Handover {
            answer: reply.to_json().unwrap_or_default(),
            subscription: Some(accepted.subscription_id.clone()),
        },
        refused => Handover { answer: refusal(refused).0, subscription: None },
    }
}

/// Other terms for a subscription that is named; nothing is handed on where there is no such.
pub(super) async fn other_terms(bridge: &Bridge, who: &Principal, text: &str) -> Option<Handover> {
    match bridge.ask(who.clone(), Command::Say { message: SubscriberMessage::parse(text) }).await {
        reply @ (Reply::Renegotiated(_) | Reply::SubscriptionRejected(_)) => {
            Some(Handover { answer: reply.to_json()?, subscription: None })
        }
        _ => None,
    }
}

/// A reply, for that subscription. What comes of it is told to nobody but by the events that follow (C-D1).
pub(super) async fn reply(
    bridge: &Bridge,
    who: &Principal,
    subscription: Option<SubscriptionId>,
    text: String,
) {
    let command = match subscription {
        Some(subscription) => {
            let message = SubscriberMessage::parse(&speaking_for(subscription.as_str(), text));
            Command::SayOver { subscription, message }
        }
        None => Command::Say { message: SubscriberMessage::parse(&text) },
    };
    bridge.ask(who.clone(), command).await;
}
