//! Requests to other nodes, on connections that are kept open, with a DPoP proof for each request.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use asp::{AgentCard, MessageId, SessionId, message_pack};
use client::{ClientError, CompleteResponse, HttpClient, PersistentConnection, TrustRoots, Url};
use http::Method;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use seal::json::{JsonKind, Tape};
use thiserror::Error;
use wire::unix_now;

use crate::dpop::ProofCreator;
use crate::encoding::ASP_MSGPACK;
use crate::identity::Identity;
use crate::limits::NodeLimits;
use crate::outbox::NextMessage;
use crate::peer_socket::PeerSockets;

/// The media type of a message.
pub(crate) const ASP_JSON: &str = "application/asp+json";
/// Maximum number of idle connections to one peer.
const MAX_IDLE_CONNECTIONS: usize = 32;
/// Maximum size of what surrounds the messages in a response or in a frame.
const MAX_FRAMING_BYTES: usize = 16 * 1024;
/// The least that a response or a frame may have. It is enough for a signed REJECT.
const MIN_RESPONSE_BYTES: usize = 512 * 1024;

/// A peer's answer to a delivered message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryAnswer {
    /// The peer has stored the message.
    Stored,
    /// The peer refused the message with this signed REJECT.
    Refused { reject: String },
    /// The peer refused the message without a REJECT, for example because it knows neither the session nor us. `is_final` says
    /// that trying again cannot help.
    Rejected { code: String, reason: String, is_final: bool },
}

/// Why a request has no answer.
#[derive(Debug, Error)]
pub(crate) enum PeerError {
    /// The address in the card is not usable.
    #[error("the peer's address is invalid: {0}")]
    Address(#[from] client::UrlError),
    /// The connection failed.
    #[error("{0}")]
    Connection(#[from] ClientError),
    /// The peer did not answer in time.
    #[error("the peer did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The peer asks to wait.
    #[error("the peer is busy")]
    Busy(Option<Duration>),
    /// The answer makes no sense.
    #[error("the peer's answer is invalid: status {0}")]
    InvalidAnswer(u16),
    /// The peer did not take the message, but may do so later.
    #[error("the peer did not take the message: {0}")]
    NotTaken(String),
    /// No proof can be made.
    #[error("no DPoP proof can be made")]
    NoProof,
}

/// The body of a request.
#[derive(Clone, Copy, Debug)]
struct RequestBody<'b> {
    media_type: &'static str,
    bytes: &'b [u8],
}

impl<'b> RequestBody<'b> {
    const EMPTY: Self = Self { media_type: ASP_JSON, bytes: &[] };

    fn json(text: &'b str) -> Self {
        Self { media_type: ASP_JSON, bytes: text.as_bytes() }
    }
}

/// How messages are delivered to peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerTransport {
    /// A request for each message.
    #[default]
    Http,
    /// A WebSocket for each session. The invitation is still a request.
    WebSocket,
}

/// A client for all peers.
#[derive(Debug)]
pub(crate) struct PeerClient {
    /// The agent's own URI, by which a peer finds its card.
    agent_id: Box<str>,
    proofs: ProofCreator,
    authorization: String,
    trust_roots: TrustRoots,
    timeout: Duration,
    transport: PeerTransport,
    /// Maximum size of a response. A page of messages fits, however large one message may be.
    max_response_bytes: usize,
    /// The state for each base address.
    peers: Mutex<HashMap<String, PeerState>>,
    sockets: PeerSockets,
}

#[derive(Debug, Default)]
struct PeerState {
    nonce: Option<String>,
    idle: Vec<PersistentConnection>,
}

