//! The chart of linked sessions: time to scale from left to right, with lanes for each producer.

use std::fmt::Write;

use aaep::event::AgentState;

use super::result_mark::{MARK_WIDTH, bar_class, draw_mark};
use super::session_lanes::{LaneItem, ProducerLanes, SessionLanes};
use super::text_layout::{text_width, truncate_to_width};
use super::time_axis::{AxisLabel, TimeAxis};
use super::{CHART_FONT_PX, LEFT, WIDTH};
use crate::output::capitalize;
use crate::replay::timeline::{TimelineLane, format_duration};
use crate::svg_text::escape_xml;

const CHART_LEFT: i32 = 240;
/// Leaves room for the mark at the end of a session.
const CHART_RIGHT: i32 = WIDTH - 48;
const AXIS_HEIGHT: i32 = 28;
const LANE_HEIGHT: i32 = 24;
const BAR_HEIGHT: i32 = 19;
/// Maximum width of the label of a bar.
const MAX_LABEL_WIDTH: i32 = 300;
/// Height of a line above the axis with the durations of the waits that are cut out.
const WAIT_LINE_HEIGHT: i32 = 14;
/// Distance between a break's edge and the bars beside it.
const BREAK_MARGIN: i32 = 6;
/// Maximum number of lanes for one kind of item of one producer. Further items share one more lane, without labels.
const MAX_TRACKS: usize = 10;
/// Indentation of a session below its parent.
const INDENT: i32 = 14;

/// The kinds of items, each with the name of its lane.
const ITEM_LANES: [(TimelineLane, &str); 4] = [
    (TimelineLane::Tool, "tools"),
    (TimelineLane::Output, "output"),
    (TimelineLane::Question, "questions"),
    (TimelineLane::Handoff, "hand-offs"),
];

struct Chart<'a> {
    axis: TimeAxis,
    last_ms: i64,
    sessions: &'a [SessionLanes],
    y: i32,
    connectors: String,
    lanes: String,
    /// The labels of bars, which are drawn over everything else.
    labels: String,
    /// The bottom of the first lane of each session, where the lines to its parts start.
    anchors: Vec<i32>,
}

/// Draws the chart from `top` on. Returns the y coordinate of its end.
pub(super) fn draw_chart(sessions: &[SessionLanes], times: &[i64], top: i32, out: &mut String) -> i32 {
    let axis = TimeAxis::new(times, CHART_LEFT, CHART_RIGHT);
    let wait_lines = axis.breaks().map(|wait| split_units(wait.duration_ms).len()).max().unwrap_or(0);
    let axis_top = top + WAIT_LINE_HEIGHT * i32::try_from(wait_lines).unwrap_or(0);
    let mut chart = Chart {
        axis,
        last_ms: times.last().copied().unwrap_or(0),
        sessions,
        y: axis_top + AXIS_HEIGHT,
        connectors: String::new(),
        lanes: String::new(),
        labels: String::new(),
        anchors: vec![0; sessions.len()],
    };
    let roots = sessions.iter().enumerate().filter(|(_, session)| session.parent.is_none());
    for (index, session) in roots {
        chart.draw_session(index, session, 0);
    }
    chart.draw_axis(axis_top, out);
    *out += &chart.connectors;
    *out += &chart.lanes;
    chart.draw_breaks(axis_top, out);
    *out += &chart.labels;
    chart.y
}

