//! What holds of a question wherever it is kept, in a recording that is judged or in the book of a hub: how long it may
//! stay open, when the person is reminded, which answer counts, which call it covers. Each of these stands here once.

use seal::UnixMillis;

use crate::event::Decision;
use crate::message::{ConfirmationReply, Response};
use crate::rule::{self, Rule};

/// A person may ask for so many times the first timeout (design, `sayso:deadline.extend`).
const MOST_EXTENSION: i64 = 10;
/// Questions that stay open longer should be followed by progress (§6.4.3).
const COUNTDOWN_SECONDS: u64 = 60;

/// A reminder takes some seconds to be said, and an answer some to be given: with less time left than this, in milliseconds,
/// there is none.
pub const SHORTEST_REMINDER: i64 = 5_000;

pub(crate) fn millis(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000)
}

/// The deadline after a person asked for more time: so many seconds more, or the first timeout again.
pub fn extended(
    asked: UnixMillis,
    timeout_seconds: u64,
    deadline: UnixMillis,
    more: Option<u64>,
) -> UnixMillis {
    let timeout = millis(timeout_seconds);
    let most = asked.saturating_add(timeout.saturating_mul(MOST_EXTENSION));
    deadline.saturating_add(more.map_or(timeout, millis)).min(most.max(deadline))
}

/// When half, and when a tenth, of a question's time is left; nothing where the specification does not want it told (§6.4.3).
pub(crate) fn countdown(
    asked: UnixMillis,
    timeout_seconds: u64,
    deadline: UnixMillis,
) -> Option<[UnixMillis; 2]> {
    (timeout_seconds > COUNTDOWN_SECONDS).then(|| points(asked, deadline))
}

/// When a person is reminded of the time that is left: at half and at a tenth, where that leaves at least
/// [`SHORTEST_REMINDER`]. So a question of less than 50 seconds is reminded of once, and one of less than 10 never.
pub fn reminders(asked: UnixMillis, deadline: UnixMillis) -> Vec<UnixMillis> {
    let useful = |at: &UnixMillis| deadline.millis_since(*at) >= SHORTEST_REMINDER;
    points(asked, deadline).into_iter().filter(useful).collect()
}

fn points(asked: UnixMillis, deadline: UnixMillis) -> [UnixMillis; 2] {
    let total = deadline.millis_since(asked).max(0);
    let after = |tenths: i64| asked.saturating_add(total.saturating_mul(tenths).saturating_add(9) / 10);
    [after(5), after(9)]
}

/// What a reply to a confirmation comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    Accepted,
    Refused,
    /// It accepts something else, which counts as a refusal (§6.3.2).
    Modified,
}

/// What a reply comes to; nothing if its decision is none of the allowed ones (§6.3.4, check 6).
pub(crate) fn ruling(reply: &ConfirmationReply, may_accept: bool, may_reject: bool) -> Option<Ruling> {
    match reply.decision {
        Decision::Accept if may_accept && reply.modified_action.is_some() => Some(Ruling::Modified),
        Decision::Accept if may_accept => Some(Ruling::Accepted),
        Decision::Reject if may_reject => Some(Ruling::Refused),
        _ => None,
    }
}

/// What an answer to a clarification may be (§6.5.2, C-D6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kinds {
    pub(crate) free_text: bool,
    pub(crate) yes_no: bool,
    pub(crate) numeric: bool,
    pub(crate) choices: Option<Box<[Box<str>]>>,
}

impl Kinds {
    /// The rule that an answer breaks, if it is none (§6.5.5, C-D7).
    pub(crate) fn misfit(&self, response: &Response) -> Option<Rule> {
        match response {
            Response::Text(text) => match &self.choices {
                Some(values) if !self.free_text => {
                    (!values.iter().any(|value| **value == **text)).then_some(rule::RESPONSE_CHOICE)
                }
                _ => (!self.free_text).then_some(rule::RESPONSE_FITS),
            },
            Response::YesNo(_) => (!self.yes_no).then_some(rule::RESPONSE_FITS),
            Response::Number(_) => (!self.numeric).then_some(rule::RESPONSE_FITS),
        }
    }
}

/// The call that a question is about, as far as it says, or a call that is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'n> {
    pub(crate) tool: Option<&'n str>,
    pub(crate) call: Option<&'n str>,
    pub(crate) digest: Option<&'n str>,
}

impl Named<'_> {
    /// Whether this, which a question says, is true of the call that is made (design, decision 6).
    pub(crate) fn covers(&self, made: &Named<'_>) -> bool {
        let same = |said: Option<&str>, made: Option<&str>| said.is_none_or(|said| made == Some(said));
        same(self.tool, made.tool) && same(self.call, made.call) && same(self.digest, made.digest)
    }
}
