//! The SVG diagram. A session is drawn together with the sessions that are its parts:
//!
//! ```text
//!   session_group: headings
//!     ├─ chart: session_lanes (states, tools, output, questions of each producer) on a time_axis to scale
//!     └─ step_list: every step with its whole text
//! ```

mod chart;
mod result_mark;
mod session_group;
mod session_lanes;
mod step_list;
mod text_layout;
mod time_axis;

use std::collections::HashMap;
use std::fmt::Write;

use super::timeline::{RuleViolation, SessionLabel, StepResult, TimelineEntry};
use super::trace;
use crate::output::pluralize;
use crate::svg_text::{escape_xml, escape_xml_lines};
use result_mark::{bar_class, draw_mark};
use session_group::SessionGroup;
use text_layout::{text_width, truncate_to_width};

/// Maximum number of rows, to keep the diagram readable and renderable.
const MAX_ROWS: usize = 2000;
/// Maximum length of the text alternative, in bytes.
const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;
const WIDTH: i32 = 1240;
/// The left and the right margin.
const LEFT: i32 = 24;
/// Font sizes of most texts and of the texts in a chart. Bold text counts as one pixel larger.
const FONT_PX: i32 = 13;
const CHART_FONT_PX: i32 = 12;
const FIRST_NOTE_Y: i32 = 84;

/// Builds the diagram of a recording.
#[derive(Default)]
pub(super) struct RecordingDiagram {
    /// Groups of linked sessions in order of appearance, and one group for items without a session.
    groups: Vec<SessionGroup>,
    group_index: HashMap<Option<SessionLabel>, usize>,
    /// The text alternative for people who cannot see the diagram.
    text_alternative: String,
    is_text_cut: bool,
    rows: usize,
    omitted_entries: u64,
    omitted_errors: u64,
    errors: u64,
    warnings: u64,
}

impl RecordingDiagram {
    pub(super) fn add(&mut self, entry: &TimelineEntry) {
        let errors = entry.violations.iter().filter(|violation| violation.is_error).count() as u64;
        self.errors += errors;
        self.warnings += entry.violations.len() as u64 - errors;
        let known_group = self.group_index.get(&entry.session).and_then(|index| self.groups.get_mut(*index));
        if known_group.is_some_and(|group| group.merge_into_last(entry)) {
            self.describe(&trace::format_entry(entry));
            return;
        }
        if self.rows >= MAX_ROWS {
            self.omitted_entries += 1;
            self.omitted_errors += errors;
            return;
        }
        self.rows += 1;
        self.describe(&trace::format_entry(entry));
        let index = self.group_of(entry);
        if let Some(group) = self.groups.get_mut(index) {
            group.add(entry);
        }
    }

    /// Returns the index of the entry's group. A session joins the group of its parent, if the parent is in the recording.
    fn group_of(&mut self, entry: &TimelineEntry) -> usize {
        if let Some(index) = self.group_index.get(&entry.session) {
            return *index;
        }
        let parent_group =
            entry.parent.as_ref().and_then(|parent| self.group_index.get(&Some(parent.clone())));
        let index = parent_group.copied().unwrap_or_else(|| {
            self.groups.push(SessionGroup::default());
            self.groups.len() - 1
        });
        self.group_index.insert(entry.session.clone(), index);
        index
    }

    fn describe(&mut self, text: &str) {
        if self.text_alternative.len() + text.len() > MAX_TEXT_BYTES {
            self.is_text_cut = true;
        } else {
            self.text_alternative += text;
        }
    }

    pub(super) fn draw(mut self, unfinished: &[(u64, RuleViolation)]) -> String {
        for (line, violation) in unfinished {
            self.errors += u64::from(violation.is_error);
            self.describe(&trace::format_unfinished(*line, violation));
        }
        let notes = self.notes(unfinished);
        let mut body = String::new();
        draw_legend(&mut body);
        let mut y = FIRST_NOTE_Y + 20 * i32::try_from(notes.len()).unwrap_or(0);
        for ((text, is_error), index) in notes.iter().zip(0..) {
            let class = if *is_error { "bad" } else { "soft" };
            let _ = writeln!(
                body,
                r#"<text class="{class}" x="{LEFT}" y="{}">{}</text>"#,
                FIRST_NOTE_Y + 20 * index,
                escape_xml(&truncate_to_width(text, FONT_PX + i32::from(*is_error), WIDTH - 2 * LEFT))
            );
        }
        for group in &self.groups {
            y = group.draw(y, &mut body);
        }
        let height = y + 4;
        let sessions = self.group_index.keys().filter(|session| session.is_some()).count();
        let title = format!(
            "A recording of {}. {}",
            pluralize(sessions as u64, "session"),
            match self.errors {
                0 => "No rule is broken.".to_owned(),
                errors => format!("{}.", pluralize(errors, "broken rule")),
            }
        );
        let description = escape_xml_lines(&self.text_alternative);
        let mut out = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-labelledby="title desc">
<title id="title">{title}</title>
<desc id="desc">{description}</desc>
{STYLE}
<rect class="paper" width="100%" height="100%"/>
<text class="title" x="{LEFT}" y="36">{title}</text>
"#
        );
        out += &body;
        out += "</svg>\n";
        out
    }

    /// Returns the notes above the sessions (unfinished items, omitted rows), and whether each is an error.
    fn notes(&self, unfinished: &[(u64, RuleViolation)]) -> Vec<(String, bool)> {
        const MAX_NOTES: usize = 8;
        let mut notes: Vec<_> = unfinished
            .iter()
            .take(MAX_NOTES)
            .map(|(line, violation)| {
                (trace::format_unfinished(*line, violation).trim_end().to_owned(), violation.is_error)
            })
            .collect();
        if unfinished.len() > MAX_NOTES {
            notes.push((
                format!("Not shown: {}.", pluralize((unfinished.len() - MAX_NOTES) as u64, "more finding")),
                false,
            ));
        }
        if self.warnings > 0 {
            let text =
                format!("Also {}. sayso replay --visualize shows them.", pluralize(self.warnings, "warning"));
            notes.push((text, false));
        }
        if self.omitted_entries > 0 {
            let text = format!(
                "Not drawn: {}, with {}. sayso replay --visualize shows all steps.",
                pluralize(self.omitted_entries, "more step"),
                pluralize(self.omitted_errors, "broken rule")
            );
            notes.push((text, self.omitted_errors > 0));
        }
        if self.is_text_cut {
            let text = "The text alternative is incomplete. sayso replay --visualize prints all of it.";
            notes.push((text.to_owned(), false));
        }
        notes
    }
}

