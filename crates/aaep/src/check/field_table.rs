//! Perfect hash tables from member names to fields, one for each event and message type.

use std::sync::LazyLock;

use crate::event::{ENVELOPE, EventType};
use crate::json::JsonValue;
use crate::message::MessageType;
use crate::record::{Field, FieldType};
use crate::rule;

/// The fields of one event or message type.
pub(super) struct FieldTable {
    fields: Vec<&'static Field>,
    /// Bit set of the required fields.
    pub(super) required: u64,
    slots: [u8; 128],
    seed: u32,
}

const EMPTY: u8 = u8::MAX;

impl FieldTable {
    fn new(fields: impl Iterator<Item = &'static Field>) -> Self {
        let fields: Vec<_> = fields.collect();
        let required = fields
            .iter()
            .enumerate()
            .filter(|(_, field)| field.missing_rule.is_some())
            .fold(0, |bits, (index, _)| bits | 1 << index);
        let (slots, seed) = (1_u32..)
            .step_by(2)
            .map(|seed| seed.wrapping_mul(0x9E37_79B1))
            .find_map(|seed| Some((assign_slots(&fields, seed)?, seed)))
            .unwrap_or(([EMPTY; 128], 0));
        Self { fields, required, slots, seed }
    }

    #[inline]
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.find_bytes(name.as_bytes())
    }

    /// Returns the index of the field that a key names.
    #[inline]
    pub(super) fn find_key(&self, key: JsonValue<'_>) -> Option<usize> {
        match key.plain_bytes() {
            Some(name) => self.find_bytes(name),
            None => self.find(&key.text()?),
        }
    }

    /// Like `find_key`, but tries the field at `next` first, because members usually follow the
    /// table's order.
    #[inline]
    pub(super) fn find_next(&self, key: JsonValue<'_>, next: usize) -> Option<usize> {
        match self.fields.get(next) {
            Some(field) if key.is_text(field.name) => Some(next),
            _ => self.find_key(key),
        }
    }

    #[inline]
    fn find_bytes(&self, name: &[u8]) -> Option<usize> {
        let index = usize::from(self.slots[slot_of(name, self.seed)]);
        let field = self.fields.get(index)?;
        (field.name.as_bytes() == name).then_some(index)
    }

    #[inline]
    pub(super) fn field(&self, index: usize) -> &'static Field {
        self.fields[index]
    }

    pub(super) fn fields(&self) -> &[&'static Field] {
        &self.fields
    }
}

fn assign_slots(fields: &[&'static Field], seed: u32) -> Option<[u8; 128]> {
    let mut slots = [EMPTY; 128];
    for (index, field) in fields.iter().enumerate() {
        let slot = &mut slots[slot_of(field.name.as_bytes(), seed)];
        if *slot != EMPTY {
            return None;
        }
        *slot = u8::try_from(index).ok()?;
    }
    Some(slots)
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "a hash may lose bits")]
fn slot_of(bytes: &[u8], seed: u32) -> usize {
    let [first, .., last] = bytes else { return 0 };
    let middle = bytes[bytes.len() / 2];
    let second = bytes[bytes.len() / 4];
    let mixed = u32::from_le_bytes([*first, middle, second, *last]) ^ (bytes.len() as u32) << 12;
    (mixed.wrapping_mul(seed) >> 25) as usize
}

/// The `type` field of a message. Its value was already checked to choose the table.
const MESSAGE_TYPE: Field = Field {
    name: "type",
    value_type: FieldType::ANY_TEXT,
    rule: rule::MESSAGE_TYPE,
    missing_rule: None,
    is_spoken: false,
};
const MANIFEST_CONTEXT: Field = Field {
    name: "@context",
    value_type: FieldType::Context,
    rule: rule::MANIFEST,
    missing_rule: Some(rule::MANIFEST),
    is_spoken: false,
};

static EVENT_TABLES: LazyLock<Vec<FieldTable>> = LazyLock::new(|| {
    EventType::CORE
        .iter()
        .map(|core_type| FieldTable::new(ENVELOPE.iter().chain(core_type.fields())))
        .collect()
});
static UNKNOWN_EVENT_TABLE: LazyLock<FieldTable> = LazyLock::new(|| FieldTable::new(ENVELOPE.iter()));
static MESSAGE_TABLES: LazyLock<Vec<FieldTable>> = LazyLock::new(|| {
    let common_fields = |kind: MessageType| match kind {
        MessageType::Manifest => [&MESSAGE_TYPE, &MANIFEST_CONTEXT].iter().copied().take(2),
        _ => [&MESSAGE_TYPE, &MANIFEST_CONTEXT].iter().copied().take(1),
    };
    MessageType::ALL.iter().map(|kind| FieldTable::new(common_fields(*kind).chain(kind.fields()))).collect()
});

/// Returns the table of a core event type, or the envelope's table for any other type.
pub(super) fn event_table(core_type: Option<&EventType>) -> &'static FieldTable {
    core_type
        .and_then(|core_type| EventType::CORE.iter().position(|each| each == core_type))
        .and_then(|index| EVENT_TABLES.get(index))
        .unwrap_or(&UNKNOWN_EVENT_TABLE)
}

pub(super) fn message_table(kind: MessageType) -> &'static FieldTable {
    let index = MessageType::ALL.iter().position(|each| *each == kind).unwrap_or(0);
    &MESSAGE_TABLES[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_every_type_is_found_by_its_name() {
        let events = EventType::CORE.iter().map(|core_type| event_table(Some(core_type)));
        let messages = MessageType::ALL.iter().map(|kind| message_table(*kind));
        for table in events.chain(messages).chain([event_table(None)]) {
            for (index, field) in table.fields().iter().enumerate() {
                assert_eq!(table.find(field.name), Some(index), "{}", field.name);
            }
            assert_eq!(table.find(""), None);
            assert_eq!(table.find("x"), None);
        }
    }
}
