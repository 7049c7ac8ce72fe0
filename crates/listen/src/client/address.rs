//! Where a hub is.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Notify;

use super::tls::Tls;

/// The address of a hub, and the token by which it lets in.
///
/// ```
/// use listen::client::Address;
/// assert!(Address::parse("http://127.0.0.1:8787", None).is_ok());
/// assert!(Address::parse("ftp://127.0.0.1", None).is_err());
/// ```
#[derive(Clone)]
pub struct Address {
    /// As it stands in a request's `Host`.
    pub(super) authority: String,
    /// What stands before the routes; mostly nothing.
    pub(super) base: String,
    pub(super) token: Option<String>,
    pub(super) tls: Option<Tls>,
    /// Where messages go.
    pub(super) messages: &'static str,
    pub(super) wire: Wire,
    /// Whoever waits to come back need not wait any longer.
    sooner: Arc<Notify>,
}

/// How a hub is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// HTTP, and a stream of server-sent events. It can be come back to.
    Sse,
    /// A message a frame (§B.2).
    WebSocket,
    /// A message a line, on a socket of this machine (§B.4).
    Unix(std::path::PathBuf),
}

/// Why a text is no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAddress(String);

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadAddress {}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.authority)
    }
}

impl Address {
    /// Takes `http://HOST:PORT` or `https://HOST:PORT`, and a bearer token where one is needed.
    pub fn parse(url: &str, token: Option<String>) -> Result<Self, BadAddress> {
        let bad =
            |why: &str| Err(BadAddress(format!("{} is no hub's address: {why}", crate::plain(url, true))));
        let Some((scheme, rest)) = url.split_once("://") else { return bad("write http://HOST:PORT") };
        let secure = scheme.eq_ignore_ascii_case("https");
        if !secure && !scheme.eq_ignore_ascii_case("http") {
            return bad("write http://HOST:PORT or https://HOST:PORT");
        }
        let (authority, base) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        if authority.is_empty() || authority.contains(['@', '?', '#', ' ']) || base.contains(['?', '#', ' '])
        {
            return bad("write http://HOST:PORT, without a name, a password or a query");
        }
        if url.chars().any(char::is_control) {
            return bad("it has control characters in it");
        }
        if token.as_deref().is_some_and(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(BadAddress("a token is plain ASCII text without spaces".to_owned()));
        }
        let tls = secure.then(|| Tls::new(b"")).transpose().map_err(|why| BadAddress(why.to_owned()))?;
        Ok(Self {
            tls,
            authority: authority.to_owned(),
            base: base.trim_end_matches('/').to_owned(),
            token,
            messages: "/aaep/v1/replies",
            wire: Wire::Sse,
            sooner: Arc::default(),
        })
    }

    /// There is a reason to try a lost connection now, and not only after the pause: whoever follows this hub by a clone of
    /// the address does.
    pub fn try_now(&self) {
        self.sooner.notify_one();
    }

    /// Waits for such a reason.
    pub(crate) async fn sooner(&self) {
        self.sooner.notified().await;
    }

    /// The same, and also `ws://HOST:PORT`, `wss://HOST:PORT` and `unix:PATH`, for those who only listen: nothing can be sent
    /// there but by who is connected.
    ///
    /// ```
    /// use listen::client::Address;
    /// assert!(Address::parse_any("unix:/run/user/1000/aaep/sayso-hub.sock", None).is_ok());
    /// assert!(Address::parse_any("ws://127.0.0.1:8787", None).is_ok());
    /// ```
    pub fn parse_any(url: &str, token: Option<String>) -> Result<Self, BadAddress> {
        if let Some(path) = url.strip_prefix("unix:") {
            if path.is_empty() || path.contains('\0') {
                return Err(BadAddress("write unix: and the path of the hub's socket".to_owned()));
            }
            let address = Self::parse("http://localhost", None)?;
            return Ok(Self { wire: Wire::Unix(path.into()), ..address });
        }
        let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        let Some(http) = (match scheme.as_deref() {
            Some("ws") => Some("http"),
            Some("wss") => Some("https"),
            _ => None,
        }) else {
            return Self::parse(url, token);
        };
        let rest = url.split_once("://").map_or("", |(_, rest)| rest);
        // The route may be written out.
        let rest = rest.strip_suffix("/aaep/v1/ws").unwrap_or(rest);
        let address = Self::parse(&format!("{http}://{rest}"), token)?;
        Ok(Self { wire: Wire::WebSocket, ..address })
    }

    /// Whether a lost connection can be taken up where it was.
    pub fn can_resume(&self) -> bool {
        self.wire == Wire::Sse
    }

    /// Trusts these certificates too, in PEM.
    pub fn trusting(mut self, certificates: &[u8]) -> Result<Self, BadAddress> {
        self.tls = match self.tls {
            Some(_) => Some(Tls::new(certificates).map_err(|why| BadAddress(why.to_owned()))?),
            None => return Err(BadAddress("certificates are for https:// only".to_owned())),
        };
        Ok(self)
    }

    /// Whether others on the way can hear and change what is said.
    pub fn is_in_the_clear(&self) -> bool {
        let host = match self.authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or(rest),
            None => self.authority.split(':').next().unwrap_or_default(),
        };
        let local = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        self.tls.is_none() && !local
    }

    /// The same, of a producer that is no hub: it speaks the dialect of AAEP's own packages.
    #[must_use]
    pub fn without_hub(self) -> Self {
        Self { messages: "/messages", ..self }
    }

    /// The address as a person would write it.
    pub fn url(&self) -> String {
        let scheme = match (&self.wire, self.tls.is_some()) {
            (Wire::Unix(path), _) => return format!("unix:{}", crate::plain(&path.to_string_lossy(), true)),
            (Wire::Sse, false) => "http",
            (Wire::Sse, true) => "https",
            (Wire::WebSocket, false) => "ws",
            (Wire::WebSocket, true) => "wss",
        };
        format!("{scheme}://{}{}", self.authority, self.base)
    }

    /// What to connect to: with a port, whether one was written or not.
    pub(super) fn peer(&self) -> String {
        let after_host = self.authority.rsplit_once(']').map_or(self.authority.as_str(), |(_, rest)| rest);
        let port = if self.tls.is_some() { 443 } else { 80 };
        if after_host.contains(':') { self.authority.clone() } else { format!("{}:{port}", self.authority) }
    }
}
