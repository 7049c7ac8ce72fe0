//! A queue of announcements that wait for speech.

use std::collections::VecDeque;

use aaep::event::Urgency;

use crate::{Announcement, AnnouncementKind, AnnouncementText, Phrases};

/// A priority queue of announcements: critical ones first, then what the person requested, then the others in order of arrival.
/// A background announcement replaces an earlier one of the same kind and session. The agent's text, a question and the end of a session
/// replace the waiting steps of their session. If a question is closed before it was spoken,
/// its first line and its outcome are merged into one announcement.
///
/// When the queue is full, it drops announcements and announces how many it dropped. Its capacity for critical announcements is
/// five times as large.
///
/// ```
/// use listen::{Announcement, AnnouncementKind, AnnouncementQueue};
/// let mut queue = AnnouncementQueue::new(10);
/// queue.push(Announcement::new(AnnouncementKind::Notice, "Connected."));
/// assert_eq!(queue.pop().unwrap().text, "Connected.");
/// assert!(queue.pop().is_none());
/// ```
#[derive(Debug)]
pub struct AnnouncementQueue {
    critical: VecDeque<Announcement>,
    requested: VecDeque<Announcement>,
    regular: VecDeque<Announcement>,
    dropped_count: u64,
    dropped_critical_count: u64,
    capacity: usize,
    phrases: &'static Phrases,
}

/// Capacity for critical announcements, as a multiple of the capacity for the others.
const CRITICAL_CAPACITY_FACTOR: usize = 5;

impl AnnouncementQueue {
    /// Creates a queue with this capacity.
    pub fn new(capacity: usize) -> Self {
        Self {
            critical: VecDeque::new(),
            requested: VecDeque::new(),
            regular: VecDeque::new(),
            dropped_count: 0,
            dropped_critical_count: 0,
            capacity: capacity.max(1),
            phrases: Phrases::for_languages(&[]),
        }
    }

    /// Sets the language of the queue's own announcements.
    #[must_use]
    pub fn with_phrases(mut self, phrases: &'static Phrases) -> Self {
        self.phrases = phrases;
        self
    }

    /// Adds an announcement.
    pub fn push(&mut self, mut announcement: Announcement) {
        if announcement.kind == AnnouncementKind::Answer
            && let Some(number) = announcement.question_number
            && let Some(ask) = self.remove_question(number)
        {
            announcement.text = AnnouncementText::from_lines(&[ask.text.first_line(), announcement.text]);
            announcement.language = ask.language;
        }
        if announcement.supersedes_steps() && announcement.session_id.is_some() {
            self.regular
                .retain(|earlier| !(earlier.is_step && earlier.session_id == announcement.session_id));
        }
        if announcement.is_critical() {
            if self.critical.len() >= self.capacity.saturating_mul(CRITICAL_CAPACITY_FACTOR) {
                self.dropped_critical_count += 1;
            } else {
                self.critical.push_back(announcement);
            }
            return;
        }
        if announcement.urgency == Urgency::Background {
            let is_replaced = |earlier: &Announcement| {
                earlier.urgency == Urgency::Background
                    && earlier.kind == announcement.kind
                    && earlier.session_id == announcement.session_id
            };
            self.regular.retain(|earlier| !is_replaced(earlier));
        }
        if self.regular.len() >= self.capacity {
            self.regular.pop_front();
            self.dropped_count += 1;
        }
        self.regular.push_back(announcement);
    }

    /// Adds an announcement that the person requested, in front of the regular ones.
    pub fn push_requested(&mut self, announcement: Announcement) {
        if self.requested.len() >= self.capacity {
            self.requested.pop_front();
            self.dropped_count += 1;
        }
        self.requested.push_back(announcement);
    }

    /// Puts an interrupted announcement back, in front of the other critical or regular ones.
    pub fn requeue(&mut self, announcement: Announcement) {
        if announcement.is_critical() {
            self.critical.push_front(announcement);
        } else {
            self.regular.push_front(announcement);
        }
    }

    /// Removes a closed or answered question from the queue. Returns its announcement if it was still waiting.
    pub fn remove_question(&mut self, question: u32) -> Option<Announcement> {
        let is_ask = |announcement: &Announcement| {
            announcement.kind == AnnouncementKind::Ask && announcement.question_number == Some(question)
        };
        let ask = self.critical.iter().find(|announcement| is_ask(announcement)).cloned();
        for queue in [&mut self.critical, &mut self.requested, &mut self.regular] {
            queue.retain(|announcement| !is_ask(announcement));
        }
        ask
    }

    /// Removes all announcements that are not critical. Returns how many were removed now, or dropped before without a notice.
    pub fn clear_noncritical(&mut self) -> u64 {
        let removed_count = (self.requested.len() + self.regular.len()) as u64 + self.dropped_count;
        self.requested.clear();
        self.regular.clear();
        self.dropped_count = 0;
        removed_count
    }

    /// Whether a critical announcement is waiting.
    pub fn has_critical(&self) -> bool {
        !self.critical.is_empty()
    }

