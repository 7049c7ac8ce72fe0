/**
 * The contract of all clients: what happens to a harmless and to a dangerous function, whatever goes wrong.
 *
 * Each behaviour is checked over each transport, against the real hub.
 */

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";

import {
  ConsentMismatchError,
  ConsentRefusedError,
  hub as connectHub,
  HubUnreachableError,
  InvalidInputError,
  NoSessionError,
  SessionStoppedError,
  tool,
  ToolTimeoutError,
  type Hub,
  type HubOptions,
} from "../src/index.js";
import { decide, Listener, Recording, TestHub, type AaepEvent } from "./support/hub.js";

type Mode = { name: string; options: (hub: TestHub) => HubOptions };

const MODES: Mode[] = [
  { name: "websocket", options: (hub) => ({ url: hub.url, transport: "websocket" }) },
  { name: "http", options: (hub) => ({ url: hub.url, transport: "http" }) },
  { name: "unix", options: (hub) => ({ url: `unix:${hub.socketPath}`, transport: "websocket" }) },
  { name: "unix over http", options: (hub) => ({ url: `unix:${hub.socketPath}`, transport: "http" }) },
];

/** A dangerous function that records its calls. */
function bank() {
  const sent: { amount: string; to: string }[] = [];
  const send = tool(
    { name: "send", irreversible: true, action: "Send {amount} euro to {to}.", consequence: "The money leaves your account at once." },
    async (args: { amount: string; to: string }) => {
      sent.push(args);
      return `sent ${args.amount}`;
    },
  );
  return { sent, send };
}

const FIVE_TO_BEN = { amount: "5.00", to: "Ben" };

