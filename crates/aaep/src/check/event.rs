//! Validation of events: the envelope, the payload, and dependencies between members.

use std::borrow::Cow;

use super::extension::{self, DeclaredContexts};
use super::field_table::{self, FieldTable};
use super::members::{MemberIndex, UnknownMembers, check_missing, report_duplicate};
use super::path::Path;
use super::spoken_text::ValueFacts;
use super::{session_event, spoken_text, value};
use crate::event::{ENVELOPE, EventType};
use crate::grammar::{contains_version, is_language_tag, is_uri, is_version};
use crate::json::{Doc, JsonKind, JsonValue};
use crate::record::FieldType;
use crate::rule::{self, Findings, Rule};
use crate::session::SessionEvent;

/// Indices of the envelope's members in every event's field table, in the order of [`ENVELOPE`].
pub(super) mod envelope_index {
    pub(in crate::check) const CONTEXT: usize = 0;
    pub(in crate::check) const VERSION: usize = 1;
    pub(in crate::check) const TYPE: usize = 2;
    pub(in crate::check) const EVENT_ID: usize = 3;
    pub(in crate::check) const SESSION_ID: usize = 4;
    pub(in crate::check) const SEQUENCE_NUMBER: usize = 5;
    pub(in crate::check) const TIMESTAMP: usize = 6;
    pub(in crate::check) const PRODUCER: usize = 7;
    pub(in crate::check) const URGENCY: usize = 9;
    pub(in crate::check) const HINTS: usize = 10;
    pub(in crate::check) const EXTENSIONS: usize = 12;
}

const MAX_MEMBERS: usize = 32;

/// Checks one event. Returns the input for the session checks if the event names its session.
pub(super) fn check<'d>(
    doc: &Doc<'d>,
    core_type: Option<&EventType>,
    versions: &[String],
    findings: &mut Findings,
) -> Option<SessionEvent<Cow<'d, str>>> {
    let table = field_table::event_table(core_type);
    let mut event = EventCheck {
        core_type,
        table,
        members: MemberIndex::new(doc),
        facts: ValueFacts::default(),
        agent_id: None,
        is_known_version: true,
    };
    event.check_members(versions, findings);
    check_missing(table, event.members.seen, findings);
    event.check_envelope(versions, findings);
    event.check_language(findings);
    if let Some(core_type) = core_type {
        event.check_summaries(core_type, findings);
        event.check_payload(core_type, findings);
    }
    session_event::extract(core_type, table, &event.members, event.facts.timestamp, event.agent_id)
}

/// The number of unknown members of an event for which a known name is suggested.
pub(super) const MAX_SUGGESTIONS: usize = 16;

/// Returns the core type that a misspelled or unprefixed type probably stands for.
fn suggest_type(name: &str) -> Option<&'static EventType> {
    let local = |name: &'static EventType| name.as_str().strip_prefix("aaep:").unwrap_or_default();
    let given = name.strip_prefix("aaep:").unwrap_or(name);
    // Authors leave out the prefix: `tool.invoked`.
    let given =
        if given.starts_with("agent.") { Cow::Borrowed(given) } else { Cow::Owned(format!("agent.{given}")) };
    let closest = seal::closest_name(&given, EventType::CORE.iter().map(local))?;
    EventType::CORE.iter().find(|known| local(known) == closest)
}

pub(super) struct EventCheck<'c, 'd> {
    /// The event's type, if it is a core type.
    core_type: Option<&'c EventType>,
    pub(super) table: &'static FieldTable,
    pub(super) members: MemberIndex<'d>,
    facts: ValueFacts,
    agent_id: Option<Cow<'d, str>>,
    /// False if the event has a valid but unknown version. Such a version may define new types and
    /// members, so unknown ones cause only warnings (C-A2).
    is_known_version: bool,
}

