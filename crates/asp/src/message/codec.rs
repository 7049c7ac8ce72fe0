//! JSON codecs for the parts of a message. `json_record` declares the record types; each type of member has its own
//! codec.

use std::borrow::Cow;

use seal::Timestamp;
use seal::json::{JsonKind, JsonValue, JsonWriter, RawJson};
use thiserror::Error;

use super::body::{Authority, InformType, Urgency};
use crate::Performative;
use crate::amount::{Amount, AmountError};
use crate::id::{
    AgentUri, CommitmentId, Currency, DisputeId, MessageId, ProposalId, QueryId, Reference, SessionId,
};

/// A missing or invalid part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{} must be {expected}", if pointer.is_empty() { "the message" } else { pointer })]
pub struct MalformedMessage {
    /// The location in the message, as a JSON pointer.
    pub pointer: String,
    /// What was expected at that location.
    pub expected: Cow<'static, str>,
}

impl MalformedMessage {
    pub(crate) fn expected(expected: impl Into<Cow<'static, str>>) -> Self {
        Self { pointer: String::new(), expected: expected.into() }
    }

    pub(crate) fn within(mut self, name: &str) -> Self {
        self.pointer = format!("/{}{}", name.replace('~', "~0").replace('/', "~1"), self.pointer);
        self
    }
}

pub(crate) trait JsonCodec: Sized {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage>;
    fn write(&self, writer: &mut JsonWriter);

    /// Returns the value for an absent member; `None` if the member is required.
    fn default_if_absent() -> Option<Self> {
        None
    }
}

impl<T: JsonCodec> JsonCodec for Option<T> {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        T::read(value).map(Some)
    }

    fn write(&self, writer: &mut JsonWriter) {
        if let Some(value) = self {
            value.write(writer);
        }
    }

    fn default_if_absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: JsonCodec> JsonCodec for Box<T> {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        T::read(value).map(Self::new)
    }

    fn write(&self, writer: &mut JsonWriter) {
        T::write(self, writer);
    }
}

/// Maximum number of items in an array.
const MAX_ARRAY_ITEMS: usize = 256;

impl<T: JsonCodec> JsonCodec for Vec<T> {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        if value.kind() != JsonKind::Array {
            return Err(MalformedMessage::expected("an array"));
        }
        let mut items = Vec::new();
        for (index, item) in value.items().enumerate() {
            if index == MAX_ARRAY_ITEMS {
                return Err(MalformedMessage::expected(format!(
                    "an array of at most {MAX_ARRAY_ITEMS} items"
                )));
            }
            items.push(T::read(&item).map_err(|error| error.within(&index.to_string()))?);
        }
        Ok(items)
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.open_array();
        for item in self {
            item.write(writer);
        }
        writer.close_array();
    }
}

impl JsonCodec for String {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        value
            .text()
            .filter(|text| !text.trim().is_empty())
            .map(std::borrow::Cow::into_owned)
            .ok_or_else(|| MalformedMessage::expected("a non-empty string"))
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.text(self);
    }
}

impl JsonCodec for bool {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        value.as_bool().ok_or_else(|| MalformedMessage::expected("true or false"))
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.boolean(*self);
    }
}

/// A whole number that is not negative.
impl JsonCodec for u64 {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        value
            .as_number()
            .and_then(|number| number.as_i64())
            .and_then(|number| u64::try_from(number).ok())
            .ok_or_else(|| MalformedMessage::expected("a whole number, 0 or more"))
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.integer(i64::try_from(*self).unwrap_or(i64::MAX));
    }
}

impl JsonCodec for Timestamp {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let malformed = || MalformedMessage::expected("a time in UTC, such as 2026-01-02T03:04:05.000Z");
        let text = value.text().ok_or_else(malformed)?;
        // The published schema requires UTC with a Z.
        let timestamp = Self::parse_rfc3339(&text).ok().filter(|_| text.ends_with('Z'));
        timestamp.ok_or_else(malformed)
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.text(&self.to_string());
    }
}

/// Any JSON object, unchanged.
impl JsonCodec for RawJson {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        if value.kind() == JsonKind::Object {
            Ok(Self::from_value(value))
        } else {
            Err(MalformedMessage::expected("an object"))
        }
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.raw(self.as_str());
    }
}

impl JsonCodec for Amount {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let malformed = || MalformedMessage::expected(AmountError::EXPECTED);
        Self::parse(&value.text().ok_or_else(malformed)?).map_err(|_| malformed())
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.text(self.as_str());
    }
}

