//! The world of the exhaustive model: one book, what an onlooker notes beside it, and the laws.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

use aaep::consent::{By, Decided, Outcome};
use seal::UnixMillis;

use super::hub::*;

pub(crate) const TICK: i64 = 40_000;
/// When each question's time is over, if nobody asks for more.
pub(crate) const TIMEOUT: [i64; 2] = [70_000, 30_000];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Line {
    Open,
    LostAt(u8),
    Closed,
}

/// What an onlooker has noted of a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Note {
    pub(crate) asked: Option<u8>,
    pub(crate) extended: i64,
    pub(crate) resolved: Option<(bool, By)>,
    pub(crate) spent: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) book: Book,
    pub(crate) tick: u8,
    pub(crate) lines: [Line; 2],
    pub(crate) notes: [Note; 2],
    pub(crate) over: bool,
    pub(crate) crashed: Option<u8>,
    pub(crate) broken: BTreeSet<&'static str>,
}

impl World {
    pub(crate) fn key(&self) -> impl Hash + PartialEq + use<> {
        let stand = |n: usize| {
            let question = self.book.question(&token(mark(n)));
            question.map(|question| (question.status, question.deadline))
        };
        let noted = (self.tick, self.lines, self.notes, self.over, self.crashed, self.broken.clone());
        (noted, stand(0), stand(1), self.book.next_deadline())
    }

    pub(crate) fn now(&self) -> UnixMillis {
        T0 + i64::from(self.tick) * TICK
    }

    pub(crate) fn is_live(&self, who: usize) -> bool {
        match self.lines[who] {
            Line::Open => true,
            Line::LostAt(tick) => self.tick <= tick,
            Line::Closed => false,
        }
    }

    pub(crate) fn deadline(&self, n: usize) -> Option<UnixMillis> {
        let note = &self.notes[n];
        note.asked.map(|tick| T0 + i64::from(tick) * TICK + TIMEOUT[n] + note.extended)
    }

    pub(crate) fn is_open(&self, n: usize) -> bool {
        !self.over && self.notes[n].asked.is_some() && self.notes[n].resolved.is_none()
    }

    pub(crate) fn law(&mut self, law: &'static str, holds: bool) {
        if !holds {
            self.broken.insert(law);
        }
    }

    pub(crate) fn commit(&mut self, decided: Decided) {
        for outcome in decided.outcomes() {
            if let Outcome::Resolved(told) = outcome {
                let n = usize::from(told.token == token(mark(1)));
                let (accepted, again) = (told.is_accepted(), self.notes[n].resolved.is_some());
                let over = self.deadline(n).is_some_and(|deadline| self.now() >= deadline);
                self.law("a question is resolved once", !again);
                self.law("nothing irreversible on silence", n == 1 || !accepted || told.by == By::Reply);
                self.law("time is over when it is over", told.by != By::Timeout || over);
                let silent = matches!(told.by, By::Timeout | By::Closure | By::Unreachable);
                self.law("silence is the default", !silent || accepted == (n == 1));
                let withdrawn = matches!(told.by, By::Cancelled | By::Stopped);
                self.law("what is withdrawn is refused", !withdrawn || !accepted);
                self.notes[n].resolved = Some((accepted, told.by));
            }
        }
        self.over |= decided.session_over().is_some();
        self.book.commit(decided);
    }
}

impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.key().hash(hasher);
    }
}

pub(crate) fn mark(n: usize) -> u8 {
    [0xa0, 0xa1][n]
}
