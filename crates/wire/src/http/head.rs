//! A request's line and headers.

use thiserror::Error;

/// A request up to its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// What is to be done.
    pub method: Method,
    /// The path of the target, as it was written.
    pub path: String,
    /// What stood after the question mark.
    pub query: Option<String>,
    /// How the body ends.
    pub framing: Framing,
    /// Whether the connection stays open after the answer.
    pub keep_alive: bool,
    /// Names in lower case, and values.
    headers: Vec<(String, String)>,
}

seal::word_enum! {
    /// The methods that mean something here; all others are told apart only by being others.
    Method word {
        /// GET
        Get "GET",
        /// HEAD
        Head "HEAD",
        /// POST
        Post "POST",
        /// DELETE
        Delete "DELETE",
        /// OPTIONS
        Options "OPTIONS",
        /// Any other.
        Other "OTHER",
    }
}

/// How a body ends (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    None,
    /// After so many bytes.
    Length(u64),
    /// Where its last chunk says so.
    Chunked,
}

/// Why bytes are no request. The connection is closed after the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BadHead {
    /// Not HTTP/1.1 or 1.0.
    #[error("not a request of HTTP/1.1")]
    Form,
    /// More headers than are read.
    #[error("too many headers")]
    TooManyHeaders,
    /// The target is not a path.
    #[error("the target must be a path that begins with a slash")]
    Target,
    /// No Host, several, or an empty one.
    #[error("there must be one Host header")]
    Host,
    /// Two readers could differ about where the body ends.
    #[error("the length of the body is not clear")]
    Framing,
    /// A header that may stand once stands twice.
    #[error("a header that may stand once stands twice")]
    Repeated,
    /// A header has bytes that are no text.
    #[error("a header's value must be visible ASCII")]
    Value,
}

/// Headers that decide something here, and so may stand once only.
const ONCE: [&str; 11] = [
    "authorization",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "idempotency-key",
    "last-event-id",
    "origin",
    "sec-websocket-key",
    "sec-websocket-version",
    "transfer-encoding",
];

impl Head {
    /// No request has more headers.
    pub const MOST_HEADERS: usize = 64;

    /// How many headers it has.
    pub fn count(&self) -> usize {
        self.headers.len()
    }

    /// Reads a request's head. `None` if it has not ended yet; otherwise also how many bytes it took.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, BadHead> {
        let mut slots = [httparse::EMPTY_HEADER; Self::MOST_HEADERS];
        let mut request = httparse::Request::new(&mut slots);
        let used = match request.parse(bytes) {
            Ok(httparse::Status::Complete(used)) => used,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(BadHead::TooManyHeaders),
            Err(_) => return Err(BadHead::Form),
        };
        let mut headers = Vec::with_capacity(request.headers.len());
        for header in request.headers.iter() {
            let visible = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t');
            if !header.value.iter().all(visible) {
                return Err(BadHead::Value);
            }
            let value = String::from_utf8_lossy(header.value).trim().to_owned();
            headers.push((header.name.to_ascii_lowercase(), value));
        }
        for name in ONCE {
            if headers.iter().filter(|(key, _)| key == name).count() > 1 {
                return Err(if name == "host" { BadHead::Host } else { BadHead::Repeated });
            }
        }
        let target = request.path.unwrap_or("");
        if !target.starts_with('/') || target.contains('#') {
            return Err(BadHead::Target);
        }
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        let modern = request.version == Some(1);
        let mut head = Self {
            method: Method::parse(request.method.unwrap_or("")).unwrap_or(Method::Other),
            path: path.to_owned(),
            query,
            framing: Framing::None,
            keep_alive: modern,
            headers,
        };
        head.framing = head.read_framing(modern)?;
        if head.header("host").is_none_or(str::is_empty) {
            return Err(BadHead::Host);
        }
        if let Some(connection) = head.header("connection") {
            let has = |word: &str| connection.split(',').any(|part| part.trim().eq_ignore_ascii_case(word));
            head.keep_alive = if has("close") { false } else { modern || has("keep-alive") };
        }
        Ok(Some((head, used)))
    }

    /// RFC 9112 §6.3, without its leniencies: a length beside a transfer coding, a coding other than chunked, and a list of
    /// lengths are refused.
    fn read_framing(&self, modern: bool) -> Result<Framing, BadHead> {
        match (self.header("transfer-encoding"), self.header("content-length")) {
            (None, None) => Ok(Framing::None),
            (Some(coding), None) if modern && coding.eq_ignore_ascii_case("chunked") => Ok(Framing::Chunked),
            (None, Some(length)) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
                length.parse().map(Framing::Length).map_err(|_| BadHead::Framing)
            }
            _ => Err(BadHead::Framing),
        }
    }

    /// The value of the first header of that name, which is given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether a word stands in the lists of all headers of that name, as it is written here.
    pub fn lists(&self, name: &str, word: &str) -> bool {
        let values = self.headers.iter().filter(|(key, _)| key == name);
        values.flat_map(|(_, value)| value.split(',')).any(|part| part.trim() == word)
    }

    /// The bearer token of the Authorization header.
    pub fn bearer(&self) -> Option<&str> {
        let (scheme, token) = self.header("authorization")?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
    }

    /// A cookie's value.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.header("cookie")?.split(';').find_map(|pair| {
            let (key, value) = pair.trim().split_once('=')?;
            (key == name).then_some(value)
        })
    }

    /// The media type of the body, without its parameters, in lower case.
    pub fn media_type(&self) -> Option<String> {
        let value = self.header("content-type")?;
        Some(value.split(';').next().unwrap_or("").trim().to_ascii_lowercase())
    }

    /// Whether the Accept header names that media type, or there is none, or it takes all.
    pub fn accepts(&self, media_type: &str) -> bool {
        let Some(accept) = self.header("accept") else { return true };
        let kind = media_type.split('/').next().unwrap_or("");
        accept.split(',').any(|range| {
            let range = range.split(';').next().unwrap_or("").trim();
            range.eq_ignore_ascii_case(media_type) || range == "*/*" || range.strip_suffix("/*") == Some(kind)
        })
    }
}

