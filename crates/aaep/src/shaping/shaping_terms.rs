//! The terms of a subscription that affect shaping, and the limits of a shaper.

use std::hash::{Hash, Hasher};

use seal::Digest;

use super::text_boundaries::CutGranularity;
use crate::event::Verbosity;
use crate::message::{Boundary, CognitiveLoad, EventFilters};
use crate::negotiate::Terms;

seal::defaults! {
    /// The terms of a subscription that affect what it receives (§5.3). The defaults are the protocol's.
    ///
    /// ```
    /// use aaep::shaping::ShapingTerms;
    /// let slow = ShapingTerms { max_events_per_second: Some(2), ..ShapingTerms::default() };
    /// assert_ne!(slow.digest(), ShapingTerms::default().digest());
    /// ```
    #[derive(Clone, Debug, PartialEq)]
    pub struct ShapingTerms {
        /// The verbosity (§5.3.1.2).
        pub verbosity: Verbosity = Verbosity::Normal,
        /// The languages in order of preference (§5.3.1.3).
        pub languages: Vec<String> = vec!["en-US".to_owned()],
        /// The boundaries at which output may be split (§5.3.1.6); with `none`, output keeps the
        /// agent's own chunks.
        pub boundaries: Vec<Boundary> = vec![Boundary::Sentence, Boundary::Completion],
        /// The event filters (§5.3.1.7).
        pub filters: EventFilters = EventFilters::new(),
        /// The maximum number of non-critical events per second (§5.3.1.1).
        pub max_events_per_second: Option<u64> = None,
        /// How much information the person can handle at once (§5.3.1.10).
        pub cognitive_load: CognitiveLoad = CognitiveLoad::Medium,
        /// The speaking rate in words per minute (§5.3.1.11).
        pub pace_wpm: Option<u64> = None,
        /// Whether the subscriber can answer confirmations (§5.3.1.4).
        pub answers_confirmations: bool = false,
        /// Whether the subscriber can answer clarifications (§5.3.1.5).
        pub answers_clarifications: bool = false,
        /// Whether the subscriber may read the `packaged_context` of hand-offs, which is meant for the person who takes over
        /// (§4.4.3).
        pub reads_handoff_context: bool = true,
    }
}

// Unknown members of the filters and `reads_handoff_context` are compared but not hashed, which `Hash` permits.
impl Eq for ShapingTerms {}

impl Hash for ShapingTerms {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest().hash(state);
    }
}

impl From<&Terms> for ShapingTerms {
    fn from(terms: &Terms) -> Self {
        let mut filters = EventFilters::new();
        // The event types of extensions that both sides support count as included (C-C4).
        let extensions = terms.extensions.iter().map(|extension| format!("{}:*", extension.prefix()));
        filters.include = Some(terms.filters.include.iter().cloned().chain(extensions).collect());
        filters.exclude = Some(terms.filters.exclude.clone());
        Self {
            verbosity: terms.verbosity.clone(),
            languages: terms.languages.clone(),
            boundaries: terms.boundaries.clone(),
            filters,
            max_events_per_second: terms.max_events_per_second,
            cognitive_load: terms.cognitive_load.clone(),
            pace_wpm: terms.pace_wpm,
            answers_confirmations: terms.answers_confirmations,
            answers_clarifications: terms.answers_clarifications,
            reads_handoff_context: true,
        }
    }
}

impl ShapingTerms {
    /// Returns a digest that is the same for equal terms in every process. It is part of the ids of
    /// merged and split events.
    pub fn digest(&self) -> Digest {
        let mut text = format!(
            "{} {:?} {} {} {} {:?} {:?}",
            self.verbosity,
            self.max_events_per_second,
            self.cognitive_load,
            self.answers_confirmations,
            self.answers_clarifications,
            self.pace_wpm,
            self.languages
        );
        for boundary in &self.boundaries {
            text.push(' ');
            text.push_str(boundary.as_str());
        }
        let filters = format!("{:?} {:?}", self.filters.include, self.filters.exclude);
        Digest::of_parts([text.as_bytes(), b" ", filters.as_bytes()])
    }

    /// Returns the finest requested granularity; `None` if output is passed on in the agent's own
    /// chunks. With low cognitive load, sentences are preferred to words.
    pub(super) fn cut_granularity(&self) -> Option<CutGranularity> {
        let is_requested = |boundary| self.boundaries.contains(&boundary);
        if is_requested(Boundary::None) {
            return None;
        }
        let is_low_load = self.cognitive_load == CognitiveLoad::Low;
        let has_coarser = is_requested(Boundary::Sentence) || is_requested(Boundary::Paragraph);
        Some(if is_requested(Boundary::Word) && !(is_low_load && has_coarser) {
            CutGranularity::Word
        } else if is_requested(Boundary::Sentence) {
            CutGranularity::Sentence
        } else if is_requested(Boundary::Paragraph) {
            CutGranularity::Paragraph
        } else {
            CutGranularity::Completion
        })
    }
}

seal::defaults! {
    /// Limits on held data. Reaching a limit loses no data.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ShaperLimits {
        /// The maximum number of bytes of text in one event, and of held text per output. Longer
        /// text is released before its boundary, with the hint `none`. Values above 16384 are
        /// reduced to 16384, the maximum for a chunk (§3.7, §4.3.3).
        pub max_text_bytes: usize = 16_384,
        /// The maximum number of outputs with held text. The text of further outputs is not held.
        pub max_held_outputs: usize = 1024,
        /// The maximum number of events that are held because of the rate or the pace. Beyond this
        /// limit, [`Shaper::is_over_limit`](super::Shaper::is_over_limit) returns true and the
        /// subscription should be closed (C-C18).
        pub max_held_events: usize = 10_000,
    }
}
