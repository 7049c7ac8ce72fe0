//! The request line and headers.

use thiserror::Error;

/// A request without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The method.
    pub method: Method,
    /// The path of the request target, as it was sent.
    pub path: String,
    /// The query string.
    pub query: Option<String>,
    /// How the end of the body is determined.
    pub framing: BodyFraming,
    /// Whether the client wants the connection to stay open after the response.
    pub keep_alive: bool,
    /// Header names in lower case, with their values.
    headers: Vec<(String, String)>,
}

seal::string_enum! {
    /// The request methods that the servers distinguish.
    Method {
        /// GET
        Get "GET",
        /// HEAD
        Head "HEAD",
        /// POST
        Post "POST",
        /// PUT
        Put "PUT",
        /// DELETE
        Delete "DELETE",
        /// OPTIONS
        Options "OPTIONS",
        /// Any other method.
        Other "OTHER",
    }
}

/// How the end of a body is determined (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// There is no body.
    None,
    /// The body has this many bytes.
    Length(u64),
    /// The body is chunked.
    Chunked,
}

/// Why a request head is rejected. The connection is closed after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeadError {
    /// Not HTTP/1.1 or 1.0.
    #[error("not an HTTP/1.1 request")]
    Malformed,
    /// Too many headers.
    #[error("too many headers")]
    TooManyHeaders,
    /// The target is not a path.
    #[error("the target must be a path starting with a slash")]
    Target,
    /// The Host header is missing, empty or repeated.
    #[error("exactly one Host header is required")]
    Host,
    /// The length of the body is invalid or ambiguous.
    #[error("the length of the body is invalid or ambiguous")]
    Framing,
    /// A header that must be unique is repeated.
    #[error("a header that must be unique is repeated")]
    Repeated,
    /// A line ends with a line feed alone, where other parsers may not see the end of a line.
    #[error("every line of the head must end with CR LF")]
    BareLineFeed,
    /// A header value contains bytes other than printable ASCII and tabs.
    #[error("a header's value must be printable ASCII")]
    Value,
}

/// Headers that must not be repeated, because the servers use a single value.
const SINGLE_HEADERS: [&str; 13] = [
    "asp-session-id",
    "authorization",
    "content-length",
    "content-type",
    "cookie",
    "dpop",
    "host",
    "idempotency-key",
    "last-event-id",
    "origin",
    "sec-websocket-key",
    "sec-websocket-version",
    "transfer-encoding",
];

impl RequestHead {
    /// Maximum number of headers in a request.
    pub const MAX_HEADERS: usize = 64;

    /// Returns the number of headers.
    pub fn header_count(&self) -> usize {
        self.headers.len()
    }

