//! What the model is told.

use seal::json::{Writer, object};

use super::answer::Answer;
use super::tool::Tool;

/// The conversation so far, each message as JSON.
pub(super) struct Messages(Vec<String>);

impl Messages {
    pub(super) fn new(instructions: Option<&str>, request: &str) -> Self {
        let instructions = instructions.map(|text| plain("system", text));
        Self(instructions.into_iter().chain([plain("user", request)]).collect())
    }

    pub(super) fn assistant(&mut self, answer: &Answer) {
        self.0.push(object(|out| {
            out.key("role").text("assistant");
            out.key("content").text(&answer.text);
            out.key("tool_calls").array(|out| {
                for call in &answer.calls {
                    out.object(|out| {
                        out.key("id").text(&call.id);
                        function(out, |out| {
                            out.key("name").text(&call.name);
                            out.key("arguments").text(&call.arguments);
                        });
                    });
                }
            });
        }));
    }

    pub(super) fn result(&mut self, call: &str, tells: &str) {
        self.0.push(object(|out| {
            out.key("role").text("tool");
            out.key("tool_call_id").text(call);
            out.key("content").text(tells);
        }));
    }

    pub(super) fn body(&self, model: &str, parameters: &[(String, String)], tools: &[Tool]) -> String {
        object(|out| {
            out.key("model").text(model);
            out.key("stream").boolean(true);
            for (name, json) in parameters {
                out.key(name).raw(json);
            }
            out.key("messages").array(|out| self.0.iter().for_each(|message| out.raw(message)));
            if tools.is_empty() {
                return;
            }
            out.key("tools").array(|out| {
                for tool in tools {
                    out.object(|out| {
                        function(out, |out| {
                            out.key("name").text(&tool.name);
                            out.key("description").text(&tool.description);
                            out.key("parameters").raw(&tool.parameters);
                        });
                    });
                }
            });
        })
    }
}

fn plain(role: &str, text: &str) -> String {
    object(|out| {
        out.key("role").text(role);
        out.key("content").text(text);
    })
}

/// Writes `type` and `function`, which tools and calls of tools both have.
fn function(out: &mut Writer, members: impl FnOnce(&mut Writer)) {
    out.key("type").text("function");
    out.key("function").object(members);
}
