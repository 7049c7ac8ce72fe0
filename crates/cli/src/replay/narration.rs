//! Narrates a recording in the terminal: prints the announcements that a listener would have heard, at the chosen speed.

use std::io::{self, Read, Write};

use aaep::Timestamp;
use aaep::json::{JsonKind, Tape};
use listen::{Announcement, AnnouncementKind, Phrases, Preferences, Subscriber, SubscriberLimits};
use seal::UnixMillis;

use super::playback_clock::PlaybackClock;
use crate::validate::item_reader::ItemReader;

#[derive(Default)]
pub(super) struct NarrationSummary {
    pub(super) events: u64,
    /// The line numbers of the first unreadable lines.
    pub(super) unreadable_lines: Vec<u64>,
    /// Whether the reader of the output has closed the pipe.
    pub(super) has_write_failed: bool,
}

/// Maximum number of unreadable lines that are listed.
const MAX_LISTED_LINES: usize = 10;

/// How long delayed announcements, such as that of a lasting state, are still printed after the last event, in milliseconds.
/// Questions whose deadline is later are not announced as expired, because the recording may not show whether they were
/// answered.
const TRAILING_WINDOW_MS: i64 = 30_000;

/// Narrates a recording. At any speed, the subscriber's clock shows the time in the recording.
pub(super) fn narrate(
    input: impl Read,
    preferences: Preferences,
    clock: &mut PlaybackClock,
    out: &mut impl Write,
) -> io::Result<NarrationSummary> {
    let mut narrator = RecordingNarrator {
        subscriber: Subscriber::new(preferences, SubscriberLimits::default()).for_replay(),
        now: None,
        summary: NarrationSummary::default(),
        out,
        clock,
    };
    let mut items = ItemReader::new(input);
    let mut tape = Tape::default();
    while let Some(item) = items.next()? {
        let text = item.bytes.as_deref().ok().and_then(|bytes| std::str::from_utf8(bytes).ok());
        let doc = text.and_then(|text| tape.read(text).ok());
        let Some(doc) = doc.filter(|doc| doc.root().kind() == JsonKind::Object) else {
            if narrator.summary.unreadable_lines.len() < MAX_LISTED_LINES {
                narrator.summary.unreadable_lines.push(item.line);
            }
            continue;
        };
        if doc.root().member("event_id").is_some() {
            narrator.summary.events += 1;
            let at = doc.root().member("timestamp").and_then(|at| Timestamp::parse_rfc3339(&at.text()?).ok());
            narrator.advance_to(at.map(|at| at.unix_millis()))?;
        }
        let now = narrator.now.unwrap_or_default();
        narrator.subscriber.receive(doc.source(), now);
        narrator.print_pending(now)?;
        if narrator.summary.has_write_failed {
            return Ok(narrator.summary);
        }
    }
    let end = narrator.now.unwrap_or_default();
    narrator.run_timers_until(end.saturating_add(TRAILING_WINDOW_MS))?;
    Ok(narrator.summary)
}

struct RecordingNarrator<'t, W> {
    subscriber: Subscriber,
    /// The time in the recording. It never goes back.
    now: Option<UnixMillis>,
    summary: NarrationSummary,
    out: &'t mut W,
    clock: &'t mut PlaybackClock,
}

impl<W: Write> RecordingNarrator<'_, W> {
    /// Advances to the time of the next event, and prints the announcements that are due before it.
    fn advance_to(&mut self, at: Option<UnixMillis>) -> io::Result<()> {
        let Some(at) = at else { return Ok(()) };
        if self.now.is_some() {
            self.run_timers_until(at)?;
        }
        let now = self.now.map_or(at, |now| now.max(at));
        self.now = Some(now);
        self.clock.wait_until(now);
        Ok(())
    }

    /// Prints the delayed announcements that are due by `end`, each at its time.
    fn run_timers_until(&mut self, end: UnixMillis) -> io::Result<()> {
        while let Some(due) = self.subscriber.next_deadline().filter(|due| *due <= end) {
            let before = self.now.unwrap_or(due);
            let due = due.max(before);
            self.now = Some(due);
            self.clock.wait_until(due);
            if !self.print_pending(due)? && self.subscriber.next_deadline().is_some_and(|next| next <= due) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Prints the pending announcements. Returns whether there were any.
    fn print_pending(&mut self, now: UnixMillis) -> io::Result<bool> {
        let mut printed_any = false;
        while let Some(announcement) = self.subscriber.next_announcement(now) {
            printed_any = true;
            let phrases = self.subscriber.phrases();
            print_announcement(self.out, &announcement, phrases, &mut self.summary.has_write_failed)?;
        }
        Ok(printed_any)
    }
}

pub(super) fn print_heading(out: &mut impl Write, name: &str) -> io::Result<()> {
    let text = format!("This is a recording: {name}. Its questions cannot be answered.");
    let english = Phrases::for_languages(&[]);
    print_announcement(out, &Announcement::new(AnnouncementKind::Notice, text), english, &mut false)
}

fn print_announcement(
    out: &mut impl Write,
    announcement: &Announcement,
    phrases: &Phrases,
    is_closed: &mut bool,
) -> io::Result<()> {
    let text: String = announcement.lines_in(phrases).flat_map(|line| [line, "\n".to_owned()]).collect();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            *is_closed = true;
            Ok(())
        }
        written => written,
    }
}