impl PeerClient {
    pub(crate) fn new(
        identity: &Identity,
        trust_roots: TrustRoots,
        limits: &NodeLimits,
        transport: PeerTransport,
    ) -> Self {
        let max_message_bytes = limits.session.max_message_bytes;
        let max_frame_bytes = max_message_bytes.saturating_add(MAX_FRAMING_BYTES).max(MIN_RESPONSE_BYTES);
        let page_bytes = limits.page_bytes.saturating_add(limits.page_messages);
        let proofs = ProofCreator::new(identity.keys.clone());
        Self {
            agent_id: identity.card.agent_id().as_str().into(),
            authorization: format!("DPoP {}", proofs.token()),
            proofs,
            trust_roots,
            timeout: limits.peer_timeout,
            transport,
            max_response_bytes: page_bytes.saturating_add(max_frame_bytes),
            peers: Mutex::default(),
            sockets: PeerSockets::new(max_frame_bytes),
        }
    }

    /// Delivers a message. The first message of a session goes to the collection of sessions.
    pub(crate) async fn deliver(
        &self,
        peer: &AgentCard,
        session: SessionId,
        message: &NextMessage,
    ) -> Result<DeliveryAnswer, PeerError> {
        let text = &message.text;
        if self.transport == PeerTransport::WebSocket && !message.is_invitation {
            let client = self.http_client(&peer.endpoint())?;
            let delivery = self.sockets.deliver(&self.proofs, &client, peer, session, text);
            let answer = tokio::time::timeout(self.timeout, delivery)
                .await
                .unwrap_or(Err(PeerError::TimedOut(self.timeout)));
            // A peer that does not know our new card yet fetches it for a request, but not for a WebSocket.
            if !matches!(answer, Err(PeerError::InvalidAnswer(401))) {
                return answer;
            }
        }
        let path = if message.is_invitation {
            "/v1/asp/sessions".to_owned()
        } else {
            format!("/v1/asp/sessions/{session}/messages")
        };
        let base = peer.endpoint();
        if message.is_message_pack
            && let Some(bytes) = message_pack::encode(text)
        {
            let body = RequestBody { media_type: ASP_MSGPACK, bytes: &bytes };
            let response = self.request(&base, Method::POST, &path, Some(session), body).await?;
            // A peer that has lost the agreement still takes JSON.
            if response.status != 415 {
                return read_delivery_answer(&response);
            }
        }
        let response =
            self.request(&base, Method::POST, &path, Some(session), RequestBody::json(text)).await?;
        read_delivery_answer(&response)
    }

    /// Returns a page of the peer's messages of a session, from this position in its chain on. The page is empty at the end.
    pub(crate) async fn messages(
        &self,
        peer: &AgentCard,
        session: SessionId,
        since: usize,
    ) -> Result<Vec<String>, PeerError> {
        let path = format!("/v1/asp/sessions/{session}/messages?since_sequence={since}&limit=200");
        let response =
            self.request(&peer.endpoint(), Method::GET, &path, Some(session), RequestBody::EMPTY).await?;
        let invalid = || PeerError::InvalidAnswer(response.status);
        match response.status {
            200 => {}
            429 | 503 => return Err(busy(&response)),
            _ => return Err(invalid()),
        }
        let mut tape = Tape::default();
        let doc = tape.read(&response.body).map_err(|_| invalid())?;
        let messages = doc.root().member("messages").filter(|list| list.kind() == JsonKind::Array);
        let messages = messages.ok_or_else(invalid)?;
        Ok(messages.items().map(|item| item.source().to_owned()).collect())
    }

    /// Closes the connection of a session that has ended.
    pub(crate) fn end_session(&self, session: SessionId) {
        self.sockets.close(session);
    }

    /// Fetches a card.
    pub(crate) async fn fetch_card(&self, url: &str) -> Result<AgentCard, String> {
        AgentCard::parse(&self.fetch_card_text(url).await?).map_err(|error| error.to_string())
    }

    /// Fetches the text of a card, without verifying it.
    pub(crate) async fn fetch_card_text(&self, url: &str) -> Result<String, String> {
        fetch_text(url, self.trust_roots.clone(), self.timeout).await
    }

