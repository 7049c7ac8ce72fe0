//! `sayso hook`: the hooks of coding agents.
//!
//! A harness (Claude Code, Codex, …) starts one process per hook event and writes the event to its standard input. [`run`]
//! narrates the event, and where it is a permission request, asks the person and prints the harness's own answer.
//!
//! - `harness`: the supported harnesses and their defaults.
//! - `event`: reads an event.
//! - `answer`: writes the answer in the harness's dialect.
//! - `output`: prints exactly one answer, even after a panic or a signal.
//! - `watchdog`: kills a hook that does not answer because it is suspended or hangs.
//! - `hub_session`: requests to the hub. `session_store` keeps what the processes of one harness session share.
//! - `narration`: the announcement of each event. `permission` asks about a call, `elicitation` asks for input.
//!
//! Rules that hold in every path: standard output is one JSON value in the harness's dialect; without a yes there is no
//! "allow"; the deadline is before the harness's own timeout.

mod answer;
mod elicitation;
mod event;
mod harness;
mod hub_session;
mod narration;
mod output;
mod permission;
mod session_store;
mod watchdog;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use answer::HookAnswer;
use event::{EventKind, HookEvent};
pub use harness::{Gate, Harness};
use hub_session::{Hook, HubAccess};
pub use watchdog::watch;

/// The plugin that `sayso setup opencode` installs. It calls `sayso hook opencode` for each event.
pub const OPENCODE_PLUGIN: &str = include_str!("opencode_plugin.js");

/// Maximum size of an event, in bytes. A larger one cannot be read.
pub const MAX_EVENT_BYTES: u64 = 16 << 20;
/// How long before the deadline a question is withdrawn, so that the answer still arrives in time.
const ANSWER_MARGIN: Duration = Duration::from_secs(2);
/// How often a hook that asks checks whether the program that started it still runs.
const PARENT_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The options of the hook.
#[derive(Clone, Debug)]
pub struct HookOptions {
    /// The harness that calls the hook.
    pub harness: Harness,
    /// Which calls a person must permit. `None` stands for the harness's default.
    pub gate: Option<Gate>,
    /// The address of the hub, if it is given.
    pub hub: Option<String>,
    /// The access token for the hub, if it is given.
    pub token: Option<String>,
    /// Whether a call is refused if nobody can be asked.
    pub is_required: bool,
    /// When the hook answers at the latest, counted from its start. `None` stands for the harness's default.
    pub deadline: Option<Duration>,
    /// The folder for what the processes of one harness session share. `None` stands for the user's runtime folder.
    pub state_folder: Option<PathBuf>,
    /// The command that runs [`watch`], without its arguments.
    pub watchdog_command: Vec<OsString>,
}

/// Handles one event: reads it from standard input, and prints the answer on standard output. Returns the exit code.
pub fn run(options: HookOptions, started_at: Instant) -> u8 {
    output::answer_on_panic();
    watchdog::arm_kill_timer(started_at + options.deadline());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else {
        return output::print(&options.unreadable_event(None));
    };
    let code = runtime.block_on(handle(options, started_at));
    // The thread that reads standard input may still be blocked.
    runtime.shutdown_background();
    code
}

/// Prints an answer for a hook that cannot start, for example because of a wrong option. Returns the exit code.
pub fn answer_usage_error() -> u8 {
    output::print(&answer::PrintedAnswer { json: "{}".to_owned(), exit_code: 2 })
}

impl HookOptions {
    fn gate(&self) -> Gate {
        self.gate.unwrap_or(self.harness.default_gate())
    }

    fn unreadable_event(&self, text: Option<&[u8]>) -> answer::PrintedAnswer {
        answer::unreadable_event(self.harness, self.gate(), self.is_required, text)
    }

    fn deadline(&self) -> Duration {
        self.deadline.unwrap_or(self.harness.default_deadline())
    }
}

