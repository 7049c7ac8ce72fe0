//! HTTP on a Unix socket. The routes are those on TCP; the caller is the user who runs the hub, so no token is needed, and
//! browsers, which could be tricked into a request, cannot connect.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use hub::Principal;
use tokio::net::UnixStream;

use super::Server;
use super::upgrade::HubUpgrade;
use crate::http::{HttpResponse, RequestHead};
use crate::http_server::{
    Access, AdmittedRequest, ConnectionSlot, ConnectionStream, RequestHandler, RequestOutcome, ServerCore,
    serve_connection,
};

/// The hub's server as programs of its own user see it.
struct LocalServer(Arc<Server>);

/// Serves HTTP on a connection from the user who runs the hub. `first_bytes` have been read from it already.
pub(crate) async fn serve_local_http(
    server: Arc<Server>,
    stream: UnixStream,
    first_bytes: Vec<u8>,
    slot: ConnectionSlot,
) {
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    serve_connection(&LocalServer(server), stream, first_bytes, peer, slot).await;
}

impl RequestHandler for LocalServer {
    type Caller = ();
    type Upgrade = HubUpgrade;

    fn core(&self) -> &ServerCore {
        self.0.core()
    }

    fn check_origin(&self, _head: &RequestHead) -> Result<(), HttpResponse> {
        Ok(())
    }

    fn admit(&self, head: &RequestHead, peer: IpAddr) -> Result<Access, HttpResponse> {
        self.0.admit(head, peer)
    }

    fn authenticate(&self, _head: &RequestHead) -> Result<Principal, HttpResponse> {
        Ok(Principal::local())
    }

    async fn handle(&self, request: AdmittedRequest<()>) -> RequestOutcome<HubUpgrade> {
        self.0.handle(request).await
    }

    fn route_template(&self, head: &RequestHead) -> &'static str {
        self.0.route_template(head)
    }

    fn is_long_poll(&self, head: &RequestHead) -> bool {
        self.0.is_long_poll(head)
    }

    fn readiness(&self) -> Result<(), String> {
        self.0.readiness()
    }

    async fn run_upgrade(
        &self,
        upgrade: HubUpgrade,
        stream: impl ConnectionStream + 'static,
        read_ahead: Vec<u8>,
        slot: ConnectionSlot,
    ) {
        self.0.run_upgrade(upgrade, stream, read_ahead, slot).await;
    }
}
