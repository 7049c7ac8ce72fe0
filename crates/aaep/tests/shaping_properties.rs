//! Properties that hold for every subscription, every text, and every way to split a text into chunks.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use aaep::ParsedDocument;
use aaep::event::{Event, EventType, Payload, Urgency, Verbosity};
use aaep::message::{Boundary, CognitiveLoad, EventFilters};
use aaep::rule::ValidationMode;
use aaep::shaping::{OutgoingEvent, ShaperLimits, ShapingTerms};
use proptest::prelude::*;
use seal::UnixMillis;
use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

use crate::support::byte_choices::RandomChoices;
use crate::support::random_bytes;
use crate::support::recording_check::errors;
use crate::support::sample_recording::SampleRecording;
use crate::support::shaping_listener::{DeliveredEvent, SampleAgent, ShapingListener, SharedEvent};
use testing::property::cases;

const SESSION: &str = "sess_1";

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn boundaries_do_not_depend_on_how_the_text_is_chunked(bytes in random_bytes(120), chunk_lengths in random_bytes(60)) {
        let mut choices = RandomChoices::new(&bytes);
        let (terms, limits) = (terms_with_random_boundaries(&mut choices), random_limits(&mut choices));
        check_same_boundaries(&random_text(&mut choices), &chunk_lengths, &terms, limits)?;
    }

    #[test]
    fn boundaries_in_any_unicode_text_do_not_depend_on_how_it_is_chunked(
        text in any::<String>(), bytes in random_bytes(8), chunk_lengths in random_bytes(40),
    ) {
        let mut choices = RandomChoices::new(&bytes);
        let (terms, limits) = (terms_with_random_boundaries(&mut choices), random_limits(&mut choices));
        check_same_boundaries(&text, &chunk_lengths, &terms, limits)?;
    }

    #[test]
    fn all_text_is_delivered_once_and_no_character_is_split(bytes in random_bytes(120), chunk_lengths in random_bytes(60)) {
        let mut choices = RandomChoices::new(&bytes);
        let terms = terms_with_random_boundaries(&mut choices);
        let text = random_text(&mut choices);
        let delivered = deliver_text(&text, &chunk_lengths, &terms, ShaperLimits::default());
        let grapheme_bounds: HashSet<_> = text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]).collect();
        let (mut joined, mut expected_position) = (String::new(), 0);
        for (index, (chunk, position, hint, complete)) in delivered.iter().enumerate() {
            prop_assert_eq!(*position, expected_position);
            expected_position += u64::try_from(chunk.chars().count()).unwrap();
            joined.push_str(chunk);
            prop_assert!(grapheme_bounds.contains(&joined.len()), "{:?} splits a character", chunk);
            prop_assert_eq!(*complete, index + 1 == delivered.len());
            let is_negotiated = terms.boundaries.iter().any(|boundary| boundary.as_str() == hint);
            prop_assert!(is_negotiated || *complete && hint == "completion", "{hint} is not negotiated");
        }
        prop_assert_eq!(joined, text);
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn the_delivered_events_of_a_valid_recording_are_valid(bytes in random_bytes(400), terms_bytes in random_bytes(24)) {
        let shaped = ShapedRecording::of(&bytes, &terms_bytes);
        let errors = errors(&shaped.stream, ValidationMode::Strict);
        prop_assert!(errors.is_empty(), "{:?}\n{}\n{}", shaped.terms, errors.join("\n"), shaped.stream.join("\n"));
    }

    #[test]
    fn nothing_is_lost_duplicated_or_out_of_order(bytes in random_bytes(400), terms_bytes in random_bytes(24)) {
        let shaped = ShapedRecording::of(&bytes, &terms_bytes);
        for session in shaped.sessions() {
            let expected = unmerged_ids(shaped.published.iter().map(|event| (***event).clone()), &session);
            let delivered = shaped.listener.delivered.iter().map(|delivered| delivered.event().clone());
            let actual = unmerged_ids(delivered, &session);
            prop_assert_eq!(expected, actual);
        }
        prop_assert_eq!(output_texts(shaped.published.iter().map(|event| &***event)),
            output_texts(shaped.listener.delivered.iter().map(DeliveredEvent::event)));
        prop_assert_eq!(last_progress(shaped.published.iter().map(|event| &***event)),
            last_progress(shaped.listener.delivered.iter().map(DeliveredEvent::event)));
        let ids: HashSet<_> =
            shaped.listener.delivered.iter().map(|delivered| &delivered.event().envelope.event_id).collect();
        prop_assert_eq!(ids.len(), shaped.listener.delivered.len());
        prop_assert_eq!(shaped.listener.shaper.held_count(), 0);
    }

    #[test]
    fn critical_events_are_delivered_immediately_and_others_within_the_rate(
        bytes in random_bytes(400), terms_bytes in random_bytes(24),
    ) {
        let shaped = ShapedRecording::of(&bytes, &terms_bytes);
        prop_assert!(shaped.late_critical_events.is_empty(), "{:?}", shaped.late_critical_events);
        let Some(rate) = shaped.terms.max_events_per_second else { return Ok(()) };
        let max_per_second = usize::try_from(rate).unwrap();
        let times = &shaped.rate_counted_at;
        for (first, after) in times.iter().zip(times.iter().skip(max_per_second)) {
            prop_assert!(after - first >= 1000, "{} after {} at {} a second", after, first, rate);
        }
    }

    #[test]
    fn timestamps_never_decrease_within_a_session(bytes in random_bytes(400), terms_bytes in random_bytes(24)) {
        let shaped = ShapedRecording::of(&bytes, &terms_bytes);
        for session in shaped.sessions() {
            let envelopes = shaped.listener.delivered.iter().map(|delivered| &delivered.event().envelope);
            let times: Vec<_> =
                envelopes.filter(|envelope| envelope.session_id.as_str() == session).map(|envelope| envelope.timestamp).collect();
            prop_assert!(times.windows(2).all(|pair| !pair[1].cmp_instant(&pair[0]).is_lt()));
        }
    }

    #[test]
    fn extra_pulls_change_nothing(bytes in random_bytes(300), terms_bytes in random_bytes(24)) {
        let reference = ShapedRecording::of(&bytes, &terms_bytes);
        let with_pulls = ShapedRecording::of_with_extra_pulls(&bytes, &terms_bytes);
        prop_assert_eq!(reference.stream, with_pulls.stream);
    }

    #[test]
    fn new_ids_depend_only_on_the_events_and_the_terms(bytes in random_bytes(300), terms_bytes in random_bytes(24)) {
        let first = ShapedRecording::of(&bytes, &terms_bytes);
        let second = ShapedRecording::of(&bytes, &terms_bytes);
        prop_assert_eq!(&first.stream, &second.stream);
        let rewritten_ids = |shaped: &ShapedRecording| -> HashSet<String> {
            let rewritten = shaped.listener.delivered.iter().filter(|delivered| {
                matches!(delivered.outgoing, OutgoingEvent::Rewritten(_)) && delivered.chunk().is_some()
            });
            rewritten.map(|delivered| delivered.event().envelope.event_id.to_string()).collect()
        };
        let mut other_bytes = terms_bytes.clone();
        other_bytes.insert(0, 0);
        let other = ShapedRecording::of(&bytes, &other_bytes);
        if other.terms != first.terms {
            let source_ids: HashSet<_> =
                first.published.iter().map(|event| event.envelope.event_id.to_string()).collect();
            let (ids, other_ids) = (rewritten_ids(&first), rewritten_ids(&other));
            prop_assert!(ids.intersection(&other_ids).all(|id| source_ids.contains(id)));
        }
    }
}

