//! The registry: the cards of other agents, and searches among them.

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
                let own = Some(&node.card).filter(|card| last_path_part(card.agent_id()) == *name).cloned();
                let card = own.or_else(|| node.peers().registered_card(name)).ok_or_else(not_found)?;
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
        if last_path_part(card.agent_id()) != name {
            let reason = "the card belongs to another agent";
            return Err(problem(StatusCode::UnprocessableContent, "unauthorized", reason));
        }
        self.check_holder(head, &card)?;
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
}

/// Returns the last part of an agent's URI, which names it at its node.
pub(crate) fn last_path_part(agent: &AgentUri) -> &str {
    agent.as_str().rsplit('/').next().unwrap_or_default()
}