/// Explains the marks and outlines.
fn draw_legend(out: &mut String) {
    let mut x = LEFT;
    let mut explain = |symbol: &dyn Fn(i32, &mut String), symbol_width: i32, text: &str| {
        symbol(x, out);
        let text_x = x + symbol_width + 6;
        let _ = writeln!(out, r#"<text class="lane soft" x="{text_x}" y="63">{text}</text>"#);
        x = text_x + text_width(text, CHART_FONT_PX) + 18;
    };
    let draw_bar = |class: &str, x: i32, out: &mut String| {
        let _ = write!(out, r#"<rect class="{class}" x="{x}" y="50" width="26" height="16" rx="2"/>"#);
    };
    for (result, text) in [
        (StepResult::Succeeded, "succeeded or accepted"),
        (StepResult::Failed, "failed"),
        (StepResult::TimedOut, "timed out"),
        (StepResult::Refused, "refused by a person"),
        (StepResult::Stopped, "cancelled or withdrawn"),
    ] {
        let draw = |x: i32, out: &mut String| {
            draw_bar(bar_class(Some(result)), x, out);
            draw_mark(result, x + 6, 58, true, out);
        };
        explain(&draw, 26, text);
    }
    explain(&|x, out| draw_bar("bar open", x, out), 26, "not ended");
    let draw_cut = |x: i32, out: &mut String| {
        let points = format!("{x},50 {0},54 {x},58 {0},62 {x},66", x + 4);
        let _ = write!(out, r#"<polyline class="cut" points="{points}"/>"#);
    };
    explain(&draw_cut, 4, "a wait that is cut out of the time axis");
}

/// Dark text on a light background, or the reverse in dark mode. Bars are light in both. Every contrast is at least 4.5:1.
const STYLE: &str = "<style>
text { font: 13px system-ui, sans-serif; fill: #1b1b1f } .title { font-size: 18px; font-weight: 600 }
.name { font-size: 15px; font-weight: 600 } .head { font-weight: 600 } .lane { font-size: 12px } .strong { font-weight: 600 }
.soft { fill: #55555f } .bad { fill: #a8001c; font-weight: 600 } .paper { fill: #ffffff }
.line { stroke: #d5d5de } .grid { stroke: #e6e6ec } .gap { stroke: #8a8a96; stroke-dasharray: 2 4 }
.link { stroke: #55555f; stroke-width: 1.5; stroke-dasharray: 5 3 } .end { stroke: #1b1b1f; stroke-width: 2 }
.cut { fill: none; stroke: #55555f; stroke-width: 1.5 }
.band { fill: #dfe9f5; stroke: #6a7f99 } .wait { fill: #fbe3b4; stroke: #8a6a1c }
.bar { fill: #dfe9f5; stroke: #4a6fa5; stroke-width: 1.5 } .bar.open { fill: none; stroke-dasharray: 4 3 }
.bar.ok { fill: #d8eedc; stroke: #2f6b3c } .bar.fail { fill: #f9d6d6; stroke: #a8001c; stroke-width: 3 }
.bar.late { fill: #fbe3b4; stroke: #8a6a1c; stroke-width: 2.5; stroke-dasharray: 2 2 }
.bar.no { fill: #efe0f5; stroke: #6b3f85; stroke-width: 2.5; stroke-dasharray: 8 2 }
.bar.off { fill: #e6e6ec; stroke: #55555f; stroke-width: 1.5; stroke-dasharray: 10 4 }
.mark { fill: none; stroke: #1b1b1f; stroke-width: 2 } .band-text { fill: #16161a }
.flaw { fill: none; stroke: #a8001c; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
text { fill: #f2f2f5 } .soft { fill: #b9b9c6 } .bad { fill: #ff9a92 } .paper { fill: #16161a }
.line, .grid { stroke: #3a3a45 } .link, .cut { stroke: #b9b9c6 } .end, .mark { stroke: #f2f2f5 } .mark.on { stroke: #16161a }
.bar.open { stroke: #8fb4e8 } .flaw { stroke: #ff9a92 } .band-text { fill: #16161a }
}
</style>";
