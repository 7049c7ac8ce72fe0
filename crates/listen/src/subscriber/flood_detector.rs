//! Detects producers that exceed the agreed rate (§10.2.2, T4). The shaper enforces the rate; this module warns the person.

use aaep::event::{Event, Urgency};
use seal::UnixMillis;

use super::Subscriber;

/// Length of the counting window, in milliseconds.
const WINDOW_MS: i64 = 10_000;
/// Minimum time between two warnings, in milliseconds.
const WARNING_INTERVAL_MS: i64 = 60_000;

#[derive(Debug, Default)]
pub(super) struct FloodDetector {
    window_start: Option<UnixMillis>,
    event_count: u64,
    /// Whether warnings are suppressed in this window: its events may predate the current terms, or the hub may have held them back.
    is_grace_window: bool,
    last_warning: Option<UnixMillis>,
}

impl FloodDetector {
    /// Restarts after new terms or a new connection. The first window causes no warning.
    pub(super) fn restart_with_grace(&mut self) {
        *self = Self { is_grace_window: true, last_warning: self.last_warning, ..Self::default() };
    }

    /// Counts an event and returns whether to warn.
    fn record_event(&mut self, rate: u64, now: UnixMillis) -> bool {
        let window_start = *self.window_start.get_or_insert(now);
        if now.millis_since(window_start) >= WINDOW_MS {
            *self = Self { window_start: Some(now), last_warning: self.last_warning, ..Self::default() };
        }
        self.event_count += 1;
        // Allows 20 percent plus 10 events above the rate, because clocks differ and networks deliver in bursts.
        let limit = rate.saturating_mul(12).saturating_add(10);
        let interval_elapsed = self.last_warning.is_none_or(|at| now.millis_since(at) >= WARNING_INTERVAL_MS);
        let should_warn = !self.is_grace_window && self.event_count > limit && interval_elapsed;
        if should_warn {
            self.last_warning = Some(now);
        }
        should_warn
    }
}

impl Subscriber {
    /// Counts an event against the preferred rate and warns the person from time to time if there are too many.
    pub(super) fn check_rate(&mut self, event: &Event, now: UnixMillis) {
        let Some(rate) = self.preferences.max_events_per_second.filter(|_| !self.is_replay) else { return };
        let envelope = &event.envelope;
        let is_critical = envelope.event_type.is_critical() || envelope.urgency == Some(Urgency::Critical);
        if !is_critical && self.flood_detector.record_event(rate, now) {
            let text = self.phrases.rate_exceeded(rate);
            self.announce_notice(event, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Preferences, Subscriber, SubscriberLimits};
    use seal::UnixMillis;

    /// Receives `count` events, numbered from `first`, at the same time, and returns the announced lines.
    fn receive_events(subscriber: &mut Subscriber, first: usize, count: usize, now: i64) -> Vec<String> {
        let now = UnixMillis::new(now);
        for number in first..first + count {
            subscriber.receive(
                &format!(
                    r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.tool.invoked","event_id":"evt_{number}","session_id":"sess_1","timestamp":"2026-05-24T14:00:00.000Z","producer":{{"agent_id":"bank"}},"tool":"t","summary_normal":"Number {number}."}}"#
                ),
                now,
            );
        }
        std::iter::from_fn(|| subscriber.next_announcement(now))
            .flat_map(|announcement| announcement.lines().collect::<Vec<_>>())
            .collect()
    }

    fn new_subscriber() -> Subscriber {
        let mut subscriber = Subscriber::new(
            Preferences { max_events_per_second: Some(5), ..Preferences::default() },
            SubscriberLimits::default(),
        );
        subscriber.set_subscription(aaep::SubscriptionId::parse("sub_1").unwrap());
        subscriber
    }

    #[test]
    fn a_flood_is_slowed_down_and_the_person_is_warned() {
        let mut subscriber = new_subscriber();
        receive_events(&mut subscriber, 0, 1, 0);
        let mut lines = receive_events(&mut subscriber, 1, 500, 20_000);
        let is_warning =
            |line: &&String| line.starts_with("notice: More than the agreed 5 events a second are arriving");
        assert_eq!(lines.iter().filter(is_warning).count(), 1, "{lines:?}");
        assert!(lines.len() <= 3, "{lines:?}");
        // Later, all events are announced in order, at the agreed rate.
        let mut now = 20_000;
        while let Some(due) = subscriber.next_deadline() {
            assert!(due > UnixMillis::new(now), "the deadline must be in the future");
            now = due.get();
            let more = receive_events(&mut subscriber, 0, 0, now);
            assert!(more.len() <= 1, "{more:?}");
            lines.extend(more);
        }
        assert!(now >= 20_000 + 499 * 200 - 1000, "at {now}");
        let tool_lines: Vec<_> = lines.into_iter().filter(|line| line.starts_with("tool: ")).collect();
        assert_eq!(tool_lines, (1..501).map(|number| format!("tool: Number {number}.")).collect::<Vec<_>>());
    }

    #[test]
    fn events_sent_before_the_terms_changed_cause_no_warning() {
        let mut subscriber = new_subscriber();
        // After a reconnect, all held events arrive together.
        let mut lines = receive_events(&mut subscriber, 0, 300, 0);
        receive_events(&mut subscriber, 300, 1, 20_000);
        subscriber.set_preferences(Preferences { max_events_per_second: Some(1), ..Preferences::default() });
        lines.extend(receive_events(&mut subscriber, 301, 100, 20_000));
        for at in 0..500 {
            lines.extend(receive_events(&mut subscriber, 0, 0, 20_000 + at * 1000));
        }
        let tool_lines: Vec<_> = lines.iter().filter(|line| line.starts_with("tool: ")).collect();
        assert!(lines.iter().all(|line| line.starts_with("tool: ")), "{lines:?}");
        assert!(tool_lines.len() > 390, "{}", tool_lines.len());
    }
}
