//! A `sayso serve` elsewhere, over one WebSocket.
//!
//! A task of its own holds the socket. When the connection is lost it connects again, follows its sessions and repeats what
//! was not answered; every call has an idempotency key, so that the hub does nothing twice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use aaep::SessionId;
use aaep::message::Response;
use client::{Backoff, HttpClient, Message, Trust, Url, UrlError, WebSocket, WebSocketError};
use futures_util::{SinkExt, StreamExt};
use seal::json::{Scribe, Tape, Value};
use seal::{Digest, Random, SystemRandom};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use super::{Call, Line, Number, Outcome, Reply, Status, Told};
use crate::consent::By;
use crate::error::{Broken, Error, Malformed, NotStored, Source, Stop, TooMuch, Unreachable};
use crate::member::{self, Document, optional_text};

/// Where a hub is, and how to be let in.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    client: HttpClient,
    /// For so long it is tried to reach a hub that does not answer.
    patience: Duration,
}

/// Between two attempts to connect.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
/// The hub asks for a sign of life every 15 seconds; one that is silent for so long is not there.
const SILENCE: Duration = Duration::from_mins(1);

/// From here on numbers are those of follow-ups; no line makes so many calls.
const FOLLOWS: Number = 1 << 52;

/// The longest message of a hub. It answers with no more than it takes.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

impl Address {
    /// Takes `http://HOST:PORT` or `https://HOST:PORT`.
    pub(crate) fn new(
        url: &str,
        token: Option<&str>,
        trust: Option<&Path>,
        patience: Duration,
    ) -> Result<Self, Error> {
        let bad = |why: UrlError| {
            Error::Malformed(Malformed::Address { url: url.to_owned(), source: Source::new(why) })
        };
        let parsed = Url::parse_http(url).map_err(bad)?;
        if !parsed.path().is_empty() {
            return Err(bad(UrlError::Scheme));
        }
        let mut client = HttpClient::new(parsed);
        if let Some(token) = token {
            client = client
                .with_token(token)
                .map_err(|why| Error::Malformed(Malformed::Token(Source::new(why))))?;
        }
        if let Some(file) = trust {
            client = client.with_trust(trusted_by(file)?);
        }
        Ok(Self { client, patience })
    }

    async fn connect(&self) -> Result<WebSocket, Error> {
        use client::Error as Failure;
        let opened = self.client.websocket("/agent/v1/ws", None, MAX_MESSAGE_BYTES).await;
        opened.map_err(|error| match error {
            Failure::NoWebSocket(401 | 403) => Error::NotAllowed,
            // A certificate that is not trusted will not be in a moment either.
            Failure::Certificate(..) | Failure::Tls(_) => Error::NotTrusted(Source::new(error)),
            Failure::Io(error) => Error::Unreachable(Unreachable::Failed(Source::new(error))),
            error => Error::Unreachable(Unreachable::Failed(Source::new(error))),
        })
    }

    /// Tries again as long as patience lasts.
    async fn connect_again(&self) -> Result<WebSocket, Error> {
        let until = Instant::now() + self.patience;
        let mut backoff = BACKOFF;
        loop {
            let attempt = timeout_at(until, self.connect()).await;
            match attempt.unwrap_or_else(|_| Err(Error::Unreachable(Unreachable::NoAnswer))) {
                Err(Error::Unreachable(why)) if Instant::now() + backoff.delay() >= until => {
                    return Err(Error::Unreachable(why));
                }
                Err(Error::Unreachable(_)) => sleep(backoff.delay()).await,
                settled => return settled,
            }
            backoff.grow();
        }
    }
}

/// The certificates of a file in PEM, and no others.
fn trusted_by(file: &Path) -> Result<Trust, Error> {
    let bad = |source| Error::Malformed(Malformed::File { path: file.to_owned(), source });
    let pem = std::fs::read(file).map_err(|error| bad(Source::new(error)))?;
    Trust::only(&pem).map_err(|error| bad(Source::new(error)))
}

