//! The picture: for each session a column of time and lanes for its state, its tools, its output and its questions. Every
//! step is a row, so that a long silence takes no room and two steps in a millisecond do not lie on each other.

mod lanes;
mod session;

use std::collections::HashMap;
use std::fmt::Write;

use super::story::{Broken, Moment, Who};
use super::trace;
use crate::picture::{escape, escape_lines};
use crate::print::many;
use session::Sheet;

/// So many rows are drawn: more would be too much for who looks at it, and for what draws it.
const MOST_ROWS: usize = 2000;
const WIDTH: i32 = 1240;
/// The names of the session and of its lanes.
const HEADING: i32 = 76;
const TOP: i32 = 64;

/// A picture of a recording, in the making.
#[derive(Default)]
pub(super) struct Picture {
    /// The sessions in the order in which they began, and what belongs to none.
    sheets: Vec<(String, Sheet)>,
    places: HashMap<Option<Who>, usize>,
    /// The same in words, for those who do not see it.
    words: String,
    rows: usize,
    undrawn: u64,
    undrawn_errors: u64,
    errors: u64,
    warnings: u64,
}

impl Picture {
    pub(super) fn add(&mut self, moment: &Moment) {
        let errors = moment.broken.iter().filter(|broken| broken.is_error).count() as u64;
        self.errors += errors;
        self.warnings += moment.broken.len() as u64 - errors;
        let known = self.places.contains_key(&moment.session);
        let joins = self
            .places
            .get(&moment.session)
            .and_then(|place| self.sheets.get_mut(*place))
            .is_some_and(|(_, sheet)| sheet.join(moment));
        if joins {
            return;
        }
        if self.rows >= MOST_ROWS {
            self.undrawn += 1;
            self.undrawn_errors += errors;
            return;
        }
        self.rows += 1;
        self.words += &trace::lines(moment);
        if !known {
            let name =
                moment.session.as_ref().map_or("Listeners, and what belongs to no session", |who| &who.0);
            self.places.insert(moment.session.clone(), self.sheets.len());
            self.sheets.push((name.to_owned(), Sheet::default()));
        }
        if let Some((_, sheet)) = self.places.get(&moment.session).and_then(|at| self.sheets.get_mut(*at)) {
            sheet.add(moment);
        }
    }

    pub(super) fn draw(mut self, left: &[(u64, Broken)]) -> String {
        for (line, broken) in left {
            self.errors += u64::from(broken.is_error);
            self.words += &trace::left(*line, broken);
        }
        let notes = self.notes(left);
        let mut body = String::new();
        let mut y = TOP + 20 * i32::try_from(notes.len()).unwrap_or(0);
        for (note, at) in notes.iter().zip(0..) {
            let class = if note.1 { "bad" } else { "soft" };
            let _ = writeln!(
                body,
                r#"<text class="{class}" x="24" y="{}">{}</text>"#,
                TOP + 20 * at,
                escape(&crate::picture::short(&note.0, 170))
            );
        }
        for (name, sheet) in &self.sheets {
            y = sheet.draw(name, y, &mut body);
        }
        let height = y + 24;
        let sessions = self.places.keys().filter(|who| who.is_some()).count();
        let title = format!(
            "A recording of {}. {}",
            many(sessions as u64, "session"),
            match self.errors {
                0 => "No rule is broken.".to_owned(),
                errors => format!("{} in it.", many(errors, "broken rule")),
            }
        );
        let words = escape_lines(&self.words);
        let mut out = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-labelledby="title desc">
<title id="title">{title}</title>
<desc id="desc">{words}</desc>
{STYLE}
<rect class="paper" width="100%" height="100%"/>
<text class="title" x="24" y="36">{title}</text>
"#
        );
        out += &body;
        out += "</svg>\n";
        out
    }

    /// What stands above all sessions: what was left open, and what is not drawn. Whether it is bad.
    fn notes(&self, left: &[(u64, Broken)]) -> Vec<(String, bool)> {
        const MOST_NOTES: usize = 8;
        let mut notes: Vec<_> = left
            .iter()
            .take(MOST_NOTES)
            .map(|(line, broken)| (trace::left(*line, broken).trim_end().to_owned(), broken.is_error))
            .collect();
        if left.len() > MOST_NOTES {
            notes.push((format!("{} more like these are not shown.", left.len() - MOST_NOTES), false));
        }
        if self.warnings > 0 {
            let text =
                format!("{} besides. sayso replay --visualize shows them.", many(self.warnings, "warning"));
            notes.push((text, false));
        }
        if self.undrawn > 0 {
            let text = format!(
                "{} are not drawn, with {}. sayso replay --visualize shows them all.",
                many(self.undrawn, "more step"),
                many(self.undrawn_errors, "broken rule")
            );
            notes.push((text, self.undrawn_errors > 0));
        }
        notes
    }
}

/// Dark letters on a light ground, or the other way round where that is wished for; every contrast is 4.5 to 1 or better.
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
