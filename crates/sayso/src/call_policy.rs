//! How a model's tool calls are described, and what the person is asked.

use std::sync::Arc;
use std::time::Duration;

use crate::consent::{Action, Risk};

type TextFn<A> = Arc<dyn Fn(&A) -> String + Send + Sync>;

/// The settings for calls of one tool with arguments of type `A`.
#[derive(Clone)]
pub(crate) struct CallPolicy<A> {
    pub(crate) risk: Risk,
    pub(crate) irreversible: bool,
    pub(crate) says: Option<TextFn<A>>,
    pub(crate) consequence: Option<TextFn<A>>,
    pub(crate) answer_timeout: Option<Duration>,
}

impl<A> CallPolicy<A> {
    pub(crate) fn new(risk: Risk) -> Self {
        Self { risk, irreversible: false, says: None, consequence: None, answer_timeout: None }
    }

    pub(crate) fn summary(&self, tool: &str, json: &str, arguments: &A) -> String {
        self.says.as_ref().map_or_else(|| format!("Call {tool} with {json}."), |says| says(arguments))
    }

    /// Builds the question. `default_consequence` is used if the call is reversible and no consequence was set.
    pub(crate) fn action(&self, tool: &str, json: &str, arguments: &A, default_consequence: &str) -> Action {
        let consequence = match &self.consequence {
            Some(consequence) => consequence(arguments),
            None if self.irreversible => "It cannot be undone.".to_owned(),
            None => default_consequence.to_owned(),
        };
        let action = Action::new(tool, json).says(self.summary(tool, json, arguments));
        action
            .consequence(consequence)
            .risk(self.risk)
            .with_reversibility_and_timeout(self.irreversible, self.answer_timeout)
    }
}

/// Defines setters for a type with a [`CallPolicy`] in its field `policy`.
macro_rules! call_policy_setters {
    ($arguments:ty) => {
        setters! {
            /// Declares that calls cannot be undone.
            irreversible() => policy.irreversible = true;

            /// Sets the function that describes a call, for somebody who cannot see the screen.
            says(says: impl Fn(&$arguments) -> String + Send + Sync + 'static) => policy.says = Some(Arc::new(says));

            /// Sets the function that describes the consequence of a call, for the question.
            consequence(consequence: impl Fn(&$arguments) -> String + Send + Sync + 'static) => policy.consequence = Some(Arc::new(consequence));

            /// Sets how long the person has to answer. The default is five minutes.
            answer_timeout(timeout: Duration) => policy.answer_timeout = Some(timeout);
        }
    };
}
pub(crate) use call_policy_setters;