/// Returns terms with random boundaries.
fn terms_with_random_boundaries(choices: &mut RandomChoices<'_>) -> ShapingTerms {
    let boundaries: &[Boundary] = match choices.below(6) {
        0 => &[Boundary::Sentence, Boundary::Completion],
        1 => &[Boundary::Word],
        2 => &[Boundary::Word, Boundary::Sentence, Boundary::Paragraph, Boundary::Completion],
        3 => &[Boundary::Paragraph, Boundary::Completion],
        4 => &[Boundary::Sentence, Boundary::Paragraph],
        _ => &[Boundary::Completion],
    };
    ShapingTerms { boundaries: boundaries.to_vec(), ..ShapingTerms::default() }
}

fn random_limits(choices: &mut RandomChoices<'_>) -> ShaperLimits {
    ShaperLimits { max_text_bytes: choices.pick(&[16_384, 16_384, 16, 40, 3]), ..ShaperLimits::default() }
}

/// Returns a random text made of parts that are hard to split.
fn random_text(choices: &mut RandomChoices<'_>) -> String {
    const PARTS: [&str; 48] = [
        "Done",
        ". ",
        ".",
        " ",
        "N",
        "n",
        "Dr",
        "e.g",
        "3",
        "14",
        ",",
        "! ",
        "?",
        "\n",
        "\n\n",
        "\r\n",
        "`",
        "```",
        "```\n",
        "~~~\n",
        "(",
        ")",
        "\"",
        "…",
        "😀",
        "👩\u{200d}👩\u{200d}👧",
        "e\u{301}",
        "\u{301}",
        "你",
        "。",
        "！",
        "मैं",
        "।",
        "؟",
        "تم",
        "ẹ̀",
        "ọ",
        "https://a.b/c?d=e",
        "a@b.org",
        "z. B. ",
        "1. ",
        "\t",
        "\u{2029}",
        "\u{a0}",
        "🇳🇬",
        "🇩",
        "‼\u{200d}😀",
        "\u{915}\u{94d}\u{937}",
    ];
    let mut text = String::new();
    for _ in 0..choices.below(60) {
        text.push_str(choices.pick(&PARTS));
    }
    text
}

