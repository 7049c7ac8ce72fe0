// Where a person hears each optional field of the twelve events, or why this test does not check that. The fields come from the schemas, as in
// src/subscriber/tests/every_field.rs.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { Subscriber } from "../subscriber.js";
import { joinParts } from "../wording.js";
import { announcedTexts, event, receive } from "./samples.js";

const SCHEMAS = new URL("../../../../schemas/", import.meta.url);

/** The text is announced at this verbosity. */
const when = (verbosity, text) => ({ verbosity, place: "announced", text });
/** The text is in the details of the question, or of the card of the session. */
const details = (text) => ({ verbosity: "normal", place: "details", text });
/** The test does not look for the value, for this reason. */
const notCheckedHere = (reason) => ({ reason });

/** For each field, a value and where it is heard. `*` stands for every event. */
const FIELDS = {
  "*/aaep_version": ["1.0.0", notCheckedHere("the hub speaks this version")],
  "*/sequence_number": [7, notCheckedHere("the hub sends events in order")],
  "*/verbosity": ["normal", notCheckedHere("says for whom the texts are written")],
  "*/urgency": ["critical", notCheckedHere("decides what is spoken first")],
  "*/correlation_id": ["trace-7", notCheckedHere("links events for programs")],
  "*/extensions": [{}, notCheckedHere("what the page knows of it is spoken: the exact call, states, outcomes")],
  "*/localization_hints": [{}, notCheckedHere("decides the voice and the direction")],
  "*/localization_hints/primary_language": ["es", notCheckedHere("decides the voice")],
  "*/localization_hints/text_direction": ["rtl", notCheckedHere("decides the direction of the text")],
  "*/localization_hints/available_languages": [["es"], notCheckedHere("the hub chooses the language")],
  "*/localization_hints/fallback_chain": [["es"], notCheckedHere("the hub chooses the language")],
  "*/localization_hints/script": ["Latn", notCheckedHere("the language tag decides the voice")],
  "*/localization_hints/calendar": ["gregory", notCheckedHere("texts contain dates as words")],
  "*/producer/agent_version": ["1.4.2", details("Version: 1.4.2")],
  "*/producer/agent_name": ["Bank", notCheckedHere("heard with the start of a session and each question")],
  "*/producer/model": ["a-model", details("Model: a-model")],
  "*/producer/manifest_uri": ["https://bank.example/m.json", details("Its manifest is at: bank.example")],
  "session.started/summary_terse": ["Short.", when("terse", "Short.")],
  "session.started/summary_detailed": ["Long.", when("detailed", "Long.")],
  "session.started/expected_duration_ms": [120000, when("normal", "About 2 minutes.")],
  "session.started/requested_by": ["user:folake", details("Requested by: folake")],
  "session.started/request_text": ["Plan it.", details("The request was: Plan it.")],
  "session.started/tools_available": [["fetch_balance", "draft"], details("bank has these tools: fetch balance, draft")],
  "session.completed/summary_terse": ["Short.", when("terse", "Short.")],
  "session.completed/summary_detailed": ["Long.", when("detailed", "Long.")],
  "session.completed/duration_ms": [27579, when("detailed", "It took 30 seconds.")],
  "session.completed/tool_invocations_count": [4, when("detailed", "It used 4 tools.")],
  "session.completed/output_summary": ["A plan.", when("terse", "Result: A plan.")],
  "session.completed/result_uri": ["https://bank.example/1?token=x", when("normal", "The full result is at: bank.example")],
  "session.errored/summary_terse": ["Short.", when("terse", "Short.")],
  "session.errored/summary_detailed": ["Long.", when("detailed", "Long.")],
  "session.errored/error_code": ["TOOL_TIMEOUT", when("detailed", "Error code: TOOL_TIMEOUT")],
  "session.errored/error_uri": ["https://bank.example/help", when("normal", "There is help at: bank.example")],
  "session.errored/recoverable": [true, when("terse", "Trying again may work.")],
  "session.errored/remediation_hint": ["Wait.", when("terse", "What you can do: Wait.")],
  "session.cancelled/summary_terse": ["Short.", when("terse", "Short.")],
  "session.cancelled/summary_detailed": ["Long.", when("detailed", "Long.")],
  "session.cancelled/cancellation_reason": ["user_pressed_escape", details("Reason: user pressed escape")],
  "session.cancelled/partial_result": ["One page.", when("normal", "Done so far: One page.")],
  "state.changed/summary_terse": ["Short.", when("detailed", "Short.")],
  "state.changed/summary_normal": ["Reading.", when("detailed", "Reading.")],
  "state.changed/summary_detailed": ["Long.", when("detailed", "Long.")],
  "state.changed/expected_duration_ms": [4000, when("detailed", "About 4 seconds.")],
  "progress.updated/summary_terse": ["Short.", when("terse", "Short.")],
  "progress.updated/summary_normal": ["Reading.", when("normal", "Reading.")],
  "progress.updated/summary_detailed": ["Long.", when("detailed", "Long.")],
  "progress.updated/eta_ms": [12000, when("normal", "About 12 seconds left.")],
  "progress.updated/progress/percent": [60, when("normal", "60 percent.")],
  "progress.updated/progress/step": [3, when("normal", "Step 3.")],
  "progress.updated/progress/total_steps": [5, when("normal", "Step 2 of 5.")],
  "progress.updated/progress/description": ["Reading.", when("normal", "Reading.")],
  "tool.invoked/summary_terse": ["Short.", when("terse", "Short.")],
  "tool.invoked/summary_detailed": ["Long.", when("detailed", "Long.")],
  "tool.invoked/description": ["Reads balances.", details("look up: Reads balances.")],
  "tool.invoked/args_summary": ["account 7821", when("detailed", "With: account 7821")],
  "tool.invoked/expected_duration_ms": [90000, when("normal", "About 2 minutes.")],
  "tool.invoked/risk_level": ["high", when("terse", "High risk.")],
  "tool.invoked/irreversible": [true, when("terse", "This cannot be undone.")],
  "tool.invoked/tool_call_id": ["call_1", notCheckedHere("links a call to its result")],
  "tool.completed/summary_terse": ["Short.", when("terse", "Short.")],
  "tool.completed/summary_normal": ["Read.", when("normal", "Read.")],
  "tool.completed/summary_detailed": ["Long.", when("detailed", "Long.")],
  "tool.completed/tool_call_id": ["call_1", notCheckedHere("links a result to its call")],
  "tool.completed/duration_ms": [1885, when("detailed", "It took 2 seconds.")],
  "tool.completed/error_message": ["No answer.", when("terse", "No answer.")],
  "output.streaming/coalesce_hint": ["sentence", notCheckedHere("decides when the text is spoken")],
  "output.streaming/output_id": ["out_1", notCheckedHere("keeps outputs apart")],
  "output.streaming/content_type": ["image/png", when("normal", "bank sent data of type image/png")],
  "output.streaming/language": ["es", notCheckedHere("decides the voice")],
  "awaiting.confirmation/summary_terse": ["Approve euros?", details("The agent adds: Approve euros?")],
  "awaiting.confirmation/summary_normal": ["Approve dollars?", details("The agent adds: Approve dollars?")],
  "awaiting.confirmation/summary_detailed": ["Approve everything?", details("The agent adds: Approve everything?")],
  "awaiting.confirmation/risk_level": ["medium", when("terse", "Medium risk.")],
  "awaiting.confirmation/irreversible": [true, when("terse", "This cannot be undone.")],
  "awaiting.confirmation/reversibility": ["reversible_with_effort", when("terse", "This is hard to undo.")],
  "awaiting.confirmation/allowed_replies": [["reject"], notCheckedHere("the dialog has only the allowed buttons")],
  "awaiting.confirmation/extra_context": [{ new_balance: 12, fee: "none" }, details("The agent adds: new balance 12, fee none")],
  "awaiting.clarification/summary_terse": ["Which euros?", details("The agent adds: Which euros?")],
  "awaiting.clarification/summary_normal": ["Which dollars?", details("The agent adds: Which dollars?")],
  "awaiting.clarification/summary_detailed": ["Which of all?", details("The agent adds: Which of all?")],
  "awaiting.clarification/accepted_response_kinds": [["numeric"], notCheckedHere("the dialog has the fields for the accepted answers")],
  "awaiting.clarification/choices": [[{ value: "a", label: "Ben Adams" }, { value: "b", label: "Ben Okri" }], notCheckedHere("the dialog has a radio button for each choice")],
  "awaiting.clarification/context": ["There are two.", when("terse", "There are two.")],
  "awaiting.clarification/default_response": ["Ben Adams", details("Without an answer, the agent will use this: Ben Adams")],
  "handoff.requested/summary_terse": ["Short.", when("terse", "Short.")],
  "handoff.requested/summary_normal": ["To an advisor.", when("normal", "To an advisor.")],
  "handoff.requested/summary_detailed": ["Long.", when("detailed", "Long.")],
  "handoff.requested/target_uri": ["queue://service/advisor", details("It goes to: service")],
  "handoff.requested/packaged_context": [{ order: 17, open: ["refund"] }, details("It passes on: order 17, open (refund)")],
  "handoff.requested/urgency_for_handoff": ["high", when("terse", "It is urgent.")],
};

