//! Announcements that wait for a voice.

use std::collections::VecDeque;

use aaep::event::Urgency;

use crate::{Announcement, Kind};

/// Announcements in the order in which they should be said: the critical first, then the others as they came. What is said in
/// the background is replaced by its successor of the same sort.
///
/// Nothing critical is lost; only of a flood that nobody could hear, more than five times what is kept of the rest, the count is
/// said instead. Of the rest, what does not fit is counted, and the count is said.
///
/// ```
/// use listen::{Announcement, Kind, Queue};
/// let mut queue = Queue::new(10);
/// queue.push(Announcement::own(Kind::Notice, "Connected."));
/// assert_eq!(queue.take().unwrap().text, "Connected.");
/// assert!(queue.take().is_none());
/// ```
#[derive(Debug)]
pub struct Queue {
    critical: VecDeque<Announcement>,
    others: VecDeque<Announcement>,
    left_out: u64,
    urgent_left_out: u64,
    limit: usize,
}

/// So many times as many critical announcements are kept as others.
const URGENT: usize = 5;

impl Queue {
    /// One that keeps so many announcements.
    pub fn new(limit: usize) -> Self {
        Self {
            critical: VecDeque::new(),
            others: VecDeque::new(),
            left_out: 0,
            urgent_left_out: 0,
            limit: limit.max(1),
        }
    }

    /// Takes one in.
    pub fn push(&mut self, announcement: Announcement) {
        if announcement.is_critical() {
            if self.critical.len() >= self.limit.saturating_mul(URGENT) {
                self.urgent_left_out += 1;
            } else {
                self.critical.push_back(announcement);
            }
            return;
        }
        if announcement.urgency == Urgency::Background {
            let same = |earlier: &Announcement| {
                earlier.urgency == Urgency::Background
                    && earlier.kind == announcement.kind
                    && earlier.session == announcement.session
            };
            self.others.retain(|earlier| !same(earlier));
        }
        if self.others.len() >= self.limit {
            self.others.pop_front();
            self.left_out += 1;
        }
        self.others.push_back(announcement);
    }

    /// Whether something waits that should cut in.
    pub fn is_urgent(&self) -> bool {
        !self.critical.is_empty()
    }

    /// The next one to be said.
    pub fn take(&mut self) -> Option<Announcement> {
        if let Some(critical) = self.critical.pop_front() {
            return Some(critical);
        }
        if self.urgent_left_out > 0 {
            let count = std::mem::take(&mut self.urgent_left_out);
            let text = format!(
                "{count} more urgent announcements came than can be said. Ask for the status to hear what is open."
            );
            let mut flood = Announcement::own(Kind::Error, text);
            flood.urgency = Urgency::Critical;
            return Some(flood);
        }
        if self.left_out > 0 {
            let count = std::mem::take(&mut self.left_out);
            let text = match count {
                1 => {
                    "One earlier announcement was not said, because more came than could be said.".to_owned()
                }
                _ => format!(
                    "{count} earlier announcements were not said, because more came than could be said."
                ),
            };
            return Some(Announcement::own(Kind::Notice, text));
        }
        self.others.pop_front()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.critical.len() + self.others.len() + usize::from(self.left_out > 0)
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
