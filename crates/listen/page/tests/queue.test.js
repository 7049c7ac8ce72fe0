import assert from "node:assert/strict";
import { test } from "node:test";

import { LONGEST, MOST_WAITING, PATIENCE, Queue, inPieces, takes } from "../queue.js";

const words = (text, more = {}) => ({ parts: [{ text, lang: "en" }], ...more });
const text = (said) => said?.parts.map((part) => part.text).join(" ");

/** Everything that is said until nothing waits, with its time. */
function hear(queue, from = 0) {
  const heard = [];
  let now = from;
  for (let at = now; at !== undefined; at = queue.wakeAt(now)) {
    now = Math.max(now, at);
    const said = queue.next(now);
    if (said !== undefined) heard.push([now, text(said)]);
  }
  return heard;
}

test("one thing is said at a time, at the pace", () => {
  const queue = new Queue(60);
  ["a a", "b b", "c"].forEach((one) => queue.add(words(one)));
  const heard = hear(queue);
  assert.deepEqual(heard.map(([, said]) => said), ["a a", "b b", "c"]);
  assert.ok(heard[1][0] >= 2000 && heard[2][0] >= heard[1][0] + 2000, JSON.stringify(heard));
  const fast = new Queue(600);
  ["a a", "b b", "c"].forEach((one) => fast.add(words(one)));
  assert.ok(hear(fast)[2][0] < heard[1][0]);
});

test("what is critical goes first, and cuts what is being said", () => {
  const queue = new Queue(180);
  ["one two three", "later"].forEach((one) => queue.add(words(one)));
  queue.next(0);
  queue.add(words("now", { critical: true }));
  queue.add(words("and now", { critical: true }));
  assert.equal(text(queue.next(1)), "now");
  assert.deepEqual(hear(queue, 1).map(([, said]) => said), ["and now", "later"]);
});

test("a question lets the sentence end that leads to it, unless that takes long", () => {
  const asked = (session) => words("question", { critical: true, show: "rpl_1", session });
  const begun = (count, session) => {
    const queue = new Queue(180);
    queue.add(words("x ".repeat(count), { session }));
    queue.next(0);
    return queue;
  };
  const own = begun(5, "sess_1");
  own.add(asked("sess_1"));
  assert.equal(own.next(1), undefined);
  assert.ok(own.wakeAt(1) <= PATIENCE);
  assert.equal(text(own.next(own.wakeAt(1))), "question");
  const others = begun(5, "sess_2");
  others.add(asked("sess_1"));
  assert.equal(text(others.next(1)), "question");
  const long = begun(60, "sess_1");
  long.add(asked("sess_1"));
  assert.ok(takes([{ text: "x ".repeat(60) }], 180) > PATIENCE);
  assert.equal(text(long.next(1)), "question");
});

test("a question takes along the little that its session said before, and leaves behind what is much", () => {
  const queue = new Queue(180);
  queue.add(words("x ".repeat(50), { session: "sess_2" }));
  queue.next(0);
  queue.add(words("elsewhere", { session: "sess_2" }));
  queue.add(words("thinking", { session: "sess_1", stale: true }));
  queue.add(words("found it", { session: "sess_1" }));
  queue.add(words("question", { critical: true, show: "rpl_1", session: "sess_1" }));
  assert.equal(text(queue.next(1)), "found it");
  assert.deepEqual(hear(queue, 1).map(([, said]) => said), ["question", "elsewhere", "thinking"]);
  const much = new Queue(180);
  much.add(words("x ".repeat(30), { session: "sess_1" }));
  much.add(words("question", { critical: true, show: "rpl_1", session: "sess_1" }));
  assert.equal(text(much.next(0)), "question");
});

test("what comes first comes before what is critical", () => {
  const queue = new Queue(180);
  queue.add(words("b", { critical: true }));
  queue.add(words("a", { critical: true, first: true }));
  assert.deepEqual(hear(queue).map(([, said]) => said), ["a", "b"]);
});

test("one critical thing does not cut another short", () => {
  const queue = new Queue(180);
  queue.add(words("x ".repeat(40), { critical: true }));
  queue.next(0);
  queue.add(words("now", { critical: true }));
  assert.equal(queue.next(1), undefined);
  assert.equal(hear(queue, 1).length, 1);
});

test("what replaces something that waits is said in its place", () => {
  const queue = new Queue(180);
  queue.add(words("begin"));
  queue.next(0);
  for (const percent of [1, 2, 3]) queue.add(words(`${percent} percent`, { key: "progress" }));
  assert.deepEqual(hear(queue).map(([, said]) => said), ["3 percent"]);
});

test("a flood is bounded, nothing critical is lost, and what goes unsaid is told", () => {
  const queue = new Queue(180);
  for (let number = 0; number < 1000; number += 1) {
    queue.add(words(`normal ${number}`));
    if (number % 10 === 0) queue.add(words(`critical ${number}`, { critical: true }));
  }
  const heard = hear(queue).map(([, said]) => said);
  for (let number = 0; number < 1000; number += 10) assert.ok(heard.includes(`critical ${number}`), String(number));
  assert.equal(heard.filter((said) => said.includes("not read out")).length, 1);
  assert.ok(heard.filter((said) => said.startsWith("normal")).length <= MOST_WAITING);
  const calm = new Queue(180);
  for (let number = 0; number < 100; number += 1) calm.add(words(`normal ${number}`));
  const said = hear(calm).map(([, one]) => one);
  assert.equal(said[0], "60 messages were not read out, because too much came at once. The log has all of it.");
  assert.equal(said.length, MOST_WAITING + 1);
  assert.equal(said.at(-1), "normal 99");
});

test("a long text is said in pieces, every word of it once", () => {
  const long = Array.from({ length: 3000 }, (_, number) => `word${number}${number % 17 === 0 ? "." : ""}`).join(" ");
  const pieces = inPieces(words(long));
  assert.ok(pieces.length > 1 && pieces.every((piece) => text(piece).length <= LONGEST));
  assert.equal(pieces.map(text).join(" "), long);
  const unbroken = `x${"😀".repeat(1000)}`;
  assert.equal(inPieces(words(unbroken)).map(text).join(""), unbroken);
  assert.ok(inPieces(words(unbroken)).every((piece) => text(piece).isWellFormed()));
});

test("what is taken back is counted and not said", () => {
  const queue = new Queue(180);
  for (const token of ["rpl_1", "rpl_2"]) queue.add(words(token, { critical: true, show: token }));
  queue.add(words("a tool"));
  assert.equal(queue.drop((one) => one.show !== undefined), 2);
  assert.deepEqual(hear(queue).map(([, said]) => said), ["a tool"]);
});

test("what is not due yet lets others pass", () => {
  const queue = new Queue(180);
  queue.add(words("state", { from: 5000 }));
  queue.add(words("tool"));
  assert.deepEqual(hear(queue).map(([, said]) => said), ["tool", "state"]);
});

test("what is stale by the time of its turn is not said", () => {
  const queue = new Queue(180);
  queue.add(words("a ".repeat(30)));
  queue.next(0);
  queue.add(words("for a moment", { until: 1000 }));
  queue.add(words("always"));
  assert.deepEqual(hear(queue).map(([, said]) => said), ["always"]);
});
