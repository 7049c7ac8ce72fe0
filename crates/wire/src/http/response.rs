//! An HTTP response: a status, headers and a body.

use std::fmt::Write;

use seal::json::JsonWriter;

/// The status codes that the servers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is named after its status")]
pub enum StatusCode {
    Ok,
    Created,
    Accepted,
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
    InternalServerError,
    BadGateway,
    ServiceUnavailable,
    GatewayTimeout,
}

impl StatusCode {
    /// Returns the number and the reason phrase.
    pub fn code_and_reason(self) -> (u16, &'static str) {
        match self {
            Self::Ok => (200, "OK"),
            Self::Created => (201, "Created"),
            Self::Accepted => (202, "Accepted"),
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
            Self::InternalServerError => (500, "Internal Server Error"),
            Self::BadGateway => (502, "Bad Gateway"),
            Self::ServiceUnavailable => (503, "Service Unavailable"),
            Self::GatewayTimeout => (504, "Gateway Timeout"),
        }
    }
}

/// A complete response.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// The status.
    pub status: StatusCode,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// The title, if this is a problem details response.
    pub(crate) title: Option<Box<str>>,
}

impl HttpResponse {
    /// Creates a response without a body.
    pub fn new(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), title: None }
    }

    /// Sets a body with this media type.
    #[must_use]
    pub fn body(mut self, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.header("Content-Type", media_type)
    }

    /// Sets a JSON body.
    #[must_use]
    pub fn json(self, body: impl Into<Vec<u8>>) -> Self {
        self.body("application/json", body)
    }

    /// Returns the body.
    pub fn body_bytes(&self) -> &[u8] {
        &self.body
    }

    /// Adds a header. Control characters are removed from the value, so that it cannot end the header early.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.chars().filter(|character| !character.is_control()).collect()));
        self
    }

    /// Creates a problem details response with a human-readable title (RFC 9457).
    pub fn problem(status: StatusCode, title: &str) -> Self {
        Self::problem_with(status, title, |_| {})
    }

    /// Refuses the method and names those that the path allows (RFC 9110, section 15.5.6).
    pub fn method_not_allowed(allowed: &str) -> Self {
        let title = format!("Method not allowed; this path allows {allowed}.");
        Self::problem(StatusCode::MethodNotAllowed, &title).header("Allow", allowed)
    }

    /// Creates a problem details response with additional members.
    pub fn problem_with(
        status: StatusCode,
        title: &str,
        write_members: impl FnOnce(&mut JsonWriter),
    ) -> Self {
        let mut writer = JsonWriter::default();
        writer.open_object();
        writer.key("title").text(title);
        writer.key("status").integer(i64::from(status.code_and_reason().0));
        write_members(&mut writer);
        writer.close_object();
        let problem = Self { title: Some(title.into()), ..Self::new(status) };
        problem.body("application/problem+json", writer.finish())
    }

    /// Encodes the response. The response to a HEAD request omits the body.
    pub fn to_bytes(&self, keep_alive: bool, head_only: bool) -> Vec<u8> {
        let (code, reason) = self.status.code_and_reason();
        let mut head = format!("HTTP/1.1 {code} {reason}\r\n");
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let has_body = !matches!(self.status, StatusCode::NoContent | StatusCode::NotModified);
        if has_body {
            let _ = write!(head, "Content-Length: {}\r\n", self.body.len());
        }
        if !self.headers.iter().any(|(name, _)| *name == "Cache-Control") {
            head.push_str("Cache-Control: no-store\r\n");
        }
        head.push_str("X-Content-Type-Options: nosniff\r\n");
        head.push_str(if keep_alive { "\r\n" } else { "Connection: close\r\n\r\n" });
        let mut bytes = head.into_bytes();
        if !head_only && has_body {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_value_cannot_inject_headers() {
        let response = HttpResponse::new(StatusCode::NoContent).header("Location", "/a\r\nSet-Cookie: b=c");
        let text = String::from_utf8(response.to_bytes(true, false)).unwrap();
        assert!(text.starts_with("HTTP/1.1 204 No Content\r\nLocation: /aSet-Cookie: b=c\r\n"));
        assert!(!text.contains("Content-Length"));
    }

    #[test]
    fn a_problem_contains_its_title_and_status() {
        let response = HttpResponse::problem(StatusCode::NotFound, "There is no such session.");
        let text = String::from_utf8(response.to_bytes(false, false)).unwrap();
        assert!(text.contains("application/problem+json") && text.contains("Connection: close"));
        assert!(text.ends_with(r#"{"title":"There is no such session.","status":404}"#));
    }
}
