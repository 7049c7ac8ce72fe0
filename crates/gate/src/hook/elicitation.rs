//! Asks a person for the input that an MCP server wants from the user of a harness.
//!
//! The members of the requested form are asked one after the other. A form with a member that cannot be asked in words stays
//! with the harness.

use std::time::{Duration, Instant};

use seal::json::{JsonKind, JsonValue, write_object};

use super::answer::HookAnswer;
use super::hub_session::{Hook, HubError, OwnQuestion, member_text};
use super::session_store::{CallPhase, CallRecord};
use crate::description::speakable;
use crate::phrases::{GateText, Language, texts};

/// Maximum number of members of a form.
const MAX_MEMBERS: usize = 8;
/// Maximum number of choices (AAEP §4.4.2).
const MAX_CHOICES: usize = 32;

/// One member of the form.
struct Member {
    name: String,
    title: String,
    kind: MemberKind,
    is_required: bool,
}

enum MemberKind {
    Text,
    Number,
    Boolean,
    /// The values and their labels.
    Choice(Vec<(String, String)>),
}

pub(super) async fn ask(hook: &mut Hook, is_required: bool) -> HookAnswer {
    let answer = ask_person(hook).await;
    hook.set_own_question(None);
    match answer {
        Ok(Some(answer)) => answer,
        Err(error) => {
            super::permission::report(&error);
            if is_required { HookAnswer::ElicitationDeclined } else { HookAnswer::NoOpinion }
        }
        _ if is_required => HookAnswer::ElicitationDeclined,
        _ => HookAnswer::NoOpinion,
    }
}

/// Asks for each member. Returns `None` if nobody answered, so that the harness's own dialog decides.
async fn ask_person(hook: &mut Hook) -> Result<Option<HookAnswer>, HubError> {
    let root = hook.event().root();
    let message = hook.event().text("message").unwrap_or_default();
    let server = hook.event().text("mcp_server_name").unwrap_or_default();
    let members = root.member("requested_schema").as_ref().and_then(read_members);
    // An address has to be opened in a browser, which the person does on the screen.
    let is_form = hook.event().text("mode").is_none_or(|mode| mode == "form");
    let Some(members) = members.filter(|members| is_form && !members.is_empty()) else {
        let text = format!(
            "The server {} asks on the screen: {}",
            speakable(&server, 100, Language::English),
            speakable(&message, 1000, Language::English)
        );
        let mut locked = hook.lock().await?;
        locked.record.call_count += 1;
        let what = format!("elicitation {}", locked.record.call_count);
        hook.send_output(&mut locked, &what, &what, &text, true).await?;
        locked.save()?;
        return Ok(None);
    };
    let mut content = Vec::new();
    for member in &members {
        let title = if members.len() > 1 { format!("{}?", member.title) } else { String::new() };
        let question = GateText::new(|language| {
            let (server, message) = (speakable(&server, 100, language), speakable(&message, 2000, language));
            texts::SERVER_ASKS.fill(language, &[&server, &message, &title]).trim().to_owned()
        });
        let Some(response) = ask_member(hook, &question, member).await? else { return Ok(None) };
        match value_json(&response, &member.kind) {
            Some(value) => content.push((member.name.clone(), value)),
            None if member.is_required => return Ok(None),
            None => {}
        }
    }
    let content = write_object(|out| {
        for (name, value) in &content {
            out.key(name).raw(value);
        }
    });
    Ok(Some(HookAnswer::Elicited { content }))
}

