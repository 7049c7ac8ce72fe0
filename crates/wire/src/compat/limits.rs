//! Limits on the state that the hub holds for connections in compatibility mode.

use std::time::Duration;

/// Limits of a connection in compatibility mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompatLimits {
    /// Maximum number of sent questions that are remembered. A reply to a forgotten question is assigned to the current
    /// subscription.
    pub remembered_questions: usize,
    /// Maximum number of sent event ids that are remembered, so that a change of subscription does not repeat events.
    pub remembered_events: usize,
    /// Maximum number of earlier subscriptions that stay open for their open questions. Further ones are closed
    /// immediately.
    pub superseded_subscriptions: usize,
    /// Maximum number of subscription responses that are queued for a stream.
    pub queued_responses: usize,
    /// How long a message that starts a session waits for the client's stream to open, so that the client
    /// misses nothing.
    pub stream_wait: Duration,
}

impl Default for CompatLimits {
    fn default() -> Self {
        Self {
            remembered_questions: 64,
            remembered_events: 256,
            superseded_subscriptions: 16,
            queued_responses: 16,
            stream_wait: Duration::from_secs(2),
        }
    }
}
