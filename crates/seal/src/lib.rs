//! What both protocols stand on: JSON read and written byte for byte, points in time, and proof.
//!
//! - [`json`]: RFC 8259 read without copying, and nothing lost.
//! - [`Timestamp`]: RFC 3339, as it was written; [`UnixMillis`]: a point in time for comparing and counting.
//! - [`canonical`]: RFC 8785, one text for one value.
//! - [`Digest`]: SHA-256, the links of chains.
//! - [`ed25519`] and [`es256`]: keys and signatures; [`Jwk`]: public keys as JSON.
//! - [`jws`]: signed tokens, compact and detached.
//! - [`dpop`]: proofs of possession, and the memory that lets each be used once.
//! - [`harmless`]: text from strangers, fit for terminals and logs; [`in_words`]: what the system says, fit for people.
//! - [`text_newtype!`]: what every name that is a validated text has; [`word_enum!`]: an enumeration of words;
//!   [`defaults!`]: a struct with a default beside each field.
//! - [`private`]: files that only their owner can read.
//! - [`Keys`]: an agent's keys, in a file that only its owner can read.
//! - [`MacKey`]: to know again what we have given out.
//!
//! No clock is read here; time comes in as an argument.

pub mod base64url;
mod canonical;
mod defaults;
mod digest;
pub mod dpop;
pub mod ed25519;
pub mod es256;
mod harmless;
mod hex;
pub mod json;
mod jwk;
pub mod jws;
mod key_file;
mod keys;
mod mac;
pub mod private;
mod random;
mod text_newtype;
mod timestamp;
mod unix_millis;
mod word_enum;
mod words;

pub use canonical::{Canonical, Form, NotCanonical, canonical, number_text};
pub use digest::Digest;
pub use harmless::harmless;
pub use jwk::{Jwk, JwkError};
pub use keys::Keys;
pub use mac::MacKey;
pub use private::KeyFileError;
pub use random::{Random, SystemRandom};
pub use timestamp::{Timestamp, TimestampError};
pub use unix_millis::UnixMillis;
pub use words::in_words;
