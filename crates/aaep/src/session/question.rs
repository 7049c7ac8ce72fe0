//! One question in a recording: its subject, its resolution and the call that it covers.

use seal::UnixMillis;

use super::ReportedResolution;
use super::question_rules::{AcceptedResponses, CallIdentity, countdown_times};
use crate::event::AgentState;
use crate::rule::{self, Findings, Rule};

#[derive(Clone, Debug)]
pub(super) struct ObservedQuestion {
    pub(super) token: Box<str>,
    pub(super) producer: usize,
    pub(super) subject: ObservedSubject,
    pub(super) asked_at: Option<UnixMillis>,
    pub(super) timeout_seconds: u64,
    pub(super) deadline: Option<UnixMillis>,
    /// The number of progress events since the question was asked.
    pub(super) progress_count: u8,
    pub(super) status: ObservedStatus,
    pub(super) reply: ObservedReply,
    /// Whether an event has shown how the question was resolved.
    pub(super) is_resolution_shown: bool,
    /// Whether a call that the question covers was announced after its acceptance. A call that needs consent removes the
    /// question instead.
    pub(super) is_acted_on: bool,
}

#[derive(Clone, Debug)]
pub(super) enum ObservedSubject {
    Confirmation {
        action: Box<str>,
        accept_by_default: bool,
        irreversible: Option<bool>,
        high_risk: bool,
        may_accept: bool,
        may_reject: bool,
        tool: Option<Box<str>>,
        call_id: Option<Box<str>>,
        digest: Option<Box<str>>,
    },
    Clarification {
        question: Box<str>,
        accepted: AcceptedResponses,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObservedStatus {
    Open,
    /// Accepted; `by_default` if no person answered.
    Accepted {
        by_default: bool,
    },
    /// Refused; `modified` if the person accepted only a modified action (§6.3.2).
    Refused {
        modified: bool,
    },
    /// Presumed to be accepted, because the agent continued with a tool and no reply is recorded
    /// (decision 15). A later reply overrides this.
    Presumed,
    /// A call was made while the acceptance was only presumed. Holds the time of the call.
    Acted {
        acted_at: Option<UnixMillis>,
    },
    /// A clarification that was answered or can no longer be answered, or a confirmation whose call
    /// and reply were both recorded.
    Closed,
}

/// The recorded reply to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObservedReply {
    NoReply,
    InTime,
    /// All recorded replies are late or invalid (§6.3.4), so they do not permit the action.
    Ineffective,
}

/// A tool call that is about to run.
pub(super) struct AttemptedCall<'w> {
    pub(super) producer: usize,
    pub(super) tool: &'w str,
    pub(super) call_id: Option<&'w str>,
    pub(super) digest: Option<&'w str>,
    pub(super) called_at: Option<UnixMillis>,
    pub(super) irreversible: bool,
    pub(super) high_risk: bool,
}

impl ObservedQuestion {
    /// Returns whether a call was accepted, and no call was announced since. A question that names no tool, and whose action is
    /// neither irreversible nor of high risk, may be about something other than a call.
    pub(super) fn awaits_action(&self) -> bool {
        let is_dangerous = matches!(
            self.subject,
            ObservedSubject::Confirmation { irreversible: Some(true), .. }
                | ObservedSubject::Confirmation { high_risk: true, .. }
        );
        matches!(self.status, ObservedStatus::Accepted { .. })
            && (is_dangerous || self.is_bound())
            && !self.is_acted_on
    }

    /// Returns whether the question names the tool or the call that it is about.
    pub(super) fn is_bound(&self) -> bool {
        matches!(
            &self.subject,
            ObservedSubject::Confirmation { tool, call_id, digest, .. }
                if [tool, call_id, digest].into_iter().any(Option::is_some)
        )
    }

    pub(super) fn is_confirmation(&self) -> bool {
        matches!(self.subject, ObservedSubject::Confirmation { .. })
    }

