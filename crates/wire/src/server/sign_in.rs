//! Signing in and out: a browser shows its token once and is known by a cookie from then on.
//!
//! The cookie is a [`Pass`](crate::auth::Passes), never the token. A page of another origin cannot use it: it is
//! `SameSite=Strict`, and whatever a cookie stands behind that could change something must also say the hub's own origin.

use std::net::IpAddr;
use std::sync::PoisonError;

use aaep::json::{Kind, Tape};
use hub::Principal;
use seal::{SystemRandom, UnixMillis};

use super::routes::clock;
use super::{Door, Server};
use crate::auth::{Pass, Tokens};
use crate::http::{Head, Method, Query, Response, Status};

/// The cookie by which a browser is known.
const COOKIE: &str = "sayso";

/// `POST /login`: the token in the body, as a form or as JSON.
pub(super) fn login(server: &Server, head: &Head, body: &[u8], peer: IpAddr) -> Response {
    let token = match shown(head, body) {
        Ok(token) => token,
        Err(response) => return response,
    };
    // Where everybody is let in, there is nothing to remember.
    let door = server.door.borrow();
    let Door::Tokens(tokens) = &*door else { return done(head) };
    let now = clock();
    let mut attempts = server.attempts.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(seconds) = attempts.may(peer, now) {
        let title = "Too many attempts to sign in have failed; wait a little.";
        return Response::problem(Status::TooManyRequests, title).header("Retry-After", &seconds.to_string());
    }
    let Some((hash, principal)) = tokens.known(&token) else {
        attempts.failed(peer, now);
        return Response::problem(Status::Unauthorized, "This token is not known.");
    };
    if !principal.role.hears() {
        return Response::problem(Status::Forbidden, "This token is for an agent, not for a person.");
    }
    let pass = server.passes.give(&hash, now, &mut SystemRandom);
    done(head).header("Set-Cookie", &cookie(server, &pass, server.limits.sign_in_time.as_secs()))
}

/// `POST /logout`: the pass is void, and the browser forgets it.
pub(super) fn logout(server: &Server, head: &Head) -> Response {
    let now = clock();
    if let Some(pass) = pass(server, head, now) {
        if let Err(response) = from_our_page(head) {
            return response;
        }
        if let Err(error) = server.passes.end(&pass, now, life(server)) {
            let title = format!("It could not be kept that you signed out: {}.", seal::in_words(&error));
            return Response::problem(Status::Unavailable, &title)
                .header("Set-Cookie", &cookie(server, "", 0));
        }
    }
    done(head).header("Set-Cookie", &cookie(server, "", 0))
}

/// Who is behind the cookie, if there is one and its token is still known.
pub(super) fn who(server: &Server, tokens: &Tokens, head: &Head) -> Result<Option<Principal>, Response> {
    let known = pass(server, head, clock()).and_then(|pass| tokens.of_hash(&pass.token).cloned());
    if known.is_some() {
        from_our_page(head)?;
    }
    Ok(known)
}

fn pass(server: &Server, head: &Head, now: UnixMillis) -> Option<Pass> {
    server.passes.read(head.cookie(COOKIE)?, now, life(server))
}

fn life(server: &Server) -> i64 {
    i64::try_from(server.limits.sign_in_time.as_millis()).unwrap_or(i64::MAX)
}

/// A browser sends the cookie along whoever had the idea. What could change something, or opens a way to, must say that a
/// page of ours had it; that its origin is ours was looked at before.
fn from_our_page(head: &Head) -> Result<(), Response> {
    let harmless = matches!(head.method, Method::Get | Method::Head) && head.header("upgrade").is_none();
    let other = head.header("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"));
    if other || !harmless && head.header("origin").is_none() {
        let title = "With a cookie, only pages of this hub are let in, and they must say their origin.";
        return Err(Response::problem(Status::Forbidden, title));
    }
    Ok(())
}

/// The token that stands in the body.
fn shown(head: &Head, body: &[u8]) -> Result<String, Response> {
    let bad = |why: &str| Response::problem(Status::BadRequest, why);
    let text = std::str::from_utf8(body).map_err(|_| bad("The body is not UTF-8."))?;
    let token = if is_form(head) {
        let form = Query::parse(Some(text.trim_end()), &["token"]).map_err(|why| bad(&format!("{why}.")))?;
        form.get("token").map(str::to_owned)
    } else if head.media_type().as_deref() == Some("application/json") {
        let mut tape = Tape::default();
        let root = tape.read(text).map_err(|_| bad("The body is not JSON."))?.root();
        let member = if root.kind() == Kind::Object { root.member("token") } else { None };
        member.and_then(|token| token.text()).map(std::borrow::Cow::into_owned)
    } else {
        let title =
            "Sign in with a form or with JSON: application/x-www-form-urlencoded or application/json.";
        return Err(Response::problem(Status::UnsupportedMediaType, title));
    };
    token.ok_or_else(|| bad("The body says the token: token=… or {\"token\":…}."))
}

fn is_form(head: &Head) -> bool {
    head.media_type().as_deref() == Some("application/x-www-form-urlencoded")
}

/// A form goes on to the page; a script has what it wanted.
fn done(head: &Head) -> Response {
    if is_form(head) {
        Response::new(Status::SeeOther).header("Location", "/")
    } else {
        Response::new(Status::NoContent)
    }
}

fn cookie(server: &Server, value: &str, seconds: u64) -> String {
    let secure = if server.tls.is_some() { "; Secure" } else { "" };
    format!("{COOKIE}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}")
}
