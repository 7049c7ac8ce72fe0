//! The client's address and scheme, which a trusted proxy reports in headers.

use std::net::IpAddr;

use super::ServerCore;
use crate::http::RequestHead;

impl ServerCore {
    /// Returns the client's address. If the peer is a trusted proxy, this is the last address in `X-Forwarded-For` that is
    /// not itself a trusted proxy. The addresses before it are ignored, because the client can write them.
    pub(crate) fn client_address(&self, head: &RequestHead, peer: IpAddr) -> IpAddr {
        let mut client = peer.to_canonical();
        for address in head.list("x-forwarded-for").into_iter().rev() {
            if !self.is_trusted_proxy(client) {
                break;
            }
            let Ok(address) = address.parse::<IpAddr>() else { break };
            client = address.to_canonical();
        }
        client
    }

    /// Returns whether the client uses HTTPS, to this server or to a proxy in front of it.
    pub(crate) fn is_https(&self, head: &RequestHead, peer: IpAddr) -> bool {
        let is_forwarded_https = || {
            head.list("x-forwarded-proto").last().is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
        };
        self.clients_use_tls() || self.is_trusted_proxy(peer.to_canonical()) && is_forwarded_https()
    }

    pub(crate) fn is_trusted_proxy(&self, address: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(&address))
    }
}
