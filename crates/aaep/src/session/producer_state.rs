//! The states of each producer (§4.2.1). Each `from_state` must be the previous `to_state`, or a
//! state that an event implied.

use std::fmt::Write;
use std::sync::Arc;

use super::questions::ObservedQuestions;
use crate::event::AgentState;
use crate::rule::{self, Findings};
use seal::Timestamp;

/// Progress should be merged if it advances by less than this within
/// [`MIN_PROGRESS_INTERVAL_MILLIS`] (§4.2.2).
const MIN_PROGRESS_PERCENT: f64 = 5.0;
const MIN_PROGRESS_INTERVAL_MILLIS: i64 = 1000;

/// The state of each producer of the session (§A.9, pattern 1). Most sessions have only one
/// producer, so the first producer is stored inline and a clone needs no allocation.
#[derive(Clone, Debug, Default)]
pub(super) struct ProducerStates {
    first: Option<ProducerState>,
    others: Vec<ProducerState>,
}

#[derive(Clone, Debug)]
struct ProducerState {
    agent: Arc<str>,
    /// The `to_state` of the last `agent.state.changed`.
    state: Option<AgentState>,
    /// The state that the latest event after that change implies (C-B7).
    implied: Option<AgentState>,
    /// Whether a tool was completed since the last invocation.
    has_completed_tool: bool,
    progress: Option<(f64, Timestamp)>,
}

impl ProducerStates {
    /// Returns the index of a producer's state. Adds the producer if it is new.
    pub(super) fn index_or_insert(&mut self, agent: &str) -> usize {
        if let Some(index) = self.all().position(|producer| &*producer.agent == agent) {
            return index;
        }
        let producer = ProducerState {
            agent: agent.into(),
            state: None,
            implied: None,
            has_completed_tool: false,
            progress: None,
        };
        match &mut self.first {
            none @ None => *none = Some(producer),
            Some(_) => self.others.push(producer),
        }
        self.others.len()
    }

    /// Returns the id of the producer with this index.
    pub(super) fn agent_id(&self, index: usize) -> &str {
        self.all().nth(index).map_or("", |producer| &producer.agent)
    }

    fn all(&self) -> impl Iterator<Item = &ProducerState> {
        self.first.iter().chain(&self.others)
    }

