//! How a part of a message is read and written: one table for each record, and one way for each kind of member.

use std::borrow::Cow;

use seal::Timestamp;
use seal::json::{Kind, Raw, Value, Writer};
use thiserror::Error;

use super::body::{Authority, InformType, Urgency};
use crate::Performative;
use crate::amount::{Amount, AmountError};
use crate::id::{AgentUri, CommitmentId, Currency, MessageId, ProposalId, QueryId, Reference, SessionId};

/// What a message lacks or has wrongly, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{} must be {wanted}", if pointer.is_empty() { "the message" } else { pointer })]
pub struct Malformed {
    /// The place as a JSON pointer.
    pub pointer: String,
    /// What should be there.
    pub wanted: Cow<'static, str>,
}

impl Malformed {
    pub(crate) fn new(wanted: impl Into<Cow<'static, str>>) -> Self {
        Self { pointer: String::new(), wanted: wanted.into() }
    }

    pub(crate) fn under(mut self, name: &str) -> Self {
        self.pointer = format!("/{}{}", name.replace('~', "~0").replace('/', "~1"), self.pointer);
        self
    }
}

pub(crate) trait Part: Sized {
    fn read(value: &Value<'_>) -> Result<Self, Malformed>;
    fn write(&self, writer: &mut Writer);

    /// What it is where the member is absent, if it may be.
    fn absent() -> Option<Self> {
        None
    }
}

impl<T: Part> Part for Option<T> {
    fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        T::read(value).map(Some)
    }

    fn write(&self, writer: &mut Writer) {
        if let Some(part) = self {
            part.write(writer);
        }
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

/// No list in a message is longer.
const MOST_ITEMS: usize = 256;

impl<T: Part> Part for Vec<T> {
    fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        if value.kind() != Kind::Array {
            return Err(Malformed::new("an array"));
        }
        let mut items = Vec::new();
        for (at, item) in value.items().enumerate() {
            if at == MOST_ITEMS {
                return Err(Malformed::new(format!("an array of at most {MOST_ITEMS} items")));
            }
            items.push(T::read(&item).map_err(|wrong| wrong.under(&at.to_string()))?);
        }
        Ok(items)
    }

    fn write(&self, writer: &mut Writer) {
        writer.open_array();
        for item in self {
            item.write(writer);
        }
        writer.close_array();
    }
}

impl Part for String {
    fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        value
            .text()
            .filter(|text| !text.trim().is_empty())
            .map(std::borrow::Cow::into_owned)
            .ok_or_else(|| Malformed::new("a string that is not empty"))
    }

    fn write(&self, writer: &mut Writer) {
        writer.text(self);
    }
}

impl Part for bool {
    fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        value.boolean().ok_or_else(|| Malformed::new("true or false"))
    }

    fn write(&self, writer: &mut Writer) {
        writer.boolean(*self);
    }
}

/// A whole number that is not negative.
impl Part for u64 {
    fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        value
            .number()
            .and_then(|number| number.as_i64())
            .and_then(|number| u64::try_from(number).ok())
            .ok_or_else(|| Malformed::new("a whole number, 0 or more"))
    }

    fn write(&self, writer: &mut Writer) {
        writer.integer(i64::try_from(*self).unwrap_or(i64::MAX));
    }
}

impl Part for Timestamp {
    fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        let wanted = || Malformed::new("a time in UTC, such as 2026-01-02T03:04:05.000Z");
        let text = value.text().ok_or_else(wanted)?;
        // The published schema wants UTC with a Z.
        let read = Self::parse_rfc3339(&text).ok().filter(|_| text.ends_with('Z'));
        read.ok_or_else(wanted)
    }

    fn write(&self, writer: &mut Writer) {
        writer.text(&self.to_string());
    }
}

/// Any JSON object, kept as it was written.
impl Part for Raw {
    fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        if value.kind() == Kind::Object { Ok(Self::of(value)) } else { Err(Malformed::new("an object")) }
    }

    fn write(&self, writer: &mut Writer) {
        writer.raw(self.as_str());
    }
}

impl Part for Amount {
    fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        let wanted = || Malformed::new(AmountError::WANTED);
        Self::parse(&value.text().ok_or_else(wanted)?).map_err(|_| wanted())
    }

    fn write(&self, writer: &mut Writer) {
        writer.text(self.as_str());
    }
}

