//! Follows a model's tokens from end to end: through the hub, shaped by a listener's terms, to the listener's
//! announcements.

use crate::support::*;
use hub::ListenerId;
use hub::command::{HubCommand, HubReply};
use listen::{AnnouncementKind, Preferences, Subscriber, SubscriberLimits};
use proptest::prelude::*;

const TERMS: &str = r#"{"supported_conformance_levels":[1,2,3],"max_events_per_second":3,"coalesce_boundaries":["sentence"]}"#;
const MAX_EVENTS_PER_SECOND: usize = 3;
/// Duration of one step, in milliseconds.
const STEP_MS: i64 = 10;

/// Sentences with misleading sentence ends, and with characters of one to four bytes.
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

/// Cuts bytes at these offsets into valid strings. A character that is cut goes into the next string.
fn split_at_offsets(bytes: &[u8], cuts: &[usize]) -> Vec<String> {
    let (mut chunks, mut held, mut from) = (Vec::new(), Vec::new(), 0);
    for to in cuts.iter().copied().chain([bytes.len()]) {
        held.extend_from_slice(&bytes[from..to]);
        from = to;
        let valid_bytes = match std::str::from_utf8(&held) {
            Ok(_) => held.len(),
            Err(error) => error.valid_up_to(),
        };
        let rest = held.split_off(valid_bytes);
        chunks.push(String::from_utf8(std::mem::replace(&mut held, rest)).unwrap());
    }
    chunks.retain(|chunk| !chunk.is_empty());
    assert!(held.is_empty());
    chunks
}

/// A person who listens, with the announcements and the times at which events arrived.
struct ListeningPerson {
    listener: ListenerId,
    subscriber: Subscriber,
    announcements: Vec<String>,
    times: Vec<i64>,
}

impl ListeningPerson {
    fn new(harness: &mut HubHarness) -> Self {
        let (_, listener) = harness.connect_listener(&listener("ada", &[]), TERMS);
        let subscriber = Subscriber::new(Preferences::default(), SubscriberLimits::default());
        Self { listener, subscriber, announcements: Vec::new(), times: Vec::new() }
    }

    fn listen(&mut self, harness: &mut HubHarness) {
        for event in harness.take_events(self.listener) {
            self.times.push(harness.now.get());
            self.subscriber.receive(&event, harness.now);
        }
        while let Some(next) = self.subscriber.next_announcement(harness.now) {
            if next.kind == AnnouncementKind::Agent {
                self.announcements.push(next.text.split_whitespace().collect::<Vec<_>>().join(" "));
            }
        }
    }

    /// Advances the time by this many steps.
    fn advance(&mut self, harness: &mut HubHarness, steps: usize) {
        for _ in 0..steps {
            harness.advance_time(STEP_MS);
            self.listen(harness);
        }
    }
}

/// Streams 100 chunks per second, then completes the output.
fn listen_to(chunks: &[String]) -> ListeningPerson {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let mut person = ListeningPerson::new(&mut harness);
    let session = harness.start(&bank);
    let output = |harness: &mut HubHarness, text: &str, complete| {
        let (session, text) = (session.clone(), text.to_owned());
        let command = HubCommand::StreamOutput {
            session: id(&session),
            output_id: None,
            producer: None,
            text,
            language: None,
            content_type: None,
            coalesce_hint: None,
            complete,
            agent_reports_next_state: false,
            idempotency_key: None,
        };
        let reply = harness.ask_hub(&bank, command);
        assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
    };
    for chunk in chunks {
        output(&mut harness, chunk, false);
        person.advance(&mut harness, 1);
    }
    output(&mut harness, "", true);
    person.advance(&mut harness, 300);
    person
}

/// Checks that each word is announced once and in order, in complete sentences, and that the rate limit is never
/// exceeded.
fn check_announcements(chunks: &[String]) -> Result<(), TestCaseError> {
    let person = listen_to(chunks);
    let mut sentences = STORY.into_iter();
    for text in &person.announcements {
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let Some(sentence) = sentences.next() else {
                return Err(TestCaseError::fail(format!("{text:?} was not expected")));
            };
            let Some(after) = rest.strip_prefix(sentence) else {
                return Err(TestCaseError::fail(format!("{text:?} does not consist of complete sentences")));
            };
            rest = after.trim_start();
        }
    }
    prop_assert_eq!(sentences.next(), None, "every sentence is announced");
    // The test sees an event up to one step after it was sent.
    for (first, next) in person.times.iter().zip(person.times.iter().skip(MAX_EVENTS_PER_SECOND)) {
        prop_assert!(
            next - first >= 1000 - STEP_MS,
            "more than {} events in {} ms",
            MAX_EVENTS_PER_SECOND,
            next - first
        );
    }
    Ok(())
}

#[test]
fn tokens_become_whole_sentences_for_every_single_cut() {
    let story = STORY.join(" ");
    for cut in 0..=story.len() {
        check_announcements(&split_at_offsets(story.as_bytes(), &[cut]))
            .unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
    }
}

#[test]
fn tokens_become_whole_sentences_byte_by_byte() {
    let story = STORY.join(" ");
    let every_byte: Vec<usize> = (1..story.len()).collect();
    check_announcements(&split_at_offsets(story.as_bytes(), &every_byte)).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn tokens_become_whole_sentences_for_random_cuts(sizes in prop::collection::vec(0_usize..9, 40..400)) {
        let story = STORY.join(" ");
        let mut at = 0;
        let cuts: Vec<usize> = sizes.iter().map(|size| { at = (at + size).min(story.len()); at }).collect();
        check_announcements(&split_at_offsets(story.as_bytes(), &cuts))?;
    }
}