impl<'d> EventCheck<'_, 'd> {
    /// Checks every member against its field.
    fn check_members(&mut self, versions: &[String], findings: &mut Findings) {
        let mut unknown_members = UnknownMembers::default();
        let mut rank = 0;
        let mut next = 0;
        let mut is_out_of_order = false;
        let mut count = 0;
        let mut cached_is_known_version = None;
        for (key, member) in self.members.root().members() {
            count += 1;
            let path = Path::Key(&Path::Root, key);
            let Some(index) = self.table.find_next(key, next) else {
                let name = key.text().unwrap_or_default();
                is_out_of_order |= rank > PAYLOAD_RANK;
                rank = PAYLOAD_RANK;
                // Computed once, because an event can have a hundred thousand unknown members.
                let is_known_version =
                    *cached_is_known_version.get_or_insert_with(|| self.has_known_version(versions));
                let may_suggest = unknown_members.len() < MAX_SUGGESTIONS;
                self.check_unknown_member(&name, member, &path, is_known_version, may_suggest, findings);
                unknown_members.record(name, findings);
                continue;
            };
            next = index + 1;
            let member_rank = rank_of(index);
            is_out_of_order |= member_rank < rank;
            rank = member_rank;
            if !self.members.record(index, member) {
                report_duplicate(&path, findings);
            }
            value::check_field(self.table.field(index), member, &path, &mut self.facts, findings);
        }
        if is_out_of_order {
            findings.push(rule::MEMBER_ORDER, String::new(), String::new());
        }
        let prefix_count =
            self.members.get(envelope_index::EXTENSIONS).map_or(0, |extensions| extensions.members().count());
        if count + prefix_count > MAX_MEMBERS {
            findings.push(rule::EVENT_MEMBERS, String::new(), format!("found {}", count + prefix_count));
        }
    }

    /// Checks a member that the event's type does not define.
    #[cold]
    fn check_unknown_member(
        &mut self,
        name: &str,
        member: JsonValue<'d>,
        path: &Path<'_>,
        is_known_version: bool,
        may_suggest: bool,
        findings: &mut Findings,
    ) {
        let report = |findings: &mut Findings, rule: Rule, found: &str| {
            if is_known_version {
                findings.push(rule, path.pointer(), found.to_owned());
            } else {
                findings.warn(rule, path.pointer(), found.to_owned());
            }
        };
        let reserved_by = match name {
            "@id" | "@graph" | "@base" | "@vocab" => Some(rule::RESERVED_JSON_LD),
            _ => name.starts_with("aaep_").then_some(rule::RESERVED_AAEP),
        };
        if let Some(rule) = reserved_by.filter(|rule| findings.checks(*rule)) {
            return report(findings, rule, "this name is reserved");
        }
        if self.core_type.is_some() {
            if let Some(base) = self.base_field_of(name) {
                return value::check_field(base, member, path, &mut self.facts, findings);
            }
            let known = || self.table.fields().iter().map(|field| field.name);
            let suggestion = may_suggest.then(|| seal::closest_name(name, known())).flatten();
            report(findings, rule::UNKNOWN_MEMBER, &value::unknown_member(suggestion));
        } else if name.starts_with("summary_") {
            // Extensions define their own members (C-G6), but their summaries are spoken as well
            // (§7.4.1).
            value::check_value(
                &FieldType::LONG_TEXT,
                rule::SUMMARIES,
                member,
                path,
                &mut self.facts,
                findings,
            );
            spoken_text::check(member, name, path, &mut self.facts, findings);
        }
    }

    /// Returns the field that `name` translates, as in `summary_normal_yo` (§11.5.1, C-H1).
    pub(super) fn base_field_of(&self, name: &str) -> Option<&'static crate::record::Field> {
        self.table
            .fields()
            .iter()
            .filter(|field| field.is_spoken)
            .filter(|field| {
                name.strip_prefix(field.name).and_then(|rest| rest.strip_prefix('_')).is_some_and(|tag| {
                    is_spelled_for_member_name(tag) && is_language_tag(&tag.replace('_', "-"))
                })
            })
            .max_by_key(|field| field.name.len())
            .copied()
    }

    fn has_known_version(&self, versions: &[String]) -> bool {
        let version = self.members.root().member("aaep_version").and_then(|version| version.text());
        version.is_none_or(|version| versions.iter().any(|known| *known == version) || !is_version(&version))
    }

    /// Checks dependencies between the envelope's members.
    fn check_envelope(&mut self, versions: &[String], findings: &mut Findings) {
        if self.members.get(envelope_index::VERSION).is_none() {
            findings.push(rule::VERSION_PRESENT, String::new(), String::new());
        }
        match self.members.get(envelope_index::VERSION).and_then(|version| version.text()) {
            Some(version) if !versions.iter().any(|known| *known == version) && is_version(&version) => {
                self.is_known_version = false;
                findings.push(
                    rule::VERSION_PUBLISHED,
                    "/aaep_version".to_owned(),
                    format!("found {version:?}"),
                );
            }
            _ => {}
        }
        let declared = DeclaredContexts::from_context(self.members.get(envelope_index::CONTEXT));
        self.check_event_type(declared, findings);
        check_id_strength(
            self.members.get(envelope_index::EVENT_ID),
            rule::EVENT_ID_RANDOM,
            "/event_id",
            "evt_",
            findings,
        );
        self.agent_id = self
            .members
            .get(envelope_index::PRODUCER)
            .and_then(|producer| producer.member("agent_id")?.text());
        if let Some(agent) = &self.agent_id
            && contains_version(agent)
        {
            findings.push(rule::AGENT_ID_STABLE, "/producer/agent_id".to_owned(), format!("found {agent:?}"));
        }
        if self.core_type == Some(&EventType::SessionStarted)
            && let Some(number) = self
                .members
                .get(envelope_index::SEQUENCE_NUMBER)
                .and_then(|number| number.as_number()?.as_i64())
            && number > 0
        {
            findings.push(rule::SEQUENCE_NUMBER, "/sequence_number".to_owned(), format!("found {number}"));
        }
        if let Some(extensions) = self.members.get(envelope_index::EXTENSIONS) {
            extension::check_prefixes(extensions, declared, findings);
        }
        self.check_urgency(findings);
    }

    fn check_event_type(&self, declared: DeclaredContexts, findings: &mut Findings) {
        let name = self.members.get(envelope_index::TYPE).and_then(|name| name.text());
        // An empty type is already reported as missing.
        let Some(name) = name.filter(|name| !name.is_empty()) else { return };
        let pointer = || "/type".to_owned();
        let found = || match suggest_type(&name).filter(|_| self.core_type.is_none()) {
            Some(known) => format!("found {name:?}; did you mean {:?}?", known.as_str()),
            None => format!("found {name:?}"),
        };
        if self.core_type.is_some() {
            if !name.starts_with("aaep:") {
                // The vocabulary form is a mistake in the published context file and is accepted
                // only on receipt (C-A4).
                let rule =
                    if EventType::is_vocabulary_form(&name) { rule::TYPE_CORE } else { rule::TYPE_COMPACT };
                findings.push(rule, pointer(), found());
            }
        } else if EventType::is_reserved(&name) {
            if self.is_known_version {
                findings.push(rule::TYPE_CORE, pointer(), found());
            } else {
                findings.warn(rule::TYPE_CORE, pointer(), found());
            }
        } else if name.contains("://") || name.starts_with("urn:") || name.starts_with("tag:") {
            if !is_uri(&name) {
                findings.push(rule::TYPE_FORM, pointer(), found());
            } else if !declared.has_extension() {
                findings.push(rule::TYPE_DECLARED, pointer(), found());
            }
        } else {
            match name.split_once(':') {
                Some((prefix, local)) if !local.is_empty() => {
                    declared.check_prefix(
                        prefix,
                        rule::TYPE_FORM,
                        &Path::Member(&Path::Root, "type"),
                        findings,
                    );
                }
                _ => findings.push(rule::TYPE_FORM, pointer(), found()),
            }
        }
    }

    fn check_urgency(&self, findings: &mut Findings) {
        let urgency = self.members.get(envelope_index::URGENCY);
        let critical_rule = match self.core_type {
            Some(EventType::SessionErrored) => rule::ERRORED_CRITICAL,
            Some(EventType::AwaitingConfirmation) => rule::CONFIRMATION_CRITICAL,
            Some(EventType::AwaitingClarification) => rule::CLARIFICATION_CRITICAL,
            Some(EventType::HandoffRequested) => rule::HANDOFF_CRITICAL,
            _ => {
                if urgency.is_none() {
                    findings.push(rule::URGENCY_PRESENT, String::new(), String::new());
                }
                return;
            }
        };
        match urgency {
            None => findings.push(critical_rule, String::new(), "urgency is missing".to_owned()),
            Some(value) if value.text().is_none_or(|text| text != "critical") => {
                findings.push(
                    critical_rule,
                    "/urgency".to_owned(),
                    format!("found {}", value::excerpt(value)),
                );
            }
            Some(_) => {}
        }
    }

    /// Checks that text for people has a language, and `text_direction` `auto` if it mixes
    /// directions (§11.1, §11.4).
    fn check_language(&mut self, findings: &mut Findings) {
        if !self.facts.has_text {
            return;
        }
        let hints = self.members.get(envelope_index::HINTS).filter(|hints| hints.kind() == JsonKind::Object);
        let Some(hints) = hints else {
            if self.members.get(envelope_index::HINTS).is_none() {
                findings.push(rule::HINTS_PRESENT, String::new(), "localization_hints is missing".to_owned());
            }
            return;
        };
        let (mut has_language, mut is_auto) = (false, false);
        for (key, value) in hints.members() {
            has_language |= key.is_text("primary_language");
            is_auto |= key.is_text("text_direction") && value.is_text("auto");
        }
        if !has_language {
            let pointer = "/localization_hints".to_owned();
            findings.push(rule::PRIMARY_LANGUAGE, pointer, "primary_language is missing".to_owned());
        }
        for pointer in std::mem::take(&mut self.facts.mixed_direction_pointers) {
            if !is_auto {
                findings.push(rule::MIXED_DIRECTION, pointer, String::new());
            }
        }
    }

    fn check_summaries(&self, core_type: &EventType, findings: &mut Findings) {
        if *core_type == EventType::OutputStreaming {
            return;
        }
        let has = |name| self.members.get_by_name(self.table, name).is_some();
        let has_normal = has("summary_normal");
        let other_count = usize::from(has("summary_terse")) + usize::from(has("summary_detailed"));
        let is_optional = self
            .table
            .find("summary_normal")
            .is_some_and(|index| self.table.field(index).missing_rule.is_none());
        if !has_normal && is_optional {
            findings.push(rule::SUMMARY_NORMAL, String::new(), "summary_normal is missing".to_owned());
        }
        if has_normal && other_count == 0 && *core_type != EventType::ProgressUpdated {
            findings.push(rule::SUMMARY_LEVELS, String::new(), "only summary_normal is present".to_owned());
        }
    }
}

