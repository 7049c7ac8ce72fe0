//! Plays a recording at the recorded pace, shaped by one listener's terms.

use std::io;
use std::sync::Arc;

use aaep::ParsedDocument;
use aaep::event::Event;
use aaep::shaping::{self, OutgoingEvent, Shaper, ShapingTerms};
use seal::UnixMillis;
use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep_until};

use super::{RecordedEvent, RecordedEvents, ReplaySource};
use crate::unix_now;

/// Number of events after which the player yields to other tasks.
const EVENTS_PER_YIELD: u32 = 64;

/// Returns a recording's events when they are due.
pub(super) struct Player<'r> {
    source: &'r ReplaySource,
    events: RecordedEvents,
    next: Option<RecordedEvent>,
    shaping_terms: watch::Receiver<Arc<ShapingTerms>>,
    shaper: Shaper<ParsedDocument<Event>>,
    /// When the replay started, and the timestamp of the first event.
    started: Option<(Instant, UnixMillis)>,
    /// The latest timestamp so far. It never goes back, even if the recorded clock was set back.
    recording_time: UnixMillis,
    events_pushed: u32,
}

impl<'r> Player<'r> {
    /// Creates a player that starts at the first event.
    pub(super) fn new(
        source: &'r ReplaySource,
        mut shaping_terms: watch::Receiver<Arc<ShapingTerms>>,
    ) -> io::Result<Self> {
        let mut events = (source.open)()?;
        let shaper =
            Shaper::new(Arc::clone(&shaping_terms.borrow_and_update()), shaping::ShaperLimits::default());
        let next = events.next();
        Ok(Self {
            source,
            events,
            next,
            shaping_terms,
            shaper,
            started: None,
            recording_time: UnixMillis::MIN,
            events_pushed: 0,
        })
    }

    /// Creates a player that starts after the event with this id, or at the first event if there is no such event.
    pub(super) async fn resume_after(
        source: &'r ReplaySource,
        shaping_terms: watch::Receiver<Arc<ShapingTerms>>,
        last_event_id: &str,
    ) -> io::Result<Self> {
        let mut player = Self::new(source, shaping_terms.clone())?;
        while player.push_next() {
            while let Some(outgoing) = player.shaper.pull(unix_now()) {
                if outgoing.event().envelope.event_id.as_str() == last_event_id {
                    return Ok(player);
                }
            }
            player.yield_periodically().await;
        }
        Self::new(source, shaping_terms)
    }

    /// Waits until the next event is due. Returns its id and its JSON on one line. After the last event, waits forever.
    /// Cancel-safe.
    pub(super) async fn next(&mut self) -> (String, String) {
        loop {
            if self.shaping_terms.has_changed().unwrap_or(false) {
                self.renegotiate();
            }
            if let Some(outgoing) = self.shaper.pull(unix_now()) {
                return format_event(&outgoing);
            }
            let due_at = self.next_due();
            if due_at.is_some_and(|due_at| due_at <= Instant::now()) {
                self.yield_periodically().await;
                self.push_next();
                continue;
            }
            let shaper_deadline = self.shaper.next_deadline().map(|time| {
                let millis = time.millis_since(unix_now()).max(0).unsigned_abs();
                Instant::now() + Duration::from_millis(millis.min(3_600_000))
            });
            let wake_at = due_at.into_iter().chain(shaper_deadline).min();
            tokio::select! {
                () = sleep_until_some(wake_at) => {}
                Ok(()) = self.shaping_terms.changed() => self.renegotiate(),
            }
        }
    }

    fn renegotiate(&mut self) {
        let shaping_terms = Arc::clone(&self.shaping_terms.borrow_and_update());
        self.shaper.renegotiate(shaping_terms);
    }

    /// Returns when the next event is due. Returns `None` after the last event, and while the shaper is over its limit.
    fn next_due(&mut self) -> Option<Instant> {
        let next = self.next.as_ref().filter(|_| !self.shaper.is_over_limit())?;
        let time = next.as_ref().as_ref().envelope.timestamp.unix_millis().max(self.recording_time);
        let (started, first_time) = *self.started.get_or_insert_with(|| (Instant::now(), time));
        let delay = (self.source.delay)(time.millis_since(first_time));
        Some(started.checked_add(delay).unwrap_or_else(|| Instant::now() + Duration::from_hours(24)))
    }

