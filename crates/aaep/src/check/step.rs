//! From a checked event to the step that the session machine takes.

use std::borrow::Cow;

use super::event::place;
use super::extension::SAYSO;
use super::members::Places;
use super::table::Table;
use crate::event::{EventType, State};
use crate::json::Value;
use crate::session::{Body, Clarification, Confirmation, MoreTime, Resolution, Step};
use seal::Timestamp;

/// Takes what order depends on; nothing if the event does not name its session.
pub(super) fn take<'d>(
    core: Option<&EventType>,
    table: &Table,
    places: &Places<'d>,
    time: Option<Timestamp>,
    agent_id: Option<Cow<'d, str>>,
) -> Option<Step<Cow<'d, str>>> {
    let text = |at| places.get(at).and_then(|value: Value<'d>| value.text());
    let extensions = places.get(place::EXTENSIONS);
    let ours = extensions.and_then(|extensions| extensions.member(SAYSO.0));
    Some(Step {
        event_id: text(place::EVENT_ID),
        session_id: text(place::SESSION_ID)?,
        agent_id: agent_id.unwrap_or_default(),
        at: time.or_else(|| Timestamp::parse_rfc3339(&text(place::TIMESTAMP)?).ok()),
        sequence_number: places.get(place::SEQUENCE_NUMBER).and_then(whole),
        parent: extensions.and_then(parent),
        resolution: ours.and_then(resolution),
        body: core.and_then(|core| Fields { table, places, ours }.body(core)).unwrap_or(Body::Other),
    })
}

fn whole(value: Value<'_>) -> Option<u64> {
    u64::try_from(value.number()?.as_i64()?).ok()
}

fn parent(extensions: Value<'_>) -> Option<Cow<'_, str>> {
    extensions.members().find_map(|(_, body)| body.member("parent_session_id")?.text())
}

fn resolution(ours: Value<'_>) -> Option<Resolution<Cow<'_, str>>> {
    Some(Resolution {
        token: ours.member("reply_token")?.text()?,
        decision: ours.member("decision").and_then(|decision| decision.text()),
        by: ours.member("by").and_then(|by| by.text()),
    })
}

struct Fields<'c, 'd> {
    table: &'c Table,
    places: &'c Places<'d>,
    ours: Option<Value<'d>>,
}

impl<'d> Fields<'_, 'd> {
    fn value(&self, name: &str) -> Option<Value<'d>> {
        self.places.named(self.table, name)
    }

    fn text(&self, name: &str) -> Option<Cow<'d, str>> {
        self.value(name)?.text()
    }

    fn state(&self, name: &str) -> Option<State> {
        self.text(name).map(|state| State::of(&state))
    }

    fn our_text(&self, name: &str) -> Option<Cow<'d, str>> {
        self.ours?.member(name)?.text()
    }

    /// What happened; nothing if what is needed to say so is missing.
    fn body(&self, core: &EventType) -> Option<Body<Cow<'d, str>>> {
        Some(match core {
            EventType::SessionStarted => Body::Started,
            EventType::SessionCompleted => Body::Completed,
            EventType::SessionErrored => Body::Errored,
            EventType::SessionCancelled => Body::Cancelled,
            EventType::StateChanged => {
                Body::State { from: self.state("from_state")?, to: self.state("to_state")? }
            }
            EventType::ProgressUpdated => Body::Progress {
                percent: self
                    .value("progress")
                    .and_then(|it| it.member("percent")?.number())
                    .map(|it| it.as_f64()),
                more_time: self.more_time(),
            },
            EventType::ToolInvoked => Body::ToolInvoked {
                tool: self.text("tool")?,
                call: self.text("tool_call_id"),
                high_risk: self.text("risk_level").is_some_and(|risk| risk == "high"),
                irreversible: self.value("irreversible").and_then(|it| it.boolean()).unwrap_or(false),
                digest: self.our_text("action_digest"),
            },
            EventType::ToolCompleted => {
                Body::ToolCompleted { tool: self.text("tool")?, call: self.text("tool_call_id") }
            }
            EventType::OutputStreaming => Body::Output {
                output: self.text("output_id"),
                position: self.value("position").and_then(whole)?,
                length: self.value("chunk").and_then(|chunk| code_points(chunk))?,
                complete: self.value("complete")?.boolean()?,
                hint: self.text("coalesce_hint"),
            },
            EventType::AwaitingConfirmation => Body::Confirmation(Box::new(self.confirmation()?)),
            EventType::AwaitingClarification => Body::Clarification(Box::new(self.clarification()?)),
            EventType::HandoffRequested => Body::Handoff,
            EventType::Other(_) => Body::Other,
        })
    }

    fn more_time(&self) -> Option<MoreTime<Cow<'d, str>>> {
        let deadline = Timestamp::parse_rfc3339(&self.our_text("deadline")?).ok()?;
        Some(MoreTime { token: self.our_text("extended")?, deadline })
    }

    fn confirmation(&self) -> Option<Confirmation<Cow<'d, str>>> {
        let reversibility = self.text("reversibility");
        let irreversible =
            match (self.value("irreversible").and_then(|it| it.boolean()), reversibility.as_deref()) {
                (Some(true), _) | (_, Some("irreversible")) => Some(true),
                (Some(false), _) | (None, Some("reversible")) => Some(false),
                (None, _) => None,
            };
        let allowed = self.value("allowed_replies");
        let allows = |word: &str| {
            allowed.is_none_or(|list| list.items().any(|item| item.text().is_some_and(|text| text == word)))
        };
        Some(Confirmation {
            token: self.text("reply_token")?,
            action: self.text("action")?,
            timeout_seconds: self.value("timeout_seconds").and_then(whole)?,
            accept_by_default: self.text("default_decision").is_some_and(|default| default == "accept"),
            irreversible,
            may_accept: allows("accept"),
            may_reject: allows("reject"),
            tool: self.our_text("tool"),
            call: self.our_text("tool_call_id"),
            digest: self.our_text("action_digest"),
        })
    }

    fn clarification(&self) -> Option<Clarification<Cow<'d, str>>> {
        let kinds = self.value("accepted_response_kinds");
        let lists = |word: &str| {
            kinds.is_some_and(|list| list.items().any(|item| item.text().is_some_and(|text| text == word)))
        };
        let choices = self.value("choices").map(|choices| {
            choices.items().filter_map(|choice| choice.member("value")?.text()).collect::<Vec<_>>()
        });
        Some(Clarification {
            token: self.text("reply_token")?,
            question: self.text("question")?,
            timeout_seconds: self.value("timeout_seconds").and_then(whole)?,
            // Without kinds: free text, and a choice if there are choices (C-D6).
            free_text: kinds.is_none() || lists("freetext"),
            yes_no: lists("yes_no"),
            numeric: lists("numeric"),
            choices: choices.filter(|_| kinds.is_none() || lists("multiple_choice")),
        })
    }
}

/// How many code points a string has; its bytes, if it is plain ASCII.
fn code_points(chunk: Value<'_>) -> Option<u64> {
    let count = if chunk.maybe_unusual() { chunk.text()?.chars().count() } else { chunk.plain_text()?.len() };
    u64::try_from(count).ok()
}
