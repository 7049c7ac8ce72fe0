//! The hub's limits. `docs/limits.md` says what happens when one is exceeded.

use aaep::{consent, shaping};
use journal::Retention;

use crate::ArgumentLimits;

/// Limits for hand-offs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandoffLimits {
    /// How long a hand-off stays open if its agent does not say, in milliseconds.
    pub timeout_ms: i64,
    /// The longest time for which an agent may keep a hand-off open, in milliseconds.
    pub max_timeout_ms: i64,
    /// Maximum number of open hand-offs of one agent. A session has at most one.
    pub max_open_per_agent: usize,
    /// Maximum number of open hand-offs in total.
    pub max_open_total: usize,
    /// Maximum size of the context for the person who takes over, in bytes.
    pub max_context_bytes: usize,
}

impl Default for HandoffLimits {
    fn default() -> Self {
        Self {
            timeout_ms: 10 * 60 * 1000,
            max_timeout_ms: 24 * 60 * 60 * 1000,
            max_open_per_agent: 64,
            max_open_total: 1_024,
            max_context_bytes: 64 * 1024,
        }
    }
}

/// The limits that the hub enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubLimits {
    /// Maximum number of open sessions.
    pub sessions: usize,
    /// Maximum number of open sessions per token; without tokens, per agent. Not checked for agents in the hub's own process.
    pub sessions_per_principal: usize,
    /// Maximum number of open subscriptions.
    pub subscriptions: usize,
    /// Maximum number of open subscriptions per principal. Not checked for callers that need no token, because they all
    /// share one principal.
    pub subscriptions_per_principal: usize,
    /// Maximum number of critical events from one agent for one person per minute. Questions do not count; they have
    /// their own limits.
    pub criticals_per_minute: usize,
    /// Maximum number of critical events, including hand-offs, that all agents together send to one person per minute, not
    /// counting questions.
    pub total_criticals_per_minute: usize,
    /// Maximum number of questions from one agent to one person per minute. All listeners with the same token count as
    /// one person.
    pub questions_per_minute: usize,
    /// Maximum number of questions from all agents together to one person per minute.
    pub total_questions_per_minute: usize,
    /// Maximum number of events in one request.
    pub events_per_request: usize,
    /// Maximum size of the events of one request with their envelopes, in bytes.
    pub bytes_per_request: usize,
    /// Size of the events and stored replies of one turn, in bytes, above which further requests wait for the next turn.
    pub bytes_per_turn: usize,
    /// Maximum number of bytes, with envelopes, that one token may publish per minute; without tokens, one agent. Not checked
    /// for agents in the hub's own process.
    pub bytes_per_minute: usize,
    /// Maximum number of characters of each name and each value in a session's `producer` and `localization_hints`, which
    /// are copied into every event.
    pub shared_member_chars: usize,
    /// Maximum size of a session's `producer`, and of its `localization_hints`, in bytes.
    pub shared_object_bytes: usize,
    /// Maximum number of producers of one session.
    pub producers_per_session: usize,
    /// How long an invitation to a session is valid, in milliseconds, if the request asks for no shorter time.
    pub invitation_lifetime_ms: i64,
    /// Maximum number of characters of an idempotency key.
    pub idempotency_key_chars: usize,
    /// Maximum number of manifests that agents publish.
    pub manifests: usize,
    /// Maximum size of a manifest that an agent publishes, signed or not, in bytes; at most
    /// [`MAX_SIGNED_BYTES`](aaep::manifest::MAX_SIGNED_BYTES).
    pub manifest_bytes: usize,
    /// Maximum number of open tools in one session. The same maximum applies to open outputs and to open questions.
    pub open_items_per_session: usize,
    /// Limits for questions.
    pub questions: consent::ConsentLimits,
    /// Limits for hand-offs.
    pub handoffs: HandoffLimits,
    /// Limits for the arguments that a question shows to listeners.
    pub arguments: ArgumentLimits,
    /// How long a session stays open after its agent was last heard from, in milliseconds.
    pub lease_ms: i64,
    /// Maximum lease that an agent can ask for when it starts a session, in milliseconds. A longer one is shortened.
    pub max_lease_ms: i64,
    /// How long a subscription waits for its first connection, in milliseconds.
    pub attach_window_ms: i64,
    /// How long a subscription outlives its connection, in milliseconds (C-C17).
    pub resume_window_ms: i64,
    /// Maximum number of events that are replayed to a listener that reconnects.
    pub max_replay_events: usize,
    /// Maximum size of the events that are read from the journal for such a replay, in bytes.
    pub max_replay_bytes: usize,
    /// Maximum time that one request waits for an answer, in milliseconds.
    pub max_wait_ms: i64,
    /// Maximum number of pending waits per principal.
    pub waits_per_principal: usize,
    /// Maximum number of agent connections that follow one session.
    pub followers_per_session: usize,
    /// Limits for the events held back for a listener.
    pub shaping: shaping::ShaperLimits,
    /// Maximum number of requests in one turn.
    pub requests_per_turn: usize,
    /// Maximum time that the hub's thread sleeps, in milliseconds. It limits how late deadlines are handled after the
    /// clock jumps.
    pub max_sleep_ms: i64,
    /// How long ended sessions and old records are kept. Each turn deletes only a few rows, so that requests do not
    /// have to wait.
    pub retention: Retention,
    /// Interval at which the hub looks for records to delete, in milliseconds.
    pub trim_interval_ms: i64,
}

impl Default for HubLimits {
    fn default() -> Self {
        Self {
            sessions: 10_000,
            sessions_per_principal: 1_000,
            subscriptions: 100_000,
            subscriptions_per_principal: 1_000,
            criticals_per_minute: 60,
            total_criticals_per_minute: 240,
            questions_per_minute: 120,
            total_questions_per_minute: 240,
            events_per_request: 1_000,
            bytes_per_request: 4 << 20,
            bytes_per_turn: 32 << 20,
            bytes_per_minute: 64 << 20,
            shared_member_chars: 256,
            shared_object_bytes: 2_048,
            producers_per_session: 16,
            invitation_lifetime_ms: 600_000,
            idempotency_key_chars: 256,
            manifests: 1_000,
            manifest_bytes: 64 * 1024,
            open_items_per_session: 256,
            questions: consent::ConsentLimits::default(),
            handoffs: HandoffLimits::default(),
            arguments: ArgumentLimits::default(),
            lease_ms: 300_000,
            max_lease_ms: 24 * 60 * 60 * 1000,
            attach_window_ms: 30_000,
            resume_window_ms: 30_000,
            max_replay_events: 1_024,
            max_replay_bytes: 8 * 1024 * 1024,
            max_wait_ms: 300_000,
            waits_per_principal: 1_024,
            followers_per_session: 16,
            shaping: shaping::ShaperLimits::default(),
            requests_per_turn: 1_024,
            max_sleep_ms: 1_000,
            retention: Retention {
                max_idempotency_key_age_ms: Some(24 * 60 * 60 * 1000),
                max_idempotency_keys_per_principal: Some(100_000),
                max_rows_per_step: 200,
                ..Retention::default()
            },
            trim_interval_ms: 60_000,
        }
    }
}
