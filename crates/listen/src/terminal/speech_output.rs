//! Speaks what is printed, if a synthesizer is configured.

use crate::speech::SpeechRate;
use crate::{Announcement, AnnouncementKind, AnnouncementQueue, Phrases, SpeechSynthesizer};

/// A synthesizer, its current announcement and its queue.
pub(super) struct SpeechOutput {
    synthesizer: Option<Box<dyn SpeechSynthesizer>>,
    queue: AnnouncementQueue,
    /// The last announcement passed to the synthesizer. It may have been spoken completely.
    current: Option<Announcement>,
}

impl SpeechOutput {
    pub(super) fn new(
        synthesizer: Option<Box<dyn SpeechSynthesizer>>,
        limit: usize,
        phrases: &'static Phrases,
    ) -> Self {
        Self { synthesizer, queue: AnnouncementQueue::new(limit).with_phrases(phrases), current: None }
    }

    /// Whether an announcement is being spoken or is waiting.
    pub(super) fn is_busy(&self) -> bool {
        self.synthesizer.is_some() && (self.current.is_some() || !self.queue.is_empty())
    }

    /// Queues an announcement. The outcome of a question stops the question itself if it is being spoken. The agent's text stops a step of
    /// its work.
    pub(super) fn enqueue(&mut self, announcement: &Announcement) {
        if self.synthesizer.is_none() {
            return;
        }
        if announcement.kind == AnnouncementKind::Answer
            && let Some(number) = announcement.question_number
        {
            self.stop_question(number);
        }
        let is_superseded = |current: &Announcement| {
            current.is_step
                && announcement.supersedes_steps()
                && current.session_id == announcement.session_id
        };
        if self.current.as_ref().is_some_and(is_superseded) {
            self.stop_current();
        }
        self.queue.push(announcement.clone());
    }

    /// Queues what the person requested in front of the regular announcements.
    pub(super) fn enqueue_requested(&mut self, announcement: &Announcement) {
        if self.synthesizer.is_some() {
            self.queue.push_requested(announcement.clone());
        }
    }

    /// Stops or removes the announcement of a question that the person has answered.
    pub(super) fn cancel_question(&mut self, question: u32) {
        self.stop_question(question);
        self.queue.remove_question(question);
    }

    /// Takes a message about the synthesizer itself.
    pub(super) fn take_notice(&mut self) -> Option<String> {
        self.synthesizer.as_mut()?.take_notice()
    }

    /// Passes the next announcement to the synthesizer when it is idle. A critical announcement interrupts one that is not critical,
    /// which is repeated from its start afterwards.
    pub(super) fn poll(&mut self) {
        let Some(synthesizer) = &mut self.synthesizer else { return };
        loop {
            if synthesizer.is_idle() {
                self.current = None;
            }
            match self.current.take() {
                Some(current) if self.queue.has_critical() && !current.is_critical() => {
                    synthesizer.stop();
                    self.queue.requeue(current);
                }
                Some(current) => {
                    self.current = Some(current);
                    return;
                }
                None => {}
            }
            let Some(next) = self.queue.pop() else { return };
            synthesizer.speak(&next);
            self.current = Some(next);
        }
    }

    /// Stops the current announcement and does not repeat it. Returns whether anything was being spoken.
    pub(super) fn stop_current(&mut self) -> bool {
        let Some(synthesizer) = &mut self.synthesizer else { return false };
        let was_speaking = self.current.take().is_some() && !synthesizer.is_idle();
        if was_speaking {
            synthesizer.stop();
        }
        was_speaking
    }

    /// Stops speech and removes all announcements from the queue that are not critical. Returns the message for the person.
    pub(super) fn stop_and_clear(&mut self, phrases: &Phrases) -> &'static str {
        if self.synthesizer.is_none() {
            return phrases.speech_off;
        }
        let was_speaking = self.stop_current();
        match (self.queue.clear_noncritical(), was_speaking) {
            (0, false) => phrases.nothing_being_spoken,
            _ => phrases.speech_skipped,
        }
    }

    /// Changes the rate. Returns `None` without a synthesizer or at the end of the range.
    pub(super) fn change_rate(&mut self, faster: bool) -> Option<SpeechRate> {
        self.synthesizer.as_mut()?.change_rate(faster)
    }

    pub(super) fn has_synthesizer(&self) -> bool {
        self.synthesizer.is_some()
    }

    /// Whether everything passed to the synthesizer has been spoken or stopped.
    pub(super) fn is_idle(&mut self) -> bool {
        self.synthesizer.as_mut().is_none_or(|synthesizer| synthesizer.is_idle())
    }

    fn stop_question(&mut self, number: u32) {
        let is_question = |current: &Announcement| {
            current.kind == AnnouncementKind::Ask && current.question_number == Some(number)
        };
        if self.current.as_ref().is_some_and(is_question) {
            self.stop_current();
        }
    }
}
