//! The list of steps below a chart: one row per step, with its whole text.

use std::fmt::Write;

use listen::sanitize;

use super::result_mark::draw_mark;
use super::text_layout::{text_width, truncate_to_width, wrap_to_width};
use super::{FONT_PX, LEFT, WIDTH};
use crate::output::{capitalize, pluralize};
use crate::replay::timeline::{
    LaneChange, RuleViolation, StepResult, TimelineEntry, TimelineLane, format_duration, format_offset,
};
use crate::replay::trace;
use crate::svg_text::{escape_xml, escape_xml_lines, truncate};

const KIND_X: i32 = 118;
const WHO_X: i32 = 196;
const MARK_X: i32 = 352;
const TEXT_X: i32 = 374;
const WHO_WIDTH: i32 = MARK_X - WHO_X - 8;
const TEXT_WIDTH: i32 = WIDTH - LEFT - TEXT_X;
const LINE_HEIGHT: i32 = 17;
/// Height of the heading above the steps.
const HEADING_HEIGHT: i32 = 28;
/// Height of the mark of a long wait.
const WAIT_HEIGHT: i32 = 20;
/// Padding around the violations of a row.
const FRAME_PADDING: i32 = 8;
/// Maximum number of lines of a question: enough for the longest that AAEP permits.
const MAX_QUESTION_LINES: usize = 320;
/// Maximum number of lines of other texts. The description of the diagram contains the whole text.
const MAX_LINES: usize = 12;
/// How much of a text other than a question is kept. More than fits into the row.
const MAX_TEXT_COLUMNS: usize = 4000;
/// How much of an output is kept for its row, in bytes. More than fits into the row.
const MAX_OUTPUT_BYTES: usize = 4096;

#[derive(Default)]
pub(super) struct StepList {
    rows: Vec<StepRow>,
}

struct StepRow {
    session: String,
    time: String,
    wait_ms: Option<i64>,
    lane: TimelineLane,
    key: String,
    who: String,
    text: String,
    /// The text of an output so far.
    output: Option<String>,
    result: Option<StepResult>,
    /// The trace of the step, shown as a tooltip.
    title: String,
    /// How many output chunks or progress events were merged into the row.
    merged_entries: u64,
    violations: Vec<String>,
}

impl StepList {
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
            && row.session == session_name(entry)
            && entry.agent.as_ref().is_some_and(|agent| row.who.ends_with(agent))
            && row.violations.is_empty()
            && !entry.violations.iter().any(|violation| violation.is_error)
            && entry.resolution.is_none()
            && entry.wait_ms.is_none();
        if is_merged {
            row.merged_entries += 1;
            row.result = entry.result;
            row.text = match (&mut row.output, &entry.chunk) {
                (Some(output), Some(chunk)) => {
                    append_bounded(output, chunk);
                    format_output(output, entry, row.merged_entries)
                }
                _ => format!("{} ({})", entry.text, pluralize(row.merged_entries, "event")),
            };
        }
        is_merged
    }

    pub(super) fn add(&mut self, entry: &TimelineEntry) {
        let mut output = None;
        let mut text = match &entry.chunk {
            Some(chunk) => {
                let mut start = String::new();
                append_bounded(&mut start, chunk);
                let text = format_output(&start, entry, 1);
                output = Some(start);
                text
            }
            None => entry.text.clone(),
        };
        if let Some(sentence) = entry.resolution.as_ref().and_then(|resolution| resolution.sentence.as_ref())
        {
            text = format!("{text} {sentence}");
        }
        // A question is shown whole. Everything else is shortened here already, to limit memory.
        if entry.lane != TimelineLane::Question {
            text = truncate(&text, MAX_TEXT_COLUMNS);
        }
        self.rows.push(StepRow {
            session: session_name(entry),
            time: format_offset(entry.offset_ms),
            wait_ms: entry.wait_ms,
            lane: entry.lane,
            key: entry.key.clone(),
            who: entry.agent.clone().unwrap_or_default(),
            text,
            output,
            result: entry.result.or(entry.resolution.as_ref().map(|resolution| resolution.result)),
            title: truncate(&trace::format_entry(entry), 2000),
            merged_entries: 1,
            violations: error_texts(&entry.violations),
        });
    }

    /// Draws the steps from `top` on. Returns the y coordinate of their end. `names_sessions` is for lists with several sessions.
    pub(super) fn draw(&self, names_sessions: bool, top: i32, out: &mut String) -> i32 {
        for (x, heading) in [(LEFT, "Time"), (KIND_X, "Kind"), (WHO_X, "Who"), (TEXT_X, "What happened")] {
            let _ = writeln!(out, r#"<text class="head" x="{x}" y="{}">{heading}</text>"#, top + 16);
        }
        let mut y = top + HEADING_HEIGHT;
        for row in &self.rows {
            y = row.draw(names_sessions, y, out);
        }
        y
    }
}

