//! The HTTP routes of a node: for other nodes, and for the agent's own program.
//!
//! - `route`: which routes there are.
//! - `authentication`: which peer sends a request.
//! - `peer_routes`, `registry`: for other nodes.
//! - `agent_routes`, `dispute_routes`: for the agent's own program.
//! - `responses`: responses that several routes share.

mod agent_routes;
mod authentication;
mod dispute_routes;
mod peer_routes;
mod registry;
mod responses;
mod route;

use std::net::IpAddr;
use std::sync::Arc;

use asp::AgentCard;
use hub::Role;
use wire::http::{HttpResponse, Method, RequestHead, StatusCode};
use wire::{Access, HttpService, ServiceMetric, ServiceOutcome, ServiceRequest};

use crate::node::Node;
use responses::not_found;
use route::Route;

pub(crate) use registry::{encoded_agent, last_path_part};

/// Serves a node over HTTP.
#[derive(Clone, Debug)]
pub struct NodeService(pub Arc<Node>);

/// A peer that has proven who it is.
#[derive(Clone, Debug)]
pub struct AuthenticatedPeer(Arc<AgentCard>);

impl HttpService for NodeService {
    type Caller = AuthenticatedPeer;

    fn admit(&self, head: &RequestHead, peer: IpAddr) -> Result<Access<AuthenticatedPeer>, HttpResponse> {
        let route = Route::of(&head.path).ok_or_else(not_found)?;
        let max_body_bytes = self.0.config.limits.session.max_message_bytes;
        match route {
            Route::WellKnownCard | Route::Discover | Route::PeerSocket(_) => {
                Ok(Access::Anyone { max_body_bytes: 0 })
            }
            Route::Card(_) => {
                if head.method == Method::Put {
                    self.admit_registration(peer)?;
                }
                Ok(Access::Anyone { max_body_bytes: AgentCard::MAX_BYTES })
            }
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
        if self.0.is_stopping() { Err("The node is stopping.".to_owned()) } else { Ok(()) }
    }

    fn metrics(&self) -> Vec<ServiceMetric> {
        self.0.metrics()
    }
}

impl NodeService {
    async fn respond(
        &self,
        request: ServiceRequest<AuthenticatedPeer>,
    ) -> Result<ServiceOutcome, HttpResponse> {
        let head = &request.head;
        let route = Route::of(&head.path).ok_or_else(not_found)?;
        if route.is_for_peers() {
            let card = match request.caller {
                Some(AuthenticatedPeer(card)) => card,
                None => self.meet_peer(head).await?,
            };
            return self.respond_to_peer(head, &route, card, request.body).await;
        }
        if let Some(principal) = &request.principal
            && !matches!(principal.role, Role::Agent | Role::Admin)
        {
            return Err(HttpResponse::problem(StatusCode::Forbidden, "The token must belong to an agent."));
        }
        let body = responses::read_text(request.body)?;
        let response = match &route {
            Route::WellKnownCard | Route::Card(_) | Route::Discover => {
                self.respond_about_cards(head, &route, &body).await?
            }
            Route::PeerSocket(id) if head.method == Method::Get => return self.open_socket(head, id),
            _ => self.respond_to_agent(head, &route, &body).await?,
        };
        Ok(ServiceOutcome::Response(response))
    }
}
