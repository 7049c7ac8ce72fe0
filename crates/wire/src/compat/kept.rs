//! A subscription that its connection has left for other terms, and that was told questions.
//!
//! Whoever was asked can still answer, whatever it asked for later. So it stays until its questions are answered, or until its
//! connection is gone.

use aaep::SubscriptionId;
use aaep::json::Tape;
use hub::Principal;
use hub::command::{Command, SubscriberMessage};
use hub::delivery::Frame;
use tokio::sync::oneshot;

use crate::inbox::Inbox;
use crate::server::Bridge;

/// It goes when this is dropped.
pub(super) struct Kept {
    pub(super) subscription: SubscriptionId,
    pub(super) open: Vec<String>,
    here: oneshot::Sender<()>,
}

impl Kept {
    /// Keeps it for these questions.
    pub(super) fn new(
        bridge: &Bridge,
        who: &Principal,
        subscription: SubscriptionId,
        mut frames: Inbox,
        open: Vec<String>,
    ) -> Self {
        let (here, mut gone) = oneshot::channel();
        let (bridge, who) = (bridge.clone(), who.clone());
        let (mut left, message) = (open.clone(), SubscriberMessage::Close(subscription.clone()));
        tokio::spawn(async move {
            while !left.is_empty() {
                let frame = tokio::select! {
                    frame = frames.next() => frame,
                    _ = &mut gone => None,
                };
                let Some(frame) = frame else { break };
                if let Some(token) = resolved(&frame) {
                    left.retain(|open| *open != token);
                }
            }
            bridge.ask(who, Command::Say { message }).await;
        });
        Self { subscription, open, here }
    }

    /// Whether some of its questions may be open.
    pub(super) fn is_there(&self) -> bool {
        !self.here.is_closed()
    }
}

/// The question that an event says is resolved (design, decision 15).
pub(super) fn resolved(frame: &Frame) -> Option<String> {
    let mut tape = Tape::default();
    let root = tape.read(frame.json()).ok()?.root();
    let told = root.member("extensions")?.member("sayso")?.member("reply_token")?;
    Some(told.text()?.into_owned())
}
