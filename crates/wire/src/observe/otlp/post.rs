//! The way to the collector: one POST, one connection, little patience.

use std::fmt;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Where a collector is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    /// With its port.
    host: String,
    /// Begins and ends with a slash.
    path: String,
}

/// Why an address is no collector's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCollector(&'static str);

impl fmt::Display for BadCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for BadCollector {}

impl Collector {
    /// Reads `http://HOST:PORT/PATH`; without a port it is 4318.
    pub fn parse(url: &str) -> Result<Self, BadCollector> {
        let bad = |why| Err(BadCollector(why));
        if url.starts_with("https://") {
            return bad("only http:// is spoken; let a collector on this machine go on from there");
        }
        let Some(rest) = url.strip_prefix("http://") else { return bad("an address begins with http://") };
        if !url.bytes().all(|byte| byte.is_ascii_graphic()) || url.contains(['@', '?', '#']) {
            return bad("an address is http://HOST:PORT/PATH and nothing else");
        }
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        // The colons of an IPv6 address stand in brackets.
        let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
        if host.is_empty() || port.is_some_and(|port| port.parse::<u16>().is_err()) || host.starts_with(':') {
            return bad("an address is http://HOST:PORT/PATH and nothing else");
        }
        let host = if port.is_some() { host.to_owned() } else { format!("{host}:4318") };
        let path = path.trim_end_matches('/');
        let path = if path.is_empty() { "/".to_owned() } else { format!("/{path}/") };
        Ok(Self { host, path })
    }

    /// Whether the collector took it.
    pub(super) fn post(&self, to: &str, json: &str, patience: Duration) -> bool {
        self.try_post(to, json, patience).unwrap_or(false)
    }

    fn try_post(&self, to: &str, json: &str, patience: Duration) -> std::io::Result<bool> {
        let Some(address) = self.host.to_socket_addrs()?.next() else { return Ok(false) };
        let until = Instant::now() + patience;
        let mut stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_write_timeout(Some(patience))?;
        let head = format!(
            "POST {}{to} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.path,
            self.host,
            json.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(json.as_bytes())?;
        // `HTTP/1.1 200` is all that matters.
        let (mut answer, mut piece) = (Vec::new(), [0; 64]);
        while answer.len() < 12 {
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            stream.set_read_timeout(Some(left))?;
            match stream.read(&mut piece)? {
                0 => return Ok(false),
                read => answer.extend_from_slice(piece.get(..read).unwrap_or_default()),
            }
        }
        Ok(answer.starts_with(b"HTTP/1.") && answer.get(8..10) == Some(b" 2"))
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.host, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (url, whole) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/"),
            ("http://collector", "http://collector:4318/"),
            ("http://[::1]/a/b/", "http://[::1]:4318/a/b/"),
            ("http://[::1]:99", "http://[::1]:99/"),
        ] {
            assert_eq!(Collector::parse(url).unwrap().to_string(), whole);
        }
        for bad in [
            "",
            "collector:4318",
            "https://a",
            "http://",
            "http://:1",
            "http://a:b",
            "http://u@a",
            "http://a/ b",
            "http://a\r\nX: y",
            "http://a:99999",
        ] {
            assert!(Collector::parse(bad).is_err(), "{bad}");
        }
    }
}
