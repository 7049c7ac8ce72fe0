//! The state that the gate's threads share: the core and the two outputs.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::mpsc;

use super::gate_core::{Effect, GateCore};
use super::outbox::{Outbox, lock};

/// The core with its outputs. Effects are queued while the core is locked, so messages leave in the order of the decisions.
pub(crate) struct GateShared {
    core: Mutex<GateCore>,
    pub(crate) to_server: Outbox,
    pub(crate) to_host: Outbox,
    hub_effects: mpsc::UnboundedSender<Effect>,
}

impl GateShared {
    pub(crate) fn new(
        core: GateCore,
        to_server: Outbox,
        to_host: Outbox,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<Effect>) {
        let (hub_effects, receiver) = mpsc::unbounded_channel();
        (Arc::new(Self { core: Mutex::new(core), to_server, to_host, hub_effects }), receiver)
    }

    /// Changes the core and carries out the effects. Blocks while the server or the host does not read.
    pub(crate) fn run<T>(&self, change: impl FnOnce(&mut GateCore, &mut Vec<Effect>) -> T) -> T {
        let mut effects = Vec::new();
        let (mut for_server, mut for_host) = (false, false);
        let result = {
            let mut core = lock(&self.core);
            let result = change(&mut core, &mut effects);
            for effect in effects {
                match effect {
                    Effect::ToServer(line) => {
                        for_server = true;
                        self.to_server.push(line);
                    }
                    Effect::ToHost(line) => {
                        for_host = true;
                        self.to_host.push(line);
                    }
                    effect => {
                        // Without a receiver the gate is shutting down.
                        let _ = self.hub_effects.send(effect);
                    }
                }
            }
            result
        };
        if for_server {
            self.to_server.flush();
        }
        if for_host {
            self.to_host.flush();
        }
        result
    }

    /// Like [`run`](Self::run), without blocking the caller's runtime.
    pub(crate) async fn run_in_background<T: Send + 'static>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut GateCore, &mut Vec<Effect>) -> T + Send + 'static,
    ) -> Option<T> {
        let shared = Arc::clone(self);
        tokio::task::spawn_blocking(move || shared.run(change)).await.ok()
    }

    pub(crate) fn handle_host_line(&self, line: Vec<u8>) {
        self.run(|core, effects| core.handle_host_line(line, Instant::now(), effects));
    }

    pub(crate) fn handle_server_line(&self, line: Vec<u8>) {
        self.run(|core, effects| core.handle_server_line(line, Instant::now(), effects));
    }
}
