//! The consent to one call.

use std::fmt;

use aaep::SessionId;
use seal::Digest;

use super::action::digest;
use super::receipt::receipt_getters;
use super::{Action, SignedReceipt};
use crate::error::{ConsentMismatch, Error};

/// A person's consent to one exact call. It owns the call, and [`Session::call`](crate::Session::call) or
/// [`Session::start_call`](crate::Session::start_call) spends it. The only way to get one is to ask:
///
/// ```compile_fail,E0451
/// let forged = sayso::Granted { session: unreachable!() };
/// ```
///
/// It cannot be copied:
///
/// ```compile_fail,E0599
/// fn twice(granted: sayso::Granted) -> (sayso::Granted, sayso::Granted) {
///     (granted.clone(), granted)
/// }
/// ```
///
/// Asking for consent and spending it:
///
/// ```
/// # testing::example_with_listener!(hub, session, {
/// # let action = sample_action();
/// use sayso::Answer;
/// // A listener is connected here and says yes.
/// let Answer::Granted(granted) = session.ask(action).await? else { panic!("not granted") };
/// let sent = session.call(granted, async |arguments| Ok::<_, std::io::Error>(arguments)).await;
/// assert_eq!(sent.unwrap(), r#"{"to":"Ben"}"#);
/// # session.finish("It is sent.").await?;
/// # });
/// ```
#[must_use = "a grant that is not spent does nothing"]
pub struct Granted {
    pub(super) session: SessionId,
    pub(super) digest: Digest,
    pub(super) action: Box<Action>,
    pub(super) receipt: Option<Box<SignedReceipt>>,
}

impl Granted {
    /// Returns the tool that may be called.
    pub fn tool(&self) -> &str {
        &self.action.tool
    }

    /// Returns the arguments with which it may be called, as JSON.
    pub fn arguments(&self) -> &str {
        &self.action.arguments
    }

    receipt_getters!();

    /// Returns the consent if it covers exactly this call. Otherwise the consent is dropped, because the call was not allowed.
    ///
    /// ```
    /// # testing::example_with_listener!(hub, session, {
    /// # let granted = ask_and_expect_granted(&session).await;
    /// use sayso::{Error, ConsentMismatch};
    /// let granted = granted.verify_call("send", r#"{"to":"Ben"}"#)?;
    /// let other = granted.verify_call("send", r#"{"to":"Eve"}"#);
    /// assert_eq!(other.unwrap_err(), Error::ConsentMismatch(ConsentMismatch::OtherAction));
    /// # });
    /// ```
    pub fn verify_call(self, tool: &str, arguments: &str) -> Result<Self, Error> {
        if digest(tool, arguments)? == self.digest {
            Ok(self)
        } else {
            Err(Error::ConsentMismatch(ConsentMismatch::OtherAction))
        }
    }

    /// Returns the allowed call, if this is the session in which the consent was given.
    pub(crate) fn spend(self, session: &SessionId) -> Result<Action, Error> {
        if self.session != *session {
            return Err(Error::ConsentMismatch(ConsentMismatch::OtherSession));
        }
        Ok(*self.action)
    }
}

impl fmt::Debug for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "consent to {} in {}", self.action.tool, self.session)
    }
}