pub(crate) struct Client {
    orders: mpsc::UnboundedSender<Order>,
    told: mpsc::UnboundedReceiver<Told>,
}

enum Order {
    Say(Number, Call),
    Forget(SessionId),
}

impl Client {
    /// Connects, with the first error that will not go away by itself.
    pub(crate) async fn connect(address: Address) -> Result<Self, Error> {
        let socket = address.connect_again().await?;
        let (orders, inbox) = mpsc::unbounded_channel();
        let (tell, told) = mpsc::unbounded_channel();
        let mut random = [0; 12];
        SystemRandom.fill(&mut random);
        let key = Digest::of(&random).to_string();
        let talk = Talk {
            key,
            inbox,
            tell,
            unanswered: BTreeMap::new(),
            sessions: BTreeSet::new(),
            followed: BTreeMap::new(),
        };
        tokio::spawn(talk.run(address, socket));
        Ok(Self { orders, told })
    }
}

impl Line for Client {
    fn say(&mut self, number: Number, call: Call) {
        // Where the task is gone, `told` ends, and so does everything.
        let _ = self.orders.send(Order::Say(number, call));
    }

    fn forget(&mut self, session: &SessionId) {
        let _ = self.orders.send(Order::Forget(session.clone()));
    }

    async fn told(&mut self) -> Option<Told> {
        self.told.recv().await
    }
}

struct Talk {
    /// What the keys of this line begin with.
    key: String,
    inbox: mpsc::UnboundedReceiver<Order>,
    tell: mpsc::UnboundedSender<Told>,
    /// Calls as they were sent, by their numbers.
    unanswered: BTreeMap<Number, String>,
    /// Sessions to follow on a new connection.
    sessions: BTreeSet<SessionId>,
    /// What is asked of them there, and not answered yet.
    followed: BTreeMap<Number, SessionId>,
}

/// Nobody here wants to speak any more.
struct Done;

impl Talk {
    async fn run(mut self, address: Address, mut socket: WebSocket) {
        loop {
            match self.converse(&mut socket).await {
                Ok(Done) => {
                    let _ = socket.close(None).await;
                    return;
                }
                Err(_) => match address.connect_again().await {
                    Ok(again) => socket = again,
                    Err(error) => return self.give_up(&error),
                },
            }
        }
    }

    /// Until the connection is lost.
    async fn converse(&mut self, socket: &mut WebSocket) -> Result<Done, WebSocketError> {
        // Twice: where a session is over, the first is answered so and then told why, if the hub knows; at the second it is
        // clear whether it does.
        self.followed.clear();
        for (number, session) in (FOLLOWS..).zip(self.sessions.iter().flat_map(|session| [session, session]))
        {
            let follow =
                rpc(number, "session.follow", |out| member::text(out, "session_id", session.as_str()));
            self.followed.insert(number, session.clone());
            socket.send(Message::text(follow.source())).await?;
        }
        for text in self.unanswered.values() {
            socket.send(Message::text(text.clone())).await?;
        }
        let mut silent_at = Instant::now() + SILENCE;
        loop {
            tokio::select! {
                order = self.inbox.recv() => match order {
                    None if self.unanswered.is_empty() => return Ok(Done),
                    None => std::future::pending().await,
                    Some(Order::Forget(session)) => drop(self.sessions.remove(&session)),
                    Some(Order::Say(number, call)) => {
                        let mut message = message(number, &call, &self.key);
                        if let Err(error) = message.doc() {
                            let error = Error::Malformed(Malformed::Json(Source::new(error)));
                            let _ = self.tell.send(Told::Answer(number, Err(error)));
                            continue;
                        }
                        let text = message.take(Some(String::new()));
                        self.unanswered.insert(number, text.clone());
                        socket.send(Message::text(text)).await?;
                    }
                },
                heard = timeout_at(silent_at, socket.next()) => {
                    silent_at = Instant::now() + SILENCE;
                    match heard {
                        Ok(Some(Ok(Message::Text(text)))) => self.hear(&text),
                        Ok(Some(Ok(Message::Close(_))) | None) | Err(_) => {
                            return Err(WebSocketError::ConnectionClosed);
                        }
                        Ok(Some(Ok(_))) => {}
                        Ok(Some(Err(error))) => return Err(error),
                    }
                }
            }
        }
    }

