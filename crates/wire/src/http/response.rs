//! An answer: a status, headers and a body.

use std::fmt::Write;

use seal::json::Writer;

/// The statuses that are given here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the status of its name")]
pub enum Status {
    Ok,
    Created,
    NoContent,
    SeeOther,
    NotModified,
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    RequestTimeout,
    Conflict,
    Gone,
    ContentTooLarge,
    UnsupportedMediaType,
    MisdirectedRequest,
    UnprocessableContent,
    UpgradeRequired,
    TooManyRequests,
    HeadTooLarge,
    InternalError,
    Unavailable,
}

impl Status {
    /// The number and the phrase.
    pub fn line(self) -> (u16, &'static str) {
        match self {
            Self::Ok => (200, "OK"),
            Self::Created => (201, "Created"),
            Self::NoContent => (204, "No Content"),
            Self::SeeOther => (303, "See Other"),
            Self::NotModified => (304, "Not Modified"),
            Self::BadRequest => (400, "Bad Request"),
            Self::Unauthorized => (401, "Unauthorized"),
            Self::Forbidden => (403, "Forbidden"),
            Self::NotFound => (404, "Not Found"),
            Self::MethodNotAllowed => (405, "Method Not Allowed"),
            Self::NotAcceptable => (406, "Not Acceptable"),
            Self::RequestTimeout => (408, "Request Timeout"),
            Self::Conflict => (409, "Conflict"),
            Self::Gone => (410, "Gone"),
            Self::ContentTooLarge => (413, "Content Too Large"),
            Self::UnsupportedMediaType => (415, "Unsupported Media Type"),
            Self::MisdirectedRequest => (421, "Misdirected Request"),
            Self::UnprocessableContent => (422, "Unprocessable Content"),
            Self::UpgradeRequired => (426, "Upgrade Required"),
            Self::TooManyRequests => (429, "Too Many Requests"),
            Self::HeadTooLarge => (431, "Request Header Fields Too Large"),
            Self::InternalError => (500, "Internal Server Error"),
            Self::Unavailable => (503, "Service Unavailable"),
        }
    }
}

/// An answer that is whole.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its status.
    pub status: Status,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// What is wrong, in a problem.
    pub(crate) title: Option<Box<str>>,
}

impl Response {
    /// An answer without a body.
    pub fn new(status: Status) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), title: None }
    }

    /// With a body of that media type.
    #[must_use]
    pub fn body(mut self, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.header("Content-Type", media_type)
    }

    /// With a JSON body.
    #[must_use]
    pub fn json(self, body: impl Into<Vec<u8>>) -> Self {
        self.body("application/json", body)
    }

    /// The body.
    pub(crate) fn content(&self) -> &[u8] {
        &self.body
    }

    /// With a header. What could end a header early is left out of its value.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.chars().filter(|letter| !letter.is_control()).collect()));
        self
    }

    /// A problem that a person understands (RFC 9457).
    pub fn problem(status: Status, title: &str) -> Self {
        Self::problem_with(status, title, |_| {})
    }

    /// A problem with members of its own.
    pub fn problem_with(status: Status, title: &str, more: impl FnOnce(&mut Writer)) -> Self {
        let mut writer = Writer::default();
        writer.open_object();
        writer.key("title").text(title);
        writer.key("status").integer(i64::from(status.line().0));
        more(&mut writer);
        writer.close_object();
        let problem = Self { title: Some(title.into()), ..Self::new(status) };
        problem.body("application/problem+json", writer.finish())
    }

    /// The bytes to send. To a HEAD request, without the body.
    pub fn to_bytes(&self, keep_alive: bool, head_only: bool) -> Vec<u8> {
        let (number, phrase) = self.status.line();
        let mut head = format!("HTTP/1.1 {number} {phrase}\r\n");
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let bodiless = matches!(self.status, Status::NoContent | Status::NotModified);
        if !bodiless {
            let _ = write!(head, "Content-Length: {}\r\n", self.body.len());
        }
        if !self.headers.iter().any(|(name, _)| *name == "Cache-Control") {
            head.push_str("Cache-Control: no-store\r\n");
        }
        head.push_str("X-Content-Type-Options: nosniff\r\n");
        head.push_str(if keep_alive { "\r\n" } else { "Connection: close\r\n\r\n" });
        let mut bytes = head.into_bytes();
        if !head_only && !bodiless {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_cannot_end_early() {
        let response = Response::new(Status::NoContent).header("Location", "/a\r\nSet-Cookie: b=c");
        let text = String::from_utf8(response.to_bytes(true, false)).unwrap();
        assert!(text.starts_with("HTTP/1.1 204 No Content\r\nLocation: /aSet-Cookie: b=c\r\n"));
        assert!(!text.contains("Content-Length"));
    }

    #[test]
    fn a_problem_says_what_is_wrong() {
        let response = Response::problem(Status::NotFound, "There is no such session.");
        let text = String::from_utf8(response.to_bytes(false, false)).unwrap();
        assert!(text.contains("application/problem+json") && text.contains("Connection: close"));
        assert!(text.ends_with(r#"{"title":"There is no such session.","status":404}"#));
    }
}
