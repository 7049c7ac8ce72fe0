//! The transport to a `sayso serve` elsewhere, over one WebSocket.
//!
//! A separate task owns the socket. When the connection is lost, the task reconnects, follows its sessions again and repeats
//! unanswered calls. Each call except a withdrawal has an idempotency key, so the hub executes it only once.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use aaep::event::CoalesceHint;
use aaep::message::ClarificationResponse;
use aaep::{SessionId, Timestamp, UnixMillis};
use client::{
    Backoff, ClientIdentity, HttpClient, Message, TrustRoots, Url, UrlError, WebSocket, WebSocketError,
};
use futures_util::{SinkExt, StreamExt};
use seal::json::{JsonValue, Tape, TapeWriter};
use seal::{Digest, Random, SystemRandom};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{CallNumber, CallReply, HubCall, HubMessage, OutcomeStatus, ReplyOutcome, Transport};
use crate::consent::{ResolvedBy, SignedReceipt};
use crate::error::{
    Error, LimitReached, MalformedInput, RuleViolation, SharedError, StopReason, StorageError,
    UnreachableReason,
};
use crate::member::{self, Document, optional_text};
use crate::session::HandOffOutcome;

/// The address of a hub, with the credentials to connect.
#[derive(Clone, Debug)]
pub(crate) struct HubEndpoint {
    client: HttpClient,
    /// How long to keep trying to reach a hub that does not answer.
    connect_timeout: Duration,
}

/// The delay between two attempts to connect.
const RECONNECT_BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
/// The hub sends a ping every 15 seconds. A hub that is silent for this long counts as lost.
const SILENCE_TIMEOUT: Duration = Duration::from_mins(1);

/// The first number of follow calls. Ordinary calls never reach it.
const FIRST_FOLLOW_NUMBER: CallNumber = 1 << 52;

/// The number of the call that publishes the manifest. Ordinary calls never reach it.
const MANIFEST_NUMBER: CallNumber = FIRST_FOLLOW_NUMBER - 1;

/// The maximum size of a message from the hub, in bytes.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

impl HubEndpoint {
    /// Parses `http://HOST:PORT` or `https://HOST:PORT`.
    pub(crate) fn new(
        url: &str,
        token: Option<&str>,
        ca_file: Option<&Path>,
        client_certificate: Option<(&Path, &Path)>,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let invalid = |error: UrlError| {
            Error::Malformed(MalformedInput::Address { url: url.to_owned(), source: SharedError::new(error) })
        };
        let parsed = Url::parse_http(url).map_err(invalid)?;
        if !parsed.path().is_empty() {
            return Err(invalid(UrlError::InvalidScheme));
        }
        let mut client = HttpClient::new(parsed);
        if let Some(token) = token {
            client = client
                .with_token(token)
                .map_err(|error| Error::Malformed(MalformedInput::Token(SharedError::new(error))))?;
        }
        if let Some(file) = ca_file {
            client = client.with_trust_roots(load_trust(file)?);
        }
        if let Some((certificate, key)) = client_certificate {
            client = client.with_identity(load_identity(certificate, key)?);
        }
        Ok(Self { client, connect_timeout: timeout })
    }

    async fn connect(&self) -> Result<WebSocket, Error> {
        use client::ClientError;
        let opened = self.client.open_websocket("/agent/v1/ws", None, MAX_MESSAGE_BYTES).await;
        opened.map_err(|error| match error {
            ClientError::WebSocketRejected(401 | 403) => Error::AccessDenied,
            // Retrying does not help against an untrusted certificate or a socket of another user.
            ClientError::Certificate(..) | ClientError::Tls(_) | ClientError::ForeignSocket => {
                Error::UntrustedServer(SharedError::new(error))
            }
            ClientError::Io(error) => Error::Unreachable(UnreachableReason::Io(SharedError::new(error))),
            error => Error::Unreachable(UnreachableReason::Io(SharedError::new(error))),
        })
    }

    /// Retries until the connect timeout is over.
    async fn connect_with_retry(&self) -> Result<WebSocket, Error> {
        let deadline = Instant::now() + self.connect_timeout;
        let mut backoff = RECONNECT_BACKOFF;
        loop {
            let attempt = timeout_at(deadline, self.connect()).await;
            match attempt.unwrap_or_else(|_| Err(Error::Unreachable(UnreachableReason::TimedOut))) {
                Err(Error::Unreachable(reason)) if Instant::now() + backoff.delay() >= deadline => {
                    return Err(Error::Unreachable(reason));
                }
                Err(Error::Unreachable(_)) => sleep(backoff.delay()).await,
                result => return result,
            }
            backoff.grow();
        }
    }
}

