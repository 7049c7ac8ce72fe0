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

/// Maximum number of requests that are offered to listeners at the same time. Further ones only the editor answers.
pub(super) const MAX_OPEN: usize = 64;
/// Maximum number of requests for which the late answer of an editor is remembered to be swallowed.
pub(super) const MAX_DECIDED: usize = 1024;

/// Names one permission request of this process. Request ids can be used again; tickets are not.
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

/// What happens with a response of the editor.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EditorResponse {
    /// It passes.
    Pass,
    /// The listener was faster, so it is swallowed.
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
            // Nobody could tell to which of the two requests an answer belongs.
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

    /// Handles a response of the editor.
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
