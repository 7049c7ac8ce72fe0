//! The one call that a yes allows.

use std::fmt;

use aaep::SessionId;
use seal::Digest;

use super::Action;
use super::action::digest;
use crate::error::{Error, NotGranted};

/// A person's yes to one exact call. It owns the call; it is spent by [`Session::call`](crate::Session::call) or
/// [`Session::begin`](crate::Session::begin), and with it goes. There is no other way to have one than to ask:
///
/// ```compile_fail,E0451
/// let forged = sayso::Granted { session: unreachable!() };
/// ```
///
/// nor to have it twice:
///
/// ```compile_fail,E0599
/// fn twice(granted: sayso::Granted) -> (sayso::Granted, sayso::Granted) {
///     (granted.clone(), granted)
/// }
/// ```
///
/// It is asked for and spent:
///
/// ```
/// # testing::heard!(hub, session, {
/// # let action = sending();
/// use sayso::Answer;
/// // Somebody listens here, and says yes.
/// let Answer::Granted(granted) = session.ask(action).await? else { panic!("it is no yes") };
/// let sent = session.call(granted, async |arguments| Ok::<_, std::io::Error>(arguments)).await;
/// assert_eq!(sent.unwrap(), r#"{"to":"Ben"}"#);
/// # session.finish("It is sent.").await?;
/// # });
/// ```
#[must_use = "a consent that is not spent does nothing"]
pub struct Granted {
    pub(super) session: SessionId,
    pub(super) digest: Digest,
    pub(super) action: Box<Action>,
}

impl Granted {
    /// The tool that may be called.
    pub fn tool(&self) -> &str {
        &self.action.tool
    }

    /// The arguments with which it may be called, as JSON.
    pub fn arguments(&self) -> &str {
        &self.action.arguments
    }

    /// Itself, if it is for exactly this call; else it is gone, for somebody is about to do something that nobody allowed.
    ///
    /// ```
    /// # testing::heard!(hub, session, {
    /// # let granted = granted(&session).await;
    /// use sayso::{Error, NotGranted};
    /// let granted = granted.only_for("send", r#"{"to":"Ben"}"#)?;
    /// let other = granted.only_for("send", r#"{"to":"Eve"}"#);
    /// assert_eq!(other.unwrap_err(), Error::NotGranted(NotGranted::OtherAction));
    /// # });
    /// ```
    pub fn only_for(self, tool: &str, arguments: &str) -> Result<Self, Error> {
        if digest(tool, arguments)? == self.digest {
            Ok(self)
        } else {
            Err(Error::NotGranted(NotGranted::OtherAction))
        }
    }

    /// The call that it was given for, if this is the session that it was given in.
    pub(crate) fn spend(self, session: &SessionId) -> Result<Action, Error> {
        if self.session != *session {
            return Err(Error::NotGranted(NotGranted::OtherSession));
        }
        Ok(*self.action)
    }
}

impl fmt::Debug for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "consent to {} in {}", self.action.tool, self.session)
    }
}
