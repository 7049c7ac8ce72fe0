//! Browser sign-in and sign-out. A browser sends its token once and gets a session cookie for later requests.
//!
//! The cookie is a [`SessionCookie`], never the token. A page of another origin cannot use the cookie, because it is
//! `SameSite=Strict`. In addition, a request that is authenticated by a cookie and could change something must have an
//! `Origin` header with the hub's own origin.

use std::net::IpAddr;
use std::sync::PoisonError;

use aaep::json::{JsonKind, Tape};
use hub::Principal;
use hub::command::HubReply;
use seal::{SystemRandom, UnixMillis};

use super::Server;
use crate::auth::{SessionCookie, Tokens};
use crate::http::{HttpResponse, Method, QueryString, RequestHead, StatusCode};
use crate::http_server::{AuthPolicy, unix_now};

/// The name of the session cookie.
const COOKIE_NAME: &str = "sayso";

/// Handles `POST /login`. The token is in the body, as a form or as JSON.
pub(super) fn login(server: &Server, head: &RequestHead, body: &[u8], peer: IpAddr) -> HttpResponse {
    let token = match read_token(head, body) {
        Ok(token) => token,
        Err(response) => return response,
    };
    // With an open policy, no cookie is needed.
    let policy = server.core.auth_policy.borrow();
    let AuthPolicy::Tokens(tokens) = &*policy else { return success_response(head) };
    let now = unix_now();
    let client = server.core.client_address(head, peer);
    let mut limiter = server.sign_in_limiter.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(seconds) = limiter.check(client, now) {
        let title = "Too many failed sign-in attempts; try again later.";
        return HttpResponse::problem(StatusCode::TooManyRequests, title)
            .header("Retry-After", &seconds.to_string());
    }
    let Some((token_digest, principal)) = tokens.lookup(&token, now) else {
        limiter.record_failure(client, now);
        return HttpResponse::problem(StatusCode::Unauthorized, "This token is not known.");
    };
    if !principal.role.can_subscribe() {
        return HttpResponse::problem(StatusCode::Forbidden, "This token is for an agent, not for a person.");
    }
    let is_secure = server.core.is_https(head, peer);
    let cookie = server.browser_sessions.issue(&token_digest, now, &mut SystemRandom);
    success_response(head).header(
        "Set-Cookie",
        &set_cookie_value(is_secure, &cookie, server.core.limits.sign_in_lifetime.as_secs()),
    )
}

/// Handles `POST /logout`. Revokes the cookie, closes what the browser opened with it, and clears it in the browser.
pub(super) async fn logout(server: &Server, head: &RequestHead, peer: IpAddr) -> HttpResponse {
    let now = unix_now();
    let cleared_cookie = set_cookie_value(server.core.is_https(head, peer), "", 0);
    if let Some(cookie) = verified_cookie(server, head, now) {
        if let Err(response) = check_same_origin(head) {
            return response;
        }
        let max_per_token = server.core.limits.sign_outs_per_token;
        let (end_sign_in, stored) =
            server.browser_sessions.revoke(&cookie, now, server.sign_in_lifetime_ms(), max_per_token);
        // A failed write needs no handling, because the hub then disconnects every listener.
        let _: HubReply = server.hub.ask(Principal::local(), end_sign_in).await;
        if let Err(error) = stored {
            let title = format!("Cannot record the sign-out: {}.", seal::describe_io_error(&error));
            return HttpResponse::problem(StatusCode::ServiceUnavailable, &title)
                .header("Set-Cookie", &cleared_cookie);
        }
    }
    success_response(head).header("Set-Cookie", &cleared_cookie)
}

/// Returns the principal of the request's session cookie, if the cookie and its token are valid. Fails if the request does
/// not come from the hub's own page.
pub(super) fn principal_of_cookie(
    server: &Server,
    tokens: &Tokens,
    head: &RequestHead,
) -> Result<Option<Principal>, HttpResponse> {
    let now = unix_now();
    let principal = verified_cookie(server, head, now).and_then(|cookie| {
        let holder = tokens.principal_by_digest(&cookie.token_digest, now)?;
        let sign_in = Some(cookie.sign_in(server.sign_in_lifetime_ms()));
        Some(Principal { sign_in, ..holder.clone() })
    });
    if principal.is_some() {
        check_same_origin(head)?;
    }
    Ok(principal)
}

fn verified_cookie(server: &Server, head: &RequestHead, now: UnixMillis) -> Option<SessionCookie> {
    server.browser_sessions.verify(head.cookie(COOKIE_NAME)?, now, server.sign_in_lifetime_ms())
}

impl Server {
    pub(super) fn sign_in_lifetime_ms(&self) -> i64 {
        i64::try_from(self.core.limits.sign_in_lifetime.as_millis()).unwrap_or(i64::MAX)
    }

    /// Whether the principal's browser has signed out.
    pub(super) fn is_signed_out(&self, principal: &Principal) -> bool {
        self.browser_sessions.is_signed_out(principal, self.sign_in_lifetime_ms())
    }
}

/// Checks that a request with a cookie comes from the hub's own page, because browsers may attach cookies no matter which
/// page caused the request. Requests that can change something and WebSocket upgrades must have an `Origin` header.
/// `check_origin` has already checked its value.
fn check_same_origin(head: &RequestHead) -> Result<(), HttpResponse> {
    let is_read_only = matches!(head.method, Method::Get | Method::Head) && head.header("upgrade").is_none();
    let is_cross_site =
        head.header("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"));
    if is_cross_site || !is_read_only && head.header("origin").is_none() {
        let title = "Requests with a cookie must come from this hub's pages and send an Origin header.";
        return Err(HttpResponse::problem(StatusCode::Forbidden, title));
    }
    Ok(())
}

/// Reads the token from the body.
fn read_token(head: &RequestHead, body: &[u8]) -> Result<String, HttpResponse> {
    let bad_request = |title: &str| HttpResponse::problem(StatusCode::BadRequest, title);
    let text = std::str::from_utf8(body).map_err(|_| bad_request("The body is not UTF-8."))?;
    let token = if is_form(head) {
        let form = QueryString::parse(Some(text.trim_end()), &["token"])
            .map_err(|error| bad_request(&format!("{error}.")))?;
        form.get("token").map(str::to_owned)
    } else if head.media_type().as_deref() == Some("application/json") {
        let mut tape = Tape::default();
        let root = tape.read(text).map_err(|_| bad_request("The body is not JSON."))?.root();
        let member = if root.kind() == JsonKind::Object { root.member("token") } else { None };
        member.and_then(|token| token.text()).map(std::borrow::Cow::into_owned)
    } else {
        let title = "The body must be application/x-www-form-urlencoded or application/json.";
        return Err(HttpResponse::problem(StatusCode::UnsupportedMediaType, title));
    };
    token.ok_or_else(|| bad_request("The body must contain the token: token=… or {\"token\":…}."))
}

fn is_form(head: &RequestHead) -> bool {
    head.media_type().as_deref() == Some("application/x-www-form-urlencoded")
}

/// Returns the response to a successful sign-in or sign-out: a redirect to the page if a form was sent, otherwise no
/// content.
fn success_response(head: &RequestHead) -> HttpResponse {
    if is_form(head) {
        HttpResponse::new(StatusCode::SeeOther).header("Location", "/")
    } else {
        HttpResponse::new(StatusCode::NoContent)
    }
}

fn set_cookie_value(is_secure: bool, value: &str, seconds: u64) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{COOKIE_NAME}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}")
}
