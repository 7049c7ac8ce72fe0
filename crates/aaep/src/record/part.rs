//! Values that a record can hold, and the members that it does not know.

use std::borrow::Cow;
use std::sync::Arc;

use crate::form::is_tool_name;
use crate::id::{EventId, OutputId, ReplyToken, SessionId, SubscriptionId, ToolCallId};
use crate::json::{Kind, Raw, Value, Writer};
use seal::Timestamp;

/// A value that can stand in a record: read if it can be held without loss, written as JSON.
pub(crate) trait Part: Sized {
    fn read(value: Value<'_>) -> Option<Self>;
    fn write(&self, writer: &mut Writer);

    fn write_member(&self, name: &str, writer: &mut Writer) {
        writer.key(name);
        self.write(writer);
    }
}

impl Part for String {
    fn read(value: Value<'_>) -> Option<Self> {
        (!value.has_lone_surrogate()).then(|| value.text()).flatten().map(Into::into)
    }
    fn write(&self, writer: &mut Writer) {
        writer.text(self);
    }
}

impl Part for Arc<str> {
    fn read(value: Value<'_>) -> Option<Self> {
        (!value.has_lone_surrogate()).then(|| value.text()).flatten().map(|text| Self::from(&*text))
    }
    fn write(&self, writer: &mut Writer) {
        writer.text(self);
    }
}

impl<T: Part> Part for Arc<T> {
    fn read(value: Value<'_>) -> Option<Self> {
        T::read(value).map(Self::new)
    }
    fn write(&self, writer: &mut Writer) {
        T::write(self, writer);
    }
}

impl Part for bool {
    fn read(value: Value<'_>) -> Option<Self> {
        value.boolean()
    }
    fn write(&self, writer: &mut Writer) {
        writer.boolean(*self);
    }
}

impl Part for u64 {
    fn read(value: Value<'_>) -> Option<Self> {
        let number = value.number()?;
        // Beyond 2^53 readers disagree on the value, so it is kept as it was written.
        if number.is_big() {
            return None;
        }
        u64::try_from(number.as_i64()?).ok()
    }
    fn write(&self, writer: &mut Writer) {
        match i64::try_from(*self) {
            Ok(value) => writer.integer(value),
            Err(_) => writer.raw(&self.to_string()),
        }
    }
}

impl Part for f64 {
    fn read(value: Value<'_>) -> Option<Self> {
        let number = value.number()?;
        (!number.is_big() && !number.is_huge()).then(|| number.as_f64())
    }
    fn write(&self, writer: &mut Writer) {
        writer.number(*self);
    }
}

impl Part for Raw {
    fn read(value: Value<'_>) -> Option<Self> {
        (value.kind() == Kind::Object).then(|| Raw::of(&value))
    }
    fn write(&self, writer: &mut Writer) {
        writer.raw(self.as_str());
    }
}

impl Part for Timestamp {
    fn read(value: Value<'_>) -> Option<Self> {
        Timestamp::parse_rfc3339(&value.text()?).ok()
    }
    fn write(&self, writer: &mut Writer) {
        writer.text(&self.to_string());
    }
}

impl<T: Part> Part for Vec<T> {
    fn read(value: Value<'_>) -> Option<Self> {
        (value.kind() == Kind::Array).then(|| value.items().map(T::read).collect()).flatten()
    }
    fn write(&self, writer: &mut Writer) {
        writer.open_array();
        for item in self {
            item.write(writer);
        }
        writer.close_array();
    }
}

macro_rules! id_parts {
    ($($name:ident)*) => {$(
        impl Part for $name {
            fn read(value: Value<'_>) -> Option<Self> {
                $name::parse(&value.text()?).ok()
            }
            fn write(&self, writer: &mut Writer) {
                writer.text(self.as_str());
            }
        }
    )*};
}
id_parts!(EventId SessionId SubscriptionId ReplyToken ToolCallId OutputId);

/// The name of a tool (§4.3.1): a letter or `_`, then letters, digits, `_`, `.` or `-`, at most 256 in all.
///
/// On receipt any name survives (C-A17); [`ToolName::parse`] is for those who emit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToolName(Box<str>);

impl ToolName {
    /// Takes a name that may be emitted.
    pub fn parse(text: &str) -> Option<Self> {
        is_tool_name(text).then(|| Self(text.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Part for ToolName {
    fn read(value: Value<'_>) -> Option<Self> {
        String::read(value).map(|text| Self(text.into()))
    }
    fn write(&self, writer: &mut Writer) {
        writer.text(&self.0);
    }
}

/// An object's members with their names' escapes undone.
pub(crate) fn members_of(object: Value<'_>) -> impl Iterator<Item = (Cow<'_, str>, Value<'_>)> {
    object.members().map(|(key, value)| (key.text().unwrap_or_default(), value))
}

/// One member that is kept as it was received.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    name: Box<str>,
    value: Raw,
}

impl Member {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its value as JSON.
    pub fn value(&self) -> &Raw {
        &self.value
    }
}

/// Members in their order: what a record holds beyond the fields that it knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Members(Vec<Member>);

impl Members {
    /// Everything that an object holds.
    pub(crate) fn of<'d>(members: impl Iterator<Item = (Cow<'d, str>, Value<'d>)>) -> Self {
        let mut kept = Self::default();
        for (name, value) in members {
            kept.keep(&name, value);
        }
        kept
    }

    /// Sets a member; of two with one name, the last stays.
    pub fn set(&mut self, name: &str, value: Raw) {
        match self.0.iter_mut().find(|member| &*member.name == name) {
            Some(member) => member.value = value,
            None => self.0.push(Member { name: name.into(), value }),
        }
    }

    /// The member of that name.
    pub fn get(&self, name: &str) -> Option<&Raw> {
        self.0.iter().find(|member| &*member.name == name).map(|member| &member.value)
    }

    /// Takes the member of that name out.
    pub fn take(&mut self, name: &str) -> Option<Raw> {
        let at = self.0.iter().position(|member| &*member.name == name)?;
        Some(self.0.remove(at).value)
    }

    /// All members in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.0.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn keep(&mut self, name: &str, value: Value<'_>) {
        self.0.push(Member { name: name.into(), value: Raw::of(&value) });
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        for member in &self.0 {
            writer.key(&member.name).raw(member.value.as_str());
        }
    }
}
