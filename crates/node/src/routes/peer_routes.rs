//! The routes for other nodes: they send messages, and read the messages of their sessions.

use std::sync::Arc;

use asp::{AgentCard, MessageId, Performative, SessionId, message_pack};
use seal::json::write_object;
use wire::ServiceOutcome;
use wire::http::{HttpResponse, Method, RequestHead, StatusCode};

use super::NodeService;
use super::responses::{error_response, malformed, not_found, problem, read_text, session_id};
use super::route::Route;
use crate::encoding::ASP_MSGPACK;
use crate::outbox::performative_of;
use crate::peer_client::ASP_JSON;
use crate::receive::ReceiveReply;

impl NodeService {
    /// Responds to a request from a peer that has proven its identity.
    pub(super) async fn respond_to_peer(
        &self,
        head: &RequestHead,
        route: &Route<'_>,
        card: Arc<AgentCard>,
        body: Vec<u8>,
    ) -> Result<ServiceOutcome, HttpResponse> {
        let response = match (head.method, route) {
            (Method::Post, Route::PeerSessions) => self.receive(head, card, None, body).await?,
            (Method::Post, Route::PeerMessages(id)) => {
                self.receive(head, card, Some(session_id(id)?), body).await?
            }
            // DELETE carries the CLOSE message, because only a signed message can change a session.
            (Method::Delete, Route::PeerSession(id)) => {
                let text = read_text(body)?;
                if performative_of(&text) != Performative::Close.as_str() {
                    return Err(malformed("The body must be a CLOSE message."));
                }
                self.receive(head, card, Some(session_id(id)?), text.into_bytes()).await?
            }
            (Method::Get, Route::PeerSession(id)) => {
                self.session(self.shared_session(&card, id).await?).await?
            }
            (Method::Get, Route::PeerMessages(id)) => {
                self.messages(head, self.shared_session(&card, id).await?).await?
            }
            (Method::Get, Route::PeerMessage(id, message)) => {
                self.message(self.shared_session(&card, id).await?, message).await?
            }
            (Method::Get, Route::PeerEvents(id)) => {
                let id = self.shared_session(&card, id).await?;
                let after = match head.header("last-event-id") {
                    None | Some("") => 0,
                    Some(position) => {
                        position.parse().map_err(|_| malformed("Last-Event-ID must be a number."))?
                    }
                };
                return Ok(ServiceOutcome::EventStream(self.0.stream_events(id, after)));
            }
            _ => return Err(HttpResponse::method_not_allowed(route.allowed_methods())),
        };
        Ok(ServiceOutcome::Response(response))
    }

    /// Opens a WebSocket. The peer proves who it is in the first frame.
    pub(super) fn open_socket(&self, head: &RequestHead, id: &str) -> Result<ServiceOutcome, HttpResponse> {
        let (id, url, node) = (session_id(id)?, self.request_url(head), self.0.clone());
        Ok(ServiceOutcome::WebSocket {
            subprotocol: None,
            run: Box::new(move |socket| Box::pin(node.run_socket(id, url, socket))),
        })
    }

    async fn session(&self, id: SessionId) -> Result<HttpResponse, HttpResponse> {
        let (_, count) = self.0.messages_since(id, 0, 0).await.map_err(|error| error_response(&error))?;
        let handle = self.0.session(id).await.map_err(|error| error_response(&error))?;
        Ok(HttpResponse::new(StatusCode::Ok).json(write_object(|writer| {
            writer.key("sessionId").text(&id.to_string());
            writer.key("state").text(handle.summary().state.as_str());
            writer.key("messageCount").integer(i64::try_from(count).unwrap_or(i64::MAX));
        })))
    }

    async fn message(&self, id: SessionId, message: &str) -> Result<HttpResponse, HttpResponse> {
        let message = MessageId::parse(message).map_err(|_| not_found())?;
        let handle = self.0.session(id).await.map_err(|error| error_response(&error))?;
        let state = self.0.lock(&handle).await.map_err(|error| error_response(&error))?;
        let text = state
            .participant
            .record()
            .and_then(|record| record.transcript().message(&message))
            .ok_or_else(not_found)?;
        Ok(HttpResponse::new(StatusCode::Ok).body(ASP_JSON, text.as_bytes()))
    }

    async fn receive(
        &self,
        head: &RequestHead,
        card: Arc<AgentCard>,
        session: Option<SessionId>,
        body: Vec<u8>,
    ) -> Result<HttpResponse, HttpResponse> {
        let text = match head.media_type().as_deref() {
            Some(ASP_JSON) => read_text(body)?,
            Some(ASP_MSGPACK) if self.takes_message_pack(&card, session).await? => {
                let max_bytes = self.0.config.limits.session.max_message_bytes;
                message_pack::decode(&body, max_bytes)
                    .map_err(|error| malformed(&format!("The body is malformed: {error}.")))?
            }
            _ => {
                let title = "The content type must be application/asp+json, or application/asp+msgpack if both sides agreed on it.";
                return Err(HttpResponse::problem(StatusCode::UnsupportedMediaType, title));
            }
        };
        self.admit_bytes(&card, text.len())?;
        let is_invitation = session.is_none();
        let reply = self.0.receive(card, session, &text).await.map_err(|error| error_response(&error))?;
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

    /// Returns whether both sides of a session agreed on MessagePack.
    async fn takes_message_pack(
        &self,
        peer: &AgentCard,
        session: Option<SessionId>,
    ) -> Result<bool, HttpResponse> {
        let Some(id) = session else { return Ok(false) };
        let handle = self.0.session(id).await.map_err(|error| error_response(&error))?;
        if peer.agent_id() != handle.info.peer.agent_id() {
            return Err(not_found());
        }
        let mut state = self.0.lock(&handle).await.map_err(|error| error_response(&error))?;
        Ok(state.uses_message_pack())
    }

    /// Returns the id of a session that this peer takes part in.
    async fn shared_session(&self, peer: &AgentCard, id: &str) -> Result<SessionId, HttpResponse> {
        let id = session_id(id)?;
        let handle = self.0.session(id).await.map_err(|error| error_response(&error))?;
        if peer.agent_id() == handle.info.peer.agent_id() { Ok(id) } else { Err(not_found()) }
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
}
