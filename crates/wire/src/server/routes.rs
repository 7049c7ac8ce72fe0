//! Maps requests to hub commands and static responses.

use aaep::consent::IgnoreReason;
use aaep::json::JsonWriter;
use aaep::message::Message;
use aaep::rule::Finding;
use aaep::{ReplyToken, SessionId, SubscriptionId};
use hub::Principal;
use hub::command::{HubCommand, HubReply, SubscriberMessage};
use hub::manifests::MANIFEST_FOLDER;

use super::event_stream::report_disconnected;
use super::upgrade::HubUpgrade;
use super::{Server, assets, sign_in};
use crate::agent;
use crate::compat;
use crate::http::{HttpResponse, Method, RequestHead, StatusCode};
use crate::http_server::{Access, AdmittedRequest, RequestOutcome, unauthorized, unix_now};
use crate::message_transport::websocket::Upgrade;
use crate::message_transport::{rejected_message, rejection_of};

/// Decides from the head of a request what it needs. On a route that is open to everybody, the only body is a sign-in
/// form, which is smaller than a head.
pub(super) fn access(server: &Server, head: &RequestHead) -> Access {
    let is_read_only = matches!(head.method, Method::Get | Method::Head);
    let is_open = match head.path.as_str() {
        "/login" | "/logout" => true,
        "/.well-known/aaep-manifest.json" | "/.well-known/sayso-receipt-key.json" | "/uri-res/N2R" => {
            is_read_only
        }
        path if path.starts_with(MANIFEST_FOLDER) => is_read_only,
        _ => false,
    };
    if is_open || assets::is_asset(&server.assets, head) {
        Access::Anyone { max_body_bytes: server.core.limits.head_bytes }
    } else {
        Access::Token
    }
}

/// Identifies the caller by its token or cookie. With an open policy, every caller is accepted.
pub(super) fn authenticate(server: &Server, head: &RequestHead) -> Result<Principal, HttpResponse> {
    let authenticated =
        server.core.authenticate(head, |tokens| sign_in::principal_of_cookie(server, tokens, head));
    authenticated.map_err(|response| match head.path.as_str() {
        "/aaep/v1/subscriptions" if response.status == StatusCode::Unauthorized => {
            let message = rejected_message("authentication_required", "A valid token is required.");
            HttpResponse::new(StatusCode::Unauthorized).header("WWW-Authenticate", "Bearer").json(message)
        }
        _ => response,
    })
}

