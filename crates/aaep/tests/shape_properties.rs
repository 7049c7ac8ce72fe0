//! What holds for every subscription, whatever is said and however it is cut.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use aaep::Received;
use aaep::event::{Event, EventType, Payload, Urgency, Verbosity};
use aaep::message::{Boundary, CognitiveLoad, EventFilters};
use aaep::rule::Face;
use aaep::shape::{Limits, Out, Wants};
use proptest::prelude::*;
use seal::UnixMillis;
use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

use crate::support::choices::Choices;
use crate::support::decisions;
use crate::support::judge::errors;
use crate::support::recording::Recording;
use crate::support::shaping::{Agent, Committed, Heard, Listener};
use testing::property::cases;

const SESSION: &str = "sess_1";

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn the_cuts_do_not_depend_on_the_pieces(bytes in decisions(120), edges in decisions(60)) {
        let mut choices = Choices::new(&bytes);
        let (wants, limits) = (cutting(&mut choices), limits(&mut choices));
        same_cuts(&written(&mut choices), &edges, &wants, limits)?;
    }

    #[test]
    fn the_cuts_of_any_unicode_do_not_depend_on_the_pieces(
        text in any::<String>(), bytes in decisions(8), edges in decisions(40),
    ) {
        let mut choices = Choices::new(&bytes);
        let (wants, limits) = (cutting(&mut choices), limits(&mut choices));
        same_cuts(&text, &edges, &wants, limits)?;
    }

    #[test]
    fn all_text_comes_once_and_whole_characters_stay_whole(bytes in decisions(120), edges in decisions(60)) {
        let mut choices = Choices::new(&bytes);
        let wants = cutting(&mut choices);
        let text = written(&mut choices);
        let heard = heard_of(&text, &edges, &wants, Limits::default());
        let bounds: HashSet<_> = text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]).collect();
        let (mut joined, mut at) = (String::new(), 0);
        for (number, (piece, position, hint, complete)) in heard.iter().enumerate() {
            prop_assert_eq!(*position, at);
            at += u64::try_from(piece.chars().count()).unwrap();
            joined.push_str(piece);
            prop_assert!(bounds.contains(&joined.len()), "{:?} cuts a character", piece);
            prop_assert_eq!(*complete, number + 1 == heard.len());
            let wanted = wants.boundaries.iter().any(|boundary| boundary.as_str() == hint);
            prop_assert!(wanted || *complete && hint == "completion", "{hint} is not wanted");
        }
        prop_assert_eq!(joined, text);
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn what_is_heard_of_a_lawful_recording_is_lawful(bytes in decisions(400), terms in decisions(24)) {
        let hearing = Hearing::of(&bytes, &terms);
        let found = errors(&hearing.stream, Face::Strict);
        prop_assert!(found.is_empty(), "{:?}\n{}\n{}", hearing.wants, found.join("\n"), hearing.stream.join("\n"));
    }

    #[test]
    fn nothing_is_lost_doubled_or_out_of_order(bytes in decisions(400), terms in decisions(24)) {
        let hearing = Hearing::of(&bytes, &terms);
        for session in hearing.sessions() {
            let said = fixed(hearing.said.iter().map(|event| (***event).clone()), &session);
            let heard = fixed(hearing.listener.heard.iter().map(|heard| heard.event().clone()), &session);
            prop_assert_eq!(said, heard);
        }
        prop_assert_eq!(texts(hearing.said.iter().map(|event| &***event)),
            texts(hearing.listener.heard.iter().map(Heard::event)));
        prop_assert_eq!(last_progress(hearing.said.iter().map(|event| &***event)),
            last_progress(hearing.listener.heard.iter().map(Heard::event)));
        let ids: HashSet<_> = hearing.listener.heard.iter().map(|heard| &heard.event().envelope.event_id).collect();
        prop_assert_eq!(ids.len(), hearing.listener.heard.len());
        prop_assert_eq!(hearing.listener.shaper.held(), 0);
    }

    #[test]
    fn criticals_come_at_once_and_the_rest_never_faster_than_the_rate(
        bytes in decisions(400), terms in decisions(24),
    ) {
        let hearing = Hearing::of(&bytes, &terms);
        prop_assert!(hearing.late.is_empty(), "{:?}", hearing.late);
        let Some(rate) = hearing.wants.rate else { return Ok(()) };
        let within = usize::try_from(rate).unwrap();
        for (first, after) in hearing.gated.iter().zip(hearing.gated.iter().skip(within)) {
            prop_assert!(after - first >= 1000, "{} after {} at {} a second", after, first, rate);
        }
    }

    #[test]
    fn times_never_fall_within_a_session(bytes in decisions(400), terms in decisions(24)) {
        let hearing = Hearing::of(&bytes, &terms);
        for session in hearing.sessions() {
            let of_session = hearing.listener.heard.iter().map(|heard| &heard.event().envelope);
            let times: Vec<_> =
                of_session.filter(|it| it.session_id.as_str() == session).map(|it| it.timestamp).collect();
            prop_assert!(times.windows(2).all(|pair| !pair[1].cmp_instant(&pair[0]).is_lt()));
        }
    }

    #[test]
    fn pulling_early_late_or_twice_changes_nothing(bytes in decisions(300), terms in decisions(24)) {
        let (once, often) = (Hearing::of(&bytes, &terms), Hearing::with_pulls_between(&bytes, &terms));
        prop_assert_eq!(once.stream, often.stream);
    }

    #[test]
    fn the_same_events_make_the_same_ids(bytes in decisions(300), terms in decisions(24)) {
        let (first, again) = (Hearing::of(&bytes, &terms), Hearing::of(&bytes, &terms));
        prop_assert_eq!(&first.stream, &again.stream);
        let made = |hearing: &Hearing| -> HashSet<String> {
            let made = hearing.listener.heard.iter().filter(|heard| {
                matches!(heard.out, Out::Made(_)) && heard.chunk().is_some()
            });
            made.map(|heard| heard.event().envelope.event_id.to_string()).collect()
        };
        let mut other = terms.clone();
        other.insert(0, 0);
        let other = Hearing::of(&bytes, &other);
        if other.wants != first.wants {
            let said: HashSet<_> = first.said.iter().map(|event| event.envelope.event_id.to_string()).collect();
            prop_assert!(made(&first).intersection(&made(&other)).all(|id| said.contains(id)));
        }
    }
}

