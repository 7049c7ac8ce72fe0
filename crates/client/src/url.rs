//! The address of a server.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use http::Uri;
use http::uri::Authority;

/// The address of a server: the scheme `http`, `https`, `ws`, `wss`, `grpc` or `grpcs`, a host, and optionally a port and a path.
/// For a server on this machine it can also be `unix:` with the path of its Unix socket.
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
    /// The path of the Unix socket, if the server is reached through one.
    socket: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
    Ws,
    Wss,
    Grpc,
    Grpcs,
    Unix,
}

/// Why a text is not a valid address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// The scheme is missing or unknown.
    #[error("the address must begin with http://, https://, ws://, wss://, grpc://, grpcs:// or unix:")]
    InvalidScheme,
    /// The path of the Unix socket is empty or contains a NUL character.
    #[error("write unix: and the path of the socket")]
    InvalidSocketPath,
    /// The address contains a user name, a password, a query, a fragment, or a character that is not printable ASCII.
    #[error("the address must not contain a user name, a password, ?, #, spaces or characters outside ASCII")]
    UnsupportedPart,
    /// The host is missing or invalid.
    #[error("the host is missing or invalid")]
    InvalidHost,
    /// The port is invalid.
    #[error("the port must be a number from 0 to 65535")]
    InvalidPort,
}

impl Url {
    /// Parses an address. User names, passwords, queries and fragments are rejected, because no caller needs them, and
    /// secrets in them would appear wherever the address is shown.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Self::unix(Path::new(path));
        }
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::InvalidScheme)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            "ws" => Scheme::Ws,
            "wss" => Scheme::Wss,
            "grpc" => Scheme::Grpc,
            "grpcs" => Scheme::Grpcs,
            _ => return Err(UrlError::InvalidScheme),
        };
        if rest.contains(['@', '?', '#']) || !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UrlError::UnsupportedPart);
        }
        let uri: Uri = text.parse().map_err(|_| UrlError::InvalidHost)?;
        let authority = uri.authority().cloned().ok_or(UrlError::InvalidHost)?;
        if authority.host().is_empty() {
            return Err(UrlError::InvalidHost);
        }
        if authority.as_str() != authority.host() && authority.port_u16().is_none() {
            return Err(UrlError::InvalidPort);
        }
        let path = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { scheme, authority, path, socket: None })
    }

    /// Returns the address of a server behind this Unix socket. Requests to it name the host `localhost`.
    pub fn unix(socket: &Path) -> Result<Self, UrlError> {
        let is_path = !socket.as_os_str().is_empty() && !socket.as_os_str().as_encoded_bytes().contains(&0);
        let socket = is_path.then(|| socket.to_owned());
        if socket.is_none() {
            return Err(UrlError::InvalidSocketPath);
        }
        Ok(Self {
            scheme: Scheme::Unix,
            authority: Authority::from_static("localhost"),
            path: String::new(),
            socket,
        })
    }

    /// Returns the path of the Unix socket, if the server is reached through one.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Parses an HTTP address or a Unix socket. WebSocket and gRPC addresses are rejected.
    pub fn parse_http(text: &str) -> Result<Self, UrlError> {
        let url = Self::parse(text)?;
        if url.is_websocket() || url.is_grpc() { Err(UrlError::InvalidScheme) } else { Ok(url) }
    }

    /// Returns the address with another path, which must be empty or start with a slash.
    #[must_use]
    pub fn with_path(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    /// Returns whether the connection uses TLS.
    pub fn is_tls(&self) -> bool {
        matches!(self.scheme, Scheme::Https | Scheme::Wss | Scheme::Grpcs)
    }

    /// Returns whether this is a WebSocket address.
    pub fn is_websocket(&self) -> bool {
        matches!(self.scheme, Scheme::Ws | Scheme::Wss)
    }

    /// Returns whether this is a gRPC address.
    pub fn is_grpc(&self) -> bool {
        matches!(self.scheme, Scheme::Grpc | Scheme::Grpcs)
    }

    /// Returns whether the host is `localhost` or a loopback address.
    pub fn is_loopback(&self) -> bool {
        let host = self.host();
        host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }

    /// Returns the host, without the brackets of an IPv6 address.
    pub fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }

    /// Returns the port, or the default port of the scheme.
    pub fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.is_tls() { 443 } else { 80 })
    }

    /// Returns the host and port as they were written.
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// Returns the path without a trailing slash, or an empty string if there is none.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(socket) = &self.socket {
            return write!(f, "unix:{}", socket.display());
        }
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::Ws => "ws",
            Scheme::Wss => "wss",
            Scheme::Grpc => "grpc",
            Scheme::Grpcs => "grpcs",
            Scheme::Unix => "unix",
        };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]

    use super::*;

    #[test]
    fn an_address_is_split_into_its_parts() {
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
    fn invalid_addresses_and_unsupported_parts_are_rejected() {
        for (text, expected) in [
            ("localhost", UrlError::InvalidScheme),
            ("ftp://a", UrlError::InvalidScheme),
            ("http://", UrlError::InvalidHost),
            ("http:///path", UrlError::InvalidHost),
            ("http://:1", UrlError::InvalidHost),
            ("http://[::1", UrlError::InvalidHost),
            ("http://a:b", UrlError::InvalidPort),
            ("http://a:", UrlError::InvalidPort),
            ("http://a:65536", UrlError::InvalidPort),
            ("http://me@a", UrlError::UnsupportedPart),
            ("http://me:secret@a/", UrlError::UnsupportedPart),
            ("http://a?b", UrlError::UnsupportedPart),
            ("http://a/#b", UrlError::UnsupportedPart),
            ("http://a b", UrlError::UnsupportedPart),
            ("http://a/\u{7}", UrlError::UnsupportedPart),
            ("http://a/é", UrlError::UnsupportedPart),
            ("unix:", UrlError::InvalidSocketPath),
            ("unix:a\0b", UrlError::InvalidSocketPath),
        ] {
            assert_eq!(Url::parse(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn normalized_addresses_are_displayed_unchanged() {
        for text in ["http://127.0.0.1:8787", "https://[::1]/base", "ws://hub:1", "unix:/run/user/1/hub.sock"]
        {
            assert_eq!(Url::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn loopback_addresses_are_recognized() {
        for local in ["http://localhost", "http://127.0.0.9:1", "http://[::1]:1", "unix:/run/hub.sock"] {
            assert!(Url::parse(local).unwrap().is_loopback(), "{local}");
        }
        for remote in ["http://hub", "http://10.0.0.1", "http://localhost.example"] {
            assert!(!Url::parse(remote).unwrap().is_loopback(), "{remote}");
        }
    }
}
