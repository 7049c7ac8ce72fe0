//! Decides from the head of a request whether its body is read.

use std::net::IpAddr;

use hub::Principal;

use super::{RequestHandler, ServerCore, operator_routes};
use crate::http::{HttpResponse, RequestHead, StatusCode};

/// The authentication that a request needs before its body is read. `C` is a caller that a service identifies itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access<C = ()> {
    /// The route is open to everybody, so the caller is not identified.
    Anyone {
        /// Maximum size of the body, in bytes. The limit of the server applies, too.
        max_body_bytes: usize,
    },
    /// The service has authenticated the caller itself, for example by a signature. The connection counts as
    /// authenticated.
    Authenticated {
        /// The caller.
        caller: C,
        /// Maximum size of the body, in bytes. The limit of the server applies, too.
        max_body_bytes: usize,
    },
    /// The request needs a token that the server's authentication policy accepts.
    Token,
}

/// The result of the admission of a request.
pub(super) struct Admission<C> {
    pub(super) principal: Option<Principal>,
    pub(super) caller: Option<C>,
    pub(super) max_body_bytes: usize,
}

impl<C> Admission<C> {
    /// Whether the caller has been identified.
    pub(super) fn has_authenticated(&self) -> bool {
        self.principal.is_some() || self.caller.is_some()
    }
}

/// Admits a request. Returns the response if the request is refused, and records it.
pub(super) fn admit<H: RequestHandler>(
    handler: &H,
    head: &RequestHead,
    peer: IpAddr,
) -> Result<Admission<H::Caller>, HttpResponse> {
    let core = handler.core();
    check_request(handler, head, peer).map_err(|response| {
        let route = handler.route_template(head);
        core.telemetry.begin_request(head, route).finish(response.status.code_and_reason().0);
        core.add_hsts(is_localhost(head), response)
    })
}

fn check_request<H: RequestHandler>(
    handler: &H,
    head: &RequestHead,
    peer: IpAddr,
) -> Result<Admission<H::Caller>, HttpResponse> {
    let core = handler.core();
    handler.check_origin(head)?;
    reject_token_in_query(head)?;
    let access = match operator_routes::access(core, head) {
        Some(access) => access,
        None => handler.admit(head, peer)?,
    };
    let limit = core.limits.body_bytes;
    Ok(match access {
        Access::Anyone { max_body_bytes } => {
            Admission { principal: None, caller: None, max_body_bytes: max_body_bytes.min(limit) }
        }
        Access::Authenticated { caller, max_body_bytes } => {
            Admission { principal: None, caller: Some(caller), max_body_bytes: max_body_bytes.min(limit) }
        }
        Access::Token => {
            Admission { principal: Some(handler.authenticate(head)?), caller: None, max_body_bytes: limit }
        }
    })
}

/// How long browsers must use only TLS for this host name: a year (RFC 6797).
const HSTS_POLICY: &str = "max-age=31536000";

impl ServerCore {
    /// Tells browsers to use only TLS for this host name, if clients use TLS.
    pub(super) fn add_hsts(&self, is_localhost: bool, response: HttpResponse) -> HttpResponse {
        if self.clients_use_tls() && !is_localhost {
            response.header("Strict-Transport-Security", HSTS_POLICY)
        } else {
            response
        }
    }
}

/// Returns whether the request is for `localhost`. Other servers on the same machine use this host name too, and HSTS would
/// affect them.
pub(super) fn is_localhost(head: &RequestHead) -> bool {
    let host = head.header("host").unwrap_or_default();
    host.split(':').next().is_some_and(|name| name.eq_ignore_ascii_case("localhost"))
}

/// Rejects requests from web pages of another origin, and requests with a host name that is not the server's own.
pub(crate) fn check_origin(
    hosts: &[String],
    has_tls: bool,
    has_proxy: bool,
    head: &RequestHead,
) -> Result<(), HttpResponse> {
    let is_own_host = |host: &str| hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
    let Some(host) = head.header("host").filter(|host| is_own_host(host)) else {
        return Err(HttpResponse::problem(
            StatusCode::MisdirectedRequest,
            "This server does not serve that host name.",
        ));
    };
    let is_same_origin = head.header("origin").is_none_or(|origin| {
        // Without TLS, the origin may still be https, because a proxy in front of the server may provide TLS.
        let origin_host = origin.strip_prefix("http://").filter(|_| !has_tls);
        let origin_host = origin_host.or_else(|| origin.strip_prefix("https://"));
        // A server of another user may listen at another of the names, such as `[::1]` beside `127.0.0.1`. A proxy may
        // change the host name, so behind one, any of the server's names is accepted.
        origin_host.is_some_and(|origin_host| {
            if has_proxy { is_own_host(origin_host) } else { origin_host.eq_ignore_ascii_case(host) }
        })
    });
    if is_same_origin {
        Ok(())
    } else {
        Err(HttpResponse::problem(StatusCode::Forbidden, "Requests from other origins are not allowed."))
    }
}

/// Rejects a token in the query string, on every route and for every caller.
pub(crate) fn reject_token_in_query(head: &RequestHead) -> Result<(), HttpResponse> {
    if head.query.as_deref().is_some_and(|query| query.contains("token=")) {
        return Err(HttpResponse::problem(
            StatusCode::BadRequest,
            "Do not put a token in the URL, where others can see it. Send it in an Authorization header.",
        ));
    }
    Ok(())
}

/// The response to a request that needs a token and has no valid one.
pub(crate) fn unauthorized() -> HttpResponse {
    HttpResponse::problem(StatusCode::Unauthorized, "A valid token is required.")
        .header("WWW-Authenticate", "Bearer")
}