/// Handles a request. Only requests to routes that are open to everybody have no principal.
pub(super) async fn route(
    server: &Server,
    request: AdmittedRequest<()>,
) -> Result<RequestOutcome<HubUpgrade>, HttpResponse> {
    let AdmittedRequest { head, principal, body, peer, .. } = request;
    let head = &head;
    if let Some(result) = assets::respond(&server.assets, head) {
        return result.map(RequestOutcome::Response);
    }
    let parts: Vec<&str> = head.path.split('/').skip(1).collect();
    let respond = |response| Ok(RequestOutcome::Response(response));
    match (head.method, parts.as_slice()) {
        (Method::Get | Method::Head, [".well-known", "aaep-manifest.json"]) => {
            reject_query(head)?;
            return respond(manifest_response(head, &server.manifest, server.signed_manifest.as_deref()));
        }
        (Method::Get | Method::Head, [".well-known", "sayso-receipt-key.json"]) => {
            reject_query(head)?;
            return respond(receipt_key_response(server));
        }
        (Method::Get | Method::Head, ["uri-res", "N2R"]) => return respond(resolve_urn(head)?),
        (Method::Get | Method::Head, [".well-known", "aaep-manifests", file_name]) => {
            reject_query(head)?;
            return agent_manifest_response(server, head, file_name).map(RequestOutcome::Response);
        }
        (Method::Post, ["login"]) => {
            reject_query(head)?;
            return respond(sign_in::login(server, head, &body, peer));
        }
        (Method::Post, ["logout"]) => {
            reject_query(head)?;
            return respond(sign_in::logout(server, head, peer).await);
        }
        (_, ["login" | "logout"]) => return Err(HttpResponse::method_not_allowed("POST")),
        _ => {}
    }
    let Some(principal) = principal else { return Err(path_not_found(&parts)) };
    if let Some(outcome) = compat::route(server, head, &parts, &body, &principal).await? {
        return Ok(match outcome {
            compat::CompatOutcome::Response(response) => RequestOutcome::Response(response),
            compat::CompatOutcome::EventStream(stream) => {
                RequestOutcome::Upgrade(HubUpgrade::CompatStream(stream))
            }
            compat::CompatOutcome::WebSocket(upgrade) => {
                RequestOutcome::Upgrade(HubUpgrade::CompatWebSocket(upgrade))
            }
        });
    }
    if let Some((_, handler)) = server.handler(head) {
        if head.method != Method::Post {
            return Err(HttpResponse::method_not_allowed("POST"));
        }
        reject_query(head)?;
        return respond(handler(principal, utf8_body(body)?).await);
    }
    let key = head.header("idempotency-key").map(str::to_owned);
    let (command, success_status) = match (head.method, parts.as_slice()) {
        (Method::Get, ["aaep", "v1", "events"]) => return open_event_stream(server, head, principal).await,
        (Method::Get, ["aaep", "v1", "ws"]) => {
            reject_query(head)?;
            return Upgrade::from_request(head, principal)
                .map(|upgrade| RequestOutcome::Upgrade(HubUpgrade::WebSocket(upgrade)));
        }
        (Method::Post, ["aaep", "v1", "subscriptions"]) => {
            reject_query(head)?;
            let subscribe = HubCommand::subscribe(Message::parse(&utf8_body(body)?));
            return respond(subscribe_response(&server.hub.ask(principal, subscribe).await));
        }
        (Method::Post, ["aaep", "v1", "replies"]) => {
            reject_query(head)?;
            let message = HubCommand::SendMessage { message: parse_subscriber_message(&utf8_body(body)?)? };
            return respond(subscription_reply_to_response(&server.hub.ask(principal, message).await));
        }
        (Method::Get, ["agent", "v1", "ws"]) => {
            reject_query(head)?;
            return agent::Upgrade::from_request(head, principal)
                .map(|upgrade| RequestOutcome::Upgrade(HubUpgrade::AgentWebSocket(upgrade)));
        }
        (Method::Post, ["agent", "v1", "sessions"]) => {
            reject_query(head)?;
            (HubCommand::Start { body: json_body(body)?.into(), idempotency_key: key }, StatusCode::Created)
        }
        (Method::Put, ["agent", "v1", "manifest"]) => {
            reject_query(head)?;
            (HubCommand::PublishManifest { document: json_body(body)? }, StatusCode::Ok)
        }
        (Method::Delete, ["agent", "v1", "manifest"]) => {
            reject_query(head)?;
            (HubCommand::DeleteManifest, StatusCode::NoContent)
        }
        (Method::Post, ["agent", "v1", "sessions", session, "events"]) => {
            reject_query(head)?;
            let (text, session) = (json_body(body)?, parse_session_id(session)?);
            let is_ndjson = head.media_type().as_deref() == Some("application/x-ndjson");
            let lines = || text.lines().filter(|line| !line.trim().is_empty()).map(Into::into).collect();
            let events = if is_ndjson { lines() } else { vec![text.into()] };
            (HubCommand::Publish { session, events, idempotency_key: key }, StatusCode::Ok)
        }
        (Method::Post, ["agent", "v1", "sessions", session, "output"]) => {
            let known =
                ["output_id", "producer", "language", "content_type", "coalesce_hint", "complete", "stays"];
            let query = head.parse_query(&known)?;
            let flag = |name: &str| match query.get(name) {
                None | Some("false") => Ok(false),
                Some("true") => Ok(true),
                Some(_) => Err(HttpResponse::problem(
                    StatusCode::BadRequest,
                    &format!("{name} must be true or false."),
                )),
            };
            let (complete, stays) = (flag("complete")?, flag("stays")?);
            let [output_id, producer, language, content_type, coalesce_hint] =
                ["output_id", "producer", "language", "content_type", "coalesce_hint"]
                    .map(|name| query.get(name).map(str::to_owned));
            let (text, session) = (utf8_body(body)?, parse_session_id(session)?);
            let output = HubCommand::StreamOutput {
                session,
                output_id,
                producer,
                text,
                language,
                content_type,
                coalesce_hint,
                complete,
                agent_reports_next_state: stays,
                idempotency_key: key,
            };
            (output, StatusCode::Ok)
        }
        (Method::Post, ["agent", "v1", "sessions", session, kind @ ("confirmations" | "clarifications")]) => {
            reject_query(head)?;
            let (body, session, is_clarification) =
                (json_body(body)?.into(), parse_session_id(session)?, *kind == "clarifications");
            (HubCommand::Ask { session, body, is_clarification, idempotency_key: key }, StatusCode::Created)
        }
        (Method::Post, ["agent", "v1", "sessions", session, "handoffs"]) => {
            reject_query(head)?;
            let (body, session) = (json_body(body)?.into(), parse_session_id(session)?);
            (HubCommand::HandOff { session, body, idempotency_key: key }, StatusCode::Created)
        }
        (Method::Post, ["agent", "v1", "sessions", session, "invitations"]) => {
            reject_query(head)?;
            let (body, session) = (json_body(body)?.into(), parse_session_id(session)?);
            (HubCommand::Invite { session, body, idempotency_key: key }, StatusCode::Created)
        }
        (Method::Post, ["agent", "v1", "sessions", session, "join"]) => {
            reject_query(head)?;
            let session = SessionId::parse(session).map_err(|_| invitation_not_found())?;
            (
                HubCommand::Join { session, body: json_body(body)?.into(), idempotency_key: key },
                StatusCode::Ok,
            )
        }
        (Method::Get, ["agent", "v1", "sessions", session, "replies", token]) => {
            let query = head.parse_query(&["wait"])?;
            let seconds: u64 = query.get("wait").unwrap_or("0").parse().map_err(|_| {
                HttpResponse::problem(StatusCode::BadRequest, "wait must be a number of seconds.")
            })?;
            let max_seconds = server.core.limits.max_reply_wait.as_secs();
            let until =
                unix_now().saturating_add(i64::try_from(seconds.min(max_seconds) * 1000).unwrap_or(0));
            let (session, token) = (parse_session_id(session)?, parse_reply_token(token)?);
            (HubCommand::Wait { session, token, until }, StatusCode::Ok)
        }
        (Method::Delete, ["agent", "v1", "sessions", session, "replies", token]) => {
            reject_query(head)?;
            (
                HubCommand::Withdraw {
                    session: parse_session_id(session)?,
                    token: parse_reply_token(token)?,
                },
                StatusCode::Ok,
            )
        }
        _ => {
            return Err(match allowed_methods(&parts) {
                Some(methods) => HttpResponse::method_not_allowed(methods),
                None => path_not_found(&parts),
            });
        }
    };
    if let HubCommand::Wait { .. } = command {
        return tokio::select! {
            reply = server.hub.ask(principal.clone(), command) => respond(reply_to_response(&reply, success_status)),
            () = server.wait_for_revocation(&principal) => Err(unauthorized()),
        };
    }
    respond(reply_to_response(&server.hub.ask(principal, command).await, success_status))
}