/// Loads the certificates of a PEM file, to trust only these.
fn load_trust(file: &Path) -> Result<TrustRoots, Error> {
    TrustRoots::only_pem(&read_file(file)?).map_err(|error| unusable_file(file, error))
}

/// Maximum size of the file of a private key, in bytes.
const MAX_KEY_FILE_BYTES: u64 = 1024 * 1024;

/// Loads the certificate of this client and its private key.
fn load_identity(certificate: &Path, key: &Path) -> Result<ClientIdentity, Error> {
    let key = seal::private_file::read(key, MAX_KEY_FILE_BYTES).map_err(|error| unusable_file(key, error))?;
    ClientIdentity::from_pem(&read_file(certificate)?, key.as_bytes())
        .map_err(|error| unusable_file(certificate, error))
}

fn read_file(file: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(file).map_err(|error| unusable_file(file, error))
}

fn unusable_file(file: &Path, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Malformed(MalformedInput::File { path: file.to_owned(), source: SharedError::new(error) })
}

pub(crate) struct WebSocketTransport {
    commands: mpsc::UnboundedSender<ConnectionCommand>,
    messages: mpsc::UnboundedReceiver<HubMessage>,
}

enum ConnectionCommand {
    Send(CallNumber, HubCall),
    Unfollow(SessionId),
}

impl WebSocketTransport {
    /// Connects, and publishes the agent's manifest if there is one. Fails at the first error that a retry cannot fix, or when
    /// the connect timeout is over.
    pub(crate) async fn connect(endpoint: HubEndpoint, manifest: Option<String>) -> Result<Self, Error> {
        let mut socket = endpoint.connect_with_retry().await?;
        let manifest = manifest.map(|document| write_manifest_call(&document));
        if let Some(call) = &manifest {
            let published = publish_manifest(&mut socket, call.clone());
            let timed_out = |_| Err(Error::Unreachable(UnreachableReason::TimedOut));
            timeout(endpoint.connect_timeout, published).await.unwrap_or_else(timed_out)?;
        }
        let (commands, command_receiver) = mpsc::unbounded_channel();
        let (message_sender, messages) = mpsc::unbounded_channel();
        let mut random = [0; 12];
        SystemRandom.fill(&mut random);
        let key_prefix = Digest::of(&random).to_string();
        let task = SocketTask {
            key_prefix,
            manifest,
            commands: command_receiver,
            messages: message_sender,
            pending_calls: BTreeMap::new(),
            sessions: BTreeSet::new(),
            pending_follows: BTreeMap::new(),
        };
        tokio::spawn(task.run(endpoint, socket));
        Ok(Self { commands, messages })
    }
}

impl Transport for WebSocketTransport {
    fn send(&mut self, number: CallNumber, call: HubCall) {
        // If the task has ended, `messages` ends too, and that is reported.
        let _ = self.commands.send(ConnectionCommand::Send(number, call));
    }

    fn unfollow(&mut self, session: &SessionId) {
        let _ = self.commands.send(ConnectionCommand::Unfollow(session.clone()));
    }

    async fn receive(&mut self) -> Option<HubMessage> {
        self.messages.recv().await
    }
}

struct SocketTask {
    /// The prefix of this connection's idempotency keys.
    key_prefix: String,
    /// The call that publishes the manifest, which is repeated on every new connection.
    manifest: Option<String>,
    commands: mpsc::UnboundedReceiver<ConnectionCommand>,
    messages: mpsc::UnboundedSender<HubMessage>,
    /// Unanswered calls as they were sent, by number.
    pending_calls: BTreeMap<CallNumber, String>,
    /// Sessions to follow on a new connection.
    sessions: BTreeSet<SessionId>,
    /// Unanswered follow calls on this connection.
    pending_follows: BTreeMap<CallNumber, SessionId>,
}

/// The connection is no longer needed: all senders are dropped and every call is answered.
struct NoLongerNeeded;

impl SocketTask {
    async fn run(mut self, endpoint: HubEndpoint, mut socket: WebSocket) {
        loop {
            match self.run_connection(&mut socket).await {
                Ok(NoLongerNeeded) => {
                    let _ = socket.close(None).await;
                    return;
                }
                Err(_) => match endpoint.connect_with_retry().await {
                    Ok(new_socket) => {
                        socket = new_socket;
                        // If this fails, the next use of the connection fails as well.
                        if let Some(manifest) = &self.manifest {
                            let _ = socket.send(Message::text(manifest.clone())).await;
                        }
                    }
                    Err(error) => return self.fail_pending(&error),
                },
            }
        }
    }

