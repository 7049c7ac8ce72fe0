//! A pause of what a proxy forwards.

use std::sync::{Condvar, Mutex};

/// A pause that all connections of a proxy share.
#[derive(Default)]
pub(crate) struct Stall {
    is_stalled: Mutex<bool>,
    over: Condvar,
}

impl Stall {
    pub(crate) fn begin(&self) {
        *self.is_stalled.lock().unwrap() = true;
    }

    pub(crate) fn end(&self) {
        *self.is_stalled.lock().unwrap() = false;
        self.over.notify_all();
    }

    /// Returns at once if there is no pause.
    pub(crate) fn wait_until_over(&self) {
        let is_stalled = self.is_stalled.lock().unwrap();
        drop(self.over.wait_while(is_stalled, |is_stalled| *is_stalled).unwrap());
    }
}
