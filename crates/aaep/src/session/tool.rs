//! Running tool calls (§4.5.2). A completion is matched by call id, or else by the tool's name.
//! Several calls can run in parallel.

use std::sync::Arc;

use super::PendingItem;
use crate::fingerprint::SeenNames;
use crate::rule::{self, Findings};

/// The tool calls of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolCalls {
    open: Vec<OpenCall>,
    /// All call ids that were used.
    used_ids: SeenNames,
    /// The tools of completed calls without an id.
    completed_tools: SeenNames,
}

#[derive(Clone, Debug)]
struct OpenCall {
    tool: Arc<str>,
    id: Option<Arc<str>>,
    producer: usize,
}

impl ToolCalls {
    pub(super) fn invoke(&mut self, producer: usize, tool: &str, id: Option<&str>, findings: &mut Findings) {
        match id {
            Some(id) if !self.used_ids.insert(id) => {
                findings.push(
                    rule::CALL_ID_UNIQUE,
                    "/tool_call_id".to_owned(),
                    format!("{id} was used before"),
                );
            }
            _ => {}
        }
        if self.open.iter().any(|call| call.id.is_none() || id.is_none()) {
            findings.push(rule::CALL_ID_PRESENT, String::new(), "another tool is still running".to_owned());
        }
        self.open.push(OpenCall { tool: tool.into(), id: id.map(Into::into), producer });
    }

    pub(super) fn complete(
        &mut self,
        producer: usize,
        tool: &str,
        id: Option<&str>,
        findings: &mut Findings,
    ) {
        if let Some(index) = self.open.iter().position(|call| id.is_some() && call.id.as_deref() == id) {
            let call = self.open.remove(index);
            if &*call.tool != tool {
                findings.push(rule::TOOL_MATCHES, "/tool".to_owned(), format!("{:?} was invoked", call.tool));
            }
            return;
        }
        if let Some(id) = id.filter(|id| self.used_ids.contains(id)) {
            findings.push(rule::TOOL_COMPLETED_ONCE, String::new(), format!("{id} was completed before"));
            return;
        }
        let matches_tool = |same_producer: bool| {
            move |call: &OpenCall| &*call.tool == tool && (call.producer == producer) == same_producer
        };
        let index = self
            .open
            .iter()
            .position(matches_tool(true))
            .or_else(|| self.open.iter().position(matches_tool(false)));
        if let Some(index) = index {
            let call = self.open.remove(index);
            if call.id.as_deref() != id {
                let found = match (&call.id, id) {
                    (Some(call), None) => format!("{call} was invoked, but is not named here"),
                    (Some(call), Some(id)) => format!("{call} was invoked, not {id}"),
                    (None, _) => "it was invoked without a tool_call_id".to_owned(),
                };
                findings.push(rule::CALL_ID_UNIQUE, "/tool_call_id".to_owned(), found);
            }
            if call.id.is_none() {
                self.completed_tools.insert(&call.tool);
            }
        } else if self.completed_tools.contains(tool) {
            findings.push(rule::TOOL_COMPLETED_ONCE, String::new(), format!("{tool:?} was completed before"));
        } else {
            findings.push(rule::TOOL_INVOKED_FIRST, String::new(), format!("{tool:?} was not invoked"));
        }
    }

    /// Call this before the session is cloned, so that the clone is cheap. See [`SeenNames`].
    pub(super) fn merge_recent(&mut self) {
        self.used_ids.merge_recent();
        self.completed_tools.merge_recent();
    }

    pub(super) fn any_open(&self, producer: usize) -> bool {
        self.open.iter().any(|call| call.producer == producer)
    }

    /// Returns the producer's index, the tool and the id of each running call.
    pub(super) fn iter_open(&self) -> impl Iterator<Item = (usize, &str, Option<&str>)> {
        self.open.iter().map(|call| (call.producer, &*call.tool, call.id.as_deref()))
    }

    pub(super) fn open_count(&self) -> usize {
        self.open.len()
    }

    pub(super) fn report_open(&mut self, findings: &mut Findings) {
        for call in self.open.drain(..) {
            let id = call.id.unwrap_or_default();
            let found = format!("{:?} {id} is still running", call.tool).replace("  ", " ");
            findings.push(rule::TOOL_COMPLETED, String::new(), found);
        }
    }

    pub(super) fn pending_items(&self) -> impl Iterator<Item = PendingItem> {
        self.open.iter().map(|call| PendingItem::Tool {
            tool: (*call.tool).into(),
            call_id: call.id.as_deref().map(Into::into),
        })
    }
}
