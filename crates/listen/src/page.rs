//! The listening page: the HTML, CSS, JavaScript and image files of the folder `page`, embedded in the binary, and the parser of Markdown
//! for the page.

use std::borrow::Cow;

use seal::json::{JsonKind, Tape};

use crate::Phrases;
use crate::markdown::parse_for_page;

/// A file of the page and the path at which a hub serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageAsset {
    /// Its path on the hub.
    pub path: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// Its content.
    pub body: Cow<'static, str>,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

const INDEX: &str = include_str!("../page/index.html");
/// The attribute that marks the page as one without a demo assistant.
const NO_DEMO: &str = "data-demo=\"no\"";

macro_rules! files {
    ($($media_type:ident $name:literal),* $(,)?) => {
        &[$((concat!("/page/", $name), $media_type, include_str!(concat!("../page/", $name)))),*]
    };
}

const FILES: &[(&str, &str, &str)] = files![
    CSS "page.css",
    SVG "icon.svg",
    SCRIPT "main.js",
    SCRIPT "subscriber.js",
    SCRIPT "envelope.js",
    SCRIPT "event_text.js",
    SCRIPT "facts.js",
    SCRIPT "handoff.js",
    SCRIPT "handoffs.js",
    SCRIPT "sha256.js",
    SCRIPT "uri.js",
    SCRIPT "wording.js",
    SCRIPT "phrases.js",
    SCRIPT "phrases/en.js",
    SCRIPT "phrases/es.js",
    SCRIPT "phrases/yo.js",
    SCRIPT "queue.js",
    SCRIPT "announcer.js",
    SCRIPT "sse.js",
    SCRIPT "stream.js",
    SCRIPT "element.js",
    SCRIPT "markdown.js",
    SCRIPT "countdown.js",
    SCRIPT "question.js",
    SCRIPT "question_call.js",
    SCRIPT "question_card.js",
    SCRIPT "question_dialog.js",
    SCRIPT "questions.js",
    SCRIPT "session_card.js",
    SCRIPT "sessions.js",
    SCRIPT "log.js",
    SCRIPT "loss_notice.js",
    SCRIPT "controls.js",
    SCRIPT "notifications.js",
];

/// The path of [`parse_markdown`] on the hub.
pub const MARKDOWN_PATH: &str = "/page/markdown";

/// Maximum number of bytes of Markdown that [`parse_markdown`] parses.
pub const MAX_MARKDOWN_BYTES: usize = 262_144;

/// Parses Markdown for the page, with the same parser and the same words as in the terminal. The request is a JSON object:
/// `parts`, a list of strings, is the text so far, cut where held text was released; `complete` says whether it is all of the output, and
/// `language` is the language of the page. Returns `None` if the request is malformed or too long.
///
/// ```
/// let response = listen::page::parse_markdown(r##"{"parts":["# Result"],"complete":true,"language":"en"}"##).unwrap();
/// assert!(response.contains(r#""spoken":"Heading: Result."#));
/// ```
pub fn parse_markdown(request: &str) -> Option<String> {
    let mut tape = Tape::default();
    let root = tape.read(request).ok()?.root();
    let list = root.member("parts").filter(|parts| parts.kind() == JsonKind::Array)?;
    let parts: Vec<String> =
        list.items().map(|part| part.text().map(Cow::into_owned)).collect::<Option<_>>()?;
    let complete = root.member("complete")?.as_bool()?;
    let language = root.member("language")?.text()?.into_owned();
    let bytes: usize = parts.iter().map(String::len).sum();
    (bytes <= MAX_MARKDOWN_BYTES)
        .then(|| parse_for_page(&parts, complete, Phrases::for_languages(&[language])))
}

/// Returns every file of the page. With `demo`, the page has a text field for requests to the demo assistant.
pub fn assets(demo: bool) -> Vec<PageAsset> {
    let index =
        if demo { Cow::Owned(INDEX.replace(NO_DEMO, "data-demo=\"yes\"")) } else { Cow::Borrowed(INDEX) };
    let files =
        FILES.iter().map(|(path, media_type, body)| PageAsset { path, media_type, body: (*body).into() });
    std::iter::once(PageAsset { path: "/", media_type: HTML, body: index }).chain(files).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_the_page_references_exists() {
        let assets = assets(false);
        let is_served = |path: &str| assets.iter().any(|asset| asset.path == path);
        for asset in &assets {
            let is_file =
                |text: &&str| text.rsplit('.').next().is_some_and(|end| matches!(end, "js" | "css" | "svg"));
            for quoted in asset.body.split('"').filter(is_file) {
                let path = quoted.replace("./", "/page/");
                assert!(is_served(&path), "{}: {quoted}", asset.path);
            }
        }
        assert!(is_served("/") && is_served("/page/main.js"));
    }

    #[test]
    fn the_page_has_no_code_that_turns_text_into_markup() {
        for asset in assets(true) {
            for api in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "Function(",
                "srcdoc",
            ] {
                assert!(!asset.body.contains(api), "{}: {api}", asset.path);
            }
            let inline = [" style=", " onclick", "<style", "javascript:"];
            assert!(!inline.iter().any(|inline| asset.body.contains(inline)), "{}", asset.path);
        }
    }

    #[test]
    fn the_request_field_appears_only_with_a_demo_assistant() {
        let index = |demo| assets(demo).remove(0).body.into_owned();
        assert!(index(false).contains(NO_DEMO) && !index(true).contains(NO_DEMO));
    }
}