/// Returns whether a request may wait for a reply. The server cancels such a request when the client disconnects.
pub(super) fn is_long_poll(head: &RequestHead) -> bool {
    head.method == Method::Get
        && head.path.starts_with("/agent/v1/sessions/")
        && head.query.as_deref().is_some_and(|query| query.contains("wait"))
}

/// Returns a manifest as JSON, or signed for clients that prefer that (C-F6).
fn manifest_response(head: &RequestHead, manifest: &str, signed: Option<&str>) -> HttpResponse {
    match signed.filter(|_| head.prefers("application/jose", "application/json")) {
        Some(signed) => HttpResponse::new(StatusCode::Ok).body("application/jose", signed.to_owned()),
        None => HttpResponse::new(StatusCode::Ok).json(manifest.to_owned()),
    }
    .header("Vary", "Accept")
}

/// Returns the public key that verifies the signatures of receipts.
fn receipt_key_response(server: &Server) -> HttpResponse {
    match server.hub.receipt_key() {
        Some(key) => HttpResponse::new(StatusCode::Ok).json(key.to_owned()),
        None => HttpResponse::problem(StatusCode::NotFound, "This hub does not sign receipts."),
    }
}

/// The name of sayso's vocabulary, as events declare it in `@context`.
const CONTEXT_URN: &str = "urn:sayso:context:v1";
/// The document that the name stands for.
const CONTEXT_DOCUMENT: &str = include_str!("sayso_context.jsonld");

