//! Validation of extensions: their prefixes and bodies (§3.4.3, chapter 7).

use super::path::Path;
use super::value::excerpt;
use crate::event::CORE_CONTEXT;
use crate::grammar::{is_id, is_prefix, is_reserved_prefix};
use crate::id::{ReplyToken, SessionId};
use crate::json::{JsonKind, JsonValue};
use crate::rule::{self, Findings, Rule};
use seal::Timestamp;

/// The prefix and the context URI of sayso's own extension (decision 15).
pub(crate) const SAYSO_EXTENSION: (&str, &str) = ("sayso", "urn:sayso:context:v1");

/// The extensions that `@context` declares.
#[derive(Clone, Copy, Default)]
pub(super) struct DeclaredContexts {
    /// Whether there is a context besides the core context.
    has_extension: bool,
    /// Whether sayso's own context is declared.
    has_sayso: bool,
}

impl DeclaredContexts {
    pub(super) fn from_context(context: Option<JsonValue<'_>>) -> Self {
        let mut declared = Self::default();
        for item in context.into_iter().flat_map(|context| context.items()) {
            let text = item.text().unwrap_or_default();
            declared.has_extension |= text != CORE_CONTEXT;
            declared.has_sayso |= text == SAYSO_EXTENSION.1;
        }
        declared
    }

    pub(super) fn has_extension(self) -> bool {
        self.has_extension
    }

    /// Reports problems with a prefix that can be found without fetching the context (C-A12).
    pub(super) fn check_prefix(
        self,
        prefix: &str,
        undeclared_rule: Rule,
        path: &Path<'_>,
        findings: &mut Findings,
    ) {
        let found = || format!("found {prefix:?}");
        if is_reserved_prefix(prefix) && findings.breaks(rule::PREFIX_RESERVED, path.pointer(), found()) {
            return;
        }
        if prefix.len() == 1 {
            findings.push(rule::PREFIX_SHORT, path.pointer(), found());
        }
        let is_declared = if prefix == SAYSO_EXTENSION.0 { self.has_sayso } else { self.has_extension };
        if !is_declared || !is_prefix(prefix) {
            findings.push(undeclared_rule, path.pointer(), format!("{prefix:?} is not declared"));
        } else if prefix != SAYSO_EXTENSION.0 {
            findings.push(rule::EXTENSION_UNKNOWN, path.pointer(), found());
        }
    }
}

/// Checks that `extensions` is an object of objects.
pub(super) fn check_objects(rule: Rule, value: JsonValue<'_>, path: &Path<'_>, findings: &mut Findings) {
    if value.kind() != JsonKind::Object {
        return findings.push(rule, path.pointer(), format!("expected an object, found {}", excerpt(value)));
    }
    for (key, value) in value.members() {
        if value.kind() != JsonKind::Object {
            let name = key.text().unwrap_or_default();
            let member_path = Path::Member(path, &name);
            findings.push(
                rule,
                member_path.pointer(),
                format!("expected an object, found {}", excerpt(value)),
            );
        }
    }
}

/// Checks the prefixes in `extensions`, and the bodies of known extensions.
pub(super) fn check_prefixes(extensions: JsonValue<'_>, declared: DeclaredContexts, findings: &mut Findings) {
    let path = Path::Member(&Path::Root, "extensions");
    for (key, value) in extensions.members() {
        let name = key.text().unwrap_or_default();
        let member_path = Path::Member(&path, &name);
        declared.check_prefix(&name, rule::EXTENSION_DECLARED, &member_path, findings);
        if name == SAYSO_EXTENSION.0 {
            check_sayso_body(value, &member_path, findings);
        }
    }
}

/// Checks the known members of `extensions.sayso`. Other members are allowed.
fn check_sayso_body(body: JsonValue<'_>, path: &Path<'_>, findings: &mut Findings) {
    for (key, value) in body.members() {
        let name = key.text().unwrap_or_default();
        let text = value.text();
        let text = text.as_deref();
        let expected = match &*name {
            "reply_token" | "extended" | "reminds_of"
                if !text.is_some_and(|text| is_id(ReplyToken::PREFIX, text)) =>
            {
                "a reply token"
            }
            "deadline" if text.is_none_or(|text| Timestamp::parse_rfc3339(text).is_err()) => {
                "an RFC 3339 timestamp"
            }
            "parent_session_id" if !text.is_some_and(|text| is_id(SessionId::PREFIX, text)) => "a session id",
            "decision" if !matches!(text, Some("accept" | "reject")) => "accept or reject",
            "by" if !matches!(text, Some("reply" | "timeout" | "closure" | "unreachable" | "cancelled")) => {
                "reply, timeout, closure, unreachable or cancelled"
            }
            "tool" | "tool_call_id" | "action_digest" if text.is_none() => "a string",
            _ => continue,
        };
        let member_path = Path::Member(path, &name);
        findings.push(
            rule::EXTENSION_BODY,
            member_path.pointer(),
            format!("expected {expected}, found {}", excerpt(value)),
        );
    }
}
