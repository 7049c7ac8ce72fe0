//! The messages that are sent to the model.

use seal::json::{JsonWriter, write_object};

use super::chat_completion::ChatCompletion;
use super::tool::Tool;

/// The conversation, with each message as JSON.
pub(super) struct Conversation(Vec<String>);

impl Conversation {
    pub(super) fn new(instructions: Option<&str>, request: &str) -> Self {
        let instructions = instructions.map(|text| text_message("system", text));
        Self(instructions.into_iter().chain([text_message("user", request)]).collect())
    }

    pub(super) fn push_assistant(&mut self, answer: &ChatCompletion) {
        self.0.push(write_object(|out| {
            out.key("role").text("assistant");
            out.key("content").text(&answer.text);
            out.key("tool_calls").array(|out| {
                for call in &answer.calls {
                    out.object(|out| {
                        out.key("id").text(&call.id);
                        write_function(out, |out| {
                            out.key("name").text(&call.name);
                            out.key("arguments").text(&call.arguments);
                        });
                    });
                }
            });
        }));
    }

    pub(super) fn push_tool_result(&mut self, call_id: &str, content: &str) {
        self.0.push(write_object(|out| {
            out.key("role").text("tool");
            out.key("tool_call_id").text(call_id);
            out.key("content").text(content);
        }));
    }

    pub(super) fn to_request_body(
        &self,
        model: &str,
        parameters: &[(String, String)],
        tools: &[Tool],
    ) -> String {
        write_object(|out| {
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
                        write_function(out, |out| {
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

fn text_message(role: &str, text: &str) -> String {
    write_object(|out| {
        out.key("role").text(role);
        out.key("content").text(text);
    })
}

/// Writes `type` and `function`, which tools and tool calls have in common.
fn write_function(out: &mut JsonWriter, members: impl FnOnce(&mut JsonWriter)) {
    out.key("type").text("function");
    out.key("function").object(members);
}