    fn hear(&mut self, text: &str) {
        let mut tape = Tape::default();
        let Ok(doc) = tape.read(text) else { return };
        let root = doc.root();
        let told = match root.member("method").and_then(|method| method.text()) {
            Some(method) => root.member("params").and_then(|params| notice(&method, &params)),
            None => answer(&root),
        };
        match &told {
            Some(Told::Answer(number, result)) => {
                if let Some(session) = self.followed.remove(number) {
                    let asked_last = !self.followed.values().any(|other| *other == session);
                    if asked_last && result.is_err() && self.sessions.remove(&session) {
                        // The hub has forgotten it: it was restarted without its memory.
                        let _ = self.tell.send(Told::Stopped { session, stop: Stop::Other });
                    }
                    return;
                }
                if self.unanswered.remove(number).is_none() {
                    return;
                }
                if let Ok(Reply::Started(session)) = result {
                    self.sessions.insert(session.clone());
                }
            }
            Some(Told::Stopped { session, .. }) => drop(self.sessions.remove(session)),
            _ => {}
        }
        if let Some(told) = told {
            let _ = self.tell.send(told);
        }
    }

    fn give_up(mut self, error: &Error) {
        for number in std::mem::take(&mut self.unanswered).into_keys() {
            let _ = self.tell.send(Told::Answer(number, Err(error.clone())));
        }
    }
}

impl Call {
    fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Start { .. } => None,
            Self::Events { session, .. }
            | Self::Output { session, .. }
            | Self::Ask { session, .. }
            | Self::Withdraw { session, .. } => Some(session),
        }
    }
}

/// A call as it goes over the wire.
fn message(number: Number, call: &Call, key: &str) -> Document {
    let method = match call {
        Call::Start { .. } => "session.start",
        Call::Events { .. } => "session.event",
        Call::Output { .. } => "session.output",
        Call::Ask { clarify: false, .. } => "session.ask",
        Call::Ask { clarify: true, .. } => "session.clarify",
        Call::Withdraw { .. } => "session.withdraw",
    };
    rpc(number, method, |out| {
        if !matches!(call, Call::Withdraw { .. }) {
            member::text(out, "idempotency_key", &format!("{key}-{number}"));
        }
        optional_text(out, "session_id", call.session().map(SessionId::as_str));
        match call {
            Call::Start { body } | Call::Ask { body, .. } => member::copy_members(out, body),
            Call::Events { events, .. } => {
                out.key("events").array(|out| {
                    for event in events {
                        out.object(|out| member::copy_members(out, event));
                    }
                });
            }
            Call::Withdraw { token, .. } => member::text(out, "reply_token", token.as_str()),
            Call::Output { output_id, text, form, complete, stays, .. } => {
                member::text(out, "output_id", output_id);
                member::text(out, "text", text);
                if let Some(form) = form {
                    optional_text(out, "language", form.language.as_deref());
                    optional_text(out, "content_type", form.content_type.as_deref());
                }
                out.key("complete").boolean(*complete);
                if *stays {
                    out.key("stays").boolean(true);
                }
            }
        }
    })
}

fn rpc(number: Number, method: &str, params: impl FnOnce(&mut Scribe)) -> Document {
    member::object(|out| {
        member::text(out, "jsonrpc", "2.0");
        out.key("id").integer(i64::try_from(number).unwrap_or(i64::MAX));
        member::text(out, "method", method);
        out.key("params").object(params);
    })
}

fn notice(method: &str, params: &Value<'_>) -> Option<Told> {
    match method {
        "session.resolved" => {
            Some(Told::Resolved { token: id(params, "reply_token")?, outcome: Outcome::read(params) })
        }
        "session.stopped" => {
            let stop = Stop::of(&params.member("reason")?.text()?);
            Some(Told::Stopped { session: id(params, "session_id")?, stop })
        }
        _ => None,
    }
}

