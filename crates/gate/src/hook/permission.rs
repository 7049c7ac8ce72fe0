//! Asks a person about a call.

use std::time::{Duration, Instant};

use seal::json::{OwnedDoc, write_object};

use super::answer::HookAnswer;
use super::event::{EventKind, ToolCall};
use super::hub_session::{Hook, HubError, OwnQuestion, aaep_tool_name, member_text, write_event};
use super::session_store::{CallPhase, CallRecord, HookRecord, LockedRecord};
use crate::description::{describe_call, speakable};
use crate::phrases::{GateText, Language};
use crate::risk::RiskClass;

/// How long the hook tries to reach a hub again that was lost during a question. A hub that restarts knows the question.
const RECONNECT_TIME: Duration = Duration::from_secs(20);
const RECONNECT_DELAY: Duration = Duration::from_millis(200);
/// Maximum duration of one request that waits for an answer.
const MAX_WAIT: Duration = Duration::from_mins(1);
/// How long before the hook gives up the hub ends the question, so that listeners hear that its time is over.
const QUESTION_MARGIN_SECONDS: u64 = 2;

/// The outcome of the question.
enum Outcome {
    /// A person said yes, and the hub has recorded that the call begins.
    Accepted,
    /// The call is refused, for this reason.
    Refused(String),
    /// A person stopped the whole session.
    Stopped,
    /// The question was withdrawn, because it was answered on the harness's own screen or the session ended.
    Withdrawn,
    /// No listener could be asked.
    Unreachable,
}

/// Asks a person whether the call of this event may be made. If nobody can be asked, the harness's own prompt remains, or
/// the call is refused if `is_required` is set.
pub(super) async fn ask(hook: &mut Hook, is_required: bool) -> HookAnswer {
    let outcome = match hook.event().call.clone() {
        Some(call) => ask_person(hook, &call).await,
        None => Ok(Outcome::Refused("sayso could not read which call this is".to_owned())),
    };
    hook.set_own_question(None);
    let is_request = hook.event().kind == EventKind::PermissionRequest;
    let nobody = |why: &str| match (is_required, is_request) {
        (true, _) => HookAnswer::deny(format!("Not permitted: {why}, and the user's consent is required.")),
        (false, true) => HookAnswer::NoOpinion,
        (false, false) => HookAnswer::OwnPrompt { reason: format!("sayso could not ask: {why}.") },
    };
    match outcome {
        Ok(Outcome::Accepted) => HookAnswer::Allow,
        Ok(Outcome::Refused(reason)) => HookAnswer::deny(format!("Not permitted: {reason}.")),
        Ok(Outcome::Stopped) => HookAnswer::Deny {
            reason: "Not permitted: the user stopped this session. Do not go on.".to_owned(),
            is_stop: true,
        },
        Ok(Outcome::Withdrawn) if is_request => HookAnswer::NoOpinion,
        Ok(Outcome::Withdrawn) => HookAnswer::deny("Not permitted: the question was withdrawn."),
        Ok(Outcome::Unreachable) => nobody("nobody is listening"),
        Err(error) => {
            report(&error);
            nobody("there is no connection to sayso's hub")
        }
    }
}

/// Reports why the hub could not be used, on standard error.
pub(super) fn report(error: &HubError) {
    use std::io::Write as _;
    drop(writeln!(std::io::stderr(), "sayso: {error}"));
}

