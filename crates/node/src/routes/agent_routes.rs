//! The routes for the agent's own program.

use std::time::Duration;

use asp::message::Constraints;
use asp::{AgentUri, DisputeId, Performative, SessionId};
use seal::json::{JsonKind, RawJson, Tape, write_object};
use wire::http::{HttpResponse, Method, RequestHead, StatusCode};
use wire::unix_now;

use super::NodeService;
use super::dispute_routes::{read_dispute, read_verdict};
use super::responses::{error_response, malformed, not_found, session_id};
use super::route::Route;
use crate::send::{InvitationRequest, MessageExtras, MessageRequest, SendOutcome};

/// Maximum value of `tokensUsed`: the largest number up to which JSON numbers are exact everywhere.
const MAX_TOKENS_USED: u64 = (1 << 53) - 1;

impl NodeService {
    /// Responds to a request from the agent's own program.
    pub(super) async fn respond_to_agent(
        &self,
        head: &RequestHead,
        route: &Route<'_>,
        body: &str,
    ) -> Result<HttpResponse, HttpResponse> {
        let node = &self.0;
        let ok = |json: String| Ok(HttpResponse::new(StatusCode::Ok).json(json));
        let lines = |text: String| Ok(HttpResponse::new(StatusCode::Ok).body("application/x-ndjson", text));
        match (head.method, route) {
            (Method::Get, Route::OwnSessions) => self.list(head),
            (Method::Post, Route::OwnSessions) => self.invite(body).await,
            (Method::Get, Route::OwnSession(id)) => self.show(head, id).await,
            (Method::Post, Route::OwnMessages(id)) => self.send(id, body).await,
            (Method::Get, Route::OwnTranscript(id)) => {
                lines(node.transcript(session_id(id)?).await.map_err(|error| error_response(&error))?)
            }
            (Method::Get, Route::OwnCards(id)) => {
                lines(node.session_cards(session_id(id)?).await.map_err(|error| error_response(&error))?)
            }
            (Method::Get, Route::OwnDisputes(id)) => ok(node.peers().disputes_to_json(session_id(id)?)),
            (Method::Post, Route::OwnDisputes(id)) => {
                let dispute = node.file_dispute(session_id(id)?, read_dispute(body)?).await;
                let dispute = dispute.map_err(|error| error_response(&error))?;
                Ok(HttpResponse::new(StatusCode::Created).json(dispute))
            }
            (Method::Get, Route::OwnDispute(id)) => {
                let id = DisputeId::parse(id).map_err(|_| not_found())?;
                ok(node.peers().dispute_to_json(&id).ok_or_else(not_found)?)
            }
            (Method::Post, Route::OwnDispute(id)) => {
                let id = DisputeId::parse(id).map_err(|_| not_found())?;
                let dispute = match read_verdict(body)? {
                    Some((verdict, explanation)) => node.resolve_dispute(&id, verdict, explanation).await,
                    None => node.ask_again_about_dispute(&id).await,
                };
                ok(dispute.map_err(|error| error_response(&error))?)
            }
            (Method::Get, Route::Trust) => self.trust(head),
            _ => Err(HttpResponse::method_not_allowed(route.allowed_methods())),
        }
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
        let tokens_used = root.member("tokensUsed").map(|value| {
            let tokens = value.as_number().and_then(|number| u64::try_from(number.as_i64()?).ok());
            let tokens = tokens.filter(|tokens| *tokens <= MAX_TOKENS_USED);
            tokens.ok_or_else(|| {
                malformed(&format!("tokensUsed must be a whole number from 0 to {MAX_TOKENS_USED}."))
            })
        });
        let extras = MessageExtras { constraints, tokens_used: tokens_used.transpose()? };
        let request = MessageRequest { performative, body: message_body.source().to_owned(), extras };
        let outcome = self.0.send(id, request).await.map_err(|error| error_response(&error))?;
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

    fn list(&self, head: &RequestHead) -> Result<HttpResponse, HttpResponse> {
        let query = head.parse_query(&["ended", "before", "limit"])?;
        let is_ended = match query.get("ended") {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(malformed("ended must be true or false.")),
        };
        let before = query.get("before").map(SessionId::parse).transpose();
        let before = before.map_err(|_| malformed("before must be the id of a session."))?;
        let limit = query.get("limit").map_or(Ok(usize::MAX), str::parse);
        let limit = limit.map_err(|_| malformed("limit must be a number of at least 0."))?;
        let sessions = if is_ended { self.0.list_ended(before, limit) } else { self.0.list() };
        Ok(HttpResponse::new(StatusCode::Ok).json(sessions))
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
