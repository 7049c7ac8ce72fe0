//! The load driver: what the benchmarks of the hub share.
//!
//! - [`Hub`] and [`Nchan`]: the servers, each the real program as a child, behind [`Server`].
//! - [`Agent`]: one connection that asks; [`Crowd`]: many of them, each with one request open.
//! - [`Ears`]: listeners that keep up, read by one thread; [`Slow`] and [`Laggards`]: those that do not.
//! - [`Flood`]: events at a rate that waits for nobody; [`Asker`]: questions, answers and wake-ups.
//! - [`Histogram`]: times, by the logarithm; [`Scale`]: how much is done.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::missing_panics_doc,
    reason = "a driver that cannot go on says where, and that is all it can do"
)]

mod agent;
mod asker;
mod bare;
mod crowd;
mod ears;
mod event;
mod flood;
mod histogram;
mod hub;
mod laggards;
mod nchan;
mod process;
mod publish;
mod scale;
mod slow;

use std::sync::LazyLock;
use std::time::Instant;

pub use agent::Agent;
pub use asker::{Asked, Asker};
pub use bare::{bare_appends, bare_writes};
pub use crowd::Crowd;
pub use ears::Ears;
pub use event::{ASKED, FLOOD, event, framed, lasting, question, whole};
pub use flood::{Flood, Flooded};
pub use histogram::Histogram;
pub use hub::{Hub, Store};
pub use laggards::Laggards;
pub use nchan::Nchan;
pub use process::Process;
pub use publish::{Published, Style, publish};
pub use scale::Scale;
pub use slow::Slow;

/// A server that takes events by HTTP and gives them to listeners by SSE.
pub trait Server {
    /// Its host and port.
    fn address(&self) -> &str;
    /// Where one more listener finds its stream; what must be asked for first is asked of this agent.
    fn stream(&self, agent: &mut Agent) -> String;
    /// One request, or several in a row, that publish so many events; and how many answers they get.
    fn request(&self, batch: usize) -> (Vec<u8>, usize);
    /// The process that does the work.
    fn process(&self) -> Process;
}

static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Microseconds since the driver began: what all stamps are in.
pub fn micros() -> u64 {
    u64::try_from(BEGUN.elapsed().as_micros()).unwrap_or(u64::MAX)
}
