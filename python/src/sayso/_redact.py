"""Redaction: secrets are removed from everything that people hear.

The patterns are those of the Rust module ``aaep::secret``. The table is generated from it, and a test compares the results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ._redaction_table import TABLE

REDACTED: str = TABLE["replacement"]

_MAX_DECIDING: int = TABLE["max_deciding_bytes"]
_PREFIXES = [(entry["prefix"], entry["min_length"], bool(entry["uppercase"])) for entry in TABLE["key_prefixes"]]
_PASSWORD_NAMES: list[str] = TABLE["password_names"]
_KEY_NAMES: list[str] = TABLE["key_names"]
_TOKEN_NAME: str = TABLE["token_name"]
_BEARER: str = TABLE["bearer"]
_NON_SECRET_WORDS = frozenset(TABLE["non_secret_words"])
_WEB_TOKEN_PREFIX: str = TABLE["web_token_prefix"]
_PEM_BEGIN: str = TABLE["pem_begin"]
_PEM_END: str = TABLE["pem_end"]
_ISSUERS = [
    (issuer["min_digits"], issuer["max_digits"], [(low, high) for low, high in issuer["prefixes"]]) for issuer in TABLE["issuers"]
]
_MIN_DIGITS = min(issuer[0] for issuer in _ISSUERS)
_MAX_DIGITS = max(issuer[1] for issuer in _ISSUERS)

_WORD = re.compile(r"[A-Za-z0-9]+", re.ASCII)
_START = re.compile(r"[A-Za-z0-9]+|[:-]", re.ASCII)
_TOKEN_CHARS = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)
_UPPERCASE_CHARS = re.compile(r"[A-Z0-9]*", re.ASCII)
_WEB_TOKEN_CHARS = re.compile(r"[A-Za-z0-9_.-]*", re.ASCII)
_BEARER_CHARS = re.compile(r"[A-Za-z0-9_.~+/=-]*", re.ASCII)
_DIGITS = re.compile(r"[0-9]*", re.ASCII)
_HAS_DIGIT = re.compile(r"[0-9]", re.ASCII)
_HAS_LETTER = re.compile(r"[A-Za-z]", re.ASCII)
_HINT_MARK = re.compile(r"[-_:=JK]")
_HINT_LETTER = re.compile(r"[bBzS]")
_VALUE_ENDS = " \t\n\r,;\"')}]"

Range = tuple[int, int]


def redact(text: str) -> tuple[str, int]:
    """Returns a text without secrets, and how many were removed."""
    parts: list[str] = []
    start = count = 0
    for begin, end in find_secrets(text):
        parts += (text[start:begin], REDACTED)
        start, count = end, count + 1
    if not count:
        return text, 0
    parts.append(text[start:])
    return "".join(parts), count


def redact_text(text: str) -> str:
    """Returns a text without secrets."""
    return redact(text)[0]


class StreamRedactor:
    """Redaction of text that arrives in pieces. Text that may be the start of a secret waits for the rest."""

    #: The maximum number of characters held back, except for a private key.
    MAX_PENDING_CHARS = 4096
    #: The number of characters at each end of a private key that are enough to recognise it.
    KEY_EDGE_CHARS = 64

    def __init__(self, redact: Callable[[str], str] = redact_text) -> None:
        self._redact = redact
        self._pending = ""

    @property
    def is_empty(self) -> bool:
        """Whether no text is held back."""
        return not self._pending

    def push(self, piece: str, complete: bool = False) -> str:
        """Adds a piece, and returns the text that can be published now."""
        text = self._pending + piece
        length = len(text) if complete else decidable_prefix_length(text, self.MAX_PENDING_CHARS)
        decided, pending = text[:length], text[length:]
        if len(pending) > 2 * self.MAX_PENDING_CHARS:
            # This is a private key. Only its start and its end are needed to recognise it, so the middle is dropped.
            pending = pending[: self.KEY_EDGE_CHARS] + pending[-self.KEY_EDGE_CHARS - 1 :]
        self._pending = pending
        return self._redact(decided)


def find_secrets(text: str) -> Iterator[Range]:
    """Returns the ranges of the secrets in a text, in order. They do not overlap."""
    if not _may_contain_secret(text):
        return
    at = 0
    while match := _START.search(text, at):
        found = _secret_at(text, match.start())
        if found:
            yield found
            at = found[1]
        else:
            at = match.end()


def _may_contain_secret(text: str) -> bool:
    if _HINT_MARK.search(text):
        return True
    digits = sum(map(text.count, "0123456789"))
    return digits >= _MIN_DIGITS or (digits > 0 and _HINT_LETTER.search(text) is not None)


def _secret_at(text: str, at: int) -> Range | None:
    first = text[at]
    if first == ":":
        return _url_password(text, at)
    if first == "-":
        return _private_key(text, at)
    if "0" <= first <= "9":
        return _card_number(text, at)
    if not (first.isascii() and first.isalpha()):
        return None
    if at and text[at - 1].isalnum():
        return None
    if first in "Bb":
        return _bearer_token(text, at)
    if first == "e":
        return _web_token(text, at)
    return _key(text, at) or _assigned_value(text, at)


def _length(pattern: re.Pattern[str], text: str, at: int, limit: int | None = None) -> int:
    match = pattern.match(text, at) if limit is None else pattern.match(text, at, at + limit)
    return match.end() - at if match else 0


def _has_digits_and_letters(text: str) -> bool:
    return _HAS_DIGIT.search(text) is not None and _HAS_LETTER.search(text) is not None


def _key(text: str, at: int) -> Range | None:
    for prefix, minimum, uppercase in _PREFIXES:
        if not text.startswith(prefix, at):
            continue
        body = at + len(prefix)
        if uppercase:
            is_key = _length(_UPPERCASE_CHARS, text, body, _MAX_DECIDING) >= minimum
        else:
            deciding = text[body : body + _length(_TOKEN_CHARS, text, body, _MAX_DECIDING)]
            is_key = len(deciding) >= minimum and _has_digits_and_letters(deciding)
        return (at, body + _length(_TOKEN_CHARS, text, body)) if is_key else None
    return None


def _web_token(text: str, at: int) -> Range | None:
    if not text.startswith(_WEB_TOKEN_PREFIX, at):
        return None
    deciding = text[at : at + _length(_WEB_TOKEN_CHARS, text, at, _MAX_DECIDING)]
    parts = sum(len(part) >= 4 for part in deciding.split("."))
    if (parts < 2 and len(deciding) < _MAX_DECIDING) or len(deciding) < 24:
        return None
    matched = text[at : at + _length(_WEB_TOKEN_CHARS, text, at)].rstrip(".")
    return (at, at + len(matched)) if "." in matched else None


def _bearer_token(text: str, at: int) -> Range | None:
    after = _strip_word(text, at, _BEARER)
    if after is None:
        return None
    start = _skip(text, after, " ")
    matched = text[start : start + _length(_BEARER_CHARS, text, start)].rstrip(".")
    if start > after and len(matched) >= 12 and _HAS_DIGIT.search(matched):
        return start, start + len(matched)
    return None


def _strip_word(text: str, at: int, word: str) -> int | None:
    """Returns the position after a word, ignoring the case of ASCII letters."""
    end = at + len(word)
    found = text[at:end]
    if not found.isascii() or found.lower() != word:
        return None
    return None if end < len(text) and text[end].isalnum() else end


def _skip(text: str, at: int, chars: str) -> int:
    while at < len(text) and text[at] in chars:
        at += 1
    return at


def _assignment(text: str, at: int) -> tuple[str, int, str, bool] | None:
    """Parses `name: value`. Returns the name, the start of the value, what ends it, and whether it is adjacent or quoted."""
    name, after = "", None
    for candidate in (*_PASSWORD_NAMES, *_KEY_NAMES):
        after = _strip_word(text, at, candidate)
        if after is not None:
            name = candidate
            break
    if after is None and not (at and text[at - 1] in "_-"):
        name, after = _TOKEN_NAME, _strip_word(text, at, _TOKEN_NAME)
    if after is None:
        return None
    after = _skip(text, after, "\"' ")
    if after >= len(text) or text[after] not in ":=":
        return None
    after += 1
    value = _skip(text, after, " ")
    if value >= len(text):
        return None
    if text[value] in "\"'":
        return name, value + 1, text[value], True
    return name, value, _VALUE_ENDS, value == after


def _value_end(text: str, start: int, ends: str, limit: int | None = None) -> int:
    stop = len(text) if limit is None else min(len(text), start + limit)
    return next((at for at in range(start, stop) if text[at] in ends), stop)


def _assigned_value(text: str, at: int) -> Range | None:
    parsed = _assignment(text, at)
    if parsed is None:
        return None
    name, start, ends, is_adjacent_or_quoted = parsed
    trailing = "" if len(ends) == 1 else ".!?"
    deciding = (
        text[start : _value_end(text, start, ends, _MAX_DECIDING)].rstrip(trailing or None)
        if trailing
        else (text[start : _value_end(text, start, ends, _MAX_DECIDING)])
    )
    size = len(deciding.encode("utf-8", "surrogatepass"))
    if size < 4 or deciding.lower() in _NON_SECRET_WORDS or _is_placeholder(deciding):
        return None
    if name in _PASSWORD_NAMES:
        is_secret = True
    elif name == _TOKEN_NAME:
        is_secret = size >= 6 and _has_digits_and_letters(deciding)
    else:
        is_secret = is_adjacent_or_quoted or (size >= 6 and _HAS_DIGIT.search(deciding) is not None)
    if not is_secret:
        return None
    matched = text[start : _value_end(text, start, ends)]
    if trailing:
        matched = matched.rstrip(trailing)
    return start, start + len(matched)


def _is_placeholder(value: str) -> bool:
    return value[:1] in ("[", "<") or all(char in "*.xX#" for char in value)


def _is_open_quote(text: str, at: int) -> bool:
    parsed = _assignment(text, at)
    return parsed is not None and len(parsed[2]) == 1 and parsed[2] not in text[parsed[1] :]


def _url_password(text: str, at: int) -> Range | None:
    if not text.startswith("://", at):
        return None
    start = at + 3
    end = next((i for i in range(start, len(text)) if text[i] == "/" or text[i].isspace()), len(text))
    user, separator, _ = text[start:end].rpartition("@")
    name, colon, password = user.partition(":")
    if not separator or not colon or _is_placeholder(password):
        return None
    begin = start + len(name) + 1
    return begin, begin + len(password)


def _private_key(text: str, at: int) -> Range | None:
    if not text.startswith(_PEM_BEGIN, at):
        return None
    begin = at + len(_PEM_BEGIN)
    label = text[begin:].split("-----", 1)[0]
    if not 0 <= label.find("PRIVATE KEY") <= 64:
        return None
    end = text.find(_PEM_END, at)
    if end >= 0:
        last = text.find("-----", end + len(_PEM_END))
        if last >= 0:
            return at, last + 5
    return at, len(text)


def _card_number(text: str, at: int) -> Range | None:
    length = _group_length(text, at)
    may_continue = length == 1 or length >= 4
    if not (length >= _MIN_DIGITS or (may_continue and _next_group(text, at) is not None)) or not _begins_number(text, at):
        return None
    end = _longest_card_end(text, at)
    if end is None:
        return None
    group = at
    while (following := _next_group(text, group)) is not None and following <= end + 1:
        end = max(end, _longest_card_end(text, following) or end)
        group = following
    return at, end


def _begins_number(text: str, at: int) -> bool:
    before = text[at - 1] if at else ""
    if not before:
        return True
    if before in "+_":
        return False
    if before == ".":
        return not (at >= 2 and "0" <= text[at - 2] <= "9")
    return not before.isalnum()


def _longest_card_end(text: str, at: int) -> int | None:
    digits, group, found = "", at, None
    has_long_groups = has_single_digits = True
    while True:
        length = _group_length(text, group)
        end = group + length
        if len(digits) + length > _MAX_DIGITS:
            return found
        digits += text[group:end]
        has_single_digits = has_single_digits and length == 1
        if end < len(text) and (text[end].isalnum() or text[end] == "_"):
            return found
        following = _next_group(text, group)
        is_grouped = has_long_groups or (has_single_digits and following is None and not _continues_number(text, at))
        if is_grouped and _is_known_issuer(digits) and _passes_luhn(digits):
            found = end
        has_long_groups = has_long_groups and length >= 4
        if following is None or not (has_long_groups or has_single_digits):
            return found
        group = following


def _group_length(text: str, at: int) -> int:
    return _length(_DIGITS, text, at, _MAX_DIGITS + 1)


def _next_group(text: str, at: int) -> int | None:
    end = at + _group_length(text, at)
    if text[end : end + 1] in (" ", "-") and "0" <= text[end + 1 : end + 2] <= "9":
        return end + 1
    return None


def _continues_number(text: str, at: int) -> bool:
    return at >= 2 and text[at - 1] in " -" and "0" <= text[at - 2] <= "9"


def _is_known_issuer(digits: str) -> bool:
    prefix = int(digits[:4])
    return any(
        low <= len(digits) <= high and any(first <= prefix <= last for first, last in prefixes)
        for low, high, prefixes in _ISSUERS
    )


def _passes_luhn(digits: str) -> bool:
    total = 0
    for index, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + index % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def decidable_prefix_length(text: str, max_undecided: int) -> int:
    """Returns how much of an unfinished text can already be classified as secret or not secret."""
    cut = _last_word_start(text, len(text))
    while cut > 0:
        start = _last_word_start(text, len(text[:cut].rstrip()))
        word = text[start:cut].rstrip()
        if start < cut and _may_continue(word):
            cut = start
        else:
            break
    begin = text.rfind(_PEM_BEGIN)
    if begin >= 0 and "-----" not in text[begin + len(_PEM_BEGIN) :]:
        cut = min(cut, begin)
    if _may_contain_secret(text):
        cut = _cut_before_secret(text, cut)
    if text.startswith(_PEM_BEGIN, cut) or len(text) - cut <= max_undecided:
        return cut
    return max(len(text) - max_undecided, cut)


def _cut_before_secret(text: str, cut: int) -> int:
    at = 0
    while at < cut:
        match = _START.search(text, at)
        if match is None or match.start() >= cut:
            return cut
        at = match.start()
        found = _secret_at(text, at)
        if found:
            if found[1] > cut or found[1] == len(text):
                return at
            at = found[1]
        elif _is_open_quote(text, at):
            return at
        else:
            at = match.end()
    return cut


def _last_word_start(text: str, end: int) -> int:
    return next((at + 1 for at in range(end - 1, -1, -1) if text[at].isspace()), 0)


_CONTINUING = (*_PASSWORD_NAMES, *_KEY_NAMES, _TOKEN_NAME, _BEARER, "api", "key")


def _may_continue(word: str) -> bool:
    if not word or word[-1] in ":=-" or "0" <= word[-1] <= "9":
        return True
    return word.strip("\"':=({,").lower().endswith(_CONTINUING)
