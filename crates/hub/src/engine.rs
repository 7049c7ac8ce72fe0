//! The thread that takes the hub's turns: whatever has come in while the last turn was written goes into the next.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::command::{Output, Request};
use crate::{Core, Limits};

/// A handle to the thread.
#[derive(Clone, Debug)]
pub struct Engine(Sender<Request>);

impl Engine {
    /// Starts the thread. `clock` tells the time in milliseconds since 1970; `perform` does what a turn says. It ends when
    /// the last handle is gone.
    pub fn start(
        core: Core,
        clock: impl Fn() -> i64 + Send + 'static,
        perform: impl FnMut(Vec<Output>) + Send + 'static,
    ) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (requests, inbox) = channel();
        let thread = std::thread::Builder::new().name("hub".to_owned());
        let handle = thread.spawn(move || run(core, &inbox, &clock, perform))?;
        Ok((Self(requests), handle))
    }

    /// Asks. After the end nobody answers.
    pub fn ask(&self, request: Request) -> bool {
        self.0.send(request).is_ok()
    }
}

fn run(
    mut core: Core,
    inbox: &Receiver<Request>,
    clock: &impl Fn() -> i64,
    mut perform: impl FnMut(Vec<Output>),
) {
    let Limits { requests_in_turn, longest_sleep, .. } = *core.limits();
    let longest_sleep = Duration::from_millis(u64::try_from(longest_sleep).unwrap_or(0));
    // What was due while nobody was here is done before anybody is heard.
    perform(core.turn(Vec::new(), clock()));
    loop {
        let wait = core.next_deadline().map_or(longest_sleep, |at| {
            let millis = u64::try_from(at.saturating_sub(clock())).unwrap_or(0);
            Duration::from_millis(millis).min(longest_sleep)
        });
        let mut requests = Vec::new();
        match inbox.recv_timeout(wait) {
            Ok(request) => requests.push(request),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        requests.extend(inbox.try_iter().take(requests_in_turn.saturating_sub(1)));
        let outputs = core.turn(requests, clock());
        if !outputs.is_empty() {
            perform(outputs);
        }
    }
}
