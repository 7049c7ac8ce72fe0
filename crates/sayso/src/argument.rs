//! Arguments of a call, in the form to which the person's answer is bound.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use seal::json::{JsonWriter, Tape};
use seal::{Digest, Random, SystemRandom};

use crate::error::{Error, MalformedInput, SharedError};

/// A value that can be an argument of a tool that needs consent. It defines what the person's answer is bound to.
///
/// This trait deliberately does not build on serde, whose attributes (`skip`, `default`, `rename_all`) are meant for wire
/// formats. On a field that matters, one of them could silently give two different calls the same
/// digest. The implementations below lose nothing: different values of a type are bound differently. To use serde anyway, pass its JSON to
/// [`JsonText::json`].
///
/// A value is bound once, before the person is asked, and the tool runs with that same value. A value that can change in between,
/// such as the contents of a `Mutex`, cannot be an argument.
///
/// ```
/// use sayso::{Argument, JsonText};
///
/// struct Trip { to: String, nights: u8 }
///
/// impl Argument for Trip {
///     fn to_json_text(&self) -> JsonText {
///         JsonText::object([("to", self.to.to_json_text()), ("nights", self.nights.to_json_text())])
///     }
/// }
///
/// let trip = Trip { to: "Oslo".to_owned(), nights: 2 };
/// assert_eq!(trip.to_json_text().to_string(), r#"{"to":"Oslo","nights":2}"#);
/// ```
#[diagnostic::on_unimplemented(
    message = "a person's answer cannot be bound to a `{Self}`",
    label = "the person's answer is bound to this argument",
    note = "implement `sayso::Argument` for it, or list the argument in `shown(…)` to bind its `Display` text, or in \
            `skip(…)` if it does not affect what is done"
)]
pub trait Argument {
    /// Returns the value to which an answer is bound.
    fn to_json_text(&self) -> JsonText;
}

/// One JSON value as text: an argument to which an answer is bound, or data that an event carries.
///
/// ```
/// use sayso::JsonText;
/// assert_eq!(JsonText::array([JsonText::integer(1), JsonText::text("two")]).to_string(), r#"[1,"two"]"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonText(Result<String, SharedError>);

/// The largest integer that all JSON parsers read exactly.
const MAX_EXACT_INTEGER: i128 = (1 << 53) - 1;

impl JsonText {
    /// Creates a JSON string.
    pub fn text(text: impl AsRef<str>) -> Self {
        Self::write_json(|out| out.text(text.as_ref()))
    }

    /// Creates a number. An integer beyond ±(2^53 - 1) becomes a string with its digits.
    pub fn integer(integer: impl Into<i128>) -> Self {
        let integer = integer.into();
        match i64::try_from(integer) {
            Ok(exact) if integer.abs() <= MAX_EXACT_INTEGER => Self::write_json(|out| out.integer(exact)),
            _ => Self::text(integer.to_string()),
        }
    }

    /// Creates a number. `NaN`, `inf` and `-inf`, which JSON lacks, become strings.
    pub fn number(number: f64) -> Self {
        if number.is_finite() {
            Self::write_json(|out| out.number(number))
        } else {
            Self::text(number.to_string())
        }
    }

    /// Creates a boolean.
    pub fn boolean(value: bool) -> Self {
        Self::write_json(|out| out.boolean(value))
    }

    /// Creates null.
    pub fn null() -> Self {
        Self(Ok("null".to_owned()))
    }

    /// Creates an array.
    pub fn array(items: impl IntoIterator<Item = Self>) -> Self {
        let mut out = JsonWriter::default();
        out.open_array();
        Self(items.into_iter().try_for_each(|item| item.0.map(|json| out.raw(&json))).map(|()| {
            out.close_array();
            out.finish()
        }))
    }

    /// Creates an object.
    pub fn object<N: AsRef<str>>(members: impl IntoIterator<Item = (N, Self)>) -> Self {
        let mut out = JsonWriter::default();
        out.open_object();
        let mut write = |(name, member): (N, Self)| {
            out.key(name.as_ref());
            member.0.map(|json| out.raw(&json))
        };
        Self(members.into_iter().try_for_each(&mut write).map(|()| {
            out.close_object();
            out.finish()
        }))
    }

