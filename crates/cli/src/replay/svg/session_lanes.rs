//! The lanes of one session: for each producer its states, tool calls, outputs, questions and hand-offs, with their times.

use crate::replay::timeline::{LaneChange, SessionLabel, StepResult, TimelineEntry, TimelineLane};
use crate::svg_text::truncate;
use listen::sanitize;

pub(super) struct SessionLanes {
    pub(super) label: SessionLabel,
    /// The index of the parent session in the same group.
    pub(super) parent: Option<usize>,
    /// The parent's name, even if it is not in the recording.
    pub(super) parent_label: Option<SessionLabel>,
    pub(super) producers: Vec<ProducerLanes>,
    pub(super) started_ms: i64,
    /// The texts of the start and of the end.
    pub(super) start_text: Option<String>,
    pub(super) end: Option<LaneEnd>,
}

pub(super) struct LaneEnd {
    pub(super) at_ms: i64,
    pub(super) result: Option<StepResult>,
    pub(super) text: String,
}

pub(super) struct ProducerLanes {
    pub(super) name: String,
    pub(super) first_ms: i64,
    /// When each state began.
    pub(super) states: Vec<(i64, String)>,
    pub(super) items: Vec<LaneItem>,
}

/// A tool call, output, question or hand-off.
#[derive(Debug, PartialEq)]
pub(super) struct LaneItem {
    pub(super) lane: TimelineLane,
    key: String,
    pub(super) label: String,
    pub(super) start_ms: i64,
    pub(super) end_ms: Option<i64>,
    /// Whether the recording says that it ended. Otherwise `end_ms` is the end of the session.
    pub(super) has_ended: bool,
    pub(super) result: Option<StepResult>,
    pub(super) outcome: Option<String>,
}

/// Number of characters of an output that are shown as the label of its bar.
const OUTPUT_LABEL_CHARS: usize = 32;

impl SessionLanes {
    pub(super) fn new(entry: &TimelineEntry, label: SessionLabel, parent: Option<usize>, at_ms: i64) -> Self {
        Self {
            label,
            parent,
            parent_label: entry.parent.clone(),
            producers: Vec::new(),
            started_ms: at_ms,
            start_text: None,
            end: None,
        }
    }

    pub(super) fn add(&mut self, entry: &TimelineEntry, at_ms: i64) {
        if let Some(producer) = entry.agent.as_ref().and_then(|agent| self.producer(agent, at_ms)) {
            match entry.lane {
                TimelineLane::State => producer.enter_state(&entry.key, &entry.label, at_ms),
                TimelineLane::Tool
                | TimelineLane::Output
                | TimelineLane::Question
                | TimelineLane::Handoff => {
                    producer.add_item(entry, at_ms);
                }
                _ => {}
            }
        }
        if let Some(resolution) = &entry.resolution {
            let items = self.producers.iter_mut().flat_map(|producer| &mut producer.items);
            let mut open = items
                .filter(|item| item.end_ms.is_none() && item.key == resolution.key && item.lane.is_asked());
            if let Some(item) = open.next() {
                item.finish(at_ms, Some(resolution.result), Some(resolution.outcome.clone()));
            }
        }
        if entry.lane == TimelineLane::Session {
            match entry.change {
                LaneChange::Begins if self.start_text.is_none() => self.start_text = Some(entry.text.clone()),
                LaneChange::Ends if self.end.is_none() => self.finish(entry, at_ms),
                _ => {}
            }
        }
    }

    fn finish(&mut self, entry: &TimelineEntry, at_ms: i64) {
        self.end = Some(LaneEnd { at_ms, result: entry.result, text: entry.text.clone() });
        for item in self.producers.iter_mut().flat_map(|producer| &mut producer.items) {
            item.end_ms.get_or_insert(at_ms);
        }
    }

    fn producer(&mut self, name: &str, at_ms: i64) -> Option<&mut ProducerLanes> {
        let index = self.producers.iter().position(|producer| producer.name == name).unwrap_or_else(|| {
            let lanes = ProducerLanes {
                name: name.to_owned(),
                first_ms: at_ms,
                states: Vec::new(),
                items: Vec::new(),
            };
            self.producers.push(lanes);
            self.producers.len() - 1
        });
        self.producers.get_mut(index)
    }
}

impl ProducerLanes {
    /// Ends the producer's previous state. The states of other producers go on.
    fn enter_state(&mut self, from: &str, to: &str, at_ms: i64) {
        if self.states.is_empty() && self.first_ms < at_ms {
            self.states.push((self.first_ms, truncate(from, 60)));
        }
        self.states.push((at_ms, to.to_owned()));
    }

    fn add_item(&mut self, entry: &TimelineEntry, at_ms: i64) {
        let continues = matches!(entry.change, LaneChange::Continues | LaneChange::Ends);
        let is_open =
            |item: &LaneItem| item.lane == entry.lane && item.key == entry.key && item.end_ms.is_none();
        if !continues || !self.items.iter().any(is_open) {
            self.items.push(LaneItem {
                lane: entry.lane,
                key: entry.key.clone(),
                label: entry.label.clone(),
                start_ms: at_ms,
                end_ms: None,
                has_ended: false,
                result: None,
                outcome: None,
            });
        }
        let current =
            if continues { self.items.iter_mut().find(|item| is_open(item)) } else { self.items.last_mut() };
        let Some(item) = current else { return };
        if let (Some(chunk), true) = (&entry.chunk, item.start_ms == at_ms) {
            let words = sanitize(&chunk.chars().take(4 * OUTPUT_LABEL_CHARS).collect::<String>(), true);
            if !words.is_empty() {
                item.label = format!("“{}”", truncate(&words, OUTPUT_LABEL_CHARS));
            }
        }
        if matches!(entry.change, LaneChange::Ends | LaneChange::Instant) {
            let outcome = match (entry.lane, entry.result) {
                (TimelineLane::Tool, Some(StepResult::Succeeded)) => Some("succeeded"),
                (TimelineLane::Tool, Some(StepResult::Failed)) => Some("failed"),
                (TimelineLane::Tool, Some(StepResult::TimedOut)) => Some("timed out"),
                _ => None,
            };
            item.finish(at_ms, entry.result, outcome.map(str::to_owned));
        }
    }
}

impl LaneItem {
    fn finish(&mut self, at_ms: i64, result: Option<StepResult>, outcome: Option<String>) {
        (self.end_ms, self.has_ended, self.result, self.outcome) = (Some(at_ms), true, result, outcome);
    }

    /// Returns the name with the outcome, so that the result can be read without the symbol that `draw_mark` draws.
    pub(super) fn full_label(&self) -> String {
        match &self.outcome {
            Some(outcome) => format!("{}: {outcome}", self.label),
            None => self.label.clone(),
        }
    }
}

impl TimelineLane {
    /// Returns whether somebody has to answer.
    fn is_asked(self) -> bool {
        matches!(self, Self::Question | Self::Handoff)
    }
}
