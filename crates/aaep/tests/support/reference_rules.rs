//! A second implementation of the protocol's ordering rules. It is slow and simple, and follows the specification
//! instead of the crate's code. It predicts whether a changed recording is still valid.

mod reference_questions;

use std::collections::{HashMap, HashSet};

pub(crate) use reference_questions::follows_question_rules;

use super::recording_line::{LineKind, RecordingLine};

/// Returns whether all ordering rules hold (chapters 4 and 6).
pub(crate) fn order_holds(lines: &[RecordingLine]) -> bool {
    session_bounds_hold(lines)
        && times_and_numbers_hold(lines)
        && event_ids_are_unique(lines)
        && state_chains_hold(lines)
        && tool_calls_are_paired(lines)
        && output_positions_hold(lines)
        && follows_question_rules(lines)
}

fn events(lines: &[RecordingLine]) -> impl Iterator<Item = &RecordingLine> {
    lines.iter().filter(|line| line.kind().is_event())
}

/// Returns the events of each session, in order.
pub(crate) fn sessions(lines: &[RecordingLine]) -> Vec<Vec<&RecordingLine>> {
    let mut sessions: Vec<Vec<&RecordingLine>> = Vec::new();
    for line in events(lines) {
        match sessions.iter_mut().find(|session| session[0].session() == line.session()) {
            Some(session) => session.push(line),
            None => sessions.push(vec![line]),
        }
    }
    sessions
}

/// Returns whether each session starts once, at its first event, and ends once, at its last event (§4.1).
fn session_bounds_hold(lines: &[RecordingLine]) -> bool {
    sessions(lines).iter().all(|session| {
        let kinds: Vec<_> = session.iter().map(|line| line.kind()).collect();
        kinds.iter().filter(|kind| **kind == LineKind::Started).count() == 1
            && kinds.iter().filter(|kind| kind.is_terminal()).count() == 1
            && kinds.first() == Some(&LineKind::Started)
            && kinds.last().is_some_and(|kind| kind.is_terminal())
    })
}

/// Returns whether timestamps never decrease (§3.2.5), and whether either all events of a session have the
/// sequence numbers 0, 1, 2, ... or none has a number (§3.4.1).
fn times_and_numbers_hold(lines: &[RecordingLine]) -> bool {
    sessions(lines).iter().all(|session| {
        let is_unnumbered = session.iter().all(|line| !line.has("sequence_number"));
        let is_consecutive = (0..).zip(session).all(|(at, line)| line.number("sequence_number") == Some(at));
        session.is_sorted_by_key(|line| line.millis()) && (is_unnumbered || is_consecutive)
    })
}

/// Returns whether event ids are unique per producer (§3.2.3).
fn event_ids_are_unique(lines: &[RecordingLine]) -> bool {
    let mut seen = HashSet::new();
    events(lines).all(|line| seen.insert((line.agent(), line.text("event_id"))))
}

/// Returns whether `from_state` is always right: `idle` at first, then the last `to_state` or the state that a
/// later event implied (§4.2.1, C-B7).
pub(crate) fn state_chains_hold(lines: &[RecordingLine]) -> bool {
    let mut states = ReferenceStates::default();
    events(lines).all(|line| {
        let before = states.apply(line);
        let from = line.text("from_state");
        line.kind() != LineKind::State
            || match before.reported {
                None => from == "idle",
                Some(reported) => from == reported || before.implied == Some(from),
            }
    })
}

/// The state of a producer: the last `to_state`, and the state that a later event implied.
#[derive(Clone, Copy, Default)]
struct ReferenceState<'l> {
    reported: Option<&'l str>,
    implied: Option<&'l str>,
}

impl ReferenceState<'_> {
    /// Returns whether the latest event reports or implies this state.
    fn is_now(self, state: &str) -> bool {
        self.implied.or(self.reported) == Some(state)
    }
}

/// The states of all producers in all sessions.
#[derive(Default)]
struct ReferenceStates<'l>(HashMap<(&'l str, &'l str), ReferenceState<'l>>);

impl<'l> ReferenceStates<'l> {
    /// Applies an event. Returns the state of its producer before the event.
    fn apply(&mut self, line: &'l RecordingLine) -> ReferenceState<'l> {
        let state = self.0.entry((line.session(), line.agent())).or_default();
        let before = *state;
        match line.kind() {
            LineKind::State => {
                *state = ReferenceState { reported: Some(line.text("to_state")), implied: None }
            }
            LineKind::ToolInvoked => state.implied = Some("calling_tool"),
            LineKind::Chunk => state.implied = Some("writing_output"),
            LineKind::Confirmation | LineKind::Clarification => state.implied = Some("awaiting_input"),
            LineKind::Handoff => state.implied = Some("handing_off"),
            _ => {}
        }
        before
    }
}

/// Returns whether every call has one completion with its name and id before the session ends (§4.5.2). The
/// completion must precede the state change after the tool (§4.3.2). If one of several calls is complete, the
/// state change may refer to that call.
pub(crate) fn tool_calls_are_paired(lines: &[RecordingLine]) -> bool {
    sessions(lines).iter().all(|session| {
        let mut open: Vec<(&str, &str, &str)> = Vec::new();
        let mut used_call_ids = HashSet::new();
        let mut agents_with_completed_call = HashSet::new();
        let mut states = ReferenceStates::default();
        session.iter().all(|line| {
            let before = states.apply(line);
            let call = (line.agent(), line.text("tool"), line.text("tool_call_id"));
            match line.kind() {
                LineKind::ToolInvoked => {
                    open.push(call);
                    agents_with_completed_call.remove(call.0);
                    call.2.is_empty() || used_call_ids.insert(call.2)
                }
                LineKind::ToolCompleted => {
                    agents_with_completed_call.insert(call.0);
                    let index = open.iter().position(|running| (running.1, running.2) == (call.1, call.2));
                    index.map(|index| open.remove(index)).is_some()
                }
                LineKind::State => {
                    let (from, to) = (line.text("from_state"), line.text("to_state"));
                    let leaves_calling_tool = (from == "calling_tool" || before.is_now("calling_tool"))
                        && !matches!(to, "calling_tool" | "awaiting_input" | "handing_off");
                    let has_running_call = open.iter().any(|running| running.0 == call.0);
                    !(leaves_calling_tool && has_running_call && !agents_with_completed_call.contains(call.0))
                }
                kind if kind.is_terminal() => open.is_empty(),
                _ => true,
            }
        })
    })
}

/// Returns whether positions are running sums of code points, and only the last chunk of each output is complete
/// (§4.3.3, C-B11).
pub(crate) fn output_positions_hold(lines: &[RecordingLine]) -> bool {
    let mut outputs: HashMap<_, (usize, bool)> = HashMap::new();
    let all_fit = events(lines).filter(|line| line.kind() == LineKind::Chunk).all(|line| {
        let agent_if_unnamed = if line.has("output_id") { "" } else { line.agent() };
        let (sent, complete) =
            outputs.entry((line.session(), line.text("output_id"), agent_if_unnamed)).or_default();
        let fits = !*complete && line.number("position") == i64::try_from(*sent).ok();
        *sent += line.text("chunk").chars().count();
        *complete = line.flag("complete") == Some(true);
        fits
    });
    all_fit && outputs.values().all(|(_, complete)| *complete)
}
