//! Forms: what a string must look like to be a tool name, a URI, a language tag, a version.

mod language;
mod name;
mod uri;

pub use language::is_language_tag;
pub(crate) use name::*;
pub use uri::is_uri;
