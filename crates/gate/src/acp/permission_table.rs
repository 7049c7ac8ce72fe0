//! The permission requests that wait for an answer. Editor and listener may both answer; the first answer counts.
//!
//! ```text
//!            open ──editor answers──► forgotten (the answer passes)
//!             │
//!             ├────listener answers─► decided ──editor answers──► forgotten (the answer is swallowed)
//!             │
//!             └────turn cancelled, request withdrawn or repeated──► forgotten (only the editor can answer)
//! ```
//!
//! Every transition is one call under one lock, so two answers can never both count.

use std::collections::{HashMap, VecDeque};

use tokio::sync::oneshot;

use super::message::{OptionKind, PermissionOption, PermissionRequest, RequestId};

/// Maximum number of requests that are offered to listeners at the same time. Only the editor answers further ones.
pub(super) const MAX_OPEN: usize = 64;
/// Maximum number of requests that are remembered so that a late answer from the editor is dropped.
pub(super) const MAX_DECIDED: usize = 1024;

/// Identifies one permission request in this process. Request ids can be used again; tickets are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ticket(u64);

impl std::fmt::Display for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a listener can no longer answer a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Closure {
    /// The editor answered with an option of this kind.
    Editor(Option<OptionKind>),
    /// The turn was cancelled.
    TurnCancelled,
    /// The agent withdrew the request, or used its id again.
    Withdrawn,
    /// The agent or the editor is gone.
    ConnectionClosed,
}

/// The decision about a response from the editor.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EditorResponse {
    /// It passes.
    Pass,
    /// The listener was faster, so it is dropped.
    Swallow,
}

/// See [the module](self).
#[derive(Debug, Default)]
pub(super) struct PermissionTable {
    last_ticket: u64,
    open: HashMap<RequestId, OpenRequest>,
    /// The ids that a listener decided, oldest first.
    decided: VecDeque<RequestId>,
}

#[derive(Debug)]
struct OpenRequest {
    ticket: Ticket,
    session: String,
    options: Vec<PermissionOption>,
    closed: oneshot::Sender<Closure>,
}

impl PermissionTable {
    /// Registers a request before it is passed to the editor. Returns its ticket, and a channel that says when a listener can no
    /// longer answer. Returns `None` if only the editor may answer it.
    pub(super) fn open(
        &mut self,
        request: &PermissionRequest,
    ) -> Option<(Ticket, oneshot::Receiver<Closure>)> {
        if let Some(earlier) = self.open.remove(&request.id) {
            // It would be unclear to which of the two requests an answer belongs.
            let _ = earlier.closed.send(Closure::Withdrawn);
            return None;
        }
        // The editor still owes an answer under this id, which would be mistaken for the answer to the new request.
        if self.open.len() >= MAX_OPEN || self.decided.contains(&request.id) {
            return None;
        }
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        let (closed, receiver) = oneshot::channel();
        let (session, options) = (request.session.clone(), request.options.clone());
        self.open.insert(request.id.clone(), OpenRequest { ticket, session, options, closed });
        Some((ticket, receiver))
    }

    /// Handles a response from the editor.
    pub(super) fn answer_by_editor(&mut self, id: &RequestId, option: Option<&str>) -> EditorResponse {
        if let Some(request) = self.open.remove(id) {
            let kind = request
                .options
                .iter()
                .find(|known| Some(known.id.as_str()) == option)
                .map(|known| known.kind);
            let _ = request.closed.send(Closure::Editor(kind));
            return EditorResponse::Pass;
        }
        match self.decided.iter().position(|decided| decided == id) {
            Some(at) => {
                self.decided.remove(at);
                EditorResponse::Swallow
            }
            None => EditorResponse::Pass,
        }
    }

    /// Handles the choice of a listener. Returns the id of the request to answer, or `None` if it is too late or the option was
    /// not offered.
    pub(super) fn answer_by_listener(&mut self, ticket: Ticket, option: &str) -> Option<RequestId> {
        let id = self.find(ticket)?.clone();
        let is_offered = self.open.get(&id)?.options.iter().any(|offered| offered.id == option);
        if !is_offered {
            return None;
        }
        self.decide(id)
    }

    /// Whether a listener can still answer.
    pub(super) fn is_open(&self, ticket: Ticket) -> bool {
        self.find(ticket).is_some()
    }

    /// Decides all open requests of a session, because a listener stopped it. Returns the ids to answer.
    pub(super) fn decide_session(&mut self, session: &str) -> Vec<RequestId> {
        let ids: Vec<_> =
            self.open.iter().filter(|(_, open)| open.session == session).map(|(id, _)| id.clone()).collect();
        ids.into_iter().filter_map(|id| self.decide(id)).collect()
    }

    /// Leaves all open requests of a session to the editor.
    pub(super) fn close_session(&mut self, session: &str, closure: &Closure) {
        for (_, request) in self.open.extract_if(|_, open| open.session == session) {
            let _ = request.closed.send(closure.clone());
        }
    }

    /// Leaves one request to the editor.
    pub(super) fn close(&mut self, id: &RequestId, closure: Closure) {
        if let Some(request) = self.open.remove(id) {
            let _ = request.closed.send(closure);
        }
    }

