//! How a call ended, read from the server's answer.

use seal::json::JsonValue;

use super::describe::escape_and_shorten;
use crate::phrases::Language;

/// Maximum number of characters of a result that listeners hear.
const MAX_RESULT_CHARS: usize = 160;
/// Maximum number of characters of an error that listeners hear.
const MAX_ERROR_CHARS: usize = 400;

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    /// It succeeded, with this text if it is short.
    Succeeded(Option<String>),
    /// It failed, for this reason.
    Failed(String),
    /// The host or the person cancelled it.
    Cancelled,
    /// The yes came, but nobody waited for the call any more.
    NotMade,
    /// The call needed input and was not continued, or its end could not be followed.
    NotContinued,
    /// The server needs input. The host retries the call with it and with this state, as JSON.
    InputRequired { request_state: Option<String> },
    /// The call goes on as a task with this id.
    Task(String),
}

impl CallOutcome {
    /// Reads the response to `tools/call`.
    pub(crate) fn read(response: &JsonValue<'_>) -> Self {
        if let Some(error) = response.member("error") {
            let message = error.member("message").and_then(|message| message.text());
            let message = message.as_deref().unwrap_or("the server reported an error");
            return Self::Failed(escape_and_shorten(message, MAX_ERROR_CHARS, Language::English));
        }
        let Some(result) = response.member("result") else {
            return Self::Failed("the server sent no result".to_owned());
        };
        let result_type = result.member("resultType").and_then(|kind| kind.text());
        match result_type.as_deref() {
            Some("input_required") => {
                let request_state = result.member("requestState").map(|state| state.source().to_owned());
                return Self::InputRequired { request_state };
            }
            Some("task") => return Self::Task(read_task_id(&result).unwrap_or_default()),
            _ => {}
        }
        // Protocol version 2025-11-25 has no `resultType`.
        if result_type.is_none()
            && result.member("content").is_none()
            && let Some(task) = read_task_id(&result)
        {
            return Self::Task(task);
        }
        let text = result.member("content").and_then(|content| first_text(&content));
        if result.member("isError").and_then(|is_error| is_error.as_bool()) == Some(true) {
            let reason = text.unwrap_or_else(|| "the tool reported an error".to_owned());
            return Self::Failed(escape_and_shorten(&reason, MAX_ERROR_CHARS, Language::English));
        }
        let is_short = |text: &String| text.chars().count() <= MAX_RESULT_CHARS && !text.contains('\n');
        Self::Succeeded(
            text.filter(is_short).map(|text| escape_and_shorten(&text, MAX_RESULT_CHARS, Language::English)),
        )
    }

    /// Reads the state of a task. Returns `None` while it is running.
    pub(crate) fn read_task_status(task: &JsonValue<'_>) -> Option<Self> {
        let task = task.member("task").unwrap_or(*task);
        let message = task.member("statusMessage").and_then(|message| message.text());
        match &*task.member("status")?.text()? {
            "completed" => Some(Self::Succeeded(None)),
            "failed" => {
                let reason = message.as_deref().unwrap_or("the task failed");
                Some(Self::Failed(escape_and_shorten(reason, MAX_ERROR_CHARS, Language::English)))
            }
            "cancelled" => Some(Self::Cancelled),
            _ => None,
        }
    }
}

fn read_task_id(result: &JsonValue<'_>) -> Option<String> {
    let task =
        result.member("task").and_then(|task| task.member("taskId")).or_else(|| result.member("taskId"))?;
    task.text().map(std::borrow::Cow::into_owned)
}

fn first_text(content: &JsonValue<'_>) -> Option<String> {
    let text = content.items().find(|item| item.member("type").is_some_and(|kind| kind.is_text("text")))?;
    text.member("text")?.text().map(std::borrow::Cow::into_owned)
}
