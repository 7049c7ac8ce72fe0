//! Fuzzes a listener with any bytes, in chunks of any size. The listener must not panic, print characters that control a
//! terminal or reverse the text direction, announce anything twice, or lose a critical event.

#![no_main]

use std::collections::{HashMap, HashSet};

use aaep::event::{Event, EventType, Urgency};
use client::sse::{SseEvent, SseParser};
use libfuzzer_sys::fuzz_target;
use listen::{Announcement, AnnouncementKind, Preferences, Subscriber, SubscriberLimits};
use seal::UnixMillis;

/// The parser's limit, which no input reaches.
const MAX_EVENT_BYTES: usize = 1 << 20;

fuzz_target!(|input: &[u8]| {
    // The first byte is the chunk size.
    let Some((chunk_size, bytes)) = input.split_first() else { return };
    let sse_events = parse(bytes.chunks(usize::from(*chunk_size).max(1)));
    assert_eq!(sse_events, parse(std::iter::once(bytes)), "the server-sent events depend on the chunk size");
    let texts: Vec<&str> = sse_events.iter().filter_map(|sse_event| sse_event.data.as_deref()).collect();

    let mut subscriber = Subscriber::new(Preferences::default(), SubscriberLimits::default());
    let mut now = UnixMillis::default();
    let mut announcements = Vec::new();
    for text in &texts {
        subscriber.receive(text, now);
        announcements.extend(pending_announcements(&mut subscriber, now));
        now += 10;
    }
    announcements.extend(later_announcements(&mut subscriber, &mut now));

    let mut announced: HashMap<&str, usize> = HashMap::new();
    let critical = announcements
        .iter()
        .filter(|announcement| announcement.is_critical() && !announcement.text.is_empty());
    for session in critical.filter_map(|announcement| announcement.session_id.as_ref()) {
        *announced.entry(session.as_str()).or_default() += 1;
    }
    for (session, count) in count_critical_events(&texts) {
        let announced = announced.get(session.as_str()).copied().unwrap_or_default();
        assert!(
            announced >= count,
            "{session} had {count} critical events, but {announced} critical announcements"
        );
    }

    // The same events arrive again, as after a lost connection.
    for text in texts.iter().filter(|text| Event::parse(text).is_some()) {
        subscriber.receive(text, now);
        let repeated = pending_announcements(&mut subscriber, now);
        assert!(repeated.is_empty(), "announced twice: {repeated:?}");
    }
    assert_eq!(later_announcements(&mut subscriber, &mut now), [], "announced twice, after a delay");
});

fn parse<'b>(chunks: impl Iterator<Item = &'b [u8]>) -> Vec<SseEvent> {
    let (mut parser, mut sse_events) = (SseParser::new(MAX_EVENT_BYTES), Vec::new());
    chunks.for_each(|chunk| parser.feed(chunk, &mut sse_events));
    sse_events
}

/// Returns the announcements that are due now. Asserts that they are safe to print.
fn pending_announcements(subscriber: &mut Subscriber, now: UnixMillis) -> Vec<Announcement> {
    let announcements: Vec<_> = std::iter::from_fn(|| subscriber.next_announcement(now)).collect();
    for line in announcements.iter().flat_map(Announcement::lines) {
        let label = line.split(':').next().unwrap_or_default();
        assert!(AnnouncementKind::ALL.iter().any(|kind| kind.as_str() == label), "no label: {line:?}");
        assert_eq!(
            seal::escape_controls(&line, |c| format!("<{c:x}>")),
            line,
            "the line contains control characters"
        );
    }
    announcements
}

/// Advances the clock until nothing more is due, and returns the announcements.
fn later_announcements(subscriber: &mut Subscriber, now: &mut UnixMillis) -> Vec<Announcement> {
    let mut announcements = Vec::new();
    for _ in 0..100_000 {
        let Some(due) = subscriber.next_deadline() else { return announcements };
        *now = due.max(*now);
        announcements.extend(pending_announcements(subscriber, *now));
    }
    panic!("the subscriber never becomes idle");
}

/// Counts the critical events of each session, each event id once. Event types that are merged are not counted.
fn count_critical_events(texts: &[&str]) -> HashMap<String, usize> {
    let (mut seen_ids, mut counts) = (HashSet::new(), HashMap::new());
    for event in texts.iter().filter_map(|text| Event::parse(text)) {
        let envelope = &event.envelope;
        let is_merged = matches!(
            envelope.event_type,
            EventType::OutputStreaming | EventType::StateChanged | EventType::ProgressUpdated
        );
        // A gap notice is not an event, even if it has the members of one.
        if envelope.event_type.as_str() == "sayso:gap" {
            continue;
        }
        let is_critical = envelope.event_type.is_critical() || envelope.urgency == Some(Urgency::Critical);
        if seen_ids.insert(envelope.event_id.as_str().to_owned()) && is_critical && !is_merged {
            *counts.entry(envelope.session_id.as_str().to_owned()).or_default() += 1;
        }
    }
    counts
}
