//! The listening page: plain HTML, CSS and JavaScript in the folder `page`, as they are, in the binary.

use std::borrow::Cow;

/// A file of the page, and where a hub gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    /// Its path on the hub.
    pub path: &'static str,
    /// What it is.
    pub media_type: &'static str,
    /// The file.
    pub body: Cow<'static, str>,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const INDEX: &str = include_str!("../page/index.html");
/// Says in the page that there is nobody to ask.
const NO_DEMO: &str = "data-demo=\"no\"";

macro_rules! files {
    ($($media_type:ident $name:literal),* $(,)?) => {
        &[$((concat!("/page/", $name), $media_type, include_str!(concat!("../page/", $name)))),*]
    };
}

const FILES: &[(&str, &str, &str)] = files![
    CSS "page.css",
    SCRIPT "main.js",
    SCRIPT "ear.js",
    SCRIPT "words.js",
    SCRIPT "phrases.js",
    SCRIPT "phrases/en.js",
    SCRIPT "phrases/es.js",
    SCRIPT "phrases/yo.js",
    SCRIPT "queue.js",
    SCRIPT "voice.js",
    SCRIPT "sse.js",
    SCRIPT "stream.js",
    SCRIPT "questions.js",
    SCRIPT "sessions.js",
    SCRIPT "log.js",
    SCRIPT "controls.js",
];

/// Every file of the page. `demo` says whether the hub has an assistant to ask, for which the page then has a field.
pub fn assets(demo: bool) -> Vec<Asset> {
    let index =
        if demo { Cow::Owned(INDEX.replace(NO_DEMO, "data-demo=\"yes\"")) } else { Cow::Borrowed(INDEX) };
    let files = FILES.iter().map(|(path, media_type, body)| Asset { path, media_type, body: (*body).into() });
    std::iter::once(Asset { path: "/", media_type: HTML, body: index }).chain(files).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_the_page_names_is_there() {
        let assets = assets(false);
        let known = |path: &str| assets.iter().any(|asset| asset.path == path);
        for asset in &assets {
            let is_file =
                |text: &&str| text.rsplit('.').next().is_some_and(|end| matches!(end, "js" | "css"));
            for quoted in asset.body.split('"').filter(is_file) {
                let path = quoted.replace("./", "/page/");
                assert!(known(&path), "{}: {quoted}", asset.path);
            }
        }
        assert!(known("/") && known("/page/main.js"));
    }

    #[test]
    fn a_producers_text_has_no_way_to_become_markup() {
        for asset in assets(true) {
            for way in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "Function(",
                "srcdoc",
            ] {
                assert!(!asset.body.contains(way), "{}: {way}", asset.path);
            }
            let inline = [" style=", " onclick", "<style", "javascript:"];
            assert!(!inline.iter().any(|inline| asset.body.contains(inline)), "{}", asset.path);
        }
    }

    #[test]
    fn the_field_to_ask_is_only_there_where_somebody_can_be_asked() {
        let index = |demo| assets(demo).remove(0).body.into_owned();
        assert!(index(false).contains(NO_DEMO) && !index(true).contains(NO_DEMO));
    }
}
