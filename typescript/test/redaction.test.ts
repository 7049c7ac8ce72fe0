/** Secrets: the client removes exactly what the hub refuses. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, describe, test } from "node:test";

import { hub as connectHub, redactSecrets, RuleViolationError, type Hub, type Session } from "../src/index.js";
import { Redactor, StreamRedactor } from "../src/redact/redactor.js";
import { findSecrets } from "../src/redact/secrets.js";
import { KEY_NAMES, KEY_PREFIXES, PASSWORD_NAMES, TOKEN_NAME } from "../src/redact/table.generated.js";
import { Listener, TestHub } from "./support/hub.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const redact = (text: string) => redactSecrets(text).text;

const PAIRS: [text: string, expected: string][] = [
  ["key sk-abcdefghij1234567890XYZ.", "key [redacted]."],
  ["ghp_0123456789abcdefghij0123456789abcdef", "[redacted]"],
  ["AKIAIOSFODNN7EXAMPLE is it", "[redacted] is it"],
  ["AKIAABCDEFGHIJKLMNOP", "[redacted]"],
  ["Authorization: Bearer abcdef1234567890", "Authorization: Bearer [redacted]"],
  ["Password: hunter2.", "Password: [redacted]."],
  ['{"password": "a b c"}', '{"password": "[redacted]"}'],
  ["api_key=abc123def, rest", "api_key=[redacted], rest"],
  ["API key: abc123def", "API key: [redacted]"],
  ["http://me:pa55@hub/x", "http://me:[redacted]@hub/x"],
  ["eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl ok", "[redacted] ok"],
  ["4111-1111-1111-1111", "[redacted]"],
  ["4111 1111 1111 1111 77 euro", "[redacted] 77 euro"],
  ["6 4111 1111 1111 1111 6", "6 [redacted] 6"],
  ["12 6 4111-1111-1111-1111 9 euro", "12 6 [redacted] 9 euro"],
  ["ref 3782 822463 10005", "ref [redacted]"],
  ["4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "[redacted]"],
  ["4111 1111 1111 1111 5500 0000 0000 0004", "[redacted]"],
  ["Card 4111 1111 1111 1111 and 378282246310005!", "Card [redacted] and [redacted]!"],
  ["x -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- y", "x [redacted] y"],
  ["DB_PASSWORD=hunter2", "DB_PASSWORD=[redacted]"],
  ["password: señal", "password: [redacted]"],
];

const CLEAN = [
  "This is risk-free.",
  "task-1 and task-12345678901234567890",
  "The bearer of good news",
  "Bearer bonds are old-fashioned",
  "The password is wrong.",
  "Password: required.",
  "password: ********",
  "3 tokens: one, two, three",
  "The secret: patience and time",
  "sk-free is no word",
  "4111 1111 1111 1112 fails its check",
  "It is 1731693600000 now, order 1234567890123",
  "Rooms 21 34 55 89 144 233 377 610 987 are free",
  "4111111111111111af is the start of a hash",
  "0.4111111111111111 and +4111111111111111",
  "Ask at http://hub:8787/a@b",
  "Call 030 1234567 in Berlin, Ọjọ́ dára.",
  "User confirmation received (reply_token: rpl_4f8a2e7d9c1b6a3f)",
  "Set npm_config_cache_v2_folder to a folder",
  "{\"password\":true}",
  "éAKIAABCDEFGHIJKLMNOP",
];

/** Texts from parts of secrets, in all orders that a simple generator gives. */
function* mixedTexts(count: number): Generator<string> {
  const parts = ["password", "api key", "secret", "token", "Bearer ", "sk-", "ghp_", "AKIA", "ASIA", "eyJ", "=", ": ", " ", "\"", "'", "://", "@", "-----BEGIN ", "PRIVATE KEY", "4111 1111 ", "1111 1111", "378282246310005", "abc123DEF456", "0123456789ABCDEF", "é", "ß", "٣", "_", ".", "hunter2", "PassWord", "client_secret", "x".repeat(20)];
  let seed = 42;
  const next = () => (seed = (seed * 1103515245 + 12345) % 2147483648);
  for (let at = 0; at < count; at += 1) {
    let text = "";
    for (let part = next() % 9; part >= 0; part -= 1) text += parts[next() % parts.length];
    yield `x${text}`.trim();
  }
}

