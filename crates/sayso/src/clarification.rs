//! Questions about what the person wants.

use std::time::Duration;

use aaep::ToolCallId;
use aaep::message::ClarificationResponse;
use seal::json::TapeWriter;

use crate::consent::ResolvedBy;
use crate::error::{Error, StopReason};
use crate::localized_text::{LocalizedText, localized_member_name};
use crate::member::{self, Document};
use crate::redact::CountingRedactor;
use crate::session::RenderedOptions;
use crate::transport::{OutcomeStatus, ReplyOutcome};

/// A question about what the person wants (§4.4.2).
///
/// ```
/// use sayso::{ClarificationRequest, LocalizedText};
/// let question = ClarificationRequest::new("Which Ben?").choice("ben_a", "Ben Adams").choice("ben_o", "Ben Okri");
/// let bilingual = ClarificationRequest::new(LocalizedText::new("When?").in_language("es", "¿Cuándo?"))
///     .choice("now", LocalizedText::new("At once").in_language("es", "Ahora mismo"))
///     .choice("later", LocalizedText::new("Tomorrow").in_language("es", "Mañana"));
/// # let _ = (question, bilingual);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing by itself"]
pub struct ClarificationRequest {
    question: LocalizedText,
    context: Option<LocalizedText>,
    default_response: Option<LocalizedText>,
    accepted_kinds: Vec<&'static str>,
    choices: Vec<(String, LocalizedText)>,
    timeout: Duration,
    /// The tool, the arguments as JSON and the call's id.
    call: Option<(String, String, Option<ToolCallId>)>,
}

impl ClarificationRequest {
    /// Creates a question that accepts free text, unless choices or other kinds of answers are added. Besides its normal form, the
    /// text can have a terse and a detailed one. The question and its parts can be in several languages.
    pub fn new(question: impl Into<LocalizedText>) -> Self {
        Self {
            question: question.into(),
            context: None,
            default_response: None,
            accepted_kinds: Vec::new(),
            choices: Vec::new(),
            timeout: Duration::from_mins(5),
            call: None,
        }
    }

    /// Accepts yes or no.
    pub fn accept_yes_no(mut self) -> Self {
        self.accepted_kinds.push("yes_no");
        self
    }

    /// Accepts a number.
    pub fn accept_number(mut self) -> Self {
        self.accepted_kinds.push("numeric");
        self
    }

    /// Adds a choice: the value that is returned, and the label that the person hears. A label in one language, such as a name, is
    /// used for all languages of the question.
    pub fn choice(mut self, value: impl Into<String>, label: impl Into<LocalizedText>) -> Self {
        self.choices.push((value.into(), label.into()));
        self
    }

    /// Names the tool call that the question is about, with its arguments as JSON. Listeners can hear them, and the receipt
    /// contains their digest. The answer still permits no dangerous call; only an [`Action`](crate::Action) does.
    pub fn about_call(
        mut self,
        tool: impl Into<String>,
        arguments: impl Into<String>,
        call_id: &str,
    ) -> Self {
        self.call = Some((tool.into(), arguments.into(), ToolCallId::from_foreign(call_id)));
        self
    }

    /// Accepts free text in addition to choices or other kinds of answers.
    pub fn accept_free_text(mut self) -> Self {
        self.accepted_kinds.push("freetext");
        self
    }

    setters! {
        /// Sets the text that says why the agent asks.
        context(context: impl Into<LocalizedText>) => context = Some(context.into());

        /// Sets the response that counts if nobody answers: free text, or the value of a choice.
        default_response(response: impl Into<LocalizedText>) => default_response = Some(response.into());

        /// Sets how long the person has to answer, in whole seconds. The default is five minutes.
        answer_timeout(timeout: Duration) => timeout = timeout;
    }

