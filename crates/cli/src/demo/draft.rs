//! An event in the making.

use aaep::json::Writer;

use super::language::{Language, Line, Phrase};

/// An object that is being written: the type and payload of an event, or the payload of a question.
pub(super) struct Draft {
    writer: Writer,
    language: Language,
}

impl Draft {
    /// An event of that type.
    pub(super) fn event(kind: &str, language: Language) -> Self {
        Self::payload(language).text("type", &format!("aaep:agent.{kind}"))
    }

    /// A payload alone.
    pub(super) fn payload(language: Language) -> Self {
        let mut writer = Writer::default();
        writer.open_object();
        Self { writer, language }
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
        self.writer.raw(json);
        self
    }

    /// Something for people: in the session's language, and in the others beside it (§11.5.1).
    pub(super) fn line(self, name: &str, line: &Line) -> Self {
        let own = self.language;
        let draft = self.text(name, line.to(own));
        Language::ALL
            .into_iter()
            .filter(|other| *other != own)
            .fold(draft, |draft, other| draft.text(&format!("{name}_{}", other.tag()), line.to(other)))
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
