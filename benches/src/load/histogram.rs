//! A logarithmic histogram: 64 buckets per doubling, so a value is accurate to 1.6 %.

/// A histogram of microseconds.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

const BUCKET_BITS: u32 = 6;

impl Histogram {
    /// Adds one value.
    pub fn record(&mut self, micros: u64) {
        let index = bucket(micros);
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.total += 1;
        self.max = self.max.max(micros);
    }

    /// Adds all values of another histogram.
    pub fn add(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, other_count) in self.counts.iter_mut().zip(&other.counts) {
            *count += other_count;
        }
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    /// Returns the number of values.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns a quantile in milliseconds: `per_mille` of every thousand values do not exceed it.
    pub fn quantile_millis(&self, per_mille: u64) -> f64 {
        let rank = (self.total * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return bucket_upper_bound(index).min(self.max) as f64 / 1e3;
            }
        }
        f64::NAN
    }

    /// Returns the median, in milliseconds.
    pub fn p50_millis(&self) -> f64 {
        self.quantile_millis(500)
    }

    /// Returns the 99th percentile, in milliseconds.
    pub fn p99_millis(&self) -> f64 {
        self.quantile_millis(990)
    }

    /// Returns the maximum, in milliseconds.
    pub fn max_millis(&self) -> f64 {
        self.max as f64 / 1e3
    }
}

impl FromIterator<u64> for Histogram {
    fn from_iter<T: IntoIterator<Item = u64>>(times: T) -> Self {
        let mut histogram = Self::default();
        times.into_iter().for_each(|micros| histogram.record(micros));
        histogram
    }
}

fn bucket(micros: u64) -> usize {
    let doublings = micros.checked_ilog2().unwrap_or(0).saturating_sub(BUCKET_BITS);
    usize::try_from((u64::from(doublings) << BUCKET_BITS) + (micros >> doublings)).unwrap()
}

/// Returns the largest value in this bucket.
fn bucket_upper_bound(index: usize) -> u64 {
    let buckets_per_doubling = 1 << BUCKET_BITS;
    let doublings = (index / buckets_per_doubling).saturating_sub(1);
    let offset = index - doublings * buckets_per_doubling;
    ((offset as u64 + 1) << doublings) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_only_values_that_are_close_together() {
        for micros in (0..5000).chain((1..40).map(|power| (1_u64 << power) + power)) {
            let highest = bucket_upper_bound(bucket(micros));
            assert!(highest >= micros, "{micros}");
            assert!(highest - micros <= micros / 64, "{micros} is reported as {highest}");
            assert_eq!(bucket(highest), bucket(micros));
            assert_eq!(bucket(highest + 1), bucket(micros) + 1);
        }
    }

    #[test]
    fn median_99th_percentile_and_maximum_are_correct() {
        let mut histogram: Histogram = (1..=50).collect();
        histogram.add(&(51..=100).collect());
        assert_eq!((histogram.len(), histogram.p50_millis(), histogram.p99_millis()), (100, 0.050, 0.099));
        assert_eq!((histogram.quantile_millis(1000), histogram.max_millis()), (0.1, 0.1));
        assert!(Histogram::default().p99_millis().is_nan());
    }
}
