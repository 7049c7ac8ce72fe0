//! Names: of messages and sessions (UUID v7), of agents, and of what bodies speak about.

use std::fmt;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use seal::{Random, UnixMillis};
use thiserror::Error;

/// A text that is not the name it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be {0}")]
pub struct IdError(pub(crate) &'static str);

macro_rules! uuids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            /// Reads a UUID of version 7, in either case (RFC 9562 §4); anything else is refused.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                read_uuid7(text).map(Self).ok_or(IdError("a UUID of version 7"))
            }

            /// Makes one: the time in milliseconds since 1970, and 74 random bits (RFC 9562 §5.7).
            pub fn generate(now: UnixMillis, random: &mut impl Random) -> Self {
                Self(uuid7(now, random))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_uuid(f, &self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_uuid(f, &self.0)
            }
        }
    )*};
}

uuids! {
    /// Names one message.
    ///
    /// ```
    /// use asp::MessageId;
    /// assert!(MessageId::parse("01890a5d-ac96-774b-bcce-b302099a8057").is_ok());
    /// assert!(MessageId::parse("7d444840-9dc0-41d1-b245-5ffdce74fad2").is_err(), "version 4");
    /// ```
    MessageId;
    /// Names one session (D19).
    SessionId;
}

const HYPHENS: [usize; 4] = [8, 13, 18, 23];

fn read_uuid7(text: &str) -> Option<[u8; 16]> {
    let text = text.as_bytes();
    if text.len() != 36 || HYPHENS.iter().any(|at| text[*at] != b'-') {
        return None;
    }
    let (mut digits, mut bytes) = ([0; 32], [0; 16]);
    let found = text.iter().enumerate().filter(|(at, _)| !HYPHENS.contains(at));
    digits.iter_mut().zip(found).for_each(|(digit, (_, found))| *digit = *found);
    HEXLOWER_PERMISSIVE.decode_mut(&digits, &mut bytes).ok()?;
    (bytes[6] >> 4 == 7 && bytes[8] >> 6 == 2).then_some(bytes)
}

fn uuid7(now: UnixMillis, random: &mut impl Random) -> [u8; 16] {
    let mut bytes = [0; 16];
    random.fill(&mut bytes[6..]);
    bytes[..6].copy_from_slice(&now.get().to_be_bytes()[2..]);
    bytes[6] = bytes[6] & 0x0F | 0x70;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    bytes
}

fn write_uuid(f: &mut fmt::Formatter<'_>, bytes: &[u8; 16]) -> fmt::Result {
    let mut digits = [0; 32];
    let digits = HEXLOWER.encode_mut_str(bytes, &mut digits);
    let [time, time_end, version, variant, random] =
        [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    write!(f, "{time}-{time_end}-{version}-{variant}-{random}")
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident $good:expr, $form:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// Takes a text that has the form.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                if ($good)(text) { Ok(Self(text.into())) } else { Err(IdError($form)) }
            }
        }

        seal::text_newtype!($name);
    )*};
}

names! {
    /// Names an agent: `agent://`, a host, and a path if there is one.
    ///
    /// ```
    /// assert!(asp::AgentUri::parse("agent://acme.example/purchasing/buyer").is_ok());
    /// assert!(asp::AgentUri::parse("https://acme.example").is_err());
    /// ```
    AgentUri is_agent_uri, "agent:// and 1 to 512 printable ASCII characters without spaces";
    /// Names a proposal (D19).
    ProposalId |text| is_name("prop_", text), "prop_ and 1 to 128 letters, digits, hyphens, dots or underscores";
    /// Names a commitment (D19).
    CommitmentId |text| is_name("cmt_", text), "cmt_ and 1 to 128 letters, digits, hyphens, dots or underscores";
    /// Names a query (D19).
    QueryId |text| is_name("qry_", text), "qry_ and 1 to 128 letters, digits, hyphens, dots or underscores";
    /// Names what a message refers to: a proposal, commitment, query, delegation or message.
    Reference |text| is_word(text, 136), "1 to 136 letters, digits, hyphens, dots or underscores";
    /// A currency: three capital letters, as ISO 4217 writes them.
    Currency is_currency, "three capital letters, such as USD";
}

macro_rules! references {
    ($($name:ident)*) => {$(
        impl From<&$name> for Reference {
            fn from(id: &$name) -> Self {
                Self(id.0.clone())
            }
        }
    )*};
}
references! { ProposalId CommitmentId QueryId }

impl From<MessageId> for Reference {
    fn from(id: MessageId) -> Self {
        Self(id.to_string().into())
    }
}

fn is_agent_uri(text: &str) -> bool {
    text.strip_prefix("agent://").is_some_and(|rest| {
        (1..=512).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_graphic())
    })
}

fn is_name(prefix: &str, text: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|rest| is_word(rest, 128))
}

fn is_currency(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn is_word(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_made_of_time_and_the_given_randomness() {
        let id =
            MessageId::generate(UnixMillis::new(0x0189_0a5d_ac96), &mut |bytes: &mut [u8]| bytes.fill(0xFF));
        assert_eq!(id.to_string(), "01890a5d-ac96-7fff-bfff-ffffffffffff");
        assert_eq!(MessageId::parse(&id.to_string()), Ok(id));
    }

    #[test]
    fn only_version_7_is_read() {
        for text in [
            "",
            "01890a5d-ac96-774b-bcce-b302099a805",
            "01890a5d-ac96-774b-bcce-b302099a80577",
            "01890a5d-ac96-474b-bcce-b302099a8057",
            "01890a5d-ac96-774b-ccce-b302099a8057",
            "01890a5dac96-774b-bcce-b302099a8057-",
            "01890a5d-ac96-774b-bcce-b302099a805g",
        ] {
            assert!(SessionId::parse(text).is_err(), "{text}");
        }
    }
}
