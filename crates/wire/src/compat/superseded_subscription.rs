//! An earlier subscription of a connection, which still has open questions.
//!
//! A client can answer a question even after it has changed its subscription. The old subscription therefore stays open
//! until its questions are resolved or the connection ends.

use aaep::SubscriptionId;
use aaep::json::Tape;
use hub::Principal;
use hub::command::{HubCommand, SubscriberMessage};
use hub::delivery::Frame;
use tokio::sync::oneshot;

use crate::outbound_queue::OutboundQueue;
use crate::server::HubHandle;

/// A superseded subscription. Dropping it closes the subscription.
pub(super) struct SupersededSubscription {
    pub(super) subscription: SubscriptionId,
    pub(super) open_questions: Vec<String>,
    watcher: oneshot::Sender<()>,
}

impl SupersededSubscription {
    /// Keeps a subscription open for these questions.
    pub(super) fn new(
        hub: &HubHandle,
        principal: &Principal,
        subscription: SubscriptionId,
        mut frames: OutboundQueue,
        open: Vec<String>,
    ) -> Self {
        let (watcher, mut dropped) = oneshot::channel();
        let (hub, principal) = (hub.clone(), principal.clone());
        let (mut remaining, message) = (open.clone(), SubscriberMessage::Close(subscription.clone()));
        tokio::spawn(async move {
            while !remaining.is_empty() {
                let frame = tokio::select! {
                    frame = frames.next() => frame,
                    _ = &mut dropped => None,
                };
                let Some(frame) = frame else { break };
                if let Some(token) = resolved_question(&frame) {
                    remaining.retain(|open| *open != token);
                }
            }
            hub.ask(principal, HubCommand::SendMessage { message }).await;
        });
        Self { subscription, open_questions: open, watcher }
    }

    /// Returns whether some of its questions may still be open.
    pub(super) fn is_open(&self) -> bool {
        !self.watcher.is_closed()
    }
}

/// Returns the question that an event reports as resolved (decision 15).
pub(super) fn resolved_question(frame: &Frame) -> Option<String> {
    let mut tape = Tape::default();
    let root = tape.read(frame.json()).ok()?.root();
    let reply_token = root.member("extensions")?.member("sayso")?.member("reply_token")?;
    Some(reply_token.text()?.into_owned())
}
