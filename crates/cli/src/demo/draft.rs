//! An event in the making.

use aaep::event::EventType;
use aaep::json::Writer;

use super::language::{Language, Line, Phrase};
use super::named::Named;

/// An object that is being written: the type and payload of an event, or the payload of a question.
pub(super) struct Draft<'n> {
    writer: Writer,
    language: Language,
    named: &'n Named,
}

impl<'n> Draft<'n> {
    /// An event of that type.
    pub(super) fn event(kind: &str, language: Language, named: &'n Named) -> Self {
        let kind = format!("aaep:agent.{kind}");
        let draft = Self::payload(language, named).text("type", &kind);
        // Those that must be critical are made so by the hub.
        if EventType::of(&kind).is_critical() { draft } else { draft.text("urgency", "normal") }
    }

    /// A payload alone.
    pub(super) fn payload(language: Language, named: &'n Named) -> Self {
        let mut writer = Writer::default();
        writer.open_object();
        Self { writer, language, named }
    }

    /// Something that is the same in every language.
    pub(super) fn text(mut self, name: &str, text: &str) -> Self {
        self.writer.key(name);
        self.writer.text(text);
        self
    }

    /// A member that is JSON already.
    pub(super) fn raw(mut self, name: &str, json: &str) -> Self {
        self.writer.key(name);
        self.writer.raw(&self.named.fill(json));
        self
    }

    /// Something for people: in the session's language, and in the others beside it (§11.5.1).
    pub(super) fn line(self, name: &str, line: &Line) -> Self {
        let (own, named) = (self.language, self.named);
        let draft = self.text(name, &named.fill(line.to(own)));
        Language::ALL.into_iter().filter(|other| *other != own).fold(draft, |draft, other| {
            draft.text(&format!("{name}_{}", other.tag()), &named.fill(line.to(other)))
        })
    }

    /// What is said of it, in three lengths.
    pub(super) fn summary(self, phrase: &Phrase) -> Self {
        self.line("summary_terse", &phrase.terse)
            .line("summary_normal", &phrase.normal)
            .line("summary_detailed", &phrase.detailed)
    }

    pub(super) fn finish(mut self) -> String {
        self.writer.close_object();
        self.writer.finish()
    }
}