macro_rules! text_codecs {
    ($($name:ty)*) => {$(
        impl JsonCodec for $name {
            fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
                let text = value.text().ok_or_else(|| MalformedMessage::expected("a string"))?;
                Self::parse(&text).map_err(|error| MalformedMessage::expected(error.0))
            }

            fn write(&self, writer: &mut JsonWriter) {
                writer.text(&self.to_string());
            }
        }
    )*};
}

macro_rules! string_enum_codecs {
    ($($name:ty)*) => {$(
        impl JsonCodec for $name {
            fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
                let known = value.text().and_then(|text| Self::parse(&text));
                known.ok_or_else(|| MalformedMessage::expected(format!("one of {}", Self::ALL.map(Self::as_str).join(", "))))
            }

            fn write(&self, writer: &mut JsonWriter) {
                writer.text(self.as_str());
            }
        }
    )*};
}

string_enum_codecs! { Authority InformType Performative Urgency }

text_codecs! { AgentUri CommitmentId Currency DisputeId MessageId ProposalId QueryId Reference SessionId }

/// Members that ASP does not define, unchanged. They are signed with the rest of the message and have no effect here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExtraMembers(Vec<(Box<str>, RawJson)>);

impl ExtraMembers {
    /// Adds a member, or replaces one with the same name.
    pub fn set(&mut self, name: &str, value: RawJson) {
        match self.0.iter_mut().find(|(key, _)| &**key == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.into(), value)),
        }
    }

    /// Returns the member with this name.
    pub fn get(&self, name: &str) -> Option<&RawJson> {
        self.0.iter().find(|(key, _)| &**key == name).map(|(_, value)| value)
    }

    /// Returns all members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    pub(crate) fn write(&self, writer: &mut JsonWriter, known: &[&str]) {
        for (key, value) in self.iter().filter(|(key, _)| !known.contains(key)) {
            writer.key(key).raw(value.as_str());
        }
    }
}

/// Reads the members of an object by name.
pub(crate) struct ObjectReader<'v, 'd>(&'v JsonValue<'d>);

impl<'v, 'd> ObjectReader<'v, 'd> {
    pub(crate) fn of(value: &'v JsonValue<'d>) -> Result<Self, MalformedMessage> {
        if value.kind() == JsonKind::Object {
            Ok(Self(value))
        } else {
            Err(MalformedMessage::expected("an object"))
        }
    }

    pub(crate) fn read_member<T: JsonCodec>(&self, name: &str) -> Result<T, MalformedMessage> {
        match self.0.member(name) {
            Some(member) => T::read(&member).map_err(|error| error.within(name)),
            None => T::default_if_absent().ok_or_else(|| MalformedMessage::expected("present").within(name)),
        }
    }

    pub(crate) fn extra_members(&self, known: &[&str]) -> ExtraMembers {
        let unknown = self.0.members().filter_map(|(key, value)| {
            let key = key.text()?;
            (!known.contains(&key.as_ref())).then(|| (key.into(), RawJson::from_value(&value)))
        });
        ExtraMembers(unknown.collect())
    }
}

/// Declares record types and their JSON codecs from one table. The members after the semicolon are optional.
macro_rules! json_record {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$field_doc:meta])* $key:literal $field:ident: $type:ty),*;
        $($(#[$optional_doc:meta])* $optional_key:literal $optional:ident: $optional_type:ty,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
            $($(#[$optional_doc])* pub $optional: Option<$optional_type>,)*
            /// Members that ASP does not define.
            pub other: $crate::message::ExtraMembers,
        }

        impl $name {
            /// Creates a value from the required members. The optional members are absent.
            #[allow(clippy::new_without_default, reason = "a record may have no required members")]
            pub fn new($($field: impl Into<$type>),*) -> Self {
                Self { $($field: $field.into(),)* $($optional: None,)* other: $crate::message::ExtraMembers::default() }
            }
        }

        impl $crate::message::JsonCodec for $name {
            fn read(value: &seal::json::JsonValue<'_>) -> Result<Self, $crate::message::MalformedMessage> {
                let object = $crate::message::ObjectReader::of(value)?;
                Ok(Self {
                    $($field: object.read_member($key)?,)*
                    $($optional: object.read_member($optional_key)?,)*
                    other: object.extra_members(&[$($key,)* $($optional_key),*]),
                })
            }

            fn write(&self, writer: &mut seal::json::JsonWriter) {
                writer.open_object();
                $($crate::message::JsonCodec::write(&self.$field, writer.key($key));)*
                $(if let Some(value) = &self.$optional {
                    $crate::message::JsonCodec::write(value, writer.key($optional_key));
                })*
                self.other.write(writer, &[$($key,)* $($optional_key),*]);
                writer.close_object();
            }
        }
    )*};
}

pub(crate) use json_record;
