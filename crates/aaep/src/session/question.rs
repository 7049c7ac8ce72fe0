//! One question: what it is about, how it was resolved, and which call it covers.

use seal::UnixMillis;

use super::Resolution;
use super::terms::{Kinds, Named, countdown};
use crate::event::State;
use crate::rule::{self, Findings, Rule};

#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) token: Box<str>,
    pub(super) agent: usize,
    pub(super) about: About,
    pub(super) asked_at: Option<UnixMillis>,
    pub(super) timeout_seconds: u64,
    pub(super) deadline: Option<UnixMillis>,
    pub(super) progress: u8,
    pub(super) status: Status,
    pub(super) heard: Heard,
    /// An event has shown how it was resolved.
    pub(super) shown: bool,
}

#[derive(Clone, Debug)]
pub(super) enum About {
    Action {
        action: Box<str>,
        accept_by_default: bool,
        irreversible: Option<bool>,
        may_accept: bool,
        may_reject: bool,
        tool: Option<Box<str>>,
        call: Option<Box<str>>,
        digest: Option<Box<str>>,
    },
    Meaning {
        question: Box<str>,
        kinds: Kinds,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Open,
    /// Accepted; `silent` if nobody said so and the default did.
    Accepted {
        silent: bool,
    },
    /// Refused; `modified` if the reply accepted something else (§6.3.2).
    Refused {
        modified: bool,
    },
    /// Taken as accepted, because the agent went on to a tool and no reply is recorded (design, decision 15). A reply
    /// that is recorded after all overrules it.
    Presumed,
    /// A call was made on that presumption, at that time.
    Acted {
        millis: Option<UnixMillis>,
    },
    /// A clarification that has its answer, or never will.
    Answered,
}

/// What the recording has of a person's reply to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Nothing,
    InTime,
    /// Only what came too late, or is without effect for another reason (§6.3.4): no reason to go on.
    Void,
}

/// A tool that is about to run.
pub(super) struct Wish<'w> {
    pub(super) agent: usize,
    pub(super) tool: &'w str,
    pub(super) call: Option<&'w str>,
    pub(super) digest: Option<&'w str>,
    pub(super) millis: Option<UnixMillis>,
    pub(super) irreversible: bool,
    pub(super) high_risk: bool,
}

impl Question {
    pub(super) fn is_confirmation(&self) -> bool {
        matches!(self.about, About::Action { .. })
    }

    /// The person was told that it can be undone.
    pub(super) fn says_reversible(&self) -> bool {
        matches!(self.about, About::Action { irreversible: Some(false), .. })
    }

    pub(super) fn default(&self) -> Status {
        match self.about {
            About::Action { accept_by_default: true, .. } => Status::Accepted { silent: true },
            _ => self.refusal(),
        }
    }

    pub(super) fn refusal(&self) -> Status {
        if self.is_confirmation() { Status::Refused { modified: false } } else { Status::Answered }
    }

    pub(super) fn resolve(&mut self, status: Status, at: Option<UnixMillis>, findings: &mut Findings) {
        self.status = status;
        let (Some(asked), Some(deadline), Some(at)) = (self.asked_at, self.deadline, at) else {
            return;
        };
        let (total, elapsed) = (deadline.millis_since(asked), at.millis_since(asked));
        let points = countdown(asked, self.timeout_seconds, deadline);
        let due = points.into_iter().flatten().filter(|point| *point <= at).count();
        if usize::from(self.progress) < due {
            let found = format!("{} was open for {} of {} seconds", self.token, elapsed / 1000, total / 1000);
            findings.push(rule::COUNTDOWN, String::new(), found);
        }
    }

