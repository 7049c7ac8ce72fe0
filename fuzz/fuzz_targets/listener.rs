//! Whatever bytes a stream gives, and however they are cut: a listener does not panic, prints nothing that acts on a terminal
//! or turns a line around, says nothing twice, and loses nothing that is critical.

#![no_main]

use std::collections::{HashMap, HashSet};

use seal::UnixMillis;
use aaep::event::{Event, EventType, Urgency};
use libfuzzer_sys::fuzz_target;
use client::sse::{Block, Parser};
use listen::{Announcement, Ear, Kind, Limits, Tastes};

/// More than any input has.
const LONGEST: usize = 1 << 20;

fuzz_target!(|input: &[u8]| {
    // The first byte says how long the pieces are.
    let Some((cut, bytes)) = input.split_first() else { return };
    let blocks = read(bytes.chunks(usize::from(*cut).max(1)));
    assert_eq!(blocks, read(std::iter::once(bytes)), "blocks depend on where the bytes are cut");
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block.data.as_deref()).collect();

    let mut ear = Ear::new(Tastes::default(), Limits::default());
    let mut now = UnixMillis::default();
    let mut said = Vec::new();
    for text in &texts {
        ear.hear(text, now);
        said.extend(heard(&mut ear, now));
        now += 10;
    }
    said.extend(rest(&mut ear, &mut now));

    let mut told: HashMap<&str, usize> = HashMap::new();
    let loud = said.iter().filter(|one| one.is_critical() && !one.text.is_empty());
    for session in loud.filter_map(|one| one.session.as_ref()) {
        *told.entry(session.as_str()).or_default() += 1;
    }
    for (session, count) in critical(&texts) {
        let told = told.get(session.as_str()).copied().unwrap_or_default();
        assert!(
            told >= count,
            "{session} had {count} critical events, and {told} urgent things were said of it"
        );
    }

    // The same events again, as after a lost connection.
    for text in texts.iter().filter(|text| Event::parse(text).is_some()) {
        ear.hear(text, now);
        let again = heard(&mut ear, now);
        assert!(again.is_empty(), "said again: {again:?}");
    }
    assert_eq!(rest(&mut ear, &mut now), [], "said again, later");
});

fn read<'b>(pieces: impl Iterator<Item = &'b [u8]>) -> Vec<Block> {
    let (mut parser, mut blocks) = (Parser::new(LONGEST), Vec::new());
    pieces.for_each(|piece| parser.take(piece, &mut blocks));
    blocks
}

/// What is said now, which is harmless.
fn heard(ear: &mut Ear, now: UnixMillis) -> Vec<Announcement> {
    let said: Vec<_> = std::iter::from_fn(|| ear.next(now)).collect();
    for line in said.iter().flat_map(Announcement::lines) {
        let word = line.split(':').next().unwrap_or_default();
        assert!(Kind::ALL.iter().any(|kind| kind.word() == word), "no word in front: {line:?}");
        assert_eq!(seal::harmless(&line, |c| format!("<{c:x}>")), line, "it acts on a terminal");
    }
    said
}

/// What is said as time goes by, until there is nothing more to wait for.
fn rest(ear: &mut Ear, now: &mut UnixMillis) -> Vec<Announcement> {
    let mut said = Vec::new();
    for _ in 0..100_000 {
        let Some(due) = ear.next_deadline() else { return said };
        *now = due.max(*now);
        said.extend(heard(ear, *now));
    }
    panic!("it never comes to rest");
}

/// How many events of each session are critical; of the same id only the first. What is joined with others is not counted.
fn critical(texts: &[&str]) -> HashMap<String, usize> {
    let (mut seen, mut counts) = (HashSet::new(), HashMap::new());
    for event in texts.iter().filter_map(|text| Event::parse(text)) {
        let envelope = &event.envelope;
        let joined = matches!(
            envelope.event_type,
            EventType::OutputStreaming | EventType::StateChanged | EventType::ProgressUpdated
        );
        // It is no event, whatever else stands in it.
        if envelope.event_type.as_str() == "sayso:gap" {
            continue;
        }
        let critical = envelope.event_type.is_critical() || envelope.urgency == Some(Urgency::Critical);
        if seen.insert(envelope.event_id.as_str().to_owned()) && critical && !joined {
            *counts.entry(envelope.session_id.as_str().to_owned()).or_default() += 1;
        }
    }
    counts
}
