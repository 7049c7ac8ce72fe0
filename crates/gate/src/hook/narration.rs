//! Turns each event of a harness into announcements.

use seal::json::{JsonKind, JsonValue};

use super::event::{EventKind, ToolCall};
use super::hub_session::{Hook, HubError, REQUESTING_TOOL, aaep_tool_name, write_event};
use super::permission::{find_or_add, invoked_event, sentence};
use super::session_store::{CallPhase, CallRecord, LockedRecord};
use crate::description::{describe_call, speakable};
use crate::phrases::{GateText, Language, Phrase, texts};

/// Maximum number of characters of a tool's result that are read aloud.
const MAX_RESULT_CHARS: usize = 400;
/// Maximum number of characters of one part of the agent's text.
const MAX_PROSE_CHARS: usize = 60_000;
/// Maximum number of characters of a notification.
const MAX_NOTIFICATION_CHARS: usize = 1_000;

/// Announces an event to listeners.
pub(super) async fn narrate(hook: &mut Hook) -> Result<(), HubError> {
    match hook.event().kind {
        EventKind::SessionStart => {
            hook.delete_old_records();
            let mut locked = hook.lock().await?;
            hook.ensure_session(&mut locked).await?;
            Ok(())
        }
        EventKind::SubagentStart => {
            let mut locked = hook.lock().await?;
            hook.ensure_session(&mut locked).await?;
            Ok(())
        }
        EventKind::SessionEnd => end_session(hook).await,
        EventKind::SubagentStop => {
            speak_last_message(hook).await?;
            end_session(hook).await
        }
        EventKind::Prompt => {
            let mut locked = hook.lock().await?;
            withdraw_questions(hook, &mut locked, |_| true).await;
            locked.record.calls.clear();
            locked.record.set_heard_text(String::new());
            let event = state_event("thinking", None);
            let number = next_number(&mut locked);
            hook.send_events(&mut locked, &format!("prompt {number}"), &[event]).await?;
            Ok(locked.save()?)
        }
        EventKind::BeforeTool => before_tool(hook).await,
        EventKind::AfterTool | EventKind::AfterToolFailure => after_tool(hook).await,
        EventKind::AfterToolBatch => after_batch(hook).await,
        EventKind::PermissionRequest => permission_request(hook).await,
        EventKind::PermissionDenied => permission_denied(hook).await,
        EventKind::Notification => notification(hook).await,
        EventKind::Message => message(hook).await,
        EventKind::Stop => stop(hook).await,
        EventKind::ElicitationResult => {
            let mut locked = hook.lock().await?;
            withdraw_questions(hook, &mut locked, |key| key.starts_with("elicitation ")).await;
            Ok(locked.save()?)
        }
        EventKind::Elicitation | EventKind::Other => Ok(()),
    }
}

/// Returns a number that is used once in this session.
fn next_number(locked: &mut LockedRecord) -> u64 {
    locked.record.call_count += 1;
    locked.record.call_count
}

fn state_event(state: &str, summary: Option<&GateText>) -> String {
    write_event("state.changed", |out| {
        out.key("to_state").text(state);
        if let Some(summary) = summary {
            summary.write(out, "summary_normal");
        }
    })
}

/// Announces a call. If the harness may still ask for permission, the call has not begun: listeners then hear about it only if
/// nothing else happens for a while.
async fn before_tool(hook: &mut Hook) -> Result<(), HubError> {
    let Some(call) = hook.event().call.clone() else { return Ok(()) };
    let description = describe_call(&call.tool, &call.input.doc().root());
    let begins_now = hook.event().runs_without_request();
    let mut locked = hook.lock().await?;
    hook.ensure_session(&mut locked).await?;
    let at = find_or_add(&mut locked.record, &call, &hook.event().name, |_| false);
    let record = &mut locked.record.calls[at];
    let key = record.key.clone();
    if record.is_invoked {
        return Ok(locked.save()?);
    }
    record.is_invoked = begins_now;
    let event = if begins_now {
        invoked_event(&call, &description, &key, false)
    } else {
        state_event(REQUESTING_TOOL, Some(&description.map(sentence)))
    };
    locked.save()?;
    hook.send_events(&mut locked, &format!("before {key}"), &[event]).await?;
    Ok(locked.save()?)
}