macro_rules! texts {
    ($($name:ty)*) => {$(
        impl Part for $name {
            fn read(value: &Value<'_>) -> Result<Self, Malformed> {
                let text = value.text().ok_or_else(|| Malformed::new("a string"))?;
                Self::parse(&text).map_err(|wrong| Malformed::new(wrong.0))
            }

            fn write(&self, writer: &mut Writer) {
                writer.text(&self.to_string());
            }
        }
    )*};
}

macro_rules! word_parts {
    ($($name:ty)*) => {$(
        impl Part for $name {
            fn read(value: &Value<'_>) -> Result<Self, Malformed> {
                let known = value.text().and_then(|word| Self::parse(&word));
                known.ok_or_else(|| Malformed::new(format!("one of {}", Self::ALL.map(Self::word).join(", "))))
            }

            fn write(&self, writer: &mut Writer) {
                writer.text(self.word());
            }
        }
    )*};
}

word_parts! { Authority InformType Performative Urgency }

texts! { AgentUri CommitmentId Currency MessageId ProposalId QueryId Reference SessionId }

/// Members that ASP does not name, as they were written. They are signed with the rest and mean nothing here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Others(Vec<(Box<str>, Raw)>);

impl Others {
    /// Adds one; one that is there already is replaced.
    pub fn set(&mut self, name: &str, value: Raw) {
        match self.0.iter_mut().find(|(key, _)| &**key == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.into(), value)),
        }
    }

    /// The one of that name.
    pub fn get(&self, name: &str) -> Option<&Raw> {
        self.0.iter().find(|(key, _)| &**key == name).map(|(_, value)| value)
    }

    /// All, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Raw)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    pub(crate) fn write(&self, writer: &mut Writer, known: &[&str]) {
        for (key, value) in self.iter().filter(|(key, _)| !known.contains(key)) {
            writer.key(key).raw(value.as_str());
        }
    }
}

/// An object whose members are taken by name.
pub(crate) struct Object<'v, 'd>(&'v Value<'d>);

impl<'v, 'd> Object<'v, 'd> {
    pub(crate) fn of(value: &'v Value<'d>) -> Result<Self, Malformed> {
        if value.kind() == Kind::Object { Ok(Self(value)) } else { Err(Malformed::new("an object")) }
    }

    pub(crate) fn take<T: Part>(&self, name: &str) -> Result<T, Malformed> {
        match self.0.member(name) {
            Some(member) => T::read(&member).map_err(|wrong| wrong.under(name)),
            None => T::absent().ok_or_else(|| Malformed::new("there").under(name)),
        }
    }

    pub(crate) fn others(&self, known: &[&str]) -> Others {
        let unknown = self.0.members().filter_map(|(key, value)| {
            let key = key.text()?;
            (!known.contains(&key.as_ref())).then(|| (key.into(), Raw::of(&value)))
        });
        Others(unknown.collect())
    }
}

/// Declares a record: its Rust type, how it is read and how it is written, from one table. The members behind the
/// semicolon are optional.
macro_rules! part {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$about:meta])* $key:literal $field:ident: $type:ty),*;
        $($(#[$more:meta])* $option:literal $optional:ident: $kind:ty,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            $($(#[$about])* pub $field: $type,)*
            $($(#[$more])* pub $optional: Option<$kind>,)*
            /// Members that ASP does not name.
            pub other: $crate::message::Others,
        }

        impl $name {
            /// Makes one of what is required; the rest is empty.
            #[allow(clippy::new_without_default, reason = "a record may require nothing")]
            pub fn new($($field: impl Into<$type>),*) -> Self {
                Self { $($field: $field.into(),)* $($optional: None,)* other: $crate::message::Others::default() }
            }
        }

        impl $crate::message::Part for $name {
            fn read(value: &seal::json::Value<'_>) -> Result<Self, $crate::message::Malformed> {
                let object = $crate::message::Object::of(value)?;
                Ok(Self {
                    $($field: object.take($key)?,)*
                    $($optional: object.take($option)?,)*
                    other: object.others(&[$($key,)* $($option),*]),
                })
            }

            fn write(&self, writer: &mut seal::json::Writer) {
                writer.open_object();
                $($crate::message::Part::write(&self.$field, writer.key($key));)*
                $(if let Some(value) = &self.$optional {
                    $crate::message::Part::write(value, writer.key($option));
                })*
                self.other.write(writer, &[$($key,)* $($option),*]);
                writer.close_object();
            }
        }
    )*};
}

pub(crate) use part;