async fn ask_person(hook: &mut Hook, call: &ToolCall) -> Result<Outcome, HubError> {
    let description = describe_call(&call.tool, &call.input.doc().root());
    let mut own_key: Option<String> = None;
    let (key, session, token) = loop {
        let mut locked = hook.lock().await?;
        hook.ensure_session(&mut locked).await?;
        let abandoned = abandoned_keys(&locked)?;
        let is_abandoned = |known: &CallRecord| abandoned.contains(&known.key);
        let at = match &own_key {
            None => find_or_add(&mut locked.record, call, &hook.event().name, is_abandoned),
            Some(key) => match locked.record.calls.iter().position(|known| known.key == *key) {
                Some(at) => at,
                // The turn ended in the meantime.
                None => return Ok(Outcome::Withdrawn),
            },
        };
        let record = &locked.record.calls[at];
        match record.phase {
            // An earlier event of the same call was answered.
            CallPhase::Accepted => return Ok(Outcome::Accepted),
            CallPhase::Refused => return Ok(Outcome::Refused("the user said no to this call".to_owned())),
            CallPhase::Announced | CallPhase::Asked => {}
        }
        let key = record.key.clone();
        // The hub asks only one question about an action at a time, and a yes permits one call. So this one waits for its turn.
        let earlier = locked.record.calls.iter().find(|known| {
            known.key != key
                && known.digest == call.digest
                && known.phase == CallPhase::Asked
                && !abandoned.contains(&known.key)
        });
        if record.phase == CallPhase::Announced
            && let Some(token) = earlier.and_then(|known| known.reply_token.clone())
        {
            let session = locked.record.hub_session.clone().ok_or(HubError::InvalidAnswer)?;
            own_key = Some(key);
            locked.save()?;
            drop(locked);
            if !wait_for_turn(hook, &session, &token).await? {
                return Ok(Outcome::Refused("nobody answered in time".to_owned()));
            }
            continue;
        }
        let body = question_body(hook, call, &description, &key);
        let mut token = record.reply_token.clone();
        if record.phase == CallPhase::Asked && abandoned.contains(&record.key) {
            // The process that asked was killed. A yes to its question must not permit a later call.
            withdraw_abandoned(hook, &mut locked, &key, body.clone()).await;
            token = None;
        }
        let token = if let Some(token) = token {
            // Another process asks about this call already.
            let question = locked.record.calls[at].question();
            let mark = locked.mark_waiting(&question)?;
            hook.set_own_question(Some(OwnQuestion { route: "confirmations", question, body, _mark: mark }));
            token
        } else {
            // The attempt is stored before the question is asked, so that no later process repeats the request.
            let record = &mut locked.record.calls[at];
            record.attempt += 1;
            record.phase = CallPhase::Asked;
            let question = record.question();
            hook.set_own_question(Some(OwnQuestion {
                route: "confirmations",
                question: question.clone(),
                body: body.clone(),
                _mark: locked.mark_waiting(&question)?,
            }));
            locked.save()?;
            let asked = post_question(hook, &mut locked, &question, &body).await;
            if let Err(HubError::Refused { .. }) = &asked
                && let Some(record) = locked.record.find_key(&key)
            {
                // There is no question, so there is none to withdraw later.
                record.phase = CallPhase::Announced;
                locked.save()?;
            }
            let asked = asked?;
            let token = member_text(&asked, "reply_token").ok_or(HubError::InvalidAnswer)?;
            if let Some(record) = locked.record.find_key(&key) {
                record.phase = CallPhase::Asked;
                record.reply_token = Some(token.clone());
            }
            token
        };
        locked.save()?;
        let session = locked.record.hub_session.clone().ok_or(HubError::InvalidAnswer)?;
        break (key, session, token);
    };
    let answer = wait(hook, &session, &token).await?;
    let outcome = read_outcome(&answer);
    let mut locked = match hook.lock().await {
        Ok(locked) => locked,
        // A yes counts only if it is recorded.
        Err(error) if matches!(outcome, Outcome::Accepted) => return Err(error),
        Err(_) => return Ok(outcome),
    };
    // Another event may have ended the call in the meantime; then there is nothing to permit.
    let is_current = locked.record.hub_session.as_deref() == Some(&session);
    let Some(record) = locked.record.find_key(&key).filter(|_| is_current) else {
        return Ok(match outcome {
            Outcome::Accepted => Outcome::Withdrawn,
            other => other,
        });
    };
    let question = record.question();
    record.reply_token = None;
    record.phase =
        if matches!(outcome, Outcome::Accepted) { CallPhase::Accepted } else { CallPhase::Refused };
    if matches!(outcome, Outcome::Withdrawn | Outcome::Unreachable) {
        record.phase = CallPhase::Announced;
    }
    if matches!(outcome, Outcome::Accepted) {
        // This uses up the yes. If the hub refuses, the yes does not cover this call, and the call is not permitted.
        let event = invoked_event(call, &description, &key, true);
        if let Err(error) = hook.send_events(&mut locked, &format!("invoked {key}"), &[event]).await {
            if let Some(record) = locked.record.find_key(&key) {
                record.phase = CallPhase::Refused;
            }
            locked.save()?;
            report(&error);
            return Ok(Outcome::Refused("sayso's hub could not record the consent".to_owned()));
        }
        if let Some(record) = locked.record.find_key(&key) {
            record.is_invoked = true;
        }
    }
    if matches!(outcome, Outcome::Stopped) {
        locked.record.hub_session = None;
        locked.record.generation += 1;
    }
    locked.save()?;
    locked.clear_mark(&question);
    Ok(outcome)
}