    /// Passes the next event to the shaper. Returns whether there was one.
    fn push_next(&mut self) -> bool {
        let Some(event) = self.next.take() else { return false };
        self.recording_time =
            self.recording_time.max(event.as_ref().as_ref().envelope.timestamp.unix_millis());
        self.shaper.push(&event);
        self.next = self.events.next();
        true
    }

    async fn yield_periodically(&mut self) {
        self.events_pushed += 1;
        if self.events_pushed.is_multiple_of(EVENTS_PER_YIELD) {
            tokio::task::yield_now().await;
        }
    }
}

async fn sleep_until_some(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn format_event(outgoing: &OutgoingEvent<ParsedDocument<Event>>) -> (String, String) {
    let id = outgoing.event().envelope.event_id.as_str().to_owned();
    let json = match outgoing {
        OutgoingEvent::Unchanged(event) => event.text().replace(['\n', '\r'], " "),
        OutgoingEvent::Rewritten(event) => event.to_json(),
    };
    (id, json)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a recording with events at these seconds, with ids from `evt_0`.
    fn recording(seconds: &'static [i64], delay: fn(i64) -> Duration) -> ReplaySource {
        let open = move || {
            let events = seconds.iter().enumerate().map(|(number, second)| {
                let time = aaep::Timestamp::from_unix_millis(UnixMillis::new(1_780_000_000_000 + second * 1000)).unwrap();
                let text = format!(
                    r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.state.changed","event_id":"evt_{number}","session_id":"sess_1","timestamp":"{time}","producer":{{"agent_id":"bank"}},"from_state":"idle","to_state":"thinking"}}"#
                );
                Arc::new(ParsedDocument::<Event>::parse(text).unwrap())
            });
            Ok(Box::new(events) as RecordedEvents)
        };
        ReplaySource { open: Box::new(open), delay: Box::new(delay) }
    }

    fn shaping_terms() -> watch::Receiver<Arc<ShapingTerms>> {
        watch::Sender::new(Arc::new(ShapingTerms::default())).subscribe()
    }

    /// Returns the ids of the next events, with the seconds since the start.
    async fn playback_times(mut player: Player<'_>, count: usize) -> Vec<(String, u64)> {
        let mut times = Vec::new();
        let started = Instant::now();
        for _ in 0..count {
            times.push((player.next().await.0, started.elapsed().as_secs()));
        }
        times
    }

    fn expected(times: &[(usize, u64)]) -> Vec<(String, u64)> {
        times.iter().map(|(number, time)| (format!("evt_{number}"), *time)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn events_are_played_on_time_even_if_the_recorded_clock_went_back() {
        let original_speed = |millis: i64| Duration::from_millis(millis.unsigned_abs());
        let source = recording(&[0, 10, 5, 70, 70], original_speed);
        let played = playback_times(Player::new(&source, shaping_terms()).unwrap(), 5).await;
        assert_eq!(played, expected(&[(0, 0), (1, 10), (2, 10), (3, 70), (4, 70)]));
    }

    #[tokio::test(start_paused = true)]
    async fn the_playback_speed_divides_every_pause() {
        let ten_times = |millis: i64| Duration::from_millis(millis.unsigned_abs() / 10);
        let source = recording(&[0, 100, 3600], ten_times);
        let played = playback_times(Player::new(&source, shaping_terms()).unwrap(), 3).await;
        assert_eq!(played, expected(&[(0, 0), (1, 10), (2, 360)]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_resumed_player_skips_events_already_played() {
        let original_speed = |millis: i64| Duration::from_millis(millis.unsigned_abs());
        let source = recording(&[0, 100, 130], original_speed);
        let player = Player::resume_after(&source, shaping_terms(), "evt_0").await.unwrap();
        assert_eq!(playback_times(player, 2).await, expected(&[(1, 0), (2, 30)]));
        let player = Player::resume_after(&source, shaping_terms(), "evt_gone").await.unwrap();
        assert_eq!(playback_times(player, 2).await, expected(&[(0, 0), (1, 100)]));
    }
}
