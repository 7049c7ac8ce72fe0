//! An answer of a model, put together from the pieces in which it is streamed.

use seal::json::{Kind, Tape, Value};

use super::error::{AnswerFault, Error};
use super::post::sentence;
use crate::error::Source;

/// What the model says and wants.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    pub(super) ended: Option<Ended>,
    /// The endpoint says that nothing follows.
    pub(super) done: bool,
}

/// A call of a tool as the model wrote it.
#[derive(Debug, Default)]
pub(super) struct Call {
    index: Option<i64>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It was done, or wants tools.
    Whole,
    /// It had no room for more.
    Length,
    /// The service let no more through.
    Filter,
}

impl Answer {
    /// Takes one event, and gives the text that it adds. `most` is how many calls of tools are taken.
    pub(super) fn take(&mut self, event: &str, key: Option<&str>, most: usize) -> Result<String, Error> {
        if event.trim() == "[DONE]" {
            self.done = true;
            return Ok(String::new());
        }
        let mut tape = Tape::default();
        let doc = tape.read(event).map_err(|error| AnswerFault::NotJson(Source::new(error)))?;
        let chunk = doc.root();
        if let Some(error) = chunk.member("error").filter(|error| error.kind() != Kind::Null) {
            return Err(Error::Refused { status: None, says: sentence(error.source(), key) });
        }
        if chunk.kind() != Kind::Object {
            return Err(AnswerFault::NotAChunk.into());
        }
        let mut new = String::new();
        // There is one choice, for one is asked for; what only counts tokens has none.
        let Some(choice) = list(chunk.member("choices"))?.next() else { return Ok(new) };
        if let Some(delta) = choice.member("delta") {
            for name in ["content", "refusal"] {
                new.push_str(&text(delta.member(name))?);
            }
            for piece in list(delta.member("tool_calls"))? {
                self.piece(piece, most)?;
            }
        }
        match &*text(choice.member("finish_reason"))? {
            "" => {}
            "length" => self.ended = Some(Ended::Length),
            "content_filter" => self.ended = Some(Ended::Filter),
            _ => self.ended = Some(Ended::Whole),
        }
        self.text.push_str(&new);
        Ok(new)
    }

    /// A piece of a call belongs to the one of its index; without an index, an id begins another.
    fn piece(&mut self, piece: Value<'_>, most: usize) -> Result<(), Error> {
        let index = piece.member("index").and_then(|index| index.number()).and_then(|index| index.as_i64());
        let id = text(piece.member("id"))?;
        let place = match index {
            Some(_) => self.calls.iter().position(|call| call.index == index),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().position(|call| call.id == id),
        };
        if place.is_none() {
            if self.calls.len() >= most {
                return Err(Error::TooMuch("calls of tools in one answer"));
            }
            self.calls.push(Call { index, ..Call::default() });
        }
        let place = place.unwrap_or(self.calls.len() - 1);
        let (Some(call), Some(function)) = (self.calls.get_mut(place), piece.member("function")) else {
            return Ok(());
        };
        if call.id.is_empty() {
            call.id = id;
        }
        let name = text(function.member("name"))?;
        // Some say the whole name with every piece.
        if call.name != name {
            call.name.push_str(&name);
        }
        call.arguments.push_str(&text(function.member("arguments"))?);
        Ok(())
    }

    /// Gives an id to each call that came without one.
    pub(super) fn name_calls(&mut self) {
        for (number, call) in self.calls.iter_mut().enumerate() {
            if call.id.is_empty() {
                call.id = format!("call_{}", number + 1);
            }
        }
    }
}

/// A text that may be left out, or be null.
fn text(value: Option<Value<'_>>) -> Result<String, AnswerFault> {
    match value {
        None => Ok(String::new()),
        Some(value) if value.kind() == Kind::Null => Ok(String::new()),
        Some(value) => value.text().map(Into::into).ok_or(AnswerFault::NotAChunk),
    }
}

/// A list that may be left out, or be null.
fn list(value: Option<Value<'_>>) -> Result<impl Iterator<Item = Value<'_>>, AnswerFault> {
    match value.map(|value| value.kind()) {
        None | Some(Kind::Null | Kind::Array) => Ok(value.into_iter().flat_map(|value| value.items())),
        Some(_) => Err(AnswerFault::NotAChunk),
    }
}
