//! The ids of AAEP: validated, comparable, and generated from the caller's source of randomness.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use seal::Random;
use thiserror::Error;

use crate::grammar::is_id;
use crate::record::FieldType;

/// The error for text that is not a valid id.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("must be {prefix} followed by 1 to 64 ASCII letters or digits")]
pub struct IdError {
    /// The prefix that the id must have.
    pub prefix: &'static str,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident, $prefix:literal, $storage:ty, $description:literal;)*) => {$(
        $(#[$doc])*
        ///
        #[doc = concat!("The form is `", $prefix, "` and 1 to 64 ASCII letters or digits, compared case-sensitively.")]
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($storage);

        impl $name {
            /// The prefix of every such id.
            pub const PREFIX: &'static str = $prefix;

            pub(crate) const FIELD_TYPE: FieldType = FieldType::Grammar {
                matches: |text| is_id($prefix, text),
                pattern: concat!("^", $prefix, "[A-Za-z0-9]{1,64}$"),
                description: $description,
            };

            /// Parses an id.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                if is_id($prefix, text) { Ok(Self(text.into())) } else { Err(IdError { prefix: $prefix }) }
            }

            /// Generates an id: 128 random bits as 32 hexadecimal digits.
            pub fn generate(random: &mut impl Random) -> Self {
                Self(generate_hex($prefix, random))
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }

        seal::text_newtype!($name);
    )*};
}

ids! {
    /// The id of an event (§3.2.3).
    ///
    /// ```
    /// use aaep::EventId;
    /// assert!(EventId::parse("evt_8a3f5b22c91e4d7a").is_ok());
    /// assert!(EventId::parse("evt_8a3f\n").is_err());
    /// ```
    EventId, "evt_", InlineStr, "an id like evt_8a3f5b22c91e4d7a";
    /// The id of a session: one task of an agent, from start to end (§3.2.4).
    SessionId, "sess_", Arc<str>, "an id like sess_2c91a7b4d23f1e88";
    /// The id of a subscription (§5.4).
    SubscriptionId, "sub_", Arc<str>, "an id like sub_8a4f2c9d";
    /// Links a reply to its question (§6.2.1). It is not a credential (§6.2.4).
    ReplyToken, "rpl_", Arc<str>, "a token like rpl_4f8a2e7d9c1b6a3f";
    /// Links a tool's completion to its invocation (§4.3.1).
    ToolCallId, "call_", Arc<str>, "an id like call_7a2b9c4e";
    /// Groups the chunks of one output (§4.3.3).
    OutputId, "out_", Arc<str>, "an id like out_3a8c2";
}

impl ToolCallId {
    /// Returns the id of the call with this number in its session.
    ///
    /// ```
    /// assert_eq!(aaep::ToolCallId::from_number(7).as_str(), "call_7");
    /// ```
    pub fn from_number(number: u64) -> Self {
        Self(format!("{}{number}", Self::PREFIX).into())
    }

    /// Returns the id of a call that a framework has named in its own way. An id that AAEP allows is kept. Any other is
    /// replaced by `call_` and the first 32 hexadecimal digits of its SHA-256 hash, so the same name always becomes the
    /// same id. Returns `None` for an empty name.
    ///
    /// ```
    /// use aaep::ToolCallId;
    /// assert_eq!(ToolCallId::from_foreign("call_7").unwrap().as_str(), "call_7");
    /// let id = ToolCallId::from_foreign("toolu_01A09q90qw90lq917835lq9").unwrap();
    /// assert!(ToolCallId::parse(id.as_str()).is_ok());
    /// assert_eq!(ToolCallId::from_foreign("toolu_01A09q90qw90lq917835lq9"), Some(id));
    /// ```
    pub fn from_foreign(name: &str) -> Option<Self> {
        if name.is_empty() {
            return None;
        }
        Self::parse(name).ok().or_else(|| {
            let digest = seal::Digest::of(name.as_bytes());
            let bits = digest.as_bytes().get(..16).unwrap_or_default();
            Some(Self(format!("{}{}", Self::PREFIX, HEXLOWER.encode(bits)).into()))
        })
    }
}

/// The text of an event id. Short ids are stored inline, because every new event has an id and an
/// allocation for it would cost time.
#[derive(Clone)]
enum InlineStr {
    Inline { bytes: [u8; INLINE_CAPACITY], length: u8 },
    Shared(Arc<str>),
}

/// Enough for `evt_` and 32 digits.
const INLINE_CAPACITY: usize = 40;

impl From<&str> for InlineStr {
    fn from(text: &str) -> Self {
        let mut bytes = [0; INLINE_CAPACITY];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(buffer), Ok(length)) => {
                buffer.copy_from_slice(text.as_bytes());
                Self::Inline { bytes, length }
            }
            _ => Self::Shared(text.into()),
        }
    }
}

impl Deref for InlineStr {
    type Target = str;
    fn deref(&self) -> &str {
        match self {
            Self::Inline { bytes, length } => {
                let bytes = bytes.get(..usize::from(*length)).unwrap_or_default();
                std::str::from_utf8(bytes).unwrap_or_default()
            }
            Self::Shared(text) => text,
        }
    }
}

impl PartialEq for InlineStr {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for InlineStr {}

impl PartialOrd for InlineStr {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for InlineStr {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for InlineStr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

fn generate_hex<T: for<'t> From<&'t str>>(prefix: &str, random: &mut impl Random) -> T {
    let mut bytes = [0; 16];
    random.fill(&mut bytes);
    // Written on the stack to avoid a temporary allocation.
    let mut text = [0; 8 + 32];
    let (start, rest) = text.split_at_mut(prefix.len());
    start.copy_from_slice(prefix.as_bytes());
    HEXLOWER.encode_mut(&bytes, &mut rest[..32]);
    T::from(std::str::from_utf8(&text[..prefix.len() + 32]).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_generated_only_from_the_given_random_source() {
        let mut counter = 0_u8;
        let mut source = |bytes: &mut [u8]| {
            for byte in bytes {
                *byte = counter;
                counter = counter.wrapping_add(17);
            }
        };
        let first = EventId::generate(&mut source);
        assert_eq!(first.as_str(), "evt_00112233445566778899aabbccddeeff");
        assert_ne!(first, EventId::generate(&mut |bytes: &mut [u8]| bytes.fill(7)));
        assert_eq!(first, EventId::parse(first.as_str()).unwrap());
    }

    #[test]
    fn long_ids_behave_like_short_ones() {
        for length in [1, 35, 36, 37, 64] {
            let text = format!("evt_{}", "a".repeat(length));
            let id = EventId::parse(&text).unwrap();
            assert_eq!((id.as_str(), &id.clone()), (text.as_str(), &id));
            assert!(id > EventId::parse("evt_A").unwrap());
        }
    }

    #[test]
    fn each_kind_of_id_has_its_own_prefix() {
        assert!(SessionId::parse("sess_a").is_ok() && SessionId::parse("evt_a").is_err());
        assert!(ReplyToken::parse("rpl_a").is_ok() && ReplyToken::parse("rpl_a-b").is_err());
        assert!(SubscriptionId::parse("sub_a").is_ok() && OutputId::parse("out_a").is_ok());
        assert_eq!(ToolCallId::parse("toolu_x").unwrap_err().prefix, "call_");
        assert_ne!(EventId::parse("evt_A").unwrap(), EventId::parse("evt_a").unwrap());
    }
}
