//! Identifiers of messages and sessions (UUID v7), agents, proposals, commitments and queries, and currency codes.

use std::fmt;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use seal::{Random, UnixMillis};
use thiserror::Error;

/// The text is not a valid identifier. The field describes the expected form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be {0}")]
pub struct IdError(pub(crate) &'static str);

macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            /// Parses a UUID of version 7, in upper or lower case (RFC 9562 §4).
            pub fn parse(text: &str) -> Result<Self, IdError> {
                parse_uuid_v7(text).map(Self).ok_or(IdError("a UUID of version 7"))
            }

            /// Generates an id from the time in milliseconds since 1970 and 74 random bits (RFC 9562 §5.7).
            pub fn generate(now: UnixMillis, random: &mut impl Random) -> Self {
                Self(generate_uuid_v7(now, random))
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

uuid_ids! {
    /// The id of a message.
    ///
    /// ```
    /// use asp::MessageId;
    /// assert!(MessageId::parse("01890a5d-ac96-774b-bcce-b302099a8057").is_ok());
    /// assert!(MessageId::parse("7d444840-9dc0-41d1-b245-5ffdce74fad2").is_err(), "version 4");
    /// ```
    MessageId;
    /// The id of a session (D19).
    SessionId;
}

const HYPHEN_POSITIONS: [usize; 4] = [8, 13, 18, 23];

fn parse_uuid_v7(text: &str) -> Option<[u8; 16]> {
    let text = text.as_bytes();
    if text.len() != 36 || HYPHEN_POSITIONS.iter().any(|index| text[*index] != b'-') {
        return None;
    }
    let (mut digits, mut bytes) = ([0; 32], [0; 16]);
    let source = text.iter().enumerate().filter(|(index, _)| !HYPHEN_POSITIONS.contains(index));
    digits.iter_mut().zip(source).for_each(|(digit, (_, byte))| *digit = *byte);
    HEXLOWER_PERMISSIVE.decode_mut(&digits, &mut bytes).ok()?;
    (bytes[6] >> 4 == 7 && bytes[8] >> 6 == 2).then_some(bytes)
}

fn generate_uuid_v7(now: UnixMillis, random: &mut impl Random) -> [u8; 16] {
    let mut bytes = [0; 16];
    random.fill(&mut bytes[6..]);
    bytes[..6].copy_from_slice(&now.get().to_be_bytes()[2..]);
    bytes[6] = bytes[6] & 0x0F | 0x70;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    bytes
}

fn write_uuid(f: &mut fmt::Formatter<'_>, bytes: &[u8; 16]) -> fmt::Result {
    let mut text = [b'-'; 36];
    // Each part of the text has two digits for each of its bytes.
    for (digits, part) in [(0..8, 0..4), (9..13, 4..6), (14..18, 6..8), (19..23, 8..10), (24..36, 10..16)] {
        HEXLOWER.encode_mut(&bytes[part], &mut text[digits]);
    }
    f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
}

macro_rules! text_ids {
    ($($(#[$doc:meta])* $name:ident $is_valid:expr, $expected:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// Parses the text. Fails if it does not have the expected form.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                if ($is_valid)(text) { Ok(Self(text.into())) } else { Err(IdError($expected)) }
            }
        }

        seal::text_newtype!($name);
    )*};
}

text_ids! {
    /// The URI of an agent: `agent://`, a host, and an optional path. Only its length and its characters are checked.
    ///
    /// ```
    /// assert!(asp::AgentUri::parse("agent://acme.example/purchasing/buyer").is_ok());
    /// assert!(asp::AgentUri::parse("https://acme.example").is_err());
    /// ```
    AgentUri is_agent_uri, "agent:// followed by 1 to 512 printable ASCII characters without spaces";
    /// The id of a proposal (D19).
    ProposalId |text| is_prefixed_id("prop_", text), "prop_ followed by 1 to 128 letters, digits, hyphens, dots or underscores";
    /// The id of a commitment (D19).
    CommitmentId |text| is_prefixed_id("cmt_", text), "cmt_ followed by 1 to 128 letters, digits, hyphens, dots or underscores";
    /// The id of a query (D19).
    QueryId |text| is_prefixed_id("qry_", text), "qry_ followed by 1 to 128 letters, digits, hyphens, dots or underscores";
    /// The id of a dispute (D28).
    DisputeId |text| is_prefixed_id("dsp_", text), "dsp_ followed by 1 to 128 letters, digits, hyphens, dots or underscores";
    /// The id of an item that a message refers to: a proposal, commitment, query, delegation or message.
    Reference |text| is_token(text, 136), "1 to 136 letters, digits, hyphens, dots or underscores";
    /// A currency code: three capital letters, as in ISO 4217.
    Currency is_currency, "three capital letters, such as USD";
}

macro_rules! reference_conversions {
    ($($name:ident)*) => {$(
        impl From<&$name> for Reference {
            fn from(id: &$name) -> Self {
                Self(id.0.clone())
            }
        }
    )*};
}
reference_conversions! { ProposalId CommitmentId QueryId }

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

fn is_prefixed_id(prefix: &str, text: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|rest| is_token(rest, 128))
}

fn is_currency(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn is_token(text: &str, max_length: usize) -> bool {
    (1..=max_length).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_uuid_contains_the_time_and_the_given_randomness() {
        let id =
            MessageId::generate(UnixMillis::new(0x0189_0a5d_ac96), &mut |bytes: &mut [u8]| bytes.fill(0xFF));
        assert_eq!(id.to_string(), "01890a5d-ac96-7fff-bfff-ffffffffffff");
        assert_eq!(MessageId::parse(&id.to_string()), Ok(id));
    }

    #[test]
    fn only_version_7_uuids_are_accepted() {
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