/// Sends a text in chunks of these lengths and returns the delivered chunks.
fn deliver_text(
    text: &str,
    chunk_lengths: &[u8],
    terms: &ShapingTerms,
    limits: ShaperLimits,
) -> Vec<(String, u64, String, bool)> {
    let (mut agent, mut listener) =
        (SampleAgent::default(), ShapingListener::with_limits(terms.clone(), limits));
    let mut chunk_lengths = chunk_lengths.iter();
    let mut rest = text;
    loop {
        let length =
            chunk_lengths.next().map_or(rest.chars().count(), |chunk_length| usize::from(*chunk_length % 9));
        let at = rest.char_indices().nth(length).map_or(rest.len(), |(at, _)| at);
        let (chunk, remaining) = rest.split_at(at);
        let complete = remaining.is_empty() && length > 0 || chunk_lengths.len() == 0 && remaining.is_empty();
        listener.push(&agent.chunk(0, SESSION, chunk, complete));
        rest = remaining;
        if complete {
            return listener.chunks();
        }
    }
}

fn check_same_boundaries(
    text: &str,
    chunk_lengths: &[u8],
    terms: &ShapingTerms,
    limits: ShaperLimits,
) -> Result<(), TestCaseError> {
    let in_one_chunk = deliver_text(text, &[], terms, limits);
    let one_char_lengths: Vec<u8> = vec![1; text.chars().count()];
    prop_assert_eq!(&in_one_chunk, &deliver_text(text, chunk_lengths, terms, limits), "{:?}", text);
    prop_assert_eq!(
        &in_one_chunk,
        &deliver_text(text, &one_char_lengths, terms, limits),
        "{:?}, character by character",
        text
    );
    let joined: String = in_one_chunk.iter().map(|(chunk, ..)| chunk.as_str()).collect();
    prop_assert_eq!(joined, text);
    Ok(())
}

/// A recording as one subscription receives it.
struct ShapedRecording {
    terms: ShapingTerms,
    listener: ShapingListener,
    /// The events that the agents published.
    published: Vec<SharedEvent>,
    /// The delivered events, with the replies between them.
    stream: Vec<String>,
    /// When events that count toward the rate were delivered, in milliseconds.
    rate_counted_at: Vec<i64>,
    /// Critical events that were not delivered immediately.
    late_critical_events: Vec<String>,
}

impl ShapedRecording {
    fn of(bytes: &[u8], terms_bytes: &[u8]) -> Self {
        Self::shape(bytes, terms_bytes, false)
    }

    fn of_with_extra_pulls(bytes: &[u8], terms_bytes: &[u8]) -> Self {
        Self::shape(bytes, terms_bytes, true)
    }

    fn shape(bytes: &[u8], terms_bytes: &[u8], with_extra_pulls: bool) -> Self {
        let mut choices = RandomChoices::new(terms_bytes);
        let terms = ShapingTerms {
            max_events_per_second: choices.pick(&[None, Some(1), Some(3), Some(20), Some(1000)]),
            verbosity: choices.pick(&[0, 1, 2]).pick([
                Verbosity::Normal,
                Verbosity::Terse,
                Verbosity::Detailed,
            ]),
            pace_wpm: choices.pick(&[None, None, Some(50), Some(400)]),
            cognitive_load: choices.pick(&[0, 0, 1]).pick([
                CognitiveLoad::Medium,
                CognitiveLoad::Low,
                CognitiveLoad::High,
            ]),
            answers_confirmations: true,
            answers_clarifications: true,
            filters: include_all_types(),
            ..terms_with_random_boundaries(&mut choices)
        };
        let mut shaped = Self {
            listener: ShapingListener::new(terms.clone()),
            terms,
            published: Vec::new(),
            stream: Vec::new(),
            rate_counted_at: Vec::new(),
            late_critical_events: Vec::new(),
        };
        let recording = SampleRecording::of(bytes);
        for line in &recording.lines[recording.handshake_len..] {
            let mut value: Value = serde_json::from_str(&line.to_json()).unwrap();
            value.as_object_mut().unwrap().remove("sequence_number");
            let text = value.to_string();
            let now = aaep::Timestamp::parse(line.text("timestamp")).unwrap().unix_millis();
            if with_extra_pulls {
                shaped.pull_without_effect(now);
            }
            shaped.advance_to(now);
            if line.kind().is_event() {
                let event = Arc::new(ParsedDocument::<Event>::parse(text).unwrap());
                shaped.push(&event);
            } else {
                shaped.stream.push(text);
            }
            if with_extra_pulls {
                shaped.pull_without_effect(now);
            }
        }
        shaped.listener.finish();
        shaped.record_delivered(None);
        shaped
    }

