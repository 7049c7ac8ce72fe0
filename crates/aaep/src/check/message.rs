//! Validation of messages: their members, and dependencies between the members.

use super::event::MAX_SUGGESTIONS;
use super::members::{MemberIndex, UnknownMembers, check_missing, report_duplicate};
use super::path::Path;
use super::spoken_text::ValueFacts;
use super::{field_table, value};
use crate::grammar::is_filter_pattern;
use crate::json::{Doc, JsonValue};
use crate::message::MessageType;
use crate::rule::{self, Findings};

pub(super) fn check(doc: &Doc<'_>, kind: MessageType, findings: &mut Findings) {
    let table = field_table::message_table(kind);
    let mut members = MemberIndex::new(doc);
    let mut unknown_members = UnknownMembers::default();
    let mut facts = ValueFacts::default();
    for (key, member) in doc.root().members() {
        let path = Path::Key(&Path::Root, key);
        if let Some(index) = table.find_key(key) {
            if !members.record(index, member) {
                report_duplicate(&path, findings);
            }
            value::check_field(table.field(index), member, &path, &mut facts, findings);
        } else {
            if let Some(rule) = kind.unknown_member_rule() {
                let name = key.text().filter(|_| unknown_members.len() < MAX_SUGGESTIONS);
                let known = || table.fields().iter().map(|field| field.name);
                let suggestion = name.and_then(|name| seal::closest_name(&name, known()));
                findings.push(rule, path.pointer(), value::unknown_member(suggestion));
            }
            unknown_members.record(key.text().unwrap_or_default(), findings);
        }
    }
    check_missing(table, members.seen, findings);
    let member_value = |name| members.get_by_name(table, name);
    match kind {
        MessageType::SubscriptionRequest => {
            check_capabilities(member_value("capabilities"), "capabilities", findings);
        }
        MessageType::SubscriptionRenegotiate => {
            check_filters(member_value("capabilities"), "capabilities", findings);
        }
        MessageType::SubscriptionAccepted => {
            check_filters(member_value("honored_capabilities"), "honored_capabilities", findings);
        }
        MessageType::SubscriptionRejected => check_reason_message(member_value("reason_message"), findings),
        _ => {}
    }
}

/// Returns whether an unknown `type` looks like a message type.
pub(super) fn looks_like_message_type(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    !lower.contains(':')
        && (lower.starts_with("subscription")
            || lower.starts_with("confirmation")
            || lower.starts_with("clarification"))
}

/// Checks the capabilities that levels 2 and 3 require (§5.3.1.4, C-C23).
fn check_capabilities(capabilities: Option<JsonValue<'_>>, name: &str, findings: &mut Findings) {
    let Some(object) = capabilities else { return };
    check_filters(capabilities, name, findings);
    let level = object
        .member("supported_conformance_levels")
        .into_iter()
        .flat_map(|levels| levels.items())
        .filter_map(|level| level.as_number()?.as_i64())
        .max();
    for flag in ["supports_confirmation_reply", "supports_clarification_reply"] {
        let is_declared = object.member(flag).and_then(|value| value.as_bool()) == Some(true);
        if level.is_some_and(|level| level >= 2) && !is_declared {
            findings.push(rule::REPLY_SUPPORT, format!("/{name}"), format!("{flag} is not true"));
        }
    }
}

fn check_filters(capabilities: Option<JsonValue<'_>>, name: &str, findings: &mut Findings) {
    let root = Path::Root;
    let path = Path::Member(&root, name);
    let path = Path::Member(&path, "event_filters");
    let Some(filters) = capabilities.and_then(|object| object.member("event_filters")) else { return };
    for list in ["include", "exclude"] {
        let path = Path::Member(&path, list);
        for (index, pattern) in filters.member(list).into_iter().flat_map(|list| list.items()).enumerate() {
            if pattern.text().is_some_and(|text| !is_filter_pattern(&text)) {
                findings.push(
                    rule::FILTER_PATTERN,
                    Path::Item(&path, index).pointer(),
                    format!("found {}", pattern.source()),
                );
            }
        }
    }
}

/// Reports a rejection message that reveals internals of the producer (§5.5).
fn check_reason_message(message: Option<JsonValue<'_>>, findings: &mut Findings) {
    const LEAK_MARKERS: [&str; 6] =
        ["Traceback", "panicked at", "stack backtrace", "\tat ", "\n    at ", "Exception in "];
    if let Some(text) = message.and_then(|message| message.text())
        && let Some(marker) = LEAK_MARKERS.iter().find(|marker| text.contains(**marker))
    {
        findings.push(
            rule::REASON_LEAKS_INTERNALS,
            "/reason_message".to_owned(),
            format!("found {:?}", marker.trim()),
        );
    }
}
