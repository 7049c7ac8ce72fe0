/** The client's own behaviour: finding the hub, reconnecting, texts, canonical JSON. */

import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createServer as createTcpServer, connect as connectTcp, type Socket, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { spawnSync } from "node:child_process";

import {
  AccessDeniedError,
  actionDigest,
  canonicalize,
  ConsentRefusedError,
  currentSession,
  Granted,
  hub as connectHub,
  HubUnreachableError,
  InvalidInputError,
  redactSecrets,
  RuleViolationError,
  Session,
  SessionStoppedError,
  tool,
} from "../src/index.js";
import { Redactor } from "../src/redact/redactor.js";
import { httpClient, HttpTransport } from "../src/transport/http.js";
import type { Transport } from "../src/transport/transport.js";
import { gateTools, narrate } from "../src/adapters/ai.js";
import { checkSocketOwner, findHub, parseAddress } from "../src/location.js";
import { humanizeName } from "../src/text.js";
import { BINARY, decide, Listener, Recording, TestHub } from "./support/hub.js";

async function start(t: TestContext, options?: string[]): Promise<TestHub> {
  const server = await TestHub.start(options);
  t.after(() => server.stop());
  return server;
}

/**
 * Forwards TCP connections, with the hub's own address in the `Host` header. After the first bytes of a connection, `filter` may refuse it,
 * or leave it without an answer.
 */
