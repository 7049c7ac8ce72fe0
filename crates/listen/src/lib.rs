//! The listener side of AAEP: turns agent events into announcements and questions for a person, and answers into replies.
//!
//! ```text
//!   client ──▶ Subscriber::receive ──▶ Subscriber::next_announcement ──▶ terminal ──▶ lines, in order
//!     ▲           │                      └──▶ AnnouncementQueue ──▶ SpeechSynthesizer, one at a time, critical first
//!     └── replies ┘ answer, request more time, stop
//! ```
//!
//! - [`Subscriber`]: the core. It opens no socket and reads no clock; the caller passes the time.
//! - [`AnnouncementText`]: the text of an announcement. It knows which parts an agent wrote.
//! - [`Phrases`]: sayso's own texts, in each language.
//! - [`sanitize()`]: makes text from producers safe to print and to speak.
//! - [`EmojiMode`]: what is announced for emoji.
//! - [`MarkdownMode`]: which outputs are read as Markdown, whose markup is not spoken.
//! - [`ManifestStatus`]: what a hub's manifest proves about its identity.
//! - [`AnnouncementQueue`], [`SpeechSynthesizer`]: speech output, which is slower than the agents.
//! - [`RecentIds`]: the ids of recent events, to detect duplicates.
//! - [`braille`]: braille output through brltty.
//! - [`speech`]: speech output with speech-dispatcher or `espeak-ng`.
//! - [`client`]: the connection to a hub. It reconnects by itself.
//! - [`terminal`]: `sayso listen`, a line-based terminal client.
//! - [`page`]: the files of the listening page, which a hub serves.

mod announcement;
mod announcement_queue;
mod announcement_text;
pub mod braille;
pub mod client;
mod emoji;
mod limits;
mod manifest_status;
mod markdown;
pub mod page;
mod phrases;
mod recent_ids;
mod sanitize;
pub mod speech;
mod speech_synthesizer;
mod subscriber;
pub mod terminal;

pub use announcement::{Announcement, AnnouncementKind};
pub use announcement_queue::AnnouncementQueue;
pub use announcement_text::{AnnouncementText, Author};
pub use emoji::EmojiMode;
pub use limits::SubscriberLimits;
pub use manifest_status::{ManifestFault, ManifestPolicy, ManifestStatus};
pub use markdown::MarkdownMode;
pub use phrases::Phrases;
pub use recent_ids::RecentIds;
pub use sanitize::sanitize;
pub use speech_synthesizer::SpeechSynthesizer;
pub use subscriber::{
    ANSWER_GRACE, AnswerError, ListenerHandoff, ListenerQuestion, ObservedSession, Preferences, QuestionBody,
    QuestionCall, Subscriber,
};
