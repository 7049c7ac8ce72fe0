//! Values of record fields, and unknown members.

use std::borrow::Cow;
use std::sync::Arc;

use crate::grammar::is_tool_name;
use crate::id::{EventId, OutputId, ReplyToken, SessionId, SubscriptionId, ToolCallId};
use crate::json::{JsonKind, JsonValue, JsonWriter, RawJson};
use seal::Timestamp;

/// A value of a record field. `read` returns `None` if the value has another type, or if
/// information would be lost.
pub(crate) trait FieldValue: Sized {
    fn read(value: JsonValue<'_>) -> Option<Self>;
    fn write(&self, writer: &mut JsonWriter);

    fn write_member(&self, name: &str, writer: &mut JsonWriter) {
        writer.key(name);
        self.write(writer);
    }
}

impl FieldValue for String {
    fn read(value: JsonValue<'_>) -> Option<Self> {
        (!value.has_lone_surrogate()).then(|| value.text()).flatten().map(Into::into)
    }
    fn write(&self, writer: &mut JsonWriter) {
        writer.text(self);
    }
}

impl FieldValue for Arc<str> {
    fn read(value: JsonValue<'_>) -> Option<Self> {
        (!value.has_lone_surrogate()).then(|| value.text()).flatten().map(|text| Self::from(&*text))
    }
    fn write(&self, writer: &mut JsonWriter) {
        writer.text(self);
    }
}

impl<T: FieldValue> FieldValue for Arc<T> {
    fn read(value: JsonValue<'_>) -> Option<Self> {
        T::read(value).map(Self::new)
    }
    fn write(&self, writer: &mut JsonWriter) {
        T::write(self, writer);
    }
}

impl FieldValue for bool {
    fn read(value: JsonValue<'_>) -> Option<Self> {
        value.as_bool()
    }
    fn write(&self, writer: &mut JsonWriter) {
        writer.boolean(*self);
    }
}

impl FieldValue for u64 {
    fn read(value: JsonValue<'_>) -> Option<Self> {
        let number = value.as_number()?;
        // Parsers disagree about integers beyond 2^53, so such numbers are kept as raw members.
        if number.is_unsafe_integer() {
            return None;
        }
        u64::try_from(number.as_i64()?).ok()
    }
    fn write(&self, writer: &mut JsonWriter) {
        match i64::try_from(*self) {
            Ok(value) => writer.integer(value),
            Err(_) => writer.raw(&self.to_string()),
        }
    }
}

impl FieldValue for f64 {
    fn read(value: JsonValue<'_>) -> Option<Self> {
        let number = value.as_number()?;
        (!number.is_unsafe_integer() && !number.is_out_of_range()).then(|| number.as_f64())
    }
    fn write(&self, writer: &mut JsonWriter) {
        writer.number(*self);
    }
}

impl FieldValue for RawJson {
    fn read(value: JsonValue<'_>) -> Option<Self> {
        (value.kind() == JsonKind::Object).then(|| RawJson::from_value(&value))
    }
    fn write(&self, writer: &mut JsonWriter) {
        writer.raw(self.as_str());
    }
}

impl FieldValue for Timestamp {
    fn read(value: JsonValue<'_>) -> Option<Self> {
        Timestamp::parse_rfc3339(&value.text()?).ok()
    }
    fn write(&self, writer: &mut JsonWriter) {
        writer.text(&self.to_string());
    }
}

impl<T: FieldValue> FieldValue for Vec<T> {
    fn read(value: JsonValue<'_>) -> Option<Self> {
        (value.kind() == JsonKind::Array).then(|| value.items().map(T::read).collect()).flatten()
    }
    fn write(&self, writer: &mut JsonWriter) {
        writer.open_array();
        for item in self {
            item.write(writer);
        }
        writer.close_array();
    }
}

macro_rules! impl_field_value_for_ids {
    ($($name:ident)*) => {$(
        impl FieldValue for $name {
            fn read(value: JsonValue<'_>) -> Option<Self> {
                $name::parse(&value.text()?).ok()
            }
            fn write(&self, writer: &mut JsonWriter) {
                writer.text(self.as_str());
            }
        }
    )*};
}
impl_field_value_for_ids!(EventId SessionId SubscriptionId ReplyToken ToolCallId OutputId);

/// The name of a tool (§4.3.1): a letter or `_`, then letters, digits, `_`, `.` or `-`, at most 256
/// characters.
///
/// On receipt, any name is accepted (C-A17). Use [`ToolName::parse`] for names to emit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToolName(Box<str>);

impl ToolName {
    /// Parses a name that may be emitted.
    pub fn parse(text: &str) -> Option<Self> {
        is_tool_name(text).then(|| Self(text.into()))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FieldValue for ToolName {
    fn read(value: JsonValue<'_>) -> Option<Self> {
        String::read(value).map(|text| Self(text.into()))
    }
    fn write(&self, writer: &mut JsonWriter) {
        writer.text(&self.0);
    }
}

/// Returns an object's members with decoded names.
pub(crate) fn decoded_members(object: JsonValue<'_>) -> impl Iterator<Item = (Cow<'_, str>, JsonValue<'_>)> {
    object.members().map(|(key, value)| (key.text().unwrap_or_default(), value))
}

/// A member that is kept as received.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    name: Box<str>,
    value: RawJson,
}

impl Member {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value as JSON.
    pub fn value(&self) -> &RawJson {
        &self.value
    }
}

/// Members in their original order. Records use it for unknown members, and for members with
/// unexpected values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Members(Vec<Member>);

impl Members {
    /// Collects all members of an object.
    pub(crate) fn collect_from<'d>(members: impl Iterator<Item = (Cow<'d, str>, JsonValue<'d>)>) -> Self {
        let mut collected = Self::default();
        for (name, value) in members {
            collected.push_raw(&name, value);
        }
        collected
    }

    /// Sets a member. Replaces a member with the same name.
    pub fn set(&mut self, name: &str, value: RawJson) {
        match self.0.iter_mut().find(|member| &*member.name == name) {
            Some(member) => member.value = value,
            None => self.0.push(Member { name: name.into(), value }),
        }
    }

    /// Returns the member with this name.
    pub fn get(&self, name: &str) -> Option<&RawJson> {
        self.0.iter().find(|member| &*member.name == name).map(|member| &member.value)
    }

    /// Removes and returns the member with this name.
    pub fn take(&mut self, name: &str) -> Option<RawJson> {
        let index = self.0.iter().position(|member| &*member.name == name)?;
        Some(self.0.remove(index).value)
    }

    /// Iterates over all members in order.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.0.iter()
    }

    /// Returns whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push_raw(&mut self, name: &str, value: JsonValue<'_>) {
        self.0.push(Member { name: name.into(), value: RawJson::from_value(&value) });
    }

    pub(crate) fn write(&self, writer: &mut JsonWriter) {
        for member in &self.0 {
            writer.key(&member.name).raw(member.value.as_str());
        }
    }
}