    /// Runs until the connection is lost or no longer needed.
    async fn run_connection(&mut self, socket: &mut WebSocket) -> Result<NoLongerNeeded, WebSocketError> {
        // Each session is followed twice. If it is over, the first call fails and the hub then sends the reason, if it knows
        // one. When the second call fails, no reason will follow.
        self.pending_follows.clear();
        for (number, session) in
            (FIRST_FOLLOW_NUMBER..).zip(self.sessions.iter().flat_map(|session| [session, session]))
        {
            let follow = write_rpc_request(number, "session.follow", |out| {
                member::text(out, "session_id", session.as_str());
            });
            self.pending_follows.insert(number, session.clone());
            socket.send(Message::text(follow.source())).await?;
        }
        for text in self.pending_calls.values() {
            socket.send(Message::text(text.clone())).await?;
        }
        let mut silence_deadline = Instant::now() + SILENCE_TIMEOUT;
        loop {
            tokio::select! {
                command = self.commands.recv() => match command {
                    None if self.pending_calls.is_empty() => return Ok(NoLongerNeeded),
                    None => std::future::pending().await,
                    Some(ConnectionCommand::Unfollow(session)) => drop(self.sessions.remove(&session)),
                    Some(ConnectionCommand::Send(number, call)) => {
                        let mut message = write_call(number, &call, &self.key_prefix);
                        if let Err(error) = message.doc() {
                            let error = Error::Malformed(MalformedInput::Json(SharedError::new(error)));
                            let _ = self.messages.send(HubMessage::Reply(number, Err(error)));
                            continue;
                        }
                        let text = message.take(Some(String::new()));
                        self.pending_calls.insert(number, text.clone());
                        socket.send(Message::text(text)).await?;
                    }
                },
                received = timeout_at(silence_deadline, socket.next()) => {
                    silence_deadline = Instant::now() + SILENCE_TIMEOUT;
                    match received {
                        Ok(Some(Ok(Message::Text(text)))) => self.handle_message(&text),
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

    fn handle_message(&mut self, text: &str) {
        let mut tape = Tape::default();
        let Ok(doc) = tape.read(text) else { return };
        let root = doc.root();
        let message = match root.member("method").and_then(|method| method.text()) {
            Some(method) => root.member("params").and_then(|params| parse_notification(&method, &params)),
            None => parse_rpc_response(&root),
        };
        match &message {
            Some(HubMessage::Reply(number, result)) => {
                if let Some(session) = self.pending_follows.remove(number) {
                    let is_last = !self.pending_follows.values().any(|other| *other == session);
                    if is_last && result.is_err() && self.sessions.remove(&session) {
                        // The hub does not know the session, for example because it was restarted without its journal.
                        let _ = self.messages.send(HubMessage::Stopped { session, stop: StopReason::Other });
                    }
                    return;
                }
                if self.pending_calls.remove(number).is_none() {
                    return;
                }
                if let Ok(CallReply::SessionStarted(session) | CallReply::SessionJoined(session, _)) = result
                {
                    self.sessions.insert(session.clone());
                }
            }
            Some(HubMessage::Stopped { session, .. }) => drop(self.sessions.remove(session)),
            _ => {}
        }
        if let Some(message) = message {
            let _ = self.messages.send(message);
        }
    }

    fn fail_pending(mut self, error: &Error) {
        for number in std::mem::take(&mut self.pending_calls).into_keys() {
            let _ = self.messages.send(HubMessage::Reply(number, Err(error.clone())));
        }
    }
}

impl HubCall {
    fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Start { .. } => None,
            Self::Events { session, .. }
            | Self::Output { session, .. }
            | Self::Ask { session, .. }
            | Self::HandOff { session, .. }
            | Self::Invite { session, .. }
            | Self::Join { session, .. }
            | Self::Withdraw { session, .. } => Some(session),
        }
    }
}

/// Writes a call as a JSON-RPC request.
fn write_call(number: CallNumber, call: &HubCall, key_prefix: &str) -> Document {
    let method = match call {
        HubCall::Start { .. } => "session.start",
        HubCall::Events { .. } => "session.event",
        HubCall::Output { .. } => "session.output",
        HubCall::Ask { is_clarification: false, .. } => "session.ask",
        HubCall::Ask { is_clarification: true, .. } => "session.clarify",
        HubCall::HandOff { .. } => "session.hand_off",
        HubCall::Invite { .. } => "session.invite",
        HubCall::Join { .. } => "session.join",
        HubCall::Withdraw { .. } => "session.withdraw",
    };
    write_rpc_request(number, method, |out| {
        if !matches!(call, HubCall::Withdraw { .. }) {
            member::text(out, "idempotency_key", &format!("{key_prefix}-{number}"));
        }
        optional_text(out, "session_id", call.session().map(SessionId::as_str));
        match call {
            HubCall::Start { body }
            | HubCall::Ask { body, .. }
            | HubCall::HandOff { body, .. }
            | HubCall::Invite { body, .. }
            | HubCall::Join { body, .. } => member::copy_members(out, body),
            HubCall::Events { events, .. } => {
                out.key("events").array(|out| {
                    for event in events {
                        out.object(|out| member::copy_members(out, event));
                    }
                });
            }
            HubCall::Withdraw { token, .. } => member::text(out, "reply_token", token.as_str()),
            HubCall::Output {
                producer,
                output_id,
                text,
                format,
                hint,
                is_complete,
                agent_reports_next_state,
                ..
            } => {
                member::text(out, "output_id", output_id);
                optional_text(out, "producer", producer.as_deref());
                member::text(out, "text", text);
                if let Some(format) = format {
                    optional_text(out, "language", format.language.as_deref());
                    optional_text(out, "content_type", format.content_type.as_deref());
                }
                optional_text(out, "coalesce_hint", hint.as_ref().map(CoalesceHint::as_str));
                out.key("complete").boolean(*is_complete);
                if *agent_reports_next_state {
                    out.key("stays").boolean(true);
                }
            }
        }
    })
}

fn write_rpc_request(number: CallNumber, method: &str, params: impl FnOnce(&mut TapeWriter)) -> Document {
    member::object(|out| {
        member::text(out, "jsonrpc", "2.0");
        out.key("id").integer(i64::try_from(number).unwrap_or(i64::MAX));
        member::text(out, "method", method);
        out.key("params").object(params);
    })
}

/// Writes the call that publishes a manifest, which is JSON or a compact JWS.
fn write_manifest_call(document: &str) -> String {
    let call = write_rpc_request(MANIFEST_NUMBER, "agent.manifest", |out| {
        member::text(out, "manifest", document);
    });
    call.source().to_owned()
}

/// Publishes a manifest on a new connection, and waits for the hub's reply.
async fn publish_manifest(socket: &mut WebSocket, call: String) -> Result<(), Error> {
    let closed = || {
        let error = SharedError::new(WebSocketError::ConnectionClosed);
        Error::Unreachable(UnreachableReason::Io(error))
    };
    socket.send(Message::text(call)).await.map_err(|_| closed())?;
    loop {
        let Some(Ok(message)) = socket.next().await else { return Err(closed()) };
        let Message::Text(text) = message else { continue };
        let mut tape = Tape::default();
        let reply = tape.read(&text).ok().and_then(|doc| parse_rpc_response(&doc.root()));
        if let Some(HubMessage::Reply(MANIFEST_NUMBER, result)) = reply {
            return result.map(drop);
        }
    }
}

fn parse_notification(method: &str, params: &JsonValue<'_>) -> Option<HubMessage> {
    match method {
        "session.resolved" => Some(HubMessage::Resolved {
            token: parse_id(params, "reply_token")?,
            outcome: ReplyOutcome::read(params),
        }),
        "session.stopped" => {
            let stop = StopReason::parse(&params.member("reason")?.text()?);
            Some(HubMessage::Stopped { session: parse_id(params, "session_id")?, stop })
        }
        _ => None,
    }
}

/// Parses a member as an id.
fn parse_id<T: FromStr>(value: &JsonValue<'_>, name: &str) -> Option<T> {
    value.member(name)?.text()?.parse().ok()
}

/// Parses the result of a call that the hub accepted.
fn parse_reply(result: &JsonValue<'_>) -> CallReply {
    if let Some(token) = parse_id(result, "reply_token") {
        return CallReply::QuestionOpened(token);
    }
    let text = |name: &str| result.member(name).and_then(|value| value.text());
    match (parse_id(result, "session_id"), text("invitation"), text("producer")) {
        (Some(_), Some(secret), _) => CallReply::Invited {
            secret: secret.into_owned(),
            expires_at: text("expires_at")
                .and_then(|at| Timestamp::parse(&at).ok())
                .map_or(UnixMillis::MAX, |at| at.unix_millis()),
        },
        (Some(session), None, Some(producer)) => CallReply::SessionJoined(session, (&*producer).into()),
        (Some(session), None, None) => CallReply::SessionStarted(session),
        _ if result.member("status").is_some() => CallReply::QuestionResolved(ReplyOutcome::read(result)),
        _ => CallReply::Done,
    }
}

impl ReplyOutcome {
    fn read(value: &JsonValue<'_>) -> Self {
        let text = |name| value.member(name).and_then(|value| value.text());
        if let Some(outcome) = text("outcome") {
            let [note, principal] = ["note", "principal"].map(|name| text(name).map(Cow::into_owned));
            return Self::of_hand_off(HandOffOutcome::from_codes(&outcome, note, principal));
        }
        let has_text = |name: &str, text: &str| value.member(name).is_some_and(|value| value.is_text(text));
        let by = value.member("by").and_then(|by| by.text());
        Self {
            hand_off: None,
            status: match () {
                () if has_text("status", "resolved") => OutcomeStatus::Resolved,
                () if has_text("status", "stopped") => OutcomeStatus::Stopped,
                () => OutcomeStatus::Other,
            },
            is_accepted: has_text("decision", "accept"),
            response: value.member("response").and_then(|value| parse_response(&value)),
            by: ResolvedBy::parse(by.as_deref().unwrap_or_default()),
            receipt: value
                .member("receipt")
                .and_then(|receipt| read_receipt(&receipt, text("receipt_signature"))),
        }
    }

    /// Parses the JSON of an outcome.
    #[cfg(test)]
    pub(crate) fn parse(text: &str) -> Self {
        let mut tape = Tape::default();
        match tape.read(text) {
            Ok(doc) => Self::read(&doc.root()),
            Err(_) => Self {
                hand_off: None,
                status: OutcomeStatus::Other,
                is_accepted: false,
                response: None,
                by: ResolvedBy::Other,
                receipt: None,
            },
        }
    }
}

/// Reads a receipt. Its canonical text is recomputed, because that is what the hub signed.
fn read_receipt(receipt: &JsonValue<'_>, signature: Option<Cow<'_, str>>) -> Option<Box<SignedReceipt>> {
    let text = seal::canonicalize(receipt).ok()?.into();
    Some(Box::new(SignedReceipt { text, signature: signature.map(|signature| signature.as_ref().into()) }))
}

fn parse_response(value: &JsonValue<'_>) -> Option<ClarificationResponse> {
    let text = value.text().map(|text| ClarificationResponse::Text(text.into_owned()));
    let yes_no = || value.as_bool().map(ClarificationResponse::YesNo);
    let number = || value.as_number().map(|number| ClarificationResponse::Number(number.as_f64()));
    text.or_else(yes_no).or_else(number)
}

fn parse_rpc_response(root: &JsonValue<'_>) -> Option<HubMessage> {
    let number = root.member("id")?.as_number()?.as_i64()?;
    let number = CallNumber::try_from(number).ok()?;
    if let Some(result) = root.member("result") {
        return Some(HubMessage::Reply(number, Ok(parse_reply(&result))));
    }
    let error = root.member("error")?;
    let code = error.member("code").and_then(|code| code.as_number()?.as_i64());
    let message = error.member("message").and_then(|value| value.text()).unwrap_or_default().into_owned();
    let error = match code {
        Some(-32_022) => Error::RuleViolations(parse_violations(&error)),
        Some(-32_004) => Error::Stopped(StopReason::Other),
        Some(-32_003) => Error::AccessDenied,
        Some(-32_029) => Error::LimitReached(LimitReached::Hub(message)),
        Some(-32_053) => Error::StorageFailed(StorageError::Hub(message)),
        _ => Error::Malformed(MalformedInput::Hub(message)),
    };
    Some(HubMessage::Reply(number, Err(error)))
}

fn parse_violations(error: &JsonValue<'_>) -> Vec<RuleViolation> {
    let findings = error.member("data").and_then(|data| data.member("findings"));
    let findings = findings.iter().flat_map(JsonValue::items);
    findings
        .map(|finding| {
            let text = |name| finding.member(name).and_then(|value| value.text()).unwrap_or_default();
            RuleViolation {
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
    fn a_hub_url_has_a_scheme_a_host_and_optionally_a_port() {
        let endpoint = |url: &str| HubEndpoint::new(url, None, None, None, Duration::ZERO);
        for good in
            ["http://127.0.0.1:8787", "http://hub.example/", "http://[::1]", "https://[::1]:9", "https://hub"]
        {
            assert!(endpoint(good).is_ok(), "{good}");
        }
        for invalid in
            ["hub:1", "ws://hub", "http://", "http://a/b", "http://me@hub", "http://a b", "https://a?b"]
        {
            assert!(matches!(endpoint(invalid), Err(Error::Malformed(_))), "{invalid}");
        }
        let missing_file =
            HubEndpoint::new("https://hub", None, Some(Path::new("/nowhere.pem")), None, Duration::ZERO);
        assert!(matches!(missing_file, Err(Error::Malformed(_))));
    }
}
