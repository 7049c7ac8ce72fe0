//! Letting go of whoever wants so little at a time that more is held for him than may be (C-C18).

use super::{Core, TurnContext};

impl Core {
    pub(super) fn close_full(&mut self, context: &TurnContext) {
        let full = self.lanes.full();
        if full.is_empty() {
            return;
        }
        let listeners = self.subscriptions.values().filter_map(|one| one.listener);
        let on_one = listeners.filter(|(_, lane)| lane.is_some_and(|lane| full.contains(&lane)));
        for (listener, _) in on_one.collect::<Vec<_>>() {
            self.detached(listener, true, context);
        }
    }
}