/// Waits until the question about an identical call may have ended. Returns false if the hook must answer now.
async fn wait_for_turn(hook: &mut Hook, session: &str, token: &str) -> Result<bool, HubError> {
    let left = hook.give_up_at().saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Ok(false);
    }
    let answer = tokio::select! {
        answer = hook.wait_for_answer(session, token, left.clamp(Duration::from_secs(1), MAX_WAIT)) => answer?,
        () = tokio::time::sleep(left) => return Ok(false),
    };
    if member_text(&answer, "status").as_deref() != Some("pending") {
        // The process that asked has to store the answer first.
        tokio::time::sleep(RECONNECT_DELAY.min(left)).await;
    }
    Ok(true)
}

/// Asks. If the hub is lost before it answers, the question may have been asked, so the same request is repeated.
async fn post_question(
    hook: &mut Hook,
    locked: &mut LockedRecord,
    question: &str,
    body: &str,
) -> Result<OwnedDoc, HubError> {
    let give_up_at = hook.give_up_at().min(Instant::now() + RECONNECT_TIME);
    loop {
        match hook.post(locked, "confirmations", "", question, body.to_owned()).await {
            Err(error) if !matches!(error, HubError::Refused { .. }) && Instant::now() < give_up_at => {
                tokio::time::sleep(RECONNECT_DELAY).await;
            }
            result => return result,
        }
    }
}

/// Returns the calls with a question for which no process waits.
fn abandoned_keys(locked: &LockedRecord) -> Result<Vec<String>, HubError> {
    let mut keys = Vec::new();
    for call in locked.record.calls.iter().filter(|call| call.phase == CallPhase::Asked) {
        if !locked.is_awaited(&call.question())? {
            keys.push(call.key.clone());
        }
    }
    Ok(keys)
}

/// Withdraws a question whose process was killed. If it was killed before it learned the token, the repeated request returns
/// it.
async fn withdraw_abandoned(hook: &mut Hook, locked: &mut LockedRecord, key: &str, body: String) {
    let Some(record) = locked.record.find_key(key) else { return };
    let (question, mut token) = (record.question(), record.reply_token.take());
    if token.is_none() {
        let asked = hook.post(locked, "confirmations", "", &question, body).await;
        token = asked.ok().and_then(|asked| member_text(&asked, "reply_token"));
    }
    let session = locked.record.hub_session.clone();
    if let Some((session, token)) = session.zip(token) {
        drop(hook.withdraw(&session, &token).await);
    }
}

impl HookRecord {
    pub(super) fn find_key(&mut self, key: &str) -> Option<&mut CallRecord> {
        self.calls.iter_mut().find(|call| call.key == key)
    }
}

/// Finds the record of the call of an event, or adds one, and notes the event.
///
/// A record belongs to the call only if the arguments are the same, whatever the id. An event with an id can be repeated until
/// the call is over: two hooks may report it. A repeated event without an id is another call, because models repeat calls:
/// it gets neither the yes to the earlier call nor its question. But a question whose process was killed (`is_abandoned`) is
/// found, so that it can be withdrawn.
pub(super) fn find_or_add(
    record: &mut HookRecord,
    call: &ToolCall,
    event: &str,
    is_abandoned: impl Fn(&CallRecord) -> bool,
) -> usize {
    let has_seen = |known: &CallRecord| known.events.split(' ').any(|name| name == event);
    let found = record.calls.iter().rposition(|known| {
        let is_same = known.digest == call.digest && (call.id.is_none() || known.id == call.id);
        is_same
            && match known.phase {
                CallPhase::Announced | CallPhase::Accepted => call.id.is_some() || !has_seen(known),
                CallPhase::Asked => call.id.is_some() || !has_seen(known) || is_abandoned(known),
                CallPhase::Refused => call.id.is_some(),
            }
    });
    let at = found.unwrap_or_else(|| {
        let number = record.call_count;
        let is_taken = |id: &String| record.calls.iter().any(|known| known.key == *id);
        let key = match &call.id {
            Some(id) if !is_taken(id) => id.clone(),
            Some(id) => format!("{id}#{number}"),
            None => format!("{}#{number}", call.digest),
        };
        record.add_call(CallRecord {
            key,
            id: call.id.clone(),
            digest: call.digest.clone(),
            ..CallRecord::default()
        })
    });
    if let Some(known) = record.calls.get_mut(at)
        && !known.events.split(' ').any(|name| name == event)
    {
        if !known.events.is_empty() {
            known.events.push(' ');
        }
        known.events.push_str(event);
    }
    at
}

