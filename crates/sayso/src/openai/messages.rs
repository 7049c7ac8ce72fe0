//! What the model is told.

use seal::json::Writer;

use super::answer::Answer;
use super::tool::Tool;
use crate::member::text as member;

/// The conversation so far, each message as JSON.
pub(super) struct Messages(Vec<String>);

impl Messages {
    pub(super) fn new(instructions: Option<&str>, request: &str) -> Self {
        let instructions = instructions.map(|text| plain("system", text));
        Self(instructions.into_iter().chain([plain("user", request)]).collect())
    }

    /// What the model said and wanted.
    pub(super) fn assistant(&mut self, answer: &Answer) {
        self.0.push(object(|out| {
            member(out, "role", "assistant");
            member(out, "content", &answer.text);
            out.key("tool_calls");
            out.open_array();
            for call in &answer.calls {
                out.open_object();
                member(out, "id", &call.id);
                member(out, "type", "function");
                out.key("function");
                out.open_object();
                member(out, "name", &call.name);
                member(out, "arguments", &call.arguments);
                out.close_object();
                out.close_object();
            }
            out.close_array();
        }));
    }

    /// What came of a call.
    pub(super) fn result(&mut self, call: &str, tells: &str) {
        self.0.push(object(|out| {
            member(out, "role", "tool");
            member(out, "tool_call_id", call);
            member(out, "content", tells);
        }));
    }

    /// The question as it is sent.
    pub(super) fn body(&self, model: &str, parameters: &[(String, String)], tools: &[Tool]) -> String {
        object(|out| {
            member(out, "model", model);
            out.key("stream");
            out.boolean(true);
            for (name, json) in parameters {
                out.key(name);
                out.raw(json);
            }
            out.key("messages");
            out.open_array();
            self.0.iter().for_each(|message| out.raw(message));
            out.close_array();
            if tools.is_empty() {
                return;
            }
            out.key("tools");
            out.open_array();
            for tool in tools {
                out.open_object();
                member(out, "type", "function");
                out.key("function");
                out.open_object();
                member(out, "name", &tool.name);
                member(out, "description", &tool.description);
                out.key("parameters");
                out.raw(&tool.parameters);
                out.close_object();
                out.close_object();
            }
            out.close_array();
        })
    }
}

fn plain(role: &str, text: &str) -> String {
    object(|out| {
        member(out, "role", role);
        member(out, "content", text);
    })
}

fn object(inside: impl FnOnce(&mut Writer)) -> String {
    let mut out = Writer::default();
    out.open_object();
    inside(&mut out);
    out.close_object();
    out.finish()
}
