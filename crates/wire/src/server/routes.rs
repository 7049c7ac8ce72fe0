//! Which request means what.

use std::net::IpAddr;

use aaep::consent::Ignored;
use aaep::json::Writer;
use aaep::message::Message;
use aaep::rule::Finding;
use aaep::{ReplyToken, SessionId, SubscriptionId};
use hub::command::{Command, Reply, SubscriberMessage};
use hub::{Principal, Role};
use seal::UnixMillis;

use super::connection::HttpReply;
use super::{Door, Server, assets, sign_in};
use crate::agent;
use crate::compat;
use crate::http::{Head, Method, Query, Response, Status};
use crate::listener::websocket::Upgrade;
use crate::listener::{refusal, rejected};
use crate::observe::Exposition;

pub(super) async fn answer(server: &Server, head: &Head, body: Vec<u8>, peer: IpAddr) -> HttpReply {
    let asked = server.bridge.observe().request(head, server.handler(head).map(|(path, _)| *path));
    let reply = routed(server, head, body, peer).await.unwrap_or_else(HttpReply::Whole);
    asked.answered(match &reply {
        HttpReply::Whole(response) => response.status.line().0,
        HttpReply::Stream(_) | HttpReply::Compat(_) => 200,
        HttpReply::WebSocket(_) | HttpReply::Agent(_) | HttpReply::CompatSocket(_) => 101,
    });
    reply
}

