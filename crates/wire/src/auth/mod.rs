//! Who is there: bearer tokens, kept as hashes, each with a role and what it may hear; passes, which stand for one
//! in a browser; attempts that failed.

mod attempts;
mod passes;
mod tokens;

pub(crate) use attempts::Attempts;
pub(crate) use passes::Pass;
pub use passes::Passes;
pub use tokens::{NewToken, TokenError, Tokens};
