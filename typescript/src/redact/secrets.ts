/**
 * Secrets in human-readable text: keys, tokens, passwords and card numbers.
 *
 * The words and prefixes are in `table.generated.ts`, which is generated from the table that the hub uses. The functions here are the
 * same algorithm as `crates/aaep/src/secret`, and the tests compare both on the same texts.
 */

import {
  CARD_ISSUERS,
  KEY_NAMES,
  KEY_PREFIXES,
  NON_SECRET_WORDS,
  PASSWORD_NAMES,
  TOKEN_NAME,
} from "./table.generated.js";

/** The text that replaces a secret. It is not a secret itself. */
export const REDACTED = "[redacted]";

/** The start of a private key in PEM form. */
export const PEM_BEGIN = "-----BEGIN ";
const PEM_END = "-----END ";
const AWS_KEY_PREFIX = "AKIA";
const BEARER = "bearer";
const WEB_TOKEN_PREFIX = "eyJ";

/** How many characters of a candidate are examined. Without this limit, a text with many prefixes would take quadratic time. */
const MAX_DECIDING = 512;
/** The number of digits in the shortest and in the longest card numbers. */
const MIN_DIGITS = 13;
const MAX_DIGITS = 19;

/** The position of a secret in a text. */
export interface Secret {
  readonly start: number;
  readonly end: number;
  readonly kind: SecretKind;
}

export type SecretKind = "api_key" | "signed_token" | "bearer_token" | "password" | "private_key" | "card_number";

type Range = readonly [start: number, end: number];

/** Yields the secrets in a text in order. They do not overlap. */
export function* findSecrets(text: string): Generator<Secret> {
  if (!mayContainSecret(text)) return;
  let at = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (isWordCode(code) || code === 0x3a || code === 0x2d) {
      const secret = secretAt(text, at);
      if (secret !== undefined) {
        yield secret;
        at = secret.end;
        continue;
      }
    }
    // Within a word, only the first letter or digit can start a secret.
    if (isWordCode(code)) while (isWordCode(text.charCodeAt(at + 1))) at += 1;
    at += 1;
  }
}

/**
 * Returns the length of the prefix of an unfinished text that can already be classified. The rest may be the start of a secret. At
 * most `maxUndecided` characters remain, unless they start a private key.
 */
export function decidablePrefixLength(text: string, maxUndecided: number): number {
  let cut = lastWordStart(text, text.length);
  while (cut > 0) {
    const before = text.slice(0, cut);
    const start = lastWordStart(before, before.replace(TRAILING_SPACE, "").length);
    const word = text.slice(start, cut).replace(TRAILING_SPACE, "");
    if (start < cut && mayContinue(word)) cut = start;
    else break;
  }
  const begin = text.lastIndexOf(PEM_BEGIN);
  if (begin >= 0 && !text.includes("-----", begin + PEM_BEGIN.length)) cut = Math.min(cut, begin);
  if (mayContainSecret(text)) cut = cutBeforeSecret(text, cut);
  if (text.startsWith(PEM_BEGIN, cut) || text.length - cut <= maxUndecided) return cut;
  let end = Math.max(text.length - maxUndecided, cut);
  // A surrogate pair stays together.
  if ((text.charCodeAt(end) & 0xfc00) === 0xdc00) end += 1;
  return end;
}

const WHITE_SPACE = /\p{White_Space}/u;
const TRAILING_SPACE = /\p{White_Space}+$/u;
const ALPHANUMERIC = /^[\p{Alphabetic}\p{N}]$/u;

function cutBeforeSecret(text: string, cut: number): number {
  let at = 0;
  while (at < cut) {
    const secret = secretAt(text, at);
    if (secret !== undefined) {
      if (secret.end > cut || secret.end === text.length) return at;
      at = secret.end;
    } else if (isOpenQuote(text, at)) {
      return at;
    } else {
      at += 1;
    }
  }
  return cut;
}

function lastWordStart(text: string, end: number): number {
  for (let at = end - 1; at >= 0; at -= 1) if (WHITE_SPACE.test(text.charAt(at))) return at + 1;
  return 0;
}

