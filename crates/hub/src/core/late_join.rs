//! Replays open sessions to listeners that join late.

use std::collections::HashSet;
use std::sync::Arc;

use aaep::SessionId;
use aaep::shaping::Shaper;
use journal::Position;

use super::attach::TermsPeriod;
use super::delivery_groups::new_shaper;
use super::{CommittedEvent, Core, TurnContext};
use crate::Scope;
use crate::delivery::Frame;

impl Core {
    /// Replays the open sessions from their starts, shaped by the current terms. Returns `None` if no session is open,
    /// if some events are no longer stored, or if there are more events than may be replayed.
    pub(super) fn replay_open_sessions(
        &mut self,
        periods: &[TermsPeriod],
        scope: &Scope,
        context: &TurnContext,
    ) -> Option<(Shaper<CommittedEvent>, Vec<Arc<Frame>>)> {
        let open: HashSet<SessionId> = self
            .sessions
            .iter()
            .filter(|(_, live)| scope.covers(&live.agent, live.person.as_deref()))
            .map(|(id, _)| id.clone())
            .collect();
        let mut earliest: Option<u64> = None;
        for id in &open {
            let start =
                self.journal.session_events(id.as_str(), Position::START, 1).ok()?.pop()?.position.get();
            earliest = Some(earliest.map_or(start, |earliest| earliest.min(start)));
        }
        let before = earliest?.saturating_sub(1);
        if before < self.trimmed_up_to
            || self.last_position.saturating_sub(before) > self.limits.max_replay_events as u64
        {
            return None;
        }
        let (_, shaping_terms) = periods.last()?;
        let mut shaper = new_shaper(shaping_terms, self.limits.shaping);
        let (shaped_events, _) =
            self.replay_log(before, &mut shaper, &[(u64::MAX, shaping_terms.clone())], scope, context)?;
        let mut frames = Vec::new();
        for shaped in shaped_events {
            if open.contains(&shaped.out.event().envelope.session_id) {
                shaped.for_each_frame(|frame| frames.push(frame));
            }
        }
        Some((shaper, frames))
    }
}
