//! Events: the envelope, the payload of their type, and what one member means for another.

use std::borrow::Cow;

use super::extension::{self, Declared};
use super::members::{Places, Strangers, doubled, missing};
use super::path::Path;
use super::spoken::Heard;
use super::table::{self, Table};
use super::{spoken, step, value};
use crate::event::{ENVELOPE, EventType};
use crate::form::{has_version_inside, is_language_tag, is_uri, is_version};
use crate::json::{Doc, Kind, Value};
use crate::record::Shape;
use crate::rule::{self, Findings, Rule};
use crate::session::Step;

/// The places of the envelope's members in every event's table: the order of [`ENVELOPE`].
pub(super) mod place {
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

/// Checks one event; returns what the session machine needs of it, if it names its session.
pub(super) fn check<'d>(
    doc: &Doc<'d>,
    core: Option<&EventType>,
    versions: &[String],
    findings: &mut Findings,
) -> Option<Step<Cow<'d, str>>> {
    let table = table::of_event(core);
    let mut event = EventCheck {
        core,
        table,
        places: Places::new(doc),
        heard: Heard::default(),
        agent_id: None,
        known_version: true,
    };
    event.members(versions, findings);
    missing(table, event.places.seen, findings);
    event.envelope(versions, findings);
    event.language(findings);
    if let Some(core) = core {
        event.summaries(core, findings);
        event.payload(core, findings);
    }
    step::take(core, table, &event.places, event.heard.time, event.agent_id)
}

pub(super) struct EventCheck<'c, 'd> {
    core: Option<&'c EventType>,
    pub(super) table: &'static Table,
    pub(super) places: Places<'d>,
    heard: Heard,
    agent_id: Option<Cow<'d, str>>,
    /// The event says no version, or one that we know: then what we do not know is wrong, not new (C-A2).
    known_version: bool,
}