    /// Removes and returns the next announcement.
    pub fn pop(&mut self) -> Option<Announcement> {
        if let Some(critical) = self.critical.pop_front() {
            return Some(critical);
        }
        if self.dropped_critical_count > 0 {
            let count = std::mem::take(&mut self.dropped_critical_count);
            let text = self.phrases.urgent_skipped(count);
            let mut notice = Announcement::new(AnnouncementKind::Error, text);
            notice.urgency = Urgency::Critical;
            return Some(notice);
        }
        if let Some(requested) = self.requested.pop_front() {
            return Some(requested);
        }
        if self.dropped_count > 0 {
            let count = std::mem::take(&mut self.dropped_count);
            let text = match count {
                1 => self.phrases.one_skipped.to_owned(),
                _ => self.phrases.several_skipped(count),
            };
            return Some(Announcement::new(AnnouncementKind::Notice, text));
        }
        self.regular.pop_front()
    }

    /// Number of waiting announcements.
    pub fn len(&self) -> usize {
        self.critical.len()
            + self.requested.len()
            + self.regular.len()
            + usize::from(self.dropped_count > 0)
            + usize::from(self.dropped_critical_count > 0)
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announcement(kind: AnnouncementKind, urgency: Urgency, text: &str) -> Announcement {
        let mut announcement = Announcement::new(kind, text);
        announcement.urgency = urgency;
        announcement
    }

    fn drain(queue: &mut AnnouncementQueue) -> Vec<String> {
        std::iter::from_fn(|| queue.pop()).map(|announcement| announcement.text.to_string()).collect()
    }

    #[test]
    fn critical_announcements_come_first_and_background_ones_are_replaced() {
        let mut queue = AnnouncementQueue::new(10);
        queue.push(announcement(AnnouncementKind::Agent, Urgency::Normal, "one"));
        queue.push(announcement(AnnouncementKind::Progress, Urgency::Background, "10 percent"));
        queue.push(announcement(AnnouncementKind::Ask, Urgency::Critical, "may I"));
        queue.push(announcement(AnnouncementKind::Progress, Urgency::Background, "20 percent"));
        queue.push(announcement(AnnouncementKind::Error, Urgency::Critical, "failed"));
        assert!(queue.has_critical());
        assert_eq!(drain(&mut queue), ["may I", "failed", "one", "20 percent"]);
        assert!(queue.is_empty());
    }

    #[test]
    fn announcements_beyond_the_capacity_are_dropped_and_counted() {
        let mut queue = AnnouncementQueue::new(2);
        for text in ["one", "two", "three", "four", "five"] {
            queue.push(announcement(AnnouncementKind::Agent, Urgency::Normal, text));
        }
        let skipped = "3 earlier messages were skipped, because too many came at once.";
        assert_eq!(drain(&mut queue), [skipped, "four", "five"]);
        for number in 0..15 {
            queue.push(announcement(AnnouncementKind::Error, Urgency::Critical, &number.to_string()));
        }
        let spoken = drain(&mut queue);
        assert_eq!(spoken.len(), 11);
        assert!(spoken.last().is_some_and(|last| last.starts_with("5 urgent messages could not be spoken.")));
    }

    #[test]
    fn a_question_closed_before_it_was_spoken_is_merged_with_its_outcome() {
        let mut queue = AnnouncementQueue::new(2);
        for (kind, urgency, number) in [
            (AnnouncementKind::Ask, Urgency::Critical, 1),
            (AnnouncementKind::Ask, Urgency::Critical, 2),
            (AnnouncementKind::Answer, Urgency::Normal, 1),
        ] {
            let mut announcement = announcement(kind, urgency, &format!("{kind:?} {number}"));
            announcement.question_number = Some(number);
            queue.push(announcement);
        }
        assert_eq!(drain(&mut queue), ["Ask 2", "Ask 1\nAnswer 1"]);
    }

    #[test]
    fn requested_and_interrupted_announcements_come_before_regular_ones() {
        let mut queue = AnnouncementQueue::new(2);
        queue.push(announcement(AnnouncementKind::Agent, Urgency::Normal, "one"));
        queue.requeue(announcement(AnnouncementKind::Agent, Urgency::Normal, "cut off"));
        queue.push(announcement(AnnouncementKind::Error, Urgency::Critical, "failed"));
        for text in ["help", "status", "repeat"] {
            queue.push_requested(announcement(AnnouncementKind::Status, Urgency::Normal, text));
        }
        let skipped = "One earlier message was skipped, because too many came at once.";
        assert_eq!(drain(&mut queue), ["failed", "status", "repeat", skipped, "cut off", "one"]);
    }

    #[test]
    fn an_interrupted_critical_announcement_comes_first_again_and_is_never_cleared() {
        let mut queue = AnnouncementQueue::new(2);
        queue.push(announcement(AnnouncementKind::Error, Urgency::Critical, "cut off"));
        let cut_off = queue.pop().unwrap();
        queue.push(announcement(AnnouncementKind::Ask, Urgency::Critical, "may I"));
        queue.push_requested(announcement(AnnouncementKind::Status, Urgency::Normal, "status"));
        queue.requeue(cut_off);
        assert_eq!(queue.clear_noncritical(), 1);
        assert_eq!(drain(&mut queue), ["cut off", "may I"]);
    }

    #[test]
    fn clearing_keeps_critical_announcements() {
        let mut queue = AnnouncementQueue::new(2);
        queue.push(announcement(AnnouncementKind::Agent, Urgency::Normal, "one"));
        queue.push(announcement(AnnouncementKind::Error, Urgency::Critical, "failed"));
        queue.push_requested(announcement(AnnouncementKind::Status, Urgency::Normal, "status"));
        assert_eq!(queue.clear_noncritical(), 2);
        assert_eq!(drain(&mut queue), ["failed"]);
    }
}
