//! Output as a model makes it: text however cut goes in, and events with their positions come of it.

use aaep::SessionId;
use aaep::event::{EventType, State};
use aaep::json::Scribe;
use seal::Digest;

use super::publish::Events;
use super::told::OwnEvent;
use super::{Core, TurnContext, tongues};
use crate::Principal;
use crate::command::{Malformed, Reply};
use crate::compose::text as text_member;

/// A piece of an output.
pub(super) struct Piece<'p> {
    pub(super) id: Option<&'p str>,
    pub(super) text: &'p str,
    pub(super) language: Option<&'p str>,
    pub(super) content_type: Option<&'p str>,
    pub(super) complete: bool,
    pub(super) stays: bool,
}

/// No event carries more code points of an output.
const LONGEST: usize = 8192;

impl Core {
    /// `POST /agent/v1/sessions/{id}/output`
    pub(super) fn output(
        &mut self,
        who: &Principal,
        session: &SessionId,
        piece: &Piece<'_>,
        key: Option<&str>,
        context: &TurnContext,
    ) -> Reply {
        let complete = if piece.complete { "1" } else { "0" };
        let whole = [session.as_str(), piece.id.unwrap_or(""), complete, piece.text];
        // Keys from before there were languages and media types stay valid.
        let whole = whole.into_iter().chain(piece.language.into_iter().flat_map(|tag| ["\0", tag]));
        let whole = whole.chain(piece.content_type.into_iter().flat_map(|media_type| ["\0\0", media_type]));
        let keyed = key.map(|key| (key, Digest::of_all(whole.map(str::as_bytes))));
        if let Some(answer) = self.remembered(who, keyed.as_ref()) {
            return answer;
        }
        let Some(live) = self.own(who, session) else { return Reply::NotFound };
        live.seen = Some(context.now);
        let open = live.machine.open_outputs().find(|(id, _)| *id == piece.id);
        let mut position = open.map_or(0, |(_, next)| next);
        // While a question is open, leaving its state would tell that it was answered (decision 15).
        let asks = *live.state() == State::AwaitingInput;
        let writes = asks || *live.state() == State::WritingOutput;
        if piece.text.is_empty() && !piece.complete {
            return Malformed::NoText.into();
        }
        let mut events = Vec::new();
        if !writes {
            events.push(tongues::state(&mut self.room, None, &State::WritingOutput));
        }
        let pieces = cut(piece.text);
        let last = pieces.len() - 1;
        for (at, text) in pieces.into_iter().enumerate() {
            let complete = piece.complete && at == last;
            events.push(chunk(self.room.scribe(), piece, text, position, complete, &[]));
            position += text.chars().count() as u64;
        }
        if piece.complete && !asks && !piece.stays {
            events.push(tongues::state(&mut self.room, None, &State::Thinking));
        }
        match self.emit(session, Events::Own(events), context) {
            Ok(event_ids) => {
                let reply = Reply::EventsPublished { event_ids };
                self.remember(who, keyed.as_ref(), &reply, context);
                reply
            }
            Err(answer) => answer,
        }
    }
}

/// At least one piece, none too long.
fn cut(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((at, _)) = rest.char_indices().nth(LONGEST) {
        let (piece, after) = rest.split_at(at);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

/// The end of an output that its agent left open.
pub(super) fn closed(id: Option<&str>, position: u64) -> OwnEvent {
    let piece = Piece { id, text: "", language: None, content_type: None, complete: true, stays: true };
    chunk(Scribe::default(), &piece, "", position, true, &["en"])
}

fn chunk(
    scribe: Scribe,
    of: &Piece<'_>,
    text: &str,
    position: u64,
    complete: bool,
    languages: &[&str],
) -> OwnEvent {
    OwnEvent::new(scribe, &EventType::OutputStreaming, languages, |out| {
        for (name, value) in
            [("output_id", of.id), ("language", of.language), ("content_type", of.content_type)]
        {
            if let Some(value) = value {
                text_member(out, name, value);
            }
        }
        text_member(out, "chunk", text);
        out.plain_key("position");
        out.integer(i64::try_from(position).unwrap_or(i64::MAX));
        out.plain_key("complete");
        out.boolean(complete);
        out.plain("coalesce_hint", if complete { "completion" } else { "none" });
        out.plain("urgency", "normal");
    })
}
