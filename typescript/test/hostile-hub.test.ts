/** Whatever a hub sends, a dangerous function runs only after a yes to its exact arguments. */

import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test, type TestContext } from "node:test";

import { actionDigest, canonicalize, hub as connectHub, tool } from "../src/index.js";
import type { TextSocket } from "../src/transport/socket.js";
import { HttpTransport, httpClient } from "../src/transport/http.js";
import { WebSocketTransport } from "../src/transport/websocket.js";
import { HubUnreachableError } from "../src/errors.js";
import { Session } from "../src/session.js";
import { Redactor, redactSecrets } from "../src/redact/redactor.js";
import type { Transport } from "../src/transport/transport.js";

type Message = Record<string, unknown>;
interface Call {
  id: number;
  method: string;
  params: { tool: string; arguments: unknown } & Message;
}

const SESSION = "sess_1";
const TOKEN = "rpl_1";
const OTHER = { tool: "pay", arguments: { amount: "5000.00" } };

/** The response of an honest hub to `session.ask`. */
const opened = (token: unknown = TOKEN) => ({ reply_token: token, deadline: "2030-01-01T00:00:00Z" });

/** An honest yes to a question. */
async function yes(question: { tool: string; arguments: unknown }, token = TOKEN): Promise<Message> {
  const receipt = {
    type: "sayso:receipt",
    session_id: SESSION,
    reply_token: token,
    action_digest: await actionDigest(question.tool, canonicalize(question.arguments)),
    decision: "accept",
    by: "reply",
  };
  return { status: "resolved", decision: "accept", by: "reply", receipt, receipt_signature: "a..b" };
}

/** One connection to a hostile hub, in this process. */
class Peer implements TextSocket {
  onMessage: (text: string) => void = () => {};
  onClose: () => void = () => {};

  constructor(private readonly onCall: (peer: Peer, call: Call) => Promise<void>) {}

  send(text: string): void {
    const call = JSON.parse(text) as Call;
    const results: Message = { "session.withdraw": { status: "resolved" } };
    const accepted = { event_ids: [], session_id: SESSION };
    if (call.method === "session.ask") void this.onCall(this, call);
    else queueMicrotask(() => this.respond(call, results[call.method] ?? accepted));
  }

  close(): void {
    this.onMessage = () => {};
  }

  write(message: unknown): void {
    this.onMessage(typeof message === "string" ? message : JSON.stringify(message));
  }

  respond({ id }: { id: unknown }, result: unknown): void {
    this.write({ jsonrpc: "2.0", id, result });
  }

  resolve(members: unknown, token: unknown = TOKEN, session: unknown = SESSION): void {
    this.notify(Array.isArray(members) ? members : { session_id: session, reply_token: token, ...(members as Message) });
  }

  notify(params: unknown): void {
    this.write({ jsonrpc: "2.0", method: "session.resolved", params });
  }
}

interface Outcome {
  ran: string[];
  /** The codes of the errors, or `undefined` where the call returned. */
  codes: (string | undefined)[];
}

async function callTools(transport: Transport, amounts: readonly string[]): Promise<Outcome> {
  const session = new Session(SESSION, transport, { redactor: new Redactor(redactSecrets), language: "en", options: {}, states: new Set(), activity: { startedAt: 0, calls: 0 } });
  const ran: string[] = [];
  const pay = session.tool({ name: "pay", irreversible: true, action: "Pay {amount}." }, ({ amount }: { amount: string }) => void ran.push(amount));
  const calls = await Promise.allSettled(amounts.map((amount) => pay({ amount })));
  transport.close();
  return { ran, codes: calls.map((call) => (call.status === "rejected" ? (call.reason as { code?: string }).code : undefined)) };
}

/** Calls the tool over a WebSocket. After `stop`, the hub cannot be reached. */
function overWebSocket(onCall: (peer: Peer, call: Call, stop: () => void) => Promise<void>, amounts = ["5.00"]): Promise<Outcome> {
  let isStopped = false;
  const peers: Peer[] = [];
  const stop = () => {
    isStopped = true;
    for (const peer of peers) peer.onClose();
  };
  const open = async (): Promise<TextSocket> => {
    if (isStopped) throw new HubUnreachableError("it was stopped");
    const peer = new Peer((one, call) => onCall(one, call, stop));
    peers.push(peer);
    return peer;
  };
  return callTools(new WebSocketTransport(open, 200), amounts);
}

/** Calls the tool over HTTP. */
async function overHttp(t: TestContext, reply: (question: Call["params"]) => Promise<unknown>, result: unknown = opened()): Promise<Outcome> {
  let question: Call["params"] | undefined;
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    let body = "";
    for await (const part of request) body += String(part);
    const isQuestion = request.url?.endsWith("/confirmations") === true;
    if (isQuestion) question = JSON.parse(body) as Call["params"];
    const value = request.method === "GET" ? await reply(question as Call["params"]) : isQuestion ? result : { event_ids: [] };
    response.end(typeof value === "string" ? value : JSON.stringify(value));
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const client = await httpClient({ kind: "tcp", url }, undefined, fetch);
  return callTools(new HttpTransport(client, 200), ["5.00"]);
}

