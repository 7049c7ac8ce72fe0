//! The table: what each field must look like.

use crate::rule::Rule;

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// Broken when the value does not have the shape.
    pub(crate) rule: Rule,
    /// Broken when the field is not there; nothing for a field that may be left out.
    pub(crate) missing: Option<Rule>,
    /// Text for people.
    pub(crate) spoken: bool,
}

/// What a value must look like.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A string of so many code points.
    Text { min: u32, max: u32 },
    /// A string with a grammar of its own; `pattern` says it for the schemas.
    Form { is: fn(&str) -> bool, pattern: &'static str, called: &'static str },
    /// A URI (RFC 3986).
    Uri,
    /// A language tag (RFC 5646).
    Tag,
    /// A timestamp of an event (§3.2.5) or, with `any`, of a reply (RFC 3339).
    Time { any: bool },
    /// One of these words.
    Word(&'static [&'static str]),
    /// `true` or `false`.
    Bool,
    /// An integer.
    Integer { min: i64, max: i64 },
    /// A number.
    Number { min: f64, max: f64 },
    /// An array of values of one shape; `items` is the rule that a wrong one breaks, if not the field's.
    List { of: &'static Shape, min: usize, max: usize, unique: bool, items: Option<Rule> },
    /// A record; `closed` is broken by members that it does not know, and without it they must be objects.
    Record { fields: &'static [Field], closed: Option<Rule>, open_objects: Option<Rule> },
    /// Any object.
    Object,
    /// The `@context` of an event (§3.2.1).
    Context,
    /// `extensions`: objects under prefixes (§3.4.3).
    Extensions,
    /// A clarification's response: a string of 1 to 16384 code points, a boolean or a number (§6.5.2).
    Response,
}

impl Shape {
    pub(crate) const LONG: Shape = Shape::Text { min: 1, max: 16_384 };
    pub(crate) const LONG_OR_EMPTY: Shape = Shape::Text { min: 0, max: 16_384 };
    pub(crate) const SHORT: Shape = Shape::Text { min: 1, max: 4096 };
    pub(crate) const NAME: Shape = Shape::Text { min: 1, max: 256 };
    pub(crate) const SOME: Shape = Shape::Text { min: 1, max: u32::MAX };
    pub(crate) const ANY: Shape = Shape::Text { min: 0, max: u32::MAX };
    /// Milliseconds of at most a day.
    pub(crate) const MILLIS: Shape = Shape::Integer { min: 0, max: 86_400_000 };
    pub(crate) const COUNT: Shape = Shape::Integer { min: 0, max: i64::MAX };
    pub(crate) const POSITIVE: Shape = Shape::Integer { min: 1, max: i64::MAX };

    /// The shape in words, for a finding's sentence.
    pub(crate) fn words(&self) -> String {
        let characters = |min: u32, max: u32| match (min, max) {
            (0, u32::MAX) => "a string".to_owned(),
            (_, u32::MAX) => {
                format!("a string of at least {min} character{}", if min == 1 { "" } else { "s" })
            }
            (0, _) => format!("a string of at most {max} characters"),
            _ => format!("a string of {min} to {max} characters"),
        };
        match self {
            Shape::Text { min, max } => characters(*min, *max),
            Shape::Form { called, .. } => (*called).to_owned(),
            Shape::Uri => "a URI with its scheme".to_owned(),
            Shape::Tag => "a language tag".to_owned(),
            Shape::Time { .. } => "a timestamp".to_owned(),
            Shape::Word(words) => format!("one of {}", words.join(", ")),
            Shape::Bool => "true or false".to_owned(),
            Shape::Integer { min, max: i64::MAX } => format!("an integer from {min} on"),
            Shape::Integer { min, max } => format!("an integer from {min} to {max}"),
            Shape::Number { min, max } => format!("a number from {min} to {max}"),
            Shape::List { min, max, .. } => match (min, max) {
                (0, &usize::MAX) => "an array".to_owned(),
                (_, &usize::MAX) => format!("an array of at least {min}"),
                _ => format!("an array of {min} to {max}"),
            },
            Shape::Record { .. } | Shape::Object | Shape::Extensions => "an object".to_owned(),
            Shape::Context => "the core context, or an array that begins with it".to_owned(),
            Shape::Response => "a string of 1 to 16384 characters, true or false, or a number".to_owned(),
        }
    }
}
