//! Arguments of a call, as what a person's answer is bound to.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use seal::json::{Tape, Writer};
use seal::{Digest, Random, SystemRandom};

use crate::error::{Error, Malformed, Source};

/// A value that can be an argument of a tool that is asked for: it says what of it the person's answer is bound to.
///
/// There is no serde here, on purpose. Serde's attributes (`skip`, `default`, `rename_all`) are made for a wire, and one of
/// them on a field that matters would let two calls that differ have one digest, without a word. What is implemented below
/// loses nothing: two values that differ are bound differently. Who wants serde all the same has [`Bound::json`].
///
/// A value is bound once, before the person is asked, and the tool runs with that same value. So what can change meanwhile, like
/// what is in a `Mutex`, is no argument.
///
/// ```
/// use sayso::{Argument, Bound};
///
/// struct Trip { to: String, nights: u8 }
///
/// impl Argument for Trip {
///     fn bound(&self) -> Bound {
///         Bound::record([("to", self.to.bound()), ("nights", self.nights.bound())])
///     }
/// }
///
/// let trip = Trip { to: "Oslo".to_owned(), nights: 2 };
/// assert_eq!(trip.bound().to_string(), r#"{"to":"Oslo","nights":2}"#);
/// ```
#[diagnostic::on_unimplemented(
    message = "a person's answer cannot be bound to a `{Self}`",
    label = "this argument is part of what the person is asked for",
    note = "implement `sayso::Argument` for it, or name the argument in `shown(…)` to bind it as it is displayed, or in \
            `skip(…)` if it is no part of what is done"
)]
pub trait Argument {
    /// What of it an answer is bound to.
    fn bound(&self) -> Bound;
}

/// A value as an answer is bound to it: one JSON value.
///
/// ```
/// use sayso::Bound;
/// assert_eq!(Bound::list([Bound::integer(1), Bound::text("two")]).to_string(), r#"[1,"two"]"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound(Result<String, Source>);

/// Beyond this, JSON's readers do not agree on integers.
const EXACT: i128 = (1 << 53) - 1;

impl Bound {
    /// A text.
    pub fn text(text: impl AsRef<str>) -> Self {
        Self::written(|out| out.text(text.as_ref()))
    }

    /// An integer. One beyond 2^53 is bound by its digits, as text.
    pub fn integer(integer: impl Into<i128>) -> Self {
        let integer = integer.into();
        match i64::try_from(integer) {
            Ok(small) if integer.abs() <= EXACT => Self::written(|out| out.integer(small)),
            _ => Self::text(integer.to_string()),
        }
    }

    /// A number. What JSON cannot say is bound by its name: `NaN`, `inf`, `-inf`.
    pub fn number(number: f64) -> Self {
        if number.is_finite() {
            Self::written(|out| out.number(number))
        } else {
            Self::text(number.to_string())
        }
    }

    /// Yes or no.
    pub fn boolean(value: bool) -> Self {
        Self::written(|out| out.boolean(value))
    }

    /// Nothing is there.
    pub fn nothing() -> Self {
        Self(Ok("null".to_owned()))
    }

    /// Many, in their order.
    pub fn list(items: impl IntoIterator<Item = Self>) -> Self {
        let mut out = Writer::default();
        out.open_array();
        Self(items.into_iter().try_for_each(|item| item.0.map(|json| out.raw(&json))).map(|()| {
            out.close_array();
            out.finish()
        }))
    }

    /// Many, each with its name.
    pub fn record<N: AsRef<str>>(members: impl IntoIterator<Item = (N, Self)>) -> Self {
        let mut out = Writer::default();
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

    /// A value that is JSON already. What is no JSON is bound to nothing: the question is refused as malformed.
    pub fn json(json: impl Into<String>) -> Self {
        let json = json.into();
        match Tape::default().read(&json) {
            Ok(_) => Self(Ok(json)),
            Err(why) => Self(Err(Source::new(why))),
        }
    }

    /// As it is displayed: what the person hears is what the answer is bound to.
    pub fn shown(value: impl fmt::Display) -> Self {
        Self::text(value.to_string())
    }

    /// Itself, so that an answer is bound to it and nobody can read it or find it by trying: a hash, with salt that is new
    /// each time.
    #[must_use]
    pub fn confidential(value: &Self) -> Self {
        let Ok(json) = &value.0 else { return value.clone() };
        let mut salt = [0; 32];
        SystemRandom.fill(&mut salt);
        let hash = Digest::of_all([salt.as_slice(), json.as_bytes()]);
        Self::text(hash.to_string())
    }

    pub(crate) fn finish(self) -> Result<String, Error> {
        self.0.map_err(|why| Error::Malformed(Malformed::Json(why)))
    }

    fn written(write: impl FnOnce(&mut Writer)) -> Self {
        let mut out = Writer::default();
        write(&mut out);
        Self(Ok(out.finish()))
    }
}

impl<T: Argument + ?Sized> From<&T> for Bound {
    fn from(value: &T) -> Self {
        value.bound()
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or("no JSON"))
    }
}

macro_rules! bound {
    ($($kind:ty)* => |$value:ident| $bound:expr) => {
        $(impl Argument for $kind {
            fn bound(&self) -> Bound {
                let $value = self;
                $bound
            }
        })*
    };
}

bound!(str String => |value| Bound::text(value));
bound!(char => |value| Bound::text(value.to_string()));
bound!(bool => |value| Bound::boolean(*value));
bound!(i8 i16 i32 i64 i128 u8 u16 u32 u64 => |value| Bound::integer(*value));
// Those that are wider than what an integer is made from.
bound!(u128 isize usize => |value| match i128::try_from(*value) {
    Ok(integer) => Bound::integer(integer),
    Err(_) => Bound::text(value.to_string()),
});
bound!(f32 => |value| Bound::number(f64::from(*value)));
bound!(f64 => |value| Bound::number(*value));

