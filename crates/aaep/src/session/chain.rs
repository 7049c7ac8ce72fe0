//! The states of each producer (§4.2.1): every `from_state` is where the last change went, or what an event implied.

use std::fmt::Write;
use std::sync::Arc;

use super::questions::Questions;
use crate::event::State;
use crate::rule::{self, Findings};
use seal::Timestamp;

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
    state: Option<State>,
    /// What the latest event since then implies (C-B7).
    implied: Option<State>,
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

    fn at(&mut self, place: usize) -> Option<&mut Chain> {
        match place.checked_sub(1) {
            None => self.first.as_mut(),
            Some(other) => self.others.get_mut(other),
        }
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    pub(super) fn state_of(&self, agent: &str) -> Option<&State> {
        let chain = self.all().find(|chain| &*chain.agent == agent)?;
        Some(chain.implied.as_ref().or(chain.state.as_ref()).unwrap_or(&State::Idle))
    }

    pub(super) fn declared_state_of(&self, agent: &str) -> &State {
        let chain = self.all().find(|chain| &*chain.agent == agent);
        chain.and_then(|chain| chain.state.as_ref()).unwrap_or(&State::Idle)
    }

    /// `agent.state.changed`; returns whether it left `awaiting_input`.
    pub(super) fn change(
        &mut self,
        at: usize,
        from: &State,
        to: &State,
        tool_open: bool,
        findings: &mut Findings,
    ) -> bool {
        let Some(chain) = self.at(at) else { return false };
        let pointer = || "/from_state".to_owned();
        let (before, implied) = (chain.state.as_ref(), chain.implied.as_ref());
        match before {
            None if *from != State::Idle => {
                findings.push(rule::FIRST_STATE, pointer(), format!("found {:?}", from.as_str()));
            }
            Some(state) if from != state && implied != Some(from) => {
                let mut found = format!("found {:?} after {:?}", from.as_str(), state.as_str());
                if let Some(implied) = implied {
                    let _ = write!(found, " and {:?}", implied.as_str());
                }
                findings.push(rule::STATE_CHAIN, pointer(), found);
            }
            _ => {}
        }
        let calling = *from == State::CallingTool || implied.or(before) == Some(&State::CallingTool);
        let after_tool = !matches!(to, State::CallingTool | State::AwaitingInput | State::HandingOff);
        if calling && after_tool && tool_open && !chain.completed {
            findings.push(
                rule::TOOL_BEFORE_STATE,
                "/to_state".to_owned(),
                "a tool is still running".to_owned(),
            );
        }
        let left = *to != State::AwaitingInput
            && [Some(from), before, implied].contains(&Some(&State::AwaitingInput));
        (chain.state, chain.implied) = (Some(to.clone()), None);
        left
    }

    /// `agent.tool.invoked`
    pub(super) fn invoke(&mut self, at: usize, questions: &Questions, findings: &mut Findings) {
        let Some(chain) = self.at(at) else { return };
        chain.expect(&State::CallingTool, questions, findings);
        chain.implied = Some(State::CallingTool);
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
        if chain.implied != Some(State::WritingOutput) {
            chain.expect(&State::WritingOutput, questions, findings);
        }
        chain.implied = Some(State::WritingOutput);
    }

    /// `agent.awaiting.*`
    pub(super) fn ask(&mut self, at: usize, findings: &mut Findings) {
        let Some(chain) = self.at(at) else { return };
        if chain.state != Some(State::AwaitingInput) {
            let state = chain.state.as_ref().unwrap_or(&State::Idle);
            findings.push(rule::AWAITING_SHOWN, String::new(), format!("the state is {state}"));
        }
        chain.implied = Some(State::AwaitingInput);
    }

    /// `agent.handoff.requested`
    pub(super) fn hand_off(&mut self, at: usize) {
        if let Some(chain) = self.at(at) {
            chain.implied = Some(State::HandingOff);
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
    fn expect(&self, state: &State, questions: &Questions, findings: &mut Findings) {
        let waiting = self.state == Some(State::AwaitingInput);
        if waiting && questions.any_resolved() {
            findings.push(rule::AWAITING_LEFT, String::new(), "the state is still awaiting_input".to_owned());
        } else if waiting && questions.any_open() {
            // Other work may go on (§6.1), but to show it would be to leave awaiting_input, and so to resolve.
        } else if self.state.as_ref() != Some(state) {
            let found = format!("the state is {}", self.state.as_ref().unwrap_or(&State::Idle));
            findings.push(rule::STATE_SHOWN, String::new(), format!("{state} is only implied: {found}"));
        }
    }
}
