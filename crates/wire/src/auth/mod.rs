//! Who is there: bearer tokens, kept as hashes, each with a role and what it may hear.

mod tokens;

pub use tokens::{NewToken, TokenError, Tokens};
