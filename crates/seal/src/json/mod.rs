//! JSON as AAEP requires it (§3.8): strict RFC 8259, parsed without copying, written in the caller's member order.
//!
//! [`Tape`] parses a text into a flat list of nodes, and [`JsonValue`]s refer to them. Only invalid JSON is an error.
//! Questionable input (a duplicate key, a lone surrogate, an integer beyond 2^53) is accepted and noted in [`ParseNotes`],
//! so that the validation rules can report it.
//!
//! ```
//! let mut tape = seal::json::Tape::default();
//! let doc = tape.read(r#"{"tool":"fetch","n":3}"#).unwrap();
//! let tool = doc.root().member("tool").unwrap();
//! assert_eq!(tool.text().unwrap(), "fetch");
//! ```

mod document;
mod number;
mod reader;
mod tape_writer;
mod unescape;
mod writer;

pub use document::{Doc, JsonKind, JsonValue, ParseNotes};
pub use number::JsonNumber;
pub(crate) use reader::find_end_of_unescaped_text;
pub use reader::{MAX_DEPTH, SyntaxError, SyntaxErrorKind, Tape};
pub use tape_writer::{OwnedDoc, TapeWriter};
pub use unescape::unescape;
pub(crate) use writer::quote;
pub use writer::{JsonWriter, RawJson, write_object};
