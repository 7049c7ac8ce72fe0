import assert from "node:assert/strict";
import { test } from "node:test";

import { Ear } from "../ear.js";
import { because, harmless, state } from "../words.js";
import { event, now, started } from "./samples.js";

/** An escape, a bell, text that runs backwards, hidden letters, line ends of other kinds. */
const TRICKS = "good \u001b[2J\u0007\u202eneB ot\u202c \u{e0041}\u2028\u0085\ufeff end";
const FOUND = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2028\u2029\ufeff\u{e0000}-\u{e007f}]/u;

/**
 * Every string that a person is shown or told, by its place. An id, a token and the value of a choice are never shown; the name of a state is,
 * in words.
 */
function texts(value, path = "") {
  if (typeof value === "string") return [[path, value]];
  if (value === null || typeof value !== "object") return [];
  if (typeof value.state === "string") return texts({ ...value, state: undefined, stateInWords: state(value.state) }, path);
  const hidden = ["id", "token", "value", "key", "show", "hush"];
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

const OBJECTS = [
  event("progress.updated", { progress: { description: TRICKS } }),
  event("awaiting.clarification", { question: "Which?", reply_token: "rpl_2", choices: [{ value: "a", label: TRICKS }, { value: TRICKS }] }),
  event("tool.invoked", { tool: "x", localization_hints: { primary_language: TRICKS, text_direction: TRICKS } }),
  started({ producer: { agent_id: "x", agent_name: TRICKS } }),
  started({ producer: { agent_id: TRICKS } }),
  event(`else.${TRICKS}`),
];

test("whatever field a trick stands in, nobody is shown or told it", () => {
  const events = FIELDS.map(([type, field]) => event(type, { reply_token: "rpl_1", [field]: TRICKS }));
  for (const one of [...events, ...OBJECTS]) {
    const ear = new Ear();
    ear.verbosity = "detailed";
    // Beside another agent, so that its name is said.
    ear.hear(started({ session_id: "sess_other" }), now());
    const found = texts(ear.hear(one, now()));
    assert.ok(found.length > 0, JSON.stringify(one));
    for (const [path, text] of found) assert.doesNotMatch(text, FOUND, `${path} of ${JSON.stringify(one)}`);
  }
});

test("what the hub says is as harmless, and so is why it refused", () => {
  const ear = new Ear();
  for (const type of ["sayso:gap", "subscription.close"]) {
    for (const [path, text] of texts(ear.message({ type, reason_message: TRICKS }, 0))) assert.doesNotMatch(text, FOUND, path);
  }
  assert.doesNotMatch(because(Object.assign(new Error(TRICKS), { isHubs: true })).text, FOUND);
});

test("every trick is one that is looked for, and what is left is the text", () => {
  for (const letter of TRICKS.match(new RegExp(FOUND, "gu"))) assert.doesNotMatch(harmless(`a${letter}b`), FOUND, letter.codePointAt(0).toString(16));
  assert.equal(harmless("Ọ̀yọ́\r\nمرحبا \u2068Ben\u2069\tend"), "Ọ̀yọ́\nمرحبا \u2068Ben\u2069\tend");
});
