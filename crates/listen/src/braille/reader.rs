//! What a braille display shows, and what its keys do. Opens no connection and reads no clock.
//!
//! The person reads announcements one after another. Nothing moves under the fingers, except when a question arrives. A
//! question is answered with two routing keys: one above the answer on the question's last line, and one above the same answer on the
//! line that then appears, where the answers are in other places.

use std::collections::VecDeque;

use seal::UnixMillis;

use super::cells::{self, CellLine};
use crate::Phrases;

/// Number of announcements that are kept for reading.
pub(super) const MAX_ANNOUNCEMENTS: usize = 1000;
/// How long the second key of an answer is accepted after the first one, in milliseconds.
pub(super) const CONFIRM_WITHIN_MS: i64 = 30_000;

/// The size of a display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DisplaySize {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// A key of a display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DisplayKey {
    Forward,
    Back,
    /// The routing key above a cell. Cells are counted from 0, row by row.
    Route(usize),
}

/// A question as the display shows it.
#[derive(Clone, Debug)]
pub(crate) struct BrailleQuestion {
    pub(crate) number: u32,
    pub(crate) paragraphs: Vec<String>,
    /// The answers that can be given with keys. If there are none, the question has no answer line.
    pub(crate) answers: Vec<BrailleAnswer>,
    /// The hint on the answer line that says what to press.
    pub(crate) hint: String,
    /// The word that moves the answers to other places on the second line.
    pub(crate) cancel: String,
}

/// An answer that can be given with keys.
#[derive(Clone, Debug)]
pub(crate) struct BrailleAnswer {
    /// The word that is shown.
    pub(crate) label: String,
    /// What a person would type to give this answer.
    pub(crate) command: String,
    /// The hint on the second line that says what to press.
    pub(crate) confirm_hint: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum View {
    Announcements,
    Question {
        number: u32,
        line: usize,
    },
    /// The first key of an answer was pressed.
    Confirmation {
        number: u32,
        answer: usize,
        pressed_cell: usize,
        pressed_at: UnixMillis,
        line: usize,
    },
}

/// The announcements and open questions, and the part of them that is shown.
pub(super) struct BrailleReader {
    size: DisplaySize,
    announcements: VecDeque<Vec<String>>,
    /// The announcement that is being read. Equal to the number of announcements if all were read.
    current: usize,
    /// The first line of it that is shown.
    line: usize,
    /// Number of unread announcements that were dropped.
    dropped: u64,
    /// The open questions, oldest first.
    questions: Vec<BrailleQuestion>,
    view: View,
    phrases: &'static Phrases,
}

impl BrailleReader {
    pub(super) fn new(phrases: &'static Phrases) -> Self {
        Self {
            size: DisplaySize { columns: 40, rows: 1 },
            announcements: VecDeque::new(),
            current: 0,
            line: 0,
            dropped: 0,
            questions: Vec::new(),
            view: View::Announcements,
            phrases,
        }
    }

    /// Sets the size of the display. What is being read starts again at its first line.
    pub(super) fn set_size(&mut self, size: DisplaySize) {
        if self.size == size {
            return;
        }
        self.size = size;
        self.line = 0;
        if let View::Question { number, .. } | View::Confirmation { number, .. } = self.view {
            self.view = View::Question { number, line: 0 };
        }
    }

    /// Adds an announcement. It is shown at once only if everything before it was read and no question is open.
    pub(super) fn add_announcement(&mut self, paragraphs: Vec<String>) {
        self.announcements.push_back(paragraphs);
        if self.announcements.len() > MAX_ANNOUNCEMENTS {
            self.announcements.pop_front();
            if self.current == 0 {
                self.dropped += 1;
                self.line = 0;
            }
            self.current = self.current.saturating_sub(1);
        }
    }