impl<'d> EventCheck<'_, 'd> {
    /// Every member against its field.
    fn members(&mut self, versions: &[String], findings: &mut Findings) {
        let mut strangers = Strangers::default();
        let mut rank = 0;
        let mut next = 0;
        let mut disorder = false;
        let mut count = 0;
        let mut known_version = None;
        for (key, member) in self.places.root().members() {
            count += 1;
            let path = Path::Key(&Path::Root, key);
            let Some(at) = self.table.find_next(key, next) else {
                let name = key.text().unwrap_or_default();
                disorder |= rank > PAYLOAD;
                rank = PAYLOAD;
                // Once, not for every stranger: there may be a hundred thousand of them.
                let known_version = *known_version.get_or_insert_with(|| self.knows_version(versions));
                self.stranger(&name, member, &path, known_version, findings);
                strangers.note(name, findings);
                continue;
            };
            next = at + 1;
            let here = rank_of(at);
            disorder |= here < rank;
            rank = here;
            if !self.places.note(at, member) {
                doubled(&path, findings);
            }
            value::field(self.table.field(at), member, &path, &mut self.heard, findings);
        }
        if disorder {
            findings.push(rule::MEMBER_ORDER, String::new(), String::new());
        }
        let prefixes =
            self.places.get(place::EXTENSIONS).map_or(0, |extensions| extensions.members().count());
        if count + prefixes > MAX_MEMBERS {
            findings.push(rule::EVENT_FIELDS, String::new(), format!("found {}", count + prefixes));
        }
    }

    /// A member that the event's type does not have.
    #[cold]
    fn stranger(
        &mut self,
        name: &str,
        member: Value<'d>,
        path: &Path<'_>,
        known_version: bool,
        findings: &mut Findings,
    ) {
        let mut report = |rule: Rule, found: &str| {
            if known_version {
                findings.push(rule, path.pointer(), found.to_owned());
            } else {
                findings.warn(rule, path.pointer(), found.to_owned());
            }
        };
        if name.starts_with("aaep_") {
            return report(rule::RESERVED_AAEP, "this name is reserved");
        }
        if matches!(name, "@id" | "@graph" | "@base" | "@vocab") {
            return report(rule::RESERVED_JSON_LD, "this name is reserved");
        }
        if self.core.is_some() {
            match self.variant_of(name) {
                Some(base) => value::field(base, member, path, &mut self.heard, findings),
                None => report(rule::STRAY, "this member is not known here"),
            }
        } else if name.starts_with("summary_") {
            // Other types' members are theirs (C-G6); their summaries are spoken all the same (§7.4.1).
            value::shape(&Shape::LONG, rule::SUMMARIES, member, path, &mut self.heard, findings);
            spoken::check(member, name, path, &mut self.heard, findings);
        }
    }

    /// The field of which `name` is the form in another language, like `summary_normal_yo` (§11.5.1, C-H1).
    pub(super) fn variant_of(&self, name: &str) -> Option<&'static crate::record::Field> {
        self.table
            .fields()
            .iter()
            .filter(|field| field.spoken)
            .filter(|field| {
                name.strip_prefix(field.name)
                    .and_then(|rest| rest.strip_prefix('_'))
                    .is_some_and(|tag| is_lower_cased(tag) && is_language_tag(&tag.replace('_', "-")))
            })
            .max_by_key(|field| field.name.len())
            .copied()
    }

    fn knows_version(&self, versions: &[String]) -> bool {
        let version = self.places.root().member("aaep_version").and_then(|version| version.text());
        version.is_none_or(|version| versions.iter().any(|known| *known == version) || !is_version(&version))
    }

    /// What the envelope's members mean for each other.
    fn envelope(&mut self, versions: &[String], findings: &mut Findings) {
        if self.places.get(place::VERSION).is_none() {
            findings.push(rule::VERSION_SET, String::new(), String::new());
        }
        match self.places.get(place::VERSION).and_then(|version| version.text()) {
            Some(version) if !versions.iter().any(|known| *known == version) && is_version(&version) => {
                self.known_version = false;
                findings.push(
                    rule::VERSION_PUBLISHED,
                    "/aaep_version".to_owned(),
                    format!("found {version:?}"),
                );
            }
            _ => {}
        }
        let declared = Declared::by(self.places.get(place::CONTEXT));
        self.event_type(declared, findings);
        weak_id(self.places.get(place::EVENT_ID), rule::EVENT_ID_RANDOM, "/event_id", "evt_", findings);
        self.agent_id =
            self.places.get(place::PRODUCER).and_then(|producer| producer.member("agent_id")?.text());
        if let Some(agent) = &self.agent_id
            && has_version_inside(agent)
        {
            findings.push(rule::AGENT_ID_STABLE, "/producer/agent_id".to_owned(), format!("found {agent:?}"));
        }
        if self.core == Some(&EventType::SessionStarted)
            && let Some(number) =
                self.places.get(place::SEQUENCE_NUMBER).and_then(|number| number.number()?.as_i64())
            && number > 0
        {
            findings.push(rule::SEQUENCE_NUMBER, "/sequence_number".to_owned(), format!("found {number}"));
        }
        if let Some(extensions) = self.places.get(place::EXTENSIONS) {
            extension::check_prefixes(extensions, declared, findings);
        }
        self.urgency(findings);
    }

    fn event_type(&self, declared: Declared, findings: &mut Findings) {
        let name = self.places.get(place::TYPE).and_then(|name| name.text());
        // An empty one has been told as missing.
        let Some(name) = name.filter(|name| !name.is_empty()) else { return };
        let pointer = || "/type".to_owned();
        let found = || format!("found {name:?}");
        if self.core.is_some() {
            if !name.starts_with("aaep:") {
                // The vocabulary form is a mistake of the published context file, for receiving only (C-A4).
                let rule =
                    if EventType::is_vocabulary_form(&name) { rule::TYPE_CORE } else { rule::TYPE_COMPACT };
                findings.push(rule, pointer(), found());
            }
        } else if EventType::is_reserved(&name) {
            if self.known_version {
                findings.push(rule::TYPE_CORE, pointer(), found());
            } else {
                findings.warn(rule::TYPE_CORE, pointer(), found());
            }
        } else if name.contains("://") || name.starts_with("urn:") || name.starts_with("tag:") {
            if !is_uri(&name) {
                findings.push(rule::TYPE_FORM, pointer(), found());
            } else if !declared.any() {
                findings.push(rule::TYPE_DECLARED, pointer(), found());
            }
        } else {
            match name.split_once(':') {
                Some((prefix, local)) if !local.is_empty() => {
                    declared.check(prefix, rule::TYPE_FORM, &Path::Member(&Path::Root, "type"), findings);
                }
                _ => findings.push(rule::TYPE_FORM, pointer(), found()),
            }
        }
    }

    fn urgency(&self, findings: &mut Findings) {
        let urgency = self.places.get(place::URGENCY);
        let critical = match self.core {
            Some(EventType::SessionErrored) => rule::ERRORED_CRITICAL,
            Some(EventType::AwaitingConfirmation) => rule::CONFIRMATION_CRITICAL,
            Some(EventType::AwaitingClarification) => rule::CLARIFICATION_CRITICAL,
            Some(EventType::HandoffRequested) => rule::HANDOFF_CRITICAL,
            _ => {
                if urgency.is_none() {
                    findings.push(rule::URGENCY_SET, String::new(), String::new());
                }
                return;
            }
        };
        match urgency {
            None => findings.push(critical, String::new(), "urgency is missing".to_owned()),
            Some(value) if value.text().is_none_or(|text| text != "critical") => {
                findings.push(critical, "/urgency".to_owned(), format!("found {}", value::excerpt(value)));
            }
            Some(_) => {}
        }
    }

    /// Text for people says its language, and its direction where it has both (§11.1, §11.4).
    fn language(&mut self, findings: &mut Findings) {
        if !self.heard.text {
            return;
        }
        let hints = self.places.get(place::HINTS).filter(|hints| hints.kind() == Kind::Object);
        let Some(hints) = hints else {
            if self.places.get(place::HINTS).is_none() {
                findings.push(rule::HINTS, String::new(), "localization_hints is missing".to_owned());
            }
            return;
        };
        let (mut language, mut auto) = (false, false);
        for (key, value) in hints.members() {
            language |= key.is("primary_language");
            auto |= key.is("text_direction") && value.is("auto");
        }
        if !language {
            let pointer = "/localization_hints".to_owned();
            findings.push(rule::PRIMARY_LANGUAGE, pointer, "primary_language is missing".to_owned());
        }
        for pointer in std::mem::take(&mut self.heard.mixed) {
            if !auto {
                findings.push(rule::MIXED_DIRECTION, pointer, String::new());
            }
        }
    }

    fn summaries(&self, core: &EventType, findings: &mut Findings) {
        if *core == EventType::OutputStreaming {
            return;
        }
        let has = |name| self.places.named(self.table, name).is_some();
        let normal = has("summary_normal");
        let others = usize::from(has("summary_terse")) + usize::from(has("summary_detailed"));
        let optional =
            self.table.find("summary_normal").is_some_and(|at| self.table.field(at).missing.is_none());
        if !normal && optional {
            findings.push(rule::SUMMARY_NORMAL, String::new(), "summary_normal is missing".to_owned());
        }
        if normal && others == 0 && *core != EventType::ProgressUpdated {
            findings.push(rule::SUMMARY_LEVELS, String::new(), "there is only summary_normal".to_owned());
        }
    }
}

/// Where payload and unknown members stand in the advised order (§3.6); extensions come after them.
const PAYLOAD: usize = 20;

fn rank_of(at: usize) -> usize {
    match at {
        place::EXTENSIONS => PAYLOAD + 1,
        at if at < ENVELOPE.len() => at,
        _ => PAYLOAD,
    }
}

/// How a tag is written inside a name: small letters, `_` for `-` (C-H1).
fn is_lower_cased(tag: &str) -> bool {
    !tag.contains(|letter: char| letter == '-' || letter.is_ascii_uppercase())
}

/// An id that somebody counted rather than drew.
pub(super) fn weak_id(
    value: Option<Value<'_>>,
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
