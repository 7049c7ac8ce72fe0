//! The SVG diagram. Each session has a time column and lanes for state, tools, output and questions. Every step is a row, so
//! a long silence takes no space and two steps within a millisecond do not overlap.

mod lane_spans;
mod session_diagram;

use std::collections::HashMap;
use std::fmt::Write;

use super::timeline::{RuleViolation, SessionLabel, TimelineEntry};
use super::trace;
use crate::output::pluralize;
use crate::svg_text::{escape_xml, escape_xml_lines};
use session_diagram::SessionDiagram;

/// Maximum number of rows, to keep the diagram readable and renderable.
const MAX_ROWS: usize = 2000;
const WIDTH: i32 = 1240;
/// Height of the headings above a session.
const HEADING_HEIGHT: i32 = 76;
const FIRST_NOTE_Y: i32 = 64;

/// Builds the diagram of a recording.
#[derive(Default)]
pub(super) struct RecordingDiagram {
    /// The sessions in order of appearance, and one entry for items without a session.
    sessions: Vec<(String, SessionDiagram)>,
    session_index: HashMap<Option<SessionLabel>, usize>,
    /// The text alternative for people who cannot see the diagram.
    text_alternative: String,
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
        let is_known = self.session_index.contains_key(&entry.session);
        let is_merged = self
            .session_index
            .get(&entry.session)
            .and_then(|index| self.sessions.get_mut(*index))
            .is_some_and(|(_, diagram)| diagram.merge_into_last(entry));
        if is_merged {
            return;
        }
        if self.rows >= MAX_ROWS {
            self.omitted_entries += 1;
            self.omitted_errors += errors;
            return;
        }
        self.rows += 1;
        self.text_alternative += &trace::format_entry(entry);
        if !is_known {
            let name = entry
                .session
                .as_ref()
                .map_or("Listeners, and events without a session", |session| &session.0);
            self.session_index.insert(entry.session.clone(), self.sessions.len());
            self.sessions.push((name.to_owned(), SessionDiagram::default()));
        }
        if let Some((_, diagram)) =
            self.session_index.get(&entry.session).and_then(|index| self.sessions.get_mut(*index))
        {
            diagram.add(entry);
        }
    }

    pub(super) fn draw(mut self, unfinished: &[(u64, RuleViolation)]) -> String {
        for (line, violation) in unfinished {
            self.errors += u64::from(violation.is_error);
            self.text_alternative += &trace::format_unfinished(*line, violation);
        }
        let notes = self.notes(unfinished);
        let mut body = String::new();
        let mut y = FIRST_NOTE_Y + 20 * i32::try_from(notes.len()).unwrap_or(0);
        for ((text, is_error), index) in notes.iter().zip(0..) {
            let class = if *is_error { "bad" } else { "soft" };
            let _ = writeln!(
                body,
                r#"<text class="{class}" x="24" y="{}">{}</text>"#,
                FIRST_NOTE_Y + 20 * index,
                escape_xml(&crate::svg_text::truncate(text, 170))
            );
        }
        for (name, diagram) in &self.sessions {
            y = diagram.draw(name, y, &mut body);
        }
        let height = y + 24;
        let sessions = self.session_index.keys().filter(|session| session.is_some()).count();
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
<text class="title" x="24" y="36">{title}</text>
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
        notes
    }
}

/// Dark text on a light background, or the reverse in dark mode. Every contrast is at least 4.5:1.
const STYLE: &str = "<style>
text { font: 13px system-ui, sans-serif; fill: #1b1b1f } .title { font-size: 18px; font-weight: 600 }
.name { font-size: 15px; font-weight: 600 } .head { font-weight: 600 } .soft { fill: #55555f }
.bad { fill: #a8001c; font-weight: 600 } .paper { fill: #ffffff }
.line { stroke: #d5d5de; stroke-width: 1 } .band { fill: #dfe9f5; stroke: #6a7f99 } .wait { fill: #fbe3b4; stroke: #8a6a1c }
.bar { fill: #4a6fa5 } .bar.open { fill: none; stroke: #4a6fa5; stroke-width: 2; stroke-dasharray: 4 3 }
.flaw { stroke: #a8001c; stroke-width: 2 } .band-text { fill: #16161a }
@media (prefers-color-scheme: dark) {
text { fill: #f2f2f5 } .soft { fill: #b9b9c6 } .bad { fill: #ff9a92 } .paper { fill: #16161a }
.line { stroke: #3a3a45 } .bar { fill: #8fb4e8 } .bar.open { fill: none; stroke: #8fb4e8 } .flaw { stroke: #ff9a92 } .band-text { fill: #16161a }
}
</style>";
