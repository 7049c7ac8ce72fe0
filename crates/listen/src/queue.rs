//! Announcements that wait for a voice.

use std::collections::VecDeque;

use aaep::event::Urgency;

use crate::{Announcement, Kind, Phrases};

/// Announcements in the order in which they should be said: the critical first, then what the person asked for, then the others
/// as they came. What is said in the background is replaced by its successor of the same sort. A question that is settled before
/// it was said is said in one sentence, with what became of it.
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
    asked_for: VecDeque<Announcement>,
    others: VecDeque<Announcement>,
    left_out: u64,
    urgent_left_out: u64,
    limit: usize,
    phrases: &'static Phrases,
}

/// So many times as many critical announcements are kept as others.
const URGENT: usize = 5;

impl Queue {
    /// One that keeps so many announcements.
    pub fn new(limit: usize) -> Self {
        Self {
            critical: VecDeque::new(),
            asked_for: VecDeque::new(),
            others: VecDeque::new(),
            left_out: 0,
            urgent_left_out: 0,
            limit: limit.max(1),
            phrases: Phrases::of(&[]),
        }
    }

    /// One that says in another language what it says itself.
    #[must_use]
    pub fn speaking(mut self, phrases: &'static Phrases) -> Self {
        self.phrases = phrases;
        self
    }

    /// Takes one in.
    pub fn push(&mut self, mut announcement: Announcement) {
        if announcement.kind == Kind::Answer
            && let Some(number) = announcement.question
            && let Some(ask) = self.withdraw(number)
        {
            let asked = ask.text.lines().next().unwrap_or_default();
            announcement.text = format!("{asked}\n{}", announcement.text);
        }
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

    /// Takes in what the person asked for: it is said before the others.
    pub fn push_asked_for(&mut self, announcement: Announcement) {
        if self.asked_for.len() >= self.limit {
            self.asked_for.pop_front();
            self.left_out += 1;
        }
        self.asked_for.push_back(announcement);
    }

    /// Takes back what was cut off: it is said again before the others.
    pub fn put_back(&mut self, announcement: Announcement) {
        if announcement.is_critical() {
            self.critical.push_front(announcement);
        } else {
            self.others.push_front(announcement);
        }
    }

    /// A question is settled, or answered: what waits of it is not said. Its text, if that was never said.
    pub fn withdraw(&mut self, question: u32) -> Option<Announcement> {
        let is_ask = |one: &Announcement| one.kind == Kind::Ask && one.question == Some(question);
        let ask = self.critical.iter().find(|one| is_ask(one)).cloned();
        for queue in [&mut self.critical, &mut self.asked_for, &mut self.others] {
            queue.retain(|one| !is_ask(one));
        }
        ask
    }

    /// Forgets what waits and is not critical; how many that was.
    pub fn hush(&mut self) -> u64 {
        let waiting = (self.asked_for.len() + self.others.len()) as u64 + self.left_out;
        self.asked_for.clear();
        self.others.clear();
        self.left_out = 0;
        waiting
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
            let text = self.phrases.urgent_left_out(count);
            let mut flood = Announcement::own(Kind::Error, text);
            flood.urgency = Urgency::Critical;
            return Some(flood);
        }
        if let Some(asked_for) = self.asked_for.pop_front() {
            return Some(asked_for);
        }
        if self.left_out > 0 {
            let count = std::mem::take(&mut self.left_out);
            let text = match count {
                1 => self.phrases.one_left_out.to_owned(),
                _ => self.phrases.left_out(count),
            };
            return Some(Announcement::own(Kind::Notice, text));
        }
        self.others.pop_front()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.critical.len()
            + self.asked_for.len()
            + self.others.len()
            + usize::from(self.left_out > 0)
            + usize::from(self.urgent_left_out > 0)
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(kind: Kind, urgency: Urgency, text: &str) -> Announcement {
        let mut announcement = Announcement::own(kind, text);
        announcement.urgency = urgency;
        announcement
    }

    fn drained(queue: &mut Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.take()).map(|announcement| announcement.text).collect()
    }

