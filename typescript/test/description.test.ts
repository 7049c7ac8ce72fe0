/**
 * The client and the description of the agent API (docs/agent-api.json), which the hub's own types generate: every request that the
 * client makes is in it, and the client can send every member of every body.
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { ROUTES } from "../src/agent-api.generated.js";
import { hub as connectHub } from "../src/index.js";
import { Listener, Recording, TestHub } from "./support/hub.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FILE = process.env["TEST_AGENT_API"] ?? join(ROOT, "..", "docs", "agent-api.json");
const skip = !existsSync(FILE) || readFileSync(FILE, "utf8").trim() === "";

interface Schema {
  $ref?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  required?: string[];
  enum?: unknown[];
  title?: string;
  allOf?: Schema[];
  oneOf?: Schema[];
}
interface Operation {
  requestBody?: { content: Record<string, { schema: Schema }> };
  parameters?: { name: string; in: string }[];
}
interface Description {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

/** Sent by a method of its own, which the test demands instead. */
const SENT_BY_METHOD: Record<string, string> = {
  "aaep:agent.output.streaming": "session.output",
  "aaep:agent.awaiting.confirmation": "session.ask",
  "aaep:agent.awaiting.clarification": "session.clarify",
};

/** What the description has and this client never sends. */
const NOT_SENT = [
  // The hub knows the last state.
  "aaep:agent.state.changed from_state",
  // These are always critical, so the hub sets their urgency.
  "session.ask urgency",
  "session.clarify urgency",
  "session.hand_off urgency",
  "aaep:agent.handoff.requested urgency",
  "aaep:agent.session.errored urgency",
  // A hand-off always belongs to the main producer, and the hub refuses another one.
  "session.hand_off producer",
  "aaep:agent.handoff.requested producer",
  // The main producer ends the session, and is named by the hub.
  "aaep:agent.session.completed producer",
  "aaep:agent.session.errored producer",
  "aaep:agent.session.cancelled producer",
  // Only the request that asks for an answer has a time limit.
  "aaep:agent.handoff.requested timeout_seconds",
];