/// An id among the members of what the hub sent.
fn id<T: FromStr>(value: &Value<'_>, name: &str) -> Option<T> {
    value.member(name)?.text()?.parse().ok()
}

/// What the hub answers to a call that it has taken.
fn reply(result: &Value<'_>) -> Reply {
    if let Some(token) = id(result, "reply_token") {
        return Reply::Asked(token);
    }
    match id(result, "session_id") {
        Some(session) => Reply::Started(session),
        None if result.member("status").is_some() => Reply::Resolved(Outcome::read(result)),
        None => Reply::Done,
    }
}

impl Outcome {
    fn read(value: &Value<'_>) -> Self {
        let is = |name: &str, word: &str| value.member(name).is_some_and(|value| value.is(word));
        let by = value.member("by").and_then(|by| by.text());
        Self {
            status: match () {
                () if is("status", "resolved") => Status::Resolved,
                () if is("status", "stopped") => Status::Stopped,
                () => Status::Other,
            },
            is_accepted: is("decision", "accept"),
            response: value.member("response").and_then(|said| response(&said)),
            by: By::of(by.as_deref().unwrap_or_default()),
        }
    }

    /// What a text means that a hub could send.
    #[cfg(test)]
    pub(crate) fn parse(text: &str) -> Self {
        let mut tape = Tape::default();
        match tape.read(text) {
            Ok(doc) => Self::read(&doc.root()),
            Err(_) => Self { status: Status::Other, is_accepted: false, response: None, by: By::Other },
        }
    }
}

fn response(said: &Value<'_>) -> Option<Response> {
    let text = said.text().map(|text| Response::Text(text.into_owned()));
    let yes_no = || said.boolean().map(Response::YesNo);
    let number = || said.number().map(|number| Response::Number(number.as_f64()));
    text.or_else(yes_no).or_else(number)
}

fn answer(root: &Value<'_>) -> Option<Told> {
    let number = root.member("id")?.number()?.as_i64()?;
    let number = Number::try_from(number).ok()?;
    if let Some(result) = root.member("result") {
        return Some(Told::Answer(number, Ok(reply(&result))));
    }
    let error = root.member("error")?;
    let code = error.member("code").and_then(|code| code.number()?.as_i64());
    let said = error.member("message").and_then(|said| said.text()).unwrap_or_default().into_owned();
    let error = match code {
        Some(-32_022) => Error::Unlawful(broken(&error)),
        Some(-32_004) => Error::Stopped(Stop::Other),
        Some(-32_003) => Error::NotAllowed,
        Some(-32_029) => Error::TooMuch(TooMuch::Hub(said)),
        Some(-32_053) => Error::NotStored(NotStored::Hub(said)),
        _ => Error::Malformed(Malformed::Hub(said)),
    };
    Some(Told::Answer(number, Err(error)))
}

fn broken(error: &Value<'_>) -> Vec<Broken> {
    let findings = error.member("data").and_then(|data| data.member("findings"));
    let findings = findings.iter().flat_map(Value::items);
    findings
        .map(|finding| {
            let text = |name| finding.member(name).and_then(|value| value.text()).unwrap_or_default();
            Broken {
                rule: text("rule").into_owned(),
                pointer: text("pointer").into_owned(),
                message: text("message").into_owned(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_scheme_a_host_and_perhaps_a_port() {
        let address = |url: &str| Address::new(url, None, None, Duration::ZERO);
        for good in
            ["http://127.0.0.1:8787", "http://hub.example/", "http://[::1]", "https://[::1]:9", "https://hub"]
        {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in
            ["hub:1", "ws://hub", "http://", "http://a/b", "http://me@hub", "http://a b", "https://a?b"]
        {
            assert!(matches!(address(bad), Err(Error::Malformed(_))), "{bad}");
        }
        let nobody = Address::new("https://hub", None, Some(Path::new("/nowhere.pem")), Duration::ZERO);
        assert!(matches!(nobody, Err(Error::Malformed(_))));
    }
}