    fn get_mut(&mut self, index: usize) -> Option<&mut ProducerState> {
        match index.checked_sub(1) {
            None => self.first.as_mut(),
            Some(other) => self.others.get_mut(other),
        }
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    pub(super) fn state_of(&self, agent: &str) -> Option<&AgentState> {
        let producer = self.all().find(|producer| &*producer.agent == agent)?;
        Some(producer.implied.as_ref().or(producer.state.as_ref()).unwrap_or(&AgentState::Idle))
    }

    pub(super) fn declared_state_of(&self, agent: &str) -> &AgentState {
        let producer = self.all().find(|producer| &*producer.agent == agent);
        producer.and_then(|producer| producer.state.as_ref()).unwrap_or(&AgentState::Idle)
    }

    /// Handles `agent.state.changed`. Returns whether the producer left `awaiting_input`.
    pub(super) fn change_state(
        &mut self,
        index: usize,
        from: &AgentState,
        to: &AgentState,
        has_open_tool: bool,
        findings: &mut Findings,
    ) -> bool {
        let Some(producer) = self.get_mut(index) else { return false };
        let pointer = || "/from_state".to_owned();
        let (before, implied) = (producer.state.as_ref(), producer.implied.as_ref());
        match before {
            None if *from != AgentState::Idle => {
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
        let was_calling_tool =
            *from == AgentState::CallingTool || implied.or(before) == Some(&AgentState::CallingTool);
        let is_state_after_tool =
            !matches!(to, AgentState::CallingTool | AgentState::AwaitingInput | AgentState::HandingOff);
        if was_calling_tool && is_state_after_tool && has_open_tool && !producer.has_completed_tool {
            findings.push(
                rule::TOOL_COMPLETED_BEFORE_STATE,
                "/to_state".to_owned(),
                "a tool is still running".to_owned(),
            );
        }
        let left_awaiting_input = *to != AgentState::AwaitingInput
            && [Some(from), before, implied].contains(&Some(&AgentState::AwaitingInput));
        (producer.state, producer.implied) = (Some(to.clone()), None);
        left_awaiting_input
    }

    /// Handles `agent.tool.invoked`.
    pub(super) fn invoke(&mut self, index: usize, questions: &ObservedQuestions, findings: &mut Findings) {
        let Some(producer) = self.get_mut(index) else { return };
        producer.check_expected_state(&AgentState::CallingTool, questions, findings);
        producer.implied = Some(AgentState::CallingTool);
        producer.has_completed_tool = false;
    }

    /// Handles `agent.tool.completed`.
    pub(super) fn complete_tool(&mut self, index: usize) {
        if let Some(producer) = self.get_mut(index) {
            producer.has_completed_tool = true;
        }
    }

    /// Handles `agent.output.streaming`. While a tool runs, the state may stay `calling_tool`, because the
    /// producer must not leave it before the tool is completed (§4.3.2).
    pub(super) fn write_output(
        &mut self,
        index: usize,
        has_open_tool: bool,
        questions: &ObservedQuestions,
        findings: &mut Findings,
    ) {
        let Some(producer) = self.get_mut(index) else { return };
        let is_tool_running = has_open_tool && producer.state == Some(AgentState::CallingTool);
        if !is_tool_running && producer.implied != Some(AgentState::WritingOutput) {
            producer.check_expected_state(&AgentState::WritingOutput, questions, findings);
        }
        producer.implied = Some(AgentState::WritingOutput);
    }

    /// Handles `agent.awaiting.*`.
    pub(super) fn ask(&mut self, index: usize, findings: &mut Findings) {
        let Some(producer) = self.get_mut(index) else { return };
        if producer.state != Some(AgentState::AwaitingInput) {
            let state = producer.state.as_ref().unwrap_or(&AgentState::Idle);
            findings.push(rule::AWAITING_INPUT_SHOWN, String::new(), format!("the state is {state}"));
        }
        producer.implied = Some(AgentState::AwaitingInput);
    }

    /// Handles `agent.handoff.requested`.
    pub(super) fn hand_off(&mut self, index: usize) {
        if let Some(producer) = self.get_mut(index) {
            producer.implied = Some(AgentState::HandingOff);
        }
    }

    /// Handles `agent.progress.updated`.
    pub(super) fn update_progress(
        &mut self,
        index: usize,
        percent: Option<f64>,
        now: Option<Timestamp>,
        findings: &mut Findings,
    ) {
        let Some(producer) = self.get_mut(index) else { return };
        let Some((percent, now)) = percent.zip(now) else { return };
        if let Some((last, last_time)) = producer.progress
            && percent < 100.0
            && (0.0..MIN_PROGRESS_PERCENT).contains(&(percent - last))
            && (0..MIN_PROGRESS_INTERVAL_MILLIS)
                .contains(&now.unix_millis().millis_since(last_time.unix_millis()))
        {
            let found = format!("{percent} percent follows {last} within a second");
            findings.push(rule::PROGRESS_MERGED, "/progress/percent".to_owned(), found);
        }
        producer.progress = Some((percent, now));
    }
}

impl ProducerState {
    /// Reports a state that should have been announced by its own event.
    fn check_expected_state(
        &self,
        state: &AgentState,
        questions: &ObservedQuestions,
        findings: &mut Findings,
    ) {
        let is_awaiting_input = self.state == Some(AgentState::AwaitingInput);
        if is_awaiting_input && questions.any_open() {
            // Other work may continue (§6.1), including work that another answer permitted. Announcing it would leave
            // awaiting_input, which would resolve the open question.
        } else if is_awaiting_input && questions.any_resolved() && findings.checks(rule::AWAITING_INPUT_LEFT)
        {
            findings.push(
                rule::AWAITING_INPUT_LEFT,
                String::new(),
                "the state is still awaiting_input".to_owned(),
            );
        } else if self.state.as_ref() != Some(state) {
            let found = format!("the state is {}", self.state.as_ref().unwrap_or(&AgentState::Idle));
            findings.push(rule::STATE_SHOWN, String::new(), format!("{state} is only implied: {found}"));
        }
    }
}
