//! One session in the picture.

use std::fmt::Write;

use aaep::event::State;

use super::lanes::{Lane as Spans, Span, TRACKS};
use super::{HEADING, WIDTH};
use crate::picture::{escape, escape_lines, short, wrapped};
use crate::print::capitalize;
use crate::replay::story::{Broken, Lane, Moment, Turn, clock, name};
use crate::replay::trace;

#[derive(Default)]
pub(super) struct Sheet {
    rows: Vec<Row>,
    /// The rows in which the state changed, and to what.
    states: Vec<(usize, String)>,
    tools: Spans,
    outputs: Spans,
    questions: Spans,
    ended: Option<usize>,
}

struct Row {
    time: String,
    lane: Lane,
    key: String,
    text: String,
    /// All of it, for who points there.
    title: String,
    /// How many pieces of one output, or messages of progress, it stands for.
    steps: u64,
    broken: Vec<String>,
}

const TIME: i32 = 24;
const STATE: i32 = 124;
const STATE_WIDTH: i32 = 140;
const TOOLS: i32 = 288;
const OUTPUT: i32 = 598;
const QUESTIONS: i32 = 868;
/// Between two tracks.
const TRACK: i32 = 10;
const LINE: i32 = 17;
/// Around the rules of a step.
const FRAME: i32 = 8;
/// Letters in a line of a lane; of a rule, which may cross the lanes.
const LETTERS: [usize; 3] = [37, 31, 44];
const RULE_LETTERS: usize = 112;
/// The whole stands in the title.
const MOST_LINES: usize = 3;

impl Sheet {
    /// Takes a step into the row before, if it says the same thing once more: a long output is one row.
    pub(super) fn join(&mut self, moment: &Moment) -> bool {
        let Some(row) = self.rows.last_mut() else { return false };
        let goes_on = match moment.lane {
            Lane::Output => moment.turn != Turn::Begins,
            Lane::Progress => true,
            _ => false,
        };
        let joins = goes_on
            && row.lane == moment.lane
            && row.key == moment.key
            && row.broken.is_empty()
            && !moment.broken.iter().any(|broken| broken.is_error)
            && moment.resolves.is_none();
        if joins {
            row.steps += 1;
            row.text = format!("{} ({} pieces)", moment.text, row.steps);
            if moment.turn == Turn::Ends {
                self.outputs.end(&moment.key, self.rows.len());
            }
        }
        joins
    }

    pub(super) fn add(&mut self, moment: &Moment) {
        let row = self.rows.len();
        let lane = match moment.lane {
            Lane::Tool => Some(&mut self.tools),
            Lane::Output => Some(&mut self.outputs),
            Lane::Question => Some(&mut self.questions),
            _ => None,
        };
        if let Some(lane) = lane {
            match moment.turn {
                Turn::Begins => lane.begin(&moment.key, row),
                Turn::GoesOn if !lane.is_open(&moment.key) => lane.begin(&moment.key, row),
                Turn::Ends => {
                    if !lane.is_open(&moment.key) {
                        lane.begin(&moment.key, row);
                    }
                    lane.end(&moment.key, row + 1);
                }
                Turn::GoesOn | Turn::Happens => {}
            }
        }
        if moment.lane == Lane::State {
            self.states.push((row, name(&moment.key)));
        }
        if moment.lane == Lane::Session {
            self.states.push((row, moment.key.clone()));
            if moment.turn == Turn::Ends {
                self.ended = Some(row);
                for lane in [&mut self.tools, &mut self.outputs, &mut self.questions] {
                    lane.end_all(row);
                }
            }
        }
        if let Some(token) = &moment.resolves {
            self.questions.end(token, row + 1);
        }
        // The band says what the state is; beside it stands what became of a question.
        let (lane, text) = match (moment.lane, &moment.outcome) {
            (Lane::State | Lane::Session, Some(outcome)) => (Lane::Answer, outcome.clone()),
            (Lane::State | Lane::Session, None) => (moment.lane, String::new()),
            (lane, _) => (lane, moment.text.clone()),
        };
        self.rows.push(Row {
            time: clock(moment.at),
            lane,
            key: moment.key.clone(),
            title: trace::lines(moment),
            text,
            steps: 1,
            broken: rules(&moment.broken),
        });
    }

