//! Fuzzes the AAEP parsers. They must not panic, and parsed events, messages and timestamps must survive a round trip.

#![no_main]

use aaep::Timestamp;
use aaep::event::Event;
use aaep::json::Tape;
use aaep::message::Message;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut tape = Tape::default();
    let Ok(doc) = tape.read(text) else { return };
    let _ = doc.root().source();
    if let Some(event) = Event::read(&doc) {
        let written = event.to_json();
        assert_eq!(Event::parse(&written), Some(event), "{written}");
    }
    if let Some(message) = Message::parse(text) {
        let written = message.to_json();
        assert_eq!(Message::parse(&written), Some(message), "{written}");
    }
    if let Some(text) = doc.root().text()
        && let Ok(time) = Timestamp::parse_rfc3339(&text)
    {
        assert_eq!(time.to_string(), text);
    }
});
