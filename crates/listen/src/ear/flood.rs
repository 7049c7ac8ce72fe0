//! More than was agreed (§10.2.2, T4). The shaper keeps the rate; here it is noticed that the producer does not.

use aaep::event::{Event, Urgency};
use seal::UnixMillis;

use super::Ear;

/// What comes is counted over so long.
const WINDOW: i64 = 10_000;
/// So long it is not said again.
const AGAIN: i64 = 60_000;

#[derive(Debug, Default)]
pub(super) struct Flood {
    since: Option<UnixMillis>,
    count: u64,
    /// What comes in this window is no fault: it was under way before the terms held, or was kept for us.
    grace: bool,
    told: Option<UnixMillis>,
}

impl Flood {
    /// Other terms hold, or a connection is new: counting begins after a window.
    pub(super) fn forgive(&mut self) {
        *self = Self { grace: true, told: self.told, ..Self::default() };
    }

    /// One more; whether that is to be told.
    fn is_too_much(&mut self, rate: u64, now: UnixMillis) -> bool {
        let since = *self.since.get_or_insert(now);
        if now.millis_since(since) >= WINDOW {
            *self = Self { since: Some(now), told: self.told, ..Self::default() };
        }
        self.count += 1;
        // A fifth more is nobody's fault: clocks differ, and networks join what was sent apart.
        let most = rate.saturating_mul(12).saturating_add(10);
        let again = self.told.is_none_or(|at| now.millis_since(at) >= AGAIN);
        let tell = !self.grace && self.count > most && again;
        if tell {
            self.told = Some(now);
        }
        tell
    }
}

impl Ear {
    /// Counts an event against the rate that is wished for, and says once in a while that there are too many.
    pub(super) fn watch_rate(&mut self, event: &Event, now: UnixMillis) {
        let Some(rate) = self.tastes.rate.filter(|_| !self.history) else { return };
        let envelope = &event.envelope;
        let critical = envelope.event_type.is_critical() || envelope.urgency == Some(Urgency::Critical);
        if !critical && self.flood.is_too_much(rate, now) {
            let text = self.phrases.too_many(rate);
            self.notice(event, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Ear, Limits, Tastes};
    use seal::UnixMillis;

    /// Hears as many, with the numbers from `first`, at one moment; what is said by then.
    fn hear(ear: &mut Ear, first: usize, many: usize, now: i64) -> Vec<String> {
        let now = UnixMillis::new(now);
        for number in first..first + many {
            ear.hear(
                &format!(
                    r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.tool.invoked","event_id":"evt_{number}","session_id":"sess_1","timestamp":"2026-05-24T14:00:00.000Z","producer":{{"agent_id":"bank"}},"tool":"t","summary_normal":"Number {number}."}}"#
                ),
                now,
            );
        }
        std::iter::from_fn(|| ear.next(now)).flat_map(|said| said.lines().collect::<Vec<_>>()).collect()
    }

    fn listener() -> Ear {
        let mut ear = Ear::new(Tastes { rate: Some(5), ..Tastes::default() }, Limits::default());
        ear.subscribe(aaep::SubscriptionId::parse("sub_1").unwrap());
        ear
    }

    #[test]
    fn a_producer_that_floods_is_slowed_down_here_and_that_is_said() {
        let mut ear = listener();
        hear(&mut ear, 0, 1, 0);
        let mut said = hear(&mut ear, 1, 500, 20_000);
        let is_notice = |line: &&String| line.starts_with("notice: More comes than the 5 events in a second");
        assert_eq!(said.iter().filter(is_notice).count(), 1, "{said:?}");
        assert!(said.len() <= 3, "{said:?}");
        // All of it is said in the end, in order, at the rate that was agreed.
        let mut now = 20_000;
        while let Some(due) = ear.next_deadline() {
            assert!(due > UnixMillis::new(now), "it would never rest");
            now = due.get();
            let more = hear(&mut ear, 0, 0, now);
            assert!(more.len() <= 1, "{more:?}");
            said.extend(more);
        }
        assert!(now >= 20_000 + 499 * 200 - 1000, "at {now}");
        let told: Vec<_> = said.into_iter().filter(|line| line.starts_with("tool: ")).collect();
        assert_eq!(told, (1..501).map(|number| format!("tool: Number {number}.")).collect::<Vec<_>>());
    }

    #[test]
    fn what_was_under_way_when_the_terms_changed_is_no_fault() {
        let mut ear = listener();
        // After a return, what was kept comes at once.
        let mut said = hear(&mut ear, 0, 300, 0);
        hear(&mut ear, 300, 1, 20_000);
        ear.set_tastes(Tastes { rate: Some(1), ..Tastes::default() });
        said.extend(hear(&mut ear, 301, 100, 20_000));
        for at in 0..500 {
            said.extend(hear(&mut ear, 0, 0, 20_000 + at * 1000));
        }
        let told: Vec<_> = said.iter().filter(|line| line.starts_with("tool: ")).collect();
        assert!(said.iter().all(|line| line.starts_with("tool: ")), "{said:?}");
        assert!(told.len() > 390, "{}", told.len());
    }
}
