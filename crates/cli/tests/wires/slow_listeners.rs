//! A listener that does not read, next to one that does.

use serde_json::{Value, json};

use crate::fixture::{TransportFixture, test_tokens};
use crate::sse::SseListener;
use crate::transport::{CloseSignal, ListenerConnection, ReceivedMessage, TransportKind};

/// A listener that has stopped reading, with all transport buffers full, and a neighbour that reads.
struct StalledListenerScenario {
    fixture: TransportFixture,
    connection: Box<dyn ListenerConnection>,
    neighbour: SseListener,
    session: String,
}

impl StalledListenerScenario {
    /// Fills the transport buffers with progress events. They are coalesced while queued, so the queue stays short.
    fn new(kind: TransportKind) -> Self {
        // The listener neither answers pings nor reads until the end of the test. Long timeouts keep it connected.
        let long_timeouts =
            ["--http-heartbeat", "1h", "--messages-ping-interval", "1h", "--messages-write-timeout", "1h"];
        let mut fixture = TransportFixture::in_memory_with(kind, &long_timeouts);
        let (connection, _) = fixture.connect_and_subscribe(&json!({}));
        let (neighbour, _) = fixture.connect_sse_listener(&test_tokens().ben, &json!({}));
        let session = fixture.start_session();
        let mut scenario = Self { fixture, connection, neighbour, session };
        // The kernel buffers up to 10 MiB on TCP, far less on other transports.
        let megabytes = if kind.has_tokens() { 16 } else { 2 };
        for round in 0..megabytes {
            let events: Vec<_> = (0..256)
                .map(|number| {
                    json!({"type": "aaep:agent.progress.updated",
                        "progress": {"description": format!("{round}/{number} {}", "x".repeat(3900))}})
                })
                .collect();
            scenario.fixture.publish(&scenario.session, &events);
            let last_description = events[255]["progress"]["description"].clone();
            scenario.neighbour_reads_until(|event| event["progress"]["description"] == last_description);
        }
        scenario
    }

    /// Makes the neighbour read up to the first event that matches.
    fn neighbour_reads_until(&mut self, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
        (&mut self.neighbour as &mut dyn ListenerConnection).events_until(is_last)
    }
}

pub(crate) fn a_slow_listener_receives_all_text_once(kind: TransportKind) {
    let mut scenario = StalledListenerScenario::new(kind);
    let mut full_text = String::new();
    for number in 0..400 {
        let sentence = format!("Sentence {number} of many. ");
        scenario.fixture.publish_output(&scenario.session, &sentence, false);
        full_text += &sentence;
    }
    scenario.fixture.publish_output(&scenario.session, "The end.", true);
    full_text += "The end.";
    let done = json!({"type": "aaep:agent.session.completed", "summary_normal": "All is done."});
    scenario.fixture.publish(&scenario.session, &[done]);
    let is_completed = |event: &Value| event["type"] == "aaep:agent.session.completed";
    let join_chunks = |events: &[Value]| {
        let mut position = 0;
        let mut text = String::new();
        for event in events.iter().filter(|event| event["chunk"].is_string()) {
            assert_eq!(event["position"], position, "no gap and no duplicate");
            let chunk = event["chunk"].as_str().unwrap();
            position += chunk.chars().count();
            text += chunk;
        }
        text
    };
    let neighbour_events = scenario.neighbour_reads_until(is_completed);
    assert_eq!(join_chunks(&neighbour_events), full_text);
    let stalled_events = scenario.connection.events_until(is_completed);
    assert_eq!(join_chunks(&stalled_events), full_text);
    let count_chunks = |events: &[Value]| events.iter().filter(|event| event["chunk"].is_string()).count();
    assert!(
        count_chunks(&stalled_events) < count_chunks(&neighbour_events),
        "the stalled listener received {} chunks, the neighbour {}",
        count_chunks(&stalled_events),
        count_chunks(&neighbour_events)
    );
}

pub(crate) fn a_stalled_listener_is_disconnected(kind: TransportKind) {
    let mut scenario = StalledListenerScenario::new(kind);
    // Up to 4 MiB may be queued.
    let sentence = format!("Word {}word. ", "word ".repeat(7000));
    for _ in 0..160 {
        scenario.fixture.publish_output(&scenario.session, &sentence, false);
        scenario.neighbour_reads_until(|event| event["chunk"].is_string());
    }
    // The listener receives the buffered events and then the close message.
    let close = loop {
        match scenario.connection.next_incoming() {
            ReceivedMessage::Event(_) | ReceivedMessage::Heartbeat => {}
            ReceivedMessage::Message(message) => break message,
            ReceivedMessage::End(signal) => {
                panic!("the connection ended without a close message: {signal:?}")
            }
        }
    };
    assert_eq!(
        (&close["type"], &close["reason_code"]),
        (&json!("subscription.close"), &json!("slow_consumer"))
    );
    assert_eq!(
        scenario.connection.close_signal(),
        kind.expected_signal(
            CloseSignal::End,
            CloseSignal::Code(4004),
            CloseSignal::End,
            CloseSignal::StaysOpen
        )
    );
    // Other listeners are unaffected.
    let done = json!({"type": "aaep:agent.session.completed", "summary_normal": "All is done."});
    scenario.fixture.publish_output(&scenario.session, "", true);
    scenario.fixture.publish(&scenario.session, &[done]);
    scenario.neighbour_reads_until(|event| event["type"] == "aaep:agent.session.completed");
}
