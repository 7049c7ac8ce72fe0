//! An agent's WebSocket connection, from the upgrade request to the close.

use std::collections::HashMap;
use std::time::Duration;

use aaep::json::JsonWriter;
use futures_util::StreamExt;
use hub::command::{AgentNotice, HubReply, RequestId};
use hub::{Principal, Role};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout, timeout_at};

use super::rpc::{self, RpcCall, RpcError, RpcMessage};
use crate::ServerLimits;
use crate::http::{HttpResponse, RequestHead, StatusCode};
use crate::message_transport::websocket::{accept_key, switch_protocols};
use crate::message_transport::{
    CLOSE_TIMEOUT, DisconnectReason, InboundItem, MessageSink, MessageSource, OutboundItem, lingering_close,
};
use crate::server::{AgentConnection, AgentMessage, Server, reply_to_response};

/// The subprotocol. It is optional.
const SUBPROTOCOL: &str = "sayso.agent.v1";
/// How long one write may take before the connection is considered lost.
const WRITE_TIMEOUT: Duration = Duration::from_mins(1);

/// A valid upgrade request for an agent's WebSocket.
#[derive(Debug)]
pub(crate) struct Upgrade {
    principal: Principal,
    /// The value of `Sec-WebSocket-Accept`.
    accept: String,
    subprotocol: Option<&'static str>,
}

impl Upgrade {
    /// Validates an upgrade request. Tokens with the role listener, receiver or observer are rejected.
    pub(crate) fn from_request(head: &RequestHead, principal: Principal) -> Result<Self, HttpResponse> {
        if matches!(principal.role, Role::Listener | Role::Receiver | Role::Observer) {
            return Err(HttpResponse::problem(StatusCode::Forbidden, "This token does not allow that."));
        }
        let accept = accept_key(head)?;
        let subprotocol = match head.header("sec-websocket-protocol") {
            None => None,
            Some(_) if head.list_contains("sec-websocket-protocol", SUBPROTOCOL) => Some(SUBPROTOCOL),
            Some(_) => {
                let title = format!("The subprotocol must be {SUBPROTOCOL} or none.");
                return Err(HttpResponse::problem(StatusCode::BadRequest, &title));
            }
        };
        Ok(Self { principal, accept, subprotocol })
    }
}

/// Runs the WebSocket. `read_ahead` holds the bytes that followed the request head.
pub(crate) async fn run(
    server: &Server,
    upgrade: Upgrade,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin,
    read_ahead: Vec<u8>,
) {
    let Upgrade { principal, accept, subprotocol } = upgrade;
    let limits = server.core.limits;
    let max_bytes = limits.websocket_bytes;
    let Some(socket) = switch_protocols(max_bytes, &accept, subprotocol, stream, read_ahead).await else {
        return;
    };
    let (mut sink, mut source) = socket.split();
    // The queue also has space for the reply to every call in flight. Almost twice `calls_in_flight` calls can be in
    // flight, because a batch with that many calls is read as long as the limit is not reached.
    let connection = server
        .hub
        .connect_agent(limits.queued_notifications.saturating_add(2 * limits.calls_in_flight).max(1));
    let mut agent_socket = AgentSocket {
        connection,
        principal: principal.clone(),
        limits,
        calls: HashMap::new(),
        batches: HashMap::new(),
        in_flight_bytes: 0,
    };
    let reason = tokio::select! {
        reason = agent_socket.run(&mut source, &mut sink) => reason,
        () = server.wait_for_revocation(&principal) => DisconnectReason::TokenRevoked,
    };
    drop(agent_socket);
    let _ = timeout(CLOSE_TIMEOUT, sink.transmit(OutboundItem::Close { reason, subscription: None })).await;
    if let Ok(socket) = source.reunite(sink) {
        lingering_close(socket.into_inner()).await;
    }
}

/// The state of one connection.
struct AgentSocket {
    connection: AgentConnection,
    principal: Principal,
    limits: ServerLimits,
    calls: HashMap<RequestId, PendingCall>,
    /// Unfinished batches, by the request id of the first call that was submitted to the hub.
    batches: HashMap<RequestId, PendingBatch>,
    /// The sum of [`PendingCall::bytes`].
    in_flight_bytes: usize,
}

/// A call that the hub has not replied to yet.
struct PendingCall {
    /// The JSON-RPC id; absent for a notification.
    id: Option<String>,
    /// The size of the message, for the first call of the message. Zero for the other calls of a batch.
    bytes: usize,
    /// The key of its batch in [`AgentSocket::batches`].
    batch: Option<RequestId>,
}

struct PendingBatch {
    /// Number of calls that the hub has not replied to yet.
    remaining: usize,
    responses: Vec<String>,
}