impl<T: Argument> Argument for Option<T> {
    fn bound(&self) -> Bound {
        let Some(value) = self else { return Bound::nothing() };
        let bound = value.bound();
        // Something that itself is nothing is not the same as nothing.
        let nothing = bound.0.as_ref().is_ok_and(|json| json.trim_matches(['[', ']']) == "null");
        if nothing { Bound::list([bound]) } else { bound }
    }
}

macro_rules! many {
    ($([$($generics:tt)*] $kind:ty => |$value:ident| $bound:expr;)*) => {
        $(impl<$($generics)*> Argument for $kind {
            fn bound(&self) -> Bound {
                let $value = self;
                $bound
            }
        })*
    };
}

many! {
    [T: Argument + ?Sized] &T => |value| T::bound(value);
    [T: Argument + ?Sized] &mut T => |value| T::bound(value);
    [T: Argument + ?Sized] Box<T> => |value| T::bound(value);
    [T: Argument + ?Sized] Arc<T> => |value| T::bound(value);
    [T: Argument] [T] => |list| Bound::list(list.iter().map(T::bound));
    [T: Argument, const N: usize] [T; N] => |list| list.as_slice().bound();
    [T: Argument] Vec<T> => |list| list.as_slice().bound();
    [N: AsRef<str>, T: Argument] BTreeMap<N, T> => |map| Bound::record(map.iter().map(|(name, value)| (name, value.bound())));
    [N: AsRef<str>, T: Argument, S] HashMap<N, T, S> => |map| Bound::record(map.iter().map(|(name, value)| (name, value.bound())));
}

macro_rules! tuples {
    ($($(($kind:ident $at:tt))*;)*) => {
        $(impl<$($kind: Argument),*> Argument for ($($kind,)*) {
            fn bound(&self) -> Bound {
                Bound::list([$(self.$at.bound()),*])
            }
        })*
    };
}

tuples! {
    (A 0);
    (A 0) (B 1);
    (A 0) (B 1) (C 2);
    (A 0) (B 1) (C 2) (D 3);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_bound_differently() {
        let many = [
            None::<Option<Option<u8>>>.bound(),
            Some(None::<Option<u8>>).bound(),
            Some(Some(None::<u8>)).bound(),
            Some(Some(Some(1_u8))).bound(),
            f64::NAN.bound(),
            f64::INFINITY.bound(),
            f64::NEG_INFINITY.bound(),
            9_007_199_254_740_992_u64.bound(),
            9_007_199_254_740_993_u64.bound(),
            u128::MAX.bound(),
            (u128::MAX - 1).bound(),
            i64::MIN.bound(),
            0.1_f64.bound(),
            0.1_f32.bound(),
        ];
        for (at, one) in many.iter().enumerate() {
            aaep::consent::Action::new("tool", &one.clone().finish().unwrap()).unwrap();
            assert!(!many[..at].contains(one), "{one} is there twice");
        }
    }

    #[test]
    fn values_are_bound_as_json() {
        for (bound, json) in [
            (Bound::text("Ben"), r#""Ben""#),
            (Bound::integer(17), "17"),
            (Bound::integer(u64::MAX), r#""18446744073709551615""#),
            (Bound::number(0.5), "0.5"),
            (Bound::number(f64::NAN), r#""NaN""#),
            (Bound::boolean(true), "true"),
            (Bound::nothing(), "null"),
            (Bound::list(["Ben", "Ada"].map(Bound::text)), r#"["Ben","Ada"]"#),
            (Bound::json(r#"{"to":"Ben"}"#), r#"{"to":"Ben"}"#),
            (Bound::shown(std::net::Ipv4Addr::LOCALHOST), r#""127.0.0.1""#),
            (("Ben", 5_u8, true).bound(), r#"["Ben",5,true]"#),
        ] {
            assert_eq!(bound.to_string(), json);
        }
    }

    #[test]
    fn what_is_confidential_cannot_be_read_or_found_by_trying() {
        let secret = "hunter2".bound();
        assert!(!Bound::confidential(&secret).to_string().contains("hunter2"));
        assert_ne!(Bound::confidential(&secret), Bound::confidential(&secret));
    }

    #[test]
    fn a_text_stays_one_text() {
        let bound = Bound::record([("to", "Ben\",\"amount\":\"9".bound()), ("amount", 5_u8.bound())]);
        assert_eq!(bound.to_string(), r#"{"to":"Ben\",\"amount\":\"9","amount":5}"#);
    }

    #[test]
    fn what_is_no_json_stays_so() {
        for bad in [r#"1,"to":"Eve""#, "", "{"] {
            let bound = Bound::list([Some(Bound::json(bad)).into_iter().collect::<Vec<_>>().remove(0)]);
            assert!(matches!(bound.finish(), Err(Error::Malformed(_))), "{bad}");
            assert!(Bound::confidential(&Bound::json(bad)).finish().is_err());
        }
    }

    #[test]
    fn a_map_is_bound_whatever_its_order() {
        let digest =
            |bound: Bound| aaep::consent::Action::new("tool", &bound.finish().unwrap()).unwrap().digest();
        let pairs = [("a", 1_u8), ("b", 2), ("c", 3)];
        let (sorted, hashed) = (BTreeMap::from(pairs), HashMap::from(pairs));
        assert_eq!(digest(sorted.bound()), digest(hashed.bound()));
    }
}
