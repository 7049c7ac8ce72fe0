//! The log: one line for each event of [`record`], on standard error.
//!
//! [`record`] emits `tracing` events, and [`LogLayer`] writes those and no others: records of other crates never reach this
//! log. A line is formatted where something happens and written by a thread of its own, through a bounded queue: a reader of
//! standard error that has stopped reading blocks nobody. Of each kind only so many lines are written in a window of time. Lines
//! that were left out are counted, and a line says how many.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use hub::watch::Count;
use seal::json::Writer;
use seal::{Timestamp, harmless};
use tracing::field::{Field, Visit};
use tracing::{Dispatch, Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterExt as _, LevelFilter, filter_fn};
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use super::record::{self, LEFT_OUT};

/// The format of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Time, level, kind, and `name=value`.
    Text,
    /// A JSON object.
    Json,
}

/// How much is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// Lines of one kind in a window.
    pub lines_of_a_kind: u64,
    /// The length of the window.
    pub window: Duration,
    /// Lines that wait to be written.
    pub queue: usize,
    /// Characters of one value.
    pub value: usize,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { lines_of_a_kind: 200, window: Duration::from_secs(10), queue: 4_096, value: 2_048 }
    }
}

/// A handle to the log of this process. The default one belongs to no log.
#[derive(Clone, Debug, Default)]
pub struct Log {
    written: Option<Arc<LogWriter>>,
    says: bool,
}

impl Log {
    /// Starts the log of this process on standard error, up to this level. A process has one log.
    pub fn start(level: Level, format: Format, limits: LogLimits) -> std::io::Result<Self> {
        let (log, dispatch) = Self::to(level, format, limits, std::io::stderr())?;
        tracing::dispatcher::set_global_default(dispatch).map_err(std::io::Error::other)?;
        Ok(log)
    }

    fn to(
        level: Level,
        format: Format,
        limits: LogLimits,
        to: impl std::io::Write + Send + 'static,
    ) -> std::io::Result<(Self, Dispatch)> {
        let (lines, queue) = sync_channel(limits.queue);
        std::thread::Builder::new().name("log".to_owned()).spawn(move || write(&queue, to))?;
        let writer =
            LogWriter { format, limits, windows: Mutex::default(), lines, left_out: Count::default() };
        let writer = Arc::new(writer);
        let ours = filter_fn(|metadata| metadata.target() == record::TARGET);
        let filtered = LogLayer(writer.clone()).with_filter(ours.and(LevelFilter::from_level(level)));
        let dispatch = Dispatch::new(tracing_subscriber::registry().with(filtered));
        Ok((Self { written: Some(writer), says: level == Level::TRACE }, dispatch))
    }

    /// Whether the log holds what agents and people say.
    pub(super) fn says(&self) -> bool {
        self.says
    }

    /// Lines that were left out, because there were too many or the queue was full.
    pub(super) fn left_out(&self) -> u64 {
        self.written.as_ref().map_or(0, |log| log.left_out.get())
    }

    /// Writes how many lines were left out of windows that are over.
    pub(super) fn tick(&self) {
        if let Some(log) = &self.written {
            log.close_windows(log.limits.window);
        }
    }

    /// Writes how many lines were left out, and waits a moment until everything is written.
    pub(super) fn close(&self) {
        let Some(log) = &self.written else { return };
        log.close_windows(Duration::ZERO);
        let (done, written) = sync_channel(1);
        if log.lines.try_send(Line::Flush(done)).is_ok() {
            let _ = written.recv_timeout(Duration::from_secs(1));
        }
    }
}

/// Writes lines, within limits.
#[derive(Debug)]
struct LogWriter {
    format: Format,
    limits: LogLimits,
    /// By kind.
    windows: Mutex<BTreeMap<&'static str, Window>>,
    lines: SyncSender<Line>,
    left_out: Count,
}

#[derive(Debug)]
enum Line {
    Text(String),
    /// Everything before it is written when this is answered.
    Flush(SyncSender<()>),
}