    /// Uses text that is already JSON. If it is not valid JSON, the request that contains it is rejected as malformed.
    pub fn json(json: impl Into<String>) -> Self {
        let json = json.into();
        match Tape::default().read(&json) {
            Ok(_) => Self(Ok(json)),
            Err(error) => Self(Err(SharedError::new(error))),
        }
    }

    /// Creates a string with the `Display` text of a value, so an answer is bound to what the person hears.
    pub fn from_display(value: impl fmt::Display) -> Self {
        Self::text(value.to_string())
    }

    /// Returns a hash of a value, with a fresh salt each time. An answer can be bound to the hash without revealing the value.
    #[must_use]
    pub fn confidential(value: &Self) -> Self {
        let Ok(json) = &value.0 else { return value.clone() };
        let mut salt = [0; 32];
        SystemRandom.fill(&mut salt);
        let hash = Digest::of_parts([salt.as_slice(), json.as_bytes()]);
        Self::text(hash.to_string())
    }

    pub(crate) fn into_json(self) -> Result<String, Error> {
        self.0.map_err(|error| Error::Malformed(MalformedInput::Json(error)))
    }

    fn write_json(write: impl FnOnce(&mut JsonWriter)) -> Self {
        let mut out = JsonWriter::default();
        write(&mut out);
        Self(Ok(out.finish()))
    }
}

impl<T: Argument + ?Sized> From<&T> for JsonText {
    fn from(value: &T) -> Self {
        value.to_json_text()
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or("invalid JSON"))
    }
}

macro_rules! impl_argument {
    ($($kind:ty)* => |$value:ident| $bound:expr) => {
        $(impl Argument for $kind {
            fn to_json_text(&self) -> JsonText {
                let $value = self;
                $bound
            }
        })*
    };
}

impl_argument!(str String => |value| JsonText::text(value));
impl_argument!(char => |value| JsonText::text(value.to_string()));
impl_argument!(bool => |value| JsonText::boolean(*value));
impl_argument!(i8 i16 i32 i64 i128 u8 u16 u32 u64 => |value| JsonText::integer(*value));
// Types that may not fit into an `i128`, or have no `Into<i128>`.
impl_argument!(u128 isize usize => |value| match i128::try_from(*value) {
    Ok(integer) => JsonText::integer(integer),
    Err(_) => JsonText::text(value.to_string()),
});
impl_argument!(f32 => |value| JsonText::number(f64::from(*value)));
impl_argument!(f64 => |value| JsonText::number(*value));

impl<T: Argument> Argument for Option<T> {
    fn to_json_text(&self) -> JsonText {
        let Some(value) = self else { return JsonText::null() };
        let bound = value.to_json_text();
        // `Some(None)` must differ from `None`.
        let is_null = bound.0.as_ref().is_ok_and(|json| json.trim_matches(['[', ']']) == "null");
        if is_null { JsonText::array([bound]) } else { bound }
    }
}

macro_rules! impl_generic_argument {
    ($([$($generics:tt)*] $kind:ty => |$value:ident| $bound:expr;)*) => {
        $(impl<$($generics)*> Argument for $kind {
            fn to_json_text(&self) -> JsonText {
                let $value = self;
                $bound
            }
        })*
    };
}

impl_generic_argument! {
    [T: Argument + ?Sized] &T => |value| T::to_json_text(value);
    [T: Argument + ?Sized] &mut T => |value| T::to_json_text(value);
    [T: Argument + ?Sized] Box<T> => |value| T::to_json_text(value);
    [T: Argument + ?Sized] Arc<T> => |value| T::to_json_text(value);
    [T: Argument] [T] => |list| JsonText::array(list.iter().map(T::to_json_text));
    [T: Argument, const N: usize] [T; N] => |list| list.as_slice().to_json_text();
    [T: Argument] Vec<T> => |list| list.as_slice().to_json_text();
    [N: AsRef<str>, T: Argument] BTreeMap<N, T> => |map| JsonText::object(map.iter().map(|(name, value)| (name, value.to_json_text())));
    [N: AsRef<str>, T: Argument, S] HashMap<N, T, S> => |map| JsonText::object(map.iter().map(|(name, value)| (name, value.to_json_text())));
}

