//! Validation of payloads: dependencies between the members of a core event (chapter 4, §6.4.1).

use std::borrow::Cow;

use super::event::{EventCheck, check_id_strength};
use super::path::Path;
use crate::event::EventType;
use crate::json::{JsonKind, JsonValue};
use crate::rule::{self, Findings};

impl<'d> EventCheck<'_, 'd> {
    /// Checks dependencies between the payload's members.
    pub(super) fn check_payload(&self, core_type: &EventType, findings: &mut Findings) {
        match core_type {
            EventType::ProgressUpdated => self.check_progress(findings),
            EventType::ToolCompleted => {
                let is_failed = matches!(self.text("status").as_deref(), Some("error" | "timeout"));
                if is_failed && self.member("error_message").is_none() {
                    findings.warn(rule::ERROR_MESSAGE, String::new(), "error_message is missing".to_owned());
                }
            }
            EventType::OutputStreaming => self.check_output(findings),
            EventType::AwaitingConfirmation => self.check_confirmation(findings),
            EventType::AwaitingClarification => {
                check_id_strength(
                    self.member("reply_token"),
                    rule::REPLY_TOKEN_RANDOM,
                    "/reply_token",
                    "rpl_",
                    findings,
                );
                let mut kinds =
                    self.member("accepted_response_kinds").into_iter().flat_map(|kinds| kinds.items());
                if kinds.any(|kind| kind.text().is_some_and(|text| text == "multiple_choice"))
                    && self.member("choices").is_none()
                {
                    findings.push(rule::CHOICES, String::new(), "choices is missing".to_owned());
                }
                self.check_choices(findings);
            }
            _ => {}
        }
    }

    fn member(&self, name: &str) -> Option<JsonValue<'d>> {
        self.members.get_by_name(self.table, name)
    }

    fn text(&self, name: &str) -> Option<Cow<'d, str>> {
        self.members.text(self.table, name)
    }

    /// Checks that translated choices have the same values as `choices`, in the same order.
    fn check_choices(&self, findings: &mut Findings) {
        fn values<'d>(list: &JsonValue<'d>) -> Vec<Option<Cow<'d, str>>> {
            list.items().map(|choice| choice.member("value")?.text()).collect()
        }
        for (key, list) in self.members.root().members() {
            let name = key.text().unwrap_or_default();
            let is_translation = || self.base_field_of(&name).is_some_and(|field| field.name == "choices");
            if !name.starts_with("choices_") || !is_translation() {
                continue;
            }
            if self.member("choices").is_none_or(|original| values(&original) != values(&list)) {
                let found = "the values or their order differ from choices".to_owned();
                findings.push(rule::CHOICES, Path::Member(&Path::Root, &name).pointer(), found);
            }
        }
    }

    fn check_progress(&self, findings: &mut Findings) {
        let Some(progress) = self.member("progress").filter(|progress| progress.kind() == JsonKind::Object)
        else {
            return;
        };
        let (mut has_content, mut step, mut total) = (false, None, None);
        for (key, value) in progress.members() {
            let name = key.text().unwrap_or_default();
            has_content |= matches!(&*name, "percent" | "step" | "total_steps" | "description");
            match &*name {
                "step" => step = value.as_number().and_then(|number| number.as_i64()),
                "total_steps" => total = value.as_number().and_then(|number| number.as_i64()),
                _ => {}
            }
        }
        if !has_content {
            findings.push(rule::PROGRESS_NOT_EMPTY, "/progress".to_owned(), String::new());
        }
        if let (Some(step), Some(total)) = (step, total)
            && step > total
        {
            findings.push(rule::STEP_ORDER, "/progress/step".to_owned(), format!("found {step} of {total}"));
        }
    }

    fn check_output(&self, findings: &mut Findings) {
        let is_unfinished = self.member("complete").and_then(|complete| complete.as_bool()) == Some(false);
        if is_unfinished
            && self.member("coalesce_hint").is_none()
            && self.text("chunk").is_some_and(|chunk| !ends_a_sentence(&chunk))
        {
            findings.push(rule::OUTPUT_HINT_REQUIRED, String::new(), "coalesce_hint is missing".to_owned());
        }
    }

    /// Checks that a confirmation is safe: its default decision, its allowed replies, and
    /// contradictory statements about reversibility (§6.4.1, C-B5).
    fn check_confirmation(&self, findings: &mut Findings) {
        check_id_strength(
            self.member("reply_token"),
            rule::REPLY_TOKEN_RANDOM,
            "/reply_token",
            "rpl_",
            findings,
        );
        let flag = self.member("irreversible").and_then(|value| value.as_bool());
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
        if let (Some(found), Some(reversibility)) = (contradiction, reversibility) {
            let found = format!("{found}, reversibility is {reversibility}");
            findings.push(rule::REVERSIBILITY_AGREES, "/reversibility".to_owned(), found);
        }
        let default = self.text("default_decision");
        if default.as_deref() == Some("accept") {
            let is_irreversible = flag == Some(true) || reversibility == Some("irreversible");
            let risk = self.text("risk_level");
            let rule = match (is_irreversible, risk.as_deref()) {
                (true, Some("medium")) => Some(rule::MEDIUM_RISK_DEFAULT),
                (true, Some("low")) => Some(rule::LOW_RISK_DEFAULT),
                (true, _) => Some(rule::HIGH_RISK_DEFAULT),
                (false, Some("high")) => Some(rule::REVERSIBLE_DEFAULT),
                (false, _) => None,
            };
            if let Some(rule) = rule {
                findings.push(rule, "/default_decision".to_owned(), "found \"accept\"".to_owned());
            }
        }
        self.check_allowed_replies(default.as_deref(), findings);
    }

    fn check_allowed_replies(&self, default: Option<&str>, findings: &mut Findings) {
        let Some(list) = self.member("allowed_replies").filter(|list| list.kind() == JsonKind::Array) else {
            return;
        };
        let root = Path::Root;
        let path = Path::Member(&root, "allowed_replies");
        let mut contains_default = false;
        for (index, item) in list.items().enumerate() {
            let Some(text) = item.text() else { continue };
            contains_default |= default == Some(&*text);
            if text != "accept" && text != "reject" {
                findings.push(
                    rule::ALLOWED_REPLIES,
                    Path::Item(&path, index).pointer(),
                    format!("found {text:?}"),
                );
            }
        }
        // An invalid default decision is already reported.
        let default = default.filter(|default| matches!(*default, "accept" | "reject"));
        if let Some(default) = default.filter(|_| !contains_default && list.items().next().is_some()) {
            findings.push(rule::ALLOWED_REPLIES, path.pointer(), format!("{default} is missing"));
        }
    }
}

/// Returns whether a chunk can be spoken on its own, because it is empty or ends at the end of a
/// sentence or line.
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