    /// Parses a request head. Returns the head and its size in bytes, or `None` if it is incomplete.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, HeadError> {
        let mut header_slots = [httparse::EMPTY_HEADER; Self::MAX_HEADERS];
        let mut request = httparse::Request::new(&mut header_slots);
        let status = match request.parse(bytes) {
            Ok(status) => status,
            Err(httparse::Error::TooManyHeaders) => return Err(HeadError::TooManyHeaders),
            Err(_) => return Err(HeadError::Malformed),
        };
        // `httparse` also accepts a bare line feed as the end of a line.
        let head_bytes = match status {
            httparse::Status::Complete(consumed) => bytes.get(..consumed).unwrap_or(bytes),
            httparse::Status::Partial => bytes,
        };
        if has_bare_line_feed(head_bytes) {
            return Err(HeadError::BareLineFeed);
        }
        let httparse::Status::Complete(consumed) = status else { return Ok(None) };
        let mut headers = Vec::with_capacity(request.headers.len());
        for header in request.headers.iter() {
            let is_allowed = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t');
            if !header.value.iter().all(is_allowed) {
                return Err(HeadError::Value);
            }
            let value = String::from_utf8_lossy(header.value).trim().to_owned();
            headers.push((header.name.to_ascii_lowercase(), value));
        }
        for name in SINGLE_HEADERS {
            if headers.iter().filter(|(key, _)| key == name).count() > 1 {
                return Err(if name == "host" { HeadError::Host } else { HeadError::Repeated });
            }
        }
        let target = request.path.unwrap_or("");
        if !target.starts_with('/') || target.contains('#') {
            return Err(HeadError::Target);
        }
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        let is_http_1_1 = request.version == Some(1);
        let mut head = Self {
            method: Method::parse(request.method.unwrap_or("")).unwrap_or(Method::Other),
            path: path.to_owned(),
            query,
            framing: BodyFraming::None,
            keep_alive: is_http_1_1,
            headers,
        };
        head.framing = head.read_framing(is_http_1_1)?;
        if head.header("host").is_none_or(str::is_empty) {
            return Err(HeadError::Host);
        }
        if let Some(connection) = head.header("connection") {
            let has_option =
                |option: &str| connection.split(',').any(|part| part.trim().eq_ignore_ascii_case(option));
            head.keep_alive =
                if has_option("close") { false } else { is_http_1_1 || has_option("keep-alive") };
        }
        Ok(Some((head, consumed)))
    }

    /// Determines the framing strictly by RFC 9112 §6.3. Rejects a length together with a transfer coding, a coding other
    /// than chunked, and a list of lengths.
    fn read_framing(&self, is_http_1_1: bool) -> Result<BodyFraming, HeadError> {
        match (self.header("transfer-encoding"), self.header("content-length")) {
            (None, None) => Ok(BodyFraming::None),
            (Some(coding), None) if is_http_1_1 && coding.eq_ignore_ascii_case("chunked") => {
                Ok(BodyFraming::Chunked)
            }
            (None, Some(length)) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
                length.parse().map(BodyFraming::Length).map_err(|_| HeadError::Framing)
            }
            _ => Err(HeadError::Framing),
        }
    }

    /// Returns the value of the first header with this lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns whether a header with this name contains `item` in its comma-separated list.
    pub fn list_contains(&self, name: &str, item: &str) -> bool {
        let values = self.headers.iter().filter(|(key, _)| key == name);
        values.flat_map(|(_, value)| value.split(',')).any(|part| part.trim() == item)
    }

    /// Returns the items of all headers with this name, which contain comma-separated lists.
    pub fn list(&self, name: &str) -> Vec<&str> {
        let values = self.headers.iter().filter(|(key, _)| key == name);
        values.flat_map(|(_, value)| value.split(',')).map(str::trim).collect()
    }

    /// Returns the bearer token of the Authorization header.
    pub fn bearer_token(&self) -> Option<&str> {
        let (scheme, token) = self.header("authorization")?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
    }

    /// Returns a cookie's value.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.header("cookie")?.split(';').find_map(|pair| {
            let (key, value) = pair.trim().split_once('=')?;
            (key == name).then_some(value)
        })
    }

    /// Returns the media type of the body, without parameters, in lower case.
    pub fn media_type(&self) -> Option<String> {
        let value = self.header("content-type")?;
        Some(value.split(';').next().unwrap_or("").trim().to_ascii_lowercase())
    }

    /// Returns whether the Accept header allows this media type. A missing header allows all.
    pub fn accepts(&self, media_type: &str) -> bool {
        let Some(accept) = self.header("accept") else { return true };
        let main_type = media_type.split('/').next().unwrap_or("");
        accept.split(',').any(|range| {
            let range = range.split(';').next().unwrap_or("").trim();
            range.eq_ignore_ascii_case(media_type)
                || range == "*/*"
                || range.strip_suffix("/*") == Some(main_type)
        })
    }
}

impl RequestHead {
    /// Returns whether the Accept header names this media type explicitly, with at least the quality of `default`.
    pub fn prefers(&self, media_type: &str, default: &str) -> bool {
        let quality = |media_type: &str| {
            self.header("accept")?.split(',').find_map(|range| {
                let mut parts = range.split(';').map(str::trim);
                parts.next().filter(|name| name.eq_ignore_ascii_case(media_type))?;
                let quality =
                    parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
                Some(quality.map_or(1.0, |quality| quality.parse::<f32>().unwrap_or(0.0)))
            })
        };
        quality(media_type).is_some_and(|value| value > 0.0 && value >= quality(default).unwrap_or(0.0))
    }
}