/// The rank of payload and unknown members in the recommended order (§3.6). `extensions` comes after
/// these members.
const PAYLOAD_RANK: usize = 20;

fn rank_of(index: usize) -> usize {
    match index {
        envelope_index::EXTENSIONS => PAYLOAD_RANK + 1,
        index if index < ENVELOPE.len() => index,
        _ => PAYLOAD_RANK,
    }
}

/// Returns whether a language tag has the spelling for member names: lower case, and `_` instead of
/// `-` (C-H1).
fn is_spelled_for_member_name(tag: &str) -> bool {
    !tag.contains(|character: char| character == '-' || character.is_ascii_uppercase())
}

/// Reports an id that does not look random: after the prefix it has fewer than eight characters or
/// only digits.
pub(super) fn check_id_strength(
    value: Option<JsonValue<'_>>,
    rule: Rule,
    pointer: &str,
    prefix: &str,
    findings: &mut Findings,
) {
    let Some(text) = value.and_then(|value| value.text()) else { return };
    let Some(tail) = text.strip_prefix(prefix).filter(|tail| !tail.is_empty()) else { return };
    if tail.len() < 8 || tail.bytes().all(|byte| byte.is_ascii_digit()) {
        findings.push(rule, pointer.to_owned(), format!("found {text:?}"));
    }
}
