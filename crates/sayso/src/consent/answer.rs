//! What is answered.

use std::fmt;

use super::Granted;

/// What a person answered.
///
/// ```
/// # testing::example!(hub, session, {
/// use sayso::{Action, Answer};
/// let action = Action::new("send", r#"{"to":"Ben"}"#).says("Send 5 euro to Ben.").consequence("They are gone at once.");
/// match session.ask(action).await? {
///     Answer::Granted(granted) => println!("{} may be called.", granted.tool()),
///     // Nobody listens here, and that means no.
///     Answer::Refused(why) => assert_eq!(why.to_string(), "nobody could be asked"),
/// }
/// # session.cancel("Nothing was sent.").await?;
/// # });
/// ```
#[derive(Debug)]
#[must_use = "nothing was done yet"]
pub enum Answer {
    /// Yes, to exactly this call.
    Granted(Granted),
    /// No, or nothing; which means no.
    Refused(Refused),
}

/// Why something may not be done.
///
/// ```
/// use sayso::{By, Refused};
/// assert_eq!(Refused { by: By::Reply }.to_string(), "the person refused");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// How it came about.
    pub by: By,
}

/// How an answer came about.
///
/// ```
/// use sayso::By;
///
/// /// Whether it makes sense to ask once more.
/// fn later(by: By) -> bool {
///     matches!(by, By::Timeout | By::Closure | By::Unreachable)
/// }
/// assert!(!later(By::Reply));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum By {
    /// A person said so.
    Reply,
    /// Nobody answered in time.
    Timeout,
    /// Those who could have answered left.
    Closure,
    /// Nobody listens who could have been asked.
    Unreachable,
    /// The session ended before.
    Cancelled,
    /// In a way that this version does not know.
    Other,
}

impl By {
    /// From the hub's word for it.
    #[cfg(feature = "client")]
    pub(crate) fn of(word: &str) -> Self {
        aaep::consent::By::parse(word).map_or(Self::Other, Self::from)
    }
}

impl From<aaep::consent::By> for By {
    fn from(by: aaep::consent::By) -> Self {
        use aaep::consent::By as HubBy;
        match by {
            HubBy::Reply => Self::Reply,
            HubBy::Timeout => Self::Timeout,
            HubBy::Closure => Self::Closure,
            HubBy::Unreachable => Self::Unreachable,
            HubBy::Cancelled => Self::Cancelled,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.by {
            By::Reply => "the person refused",
            By::Timeout => "nobody answered in time",
            By::Closure => "those who could have answered left",
            By::Unreachable => "nobody could be asked",
            By::Cancelled => "the session ended before the answer",
            By::Other => "it was refused",
        })
    }
}

/// A refusal in plain words for a model that wanted something.
#[cfg(any(feature = "openai", feature = "rig"))]
pub(crate) fn told_to_model(why: &str) -> String {
    let mut why = why.to_owned();
    if let Some(first) = why.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    format!("{why}. The tool was not run. Do not call it again for this unless the person asks for it.")
}
