//! What a person hears about a session.

use std::sync::Arc;

use asp::ReceiveOutcome;
use asp::message::AuthenticatedMessage;
use asp::session::Transition;

use crate::NodeError;
use crate::node::Node;
use crate::session::{SessionHandle, SessionState};

impl Node {
    /// Reports the transitions that our own message or a timer caused.
    pub(crate) fn narrate(
        &self,
        handle: &Arc<SessionHandle>,
        state: &SessionState,
        transitions: &[Transition],
    ) {
        let _ = (handle, state, transitions, &self.person);
    }

    /// Reports a message of the peer.
    pub(crate) fn narrate_message(
        &self,
        handle: &Arc<SessionHandle>,
        state: &SessionState,
        message: &AuthenticatedMessage,
        outcome: &ReceiveOutcome,
    ) {
        let _ = (handle, state, message, outcome, &self.person);
    }

    /// Reports the end of a session.
    pub(crate) fn finish_narration(&self, handle: &Arc<SessionHandle>, state: &SessionState) {
        let _ = (handle, state, &self.person);
    }

    /// Does what a message of the peer demands of a person.
    pub(crate) async fn after_received(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        state: &mut SessionState,
        message: &AuthenticatedMessage,
    ) -> Result<(), NodeError> {
        let _ = (handle, state, message);
        Ok(())
    }
}