/// Announces what a call did. Withdraws a question about it, which was answered on the screen, and raises an alarm if the call
/// is not what the person permitted.
async fn after_tool(hook: &mut Hook) -> Result<(), HubError> {
    let Some(call) = hook.event().call.clone() else { return Ok(()) };
    let description = describe_call(&call.tool, &call.input.doc().root());
    let mut locked = hook.lock().await?;
    let session = hook.ensure_session(&mut locked).await?;
    let calls = &locked.record.calls;
    let has_id = |known: &CallRecord| call.id.is_some() && known.id == call.id;
    let by_id = calls.iter().rposition(|known| has_id(known) && known.digest == call.digest);
    let by_id = by_id.or_else(|| calls.iter().rposition(has_id));
    let by_digest = || {
        calls
            .iter()
            .position(|known| known.digest == call.digest && (known.id.is_none() || call.id.is_none()))
    };
    let found = by_id.or_else(by_digest);
    let known = found.map(|at| locked.record.calls.remove(at));
    locked.save()?;
    let number = next_number(&mut locked);
    let key = known.as_ref().map_or_else(|| call.id.clone(), |known| Some(known.key.clone()));
    let key = key.unwrap_or_else(|| format!("{}#{number}", call.digest));
    let mut alarm: Option<&Phrase> = None;
    let (mut is_invoked, mut is_refused) = (false, false);
    if let Some(known) = &known {
        is_invoked = known.is_invoked;
        is_refused = known.phase == CallPhase::Refused;
        if let Some(token) = &known.reply_token {
            drop(hook.withdraw(&session, token).await);
        }
        alarm = match known.phase {
            CallPhase::Accepted if known.digest != call.digest => Some(&texts::ALARM_CHANGED),
            CallPhase::Refused => Some(&texts::ALARM_REFUSED),
            _ => None,
        };
    }
    if alarm.is_none()
        && !known.is_some_and(|known| known.phase == CallPhase::Accepted)
        && hook.needs_consent()
    {
        alarm = Some(&texts::ALARM_UNASKED);
    }
    if let Some(alarm) = alarm.filter(|_| is_refused) {
        // The hub rightly refuses to announce a call that a person refused, so the alarm is plain text, which has only one language.
        let text = alarm_text(alarm, &description);
        hook.send_output(&mut locked, &format!("after {key}"), &key, text.english(), true).await?;
        return Ok(locked.save()?);
    }
    let mut events = Vec::new();
    if !is_invoked {
        events.push(invoked_event(&call, &description, &key, false));
    }
    events.push(completed_event(hook, &call, &key, &description, alarm));
    hook.send_events(&mut locked, &format!("after {key}"), &events).await?;
    Ok(locked.save()?)
}

/// An alarm about a call.
fn alarm_text(alarm: &Phrase, action: &GateText) -> GateText {
    GateText::new(|language| alarm.fill(language, &[&sentence(action.text(language))]))
}