    fn http_client(&self, base: &str) -> Result<HttpClient, client::UrlError> {
        Ok(HttpClient::new(Url::parse_http(base)?).with_trust_roots(self.trust_roots.clone()))
    }

    /// Sends a request. If the peer asks for another nonce, sends it once more.
    async fn request(
        &self,
        base: &str,
        method: Method,
        path: &str,
        session: Option<SessionId>,
        body: RequestBody<'_>,
    ) -> Result<CompleteResponse, PeerError> {
        let response = self.request_once(base, &method, path, session, body).await?;
        let response = if response.status == 401 && self.remember_nonce(base, &response) {
            self.request_once(base, &method, path, session, body).await?
        } else {
            response
        };
        self.remember_nonce(base, &response);
        Ok(response)
    }

    async fn request_once(
        &self,
        base: &str,
        method: &Method,
        path: &str,
        session: Option<SessionId>,
        body: RequestBody<'_>,
    ) -> Result<CompleteResponse, PeerError> {
        let client = self.http_client(base)?;
        let target = path.split('?').next().unwrap_or(path);
        let (nonce, idle) = {
            let mut peers = self.peers();
            let state = peers.entry(base.to_owned()).or_default();
            state.idle.retain(PersistentConnection::is_usable);
            (state.nonce.clone(), state.idle.pop())
        };
        let url = format!("{base}{target}");
        let proof = self.proofs.create(method.as_str(), &url, nonce, unix_now()).ok_or(PeerError::NoProof)?;
        let mut request = client
            .persistent_request(method.clone(), path)
            .header(AUTHORIZATION, &self.authorization)
            .header("DPoP", proof)
            .header("Asp-Agent-Id", &*self.agent_id);
        if let Some(session) = session {
            request = request.header("Asp-Session-Id", session.to_string());
        }
        if !body.bytes.is_empty() {
            request = request.header(CONTENT_TYPE, body.media_type);
        }
        let request = request.body(body.bytes.to_vec()).map_err(|_| PeerError::NoProof)?;
        let exchange = async {
            let mut connection = match idle {
                Some(connection) => connection,
                None => PersistentConnection::open(client.connect().await?).await?,
            };
            let response = connection.send(request, self.max_response_bytes).await?;
            Ok::<_, ClientError>((connection, response))
        };
        let (connection, response) = tokio::time::timeout(self.timeout, exchange)
            .await
            .map_err(|_| PeerError::TimedOut(self.timeout))??;
        let mut peers = self.peers();
        let state = peers.entry(base.to_owned()).or_default();
        if state.idle.len() < MAX_IDLE_CONNECTIONS {
            state.idle.push(connection);
        }
        Ok(response)
    }

    /// Remembers the nonce of a response. Returns whether it is a new one.
    fn remember_nonce(&self, base: &str, response: &CompleteResponse) -> bool {
        let nonce = response.headers.get("DPoP-Nonce").and_then(|value| value.to_str().ok());
        let Some(nonce) = nonce else { return false };
        let mut peers = self.peers();
        let known = &mut peers.entry(base.to_owned()).or_default().nonce;
        known.replace(nonce.to_owned()).as_deref() != Some(nonce)
    }

