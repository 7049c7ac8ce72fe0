//! The SVG diagram: a lifeline for each agent, an arrow for each message, and a band that shows the state.

use std::fmt::Write;

use asp::state_machine::{Role, State};

use super::{Trace, TraceEntry};
use crate::asp::narration;
use crate::output::{pluralize, printable};
use crate::svg_text::{escape_xml, escape_xml_lines, truncate, wrap};

const WIDTH: i32 = 1120;
const BAND_X: i32 = 24;
const BAND_WIDTH: i32 = 150;
const INVITER_X: i32 = 300;
const INVITED_X: i32 = 620;
const TEXT_X: i32 = 660;
const FIRST_ROW_Y: i32 = 96;
const ROW_HEIGHT: i32 = 44;
/// Maximum number of characters in a line of text.
const MAX_LINE_CHARS: usize = 66;

pub(super) fn draw(trace: &Trace) -> String {
    let rows = i32::try_from(trace.entries.len()).unwrap_or(i32::MAX / ROW_HEIGHT - 10);
    let height = FIRST_ROW_Y + rows * ROW_HEIGHT + 40;
    let mut out = String::new();
    let (steps, state) = (pluralize(trace.entries.len() as u64, "step"), trace.session.state());
    let status = if trace.session.outcome().is_some() { "ended in state" } else { "still open in state" };
    let title = format!("An ASP session with {steps}, {status} {state}");
    let _ = write!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-labelledby="title desc">
<title id="title">{title}</title>
<desc id="desc">{}</desc>
<style>
text {{ font: 14px system-ui, sans-serif; fill: #1b1b1f }} .soft {{ font-size: 12px; fill: #5a5a66 }}
.name {{ font-weight: 600 }} .bad {{ fill: #b00020 }} .paper {{ fill: #ffffff }} .tip {{ fill: #1b1b1f }} .tip.no {{ fill: #b00020 }}
.life {{ stroke: #b9b9c6; stroke-width: 2 }} .arrow {{ stroke: #1b1b1f; stroke-width: 1.6; fill: none }}
.arrow.no {{ stroke: #b00020; stroke-dasharray: 5 4 }}
@media (prefers-color-scheme: dark) {{
text, .tip {{ fill: #f2f2f5 }} .soft {{ fill: #b4b4c0 }} .bad, .tip.no {{ fill: #ff8a80 }} .paper {{ fill: #16161a }}
.life {{ stroke: #4a4a57 }} .arrow {{ stroke: #f2f2f5 }} .arrow.no {{ stroke: #ff8a80 }}
}}
.band text {{ fill: #16161a; font-size: 13px; font-weight: 600 }}
</style>
<defs>
<marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto"><path class="tip" d="M0 0 L10 5 L0 10 z"/></marker>
<marker id="tip-no" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto"><path class="tip no" d="M0 0 L10 5 L0 10 z"/></marker>
</defs>
<rect class="paper" width="100%" height="100%"/>
"#,
        // The text alternative, for people who cannot see the diagram.
        escape_xml_lines(&super::format_trace(trace))
    );
    for (role, x) in [(Role::Inviter, INVITER_X), (Role::Invited, INVITED_X)] {
        let agent = trace.session.party(role).agent.to_string();
        let _ = writeln!(out, r#"<text class="name" x="{x}" y="34" text-anchor="middle">{role}</text>"#);
        let _ = writeln!(
            out,
            r#"<text class="soft" x="{x}" y="54" text-anchor="middle">{}<title>{}</title></text>"#,
            escape_xml(&truncate(&agent, 44)),
            escape_xml(&agent)
        );
        let _ = writeln!(out, r#"<line class="life" x1="{x}" y1="66" x2="{x}" y2="{}"/>"#, height - 24);
    }
    let _ = writeln!(out, r#"<text class="name" x="{BAND_X}" y="34">state</text>"#);
    draw_state_band(&mut out, trace);
    for (entry, row) in trace.entries.iter().zip(0..) {
        draw_arrow(&mut out, entry, FIRST_ROW_Y + row * ROW_HEIGHT);
    }
    out.push_str("</svg>\n");
    out
}

/// Draws one box per period in a state. A box starts at the row of the message or timeout that changed the state.
fn draw_state_band(out: &mut String, trace: &Trace) {
    let mut top = 66;
    let mut state = trace.entries.first().map_or(State::Idle, |entry| entry.from);
    let mut periods = Vec::new();
    for (entry, row) in trace.entries.iter().zip(0..) {
        if entry.to != state {
            let y = FIRST_ROW_Y + row * ROW_HEIGHT;
            periods.push((state, top, y));
            (state, top) = (entry.to, y);
        }
    }
    let end = FIRST_ROW_Y + i32::try_from(trace.entries.len()).unwrap_or(0) * ROW_HEIGHT;
    periods.push((state, top, end.max(top + 26)));
    for (state, top, bottom) in periods {
        let (height, colour) = ((bottom - top - 2).max(2), colour(state));
        let _ = writeln!(
            out,
            r#"<g class="band"><rect x="{BAND_X}" y="{top}" width="{BAND_WIDTH}" height="{height}" rx="5" fill="{colour}"/>"#
        );
        if height >= 18 {
            let y = top + height / 2 + 5;
            let x = BAND_X + BAND_WIDTH / 2;
            let _ = writeln!(out, r#"<text x="{x}" y="{y}" text-anchor="middle">{state}</text>"#);
        }
        out.push_str("</g>\n");
    }
}

fn draw_arrow(out: &mut String, entry: &TraceEntry, y: i32) {
    let (class, tip) = if entry.fault.is_some() { ("arrow no", "tip-no") } else { ("arrow", "tip") };
    match entry.sender {
        Some(sender) => {
            let (from, to) = match sender {
                Role::Inviter => (INVITER_X, INVITED_X - 3),
                Role::Invited => (INVITED_X, INVITER_X + 3),
            };
            let _ = writeln!(
                out,
                r#"<line class="{class}" x1="{from}" y1="{y}" x2="{to}" y2="{y}" marker-end="url(#{tip})"/>"#
            );
        }
        None => {
            let _ = writeln!(
                out,
                r#"<line class="arrow no" x1="{INVITER_X}" y1="{y}" x2="{INVITED_X}" y2="{y}"/>"#
            );
        }
    }
    let middle = i32::midpoint(INVITER_X, INVITED_X);
    let label = escape_xml(&entry.label);
    let _ =
        writeln!(out, r#"<text class="name" x="{middle}" y="{}" text-anchor="middle">{label}</text>"#, y - 7);
    let _ = writeln!(
        out,
        r#"<text class="soft" x="{}" y="{}">{}</text>"#,
        INVITER_X - 108,
        y + 4,
        narration::format_clock(entry.at)
    );
    let (class, text) = match &entry.fault {
        Some(reason) => ("soft bad", format!("not allowed: {reason}")),
        None => ("soft", entry.text.clone()),
    };
    // `printable` can make the text longer, so it comes before `wrap`. The tooltip has the full text.
    let text = printable(&text);
    let lines = wrap(&text, MAX_LINE_CHARS, 2);
    let first_y = if lines.len() > 1 { y - 4 } else { y + 4 };
    let _ = write!(out, "<g><title>{}</title>", escape_xml(&text));
    for (line, index) in lines.iter().zip(0..) {
        let _ = write!(
            out,
            r#"<text class="{class}" x="{TEXT_X}" y="{}">{}</text>"#,
            first_y + index * 16,
            escape_xml(line)
        );
    }
    out.push_str("</g>\n");
}

fn colour(state: State) -> &'static str {
    match state {
        State::Idle => "#d7d7de",
        State::Invited => "#f3d48a",
        State::Introduced => "#f0e3a0",
        State::Conversing => "#a9d3f5",
        State::Agreeing => "#c9b8f2",
        State::Executing => "#a6e0b4",
        State::Escalated => "#f5b994",
        State::Closed => "#c3ccd6",
        State::Failed => "#f2a3a3",
    }
}