fn completed_event(
    hook: &Hook,
    call: &ToolCall,
    key: &str,
    action: &GateText,
    alarm: Option<&Phrase>,
) -> String {
    let event = hook.event();
    let result = event.root().member("tool_response").or_else(|| event.root().member("output"));
    let result = result.or_else(|| event.root().member("result_json"));
    let error = event.text("error").or_else(|| event.text("error_message"));
    let is_interrupted = result
        .as_ref()
        .and_then(|result| result.member("interrupted"))
        .is_some_and(|interrupted| interrupted.as_bool() == Some(true));
    let has_failed = event.kind == EventKind::AfterToolFailure
        || result.as_ref().is_some_and(|result| {
            result.member("error").is_some_and(|error| error.kind() != JsonKind::Null)
                || result.member("is_error").is_some_and(|error| error.as_bool() == Some(true))
        });
    let text = GateText::new(|language| match (&error, &result) {
        (Some(error), _) => speakable(error, MAX_RESULT_CHARS, language),
        (None, Some(result)) => result_text(&call.tool, result, language),
        (None, None) => String::new(),
    });
    let text = Some(text).filter(|text| !text.english().is_empty());
    let is_error = has_failed || is_interrupted || alarm.is_some();
    write_event("tool.completed", |out| {
        out.key("tool").text(&aaep_tool_name(&call.tool));
        out.key("tool_call_id").text(key);
        out.plain_member("status", if is_error { "error" } else { "success" });
        if let Some(duration) =
            event.root().member("duration_ms").and_then(|ms| ms.source().parse::<u64>().ok())
        {
            out.key("duration_ms").raw(&duration.to_string());
        }
        if let Some(alarm) = alarm {
            let text = alarm_text(alarm, action);
            out.plain_member("urgency", "critical");
            text.write(out, "summary_normal");
            text.write(out, "error_message");
        } else if is_error {
            let what: GateText = if is_interrupted { &texts::INTERRUPTED } else { &texts::FAILED }.into();
            what.write(out, "summary_normal");
            text.as_ref().unwrap_or(&what).write(out, "error_message");
        } else {
            text.unwrap_or_else(|| (&texts::DONE).into()).write(out, "summary_normal");
        }
    })
}

/// Puts a result into words. The content of files is not read aloud.
fn result_text(tool: &str, result: &JsonValue<'_>, language: Language) -> String {
    let lower = tool.to_ascii_lowercase();
    if ["edit", "write", "replace", "patch", "todo"].iter().any(|name| lower.contains(name)) {
        return String::new();
    }
    let text = plain_result(result);
    if ["read", "grep", "glob", "search", "ls", "list"].iter().any(|name| lower.contains(name)) {
        let lines = text.lines().count();
        return match lines {
            0 => String::new(),
            1 => texts::LINE.fill(language, &[]),
            lines => texts::LINES.fill(language, &[&lines.to_string()]),
        };
    }
    speakable(text.trim(), MAX_RESULT_CHARS, language)
}

/// Finds the text in a result, whose form differs between tools and harnesses.
fn plain_result(result: &JsonValue<'_>) -> String {
    if let Some(text) = result.text() {
        let text = text.replace("<untrusted_context>", "").replace("</untrusted_context>", "");
        return text.trim().to_owned();
    }
    let texts = |items: &JsonValue<'_>| {
        let parts: Vec<_> = items.items().filter_map(|item| item.member("text")?.text()).collect();
        parts.join("\n")
    };
    match result.kind() {
        JsonKind::Array => texts(result),
        JsonKind::Object => {
            let member = |name: &str| {
                Some(result.member(name)?.text()?.trim().to_owned()).filter(|text| !text.is_empty())
            };
            let output = [member("stdout"), member("stderr")];
            let output: Vec<String> = output.into_iter().flatten().collect();
            if !output.is_empty() {
                return output.join("\n");
            }
            for name in ["llmContent", "output", "content", "result", "text", "file"] {
                if let Some(value) = result.member(name) {
                    return plain_result(&value);
                }
            }
            String::new()
        }
        _ => String::new(),
    }
}

/// Withdraws the questions about calls of a finished step, and forgets its calls.
async fn after_batch(hook: &mut Hook) -> Result<(), HubError> {
    let ids: Vec<String> = hook
        .event()
        .root()
        .member("tool_calls")
        .map(|calls| {
            calls.items().filter_map(|call| Some(call.member("tool_use_id")?.text()?.into_owned())).collect()
        })
        .unwrap_or_default();
    let mut locked = hook.lock().await?;
    withdraw_questions(hook, &mut locked, |key| ids.iter().any(|id| id == key)).await;
    locked.record.calls.retain(|call| !ids.contains(&call.key));
    Ok(locked.save()?)
}