/// Boundaries, at random.
fn cutting(choices: &mut Choices<'_>) -> Wants {
    let boundaries: &[Boundary] = match choices.below(6) {
        0 => &[Boundary::Sentence, Boundary::Completion],
        1 => &[Boundary::Word],
        2 => &[Boundary::Word, Boundary::Sentence, Boundary::Paragraph, Boundary::Completion],
        3 => &[Boundary::Paragraph, Boundary::Completion],
        4 => &[Boundary::Sentence, Boundary::Paragraph],
        _ => &[Boundary::Completion],
    };
    Wants { boundaries: boundaries.to_vec(), ..Wants::default() }
}

fn limits(choices: &mut Choices<'_>) -> Limits {
    Limits { text: choices.of(&[16_384, 16_384, 16, 40, 3]), ..Limits::default() }
}

/// A text of everything that is hard to cut.
fn written(choices: &mut Choices<'_>) -> String {
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
        text.push_str(choices.of(&PARTS));
    }
    text
}

/// The pieces of a text that is said in pieces.
fn heard_of(text: &str, edges: &[u8], wants: &Wants, limits: Limits) -> Vec<(String, u64, String, bool)> {
    let (mut agent, mut listener) = (Agent::default(), Listener::within(wants.clone(), limits));
    let mut edges = edges.iter();
    let mut rest = text;
    loop {
        let length = edges.next().map_or(rest.chars().count(), |edge| usize::from(*edge % 9));
        let at = rest.char_indices().nth(length).map_or(rest.len(), |(at, _)| at);
        let (piece, later) = rest.split_at(at);
        let complete = later.is_empty() && length > 0 || edges.len() == 0 && later.is_empty();
        listener.push(&agent.chunk(UnixMillis::new(0), SESSION, piece, complete));
        rest = later;
        if complete {
            return listener.chunks();
        }
    }
}

fn same_cuts(text: &str, edges: &[u8], wants: &Wants, limits: Limits) -> Result<(), TestCaseError> {
    let whole = heard_of(text, &[], wants, limits);
    let single: Vec<u8> = vec![1; text.chars().count()];
    prop_assert_eq!(&whole, &heard_of(text, edges, wants, limits), "{:?}", text);
    prop_assert_eq!(&whole, &heard_of(text, &single, wants, limits), "{:?}, letter by letter", text);
    let joined: String = whole.iter().map(|(piece, ..)| piece.as_str()).collect();
    prop_assert_eq!(joined, text);
    Ok(())
}

/// A recording, heard by one subscription.
struct Hearing {
    wants: Wants,
    listener: Listener,
    /// What was committed and is wanted.
    said: Vec<Committed>,
    /// What was heard, and the replies between.
    stream: Vec<String>,
    /// When something left that the rate counts.
    gated: Vec<i64>,
    /// Criticals that did not come at once.
    late: Vec<String>,
}

