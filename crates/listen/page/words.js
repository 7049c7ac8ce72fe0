// What is said of an event: parts, each with its language and direction. The producer's words and ours are never in one part.

import { phrases } from "./phrases.js";

/** Our own words, in the language in use. */
export function own(text) {
  return { text, lang: phrases.lang };
}

/** Our own words that go on in the next part. */
export function begin(text) {
  return { text, lang: phrases.lang, then: " " };
}

/** The hub's words, where it has no others. */
export function hubs(text) {
  return { text: harmless(String(text)), lang: "en" };
}

/** Why something failed: in our words, or in those of the hub. */
export function because(error) {
  return error.isHubs ? hubs(error.message) : own(error.message);
}

/** A name in the midst of our words. It may be of any language, and its direction is its own. */
export function named(text, then = " ") {
  return { text, lang: "", dir: "auto", then };
}

/** The producer's words, in the language that the event names. */
export function theirs(event, text, language) {
  const hints = object(event.localization_hints);
  const direction = ["ltr", "rtl"].includes(hints.text_direction) ? hints.text_direction : "auto";
  return { text: harmless(String(text)), lang: tag(language) ?? tag(hints.primary_language) ?? "", dir: direction };
}

/**
 * A producer's text without what eyes or ears could be tricked by: control characters, and marks that make text run against its own
 * direction. Marks that isolate stay, for they are how languages are mixed.
 */
export function harmless(text) {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2028\u2029\ufeff]/g, " ")
    .replace(/[\u{e0000}-\u{e007f}]/gu, "");
}

/** The text of parts, for whoever wants one string. */
export function plain(parts) {
  return parts.map((part, index) => part.text + (index + 1 < parts.length ? joint(part) : "")).join("");
}

/** What stands between a part and the next: a stop, where the part has none, or a voice runs them together. */
export function joint({ text, then }) {
  return then ?? (/[\p{P}\s]$/u.test(text) ? " " : ". ");
}

/** The same with neighbours of one language as one part. */
export function together(parts) {
  const same = parts.every((part) => part.lang === parts[0].lang && part.dir === undefined);
  return same ? [{ ...parts[0], text: plain(parts) }] : parts;
}

/** The summary that the event means, or the nearest that it has. */
export function summary(event, verbosity = event.verbosity) {
  const order = { terse: ["terse", "normal", "detailed"], detailed: ["detailed", "normal", "terse"] };
  for (const length of order[verbosity] ?? ["normal", "terse", "detailed"]) {
    const text = event[`summary_${length}`];
    if (typeof text === "string" && text.trim() !== "") return text;
  }
  return undefined;
}

/** A state in words; one that nobody has heard of by its name. */
export function state(name) {
  if (Object.hasOwn(phrases.states, name)) return phrases.states[name];
  return phrases.otherState(harmless(String(name)).replaceAll("_", " "));
}

/** Who speaks. */
export function agent(event) {
  const producer = object(event.producer);
  return harmless(String(producer.agent_name || producer.agent_id || phrases.anAgent));
}

/** The type without its prefix, be it compact or an address. */
export function kind(event) {
  const type = String(event.type ?? "");
  return type.replace(/^https:\/\/aaep-protocol\.org\/types\//, "").replace(/^aaep:/, "").replace(/^agent\./, "");
}

/** The parts that tell of an event that is no question; none where there is nothing to tell. */
export function tell(event, verbosity) {
  const words = hubsWords(event) ? undefined : summary(event, verbosity);
  const said = words === undefined ? [] : [theirs(event, words)];
  const or = (text) => (said.length > 0 ? said : [own(text)]);
  const tool = harmless(String(event.tool ?? "")).replaceAll("_", " ");
  switch (kind(event)) {
    case "session.started":
      return [named(agent(event)), own(phrases.started), ...or(phrases.aNewSession)];
    case "session.completed":
      return [own(phrases.done), ...or(phrases.isComplete)];
    case "session.errored": {
      const hint = event.remediation_hint ? [own(phrases.whatYouCanDo), theirs(event, event.remediation_hint)] : [];
      return [own(phrases.error), ...or(phrases.hasFailed), ...hint];
    }
    case "session.cancelled":
      return [own(cancelled(event.cancelled_by)), ...said];
    case "state.changed":
      return or(`${state(event.to_state)}.`);
    case "progress.updated":
      return said.length > 0 ? said : progress(event);
    case "tool.invoked":
      return [own(phrases.tool), ...or(phrases.using(tool))];
    case "tool.completed":
      return finished(event, tool, said);
    case "output.streaming":
      return [theirs(event, event.chunk ?? "", event.language)];
    case "handoff.requested":
      return [own(phrases.handingOver), ...(said.length > 0 ? said : [theirs(event, event.reason ?? "")])];
    default:
      return [own(phrases.event(harmless(kind(event)).replaceAll(/[._:]/g, " "))), ...or(phrases.unknown)];
  }
}

/** Whether the words of a change of state are the hub's, for who has none of their own. */
function hubsWords(event) {
  const { words, reply_token } = object(object(event.extensions).sayso);
  return kind(event) === "state.changed" && (words === "hub" || reply_token !== undefined);
}

/** How long a wait is, in words. */
export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 120) return phrases.seconds(whole);
  const minutes = Math.round(whole / 60);
  return minutes < 120 ? phrases.minutes(minutes) : phrases.hours(Math.round(minutes / 60));
}

function finished(event, tool, said) {
  if (event.status === "success") return said.length > 0 ? [own(phrases.tool), ...said] : [own(phrases.toolDone(tool))];
  const how = event.status === "timeout" ? phrases.toolLate(tool) : phrases.toolFailed(tool);
  const why = event.error_message ? [theirs(event, event.error_message)] : [];
  return [own(how), ...said, ...why];
}

function progress(event) {
  const progress = object(event.progress);
  if (progress.description) return [theirs(event, progress.description)];
  const steps = Number.isFinite(progress.step) && Number.isFinite(progress.total_steps);
  if (steps) return [own(phrases.stepOf(progress.step, progress.total_steps))];
  return Number.isFinite(progress.percent) ? [own(phrases.percent(Math.round(progress.percent)))] : [];
}

function cancelled(by) {
  return Object.hasOwn(phrases.cancelled, by) ? phrases.cancelled[by] : phrases.cancelled.other;
}

/** A tag that can stand in an attribute; nothing where it is none. */
function tag(language) {
  return typeof language === "string" && /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/.test(language) ? language : undefined;
}

export function object(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
}