async function proxy(t: TestContext, target: string, filter: (head: string) => boolean | "swallow" = () => true) {
  const sockets = new Set<Socket>();
  const hub = new URL(target);
  let own = "";
  const server = createTcpServer((client) => {
    sockets.add(client);
    client.on("error", () => {});
    let upstream: Socket | undefined;
    client.on("data", (data) => {
      const text = data.toString("latin1");
      if (upstream === undefined) {
        const decision = filter(text);
        if (decision === "swallow") return undefined;
        if (!decision) return client.end("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        upstream = connectTcp(Number(hub.port), hub.hostname);
        sockets.add(upstream);
        upstream.on("error", () => client.destroy());
        upstream.on("close", () => client.destroy());
        upstream.pipe(client);
        client.on("close", () => upstream?.destroy());
      }
      return upstream.write(Buffer.from(text.replace(`ost: ${own}`, `ost: ${hub.host}`), "latin1"));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  own = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const cut = () => sockets.forEach((socket) => socket.destroy());
  t.after(() => {
    cut();
    server.close();
  });
  return { url: `http://${own}`, cut };
}

describe("canonical JSON", () => {
  test("equal values have equal texts, whatever their order", () => {
    assert.equal(canonicalize({ b: [1, 1e21, -0, 0.1], a: "é\u0007\"", "\ufb33": 1, "\ud83d\ude00": 2 }), '{"a":"é\\u0007\\"","b":[1,1e+21,0,0.1],"\ud83d\ude00":2,"\ufb33":1}');
    assert.equal(canonicalize({ a: undefined, b: null }), '{"b":null}');
    assert.equal(canonicalize(Object.create(null)), "{}");
  });

  test("values without a canonical form are refused", () => {
    const cycle: Record<string, unknown> = {};
    cycle["self"] = cycle;
    let deep: unknown = 0;
    for (let level = 0; level < 61; level += 1) deep = [deep];
    const odd = [undefined, Number.NaN, Infinity, 2 ** 53, 1e16, 1n, Symbol("x"), () => {}, new Date(), new Map(), new (class A {})(), "\ud800", { "\udc00": 1 }, [undefined], cycle, deep, { toJSON: () => 1 }];
    for (const value of odd) assert.throws(() => canonicalize(value), InvalidInputError);
  });

  test("a getter is read once, and what runs is what was read", async (t) => {
    const server = await start(t);
    const listener = await Listener.connect(t, server.url, decide("accept"));
    let reads = 0;
    const args = { get amount() { return (reads += 1); } };
    const hub = connectHub({ url: server.url });
    t.after(() => hub.close());
    let ran: unknown;
    await hub.session("Paying", (session) => session.tool({ name: "pay", irreversible: true }, (own) => void (ran = own))(args));
    assert.equal(reads, 1);
    assert.deepEqual(ran, { amount: 1 });
    assert.equal((await listener.wait("awaiting.confirmation"))["action"], "Pay. (amount: 1)");
  });

  test("the digest is the hub's", async () => {
    assert.equal(await actionDigest("transfer", canonicalize({ to: "Ben", amount: 500 })), await actionDigest("transfer", canonicalize({ amount: 5e2, to: "\u0042en" })));
    assert.match(await actionDigest("send", "{}"), /^sha256:[0-9a-f]{64}$/);
  });
});

describe("texts", () => {
  test("a tool's name is split into words", () => {
    const names = { send: "Send", send_email: "Send email", sendEmail: "Send email", SendEmail: "Send email", "send-e_mail": "Send e mail", "bank.look_up__balance_": "Bank look up balance", get_HTTP_page: "Get HTTP page", look2: "Look2", buscar_año: "Buscar año", __: "__", "": "" };
    for (const [name, words] of Object.entries(names)) assert.equal(humanizeName(name), words);
  });

  test("each listener hears its language, and all arguments", async (t) => {
    const server = await start(t);
    const listener = await Listener.connect(t, server.url, decide("accept"));
    const hub = connectHub({ url: server.url, producer: { agentName: "Bank" } });
    t.after(() => hub.close());
    const recording = await Recording.start(t, server.url);
    const pay = tool(
      {
        name: "pay",
        irreversible: true,
        action: { normal: "Pay {amount} euro.", in: { es: "Pagar {amount} euros." } },
        consequence: { normal: "It cannot be undone.", in: { es: "No se puede deshacer." } },
        confidential: ["iban"],
        success: "Paid {amount} euro.",
        answerTimeoutMs: 60_000,
      },
      (_args: { amount: string; iban: string; note: string }) => "paid",
    );
    await hub.session("Paying", { summary: { normal: "Paying.", terse: "Pay.", in: { es: "Pagando." } }, language: "en", person: "ada", correlationId: "c1" }, async (session) => {
      await session.state("comparing", { normal: "Comparing prices.", in: { es: "Comparando precios." } }).catch(() => {});
      await pay({ amount: "5.00", iban: "DE00", note: "rent" });
    });
    const question = await listener.wait("awaiting.confirmation");
    assert.equal(question["action"], "Pay 5.00 euro. (note: \"rent\")");
    assert.equal((await listener.wait("tool.completed"))["summary_normal"], "Paid 5.00 euro.");
    const { code, output } = await recording.validate();
    assert.equal(code, 0, output);
  });
});

describe("finding the hub", () => {
  test("an address is checked", () => {
    for (const bad of ["ftp://x", "http://", "http://h/path", "http://u:p@h", "http://h?token=x", "unix:", "http://h#x"]) assert.throws(() => parseAddress(bad), InvalidInputError, bad);
    assert.deepEqual(parseAddress("unix:/run/x.sock"), { kind: "unix", path: "/run/x.sock", isPersonal: false });
    assert.equal(parseAddress("127.0.0.1:8787").kind, "tcp");
  });

  /** Sets environment variables until the end of the test. */
  const setEnvironment = (t: TestContext, variables: Record<string, string | undefined>) => {
    const before = Object.fromEntries(Object.keys(variables).map((name) => [name, process.env[name]]));
    const set = (all: Record<string, string | undefined>) => {
      for (const [name, value] of Object.entries(all)) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    };
    t.after(() => set(before));
    set(variables);
  };

  test("the personal hub is found, and asks", async (t) => {
    const personal = await TestHub.startPersonal();
    t.after(() => personal.stop());
    setEnvironment(t, { SAYSO_URL: undefined, SAYSO_TOKEN: undefined, XDG_RUNTIME_DIR: personal.environment["XDG_RUNTIME_DIR"] });
    assert.deepEqual(await findHub(undefined), { kind: "unix", path: personal.socketPath, isPersonal: true });
    let decision: "accept" | "reject" = "accept";
    await Listener.connect(t, personal.url, (question) => decide(decision)(question));
    for (const transport of ["websocket", "http"] as const) {
      for (decision of ["accept", "reject"] as const) {
        const recording = await Recording.start(t, personal.url);
        const found = connectHub({ transport });
        t.after(() => found.close());
        let ran = 0;
        const pay = found.session("Personal", (session) => session.tool({ name: "pay", irreversible: true }, () => (ran += 1))({}));
        if (decision === "accept") await pay;
        else await assert.rejects(pay, ConsentRefusedError);
        assert.equal(ran, decision === "accept" ? 1 : 0);
        const { code, output } = await recording.validate();
        assert.equal(code, 0, output);
      }
    }
  });

  test("without a personal hub, the error says how to start it", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "sayso-ts-run-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    setEnvironment(t, { SAYSO_URL: undefined, XDG_RUNTIME_DIR: folder });
    const path = join(folder, "aaep", "sayso-hub.sock");
    assert.deepEqual(await findHub(undefined), { kind: "unix", path, isPersonal: true });
    await assert.rejects(connectHub({ connectTimeoutMs: 50 }).session("x"), (error) => error instanceof HubUnreachableError && /sayso listen/.test(error.message));
    const server = await start(t);
    process.env["SAYSO_URL"] = server.url;
    assert.equal((await findHub(undefined)).kind, "tcp");
    await connectHub().session("Found", () => {});
  });

  test("a socket that another user may serve is refused", async (t) => {
    const server = await start(t);
    const refuse = async (path: string, reason: RegExp) => {
      for (const transport of ["websocket", "http", "auto"] as const) {
        const isRefused = (error: unknown) => error instanceof AccessDeniedError && reason.test(error.message);
        await assert.rejects(connectHub({ url: `unix:${path}`, connectTimeoutMs: 50, transport }).session("x"), isRefused);
      }
    };
    await checkSocketOwner(server.socketPath);
    const folder = dirname(server.socketPath);
    // A link could point to somebody else's socket.
    symlinkSync(server.socketPath, join(folder, "link.sock"));
    await refuse(join(folder, "link.sock"), /is not a socket/);
    for (const mode of [0o770, 0o707, 0o777]) {
      chmodSync(folder, mode);
      await refuse(server.socketPath, /can replace/);
    }
    // Others can create files in a folder with the sticky bit, but not replace ours.
    chmodSync(folder, 0o1777);
    await checkSocketOwner(server.socketPath);
    chmodSync(folder, 0o700);
    if (process.getuid?.() !== 0) return t.diagnostic("only root can give a file to another user");
    chownSync(server.socketPath, 4711, 4711);
    await refuse(server.socketPath, /belongs to another user/);
    chownSync(server.socketPath, 0, 0);
    chownSync(folder, 4711, 4711);
    await refuse(server.socketPath, /can replace/);
    chownSync(folder, 0, 0);
    await checkSocketOwner(server.socketPath);
  });

  test("a token is sent, and a missing or wrong one is refused", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "sayso-ts-tokens-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, "tokens");
    const made = spawnSync(BINARY, ["token", "new", "--role", "agent", "--agent-id", "bank", "--name", "bank", "--tokens", file], { encoding: "utf8" });
    const token = /sayso_[A-Za-z0-9_-]+/.exec(made.stdout + made.stderr)?.[0];
    assert.ok(token, made.stdout + made.stderr);
    const server = await start(t, ["--tokens", file]);
    for (const transport of ["auto", "websocket", "http"] as const) {
      const hub = connectHub({ url: server.url, token, transport });
      await hub.session("Allowed", () => {});
      await hub.close();
      if (transport === "websocket") continue;
      for (const wrong of [undefined, "sayso_wrong"]) {
        const denied = connectHub({ url: server.url, transport, ...(wrong === undefined ? {} : { token: wrong }) });
        await assert.rejects(denied.session("Denied"), AccessDeniedError);
        await denied.close();
      }
    }
    await assert.rejects(connectHub({ url: server.url, token: "a\nb" }).session("x"), InvalidInputError);
  });
});

describe("connections", () => {
  test("a lost connection does not lose the answer, an event or a call", async (t) => {
    const server = await start(t);
    const listener = await Listener.connect(t, server.url);
    const between = await proxy(t, server.url);
    const hub = connectHub({ url: between.url, transport: "websocket" });
    t.after(() => hub.close());
    const session = await hub.session("Paying");
    let runs = 0;
    const call = session.tool({ name: "pay", irreversible: true }, () => (runs += 1))({ amount: 5 });
    const question = await listener.wait("awaiting.confirmation");
    between.cut();
    await listener.reply(question, { decision: "accept" });
    assert.equal(await call, 1);
    between.cut();
    await Promise.all([session.think("One."), session.think("Two.")]);
    await session.complete();
    assert.equal(runs, 1);
    assert.equal(listener.of("tool.invoked").length, 1);
  });

  for (const [how, decision] of [["refused", false], ["never answered", "swallow"]] as const) {
    test(`where the upgrade to WebSocket is ${how}, HTTP is used`, async (t) => {
      const server = await start(t);
      await Listener.connect(t, server.url, decide("accept"));
      const between = await proxy(t, server.url, (head) => (/upgrade: websocket/i.test(head) ? decision : true));
      const hub = connectHub({ url: between.url, connectTimeoutMs: 4000 });
      t.after(() => hub.close());
      assert.equal(await hub.session("Paying", (session) => session.tool({ name: "pay", irreversible: true }, () => "paid")({})), "paid");
    });
  }

  test("over HTTP, a session that a person stops is noticed, and its tool is aborted", async (t) => {
    const server = await start(t);
    const listener = await Listener.connect(t, server.url);
    const address = parseAddress(server.url);
    const transport = new HttpTransport(await httpClient(address, undefined, fetch), 1000, 20);
    t.after(() => transport.close());
    const { session_id: id } = await transport.call("session.start", { summary_normal: "Working." });
    const settings = { redactor: new Redactor(redactSecrets), language: "en", options: {}, states: new Set<string>(), activity: { startedAt: 0, calls: 0 } };
    const session = new Session(String(id), transport, settings);
    const running = session.run("work", ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))));
    running.catch(() => {});
    await listener.wait("tool.invoked");
    await listener.stopSession(session.id);
    await assert.rejects(running, SessionStoppedError);
  });

  test("events are in the order of the calls, and tokens share requests", async (t) => {
    const server = await start(t);
    const listener = await Listener.connect(t, server.url);
    const hub = connectHub({ url: server.url });
    t.after(() => hub.close());
    await hub.session("Writing", async (session) => {
      const words = Array.from({ length: 500 }, (_, at) => `w${at} `);
      await Promise.all([...words.map((word) => session.write(word)), session.think("Afterwards.")]);
    });
    await listener.wait("session.completed");
    const text = listener.of("output.streaming").map((event) => String(event["chunk"] ?? event["text"] ?? event["content"] ?? JSON.stringify(event))).join("");
    assert.ok(text.indexOf("w0 ") < text.indexOf("w499"), text.slice(0, 300));
    const types = listener.types();
    assert.ok(types.lastIndexOf("output.streaming") < types.length - 1);
  });

  for (const transport of ["websocket", "http"] as const) {
    test(`each piece of an output has the hint of the agent, over ${transport}`, async (t) => {
      const server = await start(t);
      const listener = await Listener.connect(t, server.url, () => undefined, ["en"], { coalesce_boundaries: ["none"] });
      const recording = await Recording.start(t, server.url);
      const hub = connectHub({ url: server.url, transport });
      t.after(() => hub.close());
      await hub.session("Tell the weather.", async (session) => {
        // The pieces are written faster than they are sent. A piece with a hint is never merged with the next one.
        await Promise.all([
          session.write("Oslo: rain ", { coalesceHint: "sentence" }),
          session.write("Bergen is "),
          // The last word waits for the next piece, because it may be part of a secret.
          session.write("dry, Rome", { coalesceHint: "word" }),
          session.write(" has sun\n\n", { coalesceHint: "paragraph" }),
          session.write("a: b ", { outputId: "out_named", coalesceHint: "word" }),
        ]);
        await session.say("Bye.", { coalesceHint: "word" });
      });
      await listener.wait("session.completed");
      const texts = new Map<unknown, string>();
      const hints = new Set<string>();
      for (const { output_id: id, chunk, coalesce_hint: hint } of listener.of("output.streaming")) {
        texts.set(id, (texts.get(id) ?? "") + String(chunk));
        if (hint !== "none") hints.add(`${texts.get(id)}|${String(hint)}`);
      }
      const weather = "Oslo: rain Bergen is dry, Rome has sun\n\n";
      assert.deepEqual([...hints].sort(), ["Oslo: rain |sentence", `${weather}|paragraph`, "a: b |word", `${weather}Bye.|completion`, "a: b |completion"].sort());
      const { code, output } = await recording.validate();
      assert.equal(code, 0, output);
    });

    test(`an output that stays does not change the state, over ${transport}`, async (t) => {
      const server = await start(t);
      const listener = await Listener.connect(t, server.url);
      const hub = connectHub({ url: server.url, transport });
      t.after(() => hub.close());
      await hub.session("Tell the weather.", async (session) => {
        await session.say("It rains.", { stays: true });
        await session.state("deciding", "What to wear.");
        await session.write("It is cold.");
        await session.finishOutput({ stays: true });
        await session.state("deciding", "What to wear then.");
        await session.say("A coat.");
      });
      await listener.wait("session.completed");
      const states = listener.of("state.changed").map((event) => event["to_state"]);
      assert.deepEqual(states, ["writing_output", "deciding", "writing_output", "deciding", "writing_output", "thinking"]);
    });
  }

  test("the end counts the calls of all producers, and says how long the session took", async (t) => {
    const server = await start(t);
    const listener = await Listener.connect(t, server.url);
    const hub = connectHub({ url: server.url });
    t.after(() => hub.close());
    await hub.session("Looking", { producers: [{ agentId: "scout" }] }, async (session) => {
      await session.run("look", () => 1);
      await session.as("scout").run("look", () => 1);
    });
    const end = await listener.wait("session.completed");
    assert.equal(end["tool_invocations_count"], 2);
    assert.ok(Number.isInteger(end["duration_ms"]));
  });

  test("a session ends once, and reports what it breaks", async (t) => {
    const server = await start(t);
    const listener = await Listener.connect(t, server.url);
    const hub = connectHub({ url: server.url });
    t.after(() => hub.close());
    const session = await hub.session("Ending");
    await assert.rejects(session.event({ type: "aaep:agent.tool.completed", tool: "x", status: "success" }), RuleViolationError);
    await session.complete();
    await assert.rejects(session.complete(), SessionStoppedError);
    await assert.rejects(session.think("More."), SessionStoppedError);
    {
      await using abandoned = await hub.session("Abandoned");
      await abandoned.think("Hm.");
    }
    await listener.wait("session.errored");
    await assert.rejects(hub.session("Failing", () => Promise.reject(new Error("broken"))), /broken/);
    await listener.wait("session.errored", (event) => String(event["summary_normal"]).includes("broken"));
    const aborter = new AbortController();
    const aborted = hub.session("Aborted", { signal: aborter.signal }, () => new Promise(() => {}));
    await listener.wait("session.started", (event) => event["summary_normal"] === "Aborted");
    aborter.abort();
    await assert.rejects(aborted, { name: "AbortError" });
    await listener.wait("session.cancelled");
  });

  test("aborting a session aborts its tools, and none starts afterwards", async (t) => {
    const server = await start(t);
    await Listener.connect(t, server.url, decide("accept"));
    const hub = connectHub({ url: server.url });
    t.after(() => hub.close());
    const aborter = new AbortController();
    let report: (signal: AbortSignal) => void = () => {};
    const running = new Promise<AbortSignal>((resolve) => (report = resolve));
    const work = ({ signal }: { signal: AbortSignal }) => {
      report(signal);
      return new Promise(() => {});
    };
    const working = hub.session("Working", { signal: aborter.signal }, (session) => session.run("work", work));
    working.catch(() => {});
    const inner = await running;
    aborter.abort();
    await assert.rejects(working, { name: "AbortError" });
    assert.equal(inner.aborted, true);
    // The end is requested while the call is announced.
    const session = await hub.session("Ending");
    const granted = await session.ask({ tool: "pay", arguments: {}, irreversible: true });
    const call = session.call(granted, () => assert.fail("it ran"));
    const ended = session.cancel("Cancelled.");
    await assert.rejects(call, InvalidInputError);
    await ended;
  });

  test("several agents in one session", async (t) => {
    const server = await start(t);
    const listener = await Listener.connect(t, server.url);
    const hub = connectHub({ url: server.url, producer: { agentId: "planner" } });
    t.after(() => hub.close());
    await hub.session("Planning", { producers: [{ agentId: "scout", agentName: "Scout" }] }, async (session) => {
      await session.as("scout").say("A train leaves at nine.");
      await assert.rejects(session.as("scout").complete(), InvalidInputError);
      await hub.session("Part", { parent: session }, () => {});
    });
    await listener.wait("output.streaming", (event) => JSON.stringify(event["producer"]).includes("scout"));
  });
});