/// Resolves a URN to the document that it names (RFC 2169: the query is the URN itself).
fn resolve_urn(head: &RequestHead) -> Result<HttpResponse, HttpResponse> {
    if head.query.as_deref() == Some(CONTEXT_URN) {
        return Ok(HttpResponse::new(StatusCode::Ok).body("application/ld+json", CONTEXT_DOCUMENT));
    }
    let problem = format!("This hub resolves only {CONTEXT_URN}: write /uri-res/N2R?{CONTEXT_URN}");
    Err(HttpResponse::problem(StatusCode::NotFound, &problem))
}

/// Returns the manifest of an agent.
fn agent_manifest_response(
    server: &Server,
    head: &RequestHead,
    file_name: &str,
) -> Result<HttpResponse, HttpResponse> {
    let manifest = server.hub.manifests().get(file_name).ok_or_else(|| {
        HttpResponse::problem(StatusCode::NotFound, "The hub publishes no manifest of this agent.")
    })?;
    let document = &manifest.document;
    Ok(manifest_response(head, &document.json, document.signed.as_deref()))
}

async fn open_event_stream(
    server: &Server,
    head: &RequestHead,
    principal: Principal,
) -> Result<RequestOutcome<HubUpgrade>, HttpResponse> {
    let query = head.parse_query(&["subscription_id", "last_event_id"])?;
    if !head.accepts("text/event-stream") {
        return Err(HttpResponse::problem(
            StatusCode::NotAcceptable,
            "This address serves text/event-stream only.",
        ));
    }
    let Some(subscription) = query.get("subscription_id") else {
        return Err(HttpResponse::problem(StatusCode::BadRequest, "subscription_id is required."));
    };
    let last_event_id = head.header("last-event-id").or_else(|| query.get("last_event_id"));
    let listener = server.hub.new_listener_id();
    let command = HubCommand::Attach {
        subscription: SubscriptionId::parse(subscription).map_err(|_| subscription_not_found())?,
        last_event_id: last_event_id.map(str::to_owned),
        listener,
    };
    match server.hub.ask(principal.clone(), command).await {
        // The browser may have signed out before the hub attached the stream.
        HubReply::Done if server.is_signed_out(&principal) => {
            report_disconnected(server, listener);
            Err(unauthorized())
        }
        HubReply::Done => Ok(RequestOutcome::Upgrade(HubUpgrade::EventStream(listener))),
        other => Err(subscription_reply_to_response(&other)),
    }
}

/// The paths of the hub and their methods. `*` stands for any segment.
const PATHS: &[(&[&str], &str)] = &[
    (&["healthz"], "GET, HEAD"),
    (&["readyz"], "GET, HEAD"),
    (&["metrics"], "GET, HEAD"),
    (&[".well-known", "aaep-manifest.json"], "GET, HEAD"),
    (&[".well-known", "aaep-manifests", "*"], "GET, HEAD"),
    (&[".well-known", "sayso-receipt-key.json"], "GET, HEAD"),
    (&["uri-res", "N2R"], "GET, HEAD"),
    (&["login"], "POST"),
    (&["logout"], "POST"),
    (&["aaep", "v1", "events"], "GET"),
    (&["aaep", "v1", "ws"], "GET"),
    (&["aaep", "v1", "subscriptions"], "POST"),
    (&["aaep", "v1", "replies"], "POST"),
    (&["agent", "v1", "ws"], "GET"),
    (&["agent", "v1", "manifest"], "PUT, DELETE"),
    (&["agent", "v1", "sessions"], "POST"),
    (&["agent", "v1", "sessions", "*", "events"], "POST"),
    (&["agent", "v1", "sessions", "*", "output"], "POST"),
    (&["agent", "v1", "sessions", "*", "confirmations"], "POST"),
    (&["agent", "v1", "sessions", "*", "clarifications"], "POST"),
    (&["agent", "v1", "sessions", "*", "handoffs"], "POST"),
    (&["agent", "v1", "sessions", "*", "invitations"], "POST"),
    (&["agent", "v1", "sessions", "*", "join"], "POST"),
    (&["agent", "v1", "sessions", "*", "replies", "*"], "GET, DELETE"),
];

