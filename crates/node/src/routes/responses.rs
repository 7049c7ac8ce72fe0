//! Responses that several routes share.

use asp::{AgentCard, SessionId};
use wire::http::{HttpResponse, StatusCode};

use crate::NodeError;

pub(super) fn card_response(card: &AgentCard) -> HttpResponse {
    HttpResponse::new(StatusCode::Ok).json(card.as_str())
}

pub(super) fn session_id(text: &str) -> Result<SessionId, HttpResponse> {
    SessionId::parse(text).map_err(|_| not_found())
}

pub(super) fn not_found() -> HttpResponse {
    HttpResponse::problem(StatusCode::NotFound, "Not found.")
}

pub(super) fn malformed(title: &str) -> HttpResponse {
    HttpResponse::problem(StatusCode::BadRequest, title)
}

/// A problem with an ASP code and a reason.
pub(super) fn problem(status: StatusCode, code: &str, reason: &str) -> HttpResponse {
    HttpResponse::problem_with(status, reason, |writer| {
        writer.key("code").text(code);
        writer.key("reason").text(reason);
    })
}

pub(super) fn error_response(error: &NodeError) -> HttpResponse {
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
        NodeError::CatchingUp { retry_after, .. } => {
            let seconds = retry_after.as_millis().div_ceil(1000).max(1);
            problem(StatusCode::ServiceUnavailable, "capacity_unavailable", &reason)
                .header("Retry-After", &seconds.to_string())
        }
        NodeError::Storage(_) | NodeError::Stopping => {
            HttpResponse::problem(StatusCode::ServiceUnavailable, &reason).header("Retry-After", "1")
        }
        NodeError::DamagedSession(..) => HttpResponse::problem(StatusCode::InternalServerError, &reason),
    }
}

/// Returns a body as text.
pub(super) fn read_text(body: Vec<u8>) -> Result<String, HttpResponse> {
    String::from_utf8(body).map_err(|_| malformed("The body must be UTF-8."))
}
