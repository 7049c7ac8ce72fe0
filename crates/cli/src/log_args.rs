//! The arguments that control the hub's log.

use std::sync::Arc;

use wire::telemetry::{Level, LogFormat, LogHandle, LogLimits, Telemetry, log_record};

use crate::output::{describe_io_error, print_stderr};

#[derive(clap::Args)]
pub(crate) struct LogArgs {
    /// Log level: error, warn, info, debug or trace. Only the level trace includes what agents and people say.
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = parse_level)]
    log_level: Level,
    /// Log format: text or json.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = parse_format)]
    log_format: LogFormat,
}

impl LogArgs {
    /// Returns the arguments for a hub inside a listener, whose terminal is for the person: only errors are logged.
    pub(crate) fn errors_only() -> Self {
        Self { log_level: Level::ERROR, log_format: LogFormat::Text }
    }

    pub(crate) fn start_log(&self) -> Result<Arc<Telemetry>, String> {
        if self.log_level == Level::TRACE {
            print_stderr(
                "WARNING: --log-level trace writes everything that agents and people say into the log",
            );
        }
        let start_error =
            |error: std::io::Error| format!("cannot start the log: {}", describe_io_error(&error));
        let log =
            LogHandle::start(self.log_level, self.log_format, LogLimits::default()).map_err(start_error)?;
        Ok(Arc::new(Telemetry::new(log)))
    }
}

/// Logs that the hub has started.
pub(crate) fn log_started(transports: &str, data: &str) {
    log_record::started(env!("CARGO_PKG_VERSION"), std::process::id(), transports, data);
}

/// Logs that the hub is stopping.
pub(crate) fn log_stopping(telemetry: &Telemetry) {
    log_record::stopping();
    telemetry.close();
}

fn parse_level(text: &str) -> Result<Level, &'static str> {
    let level = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_lowercase()));
    level.ok_or("it must be error, warn, info, debug or trace")
}

fn parse_format(text: &str) -> Result<LogFormat, &'static str> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("it must be text or json"),
    }
}
