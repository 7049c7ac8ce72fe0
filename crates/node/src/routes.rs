//! The HTTP routes of a node: for other nodes, and for the agent's own program.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use asp::dispute::{DisputeReason, Severity, Verdict};
use asp::message::Constraints;
use asp::{AgentCard, AgentUri, DisputeId, MessageId, Performative, SessionId};
use hub::Role;
use seal::json::{JsonKind, JsonValue, RawJson, Tape, write_object};
use wire::http::{HttpResponse, Method, RequestHead, StatusCode};
use wire::{Access, HttpService, ServiceOutcome, ServiceRequest, unix_now};

use crate::NodeError;
use crate::disputes::DisputeRequest;
use crate::dpop::{ProofError, access_token};
use crate::node::Node;
use crate::outbox::performative_of;
use crate::peer_client::ASP_JSON;
use crate::receive::ReceiveReply;
use crate::records::NodeRecord;
use crate::send::{InvitationRequest, SendOutcome};

/// Serves a node over HTTP.
#[derive(Clone, Debug)]
pub struct NodeService(pub Arc<Node>);

/// A peer that has proven who it is.
#[derive(Clone, Debug)]
pub struct AuthenticatedPeer(Arc<AgentCard>);

/// The route of a request.
enum Route<'r> {
    WellKnownCard,
    Card(&'r str),
    Discover,
    PeerSessions,
    PeerSession(&'r str),
    PeerMessages(&'r str),
    PeerMessage(&'r str, &'r str),
    PeerEvents(&'r str),
    PeerSocket(&'r str),
    OwnSessions,
    OwnSession(&'r str),
    OwnMessages(&'r str),
    OwnTranscript(&'r str),
    OwnCards(&'r str),
    OwnDisputes(&'r str),
    OwnDispute(&'r str),
    Trust,
}

impl<'r> Route<'r> {
    fn of(path: &'r str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        Some(match parts.as_slice() {
            [".well-known", "asp-agent-card.json"] => Self::WellKnownCard,
            ["v1", "asp", "agents", name, "card"] => Self::Card(name),
            ["v1", "asp", "discover"] => Self::Discover,
            ["v1", "asp", "sessions"] => Self::PeerSessions,
            ["v1", "asp", "sessions", id] => Self::PeerSession(id),
            ["v1", "asp", "sessions", id, "messages"] => Self::PeerMessages(id),
            ["v1", "asp", "sessions", id, "messages", message] => Self::PeerMessage(id, message),
            ["v1", "asp", "sessions", id, "events"] => Self::PeerEvents(id),
            ["v1", "asp", "sessions", id, "ws"] => Self::PeerSocket(id),
            ["agent", "v1", "asp", "sessions"] => Self::OwnSessions,
            ["agent", "v1", "asp", "sessions", id] => Self::OwnSession(id),
            ["agent", "v1", "asp", "sessions", id, "messages"] => Self::OwnMessages(id),
            ["agent", "v1", "asp", "sessions", id, "transcript"] => Self::OwnTranscript(id),
            ["agent", "v1", "asp", "sessions", id, "cards"] => Self::OwnCards(id),
            ["agent", "v1", "asp", "sessions", id, "disputes"] => Self::OwnDisputes(id),
            ["agent", "v1", "asp", "disputes", id] => Self::OwnDispute(id),
            ["agent", "v1", "asp", "trust"] => Self::Trust,
            _ => return None,
        })
    }

    fn template(&self) -> &'static str {
        match self {
            Self::WellKnownCard => "/.well-known/asp-agent-card.json",
            Self::Card(_) => "/v1/asp/agents/{agent}/card",
            Self::Discover => "/v1/asp/discover",
            Self::PeerSessions => "/v1/asp/sessions",
            Self::PeerSession(_) => "/v1/asp/sessions/{id}",
            Self::PeerMessages(_) => "/v1/asp/sessions/{id}/messages",
            Self::PeerMessage(..) => "/v1/asp/sessions/{id}/messages/{message}",
            Self::PeerEvents(_) => "/v1/asp/sessions/{id}/events",
            Self::PeerSocket(_) => "/v1/asp/sessions/{id}/ws",
            Self::OwnSessions => "/agent/v1/asp/sessions",
            Self::OwnSession(_) => "/agent/v1/asp/sessions/{id}",
            Self::OwnMessages(_) => "/agent/v1/asp/sessions/{id}/messages",
            Self::OwnTranscript(_) => "/agent/v1/asp/sessions/{id}/transcript",
            Self::OwnCards(_) => "/agent/v1/asp/sessions/{id}/cards",
            Self::OwnDisputes(_) => "/agent/v1/asp/sessions/{id}/disputes",
            Self::OwnDispute(_) => "/agent/v1/asp/disputes/{id}",
            Self::Trust => "/agent/v1/asp/trust",
        }
    }

    fn allowed_methods(&self) -> &'static str {
        match self {
            Self::Card(_) => "GET, PUT",
            Self::PeerSessions | Self::OwnMessages(_) => "POST",
            Self::PeerSession(_) => "GET, DELETE",
            Self::PeerMessages(_) | Self::OwnSessions | Self::OwnDisputes(_) | Self::OwnDispute(_) => {
                "GET, POST"
            }
            _ => "GET",
        }
    }

    fn is_for_peers(&self) -> bool {
        matches!(
            self,
            Self::PeerSessions
                | Self::PeerSession(_)
                | Self::PeerMessages(_)
                | Self::PeerMessage(..)
                | Self::PeerEvents(_)
        )
    }
}

impl HttpService for NodeService {
    type Caller = AuthenticatedPeer;

    fn admit(&self, head: &RequestHead, _peer: IpAddr) -> Result<Access<AuthenticatedPeer>, HttpResponse> {
        let route = Route::of(&head.path).ok_or_else(not_found)?;
        let max_body_bytes = self.0.config.limits.session.max_message_bytes;
        match route {
            Route::WellKnownCard | Route::Discover | Route::PeerSocket(_) => {
                Ok(Access::Anyone { max_body_bytes: 0 })
            }
            Route::Card(_) => Ok(Access::Anyone { max_body_bytes: AgentCard::MAX_BYTES }),
            route if route.is_for_peers() => match self.authenticate_peer(head) {
                Ok(Some(card)) => {
                    self.accept_proof(head, &card)?;
                    Ok(Access::Authenticated { caller: AuthenticatedPeer(card), max_body_bytes })
                }
                // The card must be fetched first.
                Ok(None) => Ok(Access::Anyone { max_body_bytes }),
                Err(response) => Err(response),
            },
            _ => Ok(Access::Token),
        }
    }

    async fn handle(&self, request: ServiceRequest<AuthenticatedPeer>) -> ServiceOutcome {
        match self.respond(request).await {
            Ok(outcome) => outcome,
            Err(response) => ServiceOutcome::Response(response),
        }
    }

    fn route_template(&self, head: &RequestHead) -> Option<&'static str> {
        Route::of(&head.path).map(|route| route.template())
    }

    fn is_long_poll(&self, head: &RequestHead) -> bool {
        head.method == Method::Get && matches!(Route::of(&head.path), Some(Route::OwnSession(_)))
    }

    fn readiness(&self) -> Result<(), String> {
        Ok(())
    }
}

impl NodeService {
    async fn respond(
        &self,
        request: ServiceRequest<AuthenticatedPeer>,
    ) -> Result<ServiceOutcome, HttpResponse> {
        let head = &request.head;
        let route = Route::of(&head.path).ok_or_else(not_found)?;
        if let Some(principal) = &request.principal
            && !matches!(principal.role, Role::Agent | Role::Admin)
        {
            return Err(HttpResponse::problem(StatusCode::Forbidden, "The token must be that of an agent."));
        }
        let peer = if route.is_for_peers() {
            Some(match request.caller.clone() {
                Some(AuthenticatedPeer(card)) => card,
                None => self.meet_peer(head).await?,
            })
        } else {
            None
        };
        let body = String::from_utf8(request.body)
            .map_err(|_| HttpResponse::problem(StatusCode::BadRequest, "The body must be UTF-8."))?;
        let node = &self.0;
        let respond = |response| Ok(ServiceOutcome::Response(response));
        match (head.method, &route) {
            (Method::Get, Route::WellKnownCard) => respond(card_response(node.card())),
            (Method::Get, Route::Card(name)) => {
                let own = Some(&node.card).filter(|card| last_path_part(card.agent_id()) == *name).cloned();
                let card = own.or_else(|| node.peers().registered_card(name)).ok_or_else(not_found)?;
                respond(card_response(&card))
            }
            (Method::Put, Route::Card(name)) => {
                self.register(name, &body).await.map(ServiceOutcome::Response)
            }
            (Method::Get, Route::Discover) => self.discover(head).map(ServiceOutcome::Response),
            (Method::Post, Route::PeerSessions) => {
                let card = peer.ok_or_else(not_found)?;
                self.receive(head, card, None, &body).await.map(ServiceOutcome::Response)
            }
            (Method::Post, Route::PeerMessages(id)) => {
                let (card, id) = (peer.ok_or_else(not_found)?, session_id(id)?);
                self.receive(head, card, Some(id), &body).await.map(ServiceOutcome::Response)
            }
            (Method::Get, Route::PeerMessages(id)) => {
                let id = self.shared_session(peer.as_ref(), id).await?;
                self.messages(head, id).await.map(ServiceOutcome::Response)
            }
            (Method::Get, Route::PeerMessage(id, message)) => {
                let id = self.shared_session(peer.as_ref(), id).await?;
                let message = MessageId::parse(message).map_err(|_| not_found())?;
                let handle = node.session(id).await.map_err(|error| error_response(&error))?;
                let state = node.lock(&handle).await.map_err(|error| error_response(&error))?;
                let text = state
                    .participant
                    .record()
                    .and_then(|record| record.transcript().message(&message))
                    .ok_or_else(not_found)?;
                respond(HttpResponse::new(StatusCode::Ok).body(ASP_JSON, text.as_bytes()))
            }
            (Method::Get, Route::PeerEvents(id)) => {
                let id = self.shared_session(peer.as_ref(), id).await?;
                let after = match head.header("last-event-id") {
                    None | Some("") => 0,
                    Some(position) => {
                        position.parse().map_err(|_| malformed("Last-Event-ID must be a number."))?
                    }
                };
                Ok(ServiceOutcome::EventStream(node.stream_events(id, after)))
            }
            (Method::Get, Route::PeerSocket(id)) => {
                let (id, url, node) = (session_id(id)?, self.request_url(head), node.clone());
                Ok(ServiceOutcome::WebSocket {
                    subprotocol: None,
                    run: Box::new(move |socket| Box::pin(node.run_socket(id, url, socket))),
                })
            }
            (Method::Get, Route::PeerSession(id)) => {
                let id = self.shared_session(peer.as_ref(), id).await?;
                let (_, count) =
                    node.messages_since(id, 0, 0).await.map_err(|error| error_response(&error))?;
                let handle = node.session(id).await.map_err(|error| error_response(&error))?;
                respond(HttpResponse::new(StatusCode::Ok).json(write_object(|writer| {
                    writer.key("sessionId").text(&id.to_string());
                    writer.key("state").text(handle.summary().state.as_str());
                    writer.key("messageCount").integer(i64::try_from(count).unwrap_or(i64::MAX));
                })))
            }
            (Method::Delete, Route::PeerSession(id)) => {
                // DELETE carries the CLOSE message, because only a signed message can change a session.
                let (card, id) = (peer.ok_or_else(not_found)?, session_id(id)?);
                if performative_of(&body) != Performative::Close.as_str() {
                    return Err(malformed("The body must be a CLOSE message."));
                }
                self.receive(head, card, Some(id), &body).await.map(ServiceOutcome::Response)
            }
            (Method::Get, Route::OwnSessions) => respond(HttpResponse::new(StatusCode::Ok).json(node.list())),
            (Method::Post, Route::OwnSessions) => self.invite(&body).await.map(ServiceOutcome::Response),
            (Method::Get, Route::OwnSession(id)) => self.show(head, id).await.map(ServiceOutcome::Response),
            (Method::Post, Route::OwnMessages(id)) => {
                self.send(id, &body).await.map(ServiceOutcome::Response)
            }
            (Method::Get, Route::OwnTranscript(id)) => {
                let text = node.transcript(session_id(id)?).await.map_err(|error| error_response(&error))?;
                respond(HttpResponse::new(StatusCode::Ok).body("application/x-ndjson", text))
            }
            (Method::Get, Route::OwnCards(id)) => {
                let text =
                    node.session_cards(session_id(id)?).await.map_err(|error| error_response(&error))?;
                respond(HttpResponse::new(StatusCode::Ok).body("application/x-ndjson", text))
            }
            (Method::Get, Route::OwnDisputes(id)) => {
                let id = session_id(id)?;
                respond(HttpResponse::new(StatusCode::Ok).json(node.peers().disputes_to_json(id)))
            }
            (Method::Post, Route::OwnDisputes(id)) => {
                let request = read_dispute(&body)?;
                let dispute = node.file_dispute(session_id(id)?, request).await;
                let dispute = dispute.map_err(|error| error_response(&error))?;
                respond(HttpResponse::new(StatusCode::Created).json(dispute))
            }
            (Method::Get, Route::OwnDispute(id)) => {
                let id = DisputeId::parse(id).map_err(|_| not_found())?;
                let dispute = node.peers().dispute_to_json(&id).ok_or_else(not_found)?;
                respond(HttpResponse::new(StatusCode::Ok).json(dispute))
            }
            (Method::Post, Route::OwnDispute(id)) => {
                let id = DisputeId::parse(id).map_err(|_| not_found())?;
                let (verdict, explanation) = read_verdict(&body)?;
                let dispute = node.resolve_dispute(&id, verdict, explanation).await;
                respond(
                    HttpResponse::new(StatusCode::Ok).json(dispute.map_err(|error| error_response(&error))?),
                )
            }
            (Method::Get, Route::Trust) => self.trust(head).map(ServiceOutcome::Response),
            _ => Err(HttpResponse::method_not_allowed(route.allowed_methods())),
        }
    }

    /// Authenticates a peer by its proof. Returns `None` if its card must be fetched first.
    fn authenticate_peer(&self, head: &RequestHead) -> Result<Option<Arc<AgentCard>>, HttpResponse> {
        let node = &self.0;
        let token = head.header("authorization").and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("dpop").then(|| token.trim())
        });
        let Some(token) = token else {
            return Err(self.challenge("a DPoP proof is required", "invalid_token"));
        };
        let Some(card) = node.peers().card_by_token(token) else {
            let agent = head.header("asp-agent-id").and_then(|agent| AgentUri::parse(agent).ok());
            let may_fetch = agent.is_some_and(|agent| {
                let peers = node.peers();
                !peers.is_revoked(&agent) && (node.config.trusts_on_first_use || peers.card(&agent).is_some())
            });
            return if may_fetch {
                Ok(None)
            } else {
                Err(problem(StatusCode::Forbidden, "unauthorized", "the card of this agent is not pinned"))
            };
        };
        Ok(Some(card))
    }

    /// Checks the proof of a request, counts the request against the sender's limit, and uses the proof up.
    fn accept_proof(&self, head: &RequestHead, card: &AgentCard) -> Result<(), HttpResponse> {
        let proof = head
            .header("dpop")
            .ok_or_else(|| self.challenge("a DPoP proof is required", "invalid_dpop_proof"))?;
        let (node, now, url) = (&self.0, unix_now(), self.request_url(head));
        let refuse = |error: ProofError| match error {
            ProofError::UseNonce => self.challenge(&error.to_string(), "use_dpop_nonce"),
            ProofError::Invalid(_) => self.challenge(&error.to_string(), "invalid_dpop_proof"),
            ProofError::Full => {
                problem(StatusCode::TooManyRequests, "capacity_unavailable", &error.to_string())
                    .header("Retry-After", "5")
            }
        };
        let method = head.method.as_str();
        let jti = node.verifier.check(proof, card.dpop_key(), method, &url, now).map_err(refuse)?;
        let is_invitation = matches!(Route::of(&head.path), Some(Route::PeerSessions));
        node.peers().admit(card.agent_id(), is_invitation, now).map_err(|limited| {
            let seconds = limited.retry_after_ms.div_ceil(1000);
            problem(StatusCode::TooManyRequests, "capacity_unavailable", &limited.to_string())
                .header("Retry-After", &seconds.to_string())
        })?;
        node.verifier.use_up(&jti, now).map_err(refuse)
    }

    /// Returns the address of a request, as its proof must state it.
    fn request_url(&self, head: &RequestHead) -> String {
        let scheme = if self.0.config.clients_use_tls { "https" } else { "http" };
        format!("{scheme}://{}{}", head.header("host").unwrap_or_default(), head.path)
    }

    fn challenge(&self, reason: &str, error: &str) -> HttpResponse {
        problem(StatusCode::Unauthorized, "unauthorized", reason)
            .header("WWW-Authenticate", &format!("DPoP error=\"{error}\", algs=\"ES256\""))
            .header("DPoP-Nonce", &self.0.verifier.nonce(unix_now()))
    }

    /// Fetches the card of a peer that is new or has rotated its keys, checks its proof, and pins the card.
    async fn meet_peer(&self, head: &RequestHead) -> Result<Arc<AgentCard>, HttpResponse> {
        let unknown =
            || problem(StatusCode::Forbidden, "unauthorized", "the card of this agent is not pinned");
        let agent =
            head.header("asp-agent-id").and_then(|agent| AgentUri::parse(agent).ok()).ok_or_else(unknown)?;
        let refuse = |error: NodeError| match error {
            NodeError::UnknownPeer(_) | NodeError::UnusableCard(..) => {
                problem(StatusCode::Forbidden, "unauthorized", &error.to_string())
            }
            // The sender may try again.
            other => error_response(&other),
        };
        let busy = |_| error_response(&NodeError::LimitReached("too many cards are being fetched"));
        let _fetch = self.0.card_fetches.try_acquire().map_err(busy)?;
        let card = self.0.fetch_peer_card(&agent).await.map_err(refuse)?;
        let is_own_token = head
            .header("authorization")
            .and_then(|value| value.split_once(' '))
            .is_some_and(|(_, token)| token.trim() == access_token(card.dpop_key()));
        if !is_own_token {
            return Err(self.challenge("the token is not that of the card's key", "invalid_token"));
        }
        // Only the holder of its key can make this node pin a card.
        self.accept_proof(head, &card)?;
        self.0.pin(card).await.map_err(refuse)
    }

    async fn receive(
        &self,
        head: &RequestHead,
        card: Arc<AgentCard>,
        session: Option<SessionId>,
        body: &str,
    ) -> Result<HttpResponse, HttpResponse> {
        if head.media_type().as_deref() != Some(ASP_JSON) {
            let title = "The content type must be application/asp+json.";
            return Err(HttpResponse::problem(StatusCode::UnsupportedMediaType, title));
        }
        let is_invitation = session.is_none();
        let reply = self.0.receive(card, session, body).await.map_err(|error| error_response(&error))?;
        Ok(match reply {
            ReceiveReply::Stored { message_id, sequence_number, state } => {
                let status = if is_invitation { StatusCode::Created } else { StatusCode::Ok };
                HttpResponse::new(status).json(write_object(|writer| {
                    writer.key("messageId").text(&message_id.to_string());
                    writer.key("sequenceNumber").integer(i64::try_from(sequence_number).unwrap_or(i64::MAX));
                    writer.key("state").text(state.as_str());
                }))
            }
            ReceiveReply::Refused { refusal, reject } => {
                let status = match refusal.code {
                    asp::RejectCode::StaleHead | asp::RejectCode::Duplicate => StatusCode::Conflict,
                    _ => StatusCode::UnprocessableContent,
                };
                HttpResponse::new(status).json(write_object(|writer| {
                    writer.key("code").text(refusal.code.as_str());
                    writer.key("reason").text(&refusal.reason);
                    if let Some(reject) = &reject {
                        writer.key("reject").text(reject);
                    }
                }))
            }
            ReceiveReply::Dropped(reason) => problem(StatusCode::BadRequest, "unauthorized", &reason),
        })
    }

    /// Returns the id of a session that this peer takes part in.
    async fn shared_session(
        &self,
        peer: Option<&Arc<AgentCard>>,
        id: &str,
    ) -> Result<SessionId, HttpResponse> {
        let id = session_id(id)?;
        let handle = self.0.session(id).await.map_err(|error| error_response(&error))?;
        let is_shared = peer.is_some_and(|peer| peer.agent_id() == handle.info.peer.agent_id());
        if is_shared { Ok(id) } else { Err(not_found()) }
    }

    async fn messages(&self, head: &RequestHead, id: SessionId) -> Result<HttpResponse, HttpResponse> {
        let query = head.parse_query(&["since_sequence", "limit", "cursor"])?;
        let number = |name: &str, default: usize| match query.get(name) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|_| {
                HttpResponse::problem(
                    StatusCode::BadRequest,
                    &format!("{name} must be a number of at least 0."),
                )
            }),
        };
        let max = self.0.config.limits.page_messages;
        let limit = number("limit", 50)?.clamp(1, max);
        let since = number("cursor", number("since_sequence", 0)?)?;
        let (messages, total) =
            self.0.messages_since(id, since, limit).await.map_err(|error| error_response(&error))?;
        let next = since + messages.len();
        Ok(HttpResponse::new(StatusCode::Ok).json(write_object(|writer| {
            writer.key("messages").array(|writer| messages.iter().for_each(|message| writer.raw(message)));
            if next < total {
                writer.key("cursor").text(&next.to_string());
            }
            writer.key("messageCount").integer(i64::try_from(total).unwrap_or(i64::MAX));
        })))
    }

    /// Stores the card of another agent. A later card of the same agent replaces it, if the old key signed it.
    async fn register(&self, name: &str, body: &str) -> Result<HttpResponse, HttpResponse> {
        let node = &self.0;
        if !node.config.is_registry {
            return Err(HttpResponse::method_not_allowed("GET"));
        }
        let card = AgentCard::parse(body).map_err(|error| {
            problem(StatusCode::UnprocessableContent, "schema_unsupported", &error.to_string())
        })?;
        if last_path_part(card.agent_id()) != name {
            let reason = "the card is that of another agent";
            return Err(problem(StatusCode::UnprocessableContent, "unauthorized", reason));
        }
        let registered = node.peers().registered_card(name);
        if let Some(old) = &registered {
            let is_same_agent = old.agent_id() == card.agent_id();
            let is_same_key = old.signing_key() == card.signing_key();
            if !is_same_agent || (!is_same_key && !card.is_successor_of(old)) {
                let reason = "another card is registered under this name, and its key did not sign this one";
                return Err(problem(StatusCode::Conflict, "duplicate", reason));
            }
        }
        if registered.is_none() && !node.peers().has_room_to_register(&node.config.limits) {
            return Err(error_response(&NodeError::LimitReached("too many cards are registered")));
        }
        if registered.is_none_or(|old| old.as_str() != card.as_str()) {
            let records = vec![NodeRecord::CardRegistered { card: card.as_str().to_owned() }];
            node.append_node_records(records).await.map_err(|error| error_response(&error))?;
        }
        Ok(HttpResponse::new(StatusCode::NoContent))
    }

    fn discover(&self, head: &RequestHead) -> Result<HttpResponse, HttpResponse> {
        let query = head.parse_query(&["capability", "min_trust"])?;
        let invalid = |title| HttpResponse::problem(StatusCode::BadRequest, title);
        let capability = query.get("capability").ok_or_else(|| invalid("capability is required."))?;
        let min_trust: u8 = query
            .get("min_trust")
            .map_or(Ok(0), str::parse)
            .ok()
            .filter(|score| *score <= 100)
            .ok_or_else(|| invalid("min_trust must be a whole number from 0 to 100."))?;
        if !self.0.config.is_registry {
            return Err(not_found());
        }
        let found = self.0.peers().discover(capability, f64::from(min_trust), unix_now());
        Ok(HttpResponse::new(StatusCode::Ok).json(write_object(|writer| {
            writer.key("agents").array(|writer| {
                for (card, score) in found.iter().take(self.0.config.limits.page_messages) {
                    writer.object(|writer| {
                        writer.key("trustScore").number(score.get());
                        writer.key("card").raw(card.as_str());
                    });
                }
            });
        })))
    }

    async fn invite(&self, body: &str) -> Result<HttpResponse, HttpResponse> {
        let mut tape = Tape::default();
        let doc = tape.read(body).map_err(|error| malformed(&format!("The body is not JSON: {error}.")))?;
        let root = doc.root();
        let text = |name: &str| {
            let text = root.member(name).and_then(|value| value.text());
            text.map(std::borrow::Cow::into_owned)
                .ok_or_else(|| malformed(&format!("{name} must be a string.")))
        };
        let terms = root.member("terms");
        if terms.as_ref().is_some_and(|terms| terms.kind() != JsonKind::Object) {
            return Err(malformed("terms must be an object."));
        }
        let terms = terms.map_or("{}", |terms| terms.source());
        let valid_until = match root.member("validUntil") {
            None => None,
            Some(value) => {
                let time = value.text().and_then(|text| seal::Timestamp::parse_rfc3339(&text).ok());
                Some(time.ok_or_else(|| malformed("validUntil must be a time (RFC 3339)."))?)
            }
        };
        let request = InvitationRequest {
            peer: text("peer")?,
            subject: text("subject")?,
            terms: RawJson::parse(terms).map_err(|_| malformed("terms must be an object."))?,
            valid_until,
        };
        let id = self.0.invite(request).await.map_err(|error| error_response(&error))?;
        let body = write_object(|writer| writer.key("sessionId").text(&id.to_string()));
        Ok(HttpResponse::new(StatusCode::Created).json(body))
    }

    async fn send(&self, id: &str, body: &str) -> Result<HttpResponse, HttpResponse> {
        let id = session_id(id)?;
        let mut tape = Tape::default();
        let doc = tape.read(body).map_err(|error| malformed(&format!("The body is not JSON: {error}.")))?;
        let root = doc.root();
        let performative = root
            .member("performative")
            .and_then(|value| Performative::parse(&value.text()?))
            .ok_or_else(|| malformed("performative must be one of the thirteen performatives."))?;
        let message_body = root.member("body").ok_or_else(|| malformed("body must be an object."))?;
        let constraints = root
            .member("constraints")
            .map(|value| Constraints::parse(value.source()))
            .transpose()
            .map_err(|error| malformed(&format!("constraints: {error}.")))?;
        let outcome = self
            .0
            .send(id, performative, message_body.source(), constraints)
            .await
            .map_err(|error| error_response(&error))?;
        Ok(match outcome {
            SendOutcome::Sent { message_id, sequence_number, state } => HttpResponse::new(StatusCode::Ok)
                .json(write_object(|writer| {
                    writer.key("messageId").text(&message_id.to_string());
                    writer.key("sequenceNumber").integer(i64::try_from(sequence_number).unwrap_or(i64::MAX));
                    writer.key("state").text(state.as_str());
                })),
            SendOutcome::AwaitingConsent { reply_token } => {
                HttpResponse::new(StatusCode::Accepted).json(write_object(|writer| {
                    writer.text_members([("status", "awaiting_consent"), ("reply_token", &*reply_token)]);
                }))
            }
        })
    }

    async fn show(&self, head: &RequestHead, id: &str) -> Result<HttpResponse, HttpResponse> {
        let query = head.parse_query(&["after", "revision", "wait"])?;
        let after = query
            .get("after")
            .map(str::parse)
            .transpose()
            .map_err(|_| malformed("after must be a number of at least 0."))?;
        let revision = query
            .get("revision")
            .map(str::parse)
            .transpose()
            .map_err(|_| malformed("revision must be a number of at least 0."))?;
        let wait: u64 = query
            .get("wait")
            .map_or(Ok(0), str::parse)
            .map_err(|_| malformed("wait must be a whole number of seconds."))?;
        let view = self.0.show(session_id(id)?, after, revision, Duration::from_secs(wait)).await;
        Ok(HttpResponse::new(StatusCode::Ok).json(view.map_err(|error| error_response(&error))?))
    }

    fn trust(&self, head: &RequestHead) -> Result<HttpResponse, HttpResponse> {
        let query = head.parse_query(&["agent"])?;
        let agent = query.get("agent").and_then(|agent| AgentUri::parse(agent).ok());
        let agent = agent.ok_or_else(|| malformed("agent must be an agent URI."))?;
        let report = self.0.peers().trust_report(&agent, unix_now());
        Ok(HttpResponse::new(StatusCode::Ok).json(crate::peers::report_to_json(&report)))
    }
}

/// Reads a complaint.
fn read_dispute(body: &str) -> Result<DisputeRequest, HttpResponse> {
    let mut tape = Tape::default();
    let doc = tape.read(body).map_err(|error| malformed(&format!("The body is not JSON: {error}.")))?;
    let root = doc.root();
    let reason = root.member("reason").and_then(|value| DisputeReason::parse(&value.text()?));
    let names = DisputeReason::ALL.map(DisputeReason::as_str).join(", ");
    let reason = reason.ok_or_else(|| malformed(&format!("reason must be one of {names}.")))?;
    let messages = root.member("messages").map(|list| {
        list.items().map(|id| MessageId::parse(&id.text()?).ok()).collect::<Option<Vec<MessageId>>>()
    });
    Ok(DisputeRequest {
        reason,
        severity: read_severity(&root).unwrap_or(Severity::MODERATE),
        statement: root.member("statement").and_then(|value| Some(value.text()?.into_owned())),
        messages: messages
            .unwrap_or(Some(Vec::new()))
            .ok_or_else(|| malformed("messages must be a list of ids."))?,
    })
}

/// Reads how a dispute ends.
fn read_verdict(body: &str) -> Result<(Verdict, String), HttpResponse> {
    let mut tape = Tape::default();
    let doc = tape.read(body).map_err(|error| malformed(&format!("The body is not JSON: {error}.")))?;
    let root = doc.root();
    let verdict = match root.member("verdict").and_then(|value| value.text()).as_deref() {
        Some("upheld") => Verdict::Upheld(read_severity(&root).unwrap_or(Severity::MODERATE)),
        Some("dismissed") => Verdict::Dismissed,
        Some("settled") => Verdict::Settled,
        Some("withdrawn") => Verdict::Withdrawn,
        _ => return Err(malformed("verdict must be upheld, dismissed, settled or withdrawn.")),
    };
    let explanation = root.member("explanation").and_then(|value| Some(value.text()?.into_owned()));
    Ok((verdict, explanation.unwrap_or_default()))
}

fn read_severity(root: &JsonValue<'_>) -> Option<Severity> {
    let number = root.member("severity")?.as_number()?.as_i64()?;
    Severity::new(u8::try_from(number).ok()?)
}

fn card_response(card: &AgentCard) -> HttpResponse {
    HttpResponse::new(StatusCode::Ok).json(card.as_str())
}

fn session_id(text: &str) -> Result<SessionId, HttpResponse> {
    SessionId::parse(text).map_err(|_| not_found())
}

/// Returns the last part of an agent's URI, which names it at its node.
pub(crate) fn last_path_part(agent: &AgentUri) -> &str {
    agent.as_str().rsplit('/').next().unwrap_or_default()
}

fn not_found() -> HttpResponse {
    HttpResponse::problem(StatusCode::NotFound, "Not found.")
}

fn malformed(title: &str) -> HttpResponse {
    HttpResponse::problem(StatusCode::BadRequest, title)
}

/// A problem with an ASP code and a reason.
fn problem(status: StatusCode, code: &str, reason: &str) -> HttpResponse {
    HttpResponse::problem_with(status, reason, |writer| {
        writer.key("code").text(code);
        writer.key("reason").text(reason);
    })
}

fn error_response(error: &NodeError) -> HttpResponse {
    let reason = error.to_string();
    match error {
        NodeError::UnknownSession => not_found(),
        NodeError::UnknownPeer(_) | NodeError::UnusableCard(..) => {
            problem(StatusCode::UnprocessableContent, "unauthorized", &reason)
        }
        NodeError::Malformed(_) => malformed(&reason),
        NodeError::Refused(refusal) => {
            problem(StatusCode::UnprocessableContent, refusal.code.as_str(), &refusal.reason)
        }
        NodeError::Local(_) => problem(StatusCode::UnprocessableContent, "unspecified", &reason),
        NodeError::AwaitingConsent => problem(StatusCode::Conflict, "escalation_required", &reason),
        NodeError::LimitReached(_) => {
            problem(StatusCode::TooManyRequests, "capacity_unavailable", &reason).header("Retry-After", "10")
        }
        NodeError::CardUnavailable(..) => {
            problem(StatusCode::ServiceUnavailable, "unauthorized", &reason).header("Retry-After", "5")
        }
        NodeError::Storage(_) | NodeError::Stopping => {
            HttpResponse::problem(StatusCode::ServiceUnavailable, &reason).header("Retry-After", "1")
        }
        NodeError::DamagedSession(..) => HttpResponse::problem(StatusCode::InternalServerError, &reason),
    }
}