    /// Returns whether the question declared the action reversible.
    pub(super) fn declares_reversible(&self) -> bool {
        matches!(self.subject, ObservedSubject::Confirmation { irreversible: Some(false), .. })
    }

    pub(super) fn default_status(&self) -> ObservedStatus {
        match self.subject {
            ObservedSubject::Confirmation { accept_by_default: true, .. } => {
                ObservedStatus::Accepted { by_default: true }
            }
            _ => self.refusal_status(),
        }
    }

    pub(super) fn refusal_status(&self) -> ObservedStatus {
        if self.is_confirmation() {
            ObservedStatus::Refused { modified: false }
        } else {
            ObservedStatus::Closed
        }
    }

    pub(super) fn resolve(
        &mut self,
        status: ObservedStatus,
        at: Option<UnixMillis>,
        findings: &mut Findings,
    ) {
        self.status = status;
        let (Some(asked_at), Some(deadline), Some(at)) = (self.asked_at, self.deadline, at) else {
            return;
        };
        let (total, elapsed) = (deadline.millis_since(asked_at), at.millis_since(asked_at));
        let countdown = countdown_times(asked_at, self.timeout_seconds, deadline);
        let due_count = countdown.into_iter().flatten().filter(|time| *time <= at).count();
        if usize::from(self.progress_count) < due_count {
            let found = format!("{} was open for {} of {} seconds", self.token, elapsed / 1000, total / 1000);
            findings.push(rule::COUNTDOWN, String::new(), found);
        }
    }

    /// Applies a resolution that an event reports (decision 15).
    pub(super) fn apply_reported_resolution(
        &mut self,
        reported: &ReportedResolution<&str>,
        at: Option<UnixMillis>,
        findings: &mut Findings,
    ) {
        let pointer = || "/extensions/sayso".to_owned();
        let reported_status = match reported.decision {
            Some("accept") => ObservedStatus::Accepted { by_default: reported.resolved_by != Some("reply") },
            Some("reject") => ObservedStatus::Refused { modified: false },
            _ => self.refusal_status(),
        };
        let agree = |a: ObservedStatus, b: ObservedStatus| {
            matches!(a, ObservedStatus::Accepted { .. }) == matches!(b, ObservedStatus::Accepted { .. })
        };
        let is_in_time = matches!((at, self.deadline), (Some(at), Some(deadline)) if at < deadline);
        let accepts = matches!(reported_status, ObservedStatus::Accepted { .. });
        let is_modified = self.status == (ObservedStatus::Refused { modified: true });
        if self.reply == ObservedReply::InTime
            && reported.decision.is_some()
            && !is_modified
            && !agree(reported_status, self.status)
        {
            let (rule, found) = if accepts {
                (rule::NO_ACTION_AFTER_REJECT, "the person refused")
            } else {
                (rule::RESOLUTION_SHOWN, "the person accepted")
            };
            if findings.breaks(rule, pointer(), found.to_owned()) {
                return;
            }
        }
        if self.reply == ObservedReply::Ineffective && reported.resolved_by == Some("reply") && accepts {
            findings.push(rule::DEFAULT_APPLIED, pointer(), "the reply had no effect".to_owned());
        }
        match reported.resolved_by {
            Some("timeout" | "closure" | "unreachable") => {
                if reported.resolved_by == Some("timeout") && is_in_time {
                    findings.push(
                        rule::DEFAULT_NOT_EARLY,
                        pointer(),
                        "the deadline has not passed".to_owned(),
                    );
                }
                if self.is_confirmation() && !agree(reported_status, self.default_status()) {
                    let found = format!("found {}", reported.decision.unwrap_or("no decision"));
                    findings.push(rule::DEFAULT_APPLIED, pointer(), found);
                }
            }
            // A recorded reply takes precedence. If no reply is recorded, the report is trusted.
            Some("reply") => {
                if let ObservedStatus::Refused { modified: false } = self.status
                    && accepts
                    && is_in_time
                    && findings.breaks(
                        rule::NO_ACTION_AFTER_REJECT,
                        pointer(),
                        "the person refused".to_owned(),
                    )
                {
                    return;
                }
            }
            _ => {}
        }
        if let ObservedStatus::Acted { .. } = self.status {
            if reported_status != (ObservedStatus::Accepted { by_default: false }) {
                findings.push(
                    rule::NO_ACTION_AFTER_REJECT,
                    pointer(),
                    "the action was performed anyway".to_owned(),
                );
            }
            self.status = ObservedStatus::Closed;
        } else if matches!(self.status, ObservedStatus::Open | ObservedStatus::Presumed) {
            self.resolve(reported_status, at, findings);
        } else if reported.resolved_by == Some("reply") && !is_in_time {
            // The reply was in time but is reported after the deadline, when this checker has already
            // applied the default. The report replaces the default.
            self.status = reported_status;
        }
    }

