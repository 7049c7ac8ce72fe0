//! The time axis: time to scale, except for long waits, which are cut out and marked.

use crate::replay::timeline::{LONG_WAIT_MS, format_offset};

/// Width of the mark of a cut-out wait.
const BREAK_WIDTH: i32 = 56;
/// Maximum number of cuts, so that enough room is left for what happens between them.
const MAX_BREAKS: usize = 8;
/// Minimum distance between the starts of two labels.
const LABEL_SPACING: i32 = 84;
/// Distances between labels, in milliseconds.
const TICK_STEPS_MS: [i64; 19] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000, 900_000,
    3_600_000, 21_600_000,
];

pub(super) struct TimeAxis {
    segments: Vec<AxisSegment>,
    right: i32,
}

/// A part of the axis that is to scale.
struct AxisSegment {
    start_ms: i64,
    end_ms: i64,
    left: i32,
    right: i32,
}

/// A wait that is cut out of the axis.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AxisBreak {
    pub(super) left: i32,
    pub(super) right: i32,
    pub(super) duration_ms: i64,
}

pub(super) struct AxisLabel {
    pub(super) x: i32,
    /// Whether the text ends at `x`, because there is no room to the right. Otherwise it starts there.
    pub(super) ends_at_x: bool,
    pub(super) text: String,
}

impl TimeAxis {
    /// Creates an axis from `left` to `right`. `times` are the times of the events in ascending order, in milliseconds.
    pub(super) fn new(times: &[i64], left: i32, right: i32) -> Self {
        let breaks = find_breaks(times);
        let first = times.first().copied().unwrap_or(0);
        let last = times.last().copied().unwrap_or(first);
        let mut bounds = vec![(first, last)];
        for (start, end) in &breaks {
            let Some(open) = bounds.last_mut() else { continue };
            open.1 = *start;
            bounds.push((*end, last));
        }
        let scaled_ms: i64 = bounds.iter().map(|(start, end)| end - start).sum::<i64>().max(1);
        let breaks_width = BREAK_WIDTH * i32::try_from(breaks.len()).unwrap_or(0);
        let width = i64::from(right - left - breaks_width);
        let mut passed_ms = 0;
        let mut segments = Vec::with_capacity(bounds.len());
        for ((start_ms, end_ms), index) in bounds.into_iter().zip(0..) {
            let x = |ms: i64| {
                left + BREAK_WIDTH * index
                    + i32::try_from(i128::from(ms) * i128::from(width) / i128::from(scaled_ms)).unwrap_or(0)
            };
            let segment_left = x(passed_ms);
            passed_ms += end_ms - start_ms;
            segments.push(AxisSegment { start_ms, end_ms, left: segment_left, right: x(passed_ms) });
        }
        Self { segments, right }
    }

    /// Returns the position of a time.
    pub(super) fn x(&self, ms: i64) -> i32 {
        let has_started = |segment: &&AxisSegment| segment.start_ms <= ms;
        let Some(segment) = self.segments.iter().rev().find(has_started).or(self.segments.first()) else {
            return self.right;
        };
        let length = (segment.end_ms - segment.start_ms).max(1);
        let offset = (ms - segment.start_ms).clamp(0, length);
        let width = i128::from(segment.right - segment.left);
        segment.left + i32::try_from(i128::from(offset) * width / i128::from(length)).unwrap_or(0)
    }

    pub(super) fn breaks(&self) -> impl Iterator<Item = AxisBreak> {
        self.segments.iter().zip(self.segments.iter().skip(1)).map(|(before, after)| AxisBreak {
            left: before.right,
            right: after.left,
            duration_ms: after.start_ms - before.end_ms,
        })
    }

    /// Returns the labels. Each part that is to scale has one at its start, if there is room.
    pub(super) fn labels(&self) -> Vec<AxisLabel> {
        let mut labels: Vec<AxisLabel> = Vec::new();
        for (segment, index) in self.segments.iter().zip(1..) {
            let limit = self.segments.get(index).map_or(self.right + LABEL_SPACING / 2, |next| next.left);
            let mut add = |x: i32, ms: i64| {
                let ends_at_x = x + LABEL_SPACING > self.right + LABEL_SPACING / 2;
                let left = if ends_at_x { x - LABEL_SPACING } else { x };
                let has_room = labels.last().is_none_or(|last| left >= last.x + LABEL_SPACING);
                if has_room && (x == segment.left || x + LABEL_SPACING <= limit) {
                    labels.push(AxisLabel { x, ends_at_x, text: format_offset(Some(ms)) });
                }
            };
            add(segment.left, segment.start_ms);
            let step = segment.tick_step();
            let mut ms = segment.start_ms - segment.start_ms.rem_euclid(step) + step;
            while ms <= segment.end_ms {
                add(self.x(ms), ms);
                ms = ms.saturating_add(step);
            }
        }
        labels
    }
}

