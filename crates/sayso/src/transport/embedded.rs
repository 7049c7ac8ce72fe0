//! The transport to a hub in this process.

use std::task::{Context, Poll};
use std::time::Duration;

use aaep::SessionId;
use aaep::consent::QuestionAnswer;
use aaep::event::Decision;
use hub::Principal;
use hub::command::{
    AgentNotice, EndReason, HandoffOutcome, HubCommand, QuestionOutcome, RequestBody, RequestId,
};
use rustc_hash::FxHashMap;
use wire::{AgentMessage, HubHandle};

use super::{CallNumber, CallReply, HubCall, HubMessage, OutcomeStatus, ReplyOutcome, Transport};
use crate::consent::SignedReceipt;
use crate::error::{
    Error, LimitReached, MalformedInput, RuleViolation, StopReason, StorageError, UnreachableReason,
};

use crate::session::HandOffOutcome;

/// The maximum number of undelivered messages. The dispatcher receives them immediately, so they never accumulate.
const MAX_QUEUED_NOTIFICATIONS: usize = 65_536;

/// Time limit for delivering the last events to listeners.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) struct EmbeddedTransport {
    handle: HubHandle,
    connection: wire::AgentConnection,
    principal: Principal,
    call_numbers: FxHashMap<RequestId, CallNumber>,
    /// Calls that the hub did not accept because it has ended.
    rejected_calls: Vec<CallNumber>,
    /// Whether somebody else runs the hub. If so, the hub is not shut down with this transport.
    is_shared_hub: bool,
    /// The function that submits a command.
    send_command: fn(&wire::AgentConnection, &Principal, HubCommand) -> Option<RequestId>,
}

impl EmbeddedTransport {
    /// Creates a transport to a hub that replies from its own thread.
    pub(crate) fn new(handle: &HubHandle, principal: Principal) -> Self {
        Self {
            handle: handle.clone(),
            connection: handle.connect_agent(MAX_QUEUED_NOTIFICATIONS),
            principal,
            call_numbers: FxHashMap::default(),
            rejected_calls: Vec::new(),
            is_shared_hub: false,
            send_command: wire::AgentConnection::submit,
        }
    }

    /// Creates a transport to a hub that somebody else runs and others use too.
    pub(crate) fn shared(handle: &HubHandle, principal: Principal) -> Self {
        Self { is_shared_hub: true, ..Self::new(handle, principal) }
    }

    /// Creates a transport to a hub whose turns run on the caller's thread, so that the reply is ready when a call returns.
    pub(crate) fn inline(handle: &HubHandle, principal: Principal) -> Self {
        Self { send_command: wire::AgentConnection::submit_inline, ..Self::new(handle, principal) }
    }

    /// Returns the next message from the hub, if there is one.
    pub(crate) fn try_receive(&mut self) -> Option<HubMessage> {
        loop {
            let message = match self.rejected_calls.pop() {
                Some(number) => Some(hub_ended_reply(number)),
                None => self.convert_message(self.connection.try_recv()?),
            };
            if message.is_some() {
                return message;
            }
        }
    }

    /// Polls for the next message from the hub.
    pub(crate) fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Option<HubMessage>> {
        if let Some(number) = self.rejected_calls.pop() {
            return Poll::Ready(Some(hub_ended_reply(number)));
        }
        while let Poll::Ready(message) = self.connection.poll_recv(context) {
            let Some(message) = message else { return Poll::Ready(None) };
            if let Some(message) = self.convert_message(message) {
                return Poll::Ready(Some(message));
            }
        }
        Poll::Pending
    }

    /// Returns a future that delivers the last events to listeners and announces the shutdown. If somebody else runs the hub, the
    /// future does nothing.
    pub(crate) fn shutdown_future(&self) -> impl Future<Output = ()> + Send + use<> {
        let handle = (!self.is_shared_hub).then(|| self.handle.clone());
        async move {
            if let Some(handle) = handle {
                handle.announce_shutdown(DRAIN_TIMEOUT).await;
            }
        }
    }

    fn convert_message(&mut self, message: AgentMessage) -> Option<HubMessage> {
        match message {
            AgentMessage::Reply(request, reply) => {
                self.call_numbers.remove(&request).map(|number| HubMessage::Reply(number, to_result(reply)))
            }
            AgentMessage::Notice(AgentNotice::QuestionResolved { token, outcome, .. }) => {
                Some(HubMessage::Resolved { token, outcome: outcome.into() })
            }
            AgentMessage::Notice(AgentNotice::HandoffResolved { token, outcome, .. }) => {
                Some(HubMessage::Resolved { token, outcome: outcome.into() })
            }
            AgentMessage::Notice(AgentNotice::SessionEnded { session, reason }) => {
                Some(HubMessage::Stopped { session, stop: reason.into() })
            }
            AgentMessage::Notice(_) => None,
        }
    }
}

fn hub_ended_reply(number: CallNumber) -> HubMessage {
    HubMessage::Reply(number, Err(Error::Unreachable(UnreachableReason::HubEnded)))
}

impl Transport for EmbeddedTransport {
    fn send(&mut self, number: CallNumber, call: HubCall) {
        match (self.send_command)(&self.connection, &self.principal, to_hub_command(call)) {
            Some(request) => drop(self.call_numbers.insert(request, number)),
            None => self.rejected_calls.push(number),
        }
    }

    fn unfollow(&mut self, _: &SessionId) {}

