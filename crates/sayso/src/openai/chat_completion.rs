//! A chat completion, assembled from the chunks in which it is streamed.

use seal::json::{JsonKind, JsonValue, Tape};

use super::endpoint::summarize_error;
use super::error::{ChatError, ResponseError};
use crate::error::SharedError;

/// The text and the tool calls of a model's answer.
#[derive(Debug, Default)]
pub(super) struct ChatCompletion {
    pub(super) text: String,
    pub(super) calls: Vec<RequestedCall>,
    pub(super) finish_reason: Option<FinishReason>,
    /// Whether the endpoint sent `[DONE]`.
    pub(super) is_done: bool,
}

/// A tool call as the model wrote it.
#[derive(Debug, Default)]
pub(super) struct RequestedCall {
    index: Option<i64>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FinishReason {
    /// The model finished, or requests tools.
    Complete,
    /// The model reached its length limit.
    Length,
    /// The service filtered the rest.
    ContentFilter,
}

impl ChatCompletion {
    /// Processes one event and returns the text that it adds. `key` is the API key, which is removed from error messages. `max_calls`
    /// is the maximum number of tool calls.
    pub(super) fn push_event(
        &mut self,
        event: &str,
        key: Option<&str>,
        max_calls: usize,
    ) -> Result<String, ChatError> {
        if event.trim() == "[DONE]" {
            self.is_done = true;
            return Ok(String::new());
        }
        let mut tape = Tape::default();
        let doc = tape.read(event).map_err(|error| ResponseError::NotJson(SharedError::new(error)))?;
        let chunk = doc.root();
        if let Some(error) = chunk.member("error").filter(|error| error.kind() != JsonKind::Null) {
            return Err(ChatError::EndpointError {
                status: None,
                message: summarize_error(error.source(), key),
            });
        }
        if chunk.kind() != JsonKind::Object {
            return Err(ResponseError::NotCompletionChunk.into());
        }
        let mut new_text = String::new();
        // One choice is requested, so there is at most one. Chunks that only count tokens have none.
        let Some(choice) = optional_list(chunk.member("choices"))?.next() else { return Ok(new_text) };
        if let Some(delta) = choice.member("delta") {
            for name in ["content", "refusal"] {
                new_text.push_str(&optional_text(delta.member(name))?);
            }
            for delta in optional_list(delta.member("tool_calls"))? {
                self.push_call_delta(delta, max_calls)?;
            }
        }
        match &*optional_text(choice.member("finish_reason"))? {
            "" => {}
            "length" => self.finish_reason = Some(FinishReason::Length),
            "content_filter" => self.finish_reason = Some(FinishReason::ContentFilter),
            _ => self.finish_reason = Some(FinishReason::Complete),
        }
        self.text.push_str(&new_text);
        Ok(new_text)
    }

    /// Adds a delta to the call with the same index. Without an index, a new id starts a new call.
    fn push_call_delta(&mut self, delta: JsonValue<'_>, max_calls: usize) -> Result<(), ChatError> {
        let index =
            delta.member("index").and_then(|index| index.as_number()).and_then(|index| index.as_i64());
        let id = optional_text(delta.member("id"))?;
        let position = match index {
            Some(_) => self.calls.iter().position(|call| call.index == index),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().position(|call| call.id == id),
        };
        if position.is_none() {
            if self.calls.len() >= max_calls {
                return Err(ChatError::LimitReached("tool calls in one answer"));
            }
            self.calls.push(RequestedCall { index, ..RequestedCall::default() });
        }
        let position = position.unwrap_or(self.calls.len() - 1);
        let (Some(call), Some(function)) = (self.calls.get_mut(position), delta.member("function")) else {
            return Ok(());
        };
        if call.id.is_empty() {
            call.id = id;
        }
        let name = optional_text(function.member("name"))?;
        // Some endpoints repeat the whole name in every delta.
        if call.name != name {
            call.name.push_str(&name);
        }
        call.arguments.push_str(&optional_text(function.member("arguments"))?);
        Ok(())
    }

    /// Assigns an id to each call that has none.
    pub(super) fn assign_missing_ids(&mut self) {
        for (number, call) in self.calls.iter_mut().enumerate() {
            if call.id.is_empty() {
                call.id = format!("call_{}", number + 1);
            }
        }
    }
}

/// Returns a text that may be missing or null.
fn optional_text(value: Option<JsonValue<'_>>) -> Result<String, ResponseError> {
    match value {
        None => Ok(String::new()),
        Some(value) if value.kind() == JsonKind::Null => Ok(String::new()),
        Some(value) => value.text().map(Into::into).ok_or(ResponseError::NotCompletionChunk),
    }
}

/// Returns the items of a list that may be missing or null.
fn optional_list(value: Option<JsonValue<'_>>) -> Result<impl Iterator<Item = JsonValue<'_>>, ResponseError> {
    match value.map(|value| value.kind()) {
        None | Some(JsonKind::Null | JsonKind::Array) => {
            Ok(value.into_iter().flat_map(|value| value.items()))
        }
        Some(_) => Err(ResponseError::NotCompletionChunk),
    }
}
