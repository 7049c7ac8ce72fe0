//! What did the person mean?

use std::time::Duration;

use aaep::message::Response;
use seal::json::Scribe;

use crate::consent::By;
use crate::error::{Error, Stop};
use crate::line::{Outcome, Status};
use crate::member::{self, Document};
use crate::redact::Cleaner;
use crate::session::Rendered;
use crate::words::{Words, variant};

/// A question for what was meant (§4.4.2).
///
/// ```
/// use sayso::{Question, Words};
/// let question = Question::new("Which Ben?").choice("ben_a", "Ben Adams").choice("ben_o", "Ben Okri");
/// let spanish_too = Question::new(Words::new("When?").in_language("es", "¿Cuándo?"))
///     .choice("now", Words::new("At once").in_language("es", "Ahora mismo"))
///     .choice("later", Words::new("Tomorrow").in_language("es", "Mañana"));
/// # let _ = (question, spanish_too);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing by itself"]
pub struct Question {
    says: Words,
    context: Option<Words>,
    default: Option<Words>,
    kinds: Vec<&'static str>,
    choices: Vec<(String, Words)>,
    timeout: Duration,
}

impl Question {
    /// Asks for an answer in words. The question can be in several lengths, and it and all that belongs to it in several languages.
    pub fn new(question: impl Into<Words>) -> Self {
        Self {
            says: question.into(),
            context: None,
            default: None,
            kinds: Vec::new(),
            choices: Vec::new(),
            timeout: Duration::from_mins(5),
        }
    }

    /// Asks for yes or no.
    pub fn yes_or_no(mut self) -> Self {
        self.kinds.push("yes_no");
        self
    }

    /// Asks for a number.
    pub fn number(mut self) -> Self {
        self.kinds.push("numeric");
        self
    }

    /// An answer to choose: what comes back, and what the person is told. What is given in one language only, like a name, is the
    /// same in all languages of the question.
    pub fn choice(mut self, value: impl Into<String>, label: impl Into<Words>) -> Self {
        self.choices.push((value.into(), label.into()));
        self
    }

    /// Takes an answer in words, too, where there are choices or another kind of answer.
    pub fn or_in_words(mut self) -> Self {
        self.kinds.push("freetext");
        self
    }

    setters! {
        /// Why the agent asks.
        because(context: impl Into<Words>) => context = Some(context.into());

        /// What holds if nobody answers: a text, or the value of a choice.
        default_response(response: impl Into<Words>) => default = Some(response.into());

        /// How long the person has, in whole seconds; five minutes if nothing is said.
        within(time: Duration) => timeout = time;
    }

    pub(crate) fn body(&self, cleaner: &Cleaner, options: &Rendered) -> Document {
        member::object(|out| {
            let question = self.says.cleaned(cleaner);
            question.write_as(out, "question");
            question.write(out);
            self.says.write_beside_optional(out, cleaner, "context", self.context.as_ref());
            self.says.write_beside_optional(out, cleaner, "default_response", self.default.as_ref());
            member::count(out, "timeout_seconds", self.timeout.as_secs());
            let chosen = (!self.choices.is_empty()).then_some("multiple_choice");
            member::texts(out, "accepted_response_kinds", self.kinds.iter().copied().chain(chosen));
            if chosen.is_some() {
                self.write_choices(out, cleaner, "choices", |label| Some(label.normal()));
                for tag in self.says.languages() {
                    self.write_choices(out, cleaner, &variant("choices", tag), |label| label.to(tag));
                }
            }
            options.write_members(out);
        })
    }

    /// The choices in one language, if all of them are in it.
    fn write_choices(
        &self,
        out: &mut Scribe,
        cleaner: &Cleaner,
        name: &str,
        to: impl Fn(&Words) -> Option<&str>,
    ) {
        if self.choices.iter().any(|(_, label)| to(label).is_none()) {
            return;
        }
        out.key(name).array(|out| {
            for (value, label) in &self.choices {
                out.object(|out| {
                    member::text(out, "value", value);
                    cleaner.write(out, "label", to(label).unwrap_or_default());
                });
            }
        });
    }
}

/// What the person meant.
///
/// ```
/// # testing::example!(hub, session, {
/// use sayso::{Clarified, Question};
/// match session.clarify(Question::new("Which Ben?")).await? {
///     Clarified::Text(name) => println!("{name} it is."),
///     Clarified::Nothing(by) => println!("Nobody said which: {by:?}."),
///     other => println!("That is no name: {other:?}."),
/// }
/// # session.cancel("Nothing was sent.").await?;
/// # });
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Clarified {
    /// In words, or the value of the choice.
    Text(String),
    /// Yes or no.
    YesNo(bool),
    /// A number.
    Number(f64),
    /// Nothing was answered.
    Nothing(By),
}

impl Clarified {
    pub(crate) fn of(outcome: Outcome) -> Result<Self, Error> {
        if outcome.status == Status::Stopped {
            return Err(Error::Stopped(Stop::Person));
        }
        Ok(match outcome.response {
            Some(Response::Text(text)) => Self::Text(text),
            Some(Response::YesNo(yes)) => Self::YesNo(yes),
            Some(Response::Number(number)) => Self::Number(number),
            None => Self::Nothing(outcome.by),
        })
    }
}

#[cfg(all(test, feature = "client"))]
mod tests {
    use super::Clarified;
    use crate::consent::By;
    use crate::error::{Error, Stop};
    use crate::line::Outcome;

    #[test]
    fn what_was_meant_is_what_was_said_and_nothing_else() {
        for (outcome, meant) in [
            (r#"{"status":"resolved","response":"Ben","by":"reply"}"#, Clarified::Text("Ben".to_owned())),
            (r#"{"status":"resolved","response":true,"by":"reply"}"#, Clarified::YesNo(true)),
            (r#"{"status":"resolved","response":2.5,"by":"reply"}"#, Clarified::Number(2.5)),
            (r#"{"status":"resolved","response":null,"by":"reply"}"#, Clarified::Nothing(By::Reply)),
            (r#"{"status":"resolved","response":["Ben"],"by":"reply"}"#, Clarified::Nothing(By::Reply)),
            (r#"{"status":"resolved","by":"timeout"}"#, Clarified::Nothing(By::Timeout)),
        ] {
            assert_eq!(Clarified::of(Outcome::parse(outcome)), Ok(meant), "{outcome}");
        }
        let stopped = Clarified::of(Outcome::parse(r#"{"status":"stopped","response":"Ben","by":"reply"}"#));
        assert_eq!(stopped, Err(Error::Stopped(Stop::Person)));
    }
}
