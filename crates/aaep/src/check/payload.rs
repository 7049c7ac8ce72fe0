//! Payloads: what the members of one core event mean for each other (chapter 4, §6.4.1).

use std::borrow::Cow;

use super::event::{EventCheck, weak_id};
use super::path::Path;
use crate::event::EventType;
use crate::json::{Kind, Value};
use crate::rule::{self, Findings};

impl<'d> EventCheck<'_, 'd> {
    /// What the payload's members mean for each other.
    pub(super) fn payload(&self, core: &EventType, findings: &mut Findings) {
        match core {
            EventType::ProgressUpdated => self.progress(findings),
            EventType::ToolCompleted => {
                let failed = matches!(self.text("status").as_deref(), Some("error" | "timeout"));
                if failed && self.named("error_message").is_none() {
                    findings.warn(rule::ERROR_MESSAGE, String::new(), "error_message is missing".to_owned());
                }
            }
            EventType::OutputStreaming => self.output(findings),
            EventType::AwaitingConfirmation => self.confirmation(findings),
            EventType::AwaitingClarification => {
                weak_id(
                    self.named("reply_token"),
                    rule::REPLY_TOKEN_RANDOM,
                    "/reply_token",
                    "rpl_",
                    findings,
                );
                let mut kinds =
                    self.named("accepted_response_kinds").into_iter().flat_map(|kinds| kinds.items());
                if kinds.any(|kind| kind.text().is_some_and(|text| text == "multiple_choice"))
                    && self.named("choices").is_none()
                {
                    findings.push(rule::CHOICES, String::new(), "choices is missing".to_owned());
                }
                self.choices(findings);
            }
            _ => {}
        }
    }

    fn named(&self, name: &str) -> Option<Value<'d>> {
        self.places.named(self.table, name)
    }

    fn text(&self, name: &str) -> Option<Cow<'d, str>> {
        self.places.text(self.table, name)
    }

    /// Whoever chooses in another language chooses from the same.
    fn choices(&self, findings: &mut Findings) {
        fn values<'d>(list: &Value<'d>) -> Vec<Option<Cow<'d, str>>> {
            list.items().map(|choice| choice.member("value")?.text()).collect()
        }
        for (key, list) in self.places.root().members() {
            let name = key.text().unwrap_or_default();
            let is_variant = || self.variant_of(&name).is_some_and(|field| field.name == "choices");
            if !name.starts_with("choices_") || !is_variant() {
                continue;
            }
            if self.named("choices").is_none_or(|own| values(&own) != values(&list)) {
                let found = "its values are not those of choices, in their order".to_owned();
                findings.push(rule::CHOICES, Path::Member(&Path::Root, &name).pointer(), found);
            }
        }
    }

    fn progress(&self, findings: &mut Findings) {
        let Some(progress) = self.named("progress").filter(|progress| progress.kind() == Kind::Object) else {
            return;
        };
        let (mut says, mut step, mut total) = (false, None, None);
        for (key, value) in progress.members() {
            let known = key.text().unwrap_or_default();
            says |= matches!(&*known, "percent" | "step" | "total_steps" | "description");
            match &*known {
                "step" => step = value.number().and_then(|number| number.as_i64()),
                "total_steps" => total = value.number().and_then(|number| number.as_i64()),
                _ => {}
            }
        }
        if !says {
            findings.push(rule::PROGRESS_SAYS, "/progress".to_owned(), String::new());
        }
        if let (Some(step), Some(total)) = (step, total)
            && step > total
        {
            findings.push(rule::STEP_ORDER, "/progress/step".to_owned(), format!("found {step} of {total}"));
        }
    }

    fn output(&self, findings: &mut Findings) {
        let unfinished = self.named("complete").and_then(|complete| complete.boolean()) == Some(false);
        if unfinished
            && self.named("coalesce_hint").is_none()
            && self.text("chunk").is_some_and(|chunk| !ends_a_sentence(&chunk))
        {
            findings.push(rule::OUTPUT_HINTED, String::new(), "coalesce_hint is missing".to_owned());
        }
    }

    /// The safety of a question: what silence means, and whether it says one thing (§6.4.1, C-B5).
    fn confirmation(&self, findings: &mut Findings) {
        weak_id(self.named("reply_token"), rule::REPLY_TOKEN_RANDOM, "/reply_token", "rpl_", findings);
        let flag = self.named("irreversible").and_then(|value| value.boolean());
        let reversibility = self.text("reversibility");
        let reversibility = reversibility.as_deref();
        let contradiction = match (flag, reversibility) {
            (Some(true), Some("reversible")) => Some("irreversible is true"),
            (Some(false), Some("irreversible")) => Some("irreversible is false"),
            (Some(true), Some("reversible_with_effort")) => {
                let found = "irreversible is true, reversibility is reversible_with_effort".to_owned();
                findings.warn(rule::REVERSIBILITY_AGREES, "/reversibility".to_owned(), found);
                None
            }
            _ => None,
        };
        if let (Some(found), Some(word)) = (contradiction, reversibility) {
            let found = format!("{found}, reversibility is {word}");
            findings.push(rule::REVERSIBILITY_AGREES, "/reversibility".to_owned(), found);
        }
        let default = self.text("default_decision");
        if default.as_deref() == Some("accept") {
            let irreversible = flag == Some(true) || reversibility == Some("irreversible");
            let risk = self.text("risk_level");
            let rule = match (irreversible, risk.as_deref()) {
                (true, Some("medium")) => Some(rule::MEDIUM_DEFAULT),
                (true, Some("low")) => Some(rule::LOW_DEFAULT),
                (true, _) => Some(rule::HIGH_DEFAULT),
                (false, Some("high")) => Some(rule::REVERSIBLE_DEFAULT),
                (false, _) => None,
            };
            if let Some(rule) = rule {
                findings.push(rule, "/default_decision".to_owned(), "found \"accept\"".to_owned());
            }
        }
        self.allowed_replies(default.as_deref(), findings);
    }

    fn allowed_replies(&self, default: Option<&str>, findings: &mut Findings) {
        let Some(list) = self.named("allowed_replies").filter(|list| list.kind() == Kind::Array) else {
            return;
        };
        let root = Path::Root;
        let path = Path::Member(&root, "allowed_replies");
        let mut holds_default = false;
        for (at, item) in list.items().enumerate() {
            let Some(text) = item.text() else { continue };
            holds_default |= default == Some(&*text);
            if text != "accept" && text != "reject" {
                findings.push(
                    rule::ALLOWED_REPLIES,
                    Path::Item(&path, at).pointer(),
                    format!("found {text:?}"),
                );
            }
        }
        // A default that is neither has been told as such.
        let default = default.filter(|default| matches!(*default, "accept" | "reject"));
        if let Some(default) = default.filter(|_| !holds_default && list.items().next().is_some()) {
            findings.push(rule::ALLOWED_REPLIES, path.pointer(), format!("{default} is missing"));
        }
    }
}

/// Whether a chunk can be spoken as it is: nothing, or up to the end of a sentence or line.
fn ends_a_sentence(chunk: &str) -> bool {
    const ENDS: [char; 12] = ['.', '!', '?', '…', '。', '！', '？', '؟', '।', '۔', '።', ':'];
    chunk.ends_with('\n')
        || chunk
            .trim_end()
            .trim_end_matches(['"', '\'', ')', ']', '»', '”', '’', '」'])
            .chars()
            .next_back()
            .is_none_or(|last| ENDS.contains(&last))
}
