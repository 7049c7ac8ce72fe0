//! Reports the progress of a long check: whole lines, seldom enough for a screen reader.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::output::pluralize;

/// Minimum time between two reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

pub(super) struct ProgressReport {
    /// Shared with the reader of the input.
    bytes_read: Arc<AtomicU64>,
    total_bytes: Option<u64>,
    /// When the next report is due; `None` if nobody would read it.
    next_at: Option<Instant>,
}

impl ProgressReport {
    /// `is_watched` says whether a person sees the reports. `total_bytes` is the size of the input, if it is known.
    pub(super) fn new(is_watched: bool, total_bytes: Option<u64>, now: Instant) -> Self {
        let next_at = is_watched.then(|| now + REPORT_INTERVAL);
        Self { bytes_read: Arc::default(), total_bytes, next_at }
    }

    /// Returns a reader that counts what is read from `input`.
    pub(super) fn count(&self, input: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        if self.next_at.is_none() {
            return input;
        }
        Box::new(CountingReader { input, bytes_read: Arc::clone(&self.bytes_read) })
    }

    /// Returns a report, if one is due.
    pub(super) fn report(&mut self, now: Instant, events: u64, findings: u64) -> Option<String> {
        let due = self.next_at.as_mut().filter(|due| **due <= now)?;
        *due = now + REPORT_INTERVAL;
        let share = match (self.bytes_read.load(Ordering::Relaxed), self.total_bytes) {
            (read, Some(total)) if total > 0 => format!(" ({} percent)", 100 * read.min(total) / total),
            _ => String::new(),
        };
        Some(format!(
            "{} checked{share}, {} so far",
            pluralize(events, "event"),
            pluralize(findings, "finding")
        ))
    }
}

struct CountingReader {
    input: Box<dyn Read + Send>,
    bytes_read: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(out)?;
        self.bytes_read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_reported_at_most_every_ten_seconds() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut progress = ProgressReport::new(true, Some(200), start);
        let mut input = progress.count(Box::new(&[b'x'; 100][..]));
        input.read_exact(&mut [0; 50]).unwrap();
        assert_eq!(progress.report(at(9_999), 7, 0), None);
        assert_eq!(
            progress.report(at(10_000), 1, 0).as_deref(),
            Some("1 event checked (25 percent), 0 findings so far")
        );
        assert_eq!(progress.report(at(19_999), 8, 1), None);
        input.read_exact(&mut [0; 50]).unwrap();
        assert_eq!(
            progress.report(at(65_000), 9, 1).as_deref(),
            Some("9 events checked (50 percent), 1 finding so far")
        );
        assert_eq!(progress.report(at(74_999), 9, 1), None);
    }

    #[test]
    fn without_a_size_there_is_no_percentage_and_without_a_reader_no_report() {
        let start = Instant::now();
        let later = start + Duration::from_mins(1);
        let mut progress = ProgressReport::new(true, None, start);
        assert_eq!(progress.report(later, 2, 2).as_deref(), Some("2 events checked, 2 findings so far"));
        assert_eq!(ProgressReport::new(false, Some(1), start).report(later, 2, 2), None);
    }
}
