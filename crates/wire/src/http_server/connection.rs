//! One connection. Handles its requests one after the other until it ends or becomes a stream.

use std::net::IpAddr;

use super::admission::{admit, is_localhost};
use super::stream::{ConnectionStream, write_with_timeout};
use super::{
    AdmittedRequest, ConnectionSlot, RequestHandler, RequestOutcome, ServerCore, Upgrade, operator_routes,
};
use crate::http::{BodyFraming, HttpResponse, Method, ReadError, RequestReader};
use crate::message_transport::lingering_close;

/// Serves a connection from which `first_bytes` have been read already. Its slot is freed before the connection is closed,
/// because parameters are dropped in reverse order.
pub(crate) async fn serve_connection<H: RequestHandler>(
    handler: &H,
    mut stream: impl ConnectionStream + 'static,
    first_bytes: Vec<u8>,
    peer: IpAddr,
    mut slot: ConnectionSlot,
) {
    let core = handler.core();
    let mut reader = RequestReader::new(core.limits.request_limits());
    reader.buffer = first_bytes;
    loop {
        let next_head = tokio::select! {
            biased;
            head = reader.next_head(&mut stream) => head,
            () = core.connections.closing() => return,
        };
        let head = match next_head {
            Ok(head) => head,
            Err(ReadError::Closed) => return,
            Err(ReadError::Rejected(response)) => return reject(core, stream, &response).await,
        };
        let (keep_alive, head_only) = (head.keep_alive, head.method == Method::Head);
        let admission = match admit(handler, &head, peer) {
            Ok(admission) => admission,
            Err(response) => {
                // The body is not read, so the connection can be used again only if there is no body.
                let keep_alive =
                    keep_alive && matches!(head.framing, BodyFraming::None | BodyFraming::Length(0));
                if !write_response(core, &mut stream, &response, keep_alive, head_only).await {
                    return;
                }
                if !keep_alive {
                    return lingering_close(stream).await;
                }
                continue;
            }
        };
        if admission.has_authenticated() {
            slot.mark_authenticated();
        }
        let body = match reader.next_body(&mut stream, &head, admission.max_body_bytes).await {
            Ok(body) => body,
            Err(ReadError::Closed) => return,
            Err(ReadError::Rejected(response)) => return reject(core, stream, &response).await,
        };
        let is_long_poll = handler.is_long_poll(&head);
        let (principal, caller) = (admission.principal, admission.caller);
        let request = AdmittedRequest { head, principal, caller, body, peer };
        let outcome = tokio::select! {
            biased;
            outcome = handle_request(handler, request) => outcome,
            () = reader.wait_for_disconnect(&mut stream), if is_long_poll => return,
        };
        match outcome {
            RequestOutcome::Response(response) => {
                let keep_alive = keep_alive && !core.connections.is_closing();
                if !write_response(core, &mut stream, &response, keep_alive, head_only).await || !keep_alive {
                    return;
                }
            }
            RequestOutcome::Upgrade(upgrade) => {
                return handler.run_upgrade(upgrade, stream, reader.buffer, slot).await;
            }
        }
    }
}

/// Handles a request and records its response.
async fn handle_request<H: RequestHandler>(
    handler: &H,
    request: AdmittedRequest<H::Caller>,
) -> RequestOutcome<H::Upgrade> {
    let (core, is_localhost) = (handler.core(), is_localhost(&request.head));
    let record = core.telemetry.begin_request(&request.head, handler.route_template(&request.head));
    let outcome = match operator_routes::respond(handler, &request.head, request.principal.as_ref()) {
        Some(response) => RequestOutcome::Response(response),
        None => handler.handle(request).await,
    };
    match outcome {
        RequestOutcome::Response(response) => {
            record.finish(response.status.code_and_reason().0);
            RequestOutcome::Response(core.add_hsts(is_localhost, response))
        }
        RequestOutcome::Upgrade(upgrade) => {
            record.finish(upgrade.status());
            RequestOutcome::Upgrade(upgrade)
        }
    }
}

/// Writes a response. Returns `false` if it was not written completely, which makes the connection unusable.
async fn write_response(
    core: &ServerCore,
    stream: &mut impl ConnectionStream,
    response: &HttpResponse,
    keep_alive: bool,
    head_only: bool,
) -> bool {
    let bytes = response.to_bytes(keep_alive, head_only);
    let was_written = write_with_timeout(stream, &bytes, core.limits.response_timeout).await;
    if !keep_alive {
        stream.close_stream().await;
    }
    was_written
}

/// Answers an invalid request and closes the connection.
async fn reject(core: &ServerCore, mut stream: impl ConnectionStream, response: &HttpResponse) {
    core.telemetry.record_unreadable(response);
    if write_response(core, &mut stream, response, false, false).await {
        lingering_close(stream).await;
    }
}