    fn peers(&self) -> std::sync::MutexGuard<'_, HashMap<String, PeerState>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Registers an agent's card at a registry: the node at this address. The request proves that it comes from the card's holder.
pub async fn register_card(
    registry: &str,
    identity: &Identity,
    trust_roots: TrustRoots,
) -> Result<(), String> {
    let client = PeerClient::new(identity, trust_roots, &NodeLimits::default(), PeerTransport::Http);
    let base = registry.trim_end_matches('/');
    let path = format!("/v1/asp/agents/{}/card", crate::routes::encoded_agent(identity.card.agent_id()));
    let card = RequestBody::json(identity.card.as_str());
    let request = client.request(base, Method::PUT, &path, None, card);
    let response = request.await.map_err(|error| error.to_string())?;
    match response.status {
        204 => Ok(()),
        405 => Err("this node is not a registry".to_owned()),
        status => {
            let mut tape = Tape::default();
            let reason = tape.read(&response.body).ok().and_then(|doc| {
                let root = doc.root();
                Some(root.member("reason").or_else(|| root.member("title"))?.text()?.into_owned())
            });
            Err(reason.unwrap_or_else(|| format!("the registry answered with status {status}")))
        }
    }
}

/// How long fetching a card may take, outside a node.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Fetches a card from an address and verifies it.
pub async fn fetch_card(url: &str, trust_roots: TrustRoots) -> Result<AgentCard, String> {
    let text = fetch_card_text(url, trust_roots).await?;
    AgentCard::parse(&text).map_err(|error| format!("{url}: {error}"))
}

/// Fetches the text of a card, without verifying it.
pub async fn fetch_card_text(url: &str, trust_roots: TrustRoots) -> Result<String, String> {
    fetch_text(url, trust_roots, FETCH_TIMEOUT).await
}

/// Fetches a text of at most the size of a card. Redirects are not followed.
async fn fetch_text(url: &str, trust_roots: TrustRoots, limit: Duration) -> Result<String, String> {
    let (base, path) = split_url(url).ok_or("the address must be http(s)://HOST/PATH")?;
    let url = Url::parse_http(base).map_err(|error| error.to_string())?;
    let client = HttpClient::new(url).with_trust_roots(trust_roots);
    let request = client.request(Method::GET, path).body("").map_err(|error| error.to_string())?;
    let exchange = async {
        let connection = client.connect().await?;
        let response = client::send_request(connection, request).await?;
        let status = response.status;
        Ok::<_, ClientError>((status, response.text(AgentCard::MAX_BYTES, limit).await?))
    };
    let (status, text) = tokio::time::timeout(limit, exchange)
        .await
        .map_err(|_| "the other side did not answer in time".to_owned())?
        .map_err(|error| error.to_string())?;
    if status == 200 { Ok(text) } else { Err(format!("the other side answered with status {status}")) }
}

/// Reads how long a busy peer asks to wait.
fn busy(response: &CompleteResponse) -> PeerError {
    let seconds = response.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    PeerError::Busy(seconds.map(Duration::from_secs))
}

fn read_delivery_answer(response: &CompleteResponse) -> Result<DeliveryAnswer, PeerError> {
    let mut tape = Tape::default();
    let doc = tape.read(&response.body).ok();
    let member = |name: &str| {
        let root = doc.as_ref()?.root();
        Some(root.member(name)?.text()?.into_owned())
    };
    match response.status {
        200 | 201 if member("messageId").is_some_and(|id| MessageId::parse(&id).is_ok()) => {
            Ok(DeliveryAnswer::Stored)
        }
        429 | 503 => Err(busy(response)),
        409 | 422 if member("reject").is_some() => {
            Ok(DeliveryAnswer::Refused { reject: member("reject").unwrap_or_default() })
        }
        status @ (400 | 401 | 403 | 404 | 409 | 410 | 413 | 415 | 422) => Ok(DeliveryAnswer::Rejected {
            code: member("code").unwrap_or_else(|| "unspecified".to_owned()),
            reason: member("reason")
                .or_else(|| member("title"))
                .unwrap_or_else(|| format!("the peer answered with status {status}")),
            // A proof can be refused because of clocks or a restart, and a path can be missing while a proxy starts.
            is_final: !matches!(status, 401 | 404),
        }),
        status => Err(PeerError::InvalidAnswer(status)),
    }
}

/// Splits an address into its origin and its path.
fn split_url(url: &str) -> Option<(&str, &str)> {
    let start = url.find("://")? + 3;
    let slash = url.get(start..)?.find('/').map_or(url.len(), |index| start + index);
    let (base, path) = url.split_at(slash);
    Some((base, if path.is_empty() { "/" } else { path }))
}
