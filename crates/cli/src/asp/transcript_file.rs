//! Reads transcripts and agent cards from files, with size limits, and writes files.

use std::io::ErrorKind;
use std::path::Path;

use asp::AgentCard;
use asp::message::PinnedCards;
use seal::json::{JsonKind, Tape};

pub(super) use crate::file::{CommandError, display_name, read};
use crate::output::{describe_io_error, printable};

/// Returns the lines that are not blank, with their numbers. [`line_text`] rejects invalid UTF-8.
pub(super) fn numbered_lines(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let lines = bytes.split(|byte| *byte == b'\n').zip(1..).map(|(line, number)| (number, line));
    lines.filter(|(_, line)| !line.iter().all(u8::is_ascii_whitespace))
}

/// Appended to the error about a transcript that is too large.
pub(super) const MAX_BYTES_HINT: &str = "; --max-bytes raises the limit";

/// Returns the text of a line. Invalid UTF-8 is rejected, because a repaired text could be mistaken for the signed text.
pub(super) fn line_text(line: &[u8]) -> Result<&str, String> {
    match std::str::from_utf8(line) {
        Err(reason) => Err(format!("not UTF-8 at byte {}", reason.valid_up_to() + 1)),
        Ok(text) if text.trim_start().starts_with('[') => {
            Err("this is a JSON array, but a transcript has one message per line".to_owned())
        }
        Ok(text) => Ok(text),
    }
}

pub(super) fn write_file(path: &Path, text: &str) -> Result<(), CommandError> {
    std::fs::write(path, text).map_err(|error| {
        let reason = match error.kind() {
            ErrorKind::NotFound => "the folder does not exist".to_owned(),
            _ => describe_io_error(&error),
        };
        CommandError::cannot_run(format!("cannot write {}: {reason}", printable(&path.to_string_lossy())))
    })
}

/// Returns whether both paths name the same file.
pub(super) fn is_same_file(first: &Path, second: &Path) -> bool {
    let canonical = first.canonicalize().ok().zip(second.canonicalize().ok());
    canonical.map_or(first == second, |(first, second)| first == second)
}

/// Maximum size of a file with agent cards.
const MAX_CARDS_BYTES: u64 = 1024 * 1024;

/// Reads cards from a JSON array, or one card per line. For an invalid card, the exit code is that of a failed check.
pub(super) fn read_cards(path: &Path) -> Result<PinnedCards, CommandError> {
    let bytes = read(path, MAX_CARDS_BYTES, "")?;
    let fault =
        |reason: &str| CommandError::fault(format!("{}: error: {}", display_name(path), printable(reason)));
    let Ok(text) = std::str::from_utf8(&bytes) else { return Err(fault("not UTF-8")) };
    let mut tape = Tape::default();
    let texts: Vec<String> = match tape.read(text) {
        Ok(doc) if doc.root().kind() == JsonKind::Array => {
            doc.root().items().map(|card| card.source().to_owned()).collect()
        }
        Ok(doc) => vec![doc.root().source().to_owned()],
        Err(reason) if text.trim_start().starts_with('[') => {
            return Err(fault(&format!("not JSON: {reason}")));
        }
        Err(_) => text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect(),
    };
    let mut cards: Vec<AgentCard> = Vec::new();
    for (text, number) in texts.iter().zip(1..) {
        let card = AgentCard::parse(text).map_err(|reason| fault(&format!("card {number}: {reason}")))?;
        if cards.iter().any(|known| known.agent_id() == card.agent_id()) {
            return Err(fault(&format!("card {number}: duplicate card for {}", card.agent_id())));
        }
        cards.push(card);
    }
    if cards.len() < 2 {
        return Err(fault("the cards of both agents are required"));
    }
    Ok(PinnedCards::new(cards))
}
