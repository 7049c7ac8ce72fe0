//! Accepts TCP connections, with or without TLS.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use super::connection_slots::is_this_machine;
use super::peer_user::peer_user;
use super::{ConnectionSlot, RequestHandler, ServerCore, serve_connection, write_with_timeout};
use crate::http::{HttpResponse, StatusCode};
use crate::message_transport::lingering_close;

/// Accepts connections, each with a slot, and serves each in a task.
pub(crate) async fn accept_connections<H: RequestHandler, F>(
    handler: Arc<H>,
    listener: TcpListener,
    serve: fn(Arc<H>, TcpStream, IpAddr, ConnectionSlot) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let core = handler.core();
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            back_off_after_accept_error().await;
            continue;
        };
        let address = Some(peer.ip().to_canonical())
            .filter(|peer| !core.is_behind_proxy && !is_this_machine(*peer) && !core.is_trusted_proxy(*peer));
        let Some((slot, close_signal)) = core.connections.acquire(address) else { continue };
        let _ = stream.set_nodelay(true);
        let handler = handler.clone();
        tokio::spawn(async move {
            let connection = async {
                match handler.core().check_user(stream).await {
                    Ok(stream) => serve(handler, stream, peer.ip(), slot).await,
                    Err(stream) => refuse_user(handler.core(), stream).await,
                }
            };
            tokio::select! {
                () = connection => {}
                () = close_signal.notified() => {}
            }
        });
    }
}

/// Serves HTTP on a connection, after the TLS handshake if the server uses TLS.
pub(crate) async fn serve_http<H: RequestHandler>(
    handler: Arc<H>,
    stream: TcpStream,
    peer: IpAddr,
    slot: ConnectionSlot,
) {
    let core = handler.core();
    let Some(tls) = &core.tls else {
        return serve_connection(&*handler, stream, Vec::new(), peer, slot).await;
    };
    if let Some(stream) = tls.accept(stream, core.limits.head_timeout).await {
        serve_connection(&*handler, stream, Vec::new(), peer, slot).await;
    }
}

impl ServerCore {
    /// Returns the connection if its user may connect, else as an error.
    async fn check_user(&self, stream: TcpStream) -> Result<TcpStream, TcpStream> {
        let Some((user, lookups)) = &self.only_user else { return Ok(stream) };
        let (Ok(peer), Ok(own)) = (stream.peer_addr(), stream.local_addr()) else { return Err(stream) };
        // A client that opens many connections makes the socket table long, so it is read on a thread of its own, and not by
        // many connections at once.
        let _permit = lookups.acquire().await;
        let found = tokio::task::spawn_blocking(move || peer_user(peer, own)).await;
        if found.is_ok_and(|found| found == Some(*user)) { Ok(stream) } else { Err(stream) }
    }
}

/// Answers a connection from another user, whose request is not read.
async fn refuse_user(core: &ServerCore, mut stream: TcpStream) {
    let response = HttpResponse::problem(StatusCode::Forbidden, "This hub serves only the user who runs it.");
    if write_with_timeout(&mut stream, &response.to_bytes(false, false), core.limits.response_timeout).await {
        lingering_close(stream).await;
    }
}

/// Waits before the next accept. The usual cause of the error is a lack of file descriptors, and some may be freed in the
/// meantime.
pub(crate) async fn back_off_after_accept_error() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}