    /// Draws it from there on; says where it ends.
    pub(super) fn draw(&self, who: &str, top: i32, out: &mut String) -> i32 {
        let _ = writeln!(out, r#"<line class="line" x1="0" y1="{top}" x2="{WIDTH}" y2="{top}"/>"#);
        let _ = writeln!(
            out,
            r#"<text class="name" x="{TIME}" y="{}">{}</text>"#,
            top + 30,
            escape(&capitalize(who))
        );
        let lanes = [
            (TIME, "Time"),
            (STATE, "State"),
            (TOOLS, "Tools"),
            (OUTPUT, "Output and progress"),
            (QUESTIONS, "Questions and answers"),
        ];
        // What belongs to no session has no lanes.
        for (x, word) in lanes.into_iter().filter(|_| !self.states.is_empty() || self.has_lanes()) {
            let _ = writeln!(out, r#"<text class="head" x="{x}" y="{}">{word}</text>"#, top + 56);
        }
        let mut places = Vec::with_capacity(self.rows.len() + 1);
        let mut y = top + HEADING;
        for row in &self.rows {
            places.push(y);
            y += row.height();
        }
        places.push(y);
        self.bands(&places, out);
        for (lane, x) in [(&self.tools, TOOLS), (&self.outputs, OUTPUT), (&self.questions, QUESTIONS)] {
            for span in &lane.spans {
                bar(span, x, &places, out);
            }
        }
        for (row, y) in self.rows.iter().zip(&places) {
            row.draw(*y, out);
        }
        y + 16
    }

    fn has_lanes(&self) -> bool {
        self.rows.iter().any(|row| !matches!(row.lane, Lane::Listener | Lane::Other))
    }

    /// A box for each stretch in one state.
    fn bands(&self, places: &[i32], out: &mut String) {
        let ends = self.states.iter().skip(1).map(|(row, _)| *row).chain([self.rows.len()]);
        for ((row, state), end) in self.states.iter().zip(ends) {
            let (Some(from), Some(to)) = (places.get(*row), places.get(end)) else { continue };
            let class = if state == State::AwaitingInput.as_str() { "wait" } else { "band" };
            let _ = writeln!(
                out,
                r#"<rect class="{class}" x="{STATE}" y="{from}" width="{STATE_WIDTH}" height="{}" rx="3"/><text class="band-text" x="{}" y="{}">{}</text>"#,
                to - from - 2,
                STATE + 8,
                from + 15,
                escape(&short(state, 18))
            );
        }
    }
}

impl Row {
    fn words(&self) -> (i32, Vec<String>) {
        let (x, letters) = match self.lane {
            Lane::Output | Lane::Progress => (OUTPUT, LETTERS[1]),
            Lane::Question | Lane::Answer | Lane::Handoff => (QUESTIONS, LETTERS[2]),
            _ => (TOOLS, LETTERS[0]),
        };
        (x + TRACK * i32::try_from(TRACKS).unwrap_or(0) + 4, wrapped(&self.text, letters, MOST_LINES))
    }

    fn rules(&self) -> impl Iterator<Item = String> {
        self.broken.iter().flat_map(|text| wrapped(text, RULE_LETTERS, MOST_LINES))
    }

    fn height(&self) -> i32 {
        let lines = self.words().1.len().max(1) + self.rules().count();
        let frame = if self.broken.is_empty() { 0 } else { FRAME };
        LINE * i32::try_from(lines).unwrap_or(0) + 9 + frame
    }

    fn draw(&self, y: i32, out: &mut String) {
        let (x, lines) = self.words();
        let _ = write!(out, "<g><title>{}</title>", escape_lines(&self.title));
        let _ = write!(out, r#"<text class="soft" x="{TIME}" y="{}">{}</text>"#, y + 15, escape(&self.time));
        let mut at = y + 15;
        for line in &lines {
            let _ = write!(out, r#"<text x="{x}" y="{at}">{}</text>"#, escape(line));
            at += LINE;
        }
        let rules: Vec<_> = self.rules().collect();
        if !rules.is_empty() {
            at += FRAME / 2;
            let x = TOOLS + TRACK * i32::try_from(TRACKS).unwrap_or(0) + 4;
            // It covers what lasts behind it, so that it can be read.
            let _ = write!(
                out,
                r#"<rect class="paper flaw" x="{}" y="{}" width="{}" height="{}" rx="3"/>"#,
                x - 6,
                at - 12,
                WIDTH - x - 10,
                LINE * i32::try_from(rules.len()).unwrap_or(0) + 1
            );
            for line in rules {
                let _ = write!(out, r#"<text class="bad" x="{x}" y="{at}">{}</text>"#, escape(&line));
                at += LINE;
            }
        }
        out.push_str("</g>\n");
    }
}

fn bar(span: &Span, x: i32, places: &[i32], out: &mut String) {
    let end = span.to.unwrap_or(places.len() - 1);
    let (Some(from), Some(to)) = (places.get(span.from), places.get(end)) else { return };
    let class = if span.to.is_some() { "bar" } else { "bar open" };
    let x = x + TRACK * i32::try_from(span.track).unwrap_or(0);
    let height = (to - from - 4).max(4);
    let last = if span.to.is_some() { "" } else { ", and does not end here" };
    let _ = writeln!(
        out,
        r#"<rect class="{class}" x="{x}" y="{}" width="6" height="{height}" rx="2"><title>{} lasts from here{last}</title></rect>"#,
        from + 1,
        escape(&name(&span.key))
    );
}

/// Every broken rule in a text of its own. Warnings stand in the title only: there may be one at every step.
fn rules(broken: &[Broken]) -> Vec<String> {
    let errors = broken.iter().filter(|broken| broken.is_error);
    errors.map(|broken| format!("{}: {} {}", capitalize(broken.word()), broken.rule, broken.words)).collect()
}
