//! Transcripts and cards as files: read whole, with a limit, and told apart by line.

use std::io::ErrorKind;
use std::path::Path;

use asp::Card;
use asp::message::Cards;
use seal::json::{Kind, Tape};

pub(super) use crate::file::{Stop, name, read};
use crate::print::{in_words, printable};

/// The lines that have something on them, with their numbers; bytes that are not UTF-8 are left to be refused.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let lines = bytes.split(|byte| *byte == b'\n').zip(1..).map(|(line, number)| (number, line));
    lines.filter(|(_, line)| !line.iter().all(u8::is_ascii_whitespace))
}

/// What a reader may do about a transcript that is too long.
pub(super) const MORE: &str = "; --max-bytes takes more";

/// The text of a line. What is not UTF-8 is refused as it stands: mended, it could be taken for what was signed.
pub(super) fn text(line: &[u8]) -> Result<&str, String> {
    match std::str::from_utf8(line) {
        Err(why) => Err(format!("not UTF-8 at byte {}", why.valid_up_to() + 1)),
        Ok(text) if text.trim_start().starts_with('[') => {
            Err("a JSON array; a transcript has one message a line".to_owned())
        }
        Ok(text) => Ok(text),
    }
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), Stop> {
    std::fs::write(path, text).map_err(|error| {
        let why = match error.kind() {
            ErrorKind::NotFound => "there is no such folder".to_owned(),
            _ => in_words(&error),
        };
        Stop::failed(format!("cannot write {}: {why}", printable(&path.to_string_lossy())))
    })
}

/// Whether both are the same file, however they are spelled.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    let same = one.canonicalize().ok().zip(other.canonicalize().ok());
    same.map_or(one == other, |(one, other)| one == other)
}

/// No file of cards is longer.
const CARDS_LIMIT: u64 = 1024 * 1024;

/// Reads cards: a JSON array of them, or one a line. A card that does not verify is a fault of what is examined.
pub(super) fn cards(path: &Path) -> Result<Cards, Stop> {
    let bytes = read(path, CARDS_LIMIT, "")?;
    let fault = |why: &str| Stop::fault(format!("{}: error {}", name(path), printable(why)));
    let Ok(text) = std::str::from_utf8(&bytes) else { return Err(fault("not UTF-8")) };
    let mut tape = Tape::default();
    let texts: Vec<String> = match tape.read(text) {
        Ok(doc) if doc.root().kind() == Kind::Array => {
            doc.root().items().map(|card| card.source().to_owned()).collect()
        }
        Ok(doc) => vec![doc.root().source().to_owned()],
        Err(why) if text.trim_start().starts_with('[') => return Err(fault(&format!("not JSON: {why}"))),
        Err(_) => text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect(),
    };
    let mut cards: Vec<Card> = Vec::new();
    for (text, number) in texts.iter().zip(1..) {
        let card = Card::parse(text).map_err(|why| fault(&format!("card {number}: {why}")))?;
        if cards.iter().any(|known| known.agent_id() == card.agent_id()) {
            return Err(fault(&format!("card {number}: a second card of {}", card.agent_id())));
        }
        cards.push(card);
    }
    if cards.len() < 2 {
        return Err(fault("the cards of both agents are needed"));
    }
    Ok(Cards::new(cards))
}
