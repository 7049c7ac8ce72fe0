//! Disconnects listeners whose delivery group holds back more events than its limit allows (C-C18).

use super::{Core, TurnContext};

impl Core {
    pub(super) fn detach_over_limit(&mut self, context: &TurnContext) {
        let over_limit = self.delivery_groups.groups_over_limit();
        if over_limit.is_empty() {
            return;
        }
        let listeners = self.subscriptions.values().filter_map(|live| live.listener);
        let affected = listeners.filter(|(_, group)| group.is_some_and(|group| over_limit.contains(&group)));
        for (listener, _) in affected.collect::<Vec<_>>() {
            self.detach(listener, true, context);
        }
    }
}