    /// Leaves the request with this ticket to the editor.
    pub(super) fn close_ticket(&mut self, ticket: Ticket, closure: Closure) {
        if let Some(id) = self.find(ticket).cloned() {
            self.close(&id, closure);
        }
    }

    /// Leaves all requests to the editor.
    pub(super) fn close_all(&mut self, closure: &Closure) {
        for (_, request) in self.open.drain() {
            let _ = request.closed.send(closure.clone());
        }
    }

    fn find(&self, ticket: Ticket) -> Option<&RequestId> {
        self.open.iter().find(|(_, open)| open.ticket == ticket).map(|(id, _)| id)
    }

    fn decide(&mut self, id: RequestId) -> Option<RequestId> {
        self.open.remove(&id)?;
        if self.decided.len() == MAX_DECIDED {
            self.decided.pop_front();
        }
        self.decided.push_back(id.clone());
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test reports a failure by panicking")]

    use proptest::prelude::*;

    use super::super::message::{AgentMessage, read_agent_line};
    use super::*;

    fn request(id: u64, session: &str) -> PermissionRequest {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"session/request_permission","params":{{"sessionId":"{session}","toolCall":{{"toolCallId":"t"}},"options":[{{"optionId":"go","name":"Yes","kind":"allow_once"}},{{"optionId":"no","name":"No","kind":"reject_once"}}]}}}}"#
        );
        match read_agent_line(line.as_bytes()) {
            AgentMessage::Permission(request) => request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_option_that_was_not_offered_is_no_answer() {
        let mut table = PermissionTable::default();
        let (ticket, mut closed) = table.open(&request(1, "s")).unwrap();
        assert_eq!(table.answer_by_listener(ticket, "forever"), None);
        assert!(table.is_open(ticket) && closed.try_recv().is_err());
        assert_eq!(table.answer_by_listener(ticket, "go"), Some(request(1, "s").id));
        assert_eq!(table.answer_by_listener(ticket, "go"), None);
    }

    #[test]
    fn at_most_so_many_requests_are_offered_at_once() {
        let mut table = PermissionTable::default();
        let open: Vec<_> = (0..MAX_OPEN as u64).map(|id| table.open(&request(id, "s")).unwrap()).collect();
        assert!(table.open(&request(1000, "s")).is_none());
        table.close_all(&Closure::ConnectionClosed);
        assert!(open.into_iter().all(|(_, mut closed)| closed.try_recv() == Ok(Closure::ConnectionClosed)));
        assert!(table.open(&request(1000, "s")).is_some());
    }

    #[test]
    fn the_oldest_late_answer_is_forgotten_when_too_many_are_awaited() {
        let mut table = PermissionTable::default();
        for id in 0..=MAX_DECIDED as u64 {
            let (ticket, _) = table.open(&request(id, "s")).unwrap();
            table.answer_by_listener(ticket, "no").unwrap();
        }
        assert_eq!(table.answer_by_editor(&request(0, "s").id, None), EditorResponse::Pass);
        assert_eq!(table.answer_by_editor(&request(1, "s").id, None), EditorResponse::Swallow);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Request(u64, bool),
        Editor(u64),
        Listener(usize),
        CancelTurn(bool),
        Stop(bool),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..4_u64, any::<bool>()).prop_map(|(id, session)| Step::Request(id, session)),
            (0..4_u64).prop_map(Step::Editor),
            (0..8_usize).prop_map(Step::Listener),
            any::<bool>().prop_map(Step::CancelTurn),
            any::<bool>().prop_map(Step::Stop),
        ]
    }

    proptest! {
        /// However the editor and the listener race, a request gets at most one answer from a listener, and none after the editor answered it.
        #[test]
        fn no_request_is_answered_twice(steps in prop::collection::vec(step(), 0..60)) {
            let name = |first: bool| if first { "a" } else { "b" };
            let mut table = PermissionTable::default();
            let mut offered: Vec<(Ticket, RequestId, oneshot::Receiver<Closure>)> = Vec::new();
            let mut answered = std::collections::HashSet::new();
            for step in steps {
                match step {
                    Step::Request(id, session) => {
                        let request = request(id, name(session));
                        if let Some((ticket, closed)) = table.open(&request) {
                            offered.push((ticket, request.id, closed));
                        }
                    }
                    Step::Editor(id) => {
                        let id = request(id, "a").id;
                        let open: Vec<_> =
                            offered.iter().filter(|(ticket, known, _)| *known == id && table.is_open(*ticket)).map(|(ticket, ..)| *ticket).collect();
                        if table.answer_by_editor(&id, Some("no")) == EditorResponse::Pass {
                            for ticket in open {
                                prop_assert!(answered.insert(ticket));
                            }
                        }
                    }
                    Step::Listener(index) => {
                        if let Some((ticket, id, _)) = offered.get(index)
                            && let Some(answer) = table.answer_by_listener(*ticket, "go")
                        {
                            prop_assert_eq!(&answer, id);
                            prop_assert!(answered.insert(*ticket));
                        }
                    }
                    Step::CancelTurn(session) => table.close_session(name(session), &Closure::TurnCancelled),
                    Step::Stop(session) => {
                        let ids = table.decide_session(name(session));
                        let unique: std::collections::HashSet<_> = ids.iter().collect();
                        prop_assert_eq!(unique.len(), ids.len());
                    }
                }
            }
        }
    }
}
