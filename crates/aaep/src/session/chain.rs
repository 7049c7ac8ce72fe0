//! The states of each producer (§4.2.1): every `from_state` is where the last change went, or what an event implied.

use std::borrow::Cow;
use std::sync::Arc;

use super::questions::Questions;
use crate::rule::{self, Findings};
use seal::Timestamp;

const IDLE: &str = "idle";
const CALLING_TOOL: &str = "calling_tool";
const WRITING_OUTPUT: &str = "writing_output";
const AWAITING_INPUT: &str = "awaiting_input";
const HANDING_OFF: &str = "handing_off";
const ADVISED: [&str; 7] =
    [IDLE, "thinking", CALLING_TOOL, WRITING_OUTPUT, AWAITING_INPUT, "deciding", HANDING_OFF];

/// Progress that moves by less than this, in less than [`QUICK_MILLIS`], should have been merged (§4.2.2).
const SMALL_PERCENT: f64 = 5.0;
const QUICK_MILLIS: i64 = 1000;

/// One chain for each producer of the session (§A.9, pattern 1); nearly always one, so that a copy takes no memory of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Chains {
    first: Option<Chain>,
    others: Vec<Chain>,
}

#[derive(Clone, Debug)]
struct Chain {
    agent: Arc<str>,
    /// Where the last `agent.state.changed` went.
    state: Option<Cow<'static, str>>,
    /// What the latest event since then implies (C-B7).
    implied: Option<&'static str>,
    /// A tool has been completed since the last one was invoked.
    completed: bool,
    progress: Option<(f64, Timestamp)>,
}

impl Chains {
    /// The place of a producer's chain.
    pub(super) fn of(&mut self, agent: &str) -> usize {
        if let Some(known) = self.all().position(|chain| &*chain.agent == agent) {
            return known;
        }
        let chain =
            Chain { agent: agent.into(), state: None, implied: None, completed: false, progress: None };
        match &mut self.first {
            none @ None => *none = Some(chain),
            Some(_) => self.others.push(chain),
        }
        self.others.len()
    }

    fn all(&self) -> impl Iterator<Item = &Chain> {
        self.first.iter().chain(&self.others)
    }

    /// The chain at a place.
    fn at(&mut self, place: usize) -> Option<&mut Chain> {
        match place.checked_sub(1) {
            None => self.first.as_mut(),
            Some(other) => self.others.get_mut(other),
        }
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    pub(super) fn state_of(&self, agent: &str) -> Option<&str> {
        let chain = self.all().find(|chain| &*chain.agent == agent)?;
        Some(chain.implied.or(chain.state.as_deref()).unwrap_or(IDLE))
    }

    /// `agent.state.changed`; returns whether it left `awaiting_input`.
    pub(super) fn change(
        &mut self,
        at: usize,
        from: &str,
        to: &str,
        tool_open: bool,
        findings: &mut Findings,
    ) -> bool {
        let Some(chain) = self.at(at) else { return false };
        let pointer = || "/from_state".to_owned();
        let before = chain.state.as_deref();
        match before {
            None if from != IDLE => findings.push(rule::FIRST_STATE, pointer(), format!("found {from:?}")),
            Some(state) if from != state && chain.implied != Some(from) => {
                let found = match chain.implied {
                    Some(implied) => format!("found {from:?} after {state:?} and {implied:?}"),
                    None => format!("found {from:?} after {state:?}"),
                };
                findings.push(rule::STATE_CHAIN, pointer(), found);
            }
            _ => {}
        }
        let calling = from == CALLING_TOOL || chain.implied.or(before) == Some(CALLING_TOOL);
        let after_tool = !matches!(to, CALLING_TOOL | AWAITING_INPUT | HANDING_OFF);
        if calling && after_tool && tool_open && !chain.completed {
            findings.push(
                rule::TOOL_BEFORE_STATE,
                "/to_state".to_owned(),
                "a tool is still running".to_owned(),
            );
        }
        let left = to != AWAITING_INPUT
            && (from == AWAITING_INPUT
                || before == Some(AWAITING_INPUT)
                || chain.implied == Some(AWAITING_INPUT));
        chain.state = Some(match ADVISED.iter().find(|advised| **advised == to) {
            Some(advised) => Cow::Borrowed(advised),
            None => Cow::Owned(to.to_owned()),
        });
        chain.implied = None;
        left
    }

    /// `agent.tool.invoked`
    pub(super) fn invoke(&mut self, at: usize, questions: &Questions, findings: &mut Findings) {
        let Some(chain) = self.at(at) else { return };
        chain.expect(CALLING_TOOL, questions, findings);
        chain.implied = Some(CALLING_TOOL);
        chain.completed = false;
    }

    /// `agent.tool.completed`
    pub(super) fn completed(&mut self, at: usize) {
        if let Some(chain) = self.at(at) {
            chain.completed = true;
        }
    }

    /// `agent.output.streaming`
    pub(super) fn write(&mut self, at: usize, questions: &Questions, findings: &mut Findings) {
        let Some(chain) = self.at(at) else { return };
        if chain.implied != Some(WRITING_OUTPUT) {
            chain.expect(WRITING_OUTPUT, questions, findings);
        }
        chain.implied = Some(WRITING_OUTPUT);
    }

    /// `agent.awaiting.*`
    pub(super) fn ask(&mut self, at: usize, findings: &mut Findings) {
        let Some(chain) = self.at(at) else { return };
        if chain.state.as_deref() != Some(AWAITING_INPUT) {
            let state = chain.state.as_deref().unwrap_or(IDLE);
            findings.push(rule::AWAITING_SHOWN, String::new(), format!("the state is {state}"));
        }
        chain.implied = Some(AWAITING_INPUT);
    }

    /// `agent.handoff.requested`
    pub(super) fn hand_off(&mut self, at: usize) {
        if let Some(chain) = self.at(at) {
            chain.implied = Some(HANDING_OFF);
        }
    }

    /// `agent.progress.updated`
    pub(super) fn progress(
        &mut self,
        at: usize,
        percent: Option<f64>,
        now: Option<Timestamp>,
        findings: &mut Findings,
    ) {
        let Some(chain) = self.at(at) else { return };
        let Some((percent, now)) = percent.zip(now) else { return };
        if let Some((last, then)) = chain.progress
            && percent < 100.0
            && (0.0..SMALL_PERCENT).contains(&(percent - last))
            && (0..QUICK_MILLIS).contains(&now.unix_millis().millis_since(then.unix_millis()))
        {
            let found = format!("{percent} percent follows {last} within a second");
            findings.push(rule::PROGRESS_MERGED, "/progress/percent".to_owned(), found);
        }
        chain.progress = Some((percent, now));
    }
}

impl Chain {
    /// A state that should have been entered by an event of its own.
    fn expect(&self, state: &'static str, questions: &Questions, findings: &mut Findings) {
        let waiting = self.state.as_deref() == Some(AWAITING_INPUT);
        if waiting && questions.any_resolved() {
            findings.push(rule::AWAITING_LEFT, String::new(), "the state is still awaiting_input".to_owned());
        } else if waiting && questions.any_open() {
            // Other work may go on (§6.1), but to show it would be to leave awaiting_input, and so to resolve.
        } else if self.state.as_deref() != Some(state) {
            let found = format!("the state is {}", self.state.as_deref().unwrap_or(IDLE));
            findings.push(rule::STATE_SHOWN, String::new(), format!("{state} is only implied: {found}"));
        }
    }
}
