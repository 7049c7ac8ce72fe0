//! Files that the server is handed and gives as they are: the listening page. They hold no secret, so nobody is asked who they are.

use seal::Digest;

use crate::http::{Head, Method, Response, Status};

/// A file, and the path under which it is given.
#[derive(Clone, Debug)]
pub struct Asset {
    path: &'static str,
    media_type: &'static str,
    body: Vec<u8>,
    tag: String,
}

/// A page of ours loads nothing but from here, runs nothing but files of ours, and stands in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

impl Asset {
    /// A file of that media type.
    pub fn new(path: &'static str, media_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let tag = format!("\"{}\"", Digest::of(&body));
        Self { path, media_type, body, tag }
    }

    fn response(&self, head: &Head) -> Response {
        let known = head.header("if-none-match").is_some_and(|tags| {
            tags.split(',')
                .any(|tag| matches!(tag.trim(), "*") || tag.trim().trim_start_matches("W/") == self.tag)
        });
        let response = if known {
            Response::new(Status::NotModified)
        } else {
            Response::new(Status::Ok).body(self.media_type, self.body.clone())
        };
        response
            .header("Cache-Control", "no-cache")
            .header("ETag", &self.tag)
            .header("Content-Security-Policy", POLICY)
            .header("Referrer-Policy", "no-referrer")
            .header("Cross-Origin-Opener-Policy", "same-origin")
            .header("Cross-Origin-Resource-Policy", "same-origin")
    }
}

/// The file that a request is for; nothing if it is for none of them.
pub(super) fn answer(assets: &[Asset], head: &Head) -> Option<Result<Response, Response>> {
    let asset = assets.iter().find(|asset| asset.path == head.path)?;
    Some(match (head.method, head.query.as_deref()) {
        (Method::Get | Method::Head, None | Some("")) => Ok(asset.response(head)),
        (Method::Get | Method::Head, Some(_)) => {
            Err(Response::problem(Status::BadRequest, "Nothing can be asked with this address."))
        }
        _ => Err(super::routes::another_method()),
    })
}