describe("redaction", () => {
  let server: TestHub;
  let hub: Hub;
  let session: Session;
  before(async () => {
    server = await TestHub.start();
    hub = connectHub({ url: server.url, redact: (text) => ({ text, count: 0 }) });
    session = await hub.session("Redacting");
  });
  after(async () => {
    await session.complete();
    await hub.close();
    await server.stop();
  });

  /** Returns whether the hub refuses a text because of a secret. */
  const isRefused = async (text: string): Promise<boolean> => {
    try {
      await session.think(text);
      return false;
    } catch (error) {
      if (error instanceof RuleViolationError && error.violations.some(({ message }) => /secret|password|key|token|card/i.test(message))) return true;
      throw error;
    }
  };

  test("secrets are replaced, and other text is not", () => {
    for (const [text, expected] of PAIRS) assert.equal(redact(text), expected);
    for (const text of CLEAN) assert.equal(redact(text), text);
  });

  test("the hub refuses exactly the texts in which the client finds a secret", async () => {
    const prefixes = KEY_PREFIXES.map(([prefix, length]) => prefix + "AB12CD34".repeat(4).slice(0, length));
    const assigned = [...PASSWORD_NAMES, ...KEY_NAMES, TOKEN_NAME].flatMap((name) => [`${name}: hunter22`, `${name}=hunter22`, `"${name}": "hunter 22"`]);
    const texts = [...PAIRS.map(([text]) => text), ...CLEAN, ...prefixes, ...assigned, ...mixedTexts(400)];
    for (const text of texts) {
      const found = [...findSecrets(text)].length > 0;
      assert.equal(await isRefused(text), found, JSON.stringify(text));
      if (found) assert.equal(await isRefused(redact(text)), false, JSON.stringify(redact(text)));
    }
  });

  test("text in pieces is redacted like the whole text", () => {
    const texts = [...PAIRS.map(([text]) => text), ...CLEAN, ...mixedTexts(300), `a ${"password: \"my token: \" end "} b`];
    for (const text of texts) {
      for (const size of [1, 3, 7]) {
        const stream = new StreamRedactor(new Redactor(redactSecrets));
        let out = "";
        for (let at = 0; at < text.length; at += size) out += stream.push(text.slice(at, at + size), false);
        out += stream.push("", true);
        assert.equal(out, redact(text), JSON.stringify([text, size]));
      }
    }
    const key = `x -----BEGIN PRIVATE KEY-----\n${"MIIEowIBAAKCAQEA0123456789\n".repeat(1000)}-----END PRIVATE KEY----- y`;
    const stream = new StreamRedactor(new Redactor(redactSecrets));
    let out = "";
    for (let at = 0; at < key.length; at += 7) out += stream.push(key.slice(at, at + 7), false);
    assert.equal(out + stream.push("", true), "x [redacted] y");
  });

  test("texts that people hear contain no secrets, even if a secret is split across chunks", async (t) => {
    const listener = await Listener.connect(t, server.url);
    const own = connectHub({ url: server.url });
    t.after(() => own.close());
    await own.session("My password: hunter22", async (one) => {
      await one.say(["The key is sk-abcdef", "ghij1234567890XYZ. ", "Fine."]);
      assert.ok(one.redactionCount >= 2);
    });
    await listener.wait("session.completed");
    const heard = JSON.stringify(listener.events);
    assert.ok(!heard.includes("hunter22") && !heard.includes("1234567890XYZ"), heard);
  });

  test("the generated table is up to date", { skip: !existsSync(join(ROOT, "..", "docs", "redaction.json")) }, () => {
    const { status, stderr } = spawnSync(process.execPath, [join(ROOT, "scripts", "generate-redaction.mjs"), "--check"], { encoding: "utf8" });
    assert.equal(status, 0, stderr);
  });
});
