//! Makes Markdown speakable: an agent's output goes in as chunks that are cut anywhere, and plain sentences come out.
//!
//! - `stream`: decides how much of an output can be spoken already. Paragraphs flow sentence by sentence; lists, tables, code and
//!   quotes are held until they are complete, up to a limit.
//! - `render`: turns complete Markdown into sentences.
//! - `code_store`: keeps the code that was announced, because it is read only on request.
//! - `tree`: the same Markdown as a tree, which the listening page turns into elements.
//!
//! `pulldown-cmark` parses the Markdown. Nothing here reads a clock.

mod code_store;
mod math;
mod render;
mod stream;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use code_store::CodeBlockStore;
pub(crate) use stream::{MarkdownStream, ReleaseReason};

use seal::json::write_object;

use crate::{Phrases, SubscriberLimits};

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

/// Parses the part of an output that has arrived, for the listening page. Returns a JSON object: `blocks` is the tree, `spoken` the text that
/// can be announced, and `held` is true if more text waits for the end of its block. `parts` is the text, cut where held text was released.
pub(crate) fn parse_for_page(parts: &[String], complete: bool, phrases: &Phrases) -> String {
    let limits = SubscriberLimits::default();
    let mut stream = MarkdownStream::new(limits.markdown_hold_bytes);
    let mut code_blocks = CodeBlockStore::new(1, 0);
    let mut spoken = String::new();
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            spoken.push_str(&stream.release(ReleaseReason::Pause, phrases, &mut code_blocks));
        }
        spoken.push_str(&stream.push(part, phrases, &mut code_blocks));
    }
    if complete {
        spoken.push_str(&stream.finish(phrases, &mut code_blocks));
    }
    write_object(|writer| {
        tree::write_tree(&parts.concat(), writer.key("blocks"));
        writer.key("spoken").text(&spoken);
        writer.key("held").boolean(stream.holds_block());
    })
}
