//! Writes the events of [`log_record`] to standard error, one line each.
//!
//! [`log_record`] emits `tracing` events, and [`LogLayer`] ignores all others, so that events of other crates never reach
//! this log. Lines are formatted by the calling thread, queued in a bounded queue, and written by a separate thread, so the
//! hub does not block if standard error is not read. The number of lines per kind and time window is limited. A line
//! reports how many lines were dropped.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use hub::telemetry::MetricValue;
use seal::json::JsonWriter;
use seal::{Timestamp, escape_controls};
use tracing::field::{Field, Visit};
use tracing::{Dispatch, Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterExt as _, LevelFilter, filter_fn};
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use super::log_record::{self, DROPPED_LINES};

/// The format of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Time, level, kind, and `name=value`.
    Text,
    /// A JSON object.
    Json,
}

/// The limits of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// Maximum number of lines of one kind per window.
    pub lines_per_kind: u64,
    /// The length of the window.
    pub window: Duration,
    /// Maximum number of lines that are queued for writing.
    pub queue_lines: usize,
    /// Maximum length of one value, in characters.
    pub value_chars: usize,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { lines_per_kind: 200, window: Duration::from_secs(10), queue_lines: 4_096, value_chars: 2_048 }
    }
}

/// A handle to the log of this process. The default handle has no log.
#[derive(Clone, Debug, Default)]
pub struct LogHandle {
    writer: Option<Arc<LogWriter>>,
    logs_content: bool,
}

impl LogHandle {
    /// Starts the log of this process on standard error, up to this level. Fails if the process already has a log.
    pub fn start(level: Level, format: LogFormat, limits: LogLimits) -> std::io::Result<Self> {
        let (log, dispatch) = Self::start_on(level, format, limits, std::io::stderr())?;
        tracing::dispatcher::set_global_default(dispatch).map_err(std::io::Error::other)?;
        Ok(log)
    }

    fn start_on(
        level: Level,
        format: LogFormat,
        limits: LogLimits,
        output: impl std::io::Write + Send + 'static,
    ) -> std::io::Result<(Self, Dispatch)> {
        let (lines, queue) = sync_channel(limits.queue_lines);
        std::thread::Builder::new().name("log".to_owned()).spawn(move || write_entries(&queue, output))?;
        let writer = LogWriter {
            format,
            limits,
            windows: Mutex::default(),
            lines,
            dropped_lines: MetricValue::default(),
        };
        let writer = Arc::new(writer);
        let is_ours = filter_fn(|metadata| metadata.target() == log_record::TARGET);
        let filtered = LogLayer(writer.clone()).with_filter(is_ours.and(LevelFilter::from_level(level)));
        let dispatch = Dispatch::new(tracing_subscriber::registry().with(filtered));
        Ok((Self { writer: Some(writer), logs_content: level == Level::TRACE }, dispatch))
    }

    /// Returns whether the log contains what agents and people say.
    pub(super) fn logs_content(&self) -> bool {
        self.logs_content
    }

    /// Returns the number of lines that were dropped because of a rate limit or a full queue.
    pub(super) fn dropped_lines(&self) -> u64 {
        self.writer.as_ref().map_or(0, |log| log.dropped_lines.get())
    }

    /// Reports the lines that were dropped in windows that have ended.
    pub(super) fn tick(&self) {
        if let Some(log) = &self.writer {
            log.close_windows(log.limits.window);
        }
    }

    /// Reports dropped lines, and waits for up to one second until all lines are written.
    pub(super) fn close(&self) {
        let Some(log) = &self.writer else { return };
        log.close_windows(Duration::ZERO);
        let (done, written) = sync_channel(1);
        if log.lines.try_send(LogEntry::Flush(done)).is_ok() {
            let _ = written.recv_timeout(Duration::from_secs(1));
        }
    }
}

/// Formats lines and queues them, within the limits.
#[derive(Debug)]
struct LogWriter {
    format: LogFormat,
    limits: LogLimits,
    /// The current window of each kind.
    windows: Mutex<BTreeMap<&'static str, RateWindow>>,
    lines: SyncSender<LogEntry>,
    dropped_lines: MetricValue,
}

#[derive(Debug)]
enum LogEntry {
    Text(String),
    /// Requests a signal when all entries before this one are written.
    Flush(SyncSender<()>),
}

/// The lines of one kind in the current window.
#[derive(Clone, Copy, Debug)]
struct RateWindow {
    started: Instant,
    lines: u64,
    dropped_lines: u64,
}

impl RateWindow {
    fn new() -> Self {
        Self { started: Instant::now(), lines: 0, dropped_lines: 0 }
    }

