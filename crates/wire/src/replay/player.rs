//! A recording in its time, shaped by one listener's terms.

use std::io;
use std::sync::Arc;

use aaep::Received;
use aaep::event::Event;
use aaep::shape::{self, Out, Shaper, Wants};
use seal::UnixMillis;
use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep_until};

use super::{Events, Recorded, Recording};
use crate::clock;

/// Events without a pause between them are given so many at a time, so that others get their turn.
const TOGETHER: u32 = 64;

/// Gives a recording's events when they are due.
pub(super) struct Player<'r> {
    recording: &'r Recording,
    events: Events,
    next: Option<Recorded>,
    wants: watch::Receiver<Arc<Wants>>,
    shaper: Shaper<Received<Event>>,
    /// When playing began, and the recording's time then.
    begun: Option<(Instant, UnixMillis)>,
    /// The recording's time. A clock that went back does not take it along.
    at: UnixMillis,
    run: u32,
}

impl<'r> Player<'r> {
    /// From the start.
    pub(super) fn new(recording: &'r Recording, mut wants: watch::Receiver<Arc<Wants>>) -> io::Result<Self> {
        let mut events = (recording.open)()?;
        let shaper = Shaper::new(Arc::clone(&wants.borrow_and_update()), shape::Limits::default());
        let next = events.next();
        Ok(Self { recording, events, next, wants, shaper, begun: None, at: UnixMillis::MIN, run: 0 })
    }

    /// From after the event with this id; from the start if there is none.
    pub(super) async fn after(
        recording: &'r Recording,
        wants: watch::Receiver<Arc<Wants>>,
        last: &str,
    ) -> io::Result<Self> {
        let mut player = Self::new(recording, wants.clone())?;
        while player.push() {
            while let Some(out) = player.shaper.pull(clock()) {
                if out.event().envelope.event_id.as_str() == last {
                    return Ok(player);
                }
            }
            player.rest().await;
        }
        Self::new(recording, wants)
    }

    /// The next event: its id, and its JSON on one line. It never ends: after the last there is silence. A future that is
    /// dropped before it is done loses nothing.
    pub(super) async fn next(&mut self) -> (String, String) {
        loop {
            if self.wants.has_changed().unwrap_or(false) {
                self.renegotiate();
            }
            if let Some(out) = self.shaper.pull(clock()) {
                return written(&out);
            }
            let due = self.due();
            if due.is_some_and(|due| due <= Instant::now()) {
                self.rest().await;
                self.push();
                continue;
            }
            let held = self.shaper.next_deadline().map(|at| {
                let millis = at.millis_since(clock()).max(0).unsigned_abs();
                Instant::now() + Duration::from_millis(millis.min(3_600_000))
            });
            let wake = due.into_iter().chain(held).min();
            tokio::select! {
                () = until(wake) => {}
                Ok(()) = self.wants.changed() => self.renegotiate(),
            }
        }
    }

    fn renegotiate(&mut self) {
        let wants = Arc::clone(&self.wants.borrow_and_update());
        self.shaper.renegotiate(wants);
    }

    /// When the next event is due; nothing after the last, and while more waits than may.
    fn due(&mut self) -> Option<Instant> {
        let next = self.next.as_ref().filter(|_| !self.shaper.is_full())?;
        let at = next.as_ref().as_ref().envelope.timestamp.unix_millis().max(self.at);
        let (begun, first) = *self.begun.get_or_insert_with(|| (Instant::now(), at));
        let pause = (self.recording.pause)(at.millis_since(first));
        Some(begun.checked_add(pause).unwrap_or_else(|| Instant::now() + Duration::from_hours(24)))
    }

    /// Gives the next event to the shaper; says whether there was one.
    fn push(&mut self) -> bool {
        let Some(event) = self.next.take() else { return false };
        self.at = self.at.max(event.as_ref().as_ref().envelope.timestamp.unix_millis());
        self.shaper.push(&event);
        self.next = self.events.next();
        true
    }

    async fn rest(&mut self) {
        self.run += 1;
        if self.run.is_multiple_of(TOGETHER) {
            tokio::task::yield_now().await;
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn written(out: &Out<Received<Event>>) -> (String, String) {
    let id = out.event().envelope.event_id.as_str().to_owned();
    let json = match out {
        Out::Same(event) => event.text().replace(['\n', '\r'], " "),
        Out::Made(event) => event.to_json(),
    };
    (id, json)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events at these seconds, each with its number.
    fn recording(seconds: &'static [i64], pause: fn(i64) -> Duration) -> Recording {
        let open = move || {
            let events = seconds.iter().enumerate().map(|(number, second)| {
                let at = aaep::Timestamp::from_unix_millis(UnixMillis::new(1_780_000_000_000 + second * 1000)).unwrap();
                let text = format!(
                    r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.state.changed","event_id":"evt_{number}","session_id":"sess_1","timestamp":"{at}","producer":{{"agent_id":"bank"}},"from_state":"idle","to_state":"thinking"}}"#
                );
                Arc::new(Received::<Event>::parse(text).unwrap())
            });
            Ok(Box::new(events) as Events)
        };
        Recording { open: Box::new(open), pause: Box::new(pause) }
    }

    fn wants() -> watch::Receiver<Arc<Wants>> {
        watch::Sender::new(Arc::new(Wants::default())).subscribe()
    }

    /// When each of so many came, in seconds since the first.
    async fn times(mut player: Player<'_>, count: usize) -> Vec<(String, u64)> {
        let mut times = Vec::new();
        let begun = Instant::now();
        for _ in 0..count {
            times.push((player.next().await.0, begun.elapsed().as_secs()));
        }
        times
    }

    fn expected(times: &[(usize, u64)]) -> Vec<(String, u64)> {
        times.iter().map(|(number, at)| (format!("evt_{number}"), *at)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn events_come_in_their_time_and_a_clock_that_goes_back_holds_nothing_up() {
        let as_it_was = |millis: i64| Duration::from_millis(millis.unsigned_abs());
        let recording = recording(&[0, 10, 5, 70, 70], as_it_was);
        let heard = times(Player::new(&recording, wants()).unwrap(), 5).await;
        assert_eq!(heard, expected(&[(0, 0), (1, 10), (2, 10), (3, 70), (4, 70)]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_speed_divides_every_pause() {
        let ten_times = |millis: i64| Duration::from_millis(millis.unsigned_abs() / 10);
        let recording = recording(&[0, 100, 3600], ten_times);
        let heard = times(Player::new(&recording, wants()).unwrap(), 3).await;
        assert_eq!(heard, expected(&[(0, 0), (1, 10), (2, 360)]));
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_back_does_not_wait_for_what_it_has_heard() {
        let as_it_was = |millis: i64| Duration::from_millis(millis.unsigned_abs());
        let recording = recording(&[0, 100, 130], as_it_was);
        let player = Player::after(&recording, wants(), "evt_0").await.unwrap();
        assert_eq!(times(player, 2).await, expected(&[(1, 0), (2, 30)]));
        let player = Player::after(&recording, wants(), "evt_gone").await.unwrap();
        assert_eq!(times(player, 2).await, expected(&[(0, 0), (1, 100)]));
    }
}