impl StepRow {
    fn draw(&self, names_sessions: bool, top: i32, out: &mut String) -> i32 {
        let mut y = top;
        let _ = write!(out, "<g><title>{}</title>", escape_xml_lines(&self.title));
        if let Some(wait) = self.wait_ms {
            y = draw_wait(wait, y, out);
        }
        let who = if names_sessions {
            let number = self.session.strip_prefix("session ").unwrap_or(&self.session);
            format!("{}: {}", truncate(number, 8), self.who)
        } else {
            self.who.clone()
        };
        let text_y = y + 15;
        for (x, class, text) in [
            (LEFT, "soft", self.time.clone()),
            (KIND_X, "soft", self.lane.as_str().to_owned()),
            (WHO_X, "soft", truncate_to_width(&who, FONT_PX, WHO_WIDTH)),
        ] {
            let _ = write!(out, r#"<text class="{class}" x="{x}" y="{text_y}">{}</text>"#, escape_xml(&text));
        }
        if let Some(result) = self.result {
            draw_mark(result, MARK_X, y + 10, false, out);
        }
        let max_lines = if self.lane == TimelineLane::Question { MAX_QUESTION_LINES } else { MAX_LINES };
        let mut line_y = text_y;
        for line in wrap_to_width(&self.text, FONT_PX, TEXT_WIDTH, max_lines) {
            let _ = write!(out, r#"<text x="{TEXT_X}" y="{line_y}">{}</text>"#, escape_xml(&line));
            line_y += LINE_HEIGHT;
        }
        y = line_y.max(text_y + LINE_HEIGHT) - 8;
        y = self.draw_violations(y, out);
        out.push_str("</g>\n");
        y
    }

    /// Draws a frame with the broken rules below the text.
    fn draw_violations(&self, y: i32, out: &mut String) -> i32 {
        let wrap = |text: &String| wrap_to_width(text, FONT_PX + 1, TEXT_WIDTH - 8, MAX_LINES);
        let lines: Vec<_> = self.violations.iter().flat_map(wrap).collect();
        if lines.is_empty() {
            return y;
        }
        let height = LINE_HEIGHT * i32::try_from(lines.len()).unwrap_or(0) + FRAME_PADDING;
        let _ = write!(
            out,
            r#"<rect class="flaw" x="{}" y="{}" width="{}" height="{height}" rx="3"/>"#,
            TEXT_X - 6,
            y + 3,
            TEXT_WIDTH + 6
        );
        let mut line_y = y + 3 + FRAME_PADDING / 2 + 13;
        for line in lines {
            let _ =
                write!(out, r#"<text class="bad" x="{TEXT_X}" y="{line_y}">{}</text>"#, escape_xml(&line));
            line_y += LINE_HEIGHT;
        }
        y + height + 10
    }
}

/// Draws a dashed line with the length of the wait.
fn draw_wait(wait_ms: i64, y: i32, out: &mut String) -> i32 {
    let text = format!("{} later", format_duration(wait_ms));
    let line_y = y + WAIT_HEIGHT / 2;
    let text_right = TEXT_X + text_width(&text, FONT_PX) + 4;
    for (left, right) in [(LEFT, TEXT_X - 6), (text_right, WIDTH - LEFT)] {
        let _ = write!(out, r#"<line class="gap" x1="{left}" y1="{line_y}" x2="{right}" y2="{line_y}"/>"#);
    }
    let _ = write!(out, r#"<text class="soft" x="{TEXT_X}" y="{}">{text}</text>"#, line_y + 5);
    y + WAIT_HEIGHT
}

fn session_name(entry: &TimelineEntry) -> String {
    entry.session.as_ref().map(|session| session.0.clone()).unwrap_or_default()
}

fn append_bounded(output: &mut String, chunk: &str) {
    let room = MAX_OUTPUT_BYTES.saturating_sub(output.len());
    output.push_str(chunk.get(..chunk.floor_char_boundary(room)).unwrap_or_default());
}

/// Formats the joined chunks of an output.
fn format_output(output: &str, entry: &TimelineEntry, events: u64) -> String {
    let completion = if entry.change == LaneChange::Ends { ", complete" } else { "" };
    let count = if events > 1 { format!(" ({})", pluralize(events, "event")) } else { String::new() };
    let ellipsis = if output.len() >= MAX_OUTPUT_BYTES - 3 { "…" } else { "" };
    format!("{}{completion}{count}: “{}{ellipsis}”", entry.label, sanitize(output, true))
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