/// Returns whether a line ends with a line feed that does not follow a carriage return.
fn has_bare_line_feed(bytes: &[u8]) -> bool {
    let mut previous = 0;
    bytes.iter().any(|byte| std::mem::replace(&mut previous, *byte) != b'\r' && *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RequestHead, HeadError> {
        RequestHead::parse(text.as_bytes()).map(|parsed| parsed.expect("a complete head").0)
    }

    #[test]
    fn a_request_is_parsed() {
        let text = "POST /aaep/v1/replies?a=1 HTTP/1.1\r\nHost: localhost:8787\r\nContent-Length: 4\r\nAuthorization: Bearer abc\r\nContent-Type: application/json; charset=utf-8\r\nCookie: a=b; sayso=xyz\r\n\r\nbody";
        let (head, consumed) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!(&text[consumed..], "body");
        assert_eq!(
            (head.method, head.path.as_str(), head.query.as_deref()),
            (Method::Post, "/aaep/v1/replies", Some("a=1"))
        );
        assert_eq!((head.framing, head.keep_alive), (BodyFraming::Length(4), true));
        assert_eq!((head.bearer_token(), head.cookie("sayso")), (Some("abc"), Some("xyz")));
        assert_eq!(head.media_type().as_deref(), Some("application/json"));
    }

    #[test]
    fn an_incomplete_head_needs_more_bytes() {
        let text = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(RequestHead::parse(&text.as_bytes()[..end]), Ok(None), "{end}");
        }
    }

    #[test]
    fn ambiguous_requests_are_rejected() {
        for (headers, error) in [
            ("Content-Length: 1\r\nContent-Length: 1\r\n", HeadError::Repeated),
            ("Content-Length: 1, 1\r\n", HeadError::Framing),
            ("Content-Length: +1\r\n", HeadError::Framing),
            ("Content-Length: -1\r\n", HeadError::Framing),
            ("Content-Length: 99999999999999999999999\r\n", HeadError::Framing),
            ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", HeadError::Framing),
            ("Transfer-Encoding: gzip, chunked\r\n", HeadError::Framing),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", HeadError::Repeated),
            ("Host: b\r\n", HeadError::Host),
            ("X: y\nContent-Length: 1\r\n", HeadError::BareLineFeed),
            ("X: y\n", HeadError::BareLineFeed),
            ("Authorization: Bearer a\r\nAuthorization: Bearer b\r\n", HeadError::Repeated),
            ("DPoP: a\r\nDPoP: a\r\n", HeadError::Repeated),
        ] {
            assert_eq!(
                parse(&format!("POST / HTTP/1.1\r\nHost: a\r\n{headers}\r\n")),
                Err(error),
                "{headers}"
            );
        }
        assert_eq!(parse("GET / HTTP/1.1\r\n\r\n"), Err(HeadError::Host));
        assert_eq!(parse("GET / HTTP/1.1\r\nHost:\r\n\r\n"), Err(HeadError::Host));
        assert_eq!(parse("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"), Err(HeadError::Target));
        for text in [
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\n",
            "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        ] {
            assert_eq!(parse(text), Err(HeadError::BareLineFeed), "{text:?}");
        }
        let partial = RequestHead::parse(b"GET / HTTP/1.1\r\nHost: a\nX: ");
        assert_eq!(partial, Err(HeadError::BareLineFeed), "an incomplete head is refused at once");
        assert_eq!(parse("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), Err(HeadError::Malformed));
        assert_eq!(parse("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"), Err(HeadError::Malformed));
        assert_eq!(parse("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), Err(HeadError::Malformed));
        assert_eq!(parse("GET / HTTP/1.1\r\nHost: a\u{e9}\r\n\r\n"), Err(HeadError::Value));
        let many = "X: 1\r\n".repeat(RequestHead::MAX_HEADERS);
        assert_eq!(
            parse(&format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n")),
            Err(HeadError::TooManyHeaders)
        );
    }

    #[test]
    fn http_1_0_connections_close_unless_keep_alive_is_requested() {
        assert!(!parse("GET / HTTP/1.0\r\nHost: a\r\n\r\n").unwrap().keep_alive);
        assert!(parse("GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n").unwrap().keep_alive);
        assert!(!parse("GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n").unwrap().keep_alive);
    }

    #[test]
    fn the_alternative_media_type_must_be_named_explicitly() {
        let prefers_jose = |accept: &str| {
            let text = format!("GET / HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n");
            parse(&text).unwrap().prefers("application/jose", "application/json")
        };
        for accept in
            ["application/jose", "Application/JOSE;q=0.1, */*", "application/json;q=0.5,application/jose"]
        {
            assert!(prefers_jose(accept), "{accept}");
        }
        for accept in [
            "*/*",
            "application/*",
            "application/json",
            "application/jose;q=0",
            "application/jose;q=x",
            "application/jose; q=0.2, application/json; q=0.9",
        ] {
            assert!(!prefers_jose(accept), "{accept}");
        }
        assert!(
            !parse("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap()
                .prefers("application/jose", "application/json")
        );
    }

    #[test]
    fn accept_matches_exact_types_and_wildcards() {
        let head =
            |accept: &str| parse(&format!("GET / HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n")).unwrap();
        assert!(head("text/html, text/event-stream;q=0.9").accepts("text/event-stream"));
        assert!(head("*/*").accepts("text/event-stream") && head("text/*").accepts("text/event-stream"));
        assert!(!head("application/json").accepts("text/event-stream"));
    }
}
