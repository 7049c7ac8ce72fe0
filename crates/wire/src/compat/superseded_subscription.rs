//! An earlier subscription of a connection that still has open questions.
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
    /// Reply tokens of the questions that were open when the client changed its subscription.
    pub(super) open_questions: Vec<String>,
    /// Dropping this stops the task that waits until the questions are resolved. It is closed when the task has ended.
    task_guard: oneshot::Sender<()>,
}

impl SupersededSubscription {
    /// Keeps a subscription open for these questions.
    pub(super) fn new(
        hub: &HubHandle,
        principal: &Principal,
        subscription: SubscriptionId,
        mut frames: OutboundQueue,
        open_questions: Vec<String>,
    ) -> Self {
        let (task_guard, mut guard_dropped) = oneshot::channel();
        let (hub, principal) = (hub.clone(), principal.clone());
        let mut remaining = open_questions.clone();
        let message = SubscriberMessage::Close(subscription.clone());
        tokio::spawn(async move {
            while !remaining.is_empty() {
                let frame = tokio::select! {
                    frame = frames.next() => frame,
                    _ = &mut guard_dropped => None,
                };
                let Some(frame) = frame else { break };
                if let Some(token) = resolved_question(&frame) {
                    remaining.retain(|question| *question != token);
                }
            }
            hub.ask(principal, HubCommand::SendMessage { message }).await;
        });
        Self { subscription, open_questions, task_guard }
    }

    /// Returns whether some of its questions may still be open.
    pub(super) fn is_open(&self) -> bool {
        !self.task_guard.is_closed()
    }
}

/// Returns the reply token of the question that an event reports as resolved (decision 15).
pub(super) fn resolved_question(frame: &Frame) -> Option<String> {
    let mut tape = Tape::default();
    let root = tape.read(frame.json()).ok()?.root();
    let reply_token = root.member("extensions")?.member("sayso")?.member("reply_token")?;
    Some(reply_token.text()?.into_owned())
}