describe("answers", () => {
  test("only a complete yes of a person to this very question counts", async () => {
    const args = { amount: "5.00" };
    const action_digest = await actionDigest("pay", canonicalize(args));
    const receipt = { type: "sayso:receipt", decision: "accept", by: "reply", session_id: "sess_1", reply_token: "rpl_1", action_digest };
    const yes = { status: "resolved", decision: "accept", by: "reply", receipt };
    const answers: [unknown, boolean][] = [
      [yes, true],
      [{}, false],
      [{ ...yes, status: "pending" }, false],
      [{ ...yes, status: undefined }, false],
      [{ ...yes, status: "stopped" }, false],
      [{ ...yes, decision: "reject" }, false],
      [{ ...yes, decision: "Accept" }, false],
      [{ ...yes, decision: true }, false],
      [{ ...yes, by: "timeout" }, false],
      [{ ...yes, by: undefined }, false],
      [{ ...yes, receipt: undefined }, false],
      [{ ...yes, receipt: JSON.stringify(receipt) }, false],
      ...Object.keys(receipt).map((member): [unknown, boolean] => [{ ...yes, receipt: { ...receipt, [member]: "other" } }, false]),
      [{ ...yes, receipt: { ...receipt, action_digest: await actionDigest("pay", canonicalize({ amount: "6.00" })) } }, false],
    ];
    for (const [answer, isYes] of answers) {
      const lying = { call: async () => ({ reply_token: "rpl_1" }), waitForReply: async () => answer as object, withdraw: async () => {}, watch: () => () => {}, close: () => {} };
      const session = new Session("sess_1", lying as unknown as Transport, { redactor: new Redactor(redactSecrets), language: "en", options: {}, states: new Set(), activity: { startedAt: 0, calls: 0 } });
      let ran = false;
      const call = session.tool({ name: "pay", irreversible: true }, () => void (ran = true))(args);
      await (isYes ? call : assert.rejects(call));
      assert.equal(ran, isYes, JSON.stringify(answer));
    }
  });
});

