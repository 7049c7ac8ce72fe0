//! Consent: open questions and their answers, as a producer or hub keeps them (chapter 6; design, decisions 5 to 8, 12).
//!
//! ```text
//!            ask             hear: the first valid reply
//!   (none) ───────▶ open ─────────────────────────────────▶ accepted ──spend──▶ spent
//!                   │  ▲     wake: timeout, closure          refused
//!             extend└──┘     cancel, end, stop               answered
//! ```
//!
//! [`Questions`] is a machine without clock, randomness or I/O, and every change goes in two steps. A call *decides*: it
//! returns a [`Decided`], which says what happened and how the records of the questions read from now on. Whoever keeps
//! the book writes that down, in one transaction, then [commits](Questions::commit) it, and only then tells anybody; if
//! it cannot be written, it is [abandoned](Questions::abandon) and never was. Between the two steps its questions are
//! pending: nothing else is decided about them. What is refused changes nothing at all.
//!
//! - [`ask`](Questions::ask) takes the event that asks, with the subscriptions that it goes to.
//! - [`hear`](Questions::hear) takes a reply, or the wish for more time, and [`stop`](Questions::stop) the person's stop.
//!   Why one is [`Ignored`] is for the log; the sender is never told (§6.3.4, C-D1).
//! - [`wake`](Questions::wake) is called at [`next_deadline`](Questions::next_deadline), or later, or twice: what is over
//!   takes its default, and who has little time left is reminded.
//! - [`subscription_opened`](Questions::subscription_opened), [`lost`](Questions::subscription_lost),
//!   [`resumed`](Questions::subscription_resumed) and [`closed`](Questions::subscription_closed) say who can answer.
//! - [`spend`](Questions::spend) lets an accepted question cover one call, of exactly the action that was asked about.
//! - [`restore`](Questions::restore) makes the book again from its records.
//!
//! ```
//! use aaep::consent::{Limits, Link, Outcome, Questions, Said, Sender};
//! use aaep::{SubscriptionId, event::Event};
//!
//! let mut questions = Questions::new(Limits::default(), std::hash::RandomState::new());
//! let ada = SubscriptionId::parse("sub_ada").unwrap();
//! questions.subscription_opened(&ada, "ada");
//!
//! let asked = Event::parse(r#"{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0",
//!   "type":"aaep:agent.awaiting.confirmation","event_id":"evt_8a3f5b22c91e4d7a","session_id":"sess_2c91a7b4d23f1e88",
//!   "timestamp":"2026-05-24T14:22:11.000Z","producer":{"agent_id":"bank"},"urgency":"critical",
//!   "localization_hints":{"primary_language":"en"},"summary_normal":"May I send it?",
//!   "action":"Send 500 euro to Ben.","consequence":"It cannot be undone.","irreversible":true,"risk_level":"high",
//!   "reply_token":"rpl_4f8a2e7d9c1b6a3f4f8a2e7d9c1b6a3f","timeout_seconds":180,"default_decision":"reject"}"#).unwrap();
//! let at = asked.envelope.timestamp.unix_millis();
//! let decided = questions.ask(&asked, [ada], at).unwrap();
//! questions.commit(decided);
//!
//! let reply = r#"{"type":"confirmation.reply","reply_token":"rpl_4f8a2e7d9c1b6a3f4f8a2e7d9c1b6a3f",
//!   "decision":"accept","subscription_id":"sub_ada","timestamp":"2026-05-24T14:22:20Z"}"#;
//! let Said::Reply(reply) = Said::parse(reply).unwrap() else { panic!() };
//! let mallory = Sender { principal: "mallory", link: Link::Shared };
//! assert!(questions.hear(&reply, &mallory, at + 9_000).is_err());
//! let ada = Sender { principal: "ada", link: Link::Shared };
//! let decided = questions.hear(&reply, &ada, at + 9_000).unwrap();
//! let Outcome::Resolved(resolution) = &decided.outcomes()[0] else { panic!() };
//! assert_eq!(resolution.by.as_str(), "reply");
//! questions.commit(decided);
//! ```

mod action;
mod ask;
mod book;
mod decided;
mod ignored;
mod question;
mod receipt;
mod record;
mod reply;
mod resolution;
mod spend;
mod subscriptions;
mod wake;

pub use crate::session::terms::{SHORTEST_REMINDER, extended, reminders};
pub use action::{Action, NotAnAction};
pub use ask::{Full, NotAsked};
pub use book::{Limits, Questions};
pub use decided::{Asked, Decided, Extended, Left, Outcome, Reminder, Spent, Stopped};
pub use ignored::Ignored;
pub use question::{Question, Status};
pub use receipt::Receipt;
pub use reply::{Link, Reply, Said, Sender};
pub use resolution::{Answer, By, Resolution};
pub use spend::{Call, NotGranted};
