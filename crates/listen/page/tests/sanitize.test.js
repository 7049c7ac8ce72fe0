import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Subscriber } from "../subscriber.js";
import { errorText, sanitize, stateLabel } from "../wording.js";
import { event, now, started } from "./samples.js";

/** An escape sequence, a bell, a direction override, hidden tag characters and unusual line ends. */
const UNSAFE_TEXT = "good \u001b[2J\u0007\u202eneB ot\u202c \u{e0041}\u2028\u0085\ufeff end";
const UNSAFE_CHARACTERS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2028\u2029\ufeff\u{e0000}-\u{e007f}]/u;

/**
 * Returns every string that a person sees or hears, with its path. Ids, tokens and the values of choices are never shown. The name of a
 * state is shown as a label.
 */
function texts(value, path = "") {
  if (typeof value === "string") return [[path, value]];
  if (value === null || typeof value !== "object") return [];
  if (typeof value.state === "string") return texts({ ...value, state: undefined, stateLabel: stateLabel(value.state) }, path);
  const hidden = ["id", "token", "value", "key", "questionToken", "dropStates"];
  return Object.entries(value).flatMap(([name, inner]) => (hidden.includes(name) ? [] : texts(inner, `${path}.${name}`)));
}

const FIELDS = [
  ["session.started", "summary_normal"],
  ["session.completed", "summary_normal"],
  ["session.errored", "summary_normal"],
  ["session.errored", "remediation_hint"],
  ["session.cancelled", "summary_normal"],
  ["session.cancelled", "cancelled_by"],
  ["state.changed", "summary_normal"],
  ["state.changed", "to_state"],
  ["tool.invoked", "summary_normal"],
  ["tool.invoked", "tool"],
  ["tool.completed", "tool"],
  ["tool.completed", "error_message"],
  ["progress.updated", "summary_normal"],
  ["output.streaming", "chunk"],
  ["output.streaming", "language"],
  ["handoff.requested", "summary_normal"],
  ["handoff.requested", "reason"],
  ["awaiting.confirmation", "action"],
  ["awaiting.confirmation", "consequence"],
  ["awaiting.confirmation", "risk_level"],
  ["awaiting.confirmation", "summary_detailed"],
  ["awaiting.clarification", "question"],
  ["awaiting.clarification", "context"],
  ["something.else", "summary_normal"],
];

const EVENTS_WITH_NESTED_FIELDS = [
  event("progress.updated", { progress: { description: UNSAFE_TEXT } }),
  event("awaiting.clarification", { question: "Which?", reply_token: "rpl_2", choices: [{ value: "a", label: UNSAFE_TEXT }, { value: UNSAFE_TEXT }] }),
  event("tool.invoked", { tool: "x", localization_hints: { primary_language: UNSAFE_TEXT, text_direction: UNSAFE_TEXT } }),
  started({ producer: { agent_id: "x", agent_name: UNSAFE_TEXT } }),
  started({ producer: { agent_id: UNSAFE_TEXT } }),
  event(`else.${UNSAFE_TEXT}`),
];

test("unsafe characters are removed from every field", () => {
  const events = FIELDS.map(([type, field]) => event(type, { reply_token: "rpl_1", [field]: UNSAFE_TEXT }));
  for (const one of [...events, ...EVENTS_WITH_NESTED_FIELDS]) {
    const subscriber = new Subscriber();
    subscriber.verbosity = "detailed";
    // A second session is open, so that the agent is named.
    subscriber.receive(started({ session_id: "sess_other" }), now());
    const found = texts(subscriber.receive(one, now()));
    assert.ok(found.length > 0, JSON.stringify(one));
    for (const [path, text] of found) assert.doesNotMatch(text, UNSAFE_CHARACTERS, `${path} of ${JSON.stringify(one)}`);
  }
});

test("texts and refusals from the hub are sanitized", () => {
  const subscriber = new Subscriber();
  for (const type of ["sayso:gap", "subscription.close"]) {
    for (const [path, text] of texts(subscriber.receiveMessage({ type, reason_message: UNSAFE_TEXT }, 0))) assert.doesNotMatch(text, UNSAFE_CHARACTERS, path);
  }
  assert.doesNotMatch(errorText(Object.assign(new Error(UNSAFE_TEXT), { fromHub: true })).text, UNSAFE_CHARACTERS);
});

test("sanitize removes each unsafe character and keeps the rest", () => {
  for (const character of UNSAFE_TEXT.match(new RegExp(UNSAFE_CHARACTERS, "gu"))) assert.doesNotMatch(sanitize(`a${character}b`), UNSAFE_CHARACTERS, character.codePointAt(0).toString(16));
  assert.equal(sanitize("Ọ̀yọ́\r\nمرحبا \u2068Ben\u2069\tend"), "Ọ̀yọ́\nمرحبا Ben\tend");
  assert.equal(sanitize("\u2067\u20661234\u2069\u20665678\u2069\u2069"), "12345678");
});

test("every character is treated as in the table that the terminal shares", () => {
  const { characters, texts: cases } = JSON.parse(readFileSync(new URL("sanitized_characters.json", import.meta.url), "utf8"));
  const expected = new Map();
  for (const { from, to, page } of characters) {
    for (let code = Number.parseInt(from, 16); code <= Number.parseInt(to, 16); code += 1) expected.set(code, page);
  }
  for (let code = 0; code <= 0x10ffff; code += 1) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    const character = String.fromCodePoint(code);
    const results = { removed: "ab", space: "a b", "line end": "a\nb", kept: `a${character}b` };
    assert.equal(sanitize(`a${character}b`), results[expected.get(code) ?? "kept"], code.toString(16));
  }
  for (const { text, page } of cases) assert.equal(sanitize(text), page);
});
