"""Text that people hear, in up to three lengths and in several languages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Redactor = Callable[[str], str]

#: Longer texts are cut, because AAEP limits summaries, descriptions and error messages.
MAX_TEXT_CHARS = 1000


@dataclass(frozen=True)
class LocalizedText:
    """A text. It can have a terse form, a detailed form and translations. :func:`text` creates one."""

    normal: str
    terse: str | None = None
    detailed: str | None = None
    translations: Mapping[str, LocalizedText] = field(default_factory=dict)

    def in_language(self, tag: str, translation: str | LocalizedText) -> LocalizedText:
        """Returns the text with a translation. Listeners with that language hear it; all others hear the original."""
        key = _normalize(tag)
        return LocalizedText(self.normal, self.terse, self.detailed, {**self.translations, key: to_text(translation)})

    def map(self, change: Callable[[str], str]) -> LocalizedText:
        """Returns the text with ``change`` applied to every form."""
        return LocalizedText(
            change(self.normal),
            None if self.terse is None else change(self.terse),
            None if self.detailed is None else change(self.detailed),
            {tag: translation.map(change) for tag, translation in self.translations.items()},
        )


Text = str | LocalizedText


def text(normal: str, /, *, terse: str | None = None, detailed: str | None = None, **translations: Text) -> LocalizedText:
    """Creates a text: ``sayso.text("It is raining.", terse="Rain.", es="Llueve.", pt_br="Está chovendo.")``."""
    by_language = {_normalize(tag): to_text(translation) for tag, translation in translations.items()}
    return LocalizedText(normal, terse, detailed, by_language)


def to_text(value: Text) -> LocalizedText:
    return value if isinstance(value, LocalizedText) else LocalizedText(str(value))


def summary_members(value: Text, redact: Redactor) -> dict[str, str]:
    """Returns the members `summary_…` in all lengths and languages."""
    value = to_text(value).map(redact)
    members = {"summary_normal": _cut(value.normal)}
    if value.terse is not None:
        members["summary_terse"] = _cut(value.terse)
    if value.detailed is not None:
        members["summary_detailed"] = _cut(value.detailed)
    for tag, translation in value.translations.items():
        members[f"summary_normal_{tag}"] = _cut(translation.normal)
        if value.terse is not None:
            members[f"summary_terse_{tag}"] = _cut(translation.terse or translation.normal)
        if value.detailed is not None:
            members[f"summary_detailed_{tag}"] = _cut(translation.detailed or translation.normal)
    return members


def text_members(
    name: str, value: Text, redact: Redactor, languages_of: Text | None = None, *, limit: int | None = MAX_TEXT_CHARS
) -> dict[str, str]:
    """Returns a text as the member `name` with its translations.

    A text without translations is repeated for each language of ``languages_of``, because a listener gets an event in a language
    only if all of its texts are available in it.
    """
    value = to_text(value).map(redact)
    members = {name: _cut(value.normal, limit)}
    if value.translations:
        for tag, translation in value.translations.items():
            members[f"{name}_{tag}"] = _cut(translation.normal, limit)
    elif languages_of is not None:
        for tag in to_text(languages_of).translations:
            members[f"{name}_{tag}"] = _cut(value.normal, limit)
    return members


def concatenate(first: LocalizedText, second: LocalizedText) -> LocalizedText:
    """Joins two texts, in the languages that both have."""
    shared = {
        tag: LocalizedText(f"{one.normal} {second.translations[tag].normal}")
        for tag, one in first.translations.items()
        if tag in second.translations
    }
    return LocalizedText(f"{first.normal} {second.normal}", translations=shared)


def redact_value(value: Any, redact: Redactor) -> Any:
    """Returns a JSON value without secrets in its texts."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: redact_value(member, redact) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [redact_value(item, redact) for item in value]
    return value


def humanize(name: str) -> str:
    """Returns a tool's name in a readable form: ``send_email`` and ``sendEmail`` both become "Send email"."""
    words = list(_words(name))
    if not words:
        return name
    readable = []
    for index, word in enumerate(words):
        is_acronym = len(word) > 1 and not any(letter.islower() for letter in word)
        first = word[0] if is_acronym else (word[0].upper() if index == 0 else word[0].lower())
        readable.append(first + word[1:])
    return " ".join(readable)


def sentence(reason: str) -> str:
    """Returns a reason as a sentence."""
    reason = reason.strip() or "unknown"
    return reason[0].upper() + reason[1:] + ("" if reason[-1] in ".!?" else ".")


def cut(value: str) -> str:
    return _cut(value)


def _words(name: str) -> Iterator[str]:
    word, previous = "", ""
    for letter in name:
        starts_word = letter.isupper() and previous.islower()
        if not letter.isalnum() or starts_word:
            if word:
                yield word
            word = ""
        if letter.isalnum():
            word += letter
        previous = letter
    if word:
        yield word


def _normalize(tag: str) -> str:
    return tag.lower().replace("-", "_")


def _cut(value: str, limit: int | None = MAX_TEXT_CHARS) -> str:
    return value if limit is None or len(value) <= limit else value[:limit] + "…"
