//! The state-machine trace: a line a step, and under it every rule that the step broke.

use std::fmt::Write as _;
use std::io::Write;

use super::story::{Broken, Moment, clock};

pub(super) fn lines(moment: &Moment) -> String {
    let who = moment.session.as_ref().map_or("recording", |who| who.0.as_str());
    let (time, lane) = (clock(moment.at), moment.lane.word());
    let outcome = moment.outcome.as_ref().map(|outcome| format!(" {outcome}")).unwrap_or_default();
    let mut out = format!("{time} {who}, {lane}: {}{outcome} (line {})\n", moment.text, moment.line);
    for broken in &moment.broken {
        let _ = writeln!(out, "{time} {who}, {}", rule(broken, moment.line));
    }
    out
}

/// A rule that does not hold, with the line where that shows.
pub(super) fn rule(broken: &Broken, line: u64) -> String {
    format!("{}: {} {} (line {line})", broken.word(), broken.rule, broken.words)
}

/// The lines of what was left open at the end of the recording.
pub(super) fn left(line: u64, broken: &Broken) -> String {
    format!("at the end, {}\n", rule(broken, line))
}

/// Prints; whoever has heard enough is no failure.
pub(super) fn print(out: &mut impl Write, text: &str) -> std::io::Result<bool> {
    match out.write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}
