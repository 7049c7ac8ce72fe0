// Turns events into text: a list of parts, each with its language and direction. The producer's text and the page's own text never
// share a part.

import { ALL_LANGUAGES, phrases } from "./phrases.js";

/** Creates a part for the page's own text, in the current language. */
export function ownText(text) {
  return { text, lang: phrases.lang };
}

/** Creates a part for the page's own text that the next part continues. */
export function ownLeadIn(text) {
  return { text, lang: phrases.lang, separator: " " };
}

/** Creates a part for the hub's text, which is in English. */
export function hubText(text) {
  return { text: sanitize(String(text)), lang: "en" };
}

/** Creates a part for an error message, which comes from the page or from the hub. */
export function errorText(error) {
  return error.fromHub ? hubText(error.message) : ownText(error.message);
}

/** Creates a part for a name inside the page's own text. Its language is unknown, so the browser detects its direction. */
export function nameText(text, separator = " ") {
  return { text, lang: "", dir: "auto", separator };
}

/** Creates the parts of a phrase that takes a name or another text that is not the page's own, such as `phrases.hasFinished`. */
export function phraseAround(phrase, text) {
  const [before, after] = phrase("\n").split("\n");
  const middle = nameText(text, /^\s/.test(after) ? " " : "");
  return [...(before.trim() === "" ? [] : [ownLeadIn(before.trim())]), middle, ...(after.trim() === "" ? [] : [ownLeadIn(after.trim())])];
}

/** Creates the parts of one of the page's labels and a text from the producer. Without a text, there are no parts. */
export function labelled(label, part) {
  return part === undefined || part.text === "" ? [] : [ownText(label), part];
}

/** Creates a part for the producer's text, in the language that the event states. */
export function producerText(event, text, language) {
  const hints = asObject(event.localization_hints);
  const direction = ["ltr", "rtl"].includes(hints.text_direction) ? hints.text_direction : "auto";
  return { text: sanitize(String(text)), lang: languageTag(language) ?? languageTag(hints.primary_language) ?? "", dir: direction };
}

/**
 * Removes characters that could mislead a reader or listener: control characters, invisible characters, and every mark that changes
 * the text direction. `tests/sanitized_characters.json` has the rules of this function and of `sanitize` in `src/sanitize.rs`.
 */
export function sanitize(text) {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]/g, " ")
    .replace(/[\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu, "");
}

/** Joins parts into one string. */
export function joinParts(parts) {
  return parts.map((part, index) => part.text + (index + 1 < parts.length ? separatorAfter(part) : "")).join("");
}

/** Returns the separator after a part. After a part without final punctuation, it is a full stop, so that a screen reader pauses between the parts. */
export function separatorAfter({ text, separator }) {
  return separator ?? (/[\p{P}\s]$/u.test(text) ? " " : ". ");
}

/** Merges the parts into one if all of them are in the same language. */
export function mergeParts(parts) {
  const isOneLanguage = parts.every((part) => part.lang === parts[0].lang && part.dir === undefined);
  return isOneLanguage ? [{ ...parts[0], text: joinParts(parts) }] : parts;
}

/** Returns the event's summary for a verbosity, or the nearest one that it has. */
export function summaryText(event, verbosity = event.verbosity) {
  const order = { terse: ["terse", "normal", "detailed"], detailed: ["detailed", "normal", "terse"] };
  for (const level of order[verbosity] ?? ["normal", "terse", "detailed"]) {
    const text = event[`summary_${level}`];
    if (typeof text === "string" && text.trim() !== "") return text;
  }
  return undefined;
}

/** Returns the label of a state. An unknown state is labelled with its name. */
export function stateLabel(name) {
  if (Object.hasOwn(phrases.states, name)) return phrases.states[name];
  return phrases.unknownState(sanitize(String(name)).replaceAll("_", " "));
}

/** Returns the agent's name, or its id if it has no name. A name that the hub has not verified is followed by the id. */
export function agentName(event, isVerified = isNameVerified(event)) {
  const { name, id, nameIsId } = readAgent(event);
  if (isVerified || nameIsId) return name;
  // A name that contains the label of an id could pretend to have another id.
  const imitatesId = ALL_LANGUAGES.some((one) => name.toLowerCase().includes(one.agentIdLabel));
  return phrases.agentWithId(imitatesId ? phrases.unnamedAgent : name.replace(/[()[\]\uff08\uff09]/g, " "), id);
}

/** Returns the id of an agent whose verified name does not show it. */
export function verifiedAgentId(event) {
  const { id, nameIsId } = readAgent(event);
  return isNameVerified(event) && !nameIsId ? id : undefined;
}

/** Returns the agent's name and id. `nameIsId` is true if they differ only in case, spaces, hyphens and underscores, or if there is no id. */
function readAgent(event) {
  const producer = asObject(event.producer);
  const name = sanitize(String(producer.agent_name || producer.agent_id || phrases.unnamedAgent));
  const id = sanitize(String(producer.agent_id ?? ""));
  const fold = (text) => text.toLowerCase().replace(/[\s_-]/g, "");
  return { name, id, nameIsId: id === "" || fold(name) === fold(id) };
}

/** Whether the hub has verified the name of the agent that sent this event. Agents cannot set this extension. */
export function isNameVerified(event) {
  return asObject(asObject(event.extensions).sayso).verified_name === true;
}

/** Returns the event type without its prefix, which is either compact or a URL. */
export function eventKind(event) {
  const type = String(event.type ?? "");
  return type.replace(/^https:\/\/aaep-protocol\.org\/types\//, "").replace(/^aaep:/, "").replace(/^agent\./, "");
}

/** Returns a duration in round numbers. */
export function formatDuration(seconds) {
  const total = Math.max(0, Math.round(seconds));
  if (total <= 20) return phrases.seconds(total);
  if (total < 55) return phrases.seconds(5 * Math.round(total / 5));
  const minutes = Math.max(1, Math.round(total / 60));
  return minutes < 120 ? phrases.minutes(minutes) : phrases.hours(Math.round(minutes / 60));
}

/** Returns the words of a text, in lower case. */
export function wordsOf(text) {
  return text.toLowerCase().match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
}

/** Maximum length of a text that is announced or shown as a detail, in characters. A longer one is cut. */
const MAX_DETAIL_CHARS = 4000;

/** Cuts a text that is too long. */
export function shorten(text, max = MAX_DETAIL_CHARS) {
  const chars = [...String(text)];
  return chars.length <= max ? String(text) : `${chars.slice(0, max).join("")}…`;
}

/** Returns the words of a tool's name. */
export function toolName(event) {
  return sanitize(String(event.tool ?? "")).replaceAll("_", " ");
}

/** Returns the language tag if it is well-formed. */
function languageTag(language) {
  return typeof language === "string" && /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/.test(language) ? language : undefined;
}

export function asObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
}
