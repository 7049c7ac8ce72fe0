//! The address of a server.

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use http::uri::Authority;

/// The address of a server: `http`, `https`, `ws` or `wss`, a host, perhaps a port and a path.
///
/// ```
/// let url = client::Url::parse("https://hub.example/base/")?;
/// assert_eq!((url.host(), url.port(), url.path()), ("hub.example", 443, "/base"));
/// # Ok::<(), client::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    scheme: Scheme,
    authority: Authority,
    path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
    Ws,
    Wss,
}

/// Why a text is not such an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It does not begin with a scheme that is known.
    #[error("write http://HOST:PORT or https://HOST:PORT")]
    Scheme,
    /// It has more than a host, a port and a path.
    #[error("write http://HOST:PORT, without a name, a password, a query or spaces")]
    Extra,
    /// There is no host, or it cannot be one.
    #[error("it has no host")]
    Host,
    /// The port is not a number that a port can have.
    #[error("its port is not a number from 0 to 65535")]
    Port,
}

impl Url {
    /// Reads an address. User names, passwords, queries and fragments are refused: no caller needs them, and secrets in
    /// them would be shown wherever the address is.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            "ws" => Scheme::Ws,
            "wss" => Scheme::Wss,
            _ => return Err(UrlError::Scheme),
        };
        if rest.contains(['@', '?', '#']) || !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UrlError::Extra);
        }
        let uri: Uri = text.parse().map_err(|_| UrlError::Host)?;
        let authority = uri.authority().cloned().ok_or(UrlError::Host)?;
        if authority.host().is_empty() {
            return Err(UrlError::Host);
        }
        if authority.as_str() != authority.host() && authority.port_u16().is_none() {
            return Err(UrlError::Port);
        }
        Ok(Self { scheme, authority, path: uri.path().trim_end_matches('/').to_owned() })
    }

    /// Reads an address of HTTP, and refuses one of a WebSocket.
    pub fn parse_http(text: &str) -> Result<Self, UrlError> {
        let url = Self::parse(text)?;
        if url.is_websocket() { Err(UrlError::Scheme) } else { Ok(url) }
    }

    /// The same server and another path, which is empty or begins with a slash.
    #[must_use]
    pub fn with_path(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    /// Whether the connection uses TLS.
    pub fn is_tls(&self) -> bool {
        matches!(self.scheme, Scheme::Https | Scheme::Wss)
    }

    /// Whether it names a WebSocket.
    pub fn is_websocket(&self) -> bool {
        matches!(self.scheme, Scheme::Ws | Scheme::Wss)
    }

    /// Whether the server is on this machine.
    pub fn is_loopback(&self) -> bool {
        let host = self.host();
        host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }

    /// The host, without the brackets of an IPv6 address.
    pub fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }

    /// The port, also where none is written.
    pub fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.is_tls() { 443 } else { 80 })
    }

    /// The host and the port as they were written.
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// The path without a slash at its end; empty if there is none.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::Ws => "ws",
            Scheme::Wss => "wss",
        };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]

    use super::*;

    #[test]
    fn an_address_is_taken_apart() {
        let parts = |text: &str| {
            let url = Url::parse(text).unwrap();
            (url.is_tls(), url.host().to_owned(), url.port(), url.authority().to_owned(), url.path)
        };
        let expected = |tls, host: &str, port, authority: &str, path: &str| {
            (tls, host.to_owned(), port, authority.to_owned(), path.to_owned())
        };
        assert_eq!(
            parts("https://api.example/v1/"),
            expected(true, "api.example", 443, "api.example", "/v1")
        );
        assert_eq!(parts("http://[::1]:9/a/b"), expected(false, "::1", 9, "[::1]:9", "/a/b"));
        assert_eq!(parts("HTTP://localhost"), expected(false, "localhost", 80, "localhost", ""));
        assert_eq!(parts("wss://hub"), expected(true, "hub", 443, "hub", ""));
    }

    #[test]
    fn what_is_no_address_or_holds_more_is_refused() {
        for (bad, why) in [
            ("localhost", UrlError::Scheme),
            ("ftp://a", UrlError::Scheme),
            ("http://", UrlError::Host),
            ("http:///path", UrlError::Host),
            ("http://:1", UrlError::Host),
            ("http://[::1", UrlError::Host),
            ("http://a:b", UrlError::Port),
            ("http://a:", UrlError::Port),
            ("http://a:65536", UrlError::Port),
            ("http://me@a", UrlError::Extra),
            ("http://me:secret@a/", UrlError::Extra),
            ("http://a?b", UrlError::Extra),
            ("http://a/#b", UrlError::Extra),
            ("http://a b", UrlError::Extra),
            ("http://a/\u{7}", UrlError::Extra),
            ("http://a/é", UrlError::Extra),
        ] {
            assert_eq!(Url::parse(bad), Err(why), "{bad}");
        }
    }

    #[test]
    fn an_address_is_written_as_it_was_read() {
        for text in ["http://127.0.0.1:8787", "https://[::1]/base", "ws://hub:1"] {
            assert_eq!(Url::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn this_machine_is_known_by_its_names() {
        for here in ["http://localhost", "http://127.0.0.9:1", "http://[::1]:1"] {
            assert!(Url::parse(here).unwrap().is_loopback(), "{here}");
        }
        for elsewhere in ["http://hub", "http://10.0.0.1", "http://localhost.example"] {
            assert!(!Url::parse(elsewhere).unwrap().is_loopback(), "{elsewhere}");
        }
    }
}
