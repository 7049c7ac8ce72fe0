//! The log: one line an entry, on standard error.
//!
//! A line is made where something happens and written by a thread of its own, through a queue with an end: a reader of
//! standard error that has stopped reading holds up nobody. Of each kind only so many lines are written in a window of time; what
//! was left out is counted, and said.

use std::fmt::Write as _;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use hub::watch::Count;
use seal::json::Writer;
use seal::{Timestamp, harmless};

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something is broken.
    Error,
    /// Something was refused or lost.
    Warn,
    /// What happens, by ids.
    Info,
    /// Every request and commit.
    Debug,
    /// What agents and people say, too.
    Trace,
}

impl Level {
    /// All five, the gravest first.
    pub const ALL: [Self; 5] = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    /// The level of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.word() == word)
    }
}

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Time, level, kind, and `name=value`.
    Text,
    /// A JSON object.
    Json,
}

impl Format {
    /// The format of that word.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

macro_rules! kinds {
    ($($name:ident $word:literal $meaning:literal),* $(,)?) => {
        /// What a line is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Kind { $(#[doc = $meaning] $name),* }

        impl Kind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The word for it.
            pub fn word(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }

            /// What it means.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning),* }
            }
        }
    };
}

kinds! {
    Started "started" "The hub has begun.",
    Stopping "stopping" "The hub ends.",
    Reloaded "reloaded" "Tokens or the certificate were read again.",
    ReloadFailed "reload.failed" "They could not be read again; what was read before stays in force.",
    SessionStarted "session.started" "An agent has started a session.",
    SessionEnded "session.ended" "A session has ended.",
    SubscriptionOpened "subscription.opened" "A subscription was accepted.",
    SubscriptionClosed "subscription.closed" "A subscription is closed.",
    SubscriptionRejected "subscription.rejected" "A subscription was rejected, with its reason code.",
    ListenerJoined "listener.joined" "A connection listens.",
    ListenerLeft "listener.left" "A connection listens no more.",
    ListenerSlow "listener.slow" "A listener could not keep up and was let go.",
    ListenerGap "listener.gap" "A listener came back too late to be told all that it missed.",
    QuestionAsked "question.asked" "An agent has asked.",
    QuestionResolved "question.resolved" "A question was resolved; by what, not how.",
    ReplyRefused "reply.refused" "A reply was not taken.",
    RuleBroken "rule.broken" "What an agent said was refused; these rules say so.",
    Unsaid "hub.unsaid" "What the hub itself had to say was refused by these rules.",
    StorageFailed "storage.failed" "A turn could not be stored, so nothing of it happened.",
    StorageGood "storage.good" "The disk takes writes again.",
    LimitHit "limit.hit" "Somebody asked for more than a limit allows.",
    LoginRefused "login.refused" "A request without a token that is known.",
    Request "request" "A request was answered.",
    Commit "commit" "A turn was written.",
    Said "said" "What was said, as it came.",
    LeftOut "log.left_out" "So many lines of a kind were left out.",
}

/// How much is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// Lines of one kind in a window.
    pub lines_of_a_kind: u64,
    /// How long the window is.
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

/// The log.
#[derive(Debug)]
pub struct Log {
    level: Option<Level>,
    format: Format,
    limits: LogLimits,
    windows: Mutex<Vec<Window>>,
    lines: Option<SyncSender<Line>>,
    left_out: Count,
}

#[derive(Debug)]
enum Line {
    Text(String),
    /// All that came before is written when this is answered.
    Flush(SyncSender<()>),
}

/// How many lines of a kind there were in its window.
#[derive(Clone, Copy, Debug)]
struct Window {
    begun: Instant,
    lines: u64,
    left_out: u64,
}

impl Log {
    /// One that says nothing.
    pub fn silent() -> Self {
        Self::made(None, Format::Text, LogLimits::default(), None)
    }

    /// One on standard error, up to this level.
    pub fn start(level: Level, format: Format, limits: LogLimits) -> std::io::Result<Self> {
        Self::to(level, format, limits, std::io::stderr())
    }