impl Chart<'_> {
    /// Draws a session, and below it the sessions that are its parts.
    fn draw_session(&mut self, index: usize, session: &SessionLanes, depth: i32) {
        let x = LEFT + INDENT * depth.min(6);
        if self.sessions.len() > 1 {
            let name = capitalize(&session.label.0);
            let text = match session.parent_label.as_ref().filter(|_| session.parent.is_some()) {
                Some(parent) => {
                    format!("{name}, part of {}", parent.0.strip_prefix("session ").unwrap_or(&parent.0))
                }
                None => name,
            };
            self.draw_connector(session);
            let y = self.y + 16;
            let _ = writeln!(
                self.lanes,
                r#"<text class="lane strong" x="{x}" y="{y}">{}</text>"#,
                escape_xml(&truncate_to_width(&text, CHART_FONT_PX + 1, CHART_LEFT - x - 4))
            );
            self.y += LANE_HEIGHT;
        }
        let top = self.y;
        for (producer, number) in session.producers.iter().zip(0..) {
            self.draw_producer(session, producer, x, number == 0);
            if number == 0
                && let Some(anchor) = self.anchors.get_mut(index)
            {
                *anchor = top + BAR_HEIGHT;
            }
        }
        if let Some(end) = &session.end {
            let x = self.axis.x(end.at_ms) + 2;
            let bottom = self.y - LANE_HEIGHT + BAR_HEIGHT;
            let _ = writeln!(self.lanes, r#"<line class="end" x1="{x}" y1="{top}" x2="{x}" y2="{bottom}"/>"#);
            if let Some(result) = end.result {
                draw_mark(result, x + 4, top + BAR_HEIGHT / 2, false, &mut self.lanes);
                self.lanes.push('\n');
            }
        }
        self.y += 6;
        let parts = self.sessions.iter().enumerate().filter(|(_, part)| part.parent == Some(index));
        for (part_index, part) in parts {
            self.draw_session(part_index, part, depth + 1);
        }
    }

    /// Draws a line from the parent to the start of this session.
    fn draw_connector(&mut self, session: &SessionLanes) {
        let Some(top) = session.parent.and_then(|parent| self.anchors.get(parent)) else { return };
        let x = self.axis.x(session.started_ms);
        let bottom = self.y + LANE_HEIGHT;
        let _ =
            writeln!(self.connectors, r#"<line class="link" x1="{x}" y1="{top}" x2="{x}" y2="{bottom}"/>"#);
    }

    fn draw_producer(&mut self, session: &SessionLanes, producer: &ProducerLanes, x: i32, is_first: bool) {
        if !is_first {
            self.y += 4;
        }
        let _ = writeln!(
            self.lanes,
            r#"<text class="lane" x="{x}" y="{}">{}<title>{}</title></text>"#,
            self.y + 14,
            escape_xml(&truncate_to_width(&producer.name, CHART_FONT_PX, CHART_LEFT - x - 8)),
            escape_xml(&producer.name)
        );
        self.draw_states(session, producer);
        self.y += LANE_HEIGHT;
        for (lane, name) in ITEM_LANES {
            let items: Vec<_> = producer.items.iter().filter(|item| item.lane == lane).collect();
            if !items.is_empty() {
                self.draw_items(&items, name, x);
            }
        }
    }

    /// Draws a box for each period in a state.
    fn draw_states(&mut self, session: &SessionLanes, producer: &ProducerLanes) {
        let end_ms = session.end.as_ref().map_or(self.last_ms, |end| end.at_ms);
        let ends = producer.states.iter().skip(1).map(|(at, _)| *at).chain([end_ms]);
        for ((start, state), end) in producer.states.iter().zip(ends) {
            let (left, right) = (self.axis.x(*start), self.axis.x(end.max(*start)));
            let class = if state == AgentState::AwaitingInput.as_str() { "wait" } else { "band" };
            let width = (right - left).max(2);
            let title = format!("{state} for {}", format_duration((end - start).max(0)));
            let _ = write!(
                self.lanes,
                r#"<rect class="{class}" x="{left}" y="{}" width="{width}" height="{BAR_HEIGHT}" rx="2"><title>{}</title></rect>"#,
                self.y,
                escape_xml(&title)
            );
            let (label_left, label_right) = self.widest_visible_part(left, left + width);
            let label = truncate_to_width(state, CHART_FONT_PX, label_right - label_left - 6);
            if label.chars().count() >= 3.min(state.chars().count()) {
                let _ = writeln!(
                    self.labels,
                    r#"<text class="lane band-text" x="{}" y="{}">{}</text>"#,
                    label_left + 4,
                    self.y + 14,
                    escape_xml(&label)
                );
            }
            self.lanes.push('\n');
        }
    }

    /// Returns the widest part of a bar that is not covered by a break.
    fn widest_visible_part(&self, left: i32, right: i32) -> (i32, i32) {
        let mut widest = (left, left);
        let mut start = left;
        for wait in self.axis.breaks().filter(|wait| wait.right > left && wait.left < right) {
            let end = wait.left + BREAK_MARGIN;
            if end - start > widest.1 - widest.0 {
                widest = (start, end);
            }
            start = wait.right - BREAK_MARGIN;
        }
        if right - start > widest.1 - widest.0 { (start, right) } else { widest }
    }

    /// Draws items that overlap, with their labels, below each other.
    fn draw_items(&mut self, items: &[&LaneItem], name: &str, x: i32) {
        let _ = writeln!(
            self.lanes,
            r#"<text class="lane soft" x="{}" y="{}">{name}</text>"#,
            x + INDENT,
            self.y + 14
        );
        let mut tracks: Vec<i32> = Vec::new();
        for item in items {
            let placed = PlacedItem::new(item, self);
            let is_free = |right: &i32| *right + 8 <= placed.extent.0;
            let track = tracks.iter().position(is_free).unwrap_or(tracks.len()).min(MAX_TRACKS);
            let has_label = track < MAX_TRACKS;
            let right = if has_label { placed.extent.1 } else { i32::MAX - 8 };
            match tracks.get_mut(track) {
                Some(last) => *last = right,
                None => tracks.push(right),
            }
            let y = self.y + LANE_HEIGHT * i32::try_from(track).unwrap_or(0);
            placed.draw(item, y, &mut self.lanes);
            if has_label {
                placed.draw_label(item, y, &mut self.labels);
            }
        }
        self.y += LANE_HEIGHT * i32::try_from(tracks.len()).unwrap_or(0);
    }

    fn draw_axis(&self, top: i32, out: &mut String) {
        for AxisLabel { x, ends_at_x, text } in self.axis.labels() {
            let anchor = if ends_at_x { "end" } else { "start" };
            let _ = writeln!(
                out,
                r#"<line class="grid" x1="{x}" y1="{}" x2="{x}" y2="{}"/><text class="lane soft" text-anchor="{anchor}" x="{x}" y="{}">{text}</text>"#,
                top + 18,
                self.y - 8,
                top + 13
            );
        }
    }

    /// Draws the cut-out waits over the bars.
    fn draw_breaks(&self, top: i32, out: &mut String) {
        for wait in self.axis.breaks() {
            let duration = format_duration(wait.duration_ms);
            let (left, right) = (wait.left + BREAK_MARGIN, wait.right - BREAK_MARGIN);
            let (first_y, bottom) = (top + 20, self.y - 4);
            let _ = write!(
                out,
                r#"<g><title>{duration} without an event, not to scale</title><rect class="paper" x="{left}" y="{first_y}" width="{}" height="{}"/>"#,
                right - left,
                bottom - first_y
            );
            for x in [left, right] {
                let zigzag = (first_y..=bottom).step_by(6).zip([0, 4].into_iter().cycle());
                let points: Vec<_> = zigzag.map(|(y, offset)| format!("{},{y}", x - 2 + offset)).collect();
                let _ = write!(out, r#"<polyline class="cut" points="{}"/>"#, points.join(" "));
            }
            let units = split_units(wait.duration_ms);
            let mut y = top - WAIT_LINE_HEIGHT * i32::try_from(units.len()).unwrap_or(0) + 11;
            for unit in units {
                let _ = write!(
                    out,
                    r#"<text class="lane strong" text-anchor="middle" x="{}" y="{y}">{unit}</text>"#,
                    i32::midpoint(left, right)
                );
                y += WAIT_LINE_HEIGHT;
            }
            out.push_str("</g>\n");
        }
    }
}

/// Formats a duration with one unit per line: `2 min`, `5 s`.
fn split_units(duration_ms: i64) -> Vec<String> {
    let duration = format_duration(duration_ms);
    let words: Vec<_> = duration.split(' ').collect();
    words.chunks(2).map(|unit| unit.join(" ")).collect()
}

/// The position of a bar and of its label.
struct PlacedItem {
    left: i32,
    right: i32,
    label: String,
    label_x: i32,
    label_width: i32,
    is_inside: bool,
    /// From the left end of the bar or its label to the right end.
    extent: (i32, i32),
}

impl PlacedItem {
    fn new(item: &LaneItem, chart: &Chart<'_>) -> Self {
        let left = chart.axis.x(item.start_ms);
        let right = chart.axis.x(item.end_ms.unwrap_or(chart.last_ms)).max(left + 4);
        let label = truncate_to_width(&item.full_label(), CHART_FONT_PX, MAX_LABEL_WIDTH);
        let mark = if item.result.is_some() { MARK_WIDTH + 3 } else { 0 };
        let width = mark + text_width(&label, CHART_FONT_PX) + 8;
        let (inner_left, inner_right) = chart.widest_visible_part(left, right);
        let is_inside = width <= inner_right - inner_left;
        // Beside the bar: to the right of it if there is room, otherwise to the left.
        let label_x = if is_inside {
            inner_left + 4
        } else if right + 5 + width <= WIDTH - 8 {
            right + 5
        } else {
            left - width
        };
        let extent = if is_inside { (left, right) } else { (left.min(label_x), right.max(label_x + width)) };
        Self { left, right, label, label_x, label_width: width, is_inside, extent }
    }

    fn draw(&self, item: &LaneItem, y: i32, out: &mut String) {
        let class = if item.has_ended { bar_class(item.result) } else { "bar open" };
        let duration = format_duration(item.end_ms.unwrap_or(item.start_ms) - item.start_ms);
        let state = if item.has_ended {
            format!("after {duration}")
        } else {
            "not ended in this recording".to_owned()
        };
        let _ = writeln!(
            out,
            r#"<rect class="{class}" x="{}" y="{y}" width="{}" height="{BAR_HEIGHT}" rx="2"><title>{}, {state}</title></rect>"#,
            self.left,
            self.right - self.left,
            escape_xml(&item.full_label())
        );
    }

    fn draw_label(&self, item: &LaneItem, y: i32, out: &mut String) {
        let on_bar = self.is_inside && item.has_ended;
        let mut x = self.label_x;
        if !self.is_inside {
            // Hides the lines behind the label.
            let _ = write!(
                out,
                r#"<rect class="paper" x="{}" y="{}" width="{}" height="{}"/>"#,
                x - 1,
                y + 1,
                self.label_width - 2,
                BAR_HEIGHT - 2
            );
        }
        if let Some(result) = item.result {
            draw_mark(result, x, y + BAR_HEIGHT / 2, on_bar, out);
            x += MARK_WIDTH + 3;
        }
        let class = if on_bar { "lane band-text" } else { "lane" };
        let _ = writeln!(
            out,
            r#"<text class="{class}" x="{x}" y="{}">{}</text>"#,
            y + 14,
            escape_xml(&self.label)
        );
    }
}
