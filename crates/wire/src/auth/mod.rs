//! Authentication: bearer tokens, stored as hashes, each with a role and a scope; session cookies for
//! browsers; and a limit on failed sign-ins.

mod browser_sessions;
mod sign_in_limiter;
mod token_file;
mod tokens;

pub use browser_sessions::BrowserSessions;
pub(crate) use browser_sessions::SessionCookie;
pub(crate) use sign_in_limiter::SignInLimiter;
pub use tokens::{NewToken, TokenEntry, TokenError, TokenProblem, Tokens};
