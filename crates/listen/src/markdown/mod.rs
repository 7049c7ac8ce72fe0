//! Makes Markdown speakable: an agent's output goes in as chunks that are cut anywhere, and plain sentences come out.
//!
//! - `stream`: decides how much of an output can be spoken already. Paragraphs flow sentence by sentence; lists, tables, code and
//!   quotes are held until they are complete, up to a limit.
//! - `render`: turns complete Markdown into sentences.
//! - `code_store`: keeps the code that was announced, because it is read only on request.
//!
//! `pulldown-cmark` parses the Markdown. Nothing here reads a clock.

mod code_store;
mod render;
mod stream;
#[cfg(test)]
mod tests;

pub(crate) use code_store::CodeStore;
pub(crate) use stream::{MarkdownStream, ReleaseReason};

seal::string_enum! {
    /// Which outputs are read as Markdown.
    #[non_exhaustive]
    MarkdownMode {
        /// Outputs whose content type is `text/markdown`. An output without a content type is plain text (§4.3.3).
        Labelled "labelled",
        /// Also outputs without a content type and outputs with the content type `text/plain`.
        All "all",
        /// None: Markdown is spoken as it was written.
        Off "off",
    }
}

impl MarkdownMode {
    /// Whether text with this content type is read as Markdown.
    pub(crate) fn applies_to(self, content_type: Option<&str>) -> bool {
        let is = |name: &str| content_type.is_some_and(|found| found.eq_ignore_ascii_case(name));
        let is_labelled = is("text/markdown") || is("text/x-markdown");
        match self {
            Self::Labelled => is_labelled,
            Self::All => is_labelled || content_type.is_none() || is("text/plain"),
            Self::Off => false,
        }
    }
}
