//! Where a listener of several shards resumes: one entry per shard.

use std::collections::BTreeMap;

use aaep::EventId;

use super::{MARK, ShardMap, shard_number};
use crate::delivery::position_from_id;

/// The position of a listener in each of its shards. Clients receive it as text, in place of an event id.
///
/// The text is `cur_` followed by the entries, separated by `-`. Each entry is the number of the shard, a letter and a
/// value: `e` and the part of an event id between `evt_` and the number of the shard, `a` and a position in the log, `i` and
/// any other event id, or `b` for a listener that does not know its position.
///
/// ```
/// use hub::ResumeCursor;
/// let cursor = ResumeCursor::parse("cur_0e01a2-1a17").unwrap();
/// assert_eq!((cursor.get(0).as_deref(), cursor.get(1).as_deref()), (Some("evt_01a2x0"), Some("at_17")));
/// assert_eq!(cursor.to_string(), "cur_0e01a2-1a17");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumeCursor(BTreeMap<u16, Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    /// The digits of an event id that this shard created.
    Event(Box<str>),
    /// A position in the shard's log.
    Position(u64),
    /// An event id without the number of this shard.
    OtherEvent(Box<str>),
    Unknown,
}

const PREFIX: &str = "cur_";

/// The id of an entry whose position is unknown. No event has it, so a listener that resumes from it gets a gap message.
pub(crate) const UNKNOWN_ID: &str = "behind";

/// Whether an id is a position in the log other than its start.
pub(crate) fn is_log_position(id: &str) -> bool {
    position_from_id(id).is_some_and(|position| position > 0)
}

impl ResumeCursor {
    /// Parses a cursor. Returns `None` for any other text, for example an event id.
    pub fn parse(text: &str) -> Option<Self> {
        let mut entries = BTreeMap::new();
        for entry in text.strip_prefix(PREFIX)?.split('-') {
            let digits = entry.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = entry.split_at_checked(digits)?;
            let shard = number.parse().ok().filter(|shard| *shard < ShardMap::MAX_COUNT)?;
            let (letter, value) = rest.split_at_checked(1)?;
            let entry = match letter {
                "e" if is_alphanumeric(value) => Entry::Event(value.into()),
                "a" => Entry::Position(value.parse().ok()?),
                "i" if is_alphanumeric(value) => Entry::OtherEvent(value.into()),
                "b" if value.is_empty() => Entry::Unknown,
                _ => return None,
            };
            if entries.insert(shard, entry).is_some() {
                return None;
            }
        }
        Some(Self(entries))
    }

    /// Sets the id after which a shard resumes: an event id or a log position. Any other id counts as unknown.
    pub fn set(&mut self, shard: u16, id: &str) {
        let entry = match (id.strip_prefix(EventId::PREFIX), position_from_id(id)) {
            (Some(value), _) if is_alphanumeric(value) => match value.rsplit_once(MARK) {
                Some((digits, _)) if shard_number(id) == Some(shard) && !digits.is_empty() => {
                    Entry::Event(digits.into())
                }
                _ => Entry::OtherEvent(value.into()),
            },
            (_, Some(position)) => Entry::Position(position),
            _ => Entry::Unknown,
        };
        self.0.insert(shard, entry);
    }

    /// Returns the id after which a shard resumes. `None` if the cursor has no entry for the shard.
    pub fn get(&self, shard: u16) -> Option<String> {
        Some(match self.0.get(&shard)? {
            Entry::Event(digits) => format!("{}{digits}{MARK}{shard}", EventId::PREFIX),
            Entry::Position(position) => crate::delivery::position_to_id(*position),
            Entry::OtherEvent(value) => format!("{}{value}", EventId::PREFIX),
            Entry::Unknown => UNKNOWN_ID.to_owned(),
        })
    }

    /// Takes over the entries of a later cursor that another subscription can resume from. A log position means nothing to a
    /// hub with another log, so the earlier entry stays.
    pub fn advance_to(&mut self, later: &Self) {
        for (shard, entry) in &later.0 {
            let is_position = matches!(entry, Entry::Position(position) if *position > 0);
            if !is_position {
                self.0.insert(*shard, entry.clone());
            } else {
                self.0.entry(*shard).or_insert(Entry::Unknown);
            }
        }
    }
}

fn is_alphanumeric(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

impl std::fmt::Display for ResumeCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(PREFIX)?;
        for (number, (shard, entry)) in self.0.iter().enumerate() {
            let separator = if number == 0 { "" } else { "-" };
            match entry {
                Entry::Event(digits) => write!(f, "{separator}{shard}e{digits}")?,
                Entry::Position(position) => write!(f, "{separator}{shard}a{position}")?,
                Entry::OtherEvent(value) => write!(f, "{separator}{shard}i{value}")?,
                Entry::Unknown => write!(f, "{separator}{shard}b")?,
            }
        }
        Ok(())
    }
}
