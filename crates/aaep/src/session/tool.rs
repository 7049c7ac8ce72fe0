//! Tools in flight (§4.5.2): paired by call id, else by name, several at once.

use std::sync::Arc;

use super::Waiting;
use crate::fingerprint::Seen;
use crate::rule::{self, Findings};

/// The calls of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct Tools {
    open: Vec<Call>,
    /// Every call id that was ever used.
    used: Seen,
    /// Every name of which a call without id was completed.
    done: Seen,
}

#[derive(Clone, Debug)]
struct Call {
    tool: Arc<str>,
    id: Option<Arc<str>>,
    agent: usize,
}

impl Tools {
    pub(super) fn invoke(&mut self, agent: usize, tool: &str, id: Option<&str>, findings: &mut Findings) {
        match id {
            Some(id) if !self.used.insert(id) => {
                findings.push(
                    rule::CALL_ID_UNIQUE,
                    "/tool_call_id".to_owned(),
                    format!("{id} was used before"),
                );
            }
            _ => {}
        }
        if self.open.iter().any(|call| call.id.is_none() || id.is_none()) {
            findings.push(rule::CALL_ID_USED, String::new(), "another tool is still running".to_owned());
        }
        self.open.push(Call { tool: tool.into(), id: id.map(Into::into), agent });
    }

    pub(super) fn complete(&mut self, agent: usize, tool: &str, id: Option<&str>, findings: &mut Findings) {
        if let Some(place) = self.open.iter().position(|call| id.is_some() && call.id.as_deref() == id) {
            let call = self.open.remove(place);
            if &*call.tool != tool {
                findings.push(rule::TOOL_MATCHES, "/tool".to_owned(), format!("{:?} was invoked", call.tool));
            }
            return;
        }
        if let Some(id) = id.filter(|id| self.used.contains(id)) {
            findings.push(rule::TOOL_COMPLETED_ONCE, String::new(), format!("{id} was completed before"));
            return;
        }
        let named = |same: bool| move |call: &Call| &*call.tool == tool && (call.agent == agent) == same;
        let place =
            self.open.iter().position(named(true)).or_else(|| self.open.iter().position(named(false)));
        if let Some(place) = place {
            let call = self.open.remove(place);
            if call.id.as_deref() != id {
                let found = match (&call.id, id) {
                    (Some(call), None) => format!("{call} was invoked, and is not named"),
                    (Some(call), Some(id)) => format!("{call} was invoked, not {id}"),
                    (None, _) => "it was invoked without one".to_owned(),
                };
                findings.push(rule::CALL_ID_UNIQUE, "/tool_call_id".to_owned(), found);
            }
            if call.id.is_none() {
                self.done.insert(&call.tool);
            }
        } else if self.done.contains(tool) {
            findings.push(rule::TOOL_COMPLETED_ONCE, String::new(), format!("{tool:?} was completed before"));
        } else {
            findings.push(rule::TOOL_INVOKED_FIRST, String::new(), format!("{tool:?} was not invoked"));
        }
    }

    /// Before a copy is made: see [`Seen`].
    pub(super) fn settle(&mut self) {
        self.used.settle();
        self.done.settle();
    }

    pub(super) fn any_open(&self, agent: usize) -> bool {
        self.open.iter().any(|call| call.agent == agent)
    }

    pub(super) fn open(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.open.iter().map(|call| (&*call.tool, call.id.as_deref()))
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn end(&mut self, findings: &mut Findings) {
        for call in self.open.drain(..) {
            let name = call.id.unwrap_or_default();
            let found = format!("{:?} {name} is still running", call.tool).replace("  ", " ");
            findings.push(rule::TOOL_COMPLETED, String::new(), found);
        }
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = Waiting> {
        self.open
            .iter()
            .map(|call| Waiting::Tool { tool: (*call.tool).into(), call: call.id.as_deref().map(Into::into) })
    }
}