/// How many lines of a kind there were in its window.
#[derive(Clone, Copy, Debug)]
struct Window {
    begun: Instant,
    lines: u64,
    left_out: u64,
}

impl Window {
    fn new() -> Self {
        Self { begun: Instant::now(), lines: 0, left_out: 0 }
    }

    /// Starts again if its time is over, and returns how many lines were left out until then.
    fn close(&mut self, length: Duration) -> u64 {
        if self.begun.elapsed() < length {
            return 0;
        }
        std::mem::replace(self, Self::new()).left_out
    }
}

/// Hands events to the writer.
struct LogLayer(Arc<LogWriter>);

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.0.event(event);
    }
}

impl LogWriter {
    fn event(&self, event: &Event<'_>) {
        let kind = event.metadata().name();
        let missed = {
            let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
            let window = windows.entry(kind).or_insert_with(Window::new);
            let missed = window.close(self.limits.window);
            window.lines += 1;
            if window.lines > self.limits.lines_of_a_kind {
                window.left_out += 1;
                self.left_out.add(1);
                return;
            }
            missed
        };
        self.write_left_out(kind, missed);
        let mut fields = Fields { limit: self.limits.value, list: Vec::new() };
        event.record(&mut fields);
        self.write(*event.metadata().level(), kind, &fields.list);
    }

    fn close_windows(&self, length: Duration) {
        let missed: Vec<_> = {
            let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
            windows.iter_mut().map(|(kind, window)| (*kind, window.close(length))).collect()
        };
        for (kind, missed) in missed {
            self.write_left_out(kind, missed);
        }
    }

    fn write_left_out(&self, kind: &'static str, missed: u64) {
        if missed > 0 {
            let (name, message) = LEFT_OUT;
            let fields =
                [("message", message.to_owned()), ("of", kind.to_owned()), ("lines", missed.to_string())];
            self.write(Level::WARN, name, &fields);
        }
    }

    fn write(&self, level: Level, kind: &'static str, fields: &[(&'static str, String)]) {
        let line = self.format.line(level, kind, fields);
        if self.lines.try_send(Line::Text(line)).is_err() {
            self.left_out.add(1);
            // Written with the next line of its kind that finds a place.
            let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
            windows.entry(kind).or_insert_with(Window::new).left_out += 1;
        }
    }
}

/// The fields of an event, cut to the limit and fit for a terminal.
struct Fields {
    limit: usize,
    list: Vec<(&'static str, String)>,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let whole = format!("{value:?}");
        let mut value: String = whole.chars().take(self.limit).collect();
        if value.len() < whole.len() {
            value.push('…');
        }
        self.list.push((field.name(), harmless(&value, |c| format!("\\u{{{c:x}}}"))));
    }
}

