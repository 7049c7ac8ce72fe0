//! The diagram of one session.

use std::fmt::Write;

use aaep::event::AgentState;

use super::lane_spans::{LaneSpan, LaneSpans, MAX_TRACKS};
use super::{HEADING_HEIGHT, WIDTH};
use crate::output::capitalize;
use crate::replay::timeline::{
    LaneChange, RuleViolation, TimelineEntry, TimelineLane, format_offset, short_name,
};
use crate::replay::trace;
use crate::svg_text::{escape_xml, escape_xml_lines, truncate, wrap};

#[derive(Default)]
pub(super) struct SessionDiagram {
    rows: Vec<DiagramRow>,
    /// The rows in which the state changed, and the new state.
    states: Vec<(usize, String)>,
    tools: LaneSpans,
    outputs: LaneSpans,
    questions: LaneSpans,
}

struct DiagramRow {
    time: String,
    lane: TimelineLane,
    key: String,
    text: String,
    /// The full text, shown as a tooltip.
    title: String,
    /// How many output chunks or progress events were merged into the row.
    merged_entries: u64,
    violations: Vec<String>,
}

const TIME_X: i32 = 24;
const STATE_X: i32 = 124;
const STATE_WIDTH: i32 = 140;
const TOOLS_X: i32 = 288;
const OUTPUT_X: i32 = 598;
const QUESTIONS_X: i32 = 868;
/// Distance between two tracks.
const TRACK_SPACING: i32 = 10;
const LINE_HEIGHT: i32 = 17;
/// Padding around the violations of a row.
const FRAME_PADDING: i32 = 8;
/// Characters per line in the lanes for tools, output and questions.
const LANE_TEXT_CHARS: [usize; 3] = [37, 31, 44];
const VIOLATION_TEXT_CHARS: usize = 112;
/// Maximum number of lines in a row. The tooltip contains the full text.
const MAX_LINES_PER_ROW: usize = 3;

impl SessionDiagram {
    /// Merges an entry into the last row if the entry continues that row, so that a long output is one row. Returns whether
    /// the entry was merged.
    pub(super) fn merge_into_last(&mut self, entry: &TimelineEntry) -> bool {
        let Some(row) = self.rows.last_mut() else { return false };
        let continues = match entry.lane {
            TimelineLane::Output => entry.change != LaneChange::Begins,
            TimelineLane::Progress => true,
            _ => false,
        };
        let is_merged = continues
            && row.lane == entry.lane
            && row.key == entry.key
            && row.violations.is_empty()
            && !entry.violations.iter().any(|violation| violation.is_error)
            && entry.resolved_question.is_none();
        if is_merged {
            row.merged_entries += 1;
            row.text = format!("{} ({} events)", entry.text, row.merged_entries);
            if entry.change == LaneChange::Ends {
                self.outputs.end(&entry.key, self.rows.len());
            }
        }
        is_merged
    }

    pub(super) fn add(&mut self, entry: &TimelineEntry) {
        let row = self.rows.len();
        let lane = match entry.lane {
            TimelineLane::Tool => Some(&mut self.tools),
            TimelineLane::Output => Some(&mut self.outputs),
            TimelineLane::Question => Some(&mut self.questions),
            _ => None,
        };
        if let Some(lane) = lane {
            match entry.change {
                LaneChange::Begins => lane.begin(&entry.key, row),
                LaneChange::Continues if !lane.is_open(&entry.key) => lane.begin(&entry.key, row),
                LaneChange::Ends => {
                    if !lane.is_open(&entry.key) {
                        lane.begin(&entry.key, row);
                    }
                    lane.end(&entry.key, row + 1);
                }
                LaneChange::Continues | LaneChange::Instant => {}
            }
        }
        if entry.lane == TimelineLane::State {
            self.states.push((row, short_name(&entry.key)));
        }
        if entry.lane == TimelineLane::Session {
            self.states.push((row, entry.key.clone()));
            if entry.change == LaneChange::Ends {
                for lane in [&mut self.tools, &mut self.outputs, &mut self.questions] {
                    lane.end_all(row);
                }
            }
        }
        if let Some(token) = &entry.resolved_question {
            self.questions.end(token, row + 1);
        }
        // The band shows the state. The outcome of a question is shown in the lane for questions.
        let (lane, text) = match (entry.lane, &entry.outcome) {
            (TimelineLane::State | TimelineLane::Session, Some(outcome)) => {
                (TimelineLane::Answer, outcome.clone())
            }
            (TimelineLane::State | TimelineLane::Session, None) => (entry.lane, String::new()),
            (lane, _) => (lane, entry.text.clone()),
        };
        self.rows.push(DiagramRow {
            time: format_offset(entry.offset_ms),
            lane,
            key: entry.key.clone(),
            title: trace::format_entry(entry),
            text,
            merged_entries: 1,
            violations: error_texts(&entry.violations),
        });
    }