    /// Starts a new window if the current one is over. Returns how many lines the old one dropped.
    fn close(&mut self, length: Duration) -> u64 {
        if self.started.elapsed() < length {
            return 0;
        }
        std::mem::replace(self, Self::new()).dropped_lines
    }
}

/// Passes events to the writer.
struct LogLayer(Arc<LogWriter>);

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.0.write_event(event);
    }
}

thread_local! {
    /// The shard that the current log event is about, if the hub has several.
    static SHARD: Cell<Option<u16>> = const { Cell::new(None) };
}

/// Adds the field `shard` to the events that `body` logs, if there is a shard.
pub(crate) fn in_shard<T>(shard: Option<u16>, body: impl FnOnce() -> T) -> T {
    let outer = SHARD.replace(shard);
    let result = body();
    SHARD.set(outer);
    result
}

impl LogWriter {
    fn write_event(&self, event: &Event<'_>) {
        let kind = event.metadata().name();
        let dropped = {
            let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
            let window = windows.entry(kind).or_insert_with(RateWindow::new);
            let dropped = window.close(self.limits.window);
            window.lines += 1;
            if window.lines > self.limits.lines_per_kind {
                window.dropped_lines += 1;
                self.dropped_lines.add(1);
                return;
            }
            dropped
        };
        self.write_dropped(kind, dropped);
        let mut visitor = FieldVisitor { max_chars: self.limits.value_chars, fields: Vec::new() };
        event.record(&mut visitor);
        if let Some(shard) = SHARD.get() {
            visitor.fields.push(("shard", shard.to_string()));
        }
        self.write_line(*event.metadata().level(), kind, &visitor.fields);
    }

    fn close_windows(&self, length: Duration) {
        let dropped: Vec<_> = {
            let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
            windows.iter_mut().map(|(kind, window)| (*kind, window.close(length))).collect()
        };
        for (kind, dropped) in dropped {
            self.write_dropped(kind, dropped);
        }
    }

    fn write_dropped(&self, kind: &'static str, dropped: u64) {
        if dropped > 0 {
            let (name, message) = DROPPED_LINES;
            let fields =
                [("message", message.to_owned()), ("of", kind.to_owned()), ("lines", dropped.to_string())];
            self.write_line(Level::WARN, name, &fields);
        }
    }

    fn write_line(&self, level: Level, kind: &'static str, fields: &[(&'static str, String)]) {
        let line = self.format.format_line(level, kind, fields);
        if self.lines.try_send(LogEntry::Text(line)).is_err() {
            self.dropped_lines.add(1);
            // The loss is reported at the end of the window.
            let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
            windows.entry(kind).or_insert_with(RateWindow::new).dropped_lines += 1;
        }
    }
}

/// Collects the fields of an event, truncated to the limit and with control characters escaped.
struct FieldVisitor {
    max_chars: usize,
    fields: Vec<(&'static str, String)>,
}

impl Visit for FieldVisitor {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let full = format!("{value:?}");
        let mut value: String = full.chars().take(self.max_chars).collect();
        if value.len() < full.len() {
            value.push('…');
        }
        self.fields.push((field.name(), escape_controls(&value, |c| format!("\\u{{{c:x}}}"))));
    }
}

