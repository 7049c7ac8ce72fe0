//! The load driver, shared by the benchmarks of the hub.
//!
//! - [`BenchHub`] and [`Nchan`]: the servers, real programs in child processes, behind [`Server`].
//! - [`KeepAliveClient`]: one connection.
//! - [`ConcurrentPublishResult`]: runs many publishers, each with one connection and one open request, and holds the measurements.
//! - [`ListenerPool`]: fast listeners, read by one thread; [`ThrottledListener`] and [`SlowReaders`]: slow ones.
//! - [`FixedRateLoad`]: events at a fixed rate (open loop); [`QuestionDriver`]: questions, answers and wake-ups.
//! - [`Histogram`]: logarithmic latency histogram; [`Scale`]: full or quick runs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::missing_panics_doc,
    reason = "a benchmark stops at the first error"
)]

mod baseline;
mod concurrent_publishers;
mod event;
mod fixed_rate_load;
mod histogram;
mod hub;
mod keep_alive_client;
mod listener_pool;
mod nchan;
mod process_stats;
mod publish;
mod question_driver;
mod scale;
mod slow_readers;
mod throttled_listener;

use std::sync::LazyLock;
use std::time::Instant;

pub use baseline::{baseline_appends, baseline_writes};
pub use concurrent_publishers::ConcurrentPublishResult;
pub use event::{
    EVENT_STAMP_PREFIX, QUESTION_STAMP_PREFIX, enveloped_uncoalescable_event, event, frame_len, question,
    uncoalescable_event,
};
pub use fixed_rate_load::{FixedRateLoad, FixedRateResult};
pub use histogram::Histogram;
pub use hub::{BenchHub, Store};
pub use keep_alive_client::KeepAliveClient;
pub use listener_pool::ListenerPool;
pub use nchan::Nchan;
pub use process_stats::ProcessStats;
pub use publish::{PublishMode, PublishResult, publish};
pub use question_driver::{QuestionDriver, QuestionTimes};
pub use scale::Scale;
pub use slow_readers::SlowReaders;
pub use throttled_listener::ThrottledListener;

/// A server that accepts events over HTTP and delivers them to listeners over SSE.
pub trait Server {
    /// The host and port.
    fn address(&self) -> &str;
    /// Returns the path of the stream for one more listener. Subscribes with `client` if that is needed.
    fn subscribe_and_get_stream_path(&self, client: &mut KeepAliveClient) -> String;
    /// Returns a request, or several in a row, that publishes `batch` events, and the number of responses.
    fn publish_request(&self, batch: usize) -> (Vec<u8>, usize);
    /// The server process.
    fn process(&self) -> ProcessStats;
}

static DRIVER_START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Returns the microseconds since the benchmark program started. All measured times use this clock.
pub fn elapsed_micros() -> u64 {
    u64::try_from(DRIVER_START.elapsed().as_micros()).unwrap_or(u64::MAX)
}