/** The required members of each event. */
const REQUIRED = {
  "session.started": { summary_normal: "Base." },
  "session.completed": { summary_normal: "Base." },
  "session.errored": { error_category: "unknown", summary_normal: "Base." },
  "session.cancelled": { cancelled_by: "producer", summary_normal: "Base." },
  "state.changed": { from_state: "idle", to_state: "deciding" },
  "progress.updated": { progress: { step: 2 } },
  "tool.invoked": { tool: "look_up", summary_normal: "Base." },
  "tool.completed": { tool: "look_up", status: "error" },
  "output.streaming": { chunk: "Base.", position: 0, complete: true },
  "awaiting.confirmation": { action: "Send it.", consequence: "It is gone.", reply_token: "rpl_1", timeout_seconds: 120, default_decision: "reject" },
  "awaiting.clarification": { question: "Who is it?", reply_token: "rpl_1", timeout_seconds: 120 },
  "handoff.requested": { reason: "Base.", target_kind: "human" },
};

/** Returns the optional fields of the twelve events, such as `tool.invoked/args_summary`. */
function optionalFields() {
  const collect = (schema, path) =>
    Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
      const isRequired = (schema.required ?? []).includes(name);
      return [...(isRequired ? [] : [`${path}/${name}`]), ...collect(property, `${path}/${name}`)];
    });
  const files = readdirSync(SCHEMAS).filter((name) => name.startsWith("agent."));
  return files.flatMap((name) => collect(JSON.parse(readFileSync(new URL(name, SCHEMAS), "utf8")), name.replace(/^agent\.|\.schema\.json$/g, "")));
}