impl AxisSegment {
    /// Returns the smallest distance between labels that leaves enough room for them.
    fn tick_step(&self) -> i64 {
        let length = self.end_ms - self.start_ms;
        let width = i128::from((self.right - self.left).max(1));
        let has_room =
            |step: &&i64| i128::from(**step) * width >= i128::from(length) * i128::from(LABEL_SPACING);
        let longest = length.max(1);
        TICK_STEPS_MS.iter().find(has_room).copied().unwrap_or(longest)
    }
}

/// Returns the waits to cut out, in ascending order. A wait is cut out if it lasts at least [`LONG_WAIT_MS`], takes up much of
/// the axis, and is far longer than the usual time between two events. Evenly spaced events are therefore all drawn to scale.
fn find_breaks(times: &[i64]) -> Vec<(i64, i64)> {
    let waits = times.iter().zip(times.iter().skip(1)).map(|(start, end)| (*start, *end));
    let mut by_length: Vec<_> = waits.filter(|(start, end)| end > start).collect();
    by_length.sort_by_key(|(start, end)| end - start);
    let usual = by_length.get(by_length.len() / 4).map_or(0, |(start, end)| end - start);
    let mut remaining: i64 = by_length.iter().map(|(start, end)| end - start).sum();
    let mut breaks = Vec::new();
    for (start, end) in by_length.into_iter().rev().take(MAX_BREAKS) {
        let length = end - start;
        if length < LONG_WAIT_MS || length <= usual.saturating_mul(4) || length.saturating_mul(8) <= remaining
        {
            break;
        }
        remaining -= length;
        breaks.push((start, end));
    }
    breaks.sort_unstable();
    breaks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_to_scale_between_breaks() {
        let axis = TimeAxis::new(&[0, 100, 200, 400, 1000], 200, 1200);
        assert_eq!([0, 100, 200, 400, 1000].map(|ms| axis.x(ms)), [200, 300, 400, 600, 1200]);
        assert_eq!(axis.breaks().count(), 0);
        assert_eq!([-5, 5000].map(|ms| axis.x(ms)), [200, 1200]);
    }

    #[test]
    fn a_long_wait_is_cut_out_and_marked() {
        let times = [0, 400, 800, 3_600_800, 3_601_200];
        let axis = TimeAxis::new(&times, 0, 1056);
        let breaks: Vec<_> = axis.breaks().collect();
        assert_eq!(breaks, [AxisBreak { left: 666, right: 722, duration_ms: 3_600_000 }]);
        // 400 ms have the same width before and after the break.
        assert_eq!(times.map(|ms| axis.x(ms)), [0, 333, 666, 722, 1056]);
    }

    #[test]
    fn evenly_spaced_events_have_no_breaks() {
        let times: Vec<_> = (0..10).map(|index| index * 60_000).collect();
        assert_eq!(TimeAxis::new(&times, 0, 1000).breaks().count(), 0);
    }

    #[test]
    fn labels_do_not_overlap_and_no_time_is_outside_the_axis() {
        let times = [0, 1, 2, 30_000, 30_001, 30_500, 90_000, 90_010, 10_000_000, 10_000_001];
        for times in [&times[..], &times[..1], &[], &[5, 5], &[0, i64::MAX / 4], &[i64::MIN / 4, 0, 7]] {
            let axis = TimeAxis::new(times, 200, 1200);
            let labels = axis.labels();
            assert!(!labels.is_empty());
            let bounds = |label: &AxisLabel| {
                let left = if label.ends_at_x { label.x - LABEL_SPACING } else { label.x };
                (left, left + LABEL_SPACING)
            };
            for (label, next) in labels.iter().zip(labels.iter().skip(1)) {
                assert!(bounds(label).1 <= bounds(next).0, "{times:?}: {} {}", label.text, next.text);
            }
            assert!(labels.iter().all(|label| bounds(label).1 <= 1200 + LABEL_SPACING / 2), "{times:?}");
            assert!(times.iter().all(|ms| (200..=1200).contains(&axis.x(*ms))), "{times:?}");
        }
    }
}
