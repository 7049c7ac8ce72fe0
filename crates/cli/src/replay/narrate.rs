//! A recording in the terminal: what a listener would have heard, when it would have heard it.

use std::io::{self, Read, Write};

use aaep::Timestamp;
use aaep::json::{Kind, Tape};
use listen::{Announcement, Ear, Kind as Word, Limits, Tastes};
use seal::UnixMillis;

use super::pace::Clock;
use crate::validate::items::Items;

#[derive(Default)]
pub(super) struct Heard {
    pub(super) events: u64,
    /// Lines that could not be read, the first of them.
    pub(super) unread: Vec<u64>,
    /// The one who listened has gone.
    pub(super) deaf: bool,
}

/// So many lines that could not be read are named.
const NAMED: usize = 10;

/// After the last event, what was held is said if it comes within so long: changes of state that last, not the times of
/// questions, of which the recording says nothing.
const AFTER: i64 = 30_000;

/// Tells a recording. The ear's time is the recording's, whatever the pace.
pub(super) fn tell(
    input: impl Read,
    tastes: Tastes,
    clock: &mut Clock,
    out: &mut impl Write,
) -> io::Result<Heard> {
    let mut teller = Teller {
        ear: Ear::new(tastes, Limits::default()).of_history(),
        now: None,
        heard: Heard::default(),
        out,
        clock,
    };
    let mut items = Items::new(input);
    let mut tape = Tape::default();
    while let Some(item) = items.next()? {
        let text = item.bytes.as_deref().ok().and_then(|bytes| std::str::from_utf8(bytes).ok());
        let doc = text.and_then(|text| tape.read(text).ok());
        let Some(doc) = doc.filter(|doc| doc.root().kind() == Kind::Object) else {
            if teller.heard.unread.len() < NAMED {
                teller.heard.unread.push(item.line);
            }
            continue;
        };
        if doc.root().member("event_id").is_some() {
            teller.heard.events += 1;
            let at = doc.root().member("timestamp").and_then(|at| Timestamp::parse_rfc3339(&at.text()?).ok());
            teller.go_on(at.map(|at| at.unix_millis()))?;
        }
        let now = teller.now.unwrap_or_default();
        teller.ear.hear(doc.source(), now);
        teller.drain(now)?;
        if teller.heard.deaf {
            return Ok(teller.heard);
        }
    }
    let end = teller.now.unwrap_or_default();
    teller.wake_until(end.saturating_add(AFTER))?;
    Ok(teller.heard)
}

struct Teller<'t, W> {
    ear: Ear,
    /// The time of the recording. A clock that went back does not take it along.
    now: Option<UnixMillis>,
    heard: Heard,
    out: &'t mut W,
    clock: &'t mut Clock,
}

impl<W: Write> Teller<'_, W> {
    /// To the time of the next event, through all that was to be said before.
    fn go_on(&mut self, at: Option<UnixMillis>) -> io::Result<()> {
        let Some(at) = at else { return Ok(()) };
        if self.now.is_some() {
            self.wake_until(at)?;
        }
        let now = self.now.map_or(at, |now| now.max(at));
        self.now = Some(now);
        self.clock.wait_until(now);
        Ok(())
    }

    /// Says what was held until it was sure, each thing at its time.
    fn wake_until(&mut self, at: UnixMillis) -> io::Result<()> {
        while let Some(due) = self.ear.next_deadline().filter(|due| *due <= at) {
            let before = self.now.unwrap_or(due);
            let due = due.max(before);
            self.now = Some(due);
            self.clock.wait_until(due);
            if !self.drain(due)? && self.ear.next_deadline().is_some_and(|next| next <= due) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Says what there is to say; tells whether there was anything.
    fn drain(&mut self, now: UnixMillis) -> io::Result<bool> {
        let mut any = false;
        while let Some(announcement) = self.ear.next(now) {
            any = true;
            say(self.out, &announcement, &mut self.heard.deaf)?;
        }
        Ok(any)
    }
}

pub(super) fn preface(out: &mut impl Write, name: &str) -> io::Result<()> {
    let text = format!("This is a recording, {name}. Its questions are history: they cannot be answered.");
    say(out, &Announcement::own(Word::Notice, text), &mut false)
}

fn say(out: &mut impl Write, announcement: &Announcement, deaf: &mut bool) -> io::Result<()> {
    let text: String = announcement.lines().flat_map(|line| [line, "\n".to_owned()]).collect();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            *deaf = true;
            Ok(())
        }
        written => written,
    }
}