describe("narration", () => {
  const part = (text: string) => ({ type: "text-delta", text });
  async function* stream(...parts: ({ type: string } | Error)[]) {
    for (const one of parts) {
      if (one instanceof Error) throw one;
      yield one;
    }
  }

  test("a report that fails is not thrown into the agent's stream", async (t) => {
    const server = await start(t);
    const hub = connectHub({ url: server.url, connectTimeoutMs: 200 });
    t.after(() => hub.close());
    const session = await hub.session("Writing");
    await server.kill();
    const parts: unknown[] = [part("One. "), { type: "text-end" }, { type: "error", error: new Error("no") }, part("Two."), { type: "finish" }];
    const passed: unknown[] = [];
    for await (const one of narrate(session, stream(...(parts as { type: string }[])))) passed.push(one);
    assert.deepEqual(passed, parts);
  });

  test("an error that ends the stream is heard without its secrets, and thrown on", async (t) => {
    const server = await start(t);
    const listener = await Listener.connect(t, server.url);
    const hub = connectHub({ url: server.url });
    t.after(() => hub.close());
    const session = await hub.session("Writing");
    const failure = new Error("The quota is used up. password: hunter2");
    await assert.rejects(async () => {
      for await (const one of narrate(session, stream(part("One. "), failure))) void one;
    }, failure);
    await session.complete();
    await listener.wait("session.completed");
    const heard = JSON.stringify(listener.events);
    assert.match(heard, /Something went wrong: The quota is used up\./);
    assert.doesNotMatch(heard, /hunter2/);
  });

  test("a cancelled run is not an error", async (t) => {
    const server = await start(t);
    const listener = await Listener.connect(t, server.url);
    const hub = connectHub({ url: server.url });
    t.after(() => hub.close());
    const session = await hub.session("Writing");
    const abort = new DOMException("This operation was aborted", "AbortError");
    await assert.rejects(async () => {
      for await (const one of narrate(session, stream(part("One. "), abort))) void one;
    }, abort);
    await session.complete();
    await listener.wait("session.completed");
    assert.equal(listener.of("progress.updated").length, 0);
  });
});