async fn handle(options: HookOptions, started_at: Instant) -> u8 {
    let signals = Signals::catch();
    let parent = std::os::unix::process::parent_id();
    let deadline = started_at + options.deadline();
    let give_up_at = deadline.checked_sub(ANSWER_MARGIN).unwrap_or(started_at);
    let (harness, gate) = (options.harness, options.gate());
    output::set_fallback(options.unreadable_event(None));
    let text = tokio::select! {
        text = read_stdin() => text,
        () = signals.received() => None,
        () = tokio::time::sleep_until(give_up_at.into()) => None,
    };
    let readable = text.as_deref().and_then(|text| std::str::from_utf8(text).ok());
    let Some(event) = readable.and_then(|text| HookEvent::parse(harness, text)) else {
        return output::print(&options.unreadable_event(text.as_deref()));
    };
    let is_gated = event.is_gated(gate);
    let failure = |event: &HookEvent, reason: &str| {
        answer::write(event, &HookAnswer::failure(event, is_gated, options.is_required, reason))
    };
    output::set_fallback(failure(&event, "sayso hook failed"));
    panic_if_asked();
    let asks = is_gated || event.kind == EventKind::Elicitation;
    if asks && watchdog::start(&options.watchdog_command, harness, deadline).is_err() {
        return output::print(&failure(&event, "sayso could not start its watchdog"));
    }
    let mut hook = Hook::new(HubAccess::find(&options), event, gate, started_at, give_up_at);
    let interrupted = async {
        tokio::select! {
            () = signals.received() => {}
            () = parent_ended(parent), if asks => {}
        }
    };
    let answer = tokio::select! {
        answer = answer_event(&mut hook, &options) => answer,
        () = interrupted => {
            // The answer goes first: the harness may kill the process at any moment.
            let code = output::print(&failure(hook.event(), "the hook was interrupted"));
            hook.withdraw_own_question().await;
            return code;
        }
        // A hub that hangs takes longer than the time that was left for it.
        () = tokio::time::sleep_until(deadline.into()) => {
            return output::print(&failure(hook.event(), "sayso's hub did not answer in time"));
        }
    };
    output::print(&answer::write(hook.event(), &answer))
}

/// Narrates the event, and asks if it is a gated call or a question from the harness.
async fn answer_event(hook: &mut Hook, options: &HookOptions) -> HookAnswer {
    if hook.is_gated() {
        return permission::ask(hook, options.is_required).await;
    }
    if hook.event().kind == EventKind::Elicitation {
        return elicitation::ask(hook, options.is_required).await;
    }
    // Nobody depends on the narration, so a failure does not change the answer.
    if let Err(error) = narration::narrate(hook).await {
        permission::report(&error);
    }
    HookAnswer::NoOpinion
}

/// Completes when the process that started the hook has ended: the harness, or the shell in which it runs its hooks and whose signals do
/// not reach the hook.
async fn parent_ended(parent: u32) {
    while std::os::unix::process::parent_id() == parent {
        tokio::time::sleep(PARENT_CHECK_INTERVAL).await;
    }
}

/// Reads standard input in a thread, because a harness that never closes it must not delay the deadline.
async fn read_stdin() -> Option<Vec<u8>> {
    let (sender, receiver) = oneshot::channel();
    std::thread::Builder::new()
        .spawn(move || {
            use std::io::Read as _;
            let mut text = Vec::new();
            let read = std::io::stdin().lock().take(MAX_EVENT_BYTES + 1).read_to_end(&mut text);
            let is_complete = read.is_ok_and(|count| count as u64 <= MAX_EVENT_BYTES);
            drop(sender.send(is_complete.then_some(text)));
        })
        .ok()?;
    receiver.await.ok()?
}

/// Panics in a debug build if a test asks for it, to show that the answer is valid even then.
fn panic_if_asked() {
    #[cfg(debug_assertions)]
    assert!(std::env::var_os("SAYSO_HOOK_PANIC").is_none(), "a test asked for this panic");
}

/// The signals with which a harness ends a hook.
struct Signals(std::sync::Mutex<Vec<tokio::signal::unix::Signal>>);

impl Signals {
    fn catch() -> Self {
        let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
        Self(std::sync::Mutex::new(kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect()))
    }

    /// Completes when a signal arrives.
    async fn received(&self) {
        std::future::poll_fn(|context| {
            let Ok(mut signals) = self.0.lock() else { return std::task::Poll::Pending };
            let is_received = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if is_received { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}
