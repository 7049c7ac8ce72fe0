/**
 * The client and the description of the agent API (docs/agent-api.json), which the hub's own types generate: every request that the
 * client can make is in it, and so is every member of every body.
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
  properties?: Record<string, Schema>;
  required?: string[];
  enum?: unknown[];
  title?: string;
  allOf?: Schema[];
}
interface Description {
  paths: Record<string, Record<string, { requestBody?: { content: Record<string, { schema: { $ref?: string } }> } }>>;
  components: { schemas: Record<string, Schema> };
}

test("the generated file is up to date", { skip }, () => {
  const { status, stderr } = spawnSync(process.execPath, [join(ROOT, "scripts", "generate-agent-api.mjs"), "--check", FILE], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
});

test("every request and member that the client sends is in the description, and the hub accepts it", async (t) => {
  const server = await TestHub.start();
  t.after(() => server.stop());
  await Listener.connect(t, server.url, (question) => (question.type === "aaep:agent.awaiting.confirmation" ? { decision: "accept" } : { response: "a" }));
  const recording = await Recording.start(t, server.url);
  const requests: { verb: string; path: string; type: string | null; body: string }[] = [];
  const recordingFetch: typeof fetch = (url, init) => {
    const headers = new Headers(init?.headers);
    requests.push({ verb: init?.method ?? "GET", path: new URL(String(url)).pathname, type: headers.get("content-type"), body: String(init?.body ?? "") });
    return fetch(url, init);
  };
  const producer = { agentId: "planner", agentName: "Planner", agentVersion: "1", model: "m", manifestUri: "https://a.example/m.json" };
  const hub = connectHub({ url: server.url, transport: "http", fetch: recordingFetch, producer });
  t.after(() => hub.close());
  const text = { normal: "Text.", terse: "T.", detailed: "A text.", in: { es: { normal: "Texto.", terse: "T.", detailed: "Un texto." } } };
  const session = await hub.session("Everything", {
    summary: text, person: "ada", expectedDurationMs: 1000, tools: ["pay"], states: { comparing: { normal: "Comparing.", in: { es: "Comparando." } } },
    language: "en", textDirection: "ltr", availableLanguages: ["en", "es"], fallbackLanguages: ["en"], script: "Latn", calendar: "gregory",
    producers: [{ agentId: "scout" }], urgency: "normal", verbosity: "normal", correlationId: "c",
    extensions: { acme: { context: "https://acme.example/context", body: { order: 17 } } },
  });
  await session.state("comparing");
  await session.state("thinking", text, { expectedDurationMs: 5 });
  await session.progress(text, { percent: 50, step: 1, totalSteps: 2, description: "Half.", etaMs: 100 });
  await session.say("**Hola.**", { outputId: "out_x1", language: "es", contentType: "text/markdown" });
  await session.as("scout").say("A train.");
  await session.tool(
    {
      name: "pay", irreversible: true, action: text, consequence: text, question: text, success: text, description: text, argsSummary: text,
      expectedDurationMs: 5, answerTimeoutMs: 60_000, allowedReplies: ["accept", "reject"], extraContext: { balance: "10" },
    },
    () => "paid",
  )({}, { toolCallId: "toolu_1" });
  await session.tool({ name: "rename", ask: true, risk: "medium", reversibility: "reversible_with_effort" }, () => 1)({ a: 1 });
  await session.run("fail", () => Promise.reject(new Error("broken"))).catch(() => {});
  assert.equal(await session.clarify(text, { choices: [{ value: "a", label: text }, { value: "b", label: { normal: "Other.", in: { es: "Otro." } } }], accept: ["yes_no", "numeric", "freetext"], context: text, defaultResponse: "a" }), "a");
  await session.handOff(text, { summary: text, target: "human", targetUri: "https://a.example/", urgency: "high", packagedContext: { a: 1 }, timeoutMs: 1000 });
  await session.invite("guide", { expiresInSeconds: 60 });
  await hub.join({ sessionId: session.id, invitation: "inv_none" }, { agentName: "Guide" }).catch(() => {});
  await session.complete(text, { outputSummary: "Done.", resultUri: "https://a.example/r" });
  const second = await hub.session("Failing", { publishRequest: false });
  await second.fail(text, { category: "transient", code: "E1", remediationHint: text, recoverable: true, errorUri: "https://a.example/e" });
  const third = await hub.session("Cancelled", { parent: second.id }).catch(() => hub.session("Cancelled"));
  await third.cancel(text, { cancelledBy: "producer", reason: "no_time", partialResult: "Half." });
  const manifest = { "@context": "https://aaep-protocol.org/context/v1", type: "aaep:producer.manifest", agent_id: "planner", agent_name: "Planner", aaep_versions_supported: ["1.0.0"], conformance_levels_supported: [1], transports_supported: ["sse"], contact: "a@b.example" };
  await hub.publishManifest(manifest).catch((error: unknown) => assert.match(String(error), /agent_id|agent id/));
  const { code, output } = await recording.validate();
  assert.equal(code, 0, output);

  const used = requests.filter(({ path }) => path.startsWith("/agent/"));
  const methods = new Set<string>();
  const matching = (verb: string, path: string) =>
    Object.entries(ROUTES).find(([, [routeVerb, route]]) => routeVerb === verb && new RegExp(`^${route.replace(/\{\w+\}/g, "[^/]+")}$`).test(path));
  for (const { verb, path } of used) {
    const route = matching(verb, path);
    if (route !== undefined) methods.add(route[0]);
    else assert.match(`${verb} ${path}`, /^GET .*\/replies\/rpl_/);
  }
  assert.deepEqual([...methods].sort(), Object.keys(ROUTES).filter((method) => method !== "session.withdraw").sort());

  if (skip) return;
  const description = JSON.parse(readFileSync(FILE, "utf8")) as Description;
  const { schemas } = description.components;
  const byType = new Map(Object.values(schemas).map((schema) => [schema.title, schema]));
  const unknown = new Set<string>();
  const checkBody = (name: string, schema: Schema | undefined, body: Record<string, unknown>) => {
    assert.ok(schema?.properties, `${name} has no schema`);
    const properties = Object.assign({}, schema.properties, ...(schema.allOf ?? []).map((part) => part.properties ?? {})) as Record<string, Schema>;
    for (const [member, value] of Object.entries(body)) {
      const plain = member.replace(/_es$/, "");
      const known = properties[member] ?? properties[plain];
      if (known === undefined) {
        unknown.add(`${name} ${plain}`);
        continue;
      }
      if (known.enum !== undefined) assert.ok(known.enum.includes(value), `${name}.${member}: ${String(value)}`);
    }
    for (const member of schema.required ?? []) assert.ok(member in body, `${name} needs ${member}`);
  };
  for (const { verb, path, type, body } of used) {
    const route = matching(verb, path);
    if (route === undefined || type?.startsWith("text/plain") === true) continue;
    if (type === "application/x-ndjson") {
      for (const line of body.split("\n")) {
        const event = JSON.parse(line) as Record<string, unknown>;
        checkBody(String(event["type"]), byType.get(String(event["type"])), event);
      }
    } else {
      const content = description.paths[route[1][1]]?.[verb.toLowerCase()]?.requestBody?.content["application/json"];
      checkBody(route[0], schemas[content?.schema.$ref?.split("/").at(-1) ?? ""], JSON.parse(body) as Record<string, unknown>);
    }
  }
  assert.deepEqual([...unknown], []);
});
