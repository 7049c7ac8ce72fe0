//! Listening, for a person: what agents say becomes announcements, what they ask becomes questions, and what the person
//! says goes back.
//!
//! ```text
//!   client ──▶ Ear::hear ──▶ Ear::next ──▶ terminal ──▶ lines, one announcement after the other
//!     ▲           │                   └──▶ Queue ─────▶ a Voice, one at a time, the critical first
//!     └── replies ┘ answer, more time, stop
//! ```
//!
//! - [`Ear`]: the core. It opens no socket and reads no clock; time is an argument.
//! - [`Phrases`]: what sayso itself says, in each language.
//! - [`plain`]: text from strangers, made harmless.
//! - [`Standing`]: who a hub is, as far as that is known.
//! - [`Queue`], [`Voice`]: for whoever speaks slower than agents do.
//! - [`RecentIds`]: ids that have been seen, so that nothing is taken twice.
//! - [`speech`]: such a voice: speech-dispatcher, or `espeak-ng`.
//! - [`client`]: the way to a hub, by HTTP and SSE. It connects again by itself.
//! - [`terminal`]: `sayso listen`, in lines.
//! - [`page`]: the listening page, as files that a hub gives.

mod announcement;
pub mod client;
mod ear;
mod limits;
pub mod page;
mod phrases;
mod plain;
mod queue;
mod recent_ids;
pub mod speech;
mod standing;
pub mod terminal;
mod voice;

pub use announcement::{Announcement, Kind};
pub use ear::{Ear, NotAnswered, Question, Session, Subject, Tastes};
pub use limits::Limits;
pub use phrases::Phrases;
pub use plain::plain;
pub use queue::Queue;
pub use recent_ids::RecentIds;
pub use standing::{Checks, Fault, Standing};
pub use voice::Voice;