/// Asks for one member. Returns the person's answer, or `None` if there is none.
async fn ask_member(
    hook: &mut Hook,
    question: &GateText,
    member: &Member,
) -> Result<Option<String>, HubError> {
    let seconds = hook.question_seconds(2);
    let body = write_object(|out| {
        question.write(out, "question");
        question.write(out, "summary_normal");
        out.key("timeout_seconds").raw(&seconds.to_string());
        let kind = match &member.kind {
            MemberKind::Text => "freetext",
            MemberKind::Number => "numeric",
            MemberKind::Boolean => "yes_no",
            MemberKind::Choice(_) => "multiple_choice",
        };
        out.key("accepted_response_kinds");
        out.array(|out| out.text(kind));
        if let MemberKind::Choice(choices) = &member.kind {
            // The labels are the server's, so they are the same in each language.
            for name in ["choices", "choices_es", "choices_yo"] {
                out.key(name);
                out.array(|out| {
                    for (value, label) in choices {
                        out.object(|out| {
                            out.key("value").text(value);
                            out.key("label").text(label);
                        });
                    }
                });
            }
        }
    });
    let (session, token, key) = {
        let mut locked = hook.lock().await?;
        locked.record.call_count += 1;
        let key = format!("elicitation {}", locked.record.call_count);
        locked.save()?;
        hook.set_own_question(Some(OwnQuestion {
            route: "clarifications",
            question: key.clone(),
            body: body.clone(),
            _mark: locked.mark_waiting(&key)?,
        }));
        let asked = hook.post(&mut locked, "clarifications", "", &key, body).await?;
        let token = member_text(&asked, "reply_token").ok_or(HubError::InvalidAnswer)?;
        let session = locked.record.hub_session.clone().ok_or(HubError::InvalidAnswer)?;
        locked.record.add_call(CallRecord {
            key: key.clone(),
            phase: CallPhase::Asked,
            reply_token: Some(token.clone()),
            ..CallRecord::default()
        });
        locked.save()?;
        (session, token, key)
    };
    let answer = loop {
        let left = hook.give_up_at().saturating_duration_since(Instant::now());
        if left.is_zero() {
            break hook.withdraw(&session, &token).await?;
        }
        let answer = hook
            .wait_for_answer(&session, &token, left.clamp(Duration::from_secs(1), Duration::from_mins(1)))
            .await?;
        if member_text(&answer, "status").as_deref() != Some("pending") {
            break answer;
        }
    };
    let mut locked = hook.lock().await?;
    locked.clear_mark(&key);
    locked.record.calls.retain(|call| call.reply_token.as_deref() != Some(&token));
    locked.save()?;
    let is_reply = member_text(&answer, "by").as_deref() == Some("reply");
    let response = answer.doc().root().member("response").map(|response| match response.text() {
        Some(text) => text.into_owned(),
        None => response.source().to_owned(),
    });
    Ok(response.filter(|_| is_reply))
}

fn read_members(schema: &JsonValue<'_>) -> Option<Vec<Member>> {
    let properties = schema.member("properties").filter(|list| list.kind() == JsonKind::Object)?;
    let required: Vec<String> = schema
        .member("required")
        .iter()
        .flat_map(JsonValue::items)
        .filter_map(|name| Some(name.text()?.into_owned()))
        .collect();
    let mut members = Vec::new();
    for (name, property) in properties.members() {
        let name = name.text()?.into_owned();
        let title = property.member("title").or_else(|| property.member("description"));
        let title =
            title.and_then(|title| title.text()).map_or_else(|| name.clone(), std::borrow::Cow::into_owned);
        let kind = if let Some(values) = property.member("enum") {
            let values: Option<Vec<String>> =
                values.items().map(|value| Some(value.text()?.into_owned())).collect();
            let labels = property.member("enumNames");
            let labels: Vec<String> = labels
                .iter()
                .flat_map(JsonValue::items)
                .filter_map(|label| Some(label.text()?.into_owned()))
                .collect();
            let label =
                |at: usize, value: &str| labels.get(at).map_or_else(|| value.to_owned(), Clone::clone);
            let choices: Vec<_> = values?
                .into_iter()
                .enumerate()
                .map(|(at, value)| (value.clone(), speakable(&label(at, &value), 200, Language::English)))
                .collect();
            if choices.len() < 2 || choices.len() > MAX_CHOICES {
                return None;
            }
            MemberKind::Choice(choices)
        } else {
            match property.member("type")?.text()?.as_ref() {
                "string" => MemberKind::Text,
                "number" | "integer" => MemberKind::Number,
                "boolean" => MemberKind::Boolean,
                _ => return None,
            }
        };
        let is_required = required.contains(&name);
        members.push(Member { title: speakable(&title, 200, Language::English), name, kind, is_required });
    }
    (members.len() <= MAX_MEMBERS).then_some(members)
}

/// Converts an answer to the JSON value of the member.
fn value_json(response: &str, kind: &MemberKind) -> Option<String> {
    let quoted = |text: &str| {
        let object = write_object(|out| out.key("v").text(text));
        object.strip_prefix(r#"{"v":"#).and_then(|rest| rest.strip_suffix('}')).map(str::to_owned)
    };
    match kind {
        MemberKind::Text => quoted(response),
        MemberKind::Choice(choices) => {
            choices.iter().any(|(value, _)| value == response).then(|| quoted(response))?
        }
        MemberKind::Boolean => match response.to_ascii_lowercase().as_str() {
            "yes" | "true" => Some("true".to_owned()),
            "no" | "false" => Some("false".to_owned()),
            _ => None,
        },
        MemberKind::Number => {
            let number: f64 = response.trim().parse().ok()?;
            number
                .is_finite()
                .then(|| {
                    seal::json::write_object(|out| {
                        out.key("v");
                        out.number(number);
                    })
                })
                .and_then(|object| object.strip_prefix(r#"{"v":"#)?.strip_suffix('}').map(str::to_owned))
        }
    }
}
