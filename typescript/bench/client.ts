/**
 * `npm run bench [-- CALLS]`
 *
 * The cost of an event and of a token through the client, compared with a bare WebSocket send of the same JSON in the same process.
 *
 * Prints medians over several rounds, and ratios. Nothing here asserts a duration.
 */

import { hub as connectHub } from "../src/index.js";
import { parseAddress } from "../src/location.js";
import { openSocket } from "../src/transport/socket.js";
import { TestHub } from "../test/support/hub.js";

const COUNT = Number(process.argv[2] ?? 1000);
const ROUNDS = 5;

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
let keys = 0;
const newKey = () => `bench-${(keys += 1)}`;
const word = { session_id, text: "word ", output_id: "out_1" };
const repeat = (work: () => Promise<unknown>) => async () => {
  for (let at = 0; at < COUNT; at += 1) await work();
};
/** The measurements. All are run in each round, so that a busy moment of the machine affects all equally. */
const subjects: [name: string, work: () => Promise<unknown>][] = [
  ["event, bare WebSocket", repeat(() => plain.call("session.event", { session_id, events: [event] }))],
  ["event, bare WebSocket with an idempotency key", repeat(() => plain.call("session.event", { session_id, events: [event], idempotency_key: newKey() }))],
  ["token, bare WebSocket", repeat(() => plain.call("session.output", word))],
  ["token, bare WebSocket with an idempotency key", repeat(() => plain.call("session.output", { ...word, idempotency_key: newKey() }))],
];
const closers: (() => Promise<void>)[] = [];
for (const [name, options] of [
  ["WebSocket", { url: server.url, transport: "websocket" }],
  ["Unix socket", { url: `unix:${server.socketPath}`, transport: "websocket" }],
  ["HTTP", { url: server.url, transport: "http" }],
] as const) {
  const hub = connectHub(options);
  const session = await hub.session("Bench.");
  subjects.push([`event, client over ${name}`, repeat(() => session.progress("Working on it."))]);
  subjects.push([`token, client over ${name}, one at a time`, repeat(() => session.write("word "))]);
  subjects.push([`token, client over ${name}, as a stream`, () => session.say(Array.from({ length: COUNT }, () => "word "))]);
  closers.push(async () => {
    await session.complete();
    await hub.close();
  });
}
const times = subjects.map((): number[] => []);
for (let round = 0; round < ROUNDS; round += 1) {
  for (const [at, [, work]] of subjects.entries()) {
    const start = performance.now();
    await work();
    times[at]?.push(((performance.now() - start) * 1000) / COUNT);
  }
}
for (const close of closers) await close();
plain.close();
await server.stop();
const medians = times.map((all) => all.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] as number);
console.log(`node ${process.versions.node}, ${COUNT} calls, median of ${ROUNDS} rounds`);
for (const [at, [name]] of subjects.entries()) {
  const floor = medians[name.startsWith("event") ? 0 : 2] as number;
  const micros = medians[at] as number;
  console.log(`${name.padEnd(52)} ${micros.toFixed(1).padStart(8)} µs  ${(micros / floor).toFixed(2)} x`);
}