/// Waits until the question is resolved. Withdraws it when the hook must answer.
async fn wait(hook: &mut Hook, session: &str, token: &str) -> Result<OwnedDoc, HubError> {
    let mut lost_at = None;
    loop {
        let left = hook.give_up_at().saturating_duration_since(Instant::now());
        if left.is_zero() {
            return hook.withdraw(session, token).await;
        }
        // The hub counts in whole seconds; the hook sleeps for a shorter rest.
        let wait = left.min(MAX_WAIT);
        let waited = tokio::select! {
            answer = hook.wait_for_answer(session, token, wait.max(Duration::from_secs(1))) => Some(answer),
            () = tokio::time::sleep(left) => None,
        };
        match waited {
            None => {}
            Some(Ok(answer)) => {
                lost_at = None;
                if member_text(&answer, "status").as_deref() != Some("pending") {
                    return Ok(answer);
                }
            }
            Some(Err(error @ HubError::Refused { .. })) => return Err(error),
            Some(Err(error)) => {
                let lost_at = *lost_at.get_or_insert_with(Instant::now);
                if lost_at.elapsed() >= RECONNECT_TIME.min(left) {
                    return Err(error);
                }
                tokio::time::sleep(RECONNECT_DELAY).await;
            }
        }
    }
}

fn read_outcome(answer: &OwnedDoc) -> Outcome {
    let text = |name: &str| member_text(answer, name).unwrap_or_default();
    match (text("status").as_str(), text("decision").as_str(), text("by").as_str()) {
        ("stopped", ..) | (_, _, "stopped") => Outcome::Stopped,
        ("resolved", "accept", "reply") => Outcome::Accepted,
        ("resolved", _, "reply") => Outcome::Refused("the user said no".to_owned()),
        ("resolved", _, "timeout") => Outcome::Refused("nobody answered in time".to_owned()),
        ("resolved", _, "closure") => Outcome::Refused("the listener left without an answer".to_owned()),
        ("resolved", _, "unreachable") => Outcome::Unreachable,
        ("resolved", _, "cancelled") => Outcome::Withdrawn,
        _ => Outcome::Refused("there is no valid answer".to_owned()),
    }
}

fn question_body(hook: &Hook, call: &ToolCall, description: &GateText, key: &str) -> String {
    let seconds = hook.question_seconds(QUESTION_MARGIN_SECONDS);
    let folder = hook.event().working_folder().map(|folder| speakable(&folder, 300, Language::English));
    write_object(|out| {
        let action = description.map(sentence);
        action.write(out, "action");
        call.assessment.reason.write(out, "consequence");
        action.write(out, "summary_normal");
        out.key("timeout_seconds").raw(&seconds.to_string());
        out.plain_member("default_decision", "reject");
        write_risk(out, call);
        out.key("tool").text(&aaep_tool_name(&call.tool));
        out.key("arguments").raw(&call.bound_arguments);
        out.key("tool_call_id").text(key);
        if let Some(folder) = folder {
            out.key("extra_context");
            out.object(|out| out.key("folder").text(&folder));
        }
    })
}

fn write_risk(out: &mut seal::json::JsonWriter, call: &ToolCall) {
    let is_irreversible = call.assessment.class == RiskClass::Irreversible;
    out.plain_member("risk_level", if is_irreversible { "high" } else { "medium" });
    out.key("irreversible").boolean(is_irreversible);
}

/// Writes the event that a call begins. `is_permitted` says that a person permitted it; only then does the event state its risk.
pub(super) fn invoked_event(
    call: &ToolCall,
    description: &GateText,
    key: &str,
    is_permitted: bool,
) -> String {
    write_event("tool.invoked", |out| {
        out.key("tool").text(&aaep_tool_name(&call.tool));
        out.key("tool_call_id").text(key);
        description.map(sentence).write(out, "summary_normal");
        if is_permitted {
            write_risk(out, call);
            out.key("arguments").raw(&call.bound_arguments);
        }
    })
}

/// Ends a text with a full stop if it has no other end.
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', '?', '…', ':', ';']) { text.to_owned() } else { format!("{text}.") }
}