impl Format {
    /// A line; the field `message` is for the JSON form only.
    fn line(self, level: Level, kind: &str, fields: &[(&'static str, String)]) -> String {
        let time = Timestamp::from_unix_millis(SystemTime::now().into());
        let time = time.map(|at| at.to_string()).unwrap_or_default();
        let level = level.as_str().to_ascii_lowercase();
        match self {
            Self::Text => {
                let mut line = format!("{time} {level} {kind}");
                for (name, value) in fields.iter().filter(|(name, _)| *name != "message") {
                    let plain = !value.is_empty() && !value.contains([' ', '"', '=']);
                    let _ = if plain {
                        write!(line, " {name}={value}")
                    } else {
                        write!(line, " {name}=\"{}\"", value.replace('"', "\\\""))
                    };
                }
                line
            }
            Self::Json => {
                let mut writer = Writer::default();
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

fn write(queue: &Receiver<Line>, mut to: impl std::io::Write) {
    for line in queue {
        match line {
            // A reader that has gone is no reason to stop.
            Line::Text(text) => drop(writeln!(to, "{text}")),
            Line::Flush(done) => {
                let _ = to.flush();
                let _ = done.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// What was written.
    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Paper {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn session() -> aaep::SessionId {
        aaep::SessionId::parse("sess_1").unwrap()
    }

    const HOURS: Duration = Duration::from_hours(10);

    /// What the log holds after this.
    fn written(format: Format, limits: LogLimits, what: impl FnOnce()) -> (String, u64) {
        let paper = Paper::default();
        let (log, dispatch) = Log::to(Level::INFO, format, limits, paper.clone()).unwrap();
        tracing::dispatcher::with_default(&dispatch, what);
        log.close();
        (paper.text(), log.left_out())
    }

    #[test]
    fn a_flood_is_cut_and_its_length_told() {
        let limits = LogLimits { lines_of_a_kind: 3, window: HOURS, ..LogLimits::default() };
        let (text, left_out) = written(Format::Text, limits, || {
            for _ in 0..10 {
                record::login_refused("/metrics");
            }
            record::session_started(&session());
        });
        assert_eq!(text.matches(" login.refused").count(), 3, "{text}");
        assert!(text.contains(" warn log.left_out of=login.refused lines=7"), "{text}");
        assert!(text.contains(" info session.started session=sess_1"), "another kind is not touched: {text}");
        assert_eq!(left_out, 7);
    }

    #[test]
    fn a_new_window_is_a_new_beginning() {
        let limits = LogLimits { lines_of_a_kind: 1, window: Duration::ZERO, ..LogLimits::default() };
        let (text, _) = written(Format::Text, limits, || {
            for _ in 0..5 {
                record::session_ended(&session());
            }
        });
        assert_eq!(text.matches("session.ended").count(), 5);
    }

    #[test]
    fn what_is_foreign_cannot_make_a_line_or_move_the_cursor() {
        for format in [Format::Text, Format::Json] {
            let (text, _) = written(format, LogLimits::default(), || {
                record::storage_failed("a\n2026 info b\u{1b}[2J\u{202e}\" c=d");
            });
            assert_eq!(text.lines().count(), 1, "{text}");
            assert!(!text.trim_end().contains(|c: char| c.is_control() || c == '\u{202e}'), "{text}");
        }
    }

    #[test]
    fn json_lines_say_what_their_kind_means() {
        let (text, _) = written(Format::Json, LogLimits::default(), || {
            record::session_started(&session());
        });
        let tail = r#""level":"info","kind":"session.started","message":"An agent has started a session.","session":"sess_1"}"#;
        assert!(text.trim_end().ends_with(tail), "{text}");
    }

    #[test]
    fn below_its_level_nothing_is_written() {
        let (text, _) = written(Format::Text, LogLimits::default(), || {
            record::request("GET", "/", 200);
            record::said(&"secret");
        });
        assert_eq!(text, "");
    }

    #[test]
    fn records_of_others_are_not_written() {
        let (text, left_out) = written(Format::Text, LogLimits::default(), || {
            tracing::error!("password: hunter2");
            tracing::error!(target: "sayso", "password: hunter2");
            tracing::error!(target: "sayso::log::more", "password: hunter2");
        });
        assert_eq!((text.as_str(), left_out), ("", 0));
    }

    #[test]
    fn a_long_value_is_cut() {
        let limits = LogLimits { value: 5, ..LogLimits::default() };
        let (text, _) = written(Format::Text, limits, || record::storage_failed("abcdefgh"));
        assert!(text.trim_end().ends_with("error=abcde…"));
    }

    /// Takes nothing until it is let go.
    struct Stuck(std::sync::mpsc::Receiver<()>);

    impl std::io::Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_does_not_read_the_log_holds_up_nobody() {
        let (hold, held) = std::sync::mpsc::channel();
        let limits = LogLimits { queue: 2, ..LogLimits::default() };
        let (log, dispatch) = Log::to(Level::INFO, Format::Text, limits, Stuck(held)).unwrap();
        tracing::dispatcher::with_default(&dispatch, || {
            for _ in 0..100 {
                record::session_started(&session());
            }
        });
        assert!(log.left_out() >= 97, "{}", log.left_out());
        drop(hold);
    }
}
