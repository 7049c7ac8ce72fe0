//! What the open sessions have said so far, for whoever hears them from their start.

use std::collections::HashSet;
use std::sync::Arc;

use aaep::SessionId;
use aaep::shape::Shaper;
use journal::Position;

use super::attach::Turn;
use super::lanes::shaper;
use super::{Core, Heard, TurnContext};
use crate::Scope;
use crate::delivery::Frame;

impl Core {
    /// The open sessions from the start of each, as this shape hears them; `None` if there are none, or if so much has been
    /// said since that nobody is told all of it again.
    pub(super) fn running(
        &mut self,
        turns: &[Turn],
        scope: &Scope,
        context: &TurnContext,
    ) -> Option<(Shaper<Heard>, Vec<Arc<Frame>>)> {
        let open: HashSet<SessionId> = self
            .sessions
            .iter()
            .filter(|(_, live)| scope.covers(&live.agent, live.person.as_deref()))
            .map(|(id, _)| id.clone())
            .collect();
        let mut first: Option<u64> = None;
        for id in &open {
            let begun = self.journal.events_of(id.as_str(), Position::START, 1).ok()?.pop()?.position.get();
            first = Some(first.map_or(begun, |first| first.min(begun)));
        }
        let before = first?.saturating_sub(1);
        if before < self.floor || self.position.saturating_sub(before) > self.limits.replay as u64 {
            return None;
        }
        let (_, wants) = turns.last()?;
        let mut made = shaper(wants, self.limits.shape);
        let (all, _) = self.retell(before, &mut made, &[(u64::MAX, wants.clone())], scope, context)?;
        let mut frames = Vec::new();
        for left in all {
            if open.contains(&left.out.event().envelope.session_id) {
                left.frames(|frame| frames.push(frame));
            }
        }
        Some((made, frames))
    }
}