async fn routed(server: &Server, head: &Head, body: Vec<u8>, peer: IpAddr) -> Result<HttpReply, Response> {
    check_origin(&server.hosts, server.tls.is_some(), head)?;
    no_token(head)?;
    if let Some(asset) = assets::answer(&server.assets, head) {
        return asset.map(HttpReply::Whole);
    }
    let parts: Vec<&str> = head.path.split('/').skip(1).collect();
    let whole = |response| Ok(HttpReply::Whole(response));
    match (head.method, parts.as_slice()) {
        (Method::Get | Method::Head, ["healthz"]) => {
            return health(server, head).map(HttpReply::Whole);
        }
        (Method::Get | Method::Head, [".well-known", "aaep-manifest.json"]) => {
            none(head)?;
            return whole(manifest(server, head));
        }
        (Method::Post, ["login"]) => {
            none(head)?;
            return whole(sign_in::login(server, head, &body, peer));
        }
        (Method::Post, ["logout"]) => {
            none(head)?;
            return whole(sign_in::logout(server, head));
        }
        (_, ["login" | "logout"]) => return Err(another_method()),
        _ => {}
    }
    let who = who(server, head).map_err(|refused| match parts.as_slice() {
        ["aaep", "v1", "subscriptions"] if refused.status == Status::Unauthorized => {
            let why = rejected("authentication_required", "A token is needed, and this one is not known.");
            Response::new(Status::Unauthorized).header("WWW-Authenticate", "Bearer").json(why)
        }
        _ => refused,
    })?;
    if let (Method::Get | Method::Head, ["metrics"]) = (head.method, parts.as_slice()) {
        return metrics(server, head, &who).map(HttpReply::Whole);
    }
    if let Some(routed) = compat::route(server, head, &parts, &body, &who).await? {
        return Ok(match routed {
            compat::Routed::Whole(response) => HttpReply::Whole(response),
            compat::Routed::Stream(stream) => HttpReply::Compat(stream),
            compat::Routed::Socket(upgrade) => HttpReply::CompatSocket(upgrade),
        });
    }
    if let (Method::Post, Some((_, handler))) = (head.method, server.handler(head)) {
        none(head)?;
        return whole(handler(who, text(body)?).await);
    }
    let key = head.header("idempotency-key").map(str::to_owned);
    let (command, made) = match (head.method, parts.as_slice()) {
        (Method::Get, ["aaep", "v1", "events"]) => return attach(server, head, who).await,
        (Method::Get, ["aaep", "v1", "ws"]) => {
            none(head)?;
            return Upgrade::asked(head, who).map(HttpReply::WebSocket);
        }
        (Method::Post, ["aaep", "v1", "subscriptions"]) => {
            none(head)?;
            let subscribe = Command::subscribe(Message::parse(&text(body)?));
            return whole(subscribed(&server.bridge.ask(who, subscribe).await));
        }
        (Method::Post, ["aaep", "v1", "replies"]) => {
            none(head)?;
            (Command::Say { message: subscriber_message(&text(body)?)? }, Status::Ok)
        }
        (Method::Get, ["agent", "v1", "ws"]) => {
            none(head)?;
            return agent::Upgrade::asked(head, who).map(HttpReply::Agent);
        }
        (Method::Post, ["agent", "v1", "sessions"]) => {
            none(head)?;
            (Command::Start { body: text(body)?.into(), key }, Status::Created)
        }
        (Method::Post, ["agent", "v1", "sessions", session, "events"]) => {
            none(head)?;
            let (text, session) = (text(body)?, session_id(session)?);
            let many = head.media_type().as_deref() == Some("application/x-ndjson");
            let lines = || text.lines().filter(|line| !line.trim().is_empty()).map(Into::into).collect();
            let events = if many { lines() } else { vec![text.into()] };
            (Command::Publish { session, events, key }, Status::Ok)
        }
        (Method::Post, ["agent", "v1", "sessions", session, "output"]) => {
            let query = query(head, &["output_id", "language", "content_type", "complete", "stays"])?;
            let flag = |name: &str| match query.get(name) {
                None | Some("false") => Ok(false),
                Some("true") => Ok(true),
                Some(_) => Err(Response::problem(Status::BadRequest, &format!("{name} is true or false."))),
            };
            let (complete, stays) = (flag("complete")?, flag("stays")?);
            let [output_id, language, content_type] =
                ["output_id", "language", "content_type"].map(|name| query.get(name).map(str::to_owned));
            let (text, session) = (text(body)?, session_id(session)?);
            let output =
                Command::Output { session, output_id, text, language, content_type, complete, stays, key };
            (output, Status::Ok)
        }
        (Method::Post, ["agent", "v1", "sessions", session, kind @ ("confirmations" | "clarifications")]) => {
            none(head)?;
            let (body, session, clarify) =
                (text(body)?.into(), session_id(session)?, *kind == "clarifications");
            (Command::Ask { session, body, clarify, key }, Status::Created)
        }
        (Method::Get, ["agent", "v1", "sessions", session, "replies", token]) => {
            let query = query(head, &["wait"])?;
            let seconds: u64 = query
                .get("wait")
                .unwrap_or("0")
                .parse()
                .map_err(|_| Response::problem(Status::BadRequest, "wait is a number of seconds."))?;
            let longest = server.limits.longest_wait.as_secs();
            let until = clock().saturating_add(i64::try_from(seconds.min(longest) * 1000).unwrap_or(0));
            let (session, token) = (session_id(session)?, reply_token(token)?);
            (Command::Wait { session, token, until }, Status::Ok)
        }
        (Method::Delete, ["agent", "v1", "sessions", session, "replies", token]) => {
            none(head)?;
            (Command::Withdraw { session: session_id(session)?, token: reply_token(token)? }, Status::Ok)
        }
        (
            _,
            ["metrics" | "healthz"]
            | ["aaep", "v1", "events" | "subscriptions" | "replies" | "ws"]
            | ["agent", "v1", "ws"]
            | ["agent", "v1", "sessions", ..],
        ) => {
            return Err(another_method());
        }
        _ => return whole(not_found()),
    };
    if let Command::Wait { .. } = command {
        return tokio::select! {
            answer = server.bridge.ask(who.clone(), command) => whole(response(&answer, made)),
            () = server.dismissed(&who) => Err(unknown()),
        };
    }
    whole(response(&server.bridge.ask(who, command).await, made))
}

/// Whether the hub is alive; with `?ready`, whether it can do its work.
fn health(server: &Server, head: &Head) -> Result<Response, Response> {
    let ready = match head.query.as_deref() {
        None | Some("") => false,
        Some("ready") => true,
        Some(_) => return Err(Response::problem(Status::BadRequest, "Only ?ready can be asked here.")),
    };
    if ready && server.bridge.observe().cannot_store() {
        let why = "The journal cannot be written, so nothing new is taken. The log says why.";
        return Err(Response::problem(Status::Unavailable, why));
    }
    Ok(Response::new(Status::Ok).body("text/plain", "good\n"))
}

