//! Prints exactly one answer on standard output, whatever happens.
//!
//! A harness treats empty output, or output that is not JSON, as "no objection", so a panic must print an answer as well.

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::answer::PrintedAnswer;

static IS_PRINTED: AtomicBool = AtomicBool::new(false);
/// The answer that is printed after a panic.
static FALLBACK: Mutex<Option<PrintedAnswer>> = Mutex::new(None);

/// Sets the answer that is printed if the hook panics.
pub(super) fn set_fallback(answer: PrintedAnswer) {
    if let Ok(mut fallback) = FALLBACK.lock() {
        *fallback = Some(answer);
    }
}

/// Makes a panic print the fallback answer and exit. The process ends even if the panic is in another thread, because the
/// release build aborts after a panic.
pub(super) fn answer_on_panic() {
    std::panic::set_hook(Box::new(|info| {
        // The message can contain parts of the event, so only the place is reported.
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        drop(writeln!(std::io::stderr(), "sayso: internal error at {place}"));
        let fallback = FALLBACK.try_lock().ok().and_then(|mut fallback| fallback.take());
        let fallback = fallback.unwrap_or(PrintedAnswer { json: "{}".to_owned(), exit_code: 2 });
        let code = print(&fallback);
        std::process::exit(i32::from(code));
    }));
}

/// Prints an answer, unless one is printed already. Returns the exit code.
pub(super) fn print(answer: &PrintedAnswer) -> u8 {
    if IS_PRINTED.swap(true, Ordering::SeqCst) {
        return answer.exit_code;
    }
    let mut line = answer.json.clone();
    line.push('\n');
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
    // A harness that no longer reads must not take silence for agreement.
    if written.is_err() { 2 } else { answer.exit_code }
}
