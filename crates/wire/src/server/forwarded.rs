//! The client's address and scheme, which a trusted proxy reports in headers.

use std::net::IpAddr;

use super::Server;
use crate::http::RequestHead;

impl Server {
    /// Returns the client's address. Behind trusted proxies, it is the last address in `X-Forwarded-For` that is not such
    /// a proxy, because a client can write the addresses before it.
    pub(super) fn client_address(&self, head: &RequestHead, peer: IpAddr) -> IpAddr {
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

    /// Returns whether the client uses HTTPS, to the hub or to a trusted proxy.
    pub(super) fn is_https(&self, head: &RequestHead, peer: IpAddr) -> bool {
        let is_forwarded_https = || {
            head.list("x-forwarded-proto").last().is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
        };
        self.clients_use_tls() || self.is_trusted_proxy(peer.to_canonical()) && is_forwarded_https()
    }

    fn is_trusted_proxy(&self, address: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(&address))
    }
}