describe("the current session", () => {
  test("tools find it, even in parallel", async (t) => {
    const server = await start(t);
    const hub = connectHub({ url: server.url });
    t.after(() => hub.close());
    const which = tool({ name: "which" }, () => currentSession()?.id);
    const ids = await Promise.all([1, 2, 3].map((at) => hub.session(`Number ${at}`, async (session) => [session.id, await which({})])));
    for (const [own, found] of ids) assert.equal(own, found);
    assert.equal(currentSession(), undefined);
  });

  test("a misspelt policy is refused, and does not make a tool harmless", () => {
    const odd: unknown[] = [{ irreversable: true }, { irreversible: "yes" }, { ask: 1 }, { risk: "High" }, { reversibility: "no" }];
    for (const policy of odd) assert.throws(() => tool({ name: "pay", ...(policy as object) }, () => {}), InvalidInputError);
    for (const policy of [...odd, null, "ask", true]) {
      assert.throws(() => gateTools({} as never, { pay: { execute: () => {} } }, { pay: policy as never }), InvalidInputError);
      if (typeof policy !== "undefined" && policy !== null) assert.throws(() => gateTools({} as never, { pay: { execute: () => {} } }, {}, { undeclared: policy as never }), InvalidInputError);
    }
  });

  test("nobody can forge a consent", () => {
    assert.throws(() => new (Granted as unknown as new (...args: unknown[]) => unknown)(Symbol("create"), {}, "", {}, {}), TypeError);
  });
});