    fn to(
        level: Level,
        format: Format,
        limits: LogLimits,
        to: impl std::io::Write + Send + 'static,
    ) -> std::io::Result<Self> {
        let (lines, inbox) = sync_channel(limits.queue);
        std::thread::Builder::new().name("log".to_owned()).spawn(move || write(&inbox, to))?;
        Ok(Self::made(Some(level), format, limits, Some(lines)))
    }

    fn made(
        level: Option<Level>,
        format: Format,
        limits: LogLimits,
        lines: Option<SyncSender<Line>>,
    ) -> Self {
        let fresh = Window { begun: Instant::now(), lines: 0, left_out: 0 };
        let windows = Mutex::new(vec![fresh; Kind::ALL.len()]);
        Self { level, format, limits, windows, lines, left_out: Count::default() }
    }

    /// Whether entries of this level are written.
    pub fn is_on(&self, level: Level) -> bool {
        self.level.is_some_and(|most| level <= most)
    }

    /// Writes an entry, unless there were too many of its kind.
    pub fn entry(&self, level: Level, kind: Kind, fields: &[(&str, &str)]) {
        if !self.is_on(level) {
            return;
        }
        let missed = {
            let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(window) = windows.get_mut(kind as usize) else { return };
            let missed = window.turn(self.limits.window);
            window.lines += 1;
            if window.lines > self.limits.lines_of_a_kind {
                window.left_out += 1;
                self.left_out.add(1);
                return;
            }
            missed
        };
        self.tell_left_out(kind, missed);
        self.write(level, kind, fields);
    }

    /// Lines that were left out, because there were too many or nobody took them.
    pub fn left_out(&self) -> u64 {
        self.left_out.get()
    }

    /// Says what was left out of windows that are over.
    pub fn tick(&self) {
        self.turn_all(self.limits.window);
    }

    /// Says what was left out, and waits until everything is written, but not for long.
    pub fn close(&self) {
        self.turn_all(Duration::ZERO);
        let Some(lines) = &self.lines else { return };
        let (done, written) = sync_channel(1);
        if lines.try_send(Line::Flush(done)).is_ok() {
            let _ = written.recv_timeout(Duration::from_secs(1));
        }
    }

    fn turn_all(&self, length: Duration) {
        for kind in Kind::ALL {
            let missed = {
                let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
                windows.get_mut(*kind as usize).map_or(0, |window| window.turn(length))
            };
            self.tell_left_out(*kind, missed);
        }
    }

    fn tell_left_out(&self, kind: Kind, missed: u64) {
        if missed > 0 {
            self.write(Level::Warn, Kind::LeftOut, &[("of", kind.word()), ("lines", &missed.to_string())]);
        }
    }

    fn write(&self, level: Level, kind: Kind, fields: &[(&str, &str)]) {
        let Some(lines) = self.lines.as_ref().filter(|_| self.is_on(level)) else { return };
        let line = self.line(level, kind, fields);
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = lines.try_send(Line::Text(line)) {
            self.left_out.add(1);
            // Said with the next of its kind that finds a place.
            let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(window) = windows.get_mut(kind as usize) {
                window.left_out += 1;
            }
        }
    }

    fn line(&self, level: Level, kind: Kind, fields: &[(&str, &str)]) -> String {
        let time = now();
        let fit = |value: &str| -> String {
            let mut fit: String = value.chars().take(self.limits.value).collect();
            if fit.len() < value.len() {
                fit.push('…');
            }
            harmless(&fit, |c| format!("\\u{{{c:x}}}"))
        };
        match self.format {
            Format::Text => {
                let mut line = format!("{time} {} {}", level.word(), kind.word());
                for (name, value) in fields {
                    let value = fit(value);
                    let plain = !value.is_empty() && !value.contains([' ', '"', '=']);
                    let _ = if plain {
                        write!(line, " {name}={value}")
                    } else {
                        write!(line, " {name}={}", quoted(&value))
                    };
                }
                line
            }
            Format::Json => {
                let mut writer = Writer::default();
                writer.open_object();
                for (name, value) in [
                    ("time", &*time),
                    ("level", level.word()),
                    ("kind", kind.word()),
                    ("message", kind.meaning()),
                ] {
                    writer.key(name);
                    writer.text(value);
                }
                for (name, value) in fields {
                    writer.key(name);
                    writer.text(&fit(value));
                }
                writer.close_object();
                writer.finish()
            }
        }
    }
}