    pub(crate) fn to_request_body(&self, redactor: &CountingRedactor, options: &RenderedOptions) -> Document {
        member::object(|out| {
            let question = self.question.redacted(redactor);
            question.write_as(out, "question");
            question.write_summaries(out);
            self.question.write_optional_companion_text(out, redactor, "context", self.context.as_ref());
            self.question.write_optional_companion_text(
                out,
                redactor,
                "default_response",
                self.default_response.as_ref(),
            );
            member::count(out, "timeout_seconds", self.timeout.as_secs());
            let multiple_choice = (!self.choices.is_empty()).then_some("multiple_choice");
            member::texts(
                out,
                "accepted_response_kinds",
                self.accepted_kinds.iter().copied().chain(multiple_choice),
            );
            if multiple_choice.is_some() {
                self.write_choices(out, redactor, "choices", |label| Some(label.normal()));
                for tag in self.question.languages() {
                    self.write_choices(out, redactor, &localized_member_name("choices", tag), |label| {
                        label.text_for_language(tag)
                    });
                }
            }
            if let Some((tool, arguments, call_id)) = &self.call {
                member::text(out, "tool", tool);
                member::optional_text(out, "tool_call_id", call_id.as_ref().map(ToolCallId::as_str));
                out.key("arguments").raw(arguments);
            }
            options.write_members(out);
        })
    }

    /// Writes the choices in one language, if all of them are available in it.
    fn write_choices(
        &self,
        out: &mut TapeWriter,
        redactor: &CountingRedactor,
        name: &str,
        text_of: impl Fn(&LocalizedText) -> Option<&str>,
    ) {
        if self.choices.iter().any(|(_, label)| text_of(label).is_none()) {
            return;
        }
        out.key(name).array(|out| {
            for (value, label) in &self.choices {
                out.object(|out| {
                    member::text(out, "value", value);
                    redactor.write(out, "label", text_of(label).unwrap_or_default());
                });
            }
        });
    }
}

/// The person's answer to a clarification.
///
/// ```
/// # testing::run_example!(hub, session, {
/// use sayso::{ClarificationAnswer, ClarificationRequest};
/// match session.clarify(ClarificationRequest::new("Which Ben?")).await? {
///     ClarificationAnswer::Text(name) => println!("Paying {name}."),
///     ClarificationAnswer::Unanswered(by) => println!("There was no answer: {by:?}."),
///     other => println!("This is not a name: {other:?}."),
/// }
/// # session.cancel("Nothing was sent.").await?;
/// # });
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClarificationAnswer {
    /// Free text, or the value of a choice.
    Text(String),
    /// Yes or no.
    YesNo(bool),
    /// A number.
    Number(f64),
    /// There was no answer.
    Unanswered(ResolvedBy),
}

impl ClarificationAnswer {
    pub(crate) fn from_outcome(outcome: ReplyOutcome) -> Result<Self, Error> {
        if outcome.status == OutcomeStatus::Stopped {
            return Err(Error::Stopped(StopReason::Person));
        }
        Ok(match outcome.response {
            Some(ClarificationResponse::Text(text)) => Self::Text(text),
            Some(ClarificationResponse::YesNo(is_yes)) => Self::YesNo(is_yes),
            Some(ClarificationResponse::Number(number)) => Self::Number(number),
            None => Self::Unanswered(outcome.by),
        })
    }
}

#[cfg(all(test, feature = "client"))]
mod tests {
    use super::ClarificationAnswer;
    use crate::consent::ResolvedBy;
    use crate::error::{Error, StopReason};
    use crate::transport::ReplyOutcome;

    #[test]
    fn an_answer_keeps_its_type_and_anything_else_is_unanswered() {
        for (outcome, expected) in [
            (
                r#"{"status":"resolved","response":"Ben","by":"reply"}"#,
                ClarificationAnswer::Text("Ben".to_owned()),
            ),
            (r#"{"status":"resolved","response":true,"by":"reply"}"#, ClarificationAnswer::YesNo(true)),
            (r#"{"status":"resolved","response":2.5,"by":"reply"}"#, ClarificationAnswer::Number(2.5)),
            (
                r#"{"status":"resolved","response":null,"by":"reply"}"#,
                ClarificationAnswer::Unanswered(ResolvedBy::Reply),
            ),
            (
                r#"{"status":"resolved","response":["Ben"],"by":"reply"}"#,
                ClarificationAnswer::Unanswered(ResolvedBy::Reply),
            ),
            (r#"{"status":"resolved","by":"timeout"}"#, ClarificationAnswer::Unanswered(ResolvedBy::Timeout)),
        ] {
            assert_eq!(
                ClarificationAnswer::from_outcome(ReplyOutcome::parse(outcome)),
                Ok(expected),
                "{outcome}"
            );
        }
        let stopped = ClarificationAnswer::from_outcome(ReplyOutcome::parse(
            r#"{"status":"stopped","response":"Ben","by":"reply"}"#,
        ));
        assert_eq!(stopped, Err(Error::Stopped(StopReason::Person)));
    }
}