/** Returns an honest yes with some members changed. `undefined` removes a member. */
const changed = (changes: Message) => async (question: Call["params"]) => ({ ...(await yes(question)), ...changes });
const withReceipt = (changes: Message) => async (question: Call["params"]) => {
  const honest = await yes(question);
  return { ...honest, receipt: { ...(honest["receipt"] as Message), ...changes } };
};

/** Answers that do not accept the question's arguments, each with the code of the error. */
const ANSWERS: Record<string, [answer: (question: Call["params"]) => Promise<unknown>, code: string]> = {
  "a list": [async (question) => [await yes(question)], "malformed_response"],
  "an unknown status": [changed({ status: "granted" }), "malformed_response"],
  "no status": [changed({ status: undefined }), "malformed_response"],
  "an unknown decision": [changed({ decision: "Accept" }), "malformed_response"],
  "a decision of another type": [changed({ decision: true }), "malformed_response"],
  "an unknown `by`": [changed({ by: "me" }), "malformed_response"],
  "a receipt that is a string": [changed({ receipt: "{}" }), "malformed_response"],
  "a signature that is a number": [changed({ receipt_signature: 7 }), "malformed_response"],
  "no decision": [changed({ decision: undefined }), "consent_refused"],
  "a no": [changed({ decision: "reject" }), "consent_refused"],
  "a yes by timeout": [changed({ by: "timeout" }), "consent_refused"],
  "a yes without `by`": [changed({ by: undefined }), "consent_refused"],
  "a stop": [changed({ status: "stopped" }), "session_stopped"],
  "no receipt": [changed({ receipt: undefined }), "consent_mismatch"],
  "a receipt for other arguments": [() => yes(OTHER), "consent_mismatch"],
  "a receipt without a digest": [withReceipt({ action_digest: undefined }), "consent_mismatch"],
  "a receipt for a no": [withReceipt({ decision: "reject" }), "consent_mismatch"],
  "a receipt for a default": [withReceipt({ by: "timeout" }), "consent_mismatch"],
  "a receipt from another session": [withReceipt({ session_id: "sess_2" }), "consent_mismatch"],
  "a receipt for another question": [withReceipt({ reply_token: "rpl_2" }), "consent_mismatch"],
  "another signed document": [withReceipt({ type: "aaep:producer.manifest" }), "consent_mismatch"],
};

/** Malformed results of `session.ask`. */
const RESULTS = [null, [], "rpl_1", 7, {}, opened(7), opened("token"), opened("rpl_1\n"), opened(null), { reply_token: TOKEN }];

describe("an answer", () => {
  test("an honest yes runs the tool", async (t) => {
    const expected = { ran: ["5.00"], codes: [undefined] };
    assert.deepEqual(await overHttp(t, yes), expected);
    const outcome = await overWebSocket(async (peer, call) => {
      peer.respond(call, opened());
      peer.resolve(await yes(call.params));
    });
    assert.deepEqual(outcome, expected);
  });

  for (const [name, [answer, code]] of Object.entries(ANSWERS)) {
    test(`${name} does not run the tool`, async (t) => {
      const expected = { ran: [], codes: [code] };
      assert.deepEqual(await overHttp(t, answer), expected);
      const outcome = await overWebSocket(async (peer, call) => {
        peer.respond(call, opened());
        peer.resolve(await answer(call.params));
      });
      assert.deepEqual(outcome, expected);
    });
  }

  for (const result of RESULTS) {
    test(`the result ${JSON.stringify(result)} does not run the tool`, async (t) => {
      const expected = { ran: [], codes: ["malformed_response"] };
      assert.deepEqual(await overHttp(t, yes, result === null || typeof result === "string" ? JSON.stringify(result) : result), expected);
      const outcome = await overWebSocket(async (peer, call) => {
        peer.respond(call, result);
        peer.resolve(await yes(call.params));
      });
      assert.deepEqual(outcome, expected);
    });
  }
});

