//! One agent that publishes to listeners who keep up.

use std::time::{Duration, Instant};

use super::{Agent, Ears, Server};

/// How an agent publishes.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Events that are sent together.
    pub batch: usize,
    /// Requests, or rows of them, that are open at once.
    pub open: usize,
}

impl Style {
    /// Each event acknowledged before the next is sent.
    pub const ONE: Self = Self { batch: 1, open: 1 };
    /// One event a request, sixteen requests open.
    pub const PIPELINED: Self = Self { batch: 1, open: 16 };
    /// A hundred events at a time, each hundred acknowledged before the next.
    pub const BATCHES: Self = Self { batch: 100, open: 1 };
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    events: usize,
    delivered: usize,
    took: Duration,
    busy: Duration,
}

impl Published {
    /// Delivered events a second, from the first request to the last arrival.
    pub fn rate(&self) -> f64 {
        self.delivered as f64 / self.took.as_secs_f64()
    }

    /// Published events a second.
    pub fn events(&self) -> f64 {
        self.events as f64 / self.took.as_secs_f64()
    }

    /// The server's processor time for each published event, in microseconds.
    pub fn cost(&self) -> f64 {
        self.busy.as_secs_f64() * 1e6 / self.events as f64
    }

    /// The server's processor time for each delivered event, in microseconds.
    pub fn cost_each(&self) -> f64 {
        self.busy.as_secs_f64() * 1e6 / self.delivered.max(1) as f64
    }
}

/// Publishes at least so many events, and waits until they have arrived.
pub fn publish(server: &impl Server, ears: &Ears, events: usize, style: Style) -> Published {
    let (request, answers) = server.request(style.batch);
    let mut agent = Agent::connect(server.address());
    ears.settle();
    let (before, busy) = (ears.events(), server.process().busy());
    let rounds = events.div_ceil(style.batch);
    let begun = Instant::now();
    for round in 0..rounds {
        if round >= style.open {
            (0..answers).for_each(|_| drop(agent.answer()));
        }
        agent.send(&request);
    }
    (0..answers * rounds.min(style.open)).for_each(|_| drop(agent.answer()));
    let events = rounds * style.batch;
    let delivered = events * ears.count;
    ears.until(before + delivered as u64);
    Published { events, delivered, took: begun.elapsed(), busy: server.process().busy().saturating_sub(busy) }
}