impl LogFormat {
    /// Formats a line. The `message` field appears only in JSON.
    fn format_line(self, level: Level, kind: &str, fields: &[(&'static str, String)]) -> String {
        let time = Timestamp::from_unix_millis(SystemTime::now().into());
        let time = time.map(|at| at.to_string()).unwrap_or_default();
        let level = level.as_str().to_ascii_lowercase();
        match self {
            Self::Text => {
                let mut line = format!("{time} {level} {kind}");
                for (name, value) in fields.iter().filter(|(name, _)| *name != "message") {
                    let is_bare = !value.is_empty() && !value.contains([' ', '"', '=']);
                    let _ = if is_bare {
                        write!(line, " {name}={value}")
                    } else {
                        write!(line, " {name}=\"{}\"", value.replace('"', "\\\""))
                    };
                }
                line
            }
            Self::Json => {
                let mut writer = JsonWriter::default();
                writer.open_object();
                let head = [("time", time.as_str()), ("level", &level), ("kind", kind)];
                let fields = fields.iter().map(|(name, value)| (*name, value.as_str()));
                for (name, value) in head.into_iter().chain(fields) {
                    writer.key(name).text(value);
                }
                writer.close_object();
                writer.finish()
            }
        }
    }
}

fn write_entries(queue: &Receiver<LogEntry>, mut output: impl std::io::Write) {
    for entry in queue {
        match entry {
            // A write error is ignored, because the reader may be gone.
            LogEntry::Text(text) => drop(writeln!(output, "{text}")),
            LogEntry::Flush(done) => {
                let _ = output.flush();
                let _ = done.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A shared buffer for written bytes.
    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl SharedBuffer {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn session() -> aaep::SessionId {
        aaep::SessionId::parse("sess_1").unwrap()
    }

    const LONG_WINDOW: Duration = Duration::from_hours(10);

    /// Runs a closure with a log. Returns the written text and the number of dropped lines.
    fn run_with_log(format: LogFormat, limits: LogLimits, body: impl FnOnce()) -> (String, u64) {
        let buffer = SharedBuffer::default();
        let (log, dispatch) = LogHandle::start_on(Level::INFO, format, limits, buffer.clone()).unwrap();
        tracing::dispatcher::with_default(&dispatch, body);
        log.close();
        (buffer.text(), log.dropped_lines())
    }

    #[test]
    fn a_flood_is_rate_limited_and_the_number_of_dropped_lines_is_reported() {
        let limits = LogLimits { lines_per_kind: 3, window: LONG_WINDOW, ..LogLimits::default() };
        let (text, dropped) = run_with_log(LogFormat::Text, limits, || {
            for _ in 0..10 {
                log_record::auth_failed("/metrics");
            }
            log_record::session_started(&session());
        });
        assert_eq!(text.matches(" auth.failed").count(), 3, "{text}");
        assert!(text.contains(" warn log.dropped of=auth.failed lines=7"), "{text}");
        assert!(text.contains(" info session.started session=sess_1"), "each kind has its own limit: {text}");
        assert_eq!(dropped, 7);
    }

    #[test]
    fn a_new_window_resets_the_rate_limit() {
        let limits = LogLimits { lines_per_kind: 1, window: Duration::ZERO, ..LogLimits::default() };
        let (text, _) = run_with_log(LogFormat::Text, limits, || {
            for _ in 0..5 {
                log_record::session_ended(&session());
            }
        });
        assert_eq!(text.matches("session.ended").count(), 5);
    }

    #[test]
    fn untrusted_text_cannot_inject_lines_or_control_characters() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let (text, _) = run_with_log(format, LogLimits::default(), || {
                log_record::storage_failed("a\n2026 info b\u{1b}[2J\u{202e}\" c=d");
            });
            assert_eq!(text.lines().count(), 1, "{text}");
            assert!(!text.trim_end().contains(|c: char| c.is_control() || c == '\u{202e}'), "{text}");
        }
    }

    #[test]
    fn json_lines_contain_a_message_for_their_kind() {
        let (text, _) = run_with_log(LogFormat::Json, LogLimits::default(), || {
            log_record::session_started(&session());
        });
        let tail = r#""level":"info","kind":"session.started","message":"An agent started a session.","session":"sess_1"}"#;
        assert!(text.trim_end().ends_with(tail), "{text}");
    }

    #[test]
    fn events_below_the_log_level_are_not_written() {
        let (text, _) = run_with_log(LogFormat::Text, LogLimits::default(), || {
            log_record::request("GET", "/", 200);
            log_record::command_received(&"secret");
        });
        assert_eq!(text, "");
    }

    #[test]
    fn events_of_other_crates_are_not_written() {
        let (text, dropped) = run_with_log(LogFormat::Text, LogLimits::default(), || {
            tracing::error!("password: hunter2");
            tracing::error!(target: "sayso", "password: hunter2");
            tracing::error!(target: "sayso::log::more", "password: hunter2");
        });
        assert_eq!((text.as_str(), dropped), ("", 0));
    }

    #[test]
    fn a_long_value_is_truncated() {
        let limits = LogLimits { value_chars: 5, ..LogLimits::default() };
        let (text, _) = run_with_log(LogFormat::Text, limits, || log_record::storage_failed("abcdefgh"));
        assert!(text.trim_end().ends_with("error=abcde…"));
    }

    /// A writer that blocks until its channel is closed.
    struct BlockedWriter(std::sync::mpsc::Receiver<()>);

    impl std::io::Write for BlockedWriter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_blocked_log_reader_does_not_block_the_hub() {
        let (release, blocked) = std::sync::mpsc::channel();
        let limits = LogLimits { queue_lines: 2, ..LogLimits::default() };
        let (log, dispatch) =
            LogHandle::start_on(Level::INFO, LogFormat::Text, limits, BlockedWriter(blocked)).unwrap();
        tracing::dispatcher::with_default(&dispatch, || {
            for _ in 0..100 {
                log_record::session_started(&session());
            }
        });
        assert!(log.dropped_lines() >= 97, "{}", log.dropped_lines());
        drop(release);
    }
}
