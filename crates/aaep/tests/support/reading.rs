//! A second reading of the protocol's rules on order, slow and plain, made from the digest and not from the core: what
//! a changed recording must still be for its change to be lawful.

mod questions;

use std::collections::{HashMap, HashSet};

pub(crate) use questions::questions_hold;

use super::line::{Kind, Line};

/// Everything about order (digest, sections 4 and 7).
pub(crate) fn order_holds(lines: &[Line]) -> bool {
    brackets_hold(lines)
        && times_and_numbers_hold(lines)
        && event_ids_differ(lines)
        && chains_hold(lines)
        && tools_pair(lines)
        && outputs_add_up(lines)
        && questions_hold(lines)
}

fn events(lines: &[Line]) -> impl Iterator<Item = &Line> {
    lines.iter().filter(|line| line.kind().is_event())
}

/// The events of each session in their order.
pub(crate) fn sessions(lines: &[Line]) -> Vec<Vec<&Line>> {
    let mut sessions: Vec<Vec<&Line>> = Vec::new();
    for line in events(lines) {
        match sessions.iter_mut().find(|session| session[0].session() == line.session()) {
            Some(session) => session.push(line),
            None => sessions.push(vec![line]),
        }
    }
    sessions
}

/// One start, then everything else, then one end (§4.1).
fn brackets_hold(lines: &[Line]) -> bool {
    sessions(lines).iter().all(|session| {
        let kinds: Vec<_> = session.iter().map(|line| line.kind()).collect();
        kinds.iter().filter(|kind| **kind == Kind::Started).count() == 1
            && kinds.iter().filter(|kind| kind.is_terminal()).count() == 1
            && kinds.first() == Some(&Kind::Started)
            && kinds.last().is_some_and(|kind| kind.is_terminal())
    })
}

/// Times never fall (§3.2.5); numbers go 0, 1, 2 on all events or on none (§3.4.1).
fn times_and_numbers_hold(lines: &[Line]) -> bool {
    sessions(lines).iter().all(|session| {
        let none = session.iter().all(|line| !line.has("sequence_number"));
        let counted = (0..).zip(session).all(|(at, line)| line.number("sequence_number") == Some(at));
        session.is_sorted_by_key(|line| line.millis()) && (none || counted)
    })
}

/// One event, one id, for each producer (§3.2.3).
fn event_ids_differ(lines: &[Line]) -> bool {
    let mut seen = HashSet::new();
    events(lines).all(|line| seen.insert((line.agent(), line.text("event_id"))))
}

/// `from_state` is idle at first, then the last `to_state` or what an event since then implied (§4.2.1, C-B7).
pub(crate) fn chains_hold(lines: &[Line]) -> bool {
    let mut states = States::default();
    events(lines).all(|line| {
        let before = states.pass(line);
        let from = line.text("from_state");
        line.kind() != Kind::State
            || match before.said {
                None => from == "idle",
                Some(said) => from == said || before.implied == Some(from),
            }
    })
}

/// Where a producer is: the last `to_state`, and what an event since then implied.
#[derive(Clone, Copy, Default)]
struct State<'l> {
    said: Option<&'l str>,
    implied: Option<&'l str>,
}

impl State<'_> {
    /// What the latest event says or implies.
    fn is_now(self, state: &str) -> bool {
        self.implied.or(self.said) == Some(state)
    }
}

/// The states of all producers of all sessions.
#[derive(Default)]
struct States<'l>(HashMap<(&'l str, &'l str), State<'l>>);

impl<'l> States<'l> {
    /// Takes an event; returns where its producer was before it.
    fn pass(&mut self, line: &'l Line) -> State<'l> {
        let state = self.0.entry((line.session(), line.agent())).or_default();
        let before = *state;
        match line.kind() {
            Kind::State => *state = State { said: Some(line.text("to_state")), implied: None },
            Kind::Invoked => state.implied = Some("calling_tool"),
            Kind::Chunk => state.implied = Some("writing_output"),
            Kind::Confirmation | Kind::Clarification => state.implied = Some("awaiting_input"),
            Kind::Handoff => state.implied = Some("handing_off"),
            _ => {}
        }
        before
    }
}

/// Every call has one completion of its name and id before the session ends (§4.5.2), and completion comes before the
/// state after the tool (§4.3.2). Where one of several calls has been completed, that state may be that call's.
pub(crate) fn tools_pair(lines: &[Line]) -> bool {
    sessions(lines).iter().all(|session| {
        let mut open: Vec<(&str, &str, &str)> = Vec::new();
        let mut used = HashSet::new();
        let mut completed = HashSet::new();
        let mut states = States::default();
        session.iter().all(|line| {
            let before = states.pass(line);
            let call = (line.agent(), line.text("tool"), line.text("tool_call_id"));
            match line.kind() {
                Kind::Invoked => {
                    open.push(call);
                    completed.remove(call.0);
                    call.2.is_empty() || used.insert(call.2)
                }
                Kind::Done => {
                    completed.insert(call.0);
                    let place = open.iter().position(|running| (running.1, running.2) == (call.1, call.2));
                    place.map(|place| open.remove(place)).is_some()
                }
                Kind::State => {
                    let (from, to) = (line.text("from_state"), line.text("to_state"));
                    let after_tool = (from == "calling_tool" || before.is_now("calling_tool"))
                        && !matches!(to, "calling_tool" | "awaiting_input" | "handing_off");
                    let running = open.iter().any(|running| running.0 == call.0);
                    !(after_tool && running && !completed.contains(call.0))
                }
                kind if kind.is_terminal() => open.is_empty(),
                _ => true,
            }
        })
    })
}

/// Positions are running sums of code points, and every output is completed once, last (§4.3.3, C-B11).
pub(crate) fn outputs_add_up(lines: &[Line]) -> bool {
    let mut outputs: HashMap<_, (usize, bool)> = HashMap::new();
    let adds_up = events(lines).filter(|line| line.kind() == Kind::Chunk).all(|line| {
        let nameless = if line.has("output_id") { "" } else { line.agent() };
        let (sent, complete) = outputs.entry((line.session(), line.text("output_id"), nameless)).or_default();
        let fits = !*complete && line.number("position") == i64::try_from(*sent).ok();
        *sent += line.text("chunk").chars().count();
        *complete = line.flag("complete") == Some(true);
        fits
    });
    adds_up && outputs.values().all(|(_, complete)| *complete)
}