impl AgentSocket {
    async fn run(
        &mut self,
        source: &mut impl MessageSource,
        sink: &mut impl MessageSink,
    ) -> DisconnectReason {
        let mut pings = tokio::time::interval(self.limits.ping_interval);
        pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        pings.reset();
        // Four intervals, so that the agent has time to answer the third ping.
        let idle_timeout = self.limits.ping_interval * 4;
        let mut idle_deadline = Instant::now() + idle_timeout;
        loop {
            let can_read = self.calls.len() < self.limits.calls_in_flight
                && self.in_flight_bytes < self.limits.body_bytes;
            let item = tokio::select! {
                biased;
                message = self.connection.recv() => {
                    if !can_read {
                        // Reading was paused, so the agent could not show that it is alive.
                        idle_deadline = Instant::now() + idle_timeout;
                    }
                    match message {
                        None => return DisconnectReason::SubscriptionEnded,
                        Some(AgentMessage::Notice(notice)) => format_notice(&notice).map(OutboundItem::Raw),
                        Some(AgentMessage::Reply(request, reply)) => self.handle_reply(request, &reply).map(OutboundItem::Raw),
                    }
                }
                _ = pings.tick() => Some(OutboundItem::Ping),
                received = timeout_at(idle_deadline, source.receive()), if can_read => {
                    idle_deadline = Instant::now() + idle_timeout;
                    match received {
                        Err(_) => return DisconnectReason::IdleTimeout,
                        Ok(InboundItem::End(reason)) => return reason,
                        Ok(InboundItem::Message { text, .. }) => match self.handle_message(&text) {
                            Ok(response) => response.map(OutboundItem::Raw),
                            Err(reason) => return reason,
                        },
                        Ok(InboundItem::Malformed) => {
                            Some(OutboundItem::Raw(RpcError::parse_error("Messages must be UTF-8.").to_response(None)))
                        }
                        Ok(_) => None,
                    }
                }
            };
            if let Some(item) = item
                && !timeout(WRITE_TIMEOUT, sink.transmit(item)).await.unwrap_or(false)
            {
                return DisconnectReason::ConnectionLost;
            }
        }
    }

    /// Handles a message. Returns the response if it can be sent immediately, without a reply from the hub.
    fn handle_message(&mut self, text: &str) -> Result<Option<String>, DisconnectReason> {
        let (calls, is_batch) = match rpc::parse_message(text, self.limits.calls_in_flight) {
            Ok(RpcMessage::Single(call)) => (vec![call], false),
            Ok(RpcMessage::Batch(calls)) => (calls, true),
            Err(error) => return Ok(Some(error.to_response(None))),
        };
        let mut responses = Vec::new();
        let mut submitted = Vec::new();
        for RpcCall { id, command } in calls {
            match command {
                Ok(command) => {
                    submitted.push((
                        self.connection
                            .submit(&self.principal, command)
                            .ok_or(DisconnectReason::ConnectionLost)?,
                        id,
                    ));
                }
                Err(error) => responses.extend(id.map(|id| error.to_response(Some(&id)))),
            }
        }
        let first = submitted.first().map(|(request, _)| *request);
        let remaining = submitted.len();
        let mut bytes = text.len();
        for (request, id) in submitted {
            let bytes = std::mem::take(&mut bytes);
            self.in_flight_bytes += bytes;
            self.calls.insert(request, PendingCall { id, bytes, batch: first.filter(|_| is_batch) });
        }
        match first {
            Some(first) if is_batch => {
                self.batches.insert(first, PendingBatch { remaining, responses });
                Ok(None)
            }
            _ => Ok(join_responses(&responses, is_batch)),
        }
    }

    /// Handles the hub's reply to a call. Returns the response if it is complete. A batch is answered after its last call.
    fn handle_reply(&mut self, request: RequestId, reply: &HubReply) -> Option<String> {
        let PendingCall { id, bytes, batch } = self.calls.remove(&request)?;
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(bytes);
        let response = id.map(|id| format_response(&id, reply));
        let Some(batch) = batch else { return response };
        let pending = self.batches.get_mut(&batch)?;
        pending.responses.extend(response);
        pending.remaining -= 1;
        if pending.remaining > 0 {
            return None;
        }
        let pending = self.batches.remove(&batch)?;
        join_responses(&pending.responses, true)
    }
}

/// Joins responses. Returns `None` if there are none, because the message contained only notifications.
fn join_responses(responses: &[String], is_batch: bool) -> Option<String> {
    match responses {
        [] => None,
        [response] if !is_batch => Some(response.clone()),
        responses => Some(rpc::batch_response(responses)),
    }
}

fn format_response(id: &str, reply: &HubReply) -> String {
    match reply.to_json() {
        Some(json) => rpc::success_response(id, &json),
        None => RpcError::from_problem(reply_to_response(reply, StatusCode::Ok)).to_response(Some(id)),
    }
}

fn format_notice(notice: &AgentNotice) -> Option<String> {
    let mut params = JsonWriter::default();
    params.open_object();
    params.key("session_id");
    let method = match notice {
        AgentNotice::QuestionResolved { session, token, outcome } => {
            params.text(session.as_str());
            params.key("reply_token");
            params.text(token.as_str());
            outcome.write(&mut params);
            "session.resolved"
        }
        AgentNotice::HandoffResolved { session, token, outcome } => {
            params.text(session.as_str());
            params.key("reply_token");
            params.text(token.as_str());
            outcome.write(&mut params);
            "session.resolved"
        }
        AgentNotice::SessionEnded { session, reason } => {
            params.text(session.as_str());
            params.key("reason");
            params.text(reason.as_str());
            "session.stopped"
        }
        _ => return None,
    };
    params.close_object();
    Some(rpc::notification(method, &params.finish()))
}