/** Returns what a person hears about an event with a field, or without it. */
function hear(kind, field, verbosity) {
  const subscriber = new Subscriber();
  subscriber.verbosity = verbosity;
  const sample = event(kind, { ...structuredClone(REQUIRED[kind]), producer: { agent_id: "bank" } });
  if (field !== undefined) {
    const path = field[0].split("/");
    const target = path.slice(0, -1).reduce((object, name) => (object[name] ??= {}), sample);
    target[path.at(-1)] = field[1];
  }
  const effects = receive(subscriber, sample);
  const question = effects.find((effect) => effect.opened)?.opened;
  const session = subscriber.sessions.get("sess_1");
  const lines = question?.details ?? session.facts.lines(session.agent);
  return { announced: announcedTexts(effects).join("\n"), details: lines.map(joinParts).join("\n") };
}

test("every optional field is heard, or there is a reason why that is not checked", () => {
  const fields = optionalFields();
  assert.ok(fields.length > 200, String(fields.length));
  const used = new Set();
  for (const path of fields) {
    const [kind, ...rest] = path.split("/");
    const name = rest.join("/");
    const row = [path, `*/${name}`].find((one) => Object.hasOwn(FIELDS, one));
    assert.ok(row !== undefined, `${path}: say in FIELDS where a person hears it`);
    used.add(row);
    const [value, { verbosity, place, text, reason }] = FIELDS[row];
    if (reason !== undefined) continue;
    const [heard, without] = [hear(kind, [name, value], verbosity)[place], hear(kind, undefined, verbosity)[place]];
    assert.ok(heard.includes(text), `${path}: ${text} is not in ${heard}`);
    assert.ok(!without.includes(text), `${path}: ${text} is heard anyway: ${without}`);
  }
  assert.deepEqual(Object.keys(FIELDS).filter((row) => !used.has(row)), []);
});

test("hostile text in any field is made harmless", () => {
  const hostile = "x\u001b[2J\u202ey";
  let count = 0;
  for (const [row, [value]] of Object.entries(FIELDS)) {
    const [kind, ...rest] = row.split("/");
    const isText = typeof value === "string" && rest[0] !== "localization_hints";
    const values = { tools_available: [hostile], extra_context: { note: hostile, [hostile]: 1 }, packaged_context: { note: hostile }, choices: [{ value: "a", label: hostile }] };
    if (!isText && values[rest[0]] === undefined) continue;
    count += 1;
    for (const verbosity of ["terse", "normal", "detailed"]) {
      const heard = Object.values(hear(kind === "*" ? "session.started" : kind, [rest.join("/"), values[rest[0]] ?? hostile], verbosity)).join("\n");
      assert.doesNotMatch(heard, /[\u001b\u202e]/, `${row}: ${JSON.stringify(heard)}`);
    }
  }
  assert.ok(count > 50, String(count));
});

test("an address is announced as its host, its file name or its last part", () => {
  const announcedAddress = (uri) => {
    const sample = hear("session.completed", ["result_uri", uri], "normal").announced;
    return sample.split("The full result is at: ")[1];
  };
  assert.equal(announcedAddress("https://bank.example:8443/a?b#c"), "bank.example");
  assert.equal(announcedAddress("https://bank.example@evil.example/a"), "evil.example");
  assert.equal(announcedAddress("mailto:ada@bank.example"), "ada@bank.example");
  assert.equal(announcedAddress("urn:report:17"), "17");
  assert.equal(announcedAddress("file:///home/ada/report.pdf"), "report.pdf");
  assert.equal(announcedAddress("no address"), undefined);
});
