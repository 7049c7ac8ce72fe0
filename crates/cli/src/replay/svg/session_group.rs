//! A session with the sessions that are its parts: headings, a chart and a list of steps.

use std::fmt::Write;

use super::chart::draw_chart;
use super::result_mark::draw_mark;
use super::session_lanes::SessionLanes;
use super::step_list::StepList;
use super::text_layout::wrap_to_width;
use super::{FONT_PX, LEFT, WIDTH};
use crate::output::capitalize;
use crate::replay::timeline::{SessionLabel, StepResult, TimelineEntry, format_duration};
use crate::svg_text::escape_xml;

#[derive(Default)]
pub(super) struct SessionGroup {
    /// Empty for entries without a session.
    sessions: Vec<SessionLanes>,
    steps: StepList,
    /// The time of each step. It never goes back.
    times: Vec<i64>,
}

/// Maximum number of lines of a text below the heading of a session.
const MAX_HEADING_LINES: usize = 3;
const TEXT_WIDTH: i32 = WIDTH - 2 * LEFT - 20;
const NAME_FONT_PX: i32 = 16;
const LINE_HEIGHT: i32 = 18;

impl SessionGroup {
    pub(super) fn merge_into_last(&mut self, entry: &TimelineEntry) -> bool {
        let is_merged = self.steps.merge_into_last(entry);
        if is_merged {
            self.add_to_lanes(entry);
        }
        is_merged
    }

    pub(super) fn add(&mut self, entry: &TimelineEntry) {
        self.add_to_lanes(entry);
        self.steps.add(entry);
    }

    fn add_to_lanes(&mut self, entry: &TimelineEntry) {
        let previous = self.times.last().copied();
        let at_ms = entry.offset_ms.or(previous).unwrap_or(0).max(previous.unwrap_or(i64::MIN));
        if previous != Some(at_ms) {
            self.times.push(at_ms);
        }
        let Some(label) = &entry.session else { return };
        let index = self.position(label).unwrap_or_else(|| {
            let parent = entry.parent.as_ref().and_then(|parent| self.position(parent));
            self.sessions.push(SessionLanes::new(entry, label.clone(), parent, at_ms));
            self.sessions.len() - 1
        });
        if let Some(session) = self.sessions.get_mut(index) {
            session.add(entry, at_ms);
        }
    }

    fn position(&self, label: &SessionLabel) -> Option<usize> {
        self.sessions.iter().position(|session| session.label == *label)
    }

    /// Draws the group from `top` on. Returns the y coordinate of its end.
    pub(super) fn draw(&self, top: i32, out: &mut String) -> i32 {
        let _ = writeln!(out, r#"<line class="line" x1="0" y1="{top}" x2="{WIDTH}" y2="{top}"/>"#);
        let mut y = top + 12;
        for session in &self.sessions {
            y = draw_heading(session, y, out);
        }
        if self.sessions.is_empty() {
            let heading = "Listeners, and items without a session";
            let _ = writeln!(out, r#"<text class="name" x="{LEFT}" y="{}">{heading}</text>"#, y + 16);
            y += 30;
        } else {
            y = draw_chart(&self.sessions, &self.times, y + 8, out) + 8;
        }
        self.steps.draw(self.sessions.len() > 1, y, out) + 20
    }
}

/// Draws the name of a session, its agent's words at the start, and how it ended.
fn draw_heading(session: &SessionLanes, top: i32, out: &mut String) -> i32 {
    let mut name = capitalize(&session.label.0);
    if let Some(parent) = &session.parent_label {
        name = format!("{name}, part of {}", parent.0);
    }
    let agents: Vec<_> = session.producers.iter().map(|producer| producer.name.as_str()).collect();
    if !agents.is_empty() {
        name = format!("{name}: {}", agents.join(", "));
    }
    let mut y = top + 16;
    for line in wrap_to_width(&name, NAME_FONT_PX, TEXT_WIDTH, 2) {
        let _ = writeln!(out, r#"<text class="name" x="{LEFT}" y="{y}">{}</text>"#, escape_xml(&line));
        y += LINE_HEIGHT + 2;
    }
    let (result, end_text) = match &session.end {
        Some(end) => {
            let duration = format_duration(end.at_ms - session.started_ms);
            (end.result, format!("After {duration}: {}", end.text))
        }
        None => (None, "The session does not end in this recording.".to_owned()),
    };
    let class = if result == Some(StepResult::Failed) { "bad" } else { "" };
    if let Some(result) = result {
        draw_mark(result, LEFT, y + LINE_HEIGHT * heading_lines(session) - 5, false, out);
    }
    let start = session.start_text.as_deref().unwrap_or_default();
    for (text, class) in [(start, ""), (&end_text, class)] {
        for line in wrap_to_width(text, FONT_PX + 1, TEXT_WIDTH, MAX_HEADING_LINES) {
            let _ = writeln!(
                out,
                r#"<text class="{class}" x="{}" y="{y}">{}</text>"#,
                LEFT + 20,
                escape_xml(&line)
            );
            y += LINE_HEIGHT;
        }
    }
    y - 4
}

/// Returns the number of lines of the text at the start.
fn heading_lines(session: &SessionLanes) -> i32 {
    let start = session.start_text.as_deref().unwrap_or_default();
    i32::try_from(wrap_to_width(start, FONT_PX + 1, TEXT_WIDTH, MAX_HEADING_LINES).len()).unwrap_or(0)
}