macro_rules! impl_tuple_argument {
    ($($(($kind:ident $at:tt))*;)*) => {
        $(impl<$($kind: Argument),*> Argument for ($($kind,)*) {
            fn to_json_text(&self) -> JsonText {
                JsonText::array([$(self.$at.to_json_text()),*])
            }
        })*
    };
}

impl_tuple_argument! {
    (A 0);
    (A 0) (B 1);
    (A 0) (B 1) (C 2);
    (A 0) (B 1) (C 2) (D 3);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_values_are_bound_differently() {
        let values = [
            None::<Option<Option<u8>>>.to_json_text(),
            Some(None::<Option<u8>>).to_json_text(),
            Some(Some(None::<u8>)).to_json_text(),
            Some(Some(Some(1_u8))).to_json_text(),
            f64::NAN.to_json_text(),
            f64::INFINITY.to_json_text(),
            f64::NEG_INFINITY.to_json_text(),
            9_007_199_254_740_992_u64.to_json_text(),
            9_007_199_254_740_993_u64.to_json_text(),
            u128::MAX.to_json_text(),
            (u128::MAX - 1).to_json_text(),
            i64::MIN.to_json_text(),
            0.1_f64.to_json_text(),
            0.1_f32.to_json_text(),
        ];
        for (at, value) in values.iter().enumerate() {
            aaep::consent::BoundAction::new("tool", &value.clone().into_json().unwrap()).unwrap();
            assert!(!values[..at].contains(value), "{value} occurs twice");
        }
    }

    #[test]
    fn values_are_bound_as_json() {
        for (bound, json) in [
            (JsonText::text("Ben"), r#""Ben""#),
            (JsonText::integer(17), "17"),
            (JsonText::integer(u64::MAX), r#""18446744073709551615""#),
            (JsonText::number(0.5), "0.5"),
            (JsonText::number(f64::NAN), r#""NaN""#),
            (JsonText::boolean(true), "true"),
            (JsonText::null(), "null"),
            (JsonText::array(["Ben", "Ada"].map(JsonText::text)), r#"["Ben","Ada"]"#),
            (JsonText::json(r#"{"to":"Ben"}"#), r#"{"to":"Ben"}"#),
            (JsonText::from_display(std::net::Ipv4Addr::LOCALHOST), r#""127.0.0.1""#),
            (("Ben", 5_u8, true).to_json_text(), r#"["Ben",5,true]"#),
        ] {
            assert_eq!(bound.to_string(), json);
        }
    }

    #[test]
    fn a_confidential_value_cannot_be_read_or_guessed() {
        let secret = "hunter2".to_json_text();
        assert!(!JsonText::confidential(&secret).to_string().contains("hunter2"));
        assert_ne!(JsonText::confidential(&secret), JsonText::confidential(&secret));
    }

    #[test]
    fn a_string_with_json_syntax_stays_one_string() {
        let bound = JsonText::object([
            ("to", "Ben\",\"amount\":\"9".to_json_text()),
            ("amount", 5_u8.to_json_text()),
        ]);
        assert_eq!(bound.to_string(), r#"{"to":"Ben\",\"amount\":\"9","amount":5}"#);
    }

    #[test]
    fn invalid_json_is_rejected_wherever_it_is_used() {
        for bad in [r#"1,"to":"Eve""#, "", "{"] {
            let array = JsonText::array([JsonText::json(bad)]);
            assert!(matches!(array.into_json(), Err(Error::Malformed(_))), "{bad}");
            assert!(JsonText::confidential(&JsonText::json(bad)).into_json().is_err());
        }
    }

    #[test]
    fn a_map_is_bound_independently_of_its_order() {
        let digest = |bound: JsonText| {
            aaep::consent::BoundAction::new("tool", &bound.into_json().unwrap()).unwrap().digest()
        };
        let pairs = [("a", 1_u8), ("b", 2), ("c", 3)];
        let (sorted, hashed) = (BTreeMap::from(pairs), HashMap::from(pairs));
        assert_eq!(digest(sorted.to_json_text()), digest(hashed.to_json_text()));
    }
}
