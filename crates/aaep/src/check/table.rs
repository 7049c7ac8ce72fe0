//! Finding a member's field by its name: a perfect hash over the few names that a type has.

use std::sync::LazyLock;

use crate::event::{ENVELOPE, EventType};
use crate::json::Value;
use crate::message::MessageType;
use crate::record::{Field, Shape};
use crate::rule;

/// The fields of one type of event or message.
pub(super) struct Table {
    fields: Vec<&'static Field>,
    /// Bits of the fields that must be there.
    pub(super) required: u64,
    slots: [u8; 128],
    seed: u32,
}

const EMPTY: u8 = u8::MAX;

impl Table {
    fn new(fields: impl Iterator<Item = &'static Field>) -> Self {
        let fields: Vec<_> = fields.collect();
        let required = fields
            .iter()
            .enumerate()
            .filter(|(_, field)| field.missing.is_some())
            .fold(0, |bits, (at, _)| bits | 1 << at);
        let (slots, seed) = (1_u32..)
            .step_by(2)
            .map(|seed| seed.wrapping_mul(0x9E37_79B1))
            .find_map(|seed| Some((place(&fields, seed)?, seed)))
            .unwrap_or(([EMPTY; 128], 0));
        Self { fields, required, slots, seed }
    }

    #[inline]
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.find_bytes(name.as_bytes())
    }

    /// The place of the field that a key names.
    #[inline]
    pub(super) fn find_key(&self, key: Value<'_>) -> Option<usize> {
        match key.plain_bytes() {
            Some(name) => self.find_bytes(name),
            None => self.find(&key.text()?),
        }
    }

    /// The same, where the field at `next` is the likely one: members mostly stand in the order of the table.
    #[inline]
    pub(super) fn find_next(&self, key: Value<'_>, next: usize) -> Option<usize> {
        match self.fields.get(next) {
            Some(field) if key.is(field.name) => Some(next),
            _ => self.find_key(key),
        }
    }

    #[inline]
    fn find_bytes(&self, name: &[u8]) -> Option<usize> {
        let at = self.slots[slot(name, self.seed)];
        let field = self.fields.get(usize::from(at))?;
        (field.name.as_bytes() == name).then_some(usize::from(at))
    }

    #[inline]
    pub(super) fn field(&self, at: usize) -> &'static Field {
        self.fields[at]
    }

    pub(super) fn fields(&self) -> &[&'static Field] {
        &self.fields
    }
}

fn place(fields: &[&'static Field], seed: u32) -> Option<[u8; 128]> {
    let mut slots = [EMPTY; 128];
    for (at, field) in fields.iter().enumerate() {
        let slot = &mut slots[slot(field.name.as_bytes(), seed)];
        if *slot != EMPTY {
            return None;
        }
        *slot = u8::try_from(at).ok()?;
    }
    Some(slots)
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "a hash may lose bits")]
fn slot(bytes: &[u8], seed: u32) -> usize {
    let [first, .., last] = bytes else { return 0 };
    let middle = bytes[bytes.len() / 2];
    let second = bytes[bytes.len() / 4];
    let mixed = u32::from_le_bytes([*first, middle, second, *last]) ^ (bytes.len() as u32) << 12;
    (mixed.wrapping_mul(seed) >> 25) as usize
}

/// The field `type` of a message, whose value has been read when its table is chosen.
const MESSAGE_TYPE: Field =
    Field { name: "type", shape: Shape::ANY, rule: rule::MESSAGE_TYPE, missing: None, spoken: false };
const MANIFEST_CONTEXT: Field = Field {
    name: "@context",
    shape: Shape::Context,
    rule: rule::MANIFEST,
    missing: Some(rule::MANIFEST),
    spoken: false,
};

static EVENTS: LazyLock<Vec<Table>> = LazyLock::new(|| {
    EventType::CORE.iter().map(|core| Table::new(ENVELOPE.iter().chain(core.fields()))).collect()
});
static UNKNOWN_EVENT: LazyLock<Table> = LazyLock::new(|| Table::new(ENVELOPE.iter()));
static MESSAGES: LazyLock<Vec<Table>> = LazyLock::new(|| {
    let head = |kind: MessageType| match kind {
        MessageType::Manifest => [&MESSAGE_TYPE, &MANIFEST_CONTEXT].iter().copied().take(2),
        _ => [&MESSAGE_TYPE, &MANIFEST_CONTEXT].iter().copied().take(1),
    };
    MessageType::ALL.iter().map(|kind| Table::new(head(*kind).chain(kind.fields()))).collect()
});

/// The table of a core event; of any other, the envelope alone.
pub(super) fn of_event(core: Option<&EventType>) -> &'static Table {
    core.and_then(|core| EventType::CORE.iter().position(|each| each == core))
        .and_then(|at| EVENTS.get(at))
        .unwrap_or(&UNKNOWN_EVENT)
}

pub(super) fn of_message(kind: MessageType) -> &'static Table {
    let at = MessageType::ALL.iter().position(|each| *each == kind).unwrap_or(0);
    &MESSAGES[at]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_every_type_is_found_by_its_name() {
        let events = EventType::CORE.iter().map(|core| of_event(Some(core)));
        let messages = MessageType::ALL.iter().map(|kind| of_message(*kind));
        for table in events.chain(messages).chain([of_event(None)]) {
            for (at, field) in table.fields().iter().enumerate() {
                assert_eq!(table.find(field.name), Some(at), "{}", field.name);
            }
            assert_eq!(table.find(""), None);
            assert_eq!(table.find("x"), None);
        }
    }
}