impl Head {
    /// Whether the Accept header names that media type itself, and does not rate the usual one higher.
    pub fn prefers(&self, media_type: &str, usual: &str) -> bool {
        let quality = |wanted: &str| {
            self.header("accept")?.split(',').find_map(|range| {
                let mut parts = range.split(';').map(str::trim);
                parts.next().filter(|name| name.eq_ignore_ascii_case(wanted))?;
                let quality =
                    parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
                Some(quality.map_or(1.0, |quality| quality.parse::<f32>().unwrap_or(0.0)))
            })
        };
        quality(media_type).is_some_and(|rated| rated > 0.0 && rated >= quality(usual).unwrap_or(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Head, BadHead> {
        Head::parse(text.as_bytes()).map(|parsed| parsed.expect("whole").0)
    }

    #[test]
    fn a_request_is_read() {
        let text = "POST /aaep/v1/replies?a=1 HTTP/1.1\r\nHost: localhost:8787\r\nContent-Length: 4\r\nAuthorization: Bearer abc\r\nContent-Type: application/json; charset=utf-8\r\nCookie: a=b; sayso=xyz\r\n\r\nbody";
        let (head, used) = Head::parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!(&text[used..], "body");
        assert_eq!(
            (head.method, head.path.as_str(), head.query.as_deref()),
            (Method::Post, "/aaep/v1/replies", Some("a=1"))
        );
        assert_eq!((head.framing, head.keep_alive), (Framing::Length(4), true));
        assert_eq!((head.bearer(), head.cookie("sayso")), (Some("abc"), Some("xyz")));
        assert_eq!(head.media_type().as_deref(), Some("application/json"));
    }

    #[test]
    fn a_head_that_has_not_ended_waits_for_more() {
        let text = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(Head::parse(&text.as_bytes()[..end]), Ok(None), "{end}");
        }
    }

    #[test]
    fn what_two_readers_could_understand_differently_is_refused() {
        for (headers, why) in [
            ("Content-Length: 1\r\nContent-Length: 1\r\n", BadHead::Repeated),
            ("Content-Length: 1, 1\r\n", BadHead::Framing),
            ("Content-Length: +1\r\n", BadHead::Framing),
            ("Content-Length: -1\r\n", BadHead::Framing),
            ("Content-Length: 99999999999999999999999\r\n", BadHead::Framing),
            ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", BadHead::Framing),
            ("Transfer-Encoding: gzip, chunked\r\n", BadHead::Framing),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", BadHead::Repeated),
            ("Host: b\r\n", BadHead::Host),
            ("Authorization: Bearer a\r\nAuthorization: Bearer b\r\n", BadHead::Repeated),
        ] {
            assert_eq!(parse(&format!("POST / HTTP/1.1\r\nHost: a\r\n{headers}\r\n")), Err(why), "{headers}");
        }
        assert_eq!(parse("GET / HTTP/1.1\r\n\r\n"), Err(BadHead::Host));
        assert_eq!(parse("GET / HTTP/1.1\r\nHost:\r\n\r\n"), Err(BadHead::Host));
        assert_eq!(parse("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"), Err(BadHead::Target));
        assert_eq!(parse("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), Err(BadHead::Form));
        assert_eq!(parse("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"), Err(BadHead::Form));
        assert_eq!(parse("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), Err(BadHead::Form));
        assert_eq!(parse("GET / HTTP/1.1\r\nHost: a\u{e9}\r\n\r\n"), Err(BadHead::Value));
        let many = "X: 1\r\n".repeat(Head::MOST_HEADERS);
        assert_eq!(parse(&format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n")), Err(BadHead::TooManyHeaders));
    }

    #[test]
    fn old_clients_close_unless_they_say_otherwise() {
        assert!(!parse("GET / HTTP/1.0\r\nHost: a\r\n\r\n").unwrap().keep_alive);
        assert!(parse("GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n").unwrap().keep_alive);
        assert!(!parse("GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n").unwrap().keep_alive);
    }

    #[test]
    fn what_is_not_usual_is_given_to_those_who_name_it() {
        let asks = |accept: &str| {
            let text = format!("GET / HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n");
            parse(&text).unwrap().prefers("application/jose", "application/json")
        };
        for accept in
            ["application/jose", "Application/JOSE;q=0.1, */*", "application/json;q=0.5,application/jose"]
        {
            assert!(asks(accept), "{accept}");
        }
        let usual =
            ["*/*", "application/*", "application/json", "application/jose;q=0", "application/jose;q=x"];
        for accept in usual.into_iter().chain(["application/jose; q=0.2, application/json; q=0.9"]) {
            assert!(!asks(accept), "{accept}");
        }
        assert!(
            !parse("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap()
                .prefers("application/jose", "application/json")
        );
    }

    #[test]
    fn accept_is_asked_in_its_own_words() {
        let head =
            |accept: &str| parse(&format!("GET / HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n")).unwrap();
        assert!(head("text/html, text/event-stream;q=0.9").accepts("text/event-stream"));
        assert!(head("*/*").accepts("text/event-stream") && head("text/*").accepts("text/event-stream"));
        assert!(!head("application/json").accepts("text/event-stream"));
    }
}
