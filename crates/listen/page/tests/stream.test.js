import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.addEventListener ??= () => {};
const { HubStream } = await import("../stream.js");

function deferred() {
  const result = {};
  result.promise = new Promise((resolve) => (result.resolve = resolve));
  return result;
}

/** Starts a stream whose hub sends one event, which `handleEvent` handles. Returns the signal that aborts the stream. */
async function openStream(handleEvent) {
  const opened = deferred();
  globalThis.fetch = async (url, { signal }) => {
    if (url.startsWith("/aaep/v1/subscriptions")) {
      return new Response(JSON.stringify({ subscription_id: "sub_1" }), { status: 201 });
    }
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('event: aaep.event\ndata: {"type":"aaep:agent.progress.updated"}\n\n')),
    });
    opened.resolve(signal);
    return new Response(body, { status: 200 });
  };
  const nothing = () => {};
  const handlers = { event: handleEvent, message: nothing, unreadable: nothing, accepted: nothing, catchUp: nothing, caughtUp: nothing, state: nothing };
  new HubStream({}, handlers).run();
  return opened.promise;
}

test("a stream is not given up while its events are being handled", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const [isHandling, handling] = [deferred(), deferred()];
  const signal = await openStream(() => {
    isHandling.resolve();
    return handling.promise;
  });
  await isHandling.promise;
  context.mock.timers.tick(10 * 60 * 1000);
  assert.equal(signal.aborted, false);
});

test("a stream is given up after 45 seconds of silence", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const isHandling = deferred();
  const signal = await openStream(() => isHandling.resolve());
  await isHandling.promise;
  // The stream is read again after this event.
  await new Promise((done) => setImmediate(done));
  context.mock.timers.tick(44_999);
  assert.equal(signal.aborted, false);
  context.mock.timers.tick(1);
  assert.equal(signal.aborted, true);
});
