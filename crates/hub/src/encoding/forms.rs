//! The forms of types that serde cannot derive.

use std::sync::Arc;

use aaep::SubscriptionId;
use aaep::consent::{ConsentMessage, IgnoreReason, QuestionAnswer, Receipt};
use aaep::event::Decision;
use aaep::message::{ClarificationResponse, SubscriptionRenegotiate};
use aaep::rule::{Finding, Rule, Severity};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{TextForm, text_form};
use crate::Scope;
use crate::command::{QuestionOutcome, RequestBody, SubscriberMessage};

/// Implements the form of an error: its text, which becomes the variant `Forwarded`.
macro_rules! error_as_text {
    ($($error:ty),*) => {$(
        impl serde::Serialize for $error {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $error {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <String as serde::Deserialize>::deserialize(deserializer).map(Self::Forwarded)
            }
        }
    )*};
}
pub(crate) use error_as_text;

impl Serialize for RequestBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.source())
    }
}

impl<'de> Deserialize<'de> for RequestBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::Text)
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.entries())
    }
}

impl<'de> Deserialize<'de> for Scope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut scope = Self::default();
        for entry in Vec::<String>::deserialize(deserializer)? {
            // An entry that is ignored would make the scope larger.
            scope.add(&entry).map_err(D::Error::custom)?;
        }
        Ok(scope)
    }
}

#[derive(Serialize, Deserialize)]
enum SubscriberMessageForm {
    Renegotiate(#[serde(with = "text_form")] Box<SubscriptionRenegotiate>),
    Close(#[serde(with = "text_form")] SubscriptionId),
    Consent(#[serde(with = "text_form")] Box<ConsentMessage>),
    Ignored {
        code: String,
        #[serde(default)]
        findings: Vec<FindingForm>,
    },
}

impl Serialize for SubscriberMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = match self.clone() {
            Self::Renegotiate(message) => SubscriberMessageForm::Renegotiate(message),
            Self::Close(id) => SubscriberMessageForm::Close(id),
            Self::Consent(Ok(message)) => SubscriberMessageForm::Consent(message),
            Self::Consent(Err(reason)) => {
                let findings = match &reason {
                    IgnoreReason::Malformed(findings) => findings.iter().map(FindingForm::from).collect(),
                    _ => Vec::new(),
                };
                SubscriberMessageForm::Ignored { code: reason.as_str().to_owned(), findings }
            }
        };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SubscriberMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match SubscriberMessageForm::deserialize(deserializer)? {
            SubscriberMessageForm::Renegotiate(message) => Self::Renegotiate(message),
            SubscriberMessageForm::Close(id) => Self::Close(id),
            SubscriberMessageForm::Consent(message) => Self::Consent(Ok(message)),
            // A message that was just parsed is ignored for no other reason.
            SubscriberMessageForm::Ignored { code, findings } => Self::Consent(Err(match &*code {
                "not_json" => IgnoreReason::NotJson,
                "not_a_reply" => IgnoreReason::NotAReply,
                _ => IgnoreReason::Malformed(findings.into_iter().filter_map(FindingForm::into).collect()),
            })),
        })
    }
}

#[derive(Serialize, Deserialize)]
struct FindingForm {
    rule: String,
    severity: String,
    pointer: String,
    actual: String,
}

impl From<&Finding> for FindingForm {
    fn from(finding: &Finding) -> Self {
        Self {
            rule: finding.rule.id().to_owned(),
            severity: finding.severity.as_str().to_owned(),
            pointer: finding.pointer.clone(),
            actual: finding.actual.clone(),
        }
    }
}

impl FindingForm {
    /// Returns the finding, or `None` if this version does not know the rule.
    fn into(self) -> Option<Finding> {
        Some(Finding {
            rule: Rule::find(&self.rule)?,
            severity: Severity::parse(&self.severity)?,
            pointer: self.pointer,
            actual: self.actual,
        })
    }
}

/// For a list of findings.
pub(crate) mod findings {
    use super::{Finding, FindingForm};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(findings: &[Finding], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(findings.iter().map(FindingForm::from))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Finding>, D::Error> {
        let forms = Vec::<FindingForm>::deserialize(deserializer)?;
        Ok(forms.into_iter().filter_map(FindingForm::into).collect())
    }
}

#[derive(Serialize, Deserialize)]
enum AnswerForm {
    Decision(String),
    Text(String),
    YesNo(bool),
    Number(f64),
    Unavailable,
}

#[derive(Serialize, Deserialize)]
struct QuestionOutcomeForm {
    answer: AnswerForm,
    by: String,
    #[serde(default)]
    receipt: Option<String>,
    #[serde(default)]
    receipt_signature: Option<Arc<str>>,
}

impl Serialize for QuestionOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let answer = match &self.answer {
            QuestionAnswer::Decision(decision) => AnswerForm::Decision(decision.as_str().to_owned()),
            QuestionAnswer::Response(ClarificationResponse::Text(text)) => AnswerForm::Text(text.clone()),
            QuestionAnswer::Response(ClarificationResponse::YesNo(yes)) => AnswerForm::YesNo(*yes),
            QuestionAnswer::Response(ClarificationResponse::Number(number)) => AnswerForm::Number(*number),
            _ => AnswerForm::Unavailable,
        };
        let form = QuestionOutcomeForm {
            answer,
            by: self.by.to_text().into_owned(),
            receipt: self.receipt.as_ref().map(|receipt| receipt.to_json().to_owned()),
            receipt_signature: self.receipt_signature.clone(),
        };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for QuestionOutcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = QuestionOutcomeForm::deserialize(deserializer)?;
        let answer = match form.answer {
            AnswerForm::Decision(decision) => QuestionAnswer::Decision(Decision::parse(&decision)),
            AnswerForm::Text(text) => QuestionAnswer::Response(ClarificationResponse::Text(text)),
            AnswerForm::YesNo(yes) => QuestionAnswer::Response(ClarificationResponse::YesNo(yes)),
            AnswerForm::Number(number) => QuestionAnswer::Response(ClarificationResponse::Number(number)),
            AnswerForm::Unavailable => QuestionAnswer::Unavailable,
        };
        let unreadable = || D::Error::custom("the outcome of a question cannot be read");
        let receipt = form.receipt.map(|text| Receipt::parse(&text).ok_or_else(unreadable)).transpose()?;
        Ok(Self {
            answer,
            by: TextForm::from_text(&form.by).ok_or_else(unreadable)?,
            receipt: receipt.map(Arc::new),
            receipt_signature: form.receipt_signature,
        })
    }
}
