//! Extensions: what stands under a prefix, and which prefixes may be used (§3.4.3, chapter 7).

use super::path::Path;
use super::value::excerpt;
use crate::event::CORE_CONTEXT;
use crate::form::{is_id, is_prefix, is_reserved_prefix};
use crate::id::{ReplyToken, SessionId};
use crate::json::{Kind, Value};
use crate::rule::{self, Findings, Rule};
use seal::Timestamp;

/// The extension that sayso itself uses: its prefix, and its context (design, decision 15).
pub(crate) const SAYSO: (&str, &str) = ("sayso", "urn:sayso:context:v1");

/// What `@context` says of extensions.
#[derive(Clone, Copy, Default)]
pub(super) struct Declared {
    /// There is a context beside the core.
    any: bool,
    /// One of them is sayso's own.
    sayso: bool,
}

impl Declared {
    pub(super) fn by(context: Option<Value<'_>>) -> Self {
        let mut declared = Self::default();
        for item in context.into_iter().flat_map(|context| context.items()) {
            let text = item.text().unwrap_or_default();
            declared.any |= text != CORE_CONTEXT;
            declared.sayso |= text == SAYSO.1;
        }
        declared
    }

    /// Whether there is any vocabulary beside the core.
    pub(super) fn any(self) -> bool {
        self.any
    }

    /// Says what is wrong with a prefix, as far as it can be told without fetching anything (C-A12).
    pub(super) fn check(self, prefix: &str, undeclared: Rule, path: &Path<'_>, findings: &mut Findings) {
        let found = || format!("found {prefix:?}");
        if is_reserved_prefix(prefix) {
            return findings.push(rule::PREFIX_RESERVED, path.pointer(), found());
        }
        if prefix.len() == 1 {
            findings.push(rule::PREFIX_SHORT, path.pointer(), found());
        }
        let declared = if prefix == SAYSO.0 { self.sayso } else { self.any };
        if !declared || !is_prefix(prefix) {
            findings.push(undeclared, path.pointer(), format!("{prefix:?} is not declared"));
        } else if prefix != SAYSO.0 {
            findings.push(rule::EXTENSION_UNKNOWN, path.pointer(), found());
        }
    }
}

/// `extensions` is an object of objects.
pub(super) fn check_objects(rule: Rule, value: Value<'_>, path: &Path<'_>, findings: &mut Findings) {
    if value.kind() != Kind::Object {
        return findings.push(rule, path.pointer(), format!("expected an object, found {}", excerpt(value)));
    }
    for (key, value) in value.members() {
        if value.kind() != Kind::Object {
            let name = key.text().unwrap_or_default();
            let at = Path::Member(path, &name);
            findings.push(rule, at.pointer(), format!("expected an object, found {}", excerpt(value)));
        }
    }
}

/// The prefixes of an event's `extensions`, and the bodies of those that we know.
pub(super) fn check_prefixes(extensions: Value<'_>, declared: Declared, findings: &mut Findings) {
    let path = Path::Member(&Path::Root, "extensions");
    for (key, value) in extensions.members() {
        let name = key.text().unwrap_or_default();
        let at = Path::Member(&path, &name);
        declared.check(&name, rule::EXTENSION_DECLARED, &at, findings);
        if name == SAYSO.0 {
            check_ours(value, &at, findings);
        }
    }
}

/// The form of `extensions.sayso`; what it does not name is free.
fn check_ours(body: Value<'_>, path: &Path<'_>, findings: &mut Findings) {
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
                "a time, as RFC 3339 writes it"
            }
            "parent_session_id" if !text.is_some_and(|text| is_id(SessionId::PREFIX, text)) => "a session id",
            "decision" if !matches!(text, Some("accept" | "reject")) => "accept or reject",
            "by" if !matches!(text, Some("reply" | "timeout" | "closure" | "unreachable" | "cancelled")) => {
                "reply, timeout, closure, unreachable or cancelled"
            }
            "tool" | "tool_call_id" | "action_digest" if text.is_none() => "a string",
            _ => continue,
        };
        let at = Path::Member(path, &name);
        findings.push(
            rule::EXTENSION_BODY,
            at.pointer(),
            format!("expected {expected}, found {}", excerpt(value)),
        );
    }
}
