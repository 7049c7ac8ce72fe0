import assert from "node:assert/strict";
import { test } from "node:test";

import { MAX_LINE_CHARS, SseParser } from "../sse.js";

const STREAM =
  ': alive\n\nevent: aaep.event\nid: evt_1\ndata: {"a":1}\n\nid: evt_2\n\nevent: aaep.message\r\ndata:{"b":\r\ndata: 2}\r\n\r\nretry: 5\ndata\n\n';

test("the blocks do not depend on where the stream is split", () => {
  const expected = new SseParser().push(STREAM);
  assert.deepEqual(
    expected.map(({ event, id, data }) => [event, id, data]),
    [
      ["aaep.event", "evt_1", '{"a":1}'],
      ["message", "evt_2", ""],
      ["aaep.message", undefined, '{"b":\n2}'],
      ["message", undefined, ""],
    ],
  );
  for (let at = 0; at <= STREAM.length; at += 1) {
    const parser = new SseParser();
    assert.deepEqual([...parser.push(STREAM.slice(0, at)), ...parser.push(STREAM.slice(at))], expected, `split at ${at}`);
  }
  const parser = new SseParser();
  assert.deepEqual([...STREAM].flatMap((character) => parser.push(character)), expected);
});

test("a line above the maximum length is an error", () => {
  const parser = new SseParser();
  assert.throws(() => {
    for (let count = 0; count < 6; count += 1) parser.push("x".repeat(MAX_LINE_CHARS / 4));
  }, /too long/);
});