test("the generated file is up to date", { skip }, () => {
  const { status, stderr } = spawnSync(process.execPath, [join(ROOT, "scripts", "generate-agent-api.mjs"), "--check", FILE], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
});

test("the client sends every request and member of the description and no others, and the hub accepts them", async (t) => {
  const server = await TestHub.start();
  t.after(() => server.stop());
  const listener = await Listener.connect(t, server.url, (question) => {
    if (question["action"] === "Wait.") return undefined;
    return question.type === "aaep:agent.awaiting.confirmation" ? { decision: "accept" } : { response: "a" };
  });
  const recording = await Recording.start(t, server.url);
  const requests: { verb: string; path: string; query: URLSearchParams; body: string }[] = [];
  const recordingFetch: typeof fetch = (url, init) => {
    const { pathname: path, searchParams: query } = new URL(String(url));
    requests.push({ verb: init?.method ?? "GET", path, query, body: String(init?.body ?? "") });
    return fetch(url, init);
  };
  const producer = { agentId: "agent", agentName: "Planner", agentVersion: "1", model: "m", manifestUri: "https://a.example/m.json" };
  const hub = connectHub({ url: server.url, transport: "http", fetch: recordingFetch, producer });
  t.after(() => hub.close());
  const text = { normal: "Text.", terse: "T.", detailed: "A text.", in: { es: { normal: "Texto.", terse: "T.", detailed: "Un texto." } } };
  const options = { urgency: "normal", verbosity: "normal", correlationId: "c", extensions: { acme: { context: "https://acme.example/context", body: { order: 17 } } } } as const;
  const session = await hub.session("Everything", {
    summary: text, person: "ada", expectedDurationMs: 1000, tools: ["pay"], states: { comparing: { normal: "Comparing.", in: { es: "Comparando." } } },
    language: "en", textDirection: "ltr", availableLanguages: ["en", "es"], fallbackLanguages: ["en"], script: "Latn", calendar: "gregory",
    producers: [{ agentId: "scout", agentName: "Scout" }, { agentId: "guide" }], ...options,
  });
  await session.state("comparing");
  await session.state("thinking", text, { expectedDurationMs: 5 });
  await session.progress(text, { percent: 50, step: 1, totalSteps: 2, description: "Half.", etaMs: 100 });
  await session.say(["**Hola.** ", "Adiós. "], { outputId: "out_x1", language: "es", contentType: "text/markdown", coalesceHint: "sentence" });
  await session.say("Now I decide.", { stays: true });
  await session.state("deciding", text);
  // A session sets the producer of everything that it sends, if it speaks as one.
  const scout = session.as("scout");
  await scout.say("A train.");
  await scout.state("thinking", text);
  await scout.progress(text);
  await scout.tool(
    {
      name: "pay", irreversible: true, action: text, consequence: text, question: text, success: text, description: text, argsSummary: text,
      expectedDurationMs: 5, answerTimeoutMs: 60_000, allowedReplies: ["accept", "reject"], extraContext: { balance: "10" },
    },
    () => "paid",
  )({ a: 1 }, { toolCallId: "toolu_1" });
  await session.tool({ name: "rename", ask: true, risk: "medium", reversibility: "reversible_with_effort" }, () => 1)({ a: 1 });
  await session.run("fail", () => Promise.reject(new Error("broken"))).catch(() => {});
  assert.equal(await scout.clarify(text, { choices: [{ value: "a", label: text }, { value: "b", label: { normal: "Other.", in: { es: "Otro." } } }], accept: ["yes_no", "numeric", "freetext"], context: text, defaultResponse: "a" }), "a");
  await session.handOff(text, { summary: text, target: "human", targetUri: "https://a.example/", urgency: "high", packagedContext: { a: 1 }, timeoutMs: 1000 });
  await session.announceHandOff(text, { summary: text, target: "human", targetUri: "https://a.example/", urgency: "high", packagedContext: { a: 1 } });
  await session.invite("guide", { expiresInSeconds: 60 });
  await hub.join({ sessionId: session.id, invitation: "inv_none" }, { agentName: "Guide" }).catch(() => {});
  const aborter = new AbortController();
  const withdrawn = session.ask({ tool: "wipe", arguments: {}, irreversible: true, action: "Wait.", signal: aborter.signal });
  await listener.wait("awaiting.confirmation", (question) => question["action"] === "Wait.");
  aborter.abort();
  await assert.rejects(withdrawn);
  await session.complete(text, { outputSummary: text, resultUri: "https://a.example/r" });
  const second = await hub.session("Failing", { publishRequest: false, ...options });
  await second.fail(text, { category: "transient", code: "E1", remediationHint: text, recoverable: true, errorUri: "https://a.example/e" });
  const third = await hub.session("Cancelled", { parent: second.id, ...options });
  await third.cancel(text, { cancelledBy: "producer", reason: "no_time", partialResult: text });
  const manifest = {
    "@context": "https://aaep-protocol.org/context/v1", type: "aaep:producer.manifest", agent_id: "agent", agent_name: "Planner", agent_version: "1",
    aaep_versions_supported: ["1.0.0"], conformance_levels_supported: [1, 2, 3], transports_supported: ["sse"], contact: "https://a.example/",
    default_verbosity: "normal", event_types_emitted: ["agent.session.started"], extensions_supported: [], languages_supported: ["en"], max_concurrent_subscriptions: 5,
  };
  await hub.publishManifest(manifest);
  const { code, output } = await recording.validate();
  assert.equal(code, 0, output);

  if (skip) return;
  const description = JSON.parse(readFileSync(FILE, "utf8")) as Description;
  const { schemas } = description.components;
  const resolve = (schema: Schema): Schema => (schema.$ref === undefined ? schema : (schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {}));
  const operationOf = (method: string) => {
    const [verb, path] = ROUTES[method as keyof typeof ROUTES];
    return description.paths[path]?.[verb.toLowerCase()];
  };
  const schemaOf = (method: string) => resolve(operationOf(method)?.requestBody?.content["application/json"]?.schema ?? {});
  const events = new Map((schemas["AgentEvent"]?.oneOf ?? []).map(resolve).map((schema) => [String(schema.title), schema]));

  // The members of each request, by the method or the event's type.
  const described = new Map<string, Set<string>>();
  for (const method of Object.keys(ROUTES)) {
    const query = (operationOf(method)?.parameters ?? []).filter((parameter) => parameter.in === "query").map(({ name }) => name);
    const own = method === "session.output" ? ["text"] : [...membersOf(schemaOf(method), resolve)];
    described.set(method, new Set([...query, ...own]));
  }
  for (const [type, schema] of events) described.set(type, membersOf(schema, resolve).add("type"));

  const sent = new Map<string, Set<string>>();
  const record = (name: string, schema: Schema | undefined, body: Record<string, unknown>) => {
    const members = sent.get(name) ?? new Set();
    sent.set(name, members);
    for (const member of membersIn(body)) members.add(member);
    for (const member of schema?.required ?? []) assert.ok(member in body, `${name} needs ${member}`);
    for (const [member, value] of Object.entries(body)) {
      const known = schema?.properties?.[member]?.enum;
      if (known !== undefined) assert.ok(known.includes(value), `${name}.${member}: ${String(value)}`);
    }
  };
  const matching = (verb: string, path: string) =>
    Object.entries(ROUTES).find(([, [routeVerb, route]]) => routeVerb === verb && new RegExp(`^${route.replace(/\{\w+\}/g, "[^/]+")}$`).test(path));
  for (const { verb, path, query, body } of requests.filter(({ path }) => path.startsWith("/agent/"))) {
    const method = matching(verb, path)?.[0];
    if (method === undefined) {
      assert.match(`${verb} ${path}`, /^GET .*\/replies\/rpl_/);
    } else if (method === "session.event") {
      for (const line of body.split("\n")) {
        const event = JSON.parse(line) as Record<string, unknown>;
        record(String(event["type"]), events.get(String(event["type"])), event);
      }
    } else {
      const members = method === "session.output" ? { ...Object.fromEntries(query), text: body } : body === "" ? {} : (JSON.parse(body) as Record<string, unknown>);
      record(method, schemaOf(method), members);
    }
  }

  const differences = (left: Map<string, Set<string>>, right: Map<string, Set<string>>, isMeant: (name: string, member: string) => boolean) =>
    [...left].flatMap(([name, members]) => [...members].filter((member) => !right.get(name)?.has(member) && isMeant(name, member)).map((member) => `${name} ${member}`));
  assert.deepEqual(differences(sent, described, (_, member) => !member.includes(".")), [], "every member that is sent is described");
  // The hub repeats the localization hints of the session in every event.
  const isDemanded = (name: string, member: string) => !(name in SENT_BY_METHOD) && (name === "session.start" || !member.startsWith("localization_hints"));
  assert.deepEqual(differences(described, sent, isDemanded).sort(), [...NOT_SENT].sort(), "every described member can be sent");
  assert.deepEqual([...described.keys()].filter((name) => !sent.has(name)), ["session.event", ...Object.keys(SENT_BY_METHOD)]);
  for (const [type, method] of Object.entries(SENT_BY_METHOD)) {
    if (method === "session.output") continue;
    for (const member of described.get(type) ?? []) assert.ok(member === "type" || described.get(method)?.has(member), `${method} ${member}`);
  }
});

/** Returns the members of an object and of the objects in it, such as `progress.step`. */
function membersOf(schema: Schema, resolve: (schema: Schema) => Schema, prefix = ""): Set<string> {
  const found = new Set<string>();
  const { properties = {}, allOf = [] } = resolve(schema);
  for (const part of allOf) for (const name of membersOf(part, resolve, prefix)) found.add(name);
  for (const [name, member] of Object.entries(properties)) {
    found.add(prefix + name);
    for (const inner of [member, member.items ?? {}]) for (const each of membersOf(inner, resolve, `${prefix}${name}.`)) found.add(each);
  }
  return found;
}

/** Returns the members of a body and of the objects in it. Translations count as the member that they translate. */
function membersIn(body: Record<string, unknown>, prefix = ""): Set<string> {
  const found = new Set<string>();
  for (const [member, value] of Object.entries(body)) {
    const name = prefix + member.replace(/_es$/, "");
    found.add(name);
    for (const part of Array.isArray(value) ? value : [value]) {
      if (typeof part === "object" && part !== null) for (const each of membersIn(part as Record<string, unknown>, `${name}.`)) found.add(each);
    }
  }
  return found;
}
