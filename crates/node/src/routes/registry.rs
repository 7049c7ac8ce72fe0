//! The registry: the cards of other agents, and searches among them.

use std::fmt::Write;
use std::net::IpAddr;

use asp::{AgentCard, AgentUri};
use seal::json::write_object;
use wire::http::{HttpResponse, Method, RequestHead, StatusCode};
use wire::unix_now;

use super::NodeService;
use super::responses::{card_response, error_response, not_found, problem};
use super::route::Route;
use crate::NodeError;
use crate::records::NodeRecord;

impl NodeService {
    /// Responds to a request about cards, which needs no token.
    pub(super) async fn respond_about_cards(
        &self,
        head: &RequestHead,
        route: &Route<'_>,
        body: &str,
    ) -> Result<HttpResponse, HttpResponse> {
        let node = &self.0;
        match (head.method, route) {
            (Method::Get, Route::WellKnownCard) => Ok(card_response(node.card())),
            (Method::Get, Route::Card(name)) => {
                let own = &node.card;
                let card = match agent_of(name) {
                    Some(agent) if agent == *own.agent_id() => own.clone(),
                    Some(agent) => node.peers().registered_card(&agent).ok_or_else(not_found)?,
                    None if last_path_part(own.agent_id()) == *name => own.clone(),
                    None => match <[_; 1]>::try_from(node.peers().registered_cards_by_name(name)) {
                        Ok([only]) => only,
                        Err(cards) if cards.is_empty() => return Err(not_found()),
                        Err(_) => return Err(HttpResponse::problem(StatusCode::NotFound, AMBIGUOUS_NAME)),
                    },
                };
                Ok(card_response(&card))
            }
            (Method::Put, Route::Card(name)) => self.register(head, name, body).await,
            (Method::Get, Route::Discover) => self.discover(head),
            _ => Err(HttpResponse::method_not_allowed(route.allowed_methods())),
        }
    }

    /// Counts a registration against the limit of the address that it comes from, before anything is read or verified.
    pub(super) fn admit_registration(&self, address: IpAddr) -> Result<(), HttpResponse> {
        let node = &self.0;
        if !node.config.is_registry {
            return Err(HttpResponse::method_not_allowed("GET"));
        }
        let limit = node.config.limits.registrations_per_minute;
        node.registrations.take(address, limit, unix_now()).map_err(|limited| {
            problem(StatusCode::TooManyRequests, "capacity_unavailable", &limited.to_string())
                .header("Retry-After", &limited.retry_after_ms.div_ceil(1000).to_string())
        })
    }

    /// Stores the card of another agent, whose key has signed the proof of the request: otherwise, anybody could bring back an
    /// old card. A later card of the same agent replaces it, if the old key signed it.
    async fn register(
        &self,
        head: &RequestHead,
        name: &str,
        body: &str,
    ) -> Result<HttpResponse, HttpResponse> {
        let node = &self.0;
        let card = AgentCard::parse(body).map_err(|error| {
            problem(StatusCode::UnprocessableContent, "schema_unsupported", &error.to_string())
        })?;
        let is_named =
            agent_of(name).map_or(last_path_part(card.agent_id()) == name, |agent| agent == *card.agent_id());
        if !is_named {
            let reason = "the card belongs to another agent";
            return Err(problem(StatusCode::UnprocessableContent, "unauthorized", reason));
        }
        self.check_holder(head, &card)?;
        if node.is_revoked(&card) {
            let reason = "the card of this agent is revoked";
            return Err(problem(StatusCode::Forbidden, "unauthorized", reason));
        }
        let registered = node.peers().registered_card(card.agent_id());
        // Nobody else can register a card of this node's own agent, or of an agent whose card this node has pinned.
        let own = Some(&node.card).filter(|own| own.agent_id() == card.agent_id()).cloned();
        let known = own.or_else(|| registered.clone()).or_else(|| node.peers().card(card.agent_id()));
        if let Some(old) = &known {
            let is_same_key = old.signing_key() == card.signing_key();
            if !is_same_key && !card.is_successor_of(old) {
                let reason = "another card of this agent is known, and its key did not sign this one";
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
}

/// The answer to a name that several registered agents share.
const AMBIGUOUS_NAME: &str =
    "Several registered agents have this name. Put the percent-encoded URI of the agent into the path.";

/// Returns the agent whose URI is in a path, percent-encoded, as [`encoded_agent`] writes it.
fn agent_of(name: &str) -> Option<AgentUri> {
    let text = percent_decode(name)?;
    if text.contains("://") { AgentUri::parse(&text).ok() } else { None }
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(rest.next()?)? * 16 + digit(rest.next()?)?);
    }
    String::from_utf8(bytes).ok()
}

/// Returns an agent's URI for a path, percent-encoded.
pub(crate) fn encoded_agent(agent: &AgentUri) -> String {
    let mut encoded = String::with_capacity(agent.as_str().len() + 16);
    for byte in agent.as_str().bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Returns the last part of an agent's URI, which names it at its node.
pub(crate) fn last_path_part(agent: &AgentUri) -> &str {
    agent.as_str().rsplit('/').next().unwrap_or_default()
}
