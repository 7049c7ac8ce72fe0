//! JSON as AAEP wants it (§3.8): RFC 8259 and nothing else, read without copying, written in the order asked for.
//!
//! [`Tape`] reads one text into a flat list of [`Value`]s that point into it. Reading never fails for what is merely
//! unwise (a doubled key, a lone surrogate, an integer beyond 2^53): such things are noted in [`Marks`], so that the
//! rule book can speak of them, and only what is not JSON at all is an error.
//!
//! ```
//! let mut tape = seal::json::Tape::default();
//! let doc = tape.read(r#"{"tool":"fetch","n":3}"#).unwrap();
//! let tool = doc.root().member("tool").unwrap();
//! assert_eq!(tool.text().unwrap(), "fetch");
//! ```

mod node;
mod number;
mod read;
mod scribe;
mod text;
mod write;

pub use node::{Doc, Kind, Marks, Value};
pub use number::Number;
pub(crate) use read::plain_run;
pub use read::{MAX_DEPTH, Problem, SyntaxError, Tape};
pub use scribe::{Kept, Scribe};
pub use text::unescape;
pub(crate) use write::quote;
pub use write::{Raw, Writer, object};