/// A permission request that only the screen can answer: its question is read aloud.
async fn permission_request(hook: &mut Hook) -> Result<(), HubError> {
    let Some(call) = hook.event().call.clone() else { return Ok(()) };
    let mut questions = Vec::new();
    for question in call.input.doc().root().member("questions").iter().flat_map(JsonValue::items) {
        let text = question
            .member("question")
            .and_then(|text| Some(speakable(&text.text()?, 1000, Language::English)));
        let labels: Vec<String> = question
            .member("options")
            .iter()
            .flat_map(JsonValue::items)
            .filter_map(|option| Some(speakable(&option.member("label")?.text()?, 200, Language::English)))
            .collect();
        questions.push(format!("{} Choices: {}.", text.unwrap_or_default(), labels.join(", ")));
    }
    let text = format!("Question on the screen: {}", questions.join(" "));
    let mut locked = hook.lock().await?;
    let number = next_number(&mut locked);
    let what = format!("question {number}");
    hook.send_output(&mut locked, &what, &what, &text, true).await?;
    Ok(locked.save()?)
}

async fn permission_denied(hook: &mut Hook) -> Result<(), HubError> {
    let Some(call) = hook.event().call.clone() else { return Ok(()) };
    let description = describe_call(&call.tool, &call.input.doc().root());
    let mut locked = hook.lock().await?;
    let id = call.id.clone();
    let is_same = |key: &str| {
        let rest = id.as_deref().and_then(|id| key.strip_prefix(id));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#')) || key.starts_with(&call.digest)
    };
    withdraw_questions(hook, &mut locked, is_same).await;
    let at = find_or_add(&mut locked.record, &call, &hook.event().name, |_| false);
    let known = locked.record.calls.remove(at);
    // A call that a person refused here was heard already.
    if known.phase != CallPhase::Refused {
        let text = format!(
            "Not permitted by {}: {}",
            hook.event().harness.display_name(),
            sentence(description.english())
        );
        let what = format!("denied {}", known.key);
        hook.send_output(&mut locked, &what, &what, &text, true).await?;
    }
    Ok(locked.save()?)
}

async fn notification(hook: &mut Hook) -> Result<(), HubError> {
    let kind = hook.event().text("notification_type").unwrap_or_default();
    // These repeat what a question or its answer has said.
    if matches!(kind.as_str(), "elicitation_response" | "elicitation_dialog" | "elicitation_complete") {
        return Ok(());
    }
    let Some(message) = hook.event().text("message").filter(|message| !message.trim().is_empty()) else {
        return Ok(());
    };
    let mut locked = hook.lock().await?;
    let is_asking = locked.record.calls.iter().any(|call| call.phase == CallPhase::Asked);
    if is_asking && matches!(kind.as_str(), "permission_prompt" | "ToolPermission") {
        return Ok(());
    }
    let details = hook.event().root().member("details");
    let command = details.and_then(|details| Some(details.member("command")?.text()?.into_owned()));
    let message = match command {
        Some(command) => format!("{message}: {command}"),
        None => message,
    };
    let number = next_number(&mut locked);
    let what = format!("notification {number}");
    let text = sentence(&speakable(&message, MAX_NOTIFICATION_CHARS, Language::English));
    hook.send_output(&mut locked, &what, &what, &text, true).await?;
    Ok(locked.save()?)
}

