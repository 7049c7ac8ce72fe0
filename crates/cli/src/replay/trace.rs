//! The state-machine trace: one line per step, followed by every rule that the step broke.

use std::fmt::Write as _;
use std::io::Write;

use super::timeline::{RuleViolation, TimelineEntry, format_duration, format_offset};

pub(super) fn format_entry(entry: &TimelineEntry) -> String {
    let session = entry.session.as_ref().map_or("recording", |session| session.0.as_str());
    let (time, lane) = (format_offset(entry.offset_ms), entry.lane.as_str());
    let agent = entry.agent.as_ref().map(|agent| format!("{agent}, ")).unwrap_or_default();
    let mut out = format!("{time} {session}, {agent}{lane}: {} (line {})\n", format_text(entry), entry.line);
    for violation in &entry.violations {
        let _ = writeln!(out, "{time} {session}, {}", format_violation(violation, entry.line));
    }
    out
}

/// Formats what happened, with the wait before it and the outcome of the question or hand-off that it resolves.
fn format_text(entry: &TimelineEntry) -> String {
    let wait = entry.wait_ms.map(|wait| format!("After {}: ", format_duration(wait))).unwrap_or_default();
    let outcome = entry.resolution.as_ref().and_then(|resolution| resolution.sentence.as_deref());
    format!("{wait}{}{}{}", entry.text, if outcome.is_some() { " " } else { "" }, outcome.unwrap_or_default())
}

/// Formats a rule violation, with its line in the recording.
pub(super) fn format_violation(violation: &RuleViolation, line: u64) -> String {
    format!("{}: {} {} (line {line})", violation.severity_label(), violation.rule, violation.message)
}

/// Formats a violation that is detected at the end of the recording, such as a session that is still open.
pub(super) fn format_unfinished(line: u64, violation: &RuleViolation) -> String {
    format!("at the end, {}\n", format_violation(violation, line))
}

/// Writes the text. Returns false if the reader has closed the pipe, which is not an error.
pub(super) fn write_unless_closed(out: &mut impl Write, text: &str) -> std::io::Result<bool> {
    match out.write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}
