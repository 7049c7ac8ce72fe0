//! Field definitions: the type of each field and its rules.

use crate::rule::Rule;

/// The definition of one member of a record.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) value_type: FieldType,
    /// The rule that a wrong value breaks.
    pub(crate) rule: Rule,
    /// The rule that a missing value breaks; `None` for an optional field.
    pub(crate) missing_rule: Option<Rule>,
    /// Whether the field holds text for people.
    pub(crate) is_spoken: bool,
}

/// The type of a field's value.
#[derive(Debug)]
pub(crate) enum FieldType {
    /// A string. `min` and `max` limit its length in code points.
    Text { min: u32, max: u32 },
    /// A string with its own grammar; `pattern` is the regular expression for the schemas.
    Grammar { matches: fn(&str) -> bool, pattern: &'static str, description: &'static str },
    /// A URI (RFC 3986).
    Uri,
    /// A language tag (RFC 5646).
    LanguageTag,
    /// A timestamp of an event (§3.2.5) or, with `any_rfc3339`, of a reply (RFC 3339).
    Timestamp { any_rfc3339: bool },
    /// One of these values.
    Enum(&'static [&'static str]),
    /// `true` or `false`.
    Bool,
    /// An integer.
    Integer { min: i64, max: i64 },
    /// A number.
    Number { min: f64, max: f64 },
    /// An array of values of one type. `item_rule` is the rule that a wrong item breaks, if it is
    /// not the field's rule.
    List { item: &'static FieldType, min: usize, max: usize, unique: bool, item_rule: Option<Rule> },
    /// A record. Unknown members break `unknown_member_rule`. If that is `None`, they are allowed,
    /// but an unknown member that is not an object breaks `non_object_member_rule`.
    Record {
        fields: &'static [Field],
        unknown_member_rule: Option<Rule>,
        non_object_member_rule: Option<Rule>,
    },
    /// Any object.
    Object,
    /// The `@context` of an event (§3.2.1).
    Context,
    /// The `extensions` member: one object for each prefix (§3.4.3).
    Extensions,
    /// A clarification's response: a string of 1 to 16384 code points, a boolean or a number (§6.5.2).
    Response,
}

impl FieldType {
    pub(crate) const LONG_TEXT: FieldType = FieldType::Text { min: 1, max: 16_384 };
    pub(crate) const LONG_OR_EMPTY_TEXT: FieldType = FieldType::Text { min: 0, max: 16_384 };
    pub(crate) const SHORT_TEXT: FieldType = FieldType::Text { min: 1, max: 4096 };
    pub(crate) const NAME: FieldType = FieldType::Text { min: 1, max: 256 };
    pub(crate) const NON_EMPTY_TEXT: FieldType = FieldType::Text { min: 1, max: u32::MAX };
    pub(crate) const ANY_TEXT: FieldType = FieldType::Text { min: 0, max: u32::MAX };
    /// Milliseconds, at most one day.
    pub(crate) const MILLIS: FieldType = FieldType::Integer { min: 0, max: 86_400_000 };
    pub(crate) const COUNT: FieldType = FieldType::Integer { min: 0, max: i64::MAX };
    pub(crate) const POSITIVE: FieldType = FieldType::Integer { min: 1, max: i64::MAX };

    /// Describes the type for a finding.
    pub(crate) fn describe(&self) -> String {
        let describe_text = |min: u32, max: u32| match (min, max) {
            (0, u32::MAX) => "a string".to_owned(),
            (_, u32::MAX) => {
                format!("a string of at least {min} character{}", if min == 1 { "" } else { "s" })
            }
            (0, _) => format!("a string of at most {max} characters"),
            _ => format!("a string of {min} to {max} characters"),
        };
        match self {
            FieldType::Text { min, max } => describe_text(*min, *max),
            FieldType::Grammar { description, .. } => (*description).to_owned(),
            FieldType::Uri => "a URI with a scheme".to_owned(),
            FieldType::LanguageTag => "a language tag".to_owned(),
            FieldType::Timestamp { .. } => "a timestamp".to_owned(),
            FieldType::Enum(values) => format!("one of {}", values.join(", ")),
            FieldType::Bool => "true or false".to_owned(),
            FieldType::Integer { min, max: i64::MAX } => format!("an integer of at least {min}"),
            FieldType::Integer { min, max } => format!("an integer from {min} to {max}"),
            FieldType::Number { min, max } => format!("a number from {min} to {max}"),
            FieldType::List { min, max, .. } => match (min, max) {
                (0, &usize::MAX) => "an array".to_owned(),
                (_, &usize::MAX) => {
                    format!("an array of at least {min} item{}", if *min == 1 { "" } else { "s" })
                }
                _ => format!("an array of {min} to {max} items"),
            },
            FieldType::Record { .. } | FieldType::Object | FieldType::Extensions => "an object".to_owned(),
            FieldType::Context => "the core context, or an array that starts with it".to_owned(),
            FieldType::Response => "a string of 1 to 16384 characters, true or false, or a number".to_owned(),
        }
    }
}
