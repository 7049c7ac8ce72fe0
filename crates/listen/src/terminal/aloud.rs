//! What is printed is said aloud, too, if there is a voice.

use crate::speech::Pace;
use crate::{Announcement, Kind, Phrases, Queue, Voice};

/// A voice, what it says, and what waits for it.
pub(super) struct Aloud {
    voice: Option<Box<dyn Voice>>,
    queue: Queue,
    /// What the voice was given last; it may have ended.
    saying: Option<Announcement>,
}

impl Aloud {
    pub(super) fn new(voice: Option<Box<dyn Voice>>, limit: usize, phrases: &'static Phrases) -> Self {
        Self { voice, queue: Queue::new(limit).speaking(phrases), saying: None }
    }

    /// Whether there is something to look after.
    pub(super) fn is_busy(&self) -> bool {
        self.voice.is_some() && (self.saying.is_some() || !self.queue.is_empty())
    }

    /// Says this when its turn comes. What became of a question ends that question's own text.
    pub(super) fn say(&mut self, announcement: &Announcement) {
        if self.voice.is_none() {
            return;
        }
        if announcement.kind == Kind::Answer
            && let Some(number) = announcement.question
        {
            self.silence_question(number);
        }
        self.queue.push(announcement.clone());
    }

    /// Says what the person asked for, before all that waits.
    pub(super) fn reply(&mut self, announcement: &Announcement) {
        if self.voice.is_some() {
            self.queue.push_asked_for(announcement.clone());
        }
    }

    /// The person has answered a question: it needs not be heard any more.
    pub(super) fn answered(&mut self, question: u32) {
        self.silence_question(question);
        self.queue.withdraw(question);
    }

    /// What the person should know of the voice itself.
    pub(super) fn news(&mut self) -> Option<String> {
        self.voice.as_mut()?.news()
    }

    /// Gives the voice what it should say: the next when it is free, and at once what is critical. What that cuts off is said
    /// again after it, from its beginning.
    pub(super) fn speak(&mut self) {
        let Some(voice) = &mut self.voice else { return };
        loop {
            if voice.is_free() {
                self.saying = None;
            }
            match self.saying.take() {
                Some(saying) if self.queue.is_urgent() && !saying.is_critical() => {
                    voice.stop();
                    self.queue.put_back(saying);
                }
                Some(saying) => {
                    self.saying = Some(saying);
                    return;
                }
                None => {}
            }
            let Some(next) = self.queue.take() else { return };
            voice.say(&next);
            self.saying = Some(next);
        }
    }

    /// The voice leaves off what it says now, for good; whether it said anything.
    pub(super) fn silence(&mut self) -> bool {
        let Some(voice) = &mut self.voice else { return false };
        let spoke = self.saying.take().is_some() && !voice.is_free();
        if spoke {
            voice.stop();
        }
        spoke
    }

    /// Silence, of what is said and of what waits; what waits and is critical is said all the same. What to tell the person.
    pub(super) fn hush(&mut self, phrases: &Phrases) -> &'static str {
        if self.voice.is_none() {
            return phrases.nothing_spoken;
        }
        let spoke = self.silence();
        match (self.queue.hush(), spoke) {
            (0, false) => phrases.nothing_said,
            _ => phrases.silence,
        }
    }

    /// Faster or slower from now on; none if there is no voice, or nothing for the voice to change.
    pub(super) fn change_pace(&mut self, faster: bool) -> Option<Pace> {
        self.voice.as_mut()?.change_pace(faster)
    }

    pub(super) fn has_voice(&self) -> bool {
        self.voice.is_some()
    }

    /// Whether all that was given to the voice has ended.
    pub(super) fn is_silent(&mut self) -> bool {
        self.voice.as_mut().is_none_or(|voice| voice.is_free())
    }

    fn silence_question(&mut self, number: u32) {
        let is_it = |saying: &Announcement| saying.kind == Kind::Ask && saying.question == Some(number);
        if self.saying.as_ref().is_some_and(is_it) {
            self.silence();
        }
    }
}
