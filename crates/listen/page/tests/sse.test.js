import assert from "node:assert/strict";
import { test } from "node:test";

import { Blocks, LONGEST } from "../sse.js";

const STREAM =
  ': alive\n\nevent: aaep.event\nid: evt_1\ndata: {"a":1}\n\nid: evt_2\n\nevent: aaep.message\r\ndata:{"b":\r\ndata: 2}\r\n\r\nretry: 5\ndata\n\n';

test("blocks are the same wherever the stream is cut", () => {
  const whole = new Blocks().push(STREAM);
  assert.deepEqual(
    whole.map(({ event, id, data }) => [event, id, data]),
    [
      ["aaep.event", "evt_1", '{"a":1}'],
      ["message", "evt_2", ""],
      ["aaep.message", undefined, '{"b":\n2}'],
      ["message", undefined, ""],
    ],
  );
  for (let at = 0; at <= STREAM.length; at += 1) {
    const blocks = new Blocks();
    assert.deepEqual([...blocks.push(STREAM.slice(0, at)), ...blocks.push(STREAM.slice(at))], whole, `cut at ${at}`);
  }
  const letters = new Blocks();
  assert.deepEqual([...STREAM].flatMap((letter) => letters.push(letter)), whole);
});

test("a line without an end is given up", () => {
  const blocks = new Blocks();
  assert.throws(() => {
    for (let pieces = 0; pieces < 6; pieces += 1) blocks.push("x".repeat(LONGEST / 4));
  }, /too long/);
});