/// Sends a part of the agent's text, unless it was already announced at the end of the turn.
async fn message(hook: &mut Hook) -> Result<(), HubError> {
    let event = hook.event();
    let Some(delta) = event.text("delta").or_else(|| event.text("text")) else { return Ok(()) };
    let id = event.text("message_id").or_else(|| event.text("generation_id")).unwrap_or_default();
    let index = event.root().member("index").map(|index| index.source().to_owned()).unwrap_or_default();
    let is_final = event.root().member("final").is_none_or(|last| last.as_bool() == Some(true));
    let mut locked = hook.lock().await?;
    let record = &mut locked.record;
    if record.message_id != id || id.is_empty() {
        // The end of the turn was announced first, with the text of this message.
        if record.message_id == STOP_MESSAGE && record.heard_text.contains(delta.trim()) {
            return Ok(());
        }
        record.message_id.clone_from(&id);
        record.set_heard_text(String::new());
    }
    let heard = format!("{}{delta}", record.heard_text);
    record.set_heard_text(heard);
    let output = if id.is_empty() { format!("message {}", next_number(&mut locked)) } else { id.clone() };
    locked.save()?;
    let text = speakable(&delta, MAX_PROSE_CHARS, Language::English);
    if text.trim().is_empty() && !is_final {
        return Ok(());
    }
    hook.send_output(&mut locked, &format!("{output} {index}"), &output, &text, is_final).await?;
    Ok(locked.save()?)
}

/// The message id while the text of the end of a turn is the latest.
const STOP_MESSAGE: &str = "(end of turn)";

async fn stop(hook: &mut Hook) -> Result<(), HubError> {
    speak_last_message(hook).await?;
    let mut locked = hook.lock().await?;
    withdraw_questions(hook, &mut locked, |_| true).await;
    locked.record.calls.clear();
    let number = next_number(&mut locked);
    let text = texts::WAITING.with(&[hook.event().harness.display_name()]);
    let event = state_event("idle", Some(&text));
    hook.send_events(&mut locked, &format!("stop {number}"), &[event]).await?;
    Ok(locked.save()?)
}

/// Announces the last text of a turn, or the rest of it, unless it was announced as a message.
async fn speak_last_message(hook: &mut Hook) -> Result<(), HubError> {
    let event = hook.event();
    let failure = event.text("error").filter(|_| event.name == "StopFailure");
    let text = failure
        .or_else(|| event.text("last_assistant_message"))
        .or_else(|| event.text("prompt_response"))
        .unwrap_or_default();
    let mut locked = hook.lock().await?;
    let record = &mut locked.record;
    let heard = record.heard_text.trim();
    let rest = text.trim().strip_prefix(heard).unwrap_or(&text).trim().to_owned();
    if rest.is_empty() {
        return Ok(());
    }
    STOP_MESSAGE.clone_into(&mut record.message_id);
    record.set_heard_text(text);
    let number = next_number(&mut locked);
    locked.save()?;
    let what = format!("last message {number}");
    hook.send_output(&mut locked, &what, &what, &speakable(&rest, MAX_PROSE_CHARS, Language::English), true)
        .await?;
    Ok(locked.save()?)
}

/// Ends the hub's session, if there is one.
async fn end_session(hook: &mut Hook) -> Result<(), HubError> {
    let mut locked = hook.lock().await?;
    if locked.record.hub_session.is_none() {
        return Ok(());
    }
    withdraw_questions(hook, &mut locked, |_| true).await;
    let event = write_event("session.completed", |out| {
        GateText::from(&texts::DONE).write(out, "summary_normal");
    });
    let sent = hook.send_events(&mut locked, "end", &[event]).await;
    locked.record.hub_session = None;
    locked.record.generation += 1;
    locked.record.calls.clear();
    locked.record.message_id.clear();
    locked.record.set_heard_text(String::new());
    locked.save()?;
    sent
}

/// Withdraws the open questions about calls whose key fits. Failures are ignored, because a question also ends at its
/// deadline.
async fn withdraw_questions(hook: &mut Hook, locked: &mut LockedRecord, fits: impl Fn(&str) -> bool) {
    let Some(session) = locked.record.hub_session.clone() else { return };
    for at in 0..locked.record.calls.len() {
        let Some(call) = locked.record.calls.get_mut(at).filter(|call| fits(&call.key)) else { continue };
        let Some(token) = call.reply_token.take() else { continue };
        call.phase = CallPhase::Announced;
        drop(hook.withdraw(&session, &token).await);
    }
}