/** Returns whether a secret may continue after this word and a space. */
function mayContinue(word: string): boolean {
  const name = word.replace(/^["':=({,]+|["':=({,]+$/g, "").toLowerCase();
  const names = [...PASSWORD_NAMES, ...KEY_NAMES, TOKEN_NAME, BEARER, "api", "key"];
  return word === "" || /[:=0-9-]$/.test(word) || names.some((suffix) => name.endsWith(suffix));
}

/** Returns whether a text has characters without which there is no secret. Most texts have none. */
function mayContainSecret(text: string): boolean {
  if (/[-_:=JK]/.test(text)) return true;
  const digits = text.match(/[0-9]/g)?.length ?? 0;
  return digits >= MIN_DIGITS || (digits > 0 && /[bBzS]/.test(text));
}

/** Returns the secret whose pattern starts here. Its range may start later. */
function secretAt(text: string, at: number): Secret | undefined {
  const code = text.charCodeAt(at);
  if (code === 0x3a) return toSecret("password", at, matchUrlPassword(text.slice(at)));
  if (code === 0x2d) return toSecret("private_key", at, matchPrivateKey(text, at));
  if (isDigitCode(code)) return toSecret("card_number", 0, matchCardNumber(text, at));
  if (!isWordCode(code)) return undefined;
  const before = charBefore(text, at);
  if (before !== undefined && ALPHANUMERIC.test(before)) return undefined;
  if (!STARTS.has(text.slice(at, at + 3).toLowerCase())) return undefined;
  switch (text.charAt(at)) {
    case "B":
    case "b":
      return toSecret("bearer_token", at, matchBearer(text.slice(at)));
    case "e":
      return toSecret("signed_token", at, matchWebToken(text.slice(at)));
    default: {
      const rest = text.slice(at);
      return toSecret("api_key", at, matchKey(rest)) ?? toSecret("password", at, matchAssignedValue(rest, before));
    }
  }
}

/** The first three characters of all names and prefixes, to reject most words quickly. */
const STARTS = new Set(
  [...PASSWORD_NAMES, ...KEY_NAMES, TOKEN_NAME, BEARER, WEB_TOKEN_PREFIX, ...KEY_PREFIXES.map(([prefix]) => prefix)].map((word) =>
    word.slice(0, 3).toLowerCase(),
  ),
);

function toSecret(kind: SecretKind, offset: number, range: Range | undefined): Secret | undefined {
  return range && { kind, start: range[0] + offset, end: range[1] + offset };
}

function isDigitCode(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function isWordCode(code: number): boolean {
  return isDigitCode(code) || (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a);
}

function charBefore(text: string, at: number): string | undefined {
  if (at === 0) return undefined;
  const isPair = at >= 2 && (text.charCodeAt(at - 1) & 0xfc00) === 0xdc00;
  return text.slice(isPair ? at - 2 : at - 1, at);
}

function charAfter(text: string, at: number): string | undefined {
  const code = text.codePointAt(at);
  return code === undefined ? undefined : String.fromCodePoint(code);
}

/** Returns the length of the part at the start that the pattern matches. The pattern must match at the start only. */
function prefixLength(text: string, pattern: RegExp): number {
  return pattern.exec(text)?.[0].length ?? 0;
}

function hasDigitsAndLetters(text: string): boolean {
  return /[0-9]/.test(text) && /[A-Za-z]/.test(text);
}

function matchKey(rest: string): Range | undefined {
  const entry = KEY_PREFIXES.find(([prefix]) => rest.startsWith(prefix));
  if (entry === undefined) return undefined;
  const [prefix, minLength] = entry;
  const body = rest.slice(prefix.length);
  const deciding = body.slice(0, MAX_DECIDING);
  const isKey =
    prefix === AWS_KEY_PREFIX
      ? prefixLength(deciding, /^[A-Z0-9]*/) >= minLength
      : prefixLength(deciding, /^[\w-]*/) >= minLength && hasDigitsAndLetters(deciding.slice(0, prefixLength(deciding, /^[\w-]*/)));
  return isKey ? [0, prefix.length + prefixLength(body, /^[\w-]*/)] : undefined;
}

/** Matches at least two parts of base64url. The first is a JSON object, so it starts with `eyJ`. */
function matchWebToken(rest: string): Range | undefined {
  if (!rest.startsWith(WEB_TOKEN_PREFIX)) return undefined;
  const deciding = rest.slice(0, Math.min(MAX_DECIDING, prefixLength(rest, /^[\w.-]*/)));
  const parts = deciding.split(".").filter((part) => part.length >= 4).length;
  if ((parts < 2 && deciding.length < MAX_DECIDING) || deciding.length < 24) return undefined;
  const matched = rest.slice(0, prefixLength(rest, /^[\w.-]*/)).replace(/\.+$/, "");
  return matched.includes(".") ? [0, matched.length] : undefined;
}

function matchBearer(rest: string): Range | undefined {
  const after = stripWord(rest, BEARER);
  if (after === undefined) return undefined;
  const token = after.replace(/^ +/, "");
  const matched = token.slice(0, prefixLength(token, /^[\w.~+/=-]*/)).replace(/\.+$/, "");
  const start = rest.length - token.length;
  return after.length > token.length && matched.length >= 12 && /[0-9]/.test(matched) ? [start, start + matched.length] : undefined;
}

/** Returns the text after a word, ignoring its case. */
function stripWord(rest: string, word: string): string | undefined {
  if (rest.slice(0, word.length).toLowerCase() !== word) return undefined;
  const next = charAfter(rest, word.length);
  return next !== undefined && ALPHANUMERIC.test(next) ? undefined : rest.slice(word.length);
}

interface Assignment {
  readonly name: string;
  /** The text that starts with the value. */
  readonly value: string;
  /** The characters that end the value. */
  readonly ends: string;
  readonly isQuoted: boolean;
  /** Whether the value follows without a space, or in quotes. */
  readonly isAdjacentOrQuoted: boolean;
}

/** Parses an assignment such as `password: …` or `api_key = "…"` at the start of a text. */
function parseAssignment(rest: string, before: string | undefined): Assignment | undefined {
  const names = before === "_" || before === "-" ? NAMES : [...NAMES, TOKEN_NAME];
  for (const name of names) {
    const stripped = stripWord(rest, name);
    if (stripped === undefined) continue;
    const operator = stripped.replace(/^["' ]+/, "");
    if (!/^[:=]/.test(operator)) return undefined;
    const after = operator.slice(1);
    const value = after.replace(/^ +/, "");
    if (value === "") return undefined;
    const quote = value.charAt(0);
    const isQuoted = quote === '"' || quote === "'";
    return {
      name,
      value: isQuoted ? value.slice(1) : value,
      ends: isQuoted ? quote : " \t\n\r,;\"')}]",
      isQuoted,
      isAdjacentOrQuoted: isQuoted || !after.startsWith(" "),
    };
  }
  return undefined;
}

const NAMES: readonly string[] = [...PASSWORD_NAMES, ...KEY_NAMES];

function matchAssignedValue(rest: string, before: string | undefined): Range | undefined {
  const assignment = parseAssignment(rest, before);
  if (assignment === undefined) return undefined;
  const { name, value, ends, isQuoted, isAdjacentOrQuoted } = assignment;
  let length = 0;
  while (length < value.length && !ends.includes(value.charAt(length))) length += 1;
  const trim = (text: string) => (isQuoted ? text : text.replace(/[.!?]+$/, ""));
  const deciding = trim(value.slice(0, Math.min(length, MAX_DECIDING)));
  // The limits count bytes of UTF-8, as the hub does.
  const size = deciding.length >= 6 ? deciding.length : new TextEncoder().encode(deciding).length;
  if (size < 4 || NON_SECRET_WORDS.has(deciding.toLowerCase()) || isPlaceholder(deciding)) return undefined;
  let isSecret: boolean;
  if (PASSWORD_NAMES.includes(name)) isSecret = true;
  else if (name === TOKEN_NAME) isSecret = size >= 6 && hasDigitsAndLetters(deciding);
  else isSecret = isAdjacentOrQuoted || (size >= 6 && /[0-9]/.test(deciding));
  if (!isSecret) return undefined;
  const start = rest.length - value.length;
  return [start, start + trim(value.slice(0, length)).length];
}

function isPlaceholder(value: string): boolean {
  return /^[[<]/.test(value) || /^[*.xX#]*$/.test(value);
}

/** Returns whether the word here is assigned a quoted value whose closing quote has not arrived yet. */
function isOpenQuote(text: string, at: number): boolean {
  if (!STARTS.has(text.slice(at, at + 3).toLowerCase())) return false;
  const assignment = parseAssignment(text.slice(at), charBefore(text, at));
  return assignment !== undefined && assignment.isQuoted && !assignment.value.includes(assignment.ends);
}

/** Matches `://name:password@`. */
function matchUrlPassword(rest: string): Range | undefined {
  if (!rest.startsWith("://")) return undefined;
  const authority = rest.slice(3).split(/[/\p{White_Space}]/u, 1)[0] ?? "";
  const at = authority.lastIndexOf("@");
  const colon = authority.indexOf(":");
  if (at < 0 || colon < 0 || colon > at) return undefined;
  const password = authority.slice(colon + 1, at);
  return isPlaceholder(password) ? undefined : [3 + colon + 1, 3 + at];
}

/** Matches a private key in PEM form, up to its END line or the end of the text. */
function matchPrivateKey(text: string, at: number): Range | undefined {
  if (!text.startsWith(PEM_BEGIN, at)) return undefined;
  const rest = text.slice(at);
  const label = rest.slice(PEM_BEGIN.length).split("-----", 1)[0] ?? "";
  const found = label.indexOf("PRIVATE KEY");
  if (found < 0 || found > 64) return undefined;
  const end = rest.indexOf(PEM_END);
  if (end < 0) return [0, rest.length];
  const close = rest.indexOf("-----", end + PEM_END.length);
  return [0, close < 0 ? rest.length : close + 5];
}

/** Returns the card number that starts with the digit here, with other card numbers that overlap it or follow directly. */
function matchCardNumber(text: string, at: number): Range | undefined {
  const length = groupLength(text, at);
  const mayBeCard = length >= MIN_DIGITS || ((length === 1 || length >= 4) && nextGroup(text, at) !== undefined);
  if (!mayBeCard || !beginsNumber(text, at)) return undefined;
  let end = longestCardEnd(text, at);
  if (end === undefined) return undefined;
  let next = nextGroup(text, at);
  while (next !== undefined && next <= end + 1) {
    end = Math.max(longestCardEnd(text, next) ?? end, end);
    next = nextGroup(text, next);
  }
  return [at, end];
}

/** Returns whether the digit here starts a number, and is not part of a word, a phone number or a decimal fraction. */
function beginsNumber(text: string, at: number): boolean {
  const before = charBefore(text, at);
  if (before === undefined) return true;
  if (before === "+" || before === "_") return false;
  if (before === ".") return !isDigitCode(text.charCodeAt(at - 2));
  return !ALPHANUMERIC.test(before);
}

function longestCardEnd(text: string, at: number): number | undefined {
  let digits = "";
  let group = at;
  let found: number | undefined;
  let hasLongGroups = true;
  let hasSingleDigits = true;
  for (;;) {
    const length = groupLength(text, group);
    const end = group + length;
    if (digits.length + length > MAX_DIGITS) return found;
    digits += text.slice(group, end);
    hasSingleDigits &&= length === 1;
    const after = charAfter(text, end);
    if (after !== undefined && (after === "_" || ALPHANUMERIC.test(after))) return found;
    const next = nextGroup(text, group);
    // A list of single digits may be anything, so it counts only if it has exactly as many digits as a card number.
    const isGrouped = hasLongGroups || (hasSingleDigits && next === undefined && !/[0-9][ -]$/.test(text.slice(Math.max(0, at - 2), at)));
    if (isGrouped && isKnownIssuer(digits) && passesLuhn(digits)) found = end;
    hasLongGroups &&= length >= 4;
    if (next === undefined || !(hasLongGroups || hasSingleDigits)) return found;
    group = next;
  }
}

function groupLength(text: string, at: number): number {
  let length = 0;
  while (length <= MAX_DIGITS && isDigitCode(text.charCodeAt(at + length))) length += 1;
  return length;
}

function nextGroup(text: string, at: number): number | undefined {
  const end = at + groupLength(text, at);
  const separator = text.charAt(end);
  return (separator === " " || separator === "-") && isDigitCode(text.charCodeAt(end + 1)) ? end + 1 : undefined;
}

function isKnownIssuer(digits: string): boolean {
  const prefix = Number(digits.slice(0, 4));
  return CARD_ISSUERS.some(([minDigits, maxDigits, ranges]) => {
    return digits.length >= minDigits && digits.length <= maxDigits && ranges.some(([first, last]) => prefix >= first && prefix <= last);
  });
}

function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let at = 0; at < digits.length; at += 1) {
    const digit = digits.charCodeAt(digits.length - 1 - at) - 0x30;
    sum += at % 2 === 0 ? digit : digit * 2 > 9 ? digit * 2 - 9 : digit * 2;
  }
  return sum % 10 === 0;
}
