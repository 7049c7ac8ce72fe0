//! Localization of an event to the requested verbosity and language (§5.3.1.2, §11.1.3, §11.5.1).

use std::sync::Arc;

use std::borrow::Cow;

use super::ShapingTerms;
use super::text_direction::is_right_to_left;
use crate::event::{Event, EventType, Payload, TextDirection, Verbosity};
use crate::grammar::is_language_tag;
use crate::json::{JsonValue, JsonWriter, Tape, write_object};
use crate::negotiate::language::lookup;

/// Returns the event in the requested verbosity and language; `None` if there is nothing to change.
///
/// The verbosity only says which summary to use, and the texts in the requested and in the primary
/// language are swapped. No text is removed, except a variant that duplicates the primary language.
/// The event keeps its id.
pub fn localize(event: &Event, terms: &ShapingTerms) -> Option<Event> {
    let translated = translate(event, terms);
    let current = translated.as_ref().unwrap_or(event);
    if !needs_verbosity_change(current, terms) {
        return translated;
    }
    let mut event = translated.unwrap_or_else(|| event.clone());
    event.envelope.verbosity = Some(terms.verbosity.clone());
    Some(event)
}

fn needs_verbosity_change(event: &Event, terms: &ShapingTerms) -> bool {
    event.envelope.verbosity.as_ref().unwrap_or(&Verbosity::Normal) != &terms.verbosity
        && has_summary(&event.payload, &terms.verbosity)
}

fn has_summary(payload: &Payload, verbosity: &Verbosity) -> bool {
    let [terse, normal, detailed] = payload.summaries();
    match verbosity {
        Verbosity::Terse => terse.is_some(),
        Verbosity::Normal => normal.is_some(),
        Verbosity::Detailed => detailed.is_some(),
        Verbosity::Unknown(_) => false,
    }
}

/// Returns the event in the best language for which it has all of its text.
fn translate(event: &Event, terms: &ShapingTerms) -> Option<Event> {
    if event.payload.unknown_members().is_empty() || event.envelope.event_type == EventType::OutputStreaming {
        return None;
    }
    let hints = event.envelope.localization_hints.as_ref()?;
    let primary = hints.primary_language.as_deref()?;
    let text = event.to_json();
    let mut tape = Tape::default();
    let doc = tape.read(&text).ok()?;
    let localized = LocalizedFields::from_event(event, doc.root())?;
    let mut offered = vec![primary];
    offered.extend(localized.languages.iter().map(|language| &**language));
    let fallback = hints.fallback_chain.as_deref().unwrap_or_default();
    let best = lookup(&terms.languages, &offered).or_else(|| lookup(fallback, &offered))?;
    if best == primary {
        return None;
    }
    let mut swapped = Event::parse(&localized.swap_languages(doc.root(), best, primary))?;
    let hints = Arc::make_mut(swapped.envelope.localization_hints.as_mut()?);
    hints.primary_language = Some(best.to_owned());
    if hints.text_direction.as_ref() != Some(&TextDirection::Auto) {
        let direction =
            if is_right_to_left(best) { TextDirection::RightToLeft } else { TextDirection::LeftToRight };
        hints.text_direction = Some(direction);
    }
    // The script belonged to the previous primary language.
    hints.script = None;
    Some(swapped)
}

/// The text fields of an event, and the languages in which all these fields are available.
struct LocalizedFields {
    fields: Vec<&'static str>,
    languages: Vec<String>,
}

impl LocalizedFields {
    fn from_event(event: &Event, root: JsonValue<'_>) -> Option<Self> {
        // All text of an event must be in one language, and nested text has no translated
        // variants. So an event with a progress description can be translated only if the
        // description equals the summary. The summary's variants then replace both.
        if let Payload::ProgressUpdated(update) = &event.payload
            && update.progress.description.is_some()
            && update.progress.description != update.summary_normal
        {
            return None;
        }
        let known = event.envelope.event_type.fields();
        let fields: Vec<_> = known
            .iter()
            .filter(|field| field.is_spoken && root.member(field.name).is_some())
            .map(|field| field.name)
            .collect();
        let first = *fields.first()?;
        let suffixes =
            event.payload.unknown_members().iter().filter_map(|member| language_suffix(member.name(), first));
        let languages = suffixes
            .filter(|suffix| {
                fields.iter().all(|field| {
                    let variant = event.payload.unknown_members().get(&format!("{field}_{suffix}"));
                    // A variant is a string, or an array with all choices.
                    variant.is_some_and(|it| it.as_str().starts_with(['"', '[']) && it.as_str() != "\"\"")
                })
            })
            .map(|suffix| suffix.replace('_', "-"))
            .collect();
        Some(Self { fields, languages })
    }

    /// Returns the event with the texts of the two languages swapped.
    fn swap_languages(&self, root: JsonValue<'_>, requested: &str, primary: &str) -> String {
        let requested_suffix = requested.replace('-', "_");
        let primary_suffix = primary.to_ascii_lowercase().replace('-', "_");
        write_object(|writer| {
            for (key, value) in root.members() {
                let name = key.text().unwrap_or_default();
                let (name, value) = match self.role_of(&name, &requested_suffix, &primary_suffix) {
                    MemberRole::Base(variant) => (name, root.member(&variant).unwrap_or(value)),
                    MemberRole::Variant(base, renamed) => {
                        (Cow::Owned(renamed), root.member(base).unwrap_or(value))
                    }
                    MemberRole::Replaced => continue,
                    MemberRole::Other => (name, value),
                };
                writer.key(&name);
                match root.member(&format!("summary_normal_{requested_suffix}")) {
                    Some(summary) if name == "progress" => write_progress(value, summary, writer),
                    _ => writer.raw(value.source()),
                }
            }
        })
    }

    fn role_of(&self, name: &str, requested_suffix: &str, primary_suffix: &str) -> MemberRole {
        for field in &self.fields {
            if name == *field {
                return MemberRole::Base(format!("{field}_{requested_suffix}"));
            }
            match language_suffix(name, field) {
                Some(suffix) if suffix == requested_suffix => {
                    return MemberRole::Variant(field, format!("{field}_{primary_suffix}"));
                }
                // The event already has a variant in its primary language. The primary text
                // replaces that variant.
                Some(suffix) if suffix == primary_suffix => return MemberRole::Replaced,
                _ => {}
            }
        }
        MemberRole::Other
    }
}

/// Writes `progress` with a translated description, if it has one.
fn write_progress(progress: JsonValue<'_>, summary: JsonValue<'_>, writer: &mut JsonWriter) {
    writer.open_object();
    for (key, value) in progress.members() {
        writer.key(&key.text().unwrap_or_default()).raw(if key.is_text("description") {
            summary.source()
        } else {
            value.source()
        });
    }
    writer.close_object();
}

enum MemberRole {
    /// A field. Holds the name of the member that has its new text.
    Base(String),
    /// A variant of a field in the requested language. Holds the field, and the new member name for
    /// the primary text.
    Variant(&'static str, String),
    /// A variant in the primary language, which is dropped in favor of the primary text.
    Replaced,
    /// Any other member, which stays unchanged.
    Other,
}

/// Returns the language suffix of a variant of a field (C-H1).
fn language_suffix<'n>(name: &'n str, field: &str) -> Option<&'n str> {
    let suffix = name.strip_prefix(field)?.strip_prefix('_')?;
    let is_lower_case = !suffix.bytes().any(|byte| byte.is_ascii_uppercase() || byte == b'-');
    (is_lower_case && is_language_tag(&suffix.replace('_', "-"))).then_some(suffix)
}