/// Returns the methods of a path; `None` if there is no such path.
fn allowed_methods(parts: &[&str]) -> Option<&'static str> {
    let matches = |path: &[&str]| {
        path.len() == parts.len()
            && path.iter().zip(parts).all(|(known, part)| *known == "*" || known == part)
    };
    PATHS.iter().find(|(path, _)| matches(path)).map(|(_, methods)| *methods)
}

/// Says that there is no such path, and suggests a similar one.
fn path_not_found(parts: &[&str]) -> HttpResponse {
    let fill = |path: &[&str]| {
        let part = |(index, known): (usize, &&str)| match (*known, parts.get(index)) {
            ("*", Some(part)) => (*part).to_owned(),
            ("*", None) => "…".to_owned(),
            (known, _) => known.to_owned(),
        };
        path.iter().enumerate().map(part).collect::<Vec<_>>().join("/")
    };
    let suggestion = seal::closest_name(&parts.join("/"), PATHS.iter().map(|(path, _)| fill(path)));
    let title = match suggestion {
        Some(path) => format!("There is no such path. Did you mean /{path}?"),
        None => "There is no such path.".to_owned(),
    };
    HttpResponse::problem(StatusCode::NotFound, &title)
}

fn utf8_body(body: Vec<u8>) -> Result<String, HttpResponse> {
    String::from_utf8(body)
        .map_err(|_| HttpResponse::problem(StatusCode::BadRequest, "The body is not UTF-8."))
}

/// Returns the body of a request that needs one.
fn json_body(body: Vec<u8>) -> Result<String, HttpResponse> {
    if body.trim_ascii().is_empty() {
        return Err(HttpResponse::problem(StatusCode::BadRequest, "The body is empty; send a JSON object."));
    }
    utf8_body(body)
}

/// Parses a listener's message. A body that is not JSON is an error. Other faults of a reply are not reported (C-D1).
fn parse_subscriber_message(text: &str) -> Result<SubscriberMessage, HttpResponse> {
    match SubscriberMessage::parse(text) {
        SubscriberMessage::Consent(Err(IgnoreReason::NotJson)) => {
            Err(HttpResponse::new(StatusCode::BadRequest))
        }
        message => Ok(message),
    }
}

fn reject_query(head: &RequestHead) -> Result<(), HttpResponse> {
    head.parse_query(&[]).map(|_| ())
}

/// The response for a session that does not exist, and for one of another token.
pub(crate) fn session_not_found() -> HttpResponse {
    HttpResponse::problem(StatusCode::NotFound, "There is no such session, or it belongs to another token.")
}

fn subscription_not_found() -> HttpResponse {
    let title = "There is no such subscription, or it belongs to another token.";
    HttpResponse::problem(StatusCode::NotFound, title)
}

pub(crate) fn question_not_found() -> HttpResponse {
    HttpResponse::problem(StatusCode::NotFound, "The session has no such question.")
}

/// The response for every invitation that cannot be redeemed.
pub(crate) fn invitation_not_found() -> HttpResponse {
    let title = "There is no such invitation, or it is used up, expired or for another agent.";
    HttpResponse::problem(StatusCode::NotFound, title)
}

/// Parses a session id from a path. An invalid id is answered with 404, like an unknown one.
fn parse_session_id(text: &str) -> Result<SessionId, HttpResponse> {
    SessionId::parse(text).map_err(|_| session_not_found())
}

/// Parses a reply token from a path. An invalid token is answered like an unknown one. The answer does not depend on the
/// session, so it reveals nothing about the session.
fn parse_reply_token(text: &str) -> Result<ReplyToken, HttpResponse> {
    ReplyToken::parse(text).map_err(|_| question_not_found())
}

