//! Messages: their members, and what one member means for another.

use super::members::{Places, Strangers, doubled, missing};
use super::path::Path;
use super::spoken::Heard;
use super::{table, value};
use crate::form::is_filter_pattern;
use crate::json::{Doc, Value};
use crate::message::MessageType;
use crate::rule::{self, Findings};

pub(super) fn check(doc: &Doc<'_>, kind: MessageType, findings: &mut Findings) {
    let table = table::of_message(kind);
    let mut places = Places::new(doc);
    let mut strangers = Strangers::default();
    let mut heard = Heard::default();
    for (key, member) in doc.root().members() {
        let path = Path::Key(&Path::Root, key);
        if let Some(at) = table.find_key(key) {
            if !places.note(at, member) {
                doubled(&path, findings);
            }
            value::field(table.field(at), member, &path, &mut heard, findings);
        } else {
            if let Some(rule) = kind.closed() {
                findings.push(rule, path.pointer(), "this member is not known here".to_owned());
            }
            strangers.note(key.text().unwrap_or_default(), findings);
        }
    }
    missing(table, places.seen, findings);
    let named = |name| places.named(table, name);
    match kind {
        MessageType::SubscriptionRequest => capabilities(named("capabilities"), "capabilities", findings),
        MessageType::SubscriptionRenegotiate => filters(named("capabilities"), "capabilities", findings),
        MessageType::SubscriptionAccepted => {
            filters(named("honored_capabilities"), "honored_capabilities", findings);
        }
        MessageType::SubscriptionRejected => discreet(named("reason_message"), findings),
        _ => {}
    }
}

/// Whether a `type` that is no message's is meant as one.
pub(super) fn looks_like_one(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    !lower.contains(':')
        && (lower.starts_with("subscription")
            || lower.starts_with("confirmation")
            || lower.starts_with("clarification"))
}

/// What a subscriber of level 2 or 3 must be able to do (§5.3.1.4, C-C23).
fn capabilities(capabilities: Option<Value<'_>>, name: &str, findings: &mut Findings) {
    let Some(object) = capabilities else { return };
    filters(capabilities, name, findings);
    let level = object
        .member("supported_conformance_levels")
        .into_iter()
        .flat_map(|levels| levels.items())
        .filter_map(|level| level.number()?.as_i64())
        .max();
    for flag in ["supports_confirmation_reply", "supports_clarification_reply"] {
        let declared = object.member(flag).and_then(|value| value.boolean());
        if level.is_some_and(|level| level >= 2) && declared != Some(true) {
            findings.push(rule::REPLY_SUPPORT, format!("/{name}"), format!("{flag} is not true"));
        }
    }
}

fn filters(capabilities: Option<Value<'_>>, name: &str, findings: &mut Findings) {
    let root = Path::Root;
    let path = Path::Member(&root, name);
    let path = Path::Member(&path, "event_filters");
    let Some(filters) = capabilities.and_then(|object| object.member("event_filters")) else { return };
    for list in ["include", "exclude"] {
        let path = Path::Member(&path, list);
        for (at, pattern) in filters.member(list).into_iter().flat_map(|list| list.items()).enumerate() {
            if pattern.text().is_some_and(|text| !is_filter_pattern(&text)) {
                findings.push(
                    rule::FILTER_PATTERN,
                    Path::Item(&path, at).pointer(),
                    format!("found {}", pattern.source()),
                );
            }
        }
    }
}

/// A refusal shows nothing of the producer's inside (§5.5).
fn discreet(message: Option<Value<'_>>, findings: &mut Findings) {
    const SIGNS: [&str; 6] =
        ["Traceback", "panicked at", "stack backtrace", "\tat ", "\n    at ", "Exception in "];
    if let Some(text) = message.and_then(|message| message.text())
        && let Some(sign) = SIGNS.iter().find(|sign| text.contains(**sign))
    {
        findings.push(
            rule::REASON_DISCREET,
            "/reason_message".to_owned(),
            format!("found {:?}", sign.trim()),
        );
    }
}
