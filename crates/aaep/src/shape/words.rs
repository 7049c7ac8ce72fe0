//! The words of an event for one person: verbosity and language (§5.3.1.2, §11.1.3, §11.5.1).

use std::sync::Arc;

use std::borrow::Cow;

use super::Wants;
use super::language::is_right_to_left;
use crate::event::{Event, EventType, Payload, TextDirection, Verbosity};
use crate::form::is_language_tag;
use crate::json::{Tape, Value, Writer, object};
use crate::negotiate::language::lookup;

/// The event in the words that are wanted; nothing if it has them already, or has no others.
///
/// Nothing is left out: the verbosity says which summary is meant, and text in the wanted language changes places with
/// the text that stood first. The event keeps its id.
pub(super) fn chosen(event: &Event, wants: &Wants) -> Option<Event> {
    let translated = translated(event, wants);
    let current = translated.as_ref().unwrap_or(event);
    if !wants_other_verbosity(current, wants) {
        return translated;
    }
    let mut event = translated.unwrap_or_else(|| event.clone());
    event.envelope.verbosity = Some(wants.verbosity.clone());
    Some(event)
}

fn wants_other_verbosity(event: &Event, wants: &Wants) -> bool {
    event.envelope.verbosity.as_ref().unwrap_or(&Verbosity::Normal) != &wants.verbosity
        && has_summary(&event.payload, &wants.verbosity)
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

/// The event with its text in the best language of those that all of its text is in.
fn translated(event: &Event, wants: &Wants) -> Option<Event> {
    if event.payload.other().is_empty() || event.envelope.event_type == EventType::OutputStreaming {
        return None;
    }
    let hints = event.envelope.localization_hints.as_ref()?;
    let primary = hints.primary_language.as_deref()?;
    let text = event.to_json();
    let mut tape = Tape::default();
    let doc = tape.read(&text).ok()?;
    let spoken = Spoken::of(event, doc.root())?;
    let mut offers = vec![primary];
    offers.extend(spoken.languages.iter().map(|language| &**language));
    let fallback = hints.fallback_chain.as_deref().unwrap_or_default();
    let best = lookup(&wants.languages, &offers).or_else(|| lookup(fallback, &offers))?;
    if best == primary {
        return None;
    }
    let mut swapped = Event::parse(&spoken.swapped(doc.root(), best, primary))?;
    let hints = Arc::make_mut(swapped.envelope.localization_hints.as_mut()?);
    hints.primary_language = Some(best.to_owned());
    if hints.text_direction.as_ref() != Some(&TextDirection::Auto) {
        let direction =
            if is_right_to_left(best) { TextDirection::RightToLeft } else { TextDirection::LeftToRight };
        hints.text_direction = Some(direction);
    }
    // It was the script of the other language.
    hints.script = None;
    Some(swapped)
}

/// The text fields of an event, and the languages in which it has all of them.
struct Spoken {
    fields: Vec<&'static str>,
    languages: Vec<String>,
}

impl Spoken {
    fn of(event: &Event, root: Value<'_>) -> Option<Self> {
        // Text below the top has no variants, and one event has one language; but what is said twice has those of the summary.
        if let Payload::ProgressUpdated(update) = &event.payload
            && update.progress.description.is_some()
            && update.progress.description != update.summary_normal
        {
            return None;
        }
        let known = event.envelope.event_type.fields();
        let fields: Vec<_> = known
            .iter()
            .filter(|field| field.spoken && root.member(field.name).is_some())
            .map(|field| field.name)
            .collect();
        let first = *fields.first()?;
        let suffixes = event.payload.other().iter().filter_map(|member| suffix(member.name(), first));
        let languages = suffixes
            .filter(|suffix| {
                fields.iter().all(|field| {
                    let variant = event.payload.other().get(&format!("{field}_{suffix}"));
                    // A text, or the labels of all choices.
                    variant.is_some_and(|it| it.as_str().starts_with(['"', '[']) && it.as_str() != "\"\"")
                })
            })
            .map(|suffix| suffix.replace('_', "-"))
            .collect();
        Some(Self { fields, languages })
    }

    /// The event with the text of the two languages changed over.
    fn swapped(&self, root: Value<'_>, best: &str, primary: &str) -> String {
        let wanted = best.replace('-', "_");
        let left = primary.to_ascii_lowercase().replace('-', "_");
        object(|writer| {
            for (key, value) in root.members() {
                let name = key.text().unwrap_or_default();
                let (name, value) = match self.role(&name, &wanted, &left) {
                    Role::Base(variant) => (name, root.member(&variant).unwrap_or(value)),
                    Role::Variant(base, renamed) => (Cow::Owned(renamed), root.member(base).unwrap_or(value)),
                    Role::Replaced => continue,
                    Role::Other => (name, value),
                };
                writer.key(&name);
                match root.member(&format!("summary_normal_{wanted}")) {
                    Some(said) if name == "progress" => described(value, said, writer),
                    _ => writer.raw(value.source()),
                }
            }
        })
    }

    fn role(&self, name: &str, wanted: &str, left: &str) -> Role {
        for field in &self.fields {
            if name == *field {
                return Role::Base(format!("{field}_{wanted}"));
            }
            match suffix(name, field) {
                Some(suffix) if suffix == wanted => return Role::Variant(field, format!("{field}_{left}")),
                // A second text in the language that the event was in: the one that stood first is kept.
                Some(suffix) if suffix == left => return Role::Replaced,
                _ => {}
            }
        }
        Role::Other
    }
}

/// How far the work has come, described in other words where it is described at all.
fn described(progress: Value<'_>, said: Value<'_>, writer: &mut Writer) {
    writer.open_object();
    for (key, value) in progress.members() {
        writer.key(&key.text().unwrap_or_default()).raw(if key.is("description") {
            said.source()
        } else {
            value.source()
        });
    }
    writer.close_object();
}

enum Role {
    /// A field whose text is in this member.
    Base(String),
    /// The text of this field in the wanted language, and the name for what it changes places with.
    Variant(&'static str, String),
    Replaced,
    Other,
}

/// The language by which a name is a variant of a field (C-H1).
fn suffix<'n>(name: &'n str, field: &str) -> Option<&'n str> {
    let suffix = name.strip_prefix(field)?.strip_prefix('_')?;
    let lower = !suffix.bytes().any(|byte| byte.is_ascii_uppercase() || byte == b'-');
    (lower && is_language_tag(&suffix.replace('_', "-"))).then_some(suffix)
}