/// The hub's numbers, for whoever runs it.
fn metrics(server: &Server, head: &Head, who: &Principal) -> Result<Response, Response> {
    if who.role != Role::Admin {
        return Err(Response::problem(Status::Forbidden, "Metrics are for the token of an admin."));
    }
    none(head)?;
    let form = Exposition::accepted(head.header("accept"));
    Ok(Response::new(Status::Ok).body(form.media_type(), server.bridge.observe().metrics(form)))
}

/// Whether a request may take long: the connection is watched meanwhile, for who hangs up waits no more.
pub(super) fn waits(head: &Head) -> bool {
    head.method == Method::Get
        && head.path.starts_with("/agent/v1/sessions/")
        && head.query.as_deref().is_some_and(|query| query.contains("wait"))
}

/// JSON, or signed for those who ask for that (C-F6).
fn manifest(server: &Server, head: &Head) -> Response {
    let signed =
        server.signed_manifest.as_ref().filter(|_| head.prefers("application/jose", "application/json"));
    match signed {
        Some(signed) => Response::new(Status::Ok).body("application/jose", signed.clone()),
        None => Response::new(Status::Ok).json(server.manifest.clone()),
    }
    .header("Vary", "Accept")
}

/// The time now, by the machine's clock.
pub fn clock() -> UnixMillis {
    std::time::SystemTime::now().into()
}

async fn attach(server: &Server, head: &Head, who: Principal) -> Result<HttpReply, Response> {
    let query = query(head, &["subscription_id", "last_event_id"])?;
    if !head.accepts("text/event-stream") {
        return Err(Response::problem(Status::NotAcceptable, "This address gives text/event-stream."));
    }
    let Some(subscription) = query.get("subscription_id") else {
        return Err(Response::problem(Status::BadRequest, "subscription_id says which subscription."));
    };
    let last = head.header("last-event-id").or_else(|| query.get("last_event_id"));
    let listener = server.bridge.new_listener();
    let command = Command::Attach {
        subscription: SubscriptionId::parse(subscription).map_err(|_| not_found())?,
        last_event_id: last.map(str::to_owned),
        listener,
    };
    match server.bridge.ask(who, command).await {
        Reply::Done => Ok(HttpReply::Stream(listener)),
        other => Err(response(&other, Status::Ok)),
    }
}

/// A token in an address is refused, whatever is asked and whoever asks.
pub(crate) fn no_token(head: &Head) -> Result<(), Response> {
    if head.query.as_deref().is_some_and(|query| query.contains("token=")) {
        return Err(Response::problem(
            Status::BadRequest,
            "A token in an address is seen by others; use a header.",
        ));
    }
    Ok(())
}

/// Who asks: by token, by cookie, or anybody where nobody is asked.
fn who(server: &Server, head: &Head) -> Result<Principal, Response> {
    let door = server.door.borrow();
    let tokens = match &*door {
        Door::Open => return Ok(Principal::anybody()),
        Door::Tokens(tokens) => tokens,
    };
    let known = match head.bearer() {
        Some(token) => tokens.principal(token).cloned(),
        None => sign_in::who(server, tokens, head)?,
    };
    known.ok_or_else(unknown)
}

fn unknown() -> Response {
    Response::problem(Status::Unauthorized, "A token is needed, and this one is not known.")
        .header("WWW-Authenticate", "Bearer")
}

pub(super) fn another_method() -> Response {
    Response::problem(Status::MethodNotAllowed, "This address takes another method.")
}

/// A web page of another origin can neither read nor answer, and nobody can reach the hub under a name that is not its own.
pub(crate) fn check_origin(hosts: &[String], has_tls: bool, head: &Head) -> Result<(), Response> {
    let known = |host: &str| hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
    if !head.header("host").is_some_and(known) {
        return Err(Response::problem(Status::MisdirectedRequest, "This is not the host of that name."));
    }
    let same = head.header("origin").is_none_or(|origin| {
        // Without TLS of our own there may be somebody in front who has it.
        let plain = origin.strip_prefix("http://").filter(|_| !has_tls);
        plain.or_else(|| origin.strip_prefix("https://")).is_some_and(known)
    });
    if same {
        Ok(())
    } else {
        Err(Response::problem(Status::Forbidden, "Pages of another origin are not let in."))
    }
}

