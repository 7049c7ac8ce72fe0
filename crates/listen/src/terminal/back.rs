//! The connection is there again: what was said meanwhile follows, or nothing does, and what is still open is said.

use std::time::Duration;

use aaep::json::Tape;
use seal::UnixMillis;
use tokio::time::Instant;

use super::conversation::how_things_stand;
use crate::{Announcement, Ear, Kind, Phrases, Question};

/// It is caught up when nothing came for so long…
const QUIET: Duration = Duration::from_millis(1500);
/// …or after so long at most.
const LONGEST: Duration = Duration::from_secs(5);
/// So many questions are named one by one.
const FEW: usize = 3;

/// What comes after a return, until it is caught up.
#[derive(Debug)]
pub(super) struct Back {
    /// The subscription is the one that was there before: nothing is lost.
    resumed: bool,
    /// The questions that were open before.
    open: Vec<u32>,
    heard: bool,
    /// It was said that something follows, which it did.
    told: bool,
    quiet: Instant,
    longest: Instant,
}

impl Back {
    pub(super) fn new(resumed: bool, ear: &Ear) -> Self {
        let open = ear.questions().filter(|question| !question.is_answered).map(|question| question.number);
        let now = Instant::now();
        Self {
            resumed,
            open: open.collect(),
            heard: false,
            told: false,
            quiet: now + QUIET,
            longest: now + LONGEST,
        }
    }

    /// Something came.
    pub(super) fn hears(&mut self, text: &str) {
        self.heard = true;
        self.quiet = Instant::now() + QUIET;
        let mut tape = Tape::default();
        let kind = tape.read(text).ok().and_then(|doc| Some(doc.root().member("type")?.is("sayso:gap")));
        // Of a gap it is said what follows.
        self.told |= kind == Some(true);
    }

    pub(super) fn has_heard(&self) -> bool {
        self.heard
    }

    /// What goes in front of the first thing that is said.
    pub(super) fn leads(&mut self, phrases: &Phrases) -> Option<Announcement> {
        let text = if self.resumed { phrases.meanwhile_follows } else { phrases.now_follows };
        (!std::mem::replace(&mut self.told, true)).then(|| Announcement::own(Kind::Notice, text))
    }

    /// When it is caught up, if nothing more comes.
    pub(super) fn due(&self) -> Instant {
        self.quiet.min(self.longest)
    }

    /// It is caught up: that nothing was missed, or what holds, unless something was said; and what of before is still open.
    pub(super) fn ends(self, ear: &Ear, now: UnixMillis) -> Vec<Announcement> {
        let phrases = ear.phrases();
        let still = self.still_open(ear, now);
        let mut said = Vec::new();
        if !self.told {
            let text = match (self.resumed, self.heard) {
                (true, _) => phrases.nothing_meanwhile,
                (false, false) => phrases.nobody_at_work,
                (false, true) => phrases.now_follows,
            };
            said.push(Announcement::own(Kind::Notice, text));
        }
        // What came was known before, and a question that is open tells more than it.
        if !self.told && !self.resumed && self.heard && still.is_empty() {
            said.extend(how_things_stand(ear).map(|text| Announcement::own(Kind::Status, text)));
        }
        said.extend(still);
        said
    }

    /// The questions that were open before, and are.
    fn still_open(&self, ear: &Ear, now: UnixMillis) -> Vec<Announcement> {
        let phrases = ear.phrases();
        let still: Vec<&Question> = ear
            .questions()
            .filter(|question| !question.is_answered && question.is_sure())
            .filter(|question| self.open.contains(&question.number))
            .collect();
        if still.len() > FEW {
            return vec![Announcement::own(Kind::Ask, phrases.several_still_open(still.len()))];
        }
        // They name no question by its number: with `--auto` it would be answered again.
        let told = still.into_iter().map(|question| {
            let left = ear.time_left(question.number, now).unwrap_or_default();
            Announcement::own(Kind::Ask, phrases.still_open(question.number, &question.agent, &left))
        });
        told.collect()
    }
}
