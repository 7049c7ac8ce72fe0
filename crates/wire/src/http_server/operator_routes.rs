//! The routes for operators, which every server has: `/healthz`, `/readyz` and `/metrics`.

use hub::{Principal, Role};

use super::{Access, RequestHandler, ServerCore};
use crate::http::{HttpResponse, Method, RequestHead, StatusCode};
use crate::telemetry::ExpositionFormat;
use crate::telemetry::route_template::operator_route;

fn is_read_only(head: &RequestHead) -> bool {
    matches!(head.method, Method::Get | Method::Head)
}

/// Returns what a request to one of these routes needs.
pub(super) fn access<C>(core: &ServerCore, head: &RequestHead) -> Option<Access<C>> {
    Some(match operator_route(&head.path)? {
        "/healthz" | "/readyz" if is_read_only(head) => {
            Access::Anyone { max_body_bytes: core.limits.head_bytes }
        }
        _ => Access::Token,
    })
}

/// Returns the response to a request to one of these routes.
pub(super) fn respond<H: RequestHandler>(
    handler: &H,
    head: &RequestHead,
    principal: Option<&Principal>,
) -> Option<HttpResponse> {
    let route = operator_route(&head.path)?;
    if !is_read_only(head) {
        return Some(HttpResponse::method_not_allowed("GET, HEAD"));
    }
    let result = match route {
        "/metrics" => metrics_response(handler, head, principal),
        "/readyz" => head.parse_query(&[]).map(|_| readiness_response(handler)),
        _ => head.parse_query(&[]).map(|_| good_response()),
    };
    Some(result.unwrap_or_else(|response| response))
}

fn good_response() -> HttpResponse {
    HttpResponse::new(StatusCode::Ok).body("text/plain", "good\n")
}

/// Reports whether the server can store what it accepts and has the current tokens.
fn readiness_response<H: RequestHandler>(handler: &H) -> HttpResponse {
    let unavailable = |title: &str| HttpResponse::problem(StatusCode::ServiceUnavailable, title);
    let telemetry = &handler.core().telemetry;
    if telemetry.is_storage_failing() {
        return unavailable("The journal cannot be written, so no new requests are accepted. See the log.");
    }
    if telemetry.is_reload_failing() {
        return unavailable("The last reload failed, so removed tokens may still be accepted. See the log.");
    }
    match handler.readiness() {
        Ok(()) => good_response(),
        Err(reason) => unavailable(&reason),
    }
}

/// Returns the metrics. Only an admin may read them.
fn metrics_response<H: RequestHandler>(
    handler: &H,
    head: &RequestHead,
    principal: Option<&Principal>,
) -> Result<HttpResponse, HttpResponse> {
    if principal.is_none_or(|principal| principal.role != Role::Admin) {
        return Err(HttpResponse::problem(StatusCode::Forbidden, "Metrics require an admin token."));
    }
    head.parse_query(&[])?;
    let format = ExpositionFormat::from_accept(head.header("accept"));
    let page = handler.core().telemetry.metrics(format, handler.service_metrics());
    Ok(HttpResponse::new(StatusCode::Ok).body(format.media_type(), page))
}