    /// Shows a question now. If it was open already, its text is replaced.
    pub(super) fn open_question(&mut self, question: BrailleQuestion) {
        self.questions.retain(|open| open.number != question.number);
        self.view = View::Question { number: question.number, line: 0 };
        self.questions.push(question);
    }

    /// Removes a question. If it was shown, the newest other question follows, or the announcement that was being read.
    pub(super) fn close_question(&mut self, number: u32) {
        self.questions.retain(|open| open.number != number);
        let shown = match self.view {
            View::Announcements => None,
            View::Question { number, .. } | View::Confirmation { number, .. } => Some(number),
        };
        if shown == Some(number) {
            self.show_newest_question();
        }
    }

    /// Handles a key. Returns the command that a person would have typed instead, if the key completes an answer.
    pub(super) fn press(&mut self, key: DisplayKey, now: UnixMillis) -> Option<String> {
        match key {
            DisplayKey::Forward => self.move_forward(),
            DisplayKey::Back => self.move_back(),
            DisplayKey::Route(cell) => return self.route(cell, now),
        }
        None
    }

    /// Returns the text of the display, with one character per cell.
    pub(super) fn window(&self) -> String {
        let (lines, first) = self.shown_lines();
        let DisplaySize { columns, rows } = self.size;
        let mut text = String::new();
        for row in 0..rows {
            let line = lines.get(first + row).map(Vec::as_slice).unwrap_or_default();
            text.extend(line.iter().map(|cell| cell.character));
            text.extend(std::iter::repeat_n(' ', columns.saturating_sub(line.len())));
        }
        text
    }

    fn move_forward(&mut self) {
        let (lines, first) = self.shown_lines();
        let next = Some(first + self.size.rows).filter(|next| *next < lines.len());
        match (self.view, next) {
            (View::Announcements, Some(next)) => self.line = next,
            (View::Announcements, None) => {
                self.current = (self.current + 1).min(self.announcements.len());
                self.line = 0;
                self.dropped = 0;
                if self.has_read_all() {
                    self.show_newest_question();
                }
            }
            (View::Question { number, .. }, Some(line)) => self.view = View::Question { number, line },
            (View::Question { number, .. }, None) => {
                let at = self.questions.iter().position(|open| open.number == number).unwrap_or(0);
                match at.checked_sub(1).and_then(|older| self.questions.get(older)) {
                    Some(older) => self.view = View::Question { number: older.number, line: 0 },
                    None if self.has_read_all() => self.show_newest_question(),
                    None => self.view = View::Announcements,
                }
            }
            (View::Confirmation { number, answer, pressed_cell, pressed_at, .. }, Some(line)) => {
                self.view = View::Confirmation { number, answer, pressed_cell, pressed_at, line };
            }
            (View::Confirmation { number, .. }, None) => self.cancel_answer(number),
        }
    }

    fn move_back(&mut self) {
        let rows = self.size.rows;
        match &mut self.view {
            View::Question { line, .. } if *line > 0 => *line = line.saturating_sub(rows),
            View::Confirmation { number, .. } => {
                let number = *number;
                self.cancel_answer(number);
            }
            View::Announcements if self.line > 0 => self.line = self.line.saturating_sub(rows),
            View::Announcements | View::Question { .. } => {
                let Some(previous) = self.current.checked_sub(1) else { return };
                self.view = View::Announcements;
                self.current = previous;
                self.line = last_window(self.announcement_lines().len(), rows);
            }
        }
    }

