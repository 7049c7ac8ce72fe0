//! One agent that publishes to fast listeners.

use std::time::{Duration, Instant};

use super::{KeepAliveClient, ListenerPool, Server};

/// How the agent publishes.
#[derive(Clone, Copy, Debug)]
pub struct PublishMode {
    /// Number of events per request.
    pub batch: usize,
    /// Number of open requests.
    pub in_flight: usize,
}

impl PublishMode {
    /// Each event is acknowledged before the next is sent.
    pub const ONE_AT_A_TIME: Self = Self { batch: 1, in_flight: 1 };
    /// One event per request, sixteen open requests.
    pub const PIPELINED: Self = Self { batch: 1, in_flight: 16 };
    /// Batches of a hundred events, each acknowledged before the next.
    pub const BATCHES: Self = Self { batch: 100, in_flight: 1 };
}

/// The result of a publishing run.
#[derive(Clone, Copy, Debug)]
pub struct PublishResult {
    events: usize,
    delivered: usize,
    elapsed: Duration,
    cpu_time: Duration,
}

impl PublishResult {
    /// Returns the delivered events per second, from the first request to the last arrival.
    pub fn deliveries_per_second(&self) -> f64 {
        self.delivered as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns the published events per second.
    pub fn events_per_second(&self) -> f64 {
        self.events as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns the CPU time of the server per published event, in microseconds.
    pub fn cpu_micros_per_event(&self) -> f64 {
        self.cpu_time.as_secs_f64() * 1e6 / self.events as f64
    }

    /// Returns the CPU time of the server per delivered event, in microseconds.
    pub fn cpu_micros_per_delivery(&self) -> f64 {
        self.cpu_time.as_secs_f64() * 1e6 / self.delivered.max(1) as f64
    }
}

/// Publishes at least `events` events and waits until all of them have arrived.
pub fn publish(
    server: &impl Server,
    listeners: &ListenerPool,
    events: usize,
    mode: PublishMode,
) -> PublishResult {
    let (request, responses) = server.publish_request(mode.batch);
    let mut agent = KeepAliveClient::connect(server.address());
    listeners.wait_until_idle();
    let (delivered_before, cpu_time_before) = (listeners.delivered_events(), server.process().cpu_time());
    let rounds = events.div_ceil(mode.batch);
    let started = Instant::now();
    for round in 0..rounds {
        if round >= mode.in_flight {
            (0..responses).for_each(|_| drop(agent.read_response()));
        }
        agent.send(&request);
    }
    (0..responses * rounds.min(mode.in_flight)).for_each(|_| drop(agent.read_response()));
    let events = rounds * mode.batch;
    let delivered = events * listeners.count;
    listeners.wait_for_events(delivered_before + delivered as u64);
    PublishResult {
        events,
        delivered,
        elapsed: started.elapsed(),
        cpu_time: server.process().cpu_time().saturating_sub(cpu_time_before),
    }
}