impl Hearing {
    fn of(bytes: &[u8], terms: &[u8]) -> Self {
        Self::hear(bytes, terms, false)
    }

    fn with_pulls_between(bytes: &[u8], terms: &[u8]) -> Self {
        Self::hear(bytes, terms, true)
    }

    fn hear(bytes: &[u8], terms: &[u8], restless: bool) -> Self {
        let mut choices = Choices::new(terms);
        let wants = Wants {
            rate: choices.of(&[None, Some(1), Some(3), Some(20), Some(1000)]),
            verbosity: choices.of(&[0, 1, 2]).pick([
                Verbosity::Normal,
                Verbosity::Terse,
                Verbosity::Detailed,
            ]),
            pace_wpm: choices.of(&[None, None, Some(50), Some(400)]),
            cognitive_load: choices.of(&[0, 0, 1]).pick([
                CognitiveLoad::Medium,
                CognitiveLoad::Low,
                CognitiveLoad::High,
            ]),
            confirmations: true,
            clarifications: true,
            filters: filters(),
            ..cutting(&mut choices)
        };
        let mut hearing = Self {
            listener: Listener::new(wants.clone()),
            wants,
            said: Vec::new(),
            stream: Vec::new(),
            gated: Vec::new(),
            late: Vec::new(),
        };
        let recording = Recording::of(bytes);
        for line in &recording.lines[recording.head..] {
            let mut value: Value = serde_json::from_str(&line.to_json()).unwrap();
            value.as_object_mut().unwrap().remove("sequence_number");
            let text = value.to_string();
            let now = aaep::Timestamp::parse(line.text("timestamp")).unwrap().unix_millis();
            if restless {
                hearing.pull_in_vain(now);
            }
            hearing.until(now);
            if line.kind().is_event() {
                let event = Arc::new(Received::<Event>::parse(text).unwrap());
                hearing.push(&event);
            } else {
                hearing.stream.push(text);
            }
            if restless {
                hearing.pull_in_vain(now);
            }
        }
        hearing.listener.finish();
        hearing.note(usize::MAX);
        hearing
    }

    fn until(&mut self, now: UnixMillis) {
        self.listener.until(now.max(self.listener.now));
        self.note(usize::MAX);
    }

    fn push(&mut self, event: &Committed) {
        let critical =
            event.envelope.event_type.is_critical() || event.envelope.urgency == Some(Urgency::Critical);
        let before = self.listener.heard.len();
        self.listener.push(event);
        self.said.push(Arc::clone(event));
        let place = self.listener.heard[before..]
            .iter()
            .position(|heard| heard.event().envelope.event_id == event.envelope.event_id);
        if critical && place.is_none() {
            self.late.push(event.text().to_owned());
        }
        // What goes in front of a critical is outside the rate, as it is itself.
        self.note(if critical { before + place.unwrap_or(0) } else { usize::MAX });
    }

    /// Takes over what has been heard since the last time; nothing of it up to `exempt` counts for the rate.
    fn note(&mut self, exempt: usize) {
        let from = self.stream_events();
        for (at, heard) in self.listener.heard.iter().enumerate().skip(from) {
            self.stream.push(heard.event().to_json());
            if !heard.out.is_critical() && (exempt == usize::MAX || at > exempt) {
                self.gated.push(heard.at.get());
            }
        }
    }

    fn stream_events(&self) -> usize {
        self.stream.iter().filter(|text| text.starts_with("{\"@context\"")).count()
    }

    /// Pulls that find nothing: now, again, and at times long ago.
    fn pull_in_vain(&mut self, now: UnixMillis) {
        let soon = self.listener.shaper.next_deadline().map_or(now, |at| (at - 1).min(now));
        for at in [0, self.listener.now.get(), soon.max(self.listener.now).get()] {
            assert!(self.listener.shaper.pull(UnixMillis::new(at)).is_none());
        }
    }

    fn sessions(&self) -> HashSet<String> {
        self.said.iter().map(|event| event.envelope.session_id.to_string()).collect()
    }
}

trait Pick {
    fn pick<T: Clone>(self, from: [T; 3]) -> T;
}

impl Pick for usize {
    fn pick<T: Clone>(self, from: [T; 3]) -> T {
        from[self].clone()
    }
}

/// All types, those of extensions too.
fn filters() -> EventFilters {
    let mut filters = EventFilters::new();
    filters.include = Some(vec!["*".to_owned()]);
    filters
}

/// The ids of what is never joined, in order.
fn fixed(events: impl Iterator<Item = Event>, session: &str) -> Vec<String> {
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

/// The whole text of each output.
fn texts<'e>(events: impl Iterator<Item = &'e Event>) -> HashMap<(String, String), String> {
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

/// The last progress that each producer told.
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
