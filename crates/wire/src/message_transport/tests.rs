//! Timeouts, tested with a paused clock.

use std::time::Duration;

use hub::delivery::DeliveryLimits;
use hub::{Core, Principal};
use seal::UnixMillis;

use super::*;
use crate::server::HubHandle;

/// A source that returns these messages, the last one first, and then stays silent.
struct ScriptedSource(Vec<&'static str>);

impl MessageSource for ScriptedSource {
    async fn receive(&mut self) -> InboundItem {
        match self.0.pop() {
            Some(text) => InboundItem::Message { text: text.to_owned(), request_id: None },
            None => std::future::pending().await,
        }
    }
}

/// A sink that records a short description of each item. It blocks forever after the given number of items.
struct RecordingSink(Vec<String>, usize);

impl MessageSink for RecordingSink {
    async fn transmit(&mut self, item: OutboundItem) -> bool {
        if self.0.len() >= self.1 {
            std::future::pending::<()>().await;
        }
        self.0.push(match item {
            OutboundItem::Ping => "ping".to_owned(),
            OutboundItem::Reply { .. } => "answer".to_owned(),
            other => format!("{other:?}"),
        });
        true
    }
}

const LIMITS: WireLimits = WireLimits {
    first_message_timeout: Some(Duration::from_secs(10)),
    ping_interval: Some(Duration::from_secs(15)),
    max_malformed: Some(8),
    write_timeout: Duration::from_mins(1),
};
const REQUEST: &str =
    r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"test","capabilities":{}}"#;

/// Runs a subscription. Returns why it ended, the items that the hub sent, and the time that passed. The sink blocks after
/// `max_items` items.
fn run(script: Vec<&'static str>, max_items: usize) -> (DisconnectReason, Vec<String>, Duration) {
    let core = Core::new(
        Box::new(journal::MemoryJournal::default()),
        aaep::event::Producer::new("hub"),
        hub::HubLimits::default(),
        |bytes: &mut [u8]| bytes.fill(7),
        UnixMillis::new(0),
    );
    let hub = HubHandle::start(core.unwrap(), DeliveryLimits::default(), || UnixMillis::new(0)).unwrap();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let started = tokio::time::Instant::now();
        let mut sink = RecordingSink(Vec::new(), max_items);
        let limits = WireLimits {
            first_message_timeout: LIMITS.first_message_timeout.filter(|_| script.is_empty()),
            ..LIMITS
        };
        let reason =
            run_subscription(&hub, &Principal::local(), &limits, &mut ScriptedSource(script), &mut sink)
                .await;
        (reason, sink.0, started.elapsed())
    })
}

#[test]
fn a_silent_connection_is_closed() {
    let (reason, items, elapsed) = run(Vec::new(), 9);
    assert_eq!((reason, items.len()), (DisconnectReason::IdleTimeout, 1));
    assert!(elapsed >= Duration::from_secs(10), "{elapsed:?}");
}

#[test]
fn three_unanswered_pings_close_the_connection() {
    let (reason, items, elapsed) = run(vec![REQUEST], usize::MAX);
    assert_eq!(reason, DisconnectReason::IdleTimeout);
    assert_eq!(items.get(..4).unwrap(), ["answer", "ping", "ping", "ping"]);
    assert!(elapsed >= Duration::from_mins(1), "{elapsed:?}");
}

#[test]
fn a_connection_that_stops_reading_is_closed() {
    let (reason, items, _) = run(vec![REQUEST], 2);
    // The paused clock advances while the hub's thread is working, so either timeout can expire first.
    assert!(matches!(reason, DisconnectReason::IdleTimeout | DisconnectReason::ConnectionLost), "{reason:?}");
    assert_eq!(items.len(), 2);
}
