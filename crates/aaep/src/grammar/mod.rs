//! Grammars of strings, such as tool names, URIs, language tags and versions.

mod identifiers;
mod language;
mod uri;

pub(crate) use identifiers::*;
pub use language::is_language_tag;
pub use uri::is_uri;