impl Window {
    /// Begins anew if its time is over; what was left out until then.
    fn turn(&mut self, length: Duration) -> u64 {
        if self.begun.elapsed() < length {
            return 0;
        }
        let missed = self.left_out;
        *self = Self { begun: Instant::now(), lines: 0, left_out: 0 };
        missed
    }
}

fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('"', "\\\""))
}

fn now() -> String {
    Timestamp::from_unix_millis(SystemTime::now().into()).map(|at| at.to_string()).unwrap_or_default()
}

fn write(inbox: &Receiver<Line>, mut to: impl std::io::Write) {
    for line in inbox {
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

    const HOURS: Duration = Duration::from_hours(10);

    fn log(format: Format, limits: LogLimits) -> (Log, Paper) {
        let paper = Paper::default();
        (Log::to(Level::Info, format, limits, paper.clone()).unwrap(), paper)
    }

    #[test]
    fn a_flood_is_cut_and_its_length_told() {
        let limits = LogLimits { lines_of_a_kind: 3, window: HOURS, ..LogLimits::default() };
        let (log, paper) = log(Format::Text, limits);
        for _ in 0..10 {
            log.entry(Level::Warn, Kind::LoginRefused, &[]);
        }
        log.entry(Level::Info, Kind::SessionStarted, &[("session", "sess_1")]);
        log.close();
        let text = paper.text();
        assert_eq!(text.matches(" login.refused").count(), 3, "{text}");
        assert!(text.contains(" warn log.left_out of=login.refused lines=7"), "{text}");
        assert!(text.contains(" info session.started session=sess_1"), "another kind is not touched: {text}");
        assert_eq!(log.left_out(), 7);
    }

    #[test]
    fn a_new_window_is_a_new_beginning() {
        let limits = LogLimits { lines_of_a_kind: 1, window: Duration::ZERO, ..LogLimits::default() };
        let (log, paper) = log(Format::Text, limits);
        for _ in 0..5 {
            log.entry(Level::Info, Kind::SessionEnded, &[]);
        }
        log.close();
        assert_eq!(paper.text().matches("session.ended").count(), 5);
    }

    #[test]
    fn what_is_foreign_cannot_make_a_line_or_move_the_cursor() {
        for format in [Format::Text, Format::Json] {
            let (log, paper) = log(format, LogLimits::default());
            log.entry(
                Level::Info,
                Kind::StorageFailed,
                &[("error", "a\n2026 info b\u{1b}[2J\u{202e}\" c=d")],
            );
            log.close();
            let text = paper.text();
            assert_eq!(text.lines().count(), 1, "{text}");
            assert!(!text.trim_end().contains(|c: char| c.is_control() || c == '\u{202e}'), "{text}");
        }
    }

    #[test]
    fn below_its_level_nothing_is_written() {
        let (log, paper) = log(Format::Text, LogLimits::default());
        log.entry(Level::Debug, Kind::Request, &[]);
        log.entry(Level::Trace, Kind::Said, &[("command", "secret")]);
        log.close();
        assert_eq!(paper.text(), "");
    }

    #[test]
    fn a_long_value_is_cut() {
        let (log, paper) = log(Format::Text, LogLimits { value: 5, ..LogLimits::default() });
        log.entry(Level::Info, Kind::StorageFailed, &[("error", "abcdefgh")]);
        log.close();
        assert!(paper.text().trim_end().ends_with("error=abcde…"));
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
        let log = Log::to(Level::Info, Format::Text, limits, Stuck(held)).unwrap();
        for _ in 0..100 {
            log.entry(Level::Info, Kind::SessionStarted, &[]);
        }
        assert!(log.left_out() >= 97, "{}", log.left_out());
        drop(hold);
    }
}
