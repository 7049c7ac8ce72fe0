// Records @modelcontextprotocol/server-everything with and without the gate, and compares the two recordings message by message.
//
// Usage: node compare_everything.mjs SERVER_SCRIPT SAYSO HUB_URL
// A listener that accepts everything must be connected to the hub. Exits with 1 if the recordings differ.

import { spawn } from "node:child_process";

const [serverScript, sayso, hub] = process.argv.slice(2);
const server = [process.execPath, serverScript, "stdio"];
const gate = [sayso, "mcp", "--name", "everything", "--hub", hub, "--", ...server];

const client = (version) => ({
  protocolVersion: version,
  capabilities: { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } },
  clientInfo: { name: "recorder", version: "1" },
});

/** The recorder's answers to requests from the server. */
const answers = {
  "sampling/createMessage": { role: "assistant", model: "m", content: { type: "text", text: "Sampled." } },
  "elicitation/create": { action: "accept", content: { name: "Ana", check: true, color: "Red" } },
  "roots/list": { roots: [{ uri: "file:///tmp", name: "tmp" }] },
  ping: {},
};

/** The requests, in order. Each one is sent when the previous one has been answered. */
const script = (tools) => [
  ["notifications/initialized"],
  ["ping", {}],
  ["tools/list", {}],
  ["prompts/list", {}],
  ["prompts/get", { name: "simple-prompt" }],
  ["resources/list", {}],
  ["resources/templates/list", {}],
  ["resources/read", { uri: "demo://resource/static/document/architecture.md" }],
  ["resources/subscribe", { uri: "demo://resource/dynamic/text/1" }],
  ["resources/unsubscribe", { uri: "demo://resource/dynamic/text/1" }],
  ["completion/complete", { ref: { type: "ref/prompt", name: "completable-prompt" }, argument: { name: "department", value: "E" } }],
  ["logging/setLevel", { level: "debug" }],
  ["unknown/method", { "ünïcode": "\u2028", nested: [1.0, 1e2, null] }],
  ["notifications/unknown", { x: 1 }],
  ...tools.map(([name, args]) => ["tools/call", { name, arguments: args, _meta: { progressToken: name, "x/unknown": [1] } }]),
  ["tools/call", { name: "no-such-tool", arguments: {} }],
  ["tools/call", { name: "echo", arguments: { wrong: 1 } }],
];

const calls = [
  ["echo", { message: "Hello, \u00fcn\u00efcode" }],
  ["get-sum", { a: 2, b: 3.5 }],
  ["get-tiny-image", {}],
  ["get-annotated-message", { messageType: "error", includeImage: true }],
  ["get-resource-links", { count: 2 }],
  ["get-resource-reference", { resourceType: "Text", resourceId: 1 }],
  ["get-structured-content", { location: "Chicago" }],
  ["get-roots-list", {}],
  ["trigger-long-running-operation", { duration: 1, steps: 3 }],
  ["trigger-sampling-request", { prompt: "Say something.", maxTokens: 10 }],
  ["trigger-elicitation-request", {}],
];

async function record(command, version) {
  const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "ignore"] });
  const exited = new Promise((resolve) => child.on("exit", (code) => resolve(code)));
  const lines = [];
  let waiting = null;
  let buffer = "";
  child.stdout.setEncoding("utf8").on("data", (data) => {
    buffer += data;
    let end;
    while ((end = buffer.indexOf("\n")) >= 0) {
      const line = buffer.slice(0, end + 1);
      buffer = buffer.slice(end + 1);
      const message = JSON.parse(line);
      // The gate's own sign of life while the person is asked is the only message that it adds.
      if (message.method === "notifications/progress" && message.params.message === "Waiting for a person's permission.") continue;
      lines.push(line);
      if (message.method && message.id !== undefined) {
        const result = answers[message.method];
        child.stdin.write(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }) + "\n");
      } else if (waiting && message.id === waiting.id) {
        waiting.resolve();
      }
    }
  });
  let id = 0;
  const request = (method, params) => {
    if (method.startsWith("notifications/")) {
      child.stdin.write(JSON.stringify({ jsonrpc: "2.0", method, params }) + "\n");
      return undefined;
    }
    id += 1;
    const answered = new Promise((resolve) => (waiting = { id, resolve }));
    child.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
    return answered;
  };
  await request("initialize", client(version));
  for (const [method, params] of script(calls)) await request(method, params);
  child.stdin.end();
  return { lines, code: await exited };
}

/** Removes what differs between any two runs: times. */
const normalize = (line) => line.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME").replace(/\d{1,2}:\d\d:\d\d [AP]M/g, "TIME");

/** Messages that the server sends on its own, triggered by timers, arrive at any time, so they are compared as a set. */
function split(lines) {
  const isAsync = (line) => /"method":"(notifications\/(message|tools\/list_changed|resources)|roots\/list")/.test(line);
  return [lines.filter((line) => !isAsync(line)).map(normalize), [...new Set(lines.filter(isAsync).map(normalize))].sort()];
}

let differences = 0;
for (const version of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]) {
  const [direct, gated] = [await record(server, version), await record(gate, version)];
  const [directLines, directAsync] = split(direct.lines);
  const [gatedLines, gatedAsync] = split(gated.lines);
  for (let index = 0; index < Math.max(directLines.length, gatedLines.length); index += 1) {
    if (directLines[index] !== gatedLines[index]) {
      differences += 1;
      console.log(`${version} message ${index} differs:\n  direct: ${directLines[index]}  gated:  ${gatedLines[index]}`);
    }
  }
  if (JSON.stringify(directAsync) !== JSON.stringify(gatedAsync)) {
    differences += 1;
    console.log(`${version}: notifications differ:\n  direct: ${directAsync}  gated:  ${gatedAsync}`);
  }
  if (direct.code !== gated.code) {
    differences += 1;
    console.log(`${version}: exit code ${direct.code} without the gate, ${gated.code} with it`);
  }
  console.log(`${version}: ${directLines.length} messages compared, ${calls.length + 2} calls, exit code ${gated.code}`);
}
process.exit(differences ? 1 : 0);