/// Like [`reply_to_response`], for commands about a subscription.
pub(crate) fn subscription_reply_to_response(reply: &HubReply) -> HttpResponse {
    match reply {
        HubReply::NotFound => subscription_not_found(),
        reply => reply_to_response(reply, StatusCode::Ok),
    }
}

/// Converts the hub's reply to an HTTP response.
pub(crate) fn reply_to_response(reply: &HubReply, success_status: StatusCode) -> HttpResponse {
    let status = match reply {
        HubReply::Done => return HttpResponse::new(StatusCode::NoContent),
        HubReply::RuleViolations(findings) => return rule_violations(findings),
        HubReply::Malformed(error) => {
            return HttpResponse::problem(StatusCode::BadRequest, &error.to_string());
        }
        HubReply::NotFound => return session_not_found(),
        HubReply::InvitationNotFound => return invitation_not_found(),
        HubReply::SessionEnded => {
            return HttpResponse::problem(StatusCode::NotFound, "The session has ended; start a new one.");
        }
        HubReply::QuestionNotFound => return question_not_found(),
        HubReply::Forbidden => {
            return HttpResponse::problem(StatusCode::Forbidden, "This token does not allow that.");
        }
        HubReply::Conflict => {
            return HttpResponse::problem(
                StatusCode::Conflict,
                "This Idempotency-Key was used for a different request.",
            );
        }
        HubReply::LimitReached(limit) => {
            return HttpResponse::problem(StatusCode::TooManyRequests, &limit.to_string());
        }
        HubReply::Unavailable(reason) => {
            return HttpResponse::problem(StatusCode::ServiceUnavailable, &reason.to_string())
                .header("Retry-After", "1");
        }
        HubReply::SubscriptionRejected(rejected) => rejection_status(rejected.reason_code.as_str()),
        HubReply::Subscribed { .. }
        | HubReply::SessionStarted { .. }
        | HubReply::InvitationCreated { .. }
        | HubReply::QuestionOpened { .. } => success_status,
        _ => StatusCode::Ok,
    };
    let Some(json) = reply.to_json() else {
        return HttpResponse::problem(StatusCode::InternalServerError, "The hub sent an unexpected reply.");
    };
    let response = HttpResponse::new(status).json(json);
    match reply {
        HubReply::Subscribed { accepted, .. } => {
            let location = format!("/aaep/v1/events?subscription_id={}", accepted.subscription_id);
            response.header("Location", &location)
        }
        _ => response,
    }
}

/// Answers a subscription request with AAEP's own messages (C-E5).
fn subscribe_response(reply: &HubReply) -> HttpResponse {
    if let HubReply::Subscribed { .. } = reply {
        return reply_to_response(reply, StatusCode::Created);
    }
    let (json, code) = rejection_of(reply);
    let status = if matches!(reply, HubReply::Malformed(_)) {
        StatusCode::BadRequest
    } else {
        rejection_status(&code)
    };
    let response = HttpResponse::new(status).json(json);
    // The hub cannot know when another subscription will be possible. A minute is a reasonable interval.
    if status == StatusCode::TooManyRequests { response.header("Retry-After", "60") } else { response }
}

/// Maps a rejection reason code to a status (C-E5).
fn rejection_status(code: &str) -> StatusCode {
    match code {
        "authentication_required" => StatusCode::Unauthorized,
        "authorization_denied" => StatusCode::Forbidden,
        "rate_limit" => StatusCode::TooManyRequests,
        "transport_unavailable" => StatusCode::ServiceUnavailable,
        _ => StatusCode::Conflict,
    }
}

fn rule_violations(findings: &[Finding]) -> HttpResponse {
    let title = "The request breaks protocol rules; nothing was applied.";
    HttpResponse::problem_with(StatusCode::UnprocessableContent, title, |writer: &mut JsonWriter| {
        writer.key("findings");
        writer.open_array();
        for finding in findings {
            writer.open_object();
            let message = hub::agent_message(finding);
            for (name, text) in
                [("rule", finding.rule.id()), ("pointer", &finding.pointer), ("message", message.as_str())]
            {
                writer.key(name);
                writer.text(text);
            }
            writer.close_object();
        }
        writer.close_array();
    })
}
