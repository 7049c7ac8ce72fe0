//! What is said of a call that a model wants, and how the person is asked for it.

use std::sync::Arc;
use std::time::Duration;

use crate::consent::{Action, Risk};

type Say<A> = Arc<dyn Fn(&A) -> String + Send + Sync>;

/// How calls of one tool, with arguments of type `A`, are put to the person.
#[derive(Clone)]
pub(crate) struct CallPolicy<A> {
    pub(crate) risk: Risk,
    pub(crate) irreversible: bool,
    pub(crate) says: Option<Say<A>>,
    pub(crate) consequence: Option<Say<A>>,
    pub(crate) answer_time: Option<Duration>,
}

impl<A> CallPolicy<A> {
    pub(crate) fn new(risk: Risk) -> Self {
        Self { risk, irreversible: false, says: None, consequence: None, answer_time: None }
    }

    pub(crate) fn words(&self, tool: &str, written: &str, arguments: &A) -> String {
        self.says.as_ref().map_or_else(|| format!("Call {tool} with {written}."), |says| says(arguments))
    }

    /// The question; `harm` is its consequence where nothing else is said.
    pub(crate) fn action(&self, tool: &str, written: &str, arguments: &A, harm: &str) -> Action {
        let consequence = match &self.consequence {
            Some(consequence) => consequence(arguments),
            None if self.irreversible => "It cannot be undone.".to_owned(),
            None => harm.to_owned(),
        };
        let action = Action::new(tool, written).says(self.words(tool, written, arguments));
        action.consequence(consequence).risk(self.risk).limited(self.irreversible, self.answer_time)
    }
}

/// Setters of everything that has a [`CallPolicy`] in its field `policy`.
macro_rules! call_policy {
    ($arguments:ty) => {
        setters! {
            /// It can never be undone.
            irreversible() => policy.irreversible = true;

            /// What a call does, for somebody who sees nothing.
            says(says: impl Fn(&$arguments) -> String + Send + Sync + 'static) => policy.says = Some(Arc::new(says));

            /// What comes of a call, for somebody who is asked for it.
            consequence(consequence: impl Fn(&$arguments) -> String + Send + Sync + 'static) => policy.consequence = Some(Arc::new(consequence));

            /// How long a person has to answer; five minutes if nothing is said.
            answer_within(time: Duration) => policy.answer_time = Some(time);
        }
    };
}
pub(crate) use call_policy;
