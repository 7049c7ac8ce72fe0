//! What one subscription wants, and how much may be held for it.

use std::hash::{Hash, Hasher};

use seal::Digest;

use super::cut::Grain;
use crate::event::Verbosity;
use crate::message::{Boundary, CognitiveLoad, EventFilters};
use crate::negotiate::Terms;

seal::defaults! {
    /// The terms of a subscription, as far as they shape what it hears (§5.3). The default is the protocol's.
    ///
    /// ```
    /// use aaep::shape::Wants;
    /// let slow = Wants { rate: Some(2), ..Wants::default() };
    /// assert_ne!(slow.key(), Wants::default().key());
    /// ```
    #[derive(Clone, Debug, PartialEq)]
    pub struct Wants {
        /// How much text is wanted (§5.3.1.2).
        pub verbosity: Verbosity = Verbosity::Normal,
        /// In which languages, the dearest first (§5.3.1.3).
        pub languages: Vec<String> = vec!["en-US".to_owned()],
        /// Where output may be cut (§5.3.1.6); with `none` it comes as the agent cut it.
        pub boundaries: Vec<Boundary> = vec![Boundary::Sentence, Boundary::Completion],
        /// Which events are wanted (§5.3.1.7).
        pub filters: EventFilters = EventFilters::new(),
        /// At most so many events in a second, criticals aside (§5.3.1.1).
        pub rate: Option<u64> = None,
        /// How much the person can take in (§5.3.1.10).
        pub cognitive_load: CognitiveLoad = CognitiveLoad::Medium,
        /// How fast text is spoken (§5.3.1.11).
        pub pace_wpm: Option<u64> = None,
        /// Whether confirmations can be answered (§5.3.1.4).
        pub confirmations: bool = false,
        /// Whether clarifications can be answered (§5.3.1.5).
        pub clarifications: bool = false,
    }
}

// The filters' unknown members are compared but not hashed, which is all that `Hash` asks for.
impl Eq for Wants {}

impl Hash for Wants {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl From<&Terms> for Wants {
    fn from(terms: &Terms) -> Self {
        let mut filters = EventFilters::new();
        // The types of an extension that both know count as included (C-C4).
        let extensions = terms.extensions.iter().map(|extension| format!("{}:*", extension.prefix()));
        filters.include = Some(terms.filters.include.iter().cloned().chain(extensions).collect());
        filters.exclude = Some(terms.filters.exclude.clone());
        Self {
            verbosity: terms.verbosity.clone(),
            languages: terms.languages.clone(),
            boundaries: terms.boundaries.clone(),
            filters,
            rate: terms.max_events_per_second,
            cognitive_load: terms.cognitive_load.clone(),
            pace_wpm: terms.pace_wpm,
            confirmations: terms.confirmation_reply,
            clarifications: terms.clarification_reply,
        }
    }
}

impl Wants {
    /// Names these wants: the same for equal ones, in every process. Ids of merged events are made with it.
    pub fn key(&self) -> Digest {
        let mut text = format!(
            "{} {:?} {} {} {} {:?} {:?}",
            self.verbosity,
            self.rate,
            self.cognitive_load,
            self.confirmations,
            self.clarifications,
            self.pace_wpm,
            self.languages
        );
        for boundary in &self.boundaries {
            text.push(' ');
            text.push_str(boundary.as_str());
        }
        let filters = format!("{:?} {:?}", self.filters.include, self.filters.exclude);
        Digest::of_all([text.as_bytes(), b" ", filters.as_bytes()])
    }

    /// The finest wanted cut; nothing where output passes as it is. A person with little room for more is not given
    /// single words, if they would take sentences.
    pub(super) fn grain(&self) -> Option<Grain> {
        let wanted = |boundary| self.boundaries.contains(&boundary);
        if wanted(Boundary::None) {
            return None;
        }
        let low = self.cognitive_load == CognitiveLoad::Low;
        let coarser = wanted(Boundary::Sentence) || wanted(Boundary::Paragraph);
        Some(if wanted(Boundary::Word) && !(low && coarser) {
            Grain::Word
        } else if wanted(Boundary::Sentence) {
            Grain::Sentence
        } else if wanted(Boundary::Paragraph) {
            Grain::Paragraph
        } else {
            Grain::Completion
        })
    }
}

seal::defaults! {
    /// How much is held at most. Nothing is ever lost at a limit.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Limits {
        /// Bytes of text in one event, and so the text that is held of one output: beyond, it is released before its
        /// boundary, with the hint `none`. At most 16384, because no more is lawful in a chunk (§3.7, §4.3.3).
        pub text: usize = 16_384,
        /// Outputs of which text is held: further ones are not held at all.
        pub outputs: usize = 1024,
        /// Events that are held for rate and pace: beyond, [`Shaper::is_full`](super::Shaper::is_full) says so, and the
        /// subscription should be closed (C-C18).
        pub events: usize = 10_000,
    }
}