    /// Draws the session from `top` on. Returns the y coordinate of its end.
    pub(super) fn draw(&self, name: &str, top: i32, out: &mut String) -> i32 {
        let _ = writeln!(out, r#"<line class="line" x1="0" y1="{top}" x2="{WIDTH}" y2="{top}"/>"#);
        let _ = writeln!(
            out,
            r#"<text class="name" x="{TIME_X}" y="{}">{}</text>"#,
            top + 30,
            escape_xml(&capitalize(name))
        );
        let lanes = [
            (TIME_X, "Time"),
            (STATE_X, "State"),
            (TOOLS_X, "Tools"),
            (OUTPUT_X, "Output and progress"),
            (QUESTIONS_X, "Questions and answers"),
        ];
        // The diagram of entries without a session has no lanes.
        for (x, heading) in lanes.into_iter().filter(|_| !self.states.is_empty() || self.has_lanes()) {
            let _ = writeln!(out, r#"<text class="head" x="{x}" y="{}">{heading}</text>"#, top + 56);
        }
        let mut row_tops = Vec::with_capacity(self.rows.len() + 1);
        let mut y = top + HEADING_HEIGHT;
        for row in &self.rows {
            row_tops.push(y);
            y += row.height();
        }
        row_tops.push(y);
        self.draw_state_bands(&row_tops, out);
        for (lane, x) in [(&self.tools, TOOLS_X), (&self.outputs, OUTPUT_X), (&self.questions, QUESTIONS_X)] {
            for span in &lane.spans {
                draw_span(span, x, &row_tops, out);
            }
        }
        for (row, y) in self.rows.iter().zip(&row_tops) {
            row.draw(*y, out);
        }
        y + 16
    }

    fn has_lanes(&self) -> bool {
        self.rows.iter().any(|row| !matches!(row.lane, TimelineLane::Listener | TimelineLane::Other))
    }

    /// Draws one box per period in a state.
    fn draw_state_bands(&self, row_tops: &[i32], out: &mut String) {
        let ends = self.states.iter().skip(1).map(|(row, _)| *row).chain([self.rows.len()]);
        for ((row, state), end) in self.states.iter().zip(ends) {
            let (Some(top), Some(bottom)) = (row_tops.get(*row), row_tops.get(end)) else { continue };
            let class = if state == AgentState::AwaitingInput.as_str() { "wait" } else { "band" };
            let _ = writeln!(
                out,
                r#"<rect class="{class}" x="{STATE_X}" y="{top}" width="{STATE_WIDTH}" height="{}" rx="3"/><text class="band-text" x="{}" y="{}">{}</text>"#,
                bottom - top - 2,
                STATE_X + 8,
                top + 15,
                escape_xml(&truncate(state, 18))
            );
        }
    }
}

impl DiagramRow {
    fn wrapped_text(&self) -> (i32, Vec<String>) {
        let (x, max_chars) = match self.lane {
            TimelineLane::Output | TimelineLane::Progress => (OUTPUT_X, LANE_TEXT_CHARS[1]),
            TimelineLane::Question | TimelineLane::Answer | TimelineLane::Handoff => {
                (QUESTIONS_X, LANE_TEXT_CHARS[2])
            }
            _ => (TOOLS_X, LANE_TEXT_CHARS[0]),
        };
        (
            x + TRACK_SPACING * i32::try_from(MAX_TRACKS).unwrap_or(0) + 4,
            wrap(&self.text, max_chars, MAX_LINES_PER_ROW),
        )
    }

    fn wrapped_violations(&self) -> impl Iterator<Item = String> {
        self.violations.iter().flat_map(|text| wrap(text, VIOLATION_TEXT_CHARS, MAX_LINES_PER_ROW))
    }

    fn height(&self) -> i32 {
        let lines = self.wrapped_text().1.len().max(1) + self.wrapped_violations().count();
        let frame = if self.violations.is_empty() { 0 } else { FRAME_PADDING };
        LINE_HEIGHT * i32::try_from(lines).unwrap_or(0) + 9 + frame
    }

    fn draw(&self, y: i32, out: &mut String) {
        let (x, lines) = self.wrapped_text();
        let _ = write!(out, "<g><title>{}</title>", escape_xml_lines(&self.title));
        let _ = write!(
            out,
            r#"<text class="soft" x="{TIME_X}" y="{}">{}</text>"#,
            y + 15,
            escape_xml(&self.time)
        );
        let mut line_y = y + 15;
        for line in &lines {
            let _ = write!(out, r#"<text x="{x}" y="{line_y}">{}</text>"#, escape_xml(line));
            line_y += LINE_HEIGHT;
        }
        let violation_lines: Vec<_> = self.wrapped_violations().collect();
        if !violation_lines.is_empty() {
            line_y += FRAME_PADDING / 2;
            let x = TOOLS_X + TRACK_SPACING * i32::try_from(MAX_TRACKS).unwrap_or(0) + 4;
            // An opaque box, so that the text is readable over the bars.
            let _ = write!(
                out,
                r#"<rect class="paper flaw" x="{}" y="{}" width="{}" height="{}" rx="3"/>"#,
                x - 6,
                line_y - 12,
                WIDTH - x - 10,
                LINE_HEIGHT * i32::try_from(violation_lines.len()).unwrap_or(0) + 1
            );
            for line in violation_lines {
                let _ = write!(out, r#"<text class="bad" x="{x}" y="{line_y}">{}</text>"#, escape_xml(&line));
                line_y += LINE_HEIGHT;
            }
        }
        out.push_str("</g>\n");
    }
}

fn draw_span(span: &LaneSpan, x: i32, row_tops: &[i32], out: &mut String) {
    let end = span.end.unwrap_or(row_tops.len() - 1);
    let (Some(top), Some(bottom)) = (row_tops.get(span.start), row_tops.get(end)) else { return };
    let class = if span.end.is_some() { "bar" } else { "bar open" };
    let x = x + TRACK_SPACING * i32::try_from(span.track).unwrap_or(0);
    let height = (bottom - top - 4).max(4);
    let suffix = if span.end.is_some() { "" } else { " and has no end in this recording" };
    let _ = writeln!(
        out,
        r#"<rect class="{class}" x="{x}" y="{}" width="6" height="{height}" rx="2"><title>{} starts here{suffix}</title></rect>"#,
        top + 1,
        escape_xml(&short_name(&span.key))
    );
}

/// Returns a text for every violation that is an error. Warnings appear only in the tooltip, because every step may have one.
fn error_texts(violations: &[RuleViolation]) -> Vec<String> {
    let errors = violations.iter().filter(|violation| violation.is_error);
    errors
        .map(|violation| {
            format!("{}: {} {}", capitalize(violation.severity_label()), violation.rule, violation.message)
        })
        .collect()
}