    fn advance_to(&mut self, now: UnixMillis) {
        self.listener.advance_to(now.max(self.listener.now));
        self.record_delivered(None);
    }

    fn push(&mut self, event: &SharedEvent) {
        let is_critical =
            event.envelope.event_type.is_critical() || event.envelope.urgency == Some(Urgency::Critical);
        let before = self.listener.delivered.len();
        self.listener.push(event);
        self.published.push(Arc::clone(event));
        let index = self.listener.delivered[before..]
            .iter()
            .position(|delivered| delivered.event().envelope.event_id == event.envelope.event_id);
        if is_critical && index.is_none() {
            self.late_critical_events.push(event.text().to_owned());
        }
        // Events that are delivered ahead of a critical event do not count toward the rate, nor does the
        // event itself.
        self.record_delivered(is_critical.then(|| before + index.unwrap_or(0)));
    }

    /// Records the events delivered since the last call. Events up to the index `exempt_until` do not count toward
    /// the rate.
    fn record_delivered(&mut self, exempt_until: Option<usize>) {
        let from = self.stream_event_count();
        for (index, delivered) in self.listener.delivered.iter().enumerate().skip(from) {
            self.stream.push(delivered.event().to_json());
            if !delivered.outgoing.is_critical() && exempt_until.is_none_or(|last_exempt| index > last_exempt)
            {
                self.rate_counted_at.push(delivered.at.get());
            }
        }
    }

    fn stream_event_count(&self) -> usize {
        self.stream.iter().filter(|text| text.starts_with("{\"@context\"")).count()
    }

    /// Pulls at several times at which no event is due. Each pull must return nothing.
    fn pull_without_effect(&mut self, now: UnixMillis) {
        let before_deadline = self.listener.shaper.next_deadline().map_or(now, |at| (at - 1).min(now));
        for at in [0, self.listener.now.get(), before_deadline.max(self.listener.now).get()] {
            assert!(self.listener.shaper.pull(UnixMillis::new(at)).is_none());
        }
    }

    fn sessions(&self) -> HashSet<String> {
        self.published.iter().map(|event| event.envelope.session_id.to_string()).collect()
    }
}

/// Picks an option by its index, for options that are not `Copy`.
trait PickOneOf {
    fn pick<T: Clone>(self, options: [T; 3]) -> T;
}

impl PickOneOf for usize {
    fn pick<T: Clone>(self, options: [T; 3]) -> T {
        options[self].clone()
    }
}

/// Returns filters that include all types, including those of extensions.
fn include_all_types() -> EventFilters {
    let mut filters = EventFilters::new();
    filters.include = Some(vec!["*".to_owned()]);
    filters
}

/// Returns the ids of events that are never merged, in order.
fn unmerged_ids(events: impl Iterator<Item = Event>, session: &str) -> Vec<String> {
    events
        .filter(|event| event.envelope.session_id.as_str() == session)
        .filter(|event| {
            !matches!(
                event.envelope.event_type,
                EventType::StateChanged | EventType::ProgressUpdated | EventType::OutputStreaming
            )
        })
        .map(|event| event.envelope.event_id.to_string())
        .collect()
}

/// Returns the complete text of each output.
fn output_texts<'e>(events: impl Iterator<Item = &'e Event>) -> HashMap<(String, String), String> {
    let mut all: HashMap<_, String> = HashMap::new();
    for event in events {
        if let Payload::OutputStreaming(chunk) = &event.payload {
            let output =
                chunk.output_id.as_ref().map_or(&*event.envelope.producer.agent_id, |id| id.as_str());
            all.entry((event.envelope.session_id.to_string(), output.to_owned()))
                .or_default()
                .push_str(&chunk.chunk);
        }
    }
    all
}

/// Returns the last progress that each producer reported.
fn last_progress<'e>(events: impl Iterator<Item = &'e Event>) -> HashMap<(String, String), Option<String>> {
    let progress = events.filter_map(|event| match &event.payload {
        Payload::ProgressUpdated(update) => Some((
            (event.envelope.session_id.to_string(), event.envelope.producer.agent_id.clone()),
            Some(format!("{:?}", update.progress)),
        )),
        _ => None,
    });
    progress.collect()
}