    fn route(&mut self, cell: usize, now: UnixMillis) -> Option<String> {
        let DisplaySize { columns, .. } = self.size;
        let (lines, first) = self.shown_lines();
        let line = lines.get(first + cell / columns.max(1))?;
        let selected = line.get(cell % columns.max(1)).and_then(|cell| cell.answer);
        match self.view {
            View::Announcements => None,
            View::Question { number, .. } => {
                let answer = selected?;
                self.view =
                    View::Confirmation { number, answer, pressed_cell: cell, pressed_at: now, line: 0 };
                None
            }
            View::Confirmation { number, answer, pressed_cell, pressed_at, .. } => {
                let is_confirmed = selected == Some(answer)
                    && cell != pressed_cell
                    && (0..=CONFIRM_WITHIN_MS).contains(&now.millis_since(pressed_at));
                self.cancel_answer(number);
                let question = self.questions.iter().find(|open| open.number == number)?;
                question.answers.get(answer).filter(|_| is_confirmed).map(|answer| answer.command.clone())
            }
        }
    }

    /// Returns to the answer line of a question.
    fn cancel_answer(&mut self, number: u32) {
        self.view = View::Question { number, line: 0 };
        let question = self.questions.iter().find(|open| open.number == number);
        let line = question.map_or(0, |question| wrap_all(&question.paragraphs, self.size.columns).len());
        self.view = View::Question { number, line };
    }

    fn show_newest_question(&mut self) {
        self.view = match self.questions.last() {
            Some(question) => View::Question { number: question.number, line: 0 },
            None => View::Announcements,
        };
    }

    fn has_read_all(&self) -> bool {
        self.current >= self.announcements.len()
    }

    /// Returns all lines of what is being read, and the position of the first one that is shown.
    fn shown_lines(&self) -> (Vec<CellLine>, usize) {
        let find = |number| self.questions.iter().find(|open| open.number == number);
        match self.view {
            View::Announcements => (self.announcement_lines(), self.line),
            View::Question { number, line } => {
                (find(number).map_or_else(Vec::new, |question| self.question_lines(question)), line)
            }
            View::Confirmation { number, answer, line, .. } => (
                find(number).map_or_else(Vec::new, |question| self.confirmation_lines(question, answer)),
                line,
            ),
        }
    }

    fn announcement_lines(&self) -> Vec<CellLine> {
        let Some(announcement) = self.announcements.get(self.current) else { return Vec::new() };
        let mut lines = Vec::new();
        if self.dropped > 0 {
            let notice = match self.dropped {
                1 => self.phrases.one_skipped.to_owned(),
                several => self.phrases.several_skipped(several),
            };
            lines.extend(cells::wrap(&cells::cells_of(&notice, None), self.size.columns));
        }
        lines.extend(wrap_all(announcement, self.size.columns));
        lines
    }

    fn question_lines(&self, question: &BrailleQuestion) -> Vec<CellLine> {
        let mut lines = wrap_all(&question.paragraphs, self.size.columns);
        if !question.answers.is_empty() {
            let cells = answer_cells("", &question.answers, &question.hint);
            lines.extend(cells::wrap(&cells, self.size.columns));
        }
        lines
    }

    fn confirmation_lines(&self, question: &BrailleQuestion, answer: usize) -> Vec<CellLine> {
        let hint = question.answers.get(answer).map_or("", |answer| answer.confirm_hint.as_str());
        cells::wrap(&answer_cells(&question.cancel, &question.answers, hint), self.size.columns)
    }
}

fn wrap_all(paragraphs: &[String], columns: usize) -> Vec<CellLine> {
    paragraphs.iter().flat_map(|text| cells::wrap(&cells::cells_of(text, None), columns)).collect()
}

/// Returns the cells of a line with answers: a text, the answers, and a hint.
fn answer_cells(before: &str, answers: &[BrailleAnswer], hint: &str) -> CellLine {
    let mut line = cells::cells_of(before, None);
    for (position, answer) in answers.iter().enumerate() {
        line.extend(cells::cells_of(" ", None));
        line.extend(cells::cells_of(&answer.label, Some(position)));
    }
    line.extend(cells::cells_of(&format!(" {hint}"), None));
    line
}

/// Returns the first line of the last window, if windows are counted from the first line.
fn last_window(lines: usize, rows: usize) -> usize {
    lines.saturating_sub(1) / rows.max(1) * rows
}
