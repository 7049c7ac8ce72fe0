//! Consent: open questions and their answers, for a producer or a hub (chapter 6; decisions 5 to 8
//! and 12).
//!
//! ```text
//!            ask        handle_reply: the first valid reply
//!   (none) ───────▶ open ─────────────────────────────────▶ accepted ──spend──▶ spent
//!                   │  ▲     handle_deadlines: timeout,      refused
//!             extend└──┘     closure; cancel, end, stop      closed
//! ```
//!
//! [`QuestionRegistry`] is a state machine without clock, randomness or I/O. Every change has two
//! steps. First, a method returns a [`StagedChange`] with the outcomes and the new records of the
//! questions. The caller stores these records in one transaction, then
//! [commits](QuestionRegistry::commit) the change, and only then notifies anyone. If the write
//! fails, the caller [abandons](QuestionRegistry::abandon) the change. Between the two steps, no other
//! change to the questions is possible. A method that returns an error changes nothing.
//!
//! - [`ask`](QuestionRegistry::ask) takes the event with the question, and the subscriptions that receive it.
//! - [`handle_reply`](QuestionRegistry::handle_reply) takes a reply or a request for more time, and
//!   [`stop_session`](QuestionRegistry::stop_session) takes a person's request to stop a session. The
//!   [`IgnoreReason`] of an ignored message is for the log; the sender never learns it (§6.3.4, C-D1).
//! - [`handle_deadlines`](QuestionRegistry::handle_deadlines) must be called at
//!   [`next_deadline`](QuestionRegistry::next_deadline); calling it later or twice is harmless.
//!   Expired questions get their default, and people with little time left are reminded.
//! - [`subscription_opened`](QuestionRegistry::subscription_opened),
//!   [`subscription_lost`](QuestionRegistry::subscription_lost),
//!   [`subscription_resumed`](QuestionRegistry::subscription_resumed) and
//!   [`subscription_closed`](QuestionRegistry::subscription_closed) track the subscriptions that can answer.
//! - [`spend`](QuestionRegistry::spend) uses an accepted question for one call of exactly the confirmed action.
//! - [`restore`](QuestionRegistry::restore) rebuilds the registry from its records.
//!
//! ```
//! use aaep::consent::{
//!     ConsentLimits, ConsentMessage, ConsentOutcome, MessageSender, QuestionRegistry, ReplyChannel,
//! };
//! use aaep::{SubscriptionId, event::Event};
//!
//! let mut questions = QuestionRegistry::new(ConsentLimits::default(), std::hash::RandomState::new());
//! let subscription = SubscriptionId::parse("sub_ada").unwrap();
//! questions.subscription_opened(&subscription, "ada");
//!
//! let event = Event::parse(r#"{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0",
//!   "type":"aaep:agent.awaiting.confirmation","event_id":"evt_8a3f5b22c91e4d7a","session_id":"sess_2c91a7b4d23f1e88",
//!   "timestamp":"2026-05-24T14:22:11.000Z","producer":{"agent_id":"bank"},"urgency":"critical",
//!   "localization_hints":{"primary_language":"en"},"summary_normal":"May I send it?",
//!   "action":"Send 500 euros to Ben.","consequence":"It cannot be undone.","irreversible":true,"risk_level":"high",
//!   "reply_token":"rpl_4f8a2e7d9c1b6a3f4f8a2e7d9c1b6a3f","timeout_seconds":180,"default_decision":"reject"}"#).unwrap();
//! let asked_at = event.envelope.timestamp.unix_millis();
//! let change = questions.ask(&event, [subscription], asked_at).unwrap();
//! questions.commit(change);
//!
//! let reply = r#"{"type":"confirmation.reply","reply_token":"rpl_4f8a2e7d9c1b6a3f4f8a2e7d9c1b6a3f",
//!   "decision":"accept","subscription_id":"sub_ada","timestamp":"2026-05-24T14:22:20Z"}"#;
//! let ConsentMessage::Reply(reply) = ConsentMessage::parse(reply).unwrap() else { panic!() };
//! let mallory = MessageSender { principal: "mallory", channel: ReplyChannel::Shared };
//! assert!(questions.handle_reply(&reply, &mallory, asked_at + 9_000).is_err());
//! let ada = MessageSender { principal: "ada", channel: ReplyChannel::Shared };
//! let change = questions.handle_reply(&reply, &ada, asked_at + 9_000).unwrap();
//! let ConsentOutcome::Resolved(resolution) = &change.outcomes()[0] else { panic!() };
//! assert_eq!(resolution.resolved_by.as_str(), "reply");
//! questions.commit(change);
//! ```

mod action;
mod ask;
mod ignore_reason;
mod lifecycle;
mod question;
mod question_record;
mod receipt;
mod registry;
mod reply;
mod resolution;
mod spend;
mod staged_change;
mod subscriptions;

pub use crate::session::question_rules::{MIN_REMINDER_MILLIS, extended_deadline, reminder_times};
pub use action::{ActionError, BoundAction};
pub use ask::{AskError, LimitScope};
pub use ignore_reason::IgnoreReason;
pub use question::{Question, QuestionStatus};
pub use receipt::Receipt;
pub use registry::{ConsentLimits, QuestionRegistry};
pub use reply::{ConsentMessage, HandoffReply, MessageSender, Reply, ReplyChannel};
pub use resolution::{QuestionAnswer, Resolution, ResolvedBy};
pub use spend::{GuardedCall, SpendError};
pub use staged_change::{
    ConsentOutcome, ConsentSpent, DeadlineExtended, QuestionOpened, Reminder, ReminderThreshold,
    SessionStopped, StagedChange,
};
