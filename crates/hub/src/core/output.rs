//! Streamed output: splits text of any length into events with positions.

use aaep::SessionId;
use aaep::event::{AgentState, EventType};
use aaep::json::TapeWriter;
use aaep::session::OpenOutput;
use seal::Digest;

use super::notifications::HubEvent;
use super::publish::EventBatch;
use super::{Core, TurnContext, hub_messages};
use crate::Principal;
use crate::command::{HubReply, MalformedRequest};
use crate::compose::write_text;

/// A request to add text to an output, as an agent sent it.
pub(super) struct OutputRequest<'p> {
    pub(super) id: Option<&'p str>,
    pub(super) producer: Option<&'p str>,
    pub(super) text: &'p str,
    pub(super) language: Option<&'p str>,
    pub(super) content_type: Option<&'p str>,
    pub(super) coalesce_hint: Option<&'p str>,
    pub(super) complete: bool,
    /// Whether the agent itself reports its state after the output. If not, the hub sets it to `thinking`.
    pub(super) agent_reports_next_state: bool,
}

impl OutputRequest<'_> {
    /// Returns a digest of the request, to recognize a repeated one. The length of each part precedes it, because
    /// otherwise different parts could give the same bytes.
    fn digest(&self, session: &SessionId) -> Digest {
        let Self {
            id,
            producer,
            text,
            language,
            content_type,
            coalesce_hint,
            complete,
            agent_reports_next_state,
        } = self;
        let mut flags = format!(
            "{complete} {agent_reports_next_state} {} {}",
            language.is_some(),
            content_type.is_some()
        );
        if let Some(hint) = coalesce_hint {
            flags.push(' ');
            flags.push_str(hint);
        }
        let [id, language, content_type] = [id, language, content_type].map(|part| part.unwrap_or_default());
        let mut parts = vec![session.as_str(), &flags, id, text, language, content_type];
        parts.extend(producer);
        let lengths: Vec<_> = parts.iter().map(|part| format!("{}:", part.len())).collect();
        let with_lengths =
            lengths.iter().zip(parts).flat_map(|(length, part)| [length.as_bytes(), part.as_bytes()]);
        Digest::of_parts(with_lengths)
    }
}

/// Maximum number of code points in one chunk, which is one output event.
const MAX_CHUNK_CHARS: usize = 8192;

impl Core {
    /// Handles `POST /agent/v1/sessions/{id}/output`.
    pub(super) fn stream_output(
        &mut self,
        principal: &Principal,
        session: &SessionId,
        request: &OutputRequest<'_>,
        key: Option<&str>,
        context: &TurnContext,
    ) -> HubReply {
        let keyed_request = key.map(|key| (key, request.digest(session)));
        let account = match self.begin_request(principal, session, keyed_request.as_ref(), context) {
            Ok(account) => account,
            Err(reply) => return reply,
        };
        let Some(role) = self.session_role(principal, session) else {
            return self.missing_session(principal, session);
        };
        let producer = match self.resolve_producer_id(session, &role, request.producer) {
            Ok(producer) => producer,
            Err(refusal) => return refusal,
        };
        let Some(live) = self.sessions.get_mut(session) else { return HubReply::NotFound };
        live.last_seen = Some(context.now);
        // Each producer has its own output without an id.
        let is_same_output = |open: &OpenOutput<'_>| {
            open.id == request.id && (request.id.is_some() || *open.agent_id == *producer)
        };
        let open_output = live.machine.open_outputs().find(is_same_output);
        let mut position = open_output.map_or(0, |open| open.next_position);
        // While a question is open, leaving `awaiting_input` would mean that the question was answered (decision 15). While a
        // tool runs, the agent must not leave `calling_tool` (§4.3.2).
        let keeps_state =
            *live.state_of(&producer) == AgentState::AwaitingInput || live.is_tool_running(&producer);
        let needs_state_change = !keeps_state && *live.state_of(&producer) != AgentState::WritingOutput;
        if request.text.is_empty() && !request.complete {
            return MalformedRequest::NoText.into();
        }
        let mut events = Vec::new();
        if needs_state_change {
            events.push(hub_messages::state_changed_event(
                &mut self.scratch,
                None,
                &AgentState::WritingOutput,
            ));
        }
        let texts = split_into_chunks(request.text);
        let last = texts.len() - 1;
        for (index, text) in texts.into_iter().enumerate() {
            let complete = request.complete && index == last;
            // The hint is about the end of the agent's text.
            let hint = request.coalesce_hint.filter(|_| index == last && !complete);
            let chunk = OutputChunk { text, position, complete, hint };
            events.push(chunk_event(self.scratch.take_writer(), request, &chunk, &[]));
            position += text.chars().count() as u64;
        }
        if request.complete && !keeps_state && !request.agent_reports_next_state {
            events.push(hub_messages::state_changed_event(&mut self.scratch, None, &AgentState::Thinking));
        }
        for event in &mut events {
            event.producer = Some(producer.clone());
        }
        match self.emit(session, EventBatch::ForAgent(events, &role), context) {
            Ok(emitted) => {
                let reply = emitted.into_reply();
                self.finish_request(principal, &account, keyed_request.as_ref(), &reply, context);
                reply
            }
            Err(reply) => reply,
        }
    }
}

/// Splits text into one or more chunks of at most [`MAX_CHUNK_CHARS`] code points.
fn split_into_chunks(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((at, _)) = rest.char_indices().nth(MAX_CHUNK_CHARS) {
        let (part, after) = rest.split_at(at);
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

/// Creates the final chunk of an output that its agent left open.
pub(super) fn closing_chunk(id: Option<&str>, position: u64) -> HubEvent {
    let request = OutputRequest {
        id,
        producer: None,
        text: "",
        language: None,
        content_type: None,
        coalesce_hint: None,
        complete: true,
        agent_reports_next_state: true,
    };
    let chunk = OutputChunk { text: "", position, complete: true, hint: None };
    chunk_event(TapeWriter::default(), &request, &chunk, &["en"])
}

/// The part of a request's text that fits into one event.
struct OutputChunk<'p> {
    text: &'p str,
    position: u64,
    complete: bool,
    hint: Option<&'p str>,
}

fn chunk_event(
    writer: TapeWriter,
    request: &OutputRequest<'_>,
    chunk: &OutputChunk<'_>,
    languages: &[&str],
) -> HubEvent {
    let OutputChunk { text, position, complete, hint } = *chunk;
    HubEvent::new(writer, &EventType::OutputStreaming, languages, |out| {
        for (name, value) in [
            ("output_id", request.id),
            ("language", request.language),
            ("content_type", request.content_type),
        ] {
            if let Some(value) = value {
                write_text(out, name, value);
            }
        }
        write_text(out, "chunk", text);
        out.plain_key("position");
        out.integer(i64::try_from(position).unwrap_or(i64::MAX));
        out.plain_key("complete");
        out.boolean(complete);
        match hint {
            Some(hint) => write_text(out, "coalesce_hint", hint),
            None => out.plain_member("coalesce_hint", if complete { "completion" } else { "none" }),
        }
        out.plain_member("urgency", "normal");
    })
}
