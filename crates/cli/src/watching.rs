//! How whoever runs the hub sees what it does: the log.

use std::sync::Arc;

use wire::observe::{Format, Kind, Level, Log, LogLimits, Observe};

use crate::print::{in_words, tell};

#[derive(clap::Args)]
pub(crate) struct Watching {
    /// How much is logged: error, warn, info, debug or trace. Only trace shows what agents and people say.
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = level)]
    log_level: Level,
    /// How a line of the log looks: text or json.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = format)]
    log_format: Format,
}

impl Watching {
    pub(crate) fn start(&self) -> Result<Arc<Observe>, String> {
        if self.log_level == Level::Trace {
            tell("WARNING: --log-level trace writes everything that agents and people say into the log");
        }
        let cannot = |error: std::io::Error| format!("cannot start a thread: {}", in_words(&error));
        let log = Log::start(self.log_level, self.log_format, LogLimits::default()).map_err(cannot)?;
        Ok(Arc::new(Observe::new(log)))
    }
}

/// The first line of the log.
pub(crate) fn started(observe: &Observe, wires: &str, data: &str) {
    let process = std::process::id().to_string();
    let version = env!("CARGO_PKG_VERSION");
    let fields = [("version", version), ("process", &process), ("wires", wires), ("data", data)];
    observe.log.entry(Level::Info, Kind::Started, &fields);
}

/// The last.
pub(crate) fn stopping(observe: &Observe) {
    observe.log.entry(Level::Info, Kind::Stopping, &[]);
    observe.close();
}

fn level(word: &str) -> Result<Level, &'static str> {
    Level::parse(word).ok_or("it is error, warn, info, debug or trace")
}

fn format(word: &str) -> Result<Format, &'static str> {
    Format::parse(word).ok_or("it is text or json")
}
