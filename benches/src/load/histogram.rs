//! Times, by the logarithm: each doubling is cut into 64, so a figure is right to within 1.6 %.

/// Counts of microseconds.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    most: u64,
}

const CUTS: u32 = 6;

impl Histogram {
    /// Counts one.
    pub fn record(&mut self, micros: u64) {
        let place = place(micros);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
        self.total += 1;
        self.most = self.most.max(micros);
    }

    /// Counts all of another too.
    pub fn add(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (own, more) in self.counts.iter_mut().zip(&other.counts) {
            *own += more;
        }
        self.total += other.total;
        self.most = self.most.max(other.most);
    }

    /// How many were counted.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The time that so much of a thousand do not exceed, in milliseconds.
    pub fn millis(&self, of_thousand: u64) -> f64 {
        let wanted = (self.total * of_thousand).div_ceil(1000).max(1);
        let mut seen = 0;
        for (place, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return upper(place).min(self.most) as f64 / 1e3;
            }
        }
        f64::NAN
    }

    /// The middle.
    pub fn p50(&self) -> f64 {
        self.millis(500)
    }

    /// What one in a hundred exceeds.
    pub fn p99(&self) -> f64 {
        self.millis(990)
    }

    /// The longest, in milliseconds.
    pub fn most(&self) -> f64 {
        self.most as f64 / 1e3
    }
}

impl FromIterator<u64> for Histogram {
    fn from_iter<T: IntoIterator<Item = u64>>(times: T) -> Self {
        let mut histogram = Self::default();
        times.into_iter().for_each(|micros| histogram.record(micros));
        histogram
    }
}

fn place(micros: u64) -> usize {
    let doublings = micros.checked_ilog2().unwrap_or(0).saturating_sub(CUTS);
    usize::try_from((u64::from(doublings) << CUTS) + (micros >> doublings)).unwrap()
}

/// The largest that has this place.
fn upper(place: usize) -> u64 {
    let cuts = 1 << CUTS;
    let doublings = (place / cuts).saturating_sub(1);
    let cut = place - doublings * cuts;
    ((cut as u64 + 1) << doublings) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_holds_what_is_close_together_and_nothing_else() {
        for micros in (0..5000).chain((1..40).map(|power| (1_u64 << power) + power)) {
            let highest = upper(place(micros));
            assert!(highest >= micros, "{micros}");
            assert!(highest - micros <= micros / 64, "{micros} is told as {highest}");
            assert_eq!(place(highest), place(micros));
            assert_eq!(place(highest + 1), place(micros) + 1);
        }
    }

    #[test]
    fn the_middle_and_the_last_hundredth() {
        let mut histogram: Histogram = (1..=50).collect();
        histogram.add(&(51..=100).collect());
        assert_eq!((histogram.len(), histogram.p50(), histogram.p99()), (100, 0.050, 0.099));
        assert_eq!((histogram.millis(1000), histogram.most()), (0.1, 0.1));
        assert!(Histogram::default().p99().is_nan());
    }
}