    #[test]
    fn the_critical_goes_first_and_the_background_is_replaced() {
        let mut queue = Queue::new(10);
        queue.push(own(Kind::Agent, Urgency::Normal, "one"));
        queue.push(own(Kind::Progress, Urgency::Background, "10 percent"));
        queue.push(own(Kind::Ask, Urgency::Critical, "may I"));
        queue.push(own(Kind::Progress, Urgency::Background, "20 percent"));
        queue.push(own(Kind::Error, Urgency::Critical, "failed"));
        assert!(queue.is_urgent());
        assert_eq!(drained(&mut queue), ["may I", "failed", "one", "20 percent"]);
        assert!(queue.is_empty());
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let mut queue = Queue::new(2);
        for text in ["one", "two", "three", "four", "five"] {
            queue.push(own(Kind::Agent, Urgency::Normal, text));
        }
        let left_out = "3 earlier announcements were not said, because more came than could be said.";
        assert_eq!(drained(&mut queue), [left_out, "four", "five"]);
        for number in 0..15 {
            queue.push(own(Kind::Error, Urgency::Critical, &number.to_string()));
        }
        let said = drained(&mut queue);
        assert_eq!(said.len(), 11);
        assert!(said.last().is_some_and(|last| last.starts_with("5 more urgent announcements came")));
    }

    #[test]
    fn a_question_that_is_settled_before_it_is_heard_is_told_in_short() {
        let mut queue = Queue::new(2);
        for (kind, urgency, number) in [
            (Kind::Ask, Urgency::Critical, 1),
            (Kind::Ask, Urgency::Critical, 2),
            (Kind::Answer, Urgency::Normal, 1),
        ] {
            let mut announcement = own(kind, urgency, &format!("{kind:?} {number}"));
            announcement.question = Some(number);
            queue.push(announcement);
        }
        assert_eq!(drained(&mut queue), ["Ask 2", "Ask 1\nAnswer 1"]);
    }

    #[test]
    fn what_was_asked_for_and_what_was_cut_off_go_before_the_rest() {
        let mut queue = Queue::new(2);
        queue.push(own(Kind::Agent, Urgency::Normal, "one"));
        queue.put_back(own(Kind::Agent, Urgency::Normal, "cut off"));
        queue.push(own(Kind::Error, Urgency::Critical, "failed"));
        for text in ["help", "status", "repeat"] {
            queue.push_asked_for(own(Kind::Status, Urgency::Normal, text));
        }
        let left_out = "One earlier announcement was not said, because more came than could be said.";
        assert_eq!(drained(&mut queue), ["failed", "status", "repeat", left_out, "cut off", "one"]);
    }

    #[test]
    fn what_is_critical_and_was_cut_off_is_said_again_first_and_no_hush_takes_it() {
        let mut queue = Queue::new(2);
        queue.push(own(Kind::Error, Urgency::Critical, "cut off"));
        let cut_off = queue.take().unwrap();
        queue.push(own(Kind::Ask, Urgency::Critical, "may I"));
        queue.push_asked_for(own(Kind::Status, Urgency::Normal, "status"));
        queue.put_back(cut_off);
        assert_eq!(queue.hush(), 1);
        assert_eq!(drained(&mut queue), ["cut off", "may I"]);
    }

    #[test]
    fn hush_leaves_the_critical() {
        let mut queue = Queue::new(2);
        queue.push(own(Kind::Agent, Urgency::Normal, "one"));
        queue.push(own(Kind::Error, Urgency::Critical, "failed"));
        queue.push_asked_for(own(Kind::Status, Urgency::Normal, "status"));
        assert_eq!(queue.hush(), 2);
        assert_eq!(drained(&mut queue), ["failed"]);
    }
}
