//! Conversion of a checked event into the input of the session checks.

use std::borrow::Cow;

use super::event::envelope_index;
use super::extension::SAYSO_EXTENSION;
use super::field_table::FieldTable;
use super::members::MemberIndex;
use crate::event::{AgentState, EventType};
use crate::json::JsonValue;
use crate::session::{
    Clarification, Confirmation, DeadlineExtension, ReportedResolution, SessionEvent, SessionEventBody,
};
use seal::Timestamp;

/// Extracts the members that the session checks need. Returns `None` if the event does not name its
/// session.
pub(super) fn extract<'d>(
    core_type: Option<&EventType>,
    table: &FieldTable,
    members: &MemberIndex<'d>,
    time: Option<Timestamp>,
    agent_id: Option<Cow<'d, str>>,
) -> Option<SessionEvent<Cow<'d, str>>> {
    let text = |field| members.get(field).and_then(|value: JsonValue<'d>| value.text());
    let extensions = members.get(envelope_index::EXTENSIONS);
    let sayso_body = extensions.and_then(|extensions| extensions.member(SAYSO_EXTENSION.0));
    Some(SessionEvent {
        event_id: text(envelope_index::EVENT_ID),
        session_id: text(envelope_index::SESSION_ID)?,
        agent_id: agent_id.unwrap_or_default(),
        timestamp: time.or_else(|| Timestamp::parse_rfc3339(&text(envelope_index::TIMESTAMP)?).ok()),
        sequence_number: members.get(envelope_index::SEQUENCE_NUMBER).and_then(read_non_negative_integer),
        parent_session_id: extensions.and_then(read_parent_session),
        reported_resolution: sayso_body.and_then(read_resolution),
        body: core_type
            .and_then(|core_type| EventFields { table, members, sayso_body }.read_body(core_type))
            .unwrap_or(SessionEventBody::Other),
    })
}

fn read_non_negative_integer(value: JsonValue<'_>) -> Option<u64> {
    u64::try_from(value.as_number()?.as_i64()?).ok()
}