for (const mode of MODES) {
  const only = process.env["TEST_MODES"]?.split(",");
  describe(`contract over ${mode.name}`, { skip: only !== undefined && !only.includes(mode.name) }, () => {
    // Each test has its own hub, so that no listener of another test can answer.
    let server: TestHub;
    let open: Hub[] = [];
    beforeEach(async () => {
      server = await TestHub.start();
    });
    afterEach(async () => {
      for (const hub of open) await hub.close();
      open = [];
      await server.stop();
    });
    const connect = (options: HubOptions = {}) => {
      const hub = connectHub({ ...mode.options(server), ...options });
      open.push(hub);
      return hub;
    };
    test("a harmless tool runs, and is announced and reported", async (t) => {
      const listener = await Listener.connect(t, server.url);
      const recording = await Recording.start(t, server.url);
      const look = tool({ name: "look_up", action: "Looking up {name}." }, ({ name }: { name: string }) => `${name} lives in Oslo`);
      const result = await connect().session("Finding Ben", async (session) => {
        await session.think("Thinking about Ben.");
        await session.say(["Let me ", "look ", "that up. Now."]);
        await session.progress("Half done.", { percent: 50 });
        return look({ name: "Ben" });
      });
      assert.equal(result, "Ben lives in Oslo");
      await listener.wait("session.completed");
      assert.equal(listener.of("awaiting.confirmation").length, 0);
      assert.equal((await listener.wait("tool.invoked"))["summary_normal"], "Looking up Ben.");
      assert.equal((await listener.wait("tool.completed"))["status"], "success");
      assert.equal(listener.of("output.streaming").map((event) => event["chunk"] ?? event["content"] ?? "").join("").includes("look"), true);
      const { code, output } = await recording.validate();
      assert.equal(code, 0, output);
    });

    test("a dangerous tool runs after a yes, with the arguments that were asked about", async (t) => {
      const listener = await Listener.connect(t, server.url, decide("accept"));
      const recording = await Recording.start(t, server.url);
      const { sent, send } = bank();
      const result = await connect().session("Paying bills", () => send(FIVE_TO_BEN));
      assert.equal(result, "sent 5.00");
      assert.deepEqual(sent, [FIVE_TO_BEN]);
      const question = await listener.wait("awaiting.confirmation");
      assert.equal(question["action"], "Send 5.00 euro to Ben.");
      assert.equal(question["irreversible"], true);
      await listener.wait("session.completed");
      const types = listener.types();
      assert.ok(types.indexOf("awaiting.confirmation") < types.indexOf("tool.invoked"), types.join());
      const { code, output } = await recording.validate();
      assert.equal(code, 0, output);
    });

    test("a refused tool does not run", async (t) => {
      const listener = await Listener.connect(t, server.url, decide("reject"));
      const recording = await Recording.start(t, server.url);
      const { sent, send } = bank();
      const refused = await connect()
        .session("Paying bills", () => send(FIVE_TO_BEN))
        .catch((error: unknown) => error);
      assert.ok(refused instanceof ConsentRefusedError);
      assert.equal(refused.by, "reply");
      assert.equal(refused.receipt?.receipt["decision"], "reject");
      assert.deepEqual(sent, []);
      await listener.wait("session.cancelled");
      assert.equal(listener.of("tool.invoked").length, 0);
      const { code, output } = await recording.validate();
      assert.equal(code, 0, output);
    });

    test("an unanswered tool does not run: nobody listens", async (t) => {
      const own = await TestHub.start();
      t.after(() => own.stop());
      const { sent, send } = bank();
      const hub = connectHub(mode.options(own));
      const session = await hub.session("Paying bills");
      const refused = await send(FIVE_TO_BEN, { session }).catch((error: unknown) => error);
      assert.ok(refused instanceof ConsentRefusedError);
      assert.equal(refused.by, "unreachable");
      assert.deepEqual(sent, []);
      await session.cancel("Nothing was sent.");
      await hub.close();
    });

    test("an unanswered tool does not run: the time is over", async (t) => {
      await Listener.connect(t, server.url);
      const session = await connect().session("Paying bills");
      let ran = false;
      const send = session.tool({ name: "send", ask: true, answerTimeoutMs: 1000 }, () => void (ran = true));
      await assert.rejects(send({}), (error) => error instanceof ConsentRefusedError && error.by === "timeout");
      assert.equal(ran, false);
      await session.cancel("Nothing was sent.");
    });

    test("an edited acceptance is not a yes", async (t) => {
      await Listener.connect(t, server.url, () => ({ decision: "accept", modified_action: { amount: "4.00", to: "Ben" } }));
      const { sent, send } = bank();
      await assert.rejects(
        connect().session("Paying bills", () => send(FIVE_TO_BEN)),
        (error) => error instanceof ConsentRefusedError,
      );
      assert.deepEqual(sent, []);
    });

    test("only the allowed one of two parallel calls runs", async (t) => {
      const forBen = (question: AaepEvent) => (String(question["action"]).includes("Ben") ? { decision: "accept" } : { decision: "reject" });
      const listener = await Listener.connect(t, server.url, forBen);
      const recording = await Recording.start(t, server.url);
      const { sent, send } = bank();
      const outcomes = await connect().session("Paying bills", () => Promise.allSettled([send(FIVE_TO_BEN), send({ amount: "9.00", to: "Eve" })]));
      assert.equal(outcomes[0]?.status, "fulfilled");
      assert.equal(outcomes[1]?.status, "rejected");
      assert.deepEqual(sent, [FIVE_TO_BEN]);
      await listener.wait("session.completed");
      const { code, output } = await recording.validate();
      assert.equal(code, 0, output);
    });

    test("a call that is cancelled while the question is open does not run, even after a late yes", async (t) => {
      const listener = await Listener.connect(t, server.url);
      const { sent, send } = bank();
      const aborter = new AbortController();
      const session = await connect().session("Paying bills");
      const call = send(FIVE_TO_BEN, { session, signal: aborter.signal });
      const question = await listener.wait("awaiting.confirmation", (event) => event["session_id"] === session.id);
      aborter.abort();
      await assert.rejects(call, { name: "AbortError" });
      await listener.reply(question, { decision: "accept" });
      // The question is resolved: withdrawn, or by the late yes if that was faster.
      await listener.wait("state.changed", (event) => JSON.stringify(event["extensions"] ?? {}).includes(String(question["reply_token"])));
      await session.cancel("Nothing was sent.");
      await listener.wait("session.cancelled");
      assert.deepEqual(sent, []);
      assert.equal(listener.of("tool.invoked").length, 0);
    });

    test("a call whose signal is aborted between the yes and the run does not run", async (t) => {
      const aborter = new AbortController();
      await Listener.connect(t, server.url, decide("accept"));
      const session = await connect().session("Paying bills");
      const granted = await session.ask({ tool: "send", arguments: FIVE_TO_BEN, irreversible: true, action: "Send {amount} euro to {to}." });
      let ran = false;
      const call = session.call(granted, () => void (ran = true), { signal: aborter.signal });
      aborter.abort();
      await assert.rejects(call, { name: "AbortError" });
      assert.equal(ran, false);
      await session.cancel("Nothing was sent.");
    });

    test("changing the arguments after the question does not change what runs", async (t) => {
      const args = { amount: "5.00", to: "Ben", notes: ["rent"] };
      await Listener.connect(t, server.url, () => {
        args.amount = "5000.00";
        args.notes.push("more");
        return { decision: "accept" };
      });
      let ran: unknown;
      await connect().session("Paying bills", (session) => session.tool({ name: "send", irreversible: true }, (own: typeof args) => void (ran = own))(args));
      assert.deepEqual(ran, { amount: "5.00", to: "Ben", notes: ["rent"] });
    });

    test("a consent is for one session, one call and one use", async (t) => {
      await Listener.connect(t, server.url, decide("accept"));
      const hub = connect();
      const session = await hub.session("Paying bills");
      const other = await hub.session("Paying other bills");
      const granted = await session.ask({ tool: "send", arguments: FIVE_TO_BEN, irreversible: true });
      const run = () => assert.fail("it ran");
      await assert.rejects(other.call(granted, run), (error) => error instanceof ConsentMismatchError && error.reason === "other_session");
      assert.throws(() => granted.verifyCall("send", { amount: "6.00", to: "Ben" }), ConsentMismatchError);
      granted.verifyCall("send", { to: "Ben", amount: "5.00" });
      assert.equal(await session.call(granted, () => 1), 1);
      await assert.rejects(session.call(granted, run), (error) => error instanceof ConsentMismatchError && error.reason === "already_used");
      await session.complete();
      await other.complete();
    });

    test("a gate that raises does not run the tool", async () => {
      const session = await connect().session("Paying bills");
      let ran = false;
      const run = () => void (ran = true);
      const thrower = session.tool<object, void>({ name: "a", irreversible: true, action: () => { throw new Error("no text"); } }, run);
      await assert.rejects(thrower({}), /no text/);
      await assert.rejects(session.tool({ name: "b", irreversible: true, action: "Send {amount}." }, run)({}), InvalidInputError);
      for (const value of [new Date(), { when: new Map() }, Number.NaN, 1n, () => {}, 2 ** 60, "\ud800"]) {
        await assert.rejects(session.tool({ name: "c", irreversible: true }, run)(value), InvalidInputError);
      }
      await assert.rejects(tool({ name: "d", irreversible: true }, run)({}), NoSessionError);
      assert.equal(ran, false);
      await session.cancel("Nothing was sent.");
    });

    test("a tool that fails or takes too long is reported", async (t) => {
      const listener = await Listener.connect(t, server.url);
      const session = await connect().session("Looking");
      await assert.rejects(session.run("look", () => Promise.reject(new Error("no such page: password: hunter22"))), /no such page/);
      const failed = await listener.wait("tool.completed");
      assert.equal(failed["status"], "error");
      assert.equal(failed["error_message"], "no such page: password: [redacted]");
      let signal: AbortSignal | undefined;
      const slow = session.run("wait", (context) => new Promise(() => (signal = context.signal)), { timeoutMs: 20 });
      await assert.rejects(slow, ToolTimeoutError);
      assert.equal(signal?.aborted, true);
      await listener.wait("tool.completed", (event) => event["status"] === "timeout");
      await session.complete();
    });

    test("stopping a session aborts its tools and refuses its questions", { skip: mode.name.includes("http") }, async (t) => {
      const listener = await Listener.connect(t, server.url);
      const session = await connect().session("Long work");
      const running = session.run("work", ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))));
      running.catch(() => {});
      await listener.wait("tool.invoked");
      await listener.stopSession(session.id);
      await assert.rejects(running, (error) => error instanceof SessionStoppedError && error.reason === "person");
      await assert.rejects(session.think("More."), SessionStoppedError);
    });

    test("stopping a session while a question is open means no", async (t) => {
      const listener = await Listener.connect(t, server.url);
      const { sent, send } = bank();
      const session = await connect().session("Paying bills");
      const call = send(FIVE_TO_BEN, { session });
      call.catch(() => {});
      await listener.wait("awaiting.confirmation", (event) => event["session_id"] === session.id);
      await listener.stopSession(session.id);
      await assert.rejects(call, SessionStoppedError);
      assert.deepEqual(sent, []);
    });

    test("a question about what the person wants", async (t) => {
      const listener = await Listener.connect(t, server.url, () => ({ response: "okri" }));
      const session = await connect().session("Paying Ben");
      const choices = [
        { value: "adams", label: { normal: "Ben Adams", in: { es: "Ben Adams" } } },
        { value: "okri", label: { normal: "Ben Okri", in: { es: "Ben Okri" } } },
      ];
      assert.equal(await session.clarify({ normal: "Which Ben?", in: { es: "¿Qué Ben?" } }, { choices }), "okri");
      listener.close();
      const nobody = await session.handOff("I need a person.", { timeoutMs: 1000, packagedContext: { order: "A-17" } });
      assert.ok(["unreachable", "timeout"].includes(nobody.outcome), nobody.outcome);
      await session.cancel("Nobody took over.");
    });

    test("a killed hub means no", async (t) => {
      const own = await TestHub.start();
      const listener = await Listener.connect(t, own.url);
      const { sent, send } = bank();
      const hub = connectHub({ ...mode.options(own), connectTimeoutMs: 300 });
      const session = await hub.session("Paying bills");
      const call = send(FIVE_TO_BEN, { session });
      call.catch(() => {});
      await listener.wait("awaiting.confirmation");
      await own.kill();
      await assert.rejects(call, (error) => error instanceof HubUnreachableError || (error instanceof SessionStoppedError && error.reason === "unreachable"));
      await assert.rejects(send(FIVE_TO_BEN, { session }));
      assert.deepEqual(sent, []);
      await hub.close();
      await own.stop();
    });

    test("a hub that is killed between the yes and the announcement means no", async (t) => {
      const own = await TestHub.start();
      await Listener.connect(t, own.url, decide("accept"));
      const hub = connectHub({ ...mode.options(own), connectTimeoutMs: 300 });
      const session = await hub.session("Paying bills");
      const granted = await session.ask({ tool: "send", arguments: FIVE_TO_BEN, irreversible: true });
      await own.kill();
      let ran = false;
      await assert.rejects(session.call(granted, () => void (ran = true)));
      assert.equal(ran, false);
      await hub.close();
      await own.stop();
    });

    test("no hub means no", async () => {
      const hub = connectHub({ url: "http://127.0.0.1:9", connectTimeoutMs: 100, transport: mode.name === "http" ? "http" : "auto" });
      const { sent, send } = bank();
      await assert.rejects(hub.session("Paying bills", () => send(FIVE_TO_BEN)), HubUnreachableError);
      assert.deepEqual(sent, []);
    });
  });
}
