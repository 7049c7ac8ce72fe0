//! A histogram with fixed buckets.

use std::sync::atomic::{AtomicU64, Ordering};

/// A lock-free histogram with fixed bounds. Adding a value costs two atomic additions and a search among
/// about a dozen bounds.
#[derive(Debug)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    /// One count per bound, plus one for larger values; not cumulative.
    buckets: Box<[AtomicU64]>,
    /// The sum of all values, in millionths.
    sum_micros: AtomicU64,
}

/// The state of a histogram at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HistogramSnapshot {
    pub(super) bounds: &'static [f64],
    /// One count per bound, plus one for larger values; not cumulative.
    pub(super) buckets: Vec<u64>,
    pub(super) sum: f64,
}

const MICROS_PER_UNIT: f64 = 1_000_000.0;

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        let buckets = std::iter::repeat_with(AtomicU64::default).take(bounds.len() + 1).collect();
        Self { bounds, buckets, sum_micros: AtomicU64::new(0) }
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, and nothing here is negative"
    )]
    pub(super) fn add(&self, value: f64) {
        let index = self.bounds.partition_point(|bound| *bound < value);
        if let Some(bucket) = self.buckets.get(index) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_micros.fetch_add((value * MICROS_PER_UNIT) as u64, Ordering::Relaxed);
    }

    #[allow(clippy::cast_precision_loss, reason = "the last digits of such a large sum do not matter")]
    pub(super) fn snapshot(&self) -> HistogramSnapshot {
        HistogramSnapshot {
            bounds: self.bounds,
            buckets: self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect(),
            sum: self.sum_micros.load(Ordering::Relaxed) as f64 / MICROS_PER_UNIT,
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
        let snapshot = histogram.snapshot();
        assert_eq!(snapshot.buckets, [2, 2, 1]);
        assert!((snapshot.sum - 14.0).abs() < 1e-9);
    }
}
