//! How often a number was how large.

use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets with fixed bounds. Adding is two additions and a search among a dozen.
#[derive(Debug)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    /// One more than bounds; not yet summed up.
    buckets: Box<[AtomicU64]>,
    /// In millionths.
    sum: AtomicU64,
}

/// A histogram at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Snapshot {
    pub(super) bounds: &'static [f64],
    /// For each bound and for what is beyond the last, each on its own.
    pub(super) buckets: Vec<u64>,
    pub(super) sum: f64,
}

const MILLION: f64 = 1_000_000.0;

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        let buckets = std::iter::repeat_with(AtomicU64::default).take(bounds.len() + 1).collect();
        Self { bounds, buckets, sum: AtomicU64::new(0) }
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, and nothing here is negative"
    )]
    pub(super) fn add(&self, value: f64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        if let Some(bucket) = self.buckets.get(place) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add((value * MILLION) as u64, Ordering::Relaxed);
    }

    #[allow(clippy::cast_precision_loss, reason = "a sum that large is not read to the last digit")]
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            bounds: self.bounds,
            buckets: self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect(),
            sum: self.sum.load(Ordering::Relaxed) as f64 / MILLION,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_is_within_it() {
        let histogram = Histogram::new(&[1.0, 2.0]);
        for value in [0.5, 1.0, 1.5, 2.0, 9.0] {
            histogram.add(value);
        }
        let seen = histogram.snapshot();
        assert_eq!(seen.buckets, [2, 2, 1]);
        assert!((seen.sum - 14.0).abs() < 1e-9);
    }
}
