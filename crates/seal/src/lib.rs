//! Code that both protocols share: JSON, timestamps, signatures and key files.
//!
//! - [`json`]: parses JSON (RFC 8259) without copying or losing anything, and writes JSON.
//! - [`Timestamp`]: an RFC 3339 timestamp that preserves its notation.
//! - [`UnixMillis`]: a point in time for comparison and arithmetic.
//! - [`canonicalize`]: RFC 8785 canonical JSON.
//! - [`Digest`]: SHA-256, used for hash chains.
//! - [`ed25519`] and [`es256`]: keys and signatures.
//! - [`Jwk`]: public keys as JSON.
//! - [`jws`]: signed tokens, compact and detached.
//! - [`dpop`]: proofs of possession, and the cache that detects replays.
//! - [`escape_controls`]: makes untrusted text safe for terminals and logs.
//! - [`describe_io_error`]: describes I/O errors for people.
//! - [`text_newtype!`]: implements the common methods of validated text newtypes.
//! - [`string_enum!`]: declares enums whose values have fixed string forms.
//! - [`defaults!`]: declares a struct with a default value next to each field.
//! - [`private_file`]: files that only their owner can read.
//! - [`AgentKeys`]: an agent's two keys in a private file.
//! - [`MacKey`]: a key that authenticates values issued by this program.
//!
//! This crate never reads the clock. The caller provides the current time.

mod action_digest;
mod agent_keys;
pub mod base64url;
mod canonical;
mod closest_name;
mod defaults;
mod digest;
pub mod dpop;
pub mod ed25519;
pub mod es256;
mod escape_controls;
mod hex;
mod io_error_text;
pub mod json;
mod jwk;
pub mod jws;
mod key_file;
mod mac;
pub mod private_file;
mod random;
mod string_enum;
mod text_newtype;
mod timestamp;
mod unix_millis;

pub use action_digest::{ActionError, action_digest};
pub use agent_keys::AgentKeys;
pub use canonical::{
    CanonicalError, CanonicalJson, CanonicalWriter, canonicalize, canonicalize_exact, format_number,
};
pub use closest_name::closest_name;
pub use digest::Digest;
pub use escape_controls::escape_controls;
pub use io_error_text::describe_io_error;
pub use jwk::{Jwk, JwkError};
pub use mac::MacKey;
pub use private_file::KeyFileError;
pub use random::{Random, SystemRandom};
pub use timestamp::{Timestamp, TimestampError};
pub use unix_millis::UnixMillis;