fn text(body: Vec<u8>) -> Result<String, Response> {
    String::from_utf8(body).map_err(|_| Response::problem(Status::BadRequest, "The body is not UTF-8."))
}

/// Not JSON is told; everything about a reply that is JSON is not (C-D1).
fn subscriber_message(text: &str) -> Result<SubscriberMessage, Response> {
    match SubscriberMessage::parse(text) {
        SubscriberMessage::Said(Err(Ignored::NotJson)) => Err(Response::new(Status::BadRequest)),
        message => Ok(message),
    }
}

fn query(head: &Head, known: &[&str]) -> Result<Query, Response> {
    Query::parse(head.query.as_deref(), known)
        .map_err(|why| Response::problem(Status::BadRequest, &format!("{why}.")))
}

fn none(head: &Head) -> Result<(), Response> {
    query(head, &[]).map(|_| ())
}

pub(crate) fn not_found() -> Response {
    Response::problem(Status::NotFound, "There is nothing here for you.")
}

/// The session that an address names; what is no id names none.
fn session_id(text: &str) -> Result<SessionId, Response> {
    SessionId::parse(text).map_err(|_| not_found())
}

fn reply_token(text: &str) -> Result<ReplyToken, Response> {
    ReplyToken::parse(text).map_err(|_| not_found())
}

/// A reply of the hub as HTTP gives it.
pub(crate) fn response(reply: &Reply, made: Status) -> Response {
    let status = match reply {
        Reply::Done => return Response::new(Status::NoContent),
        Reply::Unlawful(findings) => return unlawful(findings),
        Reply::Malformed(why) => return Response::problem(Status::BadRequest, &why.to_string()),
        Reply::NotFound => return not_found(),
        Reply::Forbidden => return Response::problem(Status::Forbidden, "This token is not for that."),
        Reply::Conflict => {
            return Response::problem(Status::Conflict, "This Idempotency-Key was used for something else.");
        }
        Reply::LimitReached(limit) => return Response::problem(Status::TooManyRequests, &limit.to_string()),
        Reply::Unavailable(why) => return Response::problem(Status::Unavailable, &why.to_string()),
        Reply::SubscriptionRejected(rejected) => rejection(rejected.reason_code.as_str()),
        Reply::Subscribed { .. } | Reply::SessionStarted { .. } | Reply::QuestionOpened { .. } => made,
        _ => Status::Ok,
    };
    let Some(json) = reply.to_json() else {
        return Response::problem(Status::InternalError, "The hub answered something unknown.");
    };
    let response = Response::new(status).json(json);
    match reply {
        Reply::Subscribed { accepted, .. } => {
            let location = format!("/aaep/v1/events?subscription_id={}", accepted.subscription_id);
            response.header("Location", &location)
        }
        _ => response,
    }
}

/// Every request is answered in AAEP's own words (C-E5).
fn subscribed(reply: &Reply) -> Response {
    if let Reply::Subscribed { .. } = reply {
        return response(reply, Status::Created);
    }
    let (json, code) = refusal(reply);
    let status = if matches!(reply, Reply::Malformed(_)) { Status::BadRequest } else { rejection(&code) };
    let refused = Response::new(status).json(json);
    // There is no telling when there is room again; a minute is soon enough to ask.
    if status == Status::TooManyRequests { refused.header("Retry-After", "60") } else { refused }
}

/// C-E5
fn rejection(code: &str) -> Status {
    match code {
        "authentication_required" => Status::Unauthorized,
        "authorization_denied" => Status::Forbidden,
        "rate_limit" => Status::TooManyRequests,
        "transport_unavailable" => Status::Unavailable,
        _ => Status::Conflict,
    }
}

fn unlawful(findings: &[Finding]) -> Response {
    let title = "This breaks rules of the protocol; nothing was applied.";
    Response::problem_with(Status::UnprocessableContent, title, |writer: &mut Writer| {
        writer.key("findings");
        writer.open_array();
        for finding in findings {
            writer.open_object();
            let message = finding.message();
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