describe("a message", () => {
  for (const text of ["", "yes", "null", "7", '"accept"', '["accept"]', `${"[".repeat(100_000)}`, '{"id":']) {
    test(`${JSON.stringify(text.slice(0, 20))} is not a valid message, and nothing runs`, async () => {
      for (const isAsked of [false, true]) {
        const outcome = await overWebSocket(async (peer, call) => {
          if (isAsked) peer.respond(call, opened());
          const accepted = await yes(call.params);
          await new Promise(setImmediate);
          peer.write(text);
          peer.resolve(accepted);
        });
        assert.deepEqual(outcome, { ran: [], codes: ["malformed_response"] });
      }
    });
  }

  test("an HTTP body that is not JSON is refused", async (t) => {
    for (const text of ["yes", "[".repeat(100_000)]) {
      const { ran, codes } = await overHttp(t, async () => text);
      assert.deepEqual(ran, []);
      assert.match(String(codes), /hub_unreachable|malformed_response/);
    }
  });

  test("an error instead of a result does not run the tool", async () => {
    for (const error of [{}, { code: "x", message: 7, data: 7 }, { code: -32022, data: { status: 422, findings: [7, null] } }]) {
      const { ran, codes } = await overWebSocket(async (peer, call) => {
        peer.write({ jsonrpc: "2.0", id: call.id, error, result: opened() });
        peer.resolve(await yes(call.params));
      });
      assert.deepEqual(ran, []);
      assert.match(String(codes), /^(invalid_input|rule_violation)$/);
    }
  });
});

describe("answers and responses for the wrong question", () => {
  test("answers to other questions do not count", async () => {
    const outcome = await overWebSocket(async (peer, call, stop) => {
      peer.respond(call, opened());
      peer.resolve(await yes(call.params, "rpl_2"), "rpl_2");
      stop();
    });
    assert.deepEqual(outcome.ran, []);
    assert.match(String(outcome.codes), /hub_unreachable|session_stopped/);
  });

  test("responses to other calls do not count", async () => {
    const outcome = await overWebSocket(async (peer, call, stop) => {
      for (const id of [call.id + 1, String(call.id), call.id + 0.5, true, null, [call.id]]) peer.respond({ id }, opened());
      peer.resolve(await yes(call.params));
      stop();
    });
    assert.deepEqual(outcome.ran, []);
    assert.match(String(outcome.codes), /hub_unreachable|session_stopped/);
  });

  test("the first of two responses counts", async () => {
    const outcome = await overWebSocket(async (peer, call, stop) => {
      peer.respond(call, opened("rpl_1"));
      peer.respond(call, opened("rpl_2"));
      peer.resolve(await yes(call.params, "rpl_2"), "rpl_2");
      stop();
    });
    assert.deepEqual(outcome.ran, []);
  });

  test("the first of two answers counts, even if it arrives before anyone waits for it", async () => {
    for (const isEarly of [false, true]) {
      const outcome = await overWebSocket(async (peer, call) => {
        const accepted = await yes(call.params);
        if (!isEarly) peer.respond(call, opened());
        peer.resolve({ status: "resolved", decision: "reject", by: "reply" });
        peer.resolve(accepted);
        if (isEarly) peer.respond(call, opened());
      });
      assert.deepEqual(outcome, { ran: [], codes: ["consent_refused"] });
    }
  });

  test("two questions with the same token do not share a yes", async () => {
    const asked: Call[] = [];
    const onCall = async (peer: Peer, call: Call) => {
      asked.push(call);
      peer.respond(call, opened());
      if (asked.length < 2) return;
      const first = await yes((asked[0] as Call).params);
      peer.resolve(first);
      peer.resolve(first);
    };
    const outcome = await overWebSocket(onCall, ["5.00", "5000.00"]);
    assert.deepEqual(outcome, { ran: ["5.00"], codes: [undefined, "malformed_response"] });
  });
});

describe("a connection that is lost while a question is open", () => {
  for (const isHonest of [true, false]) {
    test(`is reopened, and ${isHonest ? "a yes runs" : "a yes to other arguments does not run"} the tool`, async () => {
      const asked: Call[] = [];
      const outcome = await overWebSocket(async (peer, call) => {
        asked.push(call);
        if (asked.length === 1) return void setImmediate(() => peer.onClose());
        peer.respond(call, opened());
        peer.resolve(await yes(isHonest ? call.params : OTHER));
      });
      assert.deepEqual(outcome, isHonest ? { ran: ["5.00"], codes: [undefined] } : { ran: [], codes: ["consent_mismatch"] });
      assert.deepEqual(asked[0]?.params, asked[1]?.params, "the repeated question has the same idempotency key");
    });
  }
});

test("a response over HTTP that is too large is refused", async (t) => {
  const chunk = "x".repeat(1024 * 1024);
  const server = createServer((_request, response) => {
    const write = () => {
      while (response.writable && response.write(chunk));
      if (response.writable) response.once("drain", write);
    };
    write();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const client = await httpClient({ kind: "tcp", url }, undefined, fetch);
  await assert.rejects(client({ method: "GET", path: "/" }), { code: "malformed_response" });
});

test("a tool without a session does not run", async () => {
  let ran = false;
  await assert.rejects(tool({ name: "pay", irreversible: true }, () => void (ran = true))({}), { code: "no_session" });
  await assert.rejects(connectHub({ url: "http://127.0.0.1:9", connectTimeoutMs: 50 }).session("Paying", () => void (ran = true)), { code: "hub_unreachable" });
  assert.equal(ran, false);
});
