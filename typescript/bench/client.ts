/**
 * The cost of an event and of a token through the client, beside a bare WebSocket send of the same JSON in the same process.
 *
 * Prints medians over several rounds, and ratios. Nothing here asserts a duration.
 */

import { hub as connectHub } from "../src/index.js";
import { parseAddress } from "../src/location.js";
import { openSocket } from "../src/transport/socket.js";
import { TestHub } from "../test/support/hub.js";

const COUNT = 1000;
const ROUNDS = 5;

async function measure(work: () => Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const start = performance.now();
    await work();
    times.push(((performance.now() - start) * 1000) / COUNT);
  }
  return times.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] as number;
}

const server = await TestHub.start();

/** A WebSocket with JSON-RPC, and nothing else: each call waits for its response. */
async function bare() {
  const socket = await openSocket(parseAddress(server.url), undefined, 5000);
  const waiting = new Map<number, (result: { session_id: string }) => void>();
  socket.onMessage = (text) => {
    const message = JSON.parse(text) as { id?: number; result?: { session_id: string } };
    if (message.id !== undefined) waiting.get(message.id)?.(message.result ?? { session_id: "" });
  };
  let next = 0;
  const call = (method: string, params: object) =>
    new Promise<{ session_id: string }>((resolve) => {
      next += 1;
      waiting.set(next, resolve);
      socket.send(JSON.stringify({ jsonrpc: "2.0", id: next, method, params }));
    });
  return { call, close: () => socket.close() };
}

const plain = await bare();
const { session_id } = await plain.call("session.start", { summary_normal: "Bench." });
const event = { type: "aaep:agent.progress.updated", progress: { description: "Working on it." }, summary_normal: "Working on it." };
const results: [name: string, micros: number][] = [];
results.push([
  "event, bare WebSocket",
  await measure(async () => {
    for (let at = 0; at < COUNT; at += 1) await plain.call("session.event", { session_id, events: [event] });
  }),
]);
results.push([
  "token, bare WebSocket",
  await measure(async () => {
    for (let at = 0; at < COUNT; at += 1) await plain.call("session.output", { session_id, text: "word " });
  }),
]);
for (const [name, options] of [
  ["WebSocket", { url: server.url, transport: "websocket" }],
  ["Unix socket", { url: `unix:${server.socketPath}`, transport: "websocket" }],
  ["HTTP", { url: server.url, transport: "http" }],
] as const) {
  const hub = connectHub(options);
  const session = await hub.session("Bench.");
  results.push([
    `event, client over ${name}`,
    await measure(async () => {
      for (let at = 0; at < COUNT; at += 1) await session.progress("Working on it.");
    }),
  ]);
  results.push([
    `token, client over ${name}, one at a time`,
    await measure(async () => {
      for (let at = 0; at < COUNT; at += 1) await session.write("word ");
    }),
  ]);
  results.push([
    `token, client over ${name}, as a stream`,
    await measure(() => session.say(Array.from({ length: COUNT }, () => "word "))),
  ]);
  await session.complete();
  await hub.close();
}
plain.close();
await server.stop();
const floor = { event: results[0]?.[1] ?? 1, token: results[1]?.[1] ?? 1 };
console.log(`node ${process.versions.node}, ${COUNT} calls, median of ${ROUNDS} rounds`);
for (const [name, micros] of results) {
  const ratio = micros / (name.startsWith("event") ? floor.event : floor.token);
  console.log(`${name.padEnd(52)} ${micros.toFixed(1).padStart(8)} µs  ${ratio.toFixed(2)} x`);
}