    async fn drain(&mut self) {
        self.shutdown_future().await;
    }

    async fn receive(&mut self) -> Option<HubMessage> {
        std::future::poll_fn(|context| self.poll_receive(context)).await
    }
}

/// Converts a call to a command, without an idempotency key, because a reply cannot get lost within one process.
fn to_hub_command(call: HubCall) -> HubCommand {
    match call {
        HubCall::Start { body } => {
            HubCommand::Start { body: RequestBody::Document(body), idempotency_key: None }
        }
        HubCall::Events { session, events } => {
            let events = events.into_iter().map(RequestBody::Document).collect();
            HubCommand::Publish { session, events, idempotency_key: None }
        }
        HubCall::Output {
            session,
            producer,
            output_id,
            text,
            format,
            hint,
            is_complete,
            agent_reports_next_state,
        } => {
            let (output_id, producer) = (Some(output_id), producer.map(|producer| producer.to_string()));
            let language = format.as_ref().and_then(|format| format.language.clone());
            let content_type = format.as_ref().and_then(|format| format.content_type.clone());
            HubCommand::StreamOutput {
                session,
                output_id,
                producer,
                text,
                language,
                content_type,
                coalesce_hint: hint.map(|hint| hint.as_str().to_owned()),
                complete: is_complete,
                agent_reports_next_state,
                idempotency_key: None,
            }
        }
        HubCall::Invite { session, body } => {
            HubCommand::Invite { session, body: RequestBody::Document(body), idempotency_key: None }
        }
        HubCall::Join { session, body } => {
            HubCommand::Join { session, body: RequestBody::Document(body), idempotency_key: None }
        }
        HubCall::Withdraw { session, token } => HubCommand::Withdraw { session, token },
        HubCall::HandOff { session, body } => {
            HubCommand::HandOff { session, body: RequestBody::Document(body), idempotency_key: None }
        }
        HubCall::Ask { session, body, is_clarification } => HubCommand::Ask {
            session,
            body: RequestBody::Document(body),
            is_clarification,
            idempotency_key: None,
        },
    }
}

fn to_result(reply: hub::command::HubReply) -> Result<CallReply, Error> {
    use hub::command::HubReply;
    Err(match reply {
        HubReply::SessionStarted { session_id } => return Ok(CallReply::SessionStarted(session_id)),
        HubReply::SessionJoined { session_id, producer } => {
            return Ok(CallReply::SessionJoined(session_id, producer.into()));
        }
        HubReply::InvitationCreated { secret, expires_at, .. } => {
            return Ok(CallReply::Invited { secret: secret.into(), expires_at });
        }
        HubReply::QuestionOpened { reply_token, .. } => return Ok(CallReply::QuestionOpened(reply_token)),
        HubReply::QuestionResolved(outcome) => return Ok(CallReply::QuestionResolved(outcome.into())),
        HubReply::HandoffResolved(outcome) => return Ok(CallReply::QuestionResolved(outcome.into())),
        HubReply::EventsPublished { .. } | HubReply::QuestionPending | HubReply::Done => {
            return Ok(CallReply::Done);
        }
        HubReply::RuleViolations(findings) => Error::RuleViolations(
            findings
                .iter()
                .map(|finding| RuleViolation {
                    rule: finding.rule.id().to_owned(),
                    pointer: finding.pointer.clone(),
                    message: hub::agent_message(finding),
                })
                .collect(),
        ),
        HubReply::NotFound | HubReply::SessionEnded | HubReply::QuestionNotFound => {
            Error::Stopped(StopReason::Other)
        }
        // The hub answers every invitation that cannot be redeemed in the same way.
        HubReply::Forbidden | HubReply::InvitationNotFound => Error::AccessDenied,
        HubReply::LimitReached(limit) => Error::LimitReached(LimitReached::Hub(limit.to_string())),
        HubReply::Unavailable(reason) => Error::StorageFailed(StorageError::Hub(reason.to_string())),
        HubReply::Malformed(reason) => Error::Malformed(MalformedInput::Hub(reason.to_string())),
        other => Error::Malformed(MalformedInput::Hub(format!("{other:?}"))),
    })
}

impl From<HandoffOutcome> for ReplyOutcome {
    fn from(outcome: HandoffOutcome) -> Self {
        let principal = outcome.principal.map(|name| name.to_string());
        Self::of_hand_off(HandOffOutcome::from_codes(outcome.result.as_str(), outcome.note, principal))
    }
}

impl From<QuestionOutcome> for ReplyOutcome {
    fn from(outcome: QuestionOutcome) -> Self {
        Self {
            hand_off: None,
            status: if outcome.is_stopped() { OutcomeStatus::Stopped } else { OutcomeStatus::Resolved },
            is_accepted: outcome.answer == QuestionAnswer::Decision(Decision::Accept),
            by: outcome.by.into(),
            receipt: outcome.receipt.map(|receipt| {
                let signature = outcome.receipt_signature.as_deref().map(Into::into);
                Box::new(SignedReceipt { text: receipt.to_json().into(), signature })
            }),
            response: match outcome.answer {
                QuestionAnswer::Response(response) => Some(response),
                _ => None,
            },
        }
    }
}

impl From<EndReason> for StopReason {
    fn from(reason: EndReason) -> Self {
        match reason {
            EndReason::User => Self::Person,
            EndReason::AgentGone => Self::LeaseExpired,
            _ => Self::Other,
        }
    }
}
