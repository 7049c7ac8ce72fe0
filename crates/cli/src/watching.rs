//! How whoever runs the hub sees what it does: the log.

use std::sync::Arc;

use wire::observe::{Format, Level, Log, LogLimits, Observe, record};

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
        if self.log_level == Level::TRACE {
            tell("WARNING: --log-level trace writes everything that agents and people say into the log");
        }
        let cannot = |error: std::io::Error| format!("cannot start the log: {}", in_words(&error));
        let log = Log::start(self.log_level, self.log_format, LogLimits::default()).map_err(cannot)?;
        Ok(Arc::new(Observe::new(log)))
    }
}

/// Writes the first line of the log.
pub(crate) fn started(wires: &str, data: &str) {
    record::started(env!("CARGO_PKG_VERSION"), std::process::id(), wires, data);
}

/// Writes the last line of the log.
pub(crate) fn stopping(observe: &Observe) {
    record::stopping();
    observe.close();
}

fn level(word: &str) -> Result<Level, &'static str> {
    let level = word.parse().ok().filter(|_| word.bytes().all(|letter| letter.is_ascii_lowercase()));
    level.ok_or("it is error, warn, info, debug or trace")
}

fn format(word: &str) -> Result<Format, &'static str> {
    match word {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        _ => Err("it is text or json"),
    }
}