    /// An event says how it was resolved (design, decision 15).
    pub(super) fn resolved_by(
        &mut self,
        told: &Resolution<&str>,
        at: Option<UnixMillis>,
        findings: &mut Findings,
    ) {
        let pointer = || "/extensions/sayso".to_owned();
        let said = match told.decision {
            Some("accept") => Status::Accepted { silent: told.by != Some("reply") },
            Some("reject") => Status::Refused { modified: false },
            _ => self.refusal(),
        };
        let same = |a: Status, b: Status| {
            matches!(a, Status::Accepted { .. }) == matches!(b, Status::Accepted { .. })
        };
        let in_time = matches!((at, self.deadline), (Some(at), Some(deadline)) if at < deadline);
        let accepts = matches!(said, Status::Accepted { .. });
        let modified = self.status == (Status::Refused { modified: true });
        if self.heard == Heard::InTime && told.decision.is_some() && !modified && !same(said, self.status) {
            let (rule, found) = if accepts {
                (rule::AFTER_REJECT, "the person has refused")
            } else {
                (rule::RESOLUTION_SHOWN, "the person has accepted")
            };
            return findings.push(rule, pointer(), found.to_owned());
        }
        if self.heard == Heard::Void && told.by == Some("reply") && accepts {
            findings.push(rule::DEFAULT_APPLIED, pointer(), "the reply had no effect".to_owned());
        }
        match told.by {
            Some("timeout" | "closure" | "unreachable") => {
                if told.by == Some("timeout") && in_time {
                    findings.push(rule::DEFAULT_TIME, pointer(), "its time is not over".to_owned());
                }
                if self.is_confirmation() && !same(said, self.default()) {
                    let found = format!("found {}", told.decision.unwrap_or("no decision"));
                    findings.push(rule::DEFAULT_APPLIED, pointer(), found);
                }
            }
            // A reply that the recording has speaks for itself; one that it has not is believed.
            Some("reply") => {
                if let Status::Refused { modified: false } = self.status
                    && accepts
                    && in_time
                {
                    findings.push(rule::AFTER_REJECT, pointer(), "the person has refused".to_owned());
                    return;
                }
            }
            _ => {}
        }
        if let Status::Acted { .. } = self.status {
            if said != (Status::Accepted { silent: false }) {
                findings.push(rule::AFTER_REJECT, pointer(), "it was done all the same".to_owned());
            }
            self.status = Status::Answered;
        } else if matches!(self.status, Status::Open | Status::Presumed) {
            self.resolve(said, at, findings);
        } else if told.by == Some("reply") && !in_time {
            // It came in time and is told late: our default was too quick.
            self.status = said;
        }
    }

    /// The agent has left `awaiting_input` without a word about this question.
    pub(super) fn passed_over(&mut self, to: &State, at: Option<UnixMillis>, findings: &mut Findings) {
        if self.is_confirmation() && *to == State::CallingTool && self.heard == Heard::Nothing {
            self.resolve(Status::Presumed, at, findings);
        } else {
            self.resolve(self.refusal(), at, findings);
        }
    }

    /// A reply to an action that was taken without waiting for it: lawful only if it was given before, and recorded late.
    pub(super) fn replied_after(
        &mut self,
        acted: Option<UnixMillis>,
        accepts: bool,
        at: UnixMillis,
        findings: &mut Findings,
    ) {
        let (rule, found) = match (accepts, acted) {
            (true, Some(acted)) if at <= acted => {
                self.status = Status::Answered;
                return;
            }
            (true, _) => (rule::BLOCKED, "it was done before this reply"),
            (false, _) => (rule::AFTER_REJECT, "it was done all the same"),
        };
        self.status = Status::Answered;
        findings.push(rule, "/decision".to_owned(), found.to_owned());
    }

    /// Whether the person has agreed to this very call.
    pub(super) fn allows(&self, wish: &Wish<'_>) -> bool {
        matches!(self.status, Status::Accepted { .. } | Status::Presumed) && self.covers(wish)
    }

    /// Whether a question is about this very call, as far as it says (design, decision 6).
    pub(super) fn covers(&self, wish: &Wish<'_>) -> bool {
        let About::Action { tool, call, digest, .. } = &self.about else { return false };
        let asked = Named { tool: tool.as_deref(), call: call.as_deref(), digest: digest.as_deref() };
        asked.covers(&Named { tool: Some(wish.tool), call: wish.call, digest: wish.digest })
    }

    /// Whether this question stands in the way of a harmless call: it names the tool, or was refused a moment ago.
    pub(super) fn forbids(&self, wish: &Wish<'_>) -> Option<Rule> {
        let About::Action { tool, .. } = &self.about else { return None };
        let named = tool.as_deref() == Some(wish.tool);
        match self.status {
            Status::Open if named => Some(rule::BLOCKED),
            Status::Refused { modified: true } if named || self.agent == wish.agent => {
                Some(rule::MODIFIED_ACTION)
            }
            Status::Refused { .. } if named || self.agent == wish.agent => Some(rule::AFTER_REJECT),
            _ => None,
        }
    }
}
