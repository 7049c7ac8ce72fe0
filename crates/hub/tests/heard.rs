//! A model's tokens on their whole way: into the hub, to a listener by its terms, and into the listener's ear.

use crate::support::*;
use hub::ListenerId;
use hub::command::{Command, Reply};
use listen::{Ear, Kind, Limits, Tastes};
use proptest::prelude::*;

const TERMS: &str = r#"{"supported_conformance_levels":[1,2,3],"max_events_per_second":3,"coalesce_boundaries":["sentence"]}"#;
const RATE: usize = 3;
/// In milliseconds.
const STEP: i64 = 10;

/// Sentences with what looks like the end of one, and with letters of one to four bytes.
const STORY: [&str; 12] = [
    "Dr. Ada sent $3.50 to Ben.",
    "Then, at 5 p.m. sharp, she slept!",
    "Was it much?",
    "Nobody knows.",
    "Àwọn ọmọ náà wá.",
    "Straße 7 ist gesperrt.",
    "Мама дома.",
    "مرحبا بك يا صديقي.",
    "هل أنت هنا؟",
    "A family 👩‍👩‍👧 came by.",
    "See example.org/a.b for version 1.2.3 of it.",
    "The end.",
];

/// Bytes come, text goes on; what is half a letter waits for its other half.
fn pieces_of(bytes: &[u8], cuts: &[usize]) -> Vec<String> {
    let (mut pieces, mut held, mut from) = (Vec::new(), Vec::new(), 0);
    for to in cuts.iter().copied().chain([bytes.len()]) {
        held.extend_from_slice(&bytes[from..to]);
        from = to;
        let whole = match std::str::from_utf8(&held) {
            Ok(_) => held.len(),
            Err(error) => error.valid_up_to(),
        };
        let rest = held.split_off(whole);
        pieces.push(String::from_utf8(std::mem::replace(&mut held, rest)).unwrap());
    }
    pieces.retain(|piece| !piece.is_empty());
    assert!(held.is_empty());
    pieces
}

/// A person who listens: what was said to them, and when their events came.
struct Person {
    listener: ListenerId,
    ear: Ear,
    said: Vec<String>,
    times: Vec<i64>,
}

impl Person {
    fn new(stage: &mut Stage) -> Self {
        let (_, listener) = stage.listener(&listener("ada", &[]), TERMS);
        let ear = Ear::new(Tastes::default(), Limits::default());
        Self { listener, ear, said: Vec::new(), times: Vec::new() }
    }

    fn listen(&mut self, stage: &mut Stage) {
        for event in stage.heard(self.listener) {
            self.times.push(stage.now.get());
            self.ear.hear(&event, stage.now);
        }
        while let Some(next) = self.ear.next(stage.now) {
            if next.kind == Kind::Agent {
                self.said.push(next.text.split_whitespace().collect::<Vec<_>>().join(" "));
            }
        }
    }

    /// So many steps pass.
    fn pass(&mut self, stage: &mut Stage, steps: usize) {
        for _ in 0..steps {
            stage.wait(STEP);
            self.listen(stage);
        }
    }
}

/// A hundred pieces in a second, then the end.
fn heard(pieces: &[String]) -> Person {
    let mut stage = Stage::new();
    let bank = agent("bank");
    let mut person = Person::new(&mut stage);
    let session = stage.start(&bank);
    let output = |stage: &mut Stage, text: &str, complete| {
        let (session, text) = (session.clone(), text.to_owned());
        let command = Command::Output {
            session: id(&session),
            output_id: None,
            text,
            language: None,
            content_type: None,
            complete,
            stays: false,
            key: None,
        };
        let said = stage.ask_hub(&bank, command);
        assert!(matches!(said, Reply::EventsPublished { .. }), "{said:?}");
    };
    for piece in pieces {
        output(&mut stage, piece, false);
        person.pass(&mut stage, 1);
    }
    output(&mut stage, "", true);
    person.pass(&mut stage, 300);
    person
}

/// Each word once and in order; whole sentences; no second with more events than were asked for.
fn is_heard_well(pieces: &[String]) -> Result<(), TestCaseError> {
    let person = heard(pieces);
    let mut sentences = STORY.into_iter();
    for said in &person.said {
        let mut rest = said.as_str();
        while !rest.is_empty() {
            let Some(sentence) = sentences.next() else {
                return Err(TestCaseError::fail(format!("{said:?} was not to come")));
            };
            let Some(after) = rest.strip_prefix(sentence) else {
                return Err(TestCaseError::fail(format!("{said:?} is not made of whole sentences")));
            };
            rest = after.trim_start();
        }
    }
    prop_assert_eq!(sentences.next(), None, "all of it is said");
    // An event is seen up to one step after it was sent.
    for (first, next) in person.times.iter().zip(person.times.iter().skip(RATE)) {
        prop_assert!(next - first >= 1000 - STEP, "more than {} events in {} ms", RATE, next - first);
    }
    Ok(())
}

#[test]
fn a_hundred_tokens_a_second_are_whole_sentences_wherever_they_are_cut_once() {
    let story = STORY.join(" ");
    for cut in 0..=story.len() {
        is_heard_well(&pieces_of(story.as_bytes(), &[cut]))
            .unwrap_or_else(|why| panic!("cut at {cut}: {why}"));
    }
}

#[test]
fn one_byte_at_a_time_too() {
    let story = STORY.join(" ");
    let every: Vec<usize> = (1..story.len()).collect();
    is_heard_well(&pieces_of(story.as_bytes(), &every)).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn a_hundred_tokens_a_second_are_whole_sentences_however_they_are_cut(sizes in prop::collection::vec(0_usize..9, 40..400)) {
        let story = STORY.join(" ");
        let mut at = 0;
        let cuts: Vec<usize> = sizes.iter().map(|size| { at = (at + size).min(story.len()); at }).collect();
        is_heard_well(&pieces_of(story.as_bytes(), &cuts))?;
    }
}
