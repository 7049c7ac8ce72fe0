//! Rules about questions that apply both in recordings and in a hub: deadline extensions,
//! reminders, valid answers and covered calls.

use seal::UnixMillis;

use crate::event::Decision;
use crate::message::{ClarificationResponse, ConfirmationReply};
use crate::rule::{self, Rule};

/// With extensions, a person gets at most this multiple of the original timeout
/// (`sayso:deadline.extend`).
const MAX_EXTENSION_FACTOR: i64 = 10;
/// Questions with a longer timeout should be followed by progress events (§6.4.3).
const COUNTDOWN_MIN_SECONDS: u64 = 60;

/// The minimum time that must be left at a reminder, in milliseconds. Speaking the reminder and
/// answering take some seconds.
pub const MIN_REMINDER_MILLIS: i64 = 5_000;

pub(crate) fn seconds_to_millis(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000)
}

/// Returns the deadline after an extension by `additional_seconds`, or by the original timeout if
/// that is `None`.
pub fn extended_deadline(
    asked_at: UnixMillis,
    timeout_seconds: u64,
    deadline: UnixMillis,
    additional_seconds: Option<u64>,
) -> UnixMillis {
    let timeout = seconds_to_millis(timeout_seconds);
    let max_deadline = asked_at.saturating_add(timeout.saturating_mul(MAX_EXTENSION_FACTOR));
    deadline
        .saturating_add(additional_seconds.map_or(timeout, seconds_to_millis))
        .min(max_deadline.max(deadline))
}

/// Returns when half and when a tenth of a question's time is left; `None` if the specification
/// requires no countdown (§6.4.3).
pub(crate) fn countdown_times(
    asked_at: UnixMillis,
    timeout_seconds: u64,
    deadline: UnixMillis,
) -> Option<[UnixMillis; 2]> {
    (timeout_seconds > COUNTDOWN_MIN_SECONDS).then(|| half_and_tenth_left(asked_at, deadline))
}

/// Returns the times of the reminders: when half and when a tenth of the time is left. A reminder
/// is omitted if less than [`MIN_REMINDER_MILLIS`] would be left. So a question with less than 50
/// seconds gets only one reminder, and a question with less than 10 seconds gets none.
pub fn reminder_times(asked_at: UnixMillis, deadline: UnixMillis) -> Vec<UnixMillis> {
    let is_useful = |at: &UnixMillis| deadline.millis_since(*at) >= MIN_REMINDER_MILLIS;
    half_and_tenth_left(asked_at, deadline).into_iter().filter(is_useful).collect()
}

fn half_and_tenth_left(asked_at: UnixMillis, deadline: UnixMillis) -> [UnixMillis; 2] {
    let total = deadline.millis_since(asked_at).max(0);
    let after = |tenths: i64| asked_at.saturating_add(total.saturating_mul(tenths).saturating_add(9) / 10);
    [after(5), after(9)]
}

/// The effect of a reply to a confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyVerdict {
    Accepted,
    Refused,
    /// The reply accepts only a modified action, which counts as a refusal (§6.3.2).
    Modified,
}

/// Returns the effect of a reply; `None` if its decision is not allowed (§6.3.4, check 6).
pub(crate) fn evaluate_reply(
    reply: &ConfirmationReply,
    may_accept: bool,
    may_reject: bool,
) -> Option<ReplyVerdict> {
    match reply.decision {
        Decision::Accept if may_accept && reply.modified_action.is_some() => Some(ReplyVerdict::Modified),
        Decision::Accept if may_accept => Some(ReplyVerdict::Accepted),
        Decision::Reject if may_reject => Some(ReplyVerdict::Refused),
        _ => None,
    }
}

/// The kinds of response that a clarification accepts (§6.5.2, C-D6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AcceptedResponses {
    pub(crate) accepts_free_text: bool,
    pub(crate) accepts_yes_no: bool,
    pub(crate) accepts_number: bool,
    pub(crate) choices: Option<Box<[Box<str>]>>,
}

impl AcceptedResponses {
    /// Returns the rule that a response breaks, if it is not accepted (§6.5.5, C-D7).
    pub(crate) fn broken_rule(&self, response: &ClarificationResponse) -> Option<Rule> {
        match response {
            ClarificationResponse::Text(text) => match &self.choices {
                Some(values) if !self.accepts_free_text => {
                    (!values.iter().any(|value| **value == **text)).then_some(rule::RESPONSE_CHOICE)
                }
                _ => (!self.accepts_free_text).then_some(rule::RESPONSE_FITS),
            },
            ClarificationResponse::YesNo(_) => (!self.accepts_yes_no).then_some(rule::RESPONSE_FITS),
            ClarificationResponse::Number(_) => (!self.accepts_number).then_some(rule::RESPONSE_FITS),
        }
    }
}

/// Identifies an actual call, or the call that a question is about. A question may leave members
/// unspecified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallIdentity<'n> {
    pub(crate) tool: Option<&'n str>,
    pub(crate) call_id: Option<&'n str>,
    pub(crate) digest: Option<&'n str>,
}

impl CallIdentity<'_> {
    /// Returns whether a question with this identity covers the actual call (decision 6).
    pub(crate) fn covers(&self, actual_call: &CallIdentity<'_>) -> bool {
        let matches = |expected: Option<&str>, actual: Option<&str>| {
            expected.is_none_or(|expected| actual == Some(expected))
        };
        matches(self.tool, actual_call.tool)
            && matches(self.call_id, actual_call.call_id)
            && matches(self.digest, actual_call.digest)
    }
}