    /// Resolves the question because the agent left `awaiting_input` without reporting a
    /// resolution.
    pub(super) fn resolve_without_report(
        &mut self,
        to: &AgentState,
        at: Option<UnixMillis>,
        findings: &mut Findings,
    ) {
        if self.is_confirmation() && *to == AgentState::CallingTool && self.reply == ObservedReply::NoReply {
            self.resolve(ObservedStatus::Presumed, at, findings);
        } else {
            self.resolve(self.refusal_status(), at, findings);
        }
    }

    /// Handles a reply to a question whose action was already performed. The action was permitted
    /// only if the person replied before the call, although the reply was recorded after it.
    pub(super) fn apply_reply_after_call(
        &mut self,
        acted_at: Option<UnixMillis>,
        accepts: bool,
        at: UnixMillis,
        findings: &mut Findings,
    ) {
        let (rule, found) = match (accepts, acted_at) {
            (true, Some(acted_at)) if at <= acted_at => {
                self.status = ObservedStatus::Closed;
                return;
            }
            (true, _) => (rule::ACTION_WAITS, "the action was performed before this reply"),
            (false, _) => (rule::NO_ACTION_AFTER_REJECT, "the action was performed anyway"),
        };
        self.status = ObservedStatus::Closed;
        findings.push(rule, "/decision".to_owned(), found.to_owned());
    }

    /// Returns whether the question was accepted, or is presumed to be, and covers this call.
    pub(super) fn allows(&self, attempted: &AttemptedCall<'_>) -> bool {
        matches!(self.status, ObservedStatus::Accepted { .. } | ObservedStatus::Presumed)
            && self.covers(attempted)
    }

    /// Returns whether the question covers this call (decision 6). Compares the tool, the call id
    /// and the digest if the question specifies them.
    pub(super) fn covers(&self, attempted: &AttemptedCall<'_>) -> bool {
        let ObservedSubject::Confirmation { tool, call_id: call, digest, .. } = &self.subject else {
            return false;
        };
        let expected =
            CallIdentity { tool: tool.as_deref(), call_id: call.as_deref(), digest: digest.as_deref() };
        expected.covers(&CallIdentity {
            tool: Some(attempted.tool),
            call_id: attempted.call_id,
            digest: attempted.digest,
        })
    }

    /// Returns the rule that forbids a call which needs no consent of its own. Such a call is
    /// forbidden while this question is open and names its tool. After this question was refused,
    /// it is forbidden if the question names its tool or was asked by the same agent.
    pub(super) fn forbids(&self, attempted: &AttemptedCall<'_>) -> Option<Rule> {
        let ObservedSubject::Confirmation { tool, .. } = &self.subject else { return None };
        let names_tool = tool.as_deref() == Some(attempted.tool);
        match self.status {
            ObservedStatus::Open if names_tool => Some(rule::ACTION_WAITS),
            ObservedStatus::Refused { modified: true }
                if names_tool || self.producer == attempted.producer =>
            {
                Some(rule::MODIFIED_ACTION)
            }
            ObservedStatus::Refused { .. } if names_tool || self.producer == attempted.producer => {
                Some(rule::NO_ACTION_AFTER_REJECT)
            }
            _ => None,
        }
    }
}
