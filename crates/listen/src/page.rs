//! The listening page: the HTML, CSS and JavaScript files of the folder `page`, embedded in the binary.

use std::borrow::Cow;

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
    SCRIPT "main.js",
    SCRIPT "subscriber.js",
    SCRIPT "wording.js",
    SCRIPT "phrases.js",
    SCRIPT "phrases/en.js",
    SCRIPT "phrases/es.js",
    SCRIPT "phrases/yo.js",
    SCRIPT "queue.js",
    SCRIPT "announcer.js",
    SCRIPT "sse.js",
    SCRIPT "stream.js",
    SCRIPT "questions.js",
    SCRIPT "question_call.js",
    SCRIPT "sessions.js",
    SCRIPT "log.js",
    SCRIPT "controls.js",
];

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
                |text: &&str| text.rsplit('.').next().is_some_and(|end| matches!(end, "js" | "css"));
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
