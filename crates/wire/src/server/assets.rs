//! The static files of the listening page. They contain no secrets, so they need no authentication.

use seal::Digest;

use crate::http::{HttpResponse, Method, RequestHead, StatusCode};

/// A static file and its path.
#[derive(Clone, Debug)]
pub struct Asset {
    path: &'static str,
    media_type: &'static str,
    body: Vec<u8>,
    etag: String,
}

/// Allows the page to load resources only from its own origin and to run only its own script files. The page cannot be
/// framed.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

impl Asset {
    /// Creates a file that is served under this path, with this media type.
    pub fn new(path: &'static str, media_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let etag = format!("\"{}\"", Digest::of(&body));
        Self { path, media_type, body, etag }
    }

    fn response(&self, head: &RequestHead) -> HttpResponse {
        let is_cached = head.header("if-none-match").is_some_and(|tags| {
            tags.split(',')
                .any(|tag| matches!(tag.trim(), "*") || tag.trim().trim_start_matches("W/") == self.etag)
        });
        let response = if is_cached {
            HttpResponse::new(StatusCode::NotModified)
        } else {
            HttpResponse::new(StatusCode::Ok).body(self.media_type, self.body.clone())
        };
        response
            .header("Cache-Control", "no-cache")
            .header("ETag", &self.etag)
            .header("Content-Security-Policy", CONTENT_SECURITY_POLICY)
            .header("Referrer-Policy", "no-referrer")
            .header("Cross-Origin-Opener-Policy", "same-origin")
            .header("Cross-Origin-Resource-Policy", "same-origin")
    }
}

/// Returns whether a request is for one of the files.
pub(super) fn is_asset(assets: &[Asset], head: &RequestHead) -> bool {
    assets.iter().any(|asset| asset.path == head.path)
}

/// Returns the response for a request to one of the files, or `None` if the path is not one of them.
pub(super) fn respond(assets: &[Asset], head: &RequestHead) -> Option<Result<HttpResponse, HttpResponse>> {
    let asset = assets.iter().find(|asset| asset.path == head.path)?;
    Some(match (head.method, head.query.as_deref()) {
        (Method::Get | Method::Head, None | Some("")) => Ok(asset.response(head)),
        (Method::Get | Method::Head, Some(_)) => {
            Err(HttpResponse::problem(StatusCode::BadRequest, "This address takes no query parameters."))
        }
        _ => Err(HttpResponse::method_not_allowed("GET, HEAD")),
    })
}
