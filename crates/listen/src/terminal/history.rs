//! Earlier announcements, for the commands `repeat`, `last` and `history`.

use std::collections::VecDeque;

use seal::UnixMillis;

use crate::{Announcement, AnnouncementKind, AnnouncementText, Phrases, SubscriberLimits};

/// The latest announcements, the oldest first.
#[derive(Debug)]
pub(super) struct History {
    entries: VecDeque<(UnixMillis, Announcement)>,
    /// The size of all texts, in bytes.
    bytes: usize,
    max_entries: usize,
    max_bytes: usize,
}

impl History {
    pub(super) fn new(limits: &SubscriberLimits) -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            max_entries: limits.history,
            max_bytes: limits.history_bytes,
        }
    }

    /// Adds an announcement, and forgets the oldest ones beyond the limits.
    pub(super) fn record(&mut self, announcement: &Announcement, at: UnixMillis) {
        self.bytes += announcement.text.len();
        self.entries.push_back((at, announcement.clone()));
        while self.entries.len() > self.max_entries || self.bytes > self.max_bytes {
            let Some((_, oldest)) = self.entries.pop_front() else { return };
            self.bytes -= oldest.text.len();
        }
    }

    /// Returns the latest announcement.
    pub(super) fn last(&self) -> Option<&Announcement> {
        self.entries.back().map(|(_, announcement)| announcement)
    }

    /// Returns the latest announcements with their times and labels, the oldest first.
    pub(super) fn recall(&self, count: usize, phrases: &Phrases) -> Announcement {
        let mut text = AnnouncementText::default();
        for (at, announcement) in self.entries.iter().skip(self.entries.len().saturating_sub(count)) {
            let mut entry = announcement.text.clone();
            entry.prepend(&format!("{}, {}: ", local_time(*at), phrases.kind_label(announcement.kind)));
            text.push_line(&entry);
        }
        if text.is_empty() {
            text = phrases.nothing_announced.into();
        }
        Announcement::new(AnnouncementKind::Status, text)
    }
}

/// Formats a time of day in the local time zone, or in UTC if that is not known.
pub(super) fn local_time(at: UnixMillis) -> String {
    let time = jiff::Timestamp::from_millisecond(at.get()).unwrap_or_default();
    time.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_forgets_the_oldest_announcements_beyond_its_limits() {
        let recalled = |history: usize, history_bytes: usize| {
            let mut all =
                History::new(&SubscriberLimits { history, history_bytes, ..SubscriberLimits::default() });
            for number in 0..10 {
                let announcement = Announcement::new(AnnouncementKind::Agent, format!("Text {number}."));
                all.record(&announcement, UnixMillis::new(0));
            }
            let text = all.recall(100, Phrases::for_languages(&[])).text.to_string();
            text.lines()
                .map(|line| line.split_once(", agent: Text ").unwrap().1.to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(recalled(3, 1000), ["7.", "8.", "9."]);
        assert_eq!(recalled(100, 15), ["8.", "9."]);
        assert_eq!(recalled(100, 1000).len(), 10);
    }
}