fn read_parent_session(extensions: JsonValue<'_>) -> Option<Cow<'_, str>> {
    extensions.members().find_map(|(_, body)| body.member("parent_session_id")?.text())
}

fn read_resolution(sayso_body: JsonValue<'_>) -> Option<ReportedResolution<Cow<'_, str>>> {
    Some(ReportedResolution {
        token: sayso_body.member("reply_token")?.text()?,
        decision: sayso_body.member("decision").and_then(|decision| decision.text()),
        resolved_by: sayso_body.member("by").and_then(|by| by.text()),
    })
}

struct EventFields<'c, 'd> {
    table: &'c FieldTable,
    members: &'c MemberIndex<'d>,
    sayso_body: Option<JsonValue<'d>>,
}

impl<'d> EventFields<'_, 'd> {
    fn value(&self, name: &str) -> Option<JsonValue<'d>> {
        self.members.get_by_name(self.table, name)
    }

    fn text(&self, name: &str) -> Option<Cow<'d, str>> {
        self.value(name)?.text()
    }

    fn state(&self, name: &str) -> Option<AgentState> {
        self.text(name).map(|state| AgentState::parse(&state))
    }

    fn sayso_text(&self, name: &str) -> Option<Cow<'d, str>> {
        self.sayso_body?.member(name)?.text()
    }

    /// Returns the event's body, or `None` if a required member is missing.
    fn read_body(&self, core_type: &EventType) -> Option<SessionEventBody<Cow<'d, str>>> {
        Some(match core_type {
            EventType::SessionStarted => SessionEventBody::Started,
            EventType::SessionCompleted => SessionEventBody::Completed,
            EventType::SessionErrored => SessionEventBody::Errored,
            EventType::SessionCancelled => SessionEventBody::Cancelled,
            EventType::StateChanged => SessionEventBody::StateChanged {
                from: self.state("from_state")?,
                to: self.state("to_state")?,
            },
            EventType::ProgressUpdated => SessionEventBody::ProgressUpdated {
                percent: self
                    .value("progress")
                    .and_then(|it| it.member("percent")?.as_number())
                    .map(|it| it.as_f64()),
                deadline_extension: self.read_deadline_extension(),
            },
            EventType::ToolInvoked => SessionEventBody::ToolInvoked {
                tool: self.text("tool")?,
                call_id: self.text("tool_call_id"),
                high_risk: self.text("risk_level").is_some_and(|risk| risk == "high"),
                irreversible: self.value("irreversible").and_then(|it| it.as_bool()).unwrap_or(false),
                digest: self.sayso_text("action_digest"),
            },
            EventType::ToolCompleted => SessionEventBody::ToolCompleted {
                tool: self.text("tool")?,
                call_id: self.text("tool_call_id"),
            },
            EventType::OutputStreaming => SessionEventBody::OutputStreaming {
                output_id: self.text("output_id"),
                position: self.value("position").and_then(read_non_negative_integer)?,
                code_points: self.value("chunk").and_then(|chunk| count_code_points(chunk))?,
                complete: self.value("complete")?.as_bool()?,
                coalesce_hint: self.text("coalesce_hint"),
            },
            EventType::AwaitingConfirmation => {
                SessionEventBody::Confirmation(Box::new(self.read_confirmation()?))
            }
            EventType::AwaitingClarification => {
                SessionEventBody::Clarification(Box::new(self.read_clarification()?))
            }
            EventType::HandoffRequested => SessionEventBody::Handoff,
            EventType::Other(_) => SessionEventBody::Other,
        })
    }

    fn read_deadline_extension(&self) -> Option<DeadlineExtension<Cow<'d, str>>> {
        let deadline = Timestamp::parse_rfc3339(&self.sayso_text("deadline")?).ok()?;
        Some(DeadlineExtension { token: self.sayso_text("extended")?, deadline })
    }

    fn read_confirmation(&self) -> Option<Confirmation<Cow<'d, str>>> {
        let reversibility = self.text("reversibility");
        let irreversible =
            match (self.value("irreversible").and_then(|it| it.as_bool()), reversibility.as_deref()) {
                (Some(true), _) | (_, Some("irreversible")) => Some(true),
                (Some(false), _) | (None, Some("reversible")) => Some(false),
                (None, _) => None,
            };
        let allowed = self.value("allowed_replies");
        let allows = |value: &str| {
            allowed.is_none_or(|list| list.items().any(|item| item.text().is_some_and(|text| text == value)))
        };
        Some(Confirmation {
            token: self.text("reply_token")?,
            action: self.text("action")?,
            timeout_seconds: self.value("timeout_seconds").and_then(read_non_negative_integer)?,
            accept_by_default: self.text("default_decision").is_some_and(|default| default == "accept"),
            irreversible,
            high_risk: self.text("risk_level").is_some_and(|risk| risk == "high"),
            may_accept: allows("accept"),
            may_reject: allows("reject"),
            tool: self.sayso_text("tool"),
            call_id: self.sayso_text("tool_call_id"),
            digest: self.sayso_text("action_digest"),
        })
    }

    fn read_clarification(&self) -> Option<Clarification<Cow<'d, str>>> {
        let kinds = self.value("accepted_response_kinds");
        let accepts_kind = |value: &str| {
            kinds.is_some_and(|list| list.items().any(|item| item.text().is_some_and(|text| text == value)))
        };
        let choices = self.value("choices").map(|choices| {
            choices.items().filter_map(|choice| choice.member("value")?.text()).collect::<Vec<_>>()
        });
        Some(Clarification {
            token: self.text("reply_token")?,
            question: self.text("question")?,
            timeout_seconds: self.value("timeout_seconds").and_then(read_non_negative_integer)?,
            // If the question lists no kinds, it accepts free text, and a choice if it has choices
            // (C-D6).
            accepts_free_text: kinds.is_none() || accepts_kind("freetext"),
            accepts_yes_no: accepts_kind("yes_no"),
            accepts_number: accepts_kind("numeric"),
            choices: choices.filter(|_| kinds.is_none() || accepts_kind("multiple_choice")),
        })
    }
}

/// Counts the code points of a string. For printable ASCII, this is the length in bytes.
fn count_code_points(chunk: JsonValue<'_>) -> Option<u64> {
    let count = if chunk.may_exceed_printable_ascii() {
        chunk.text()?.chars().count()
    } else {
        chunk.plain_text()?.len()
    };
    u64::try_from(count).ok()
}
