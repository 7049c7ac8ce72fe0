import assert from "node:assert/strict";
import { test } from "node:test";

import { AnnouncementQueue, MAX_SEGMENT_CHARS, MAX_WAITING, speakingTimeMs, splitLongAnnouncement } from "../queue.js";

const announcement = (text, more = {}) => ({ parts: [{ text, lang: "en" }], ...more });
const text = (released) => released?.parts.map((part) => part.text).join(" ");

/** Releases all announcements until none waits, and returns each with its time. */
function drain(queue, from = 0) {
  const spoken = [];
  let now = from;
  for (let at = now; at !== undefined; at = queue.wakeAt(now)) {
    now = Math.max(now, at);
    const released = queue.next(now);
    if (released !== undefined) spoken.push([now, text(released)]);
  }
  return spoken;
}

test("announcements are released one at a time, at the person's pace", () => {
  const queue = new AnnouncementQueue(60);
  ["a a", "b b", "c"].forEach((one) => queue.add(announcement(one)));
  const spoken = drain(queue);
  assert.deepEqual(spoken.map(([, one]) => one), ["a a", "b b", "c"]);
  assert.ok(spoken[1][0] >= 2000 && spoken[2][0] >= spoken[1][0] + 2000, JSON.stringify(spoken));
  const fast = new AnnouncementQueue(600);
  ["a a", "b b", "c"].forEach((one) => fast.add(announcement(one)));
  assert.ok(drain(fast)[2][0] < spoken[1][0]);
});

test("a critical announcement goes first and interrupts the current one", () => {
  const queue = new AnnouncementQueue(180);
  ["one two three", "later"].forEach((one) => queue.add(announcement(one)));
  queue.next(0);
  queue.add(announcement("now", { critical: true }));
  queue.add(announcement("and now", { critical: true }));
  assert.equal(text(queue.next(1)), "now");
  assert.deepEqual(drain(queue, 1).map(([, one]) => one), ["and now", "later"]);
});

const question = (session, token = "rpl_1") => announcement(`question ${token}`, { critical: true, questionToken: token, session });

test("a question opens at once, and agent text that it interrupts is heard afterwards", () => {
  const queue = new AnnouncementQueue(180);
  queue.add(announcement("what I found", { session: "sess_1", isAgentText: true }));
  queue.add(announcement("and more", { session: "sess_1", isAgentText: true }));
  queue.next(0);
  queue.add(question("sess_1"));
  assert.equal(text(queue.next(1)), "question rpl_1");
  assert.deepEqual(drain(queue, 1).map(([, one]) => one), ["what I found", "and more"]);
});

test("a question interrupts a critical announcement of something else, which is repeated", () => {
  const queue = new AnnouncementQueue(180);
  queue.add(announcement("an error", { critical: true }));
  queue.next(0);
  queue.add(question("sess_1"));
  assert.equal(text(queue.next(1)), "question rpl_1");
  assert.deepEqual(drain(queue, 1).map(([, one]) => one), ["an error"]);
});

test("a question waits for another question and for the outcome of the person's own answer", () => {
  for (const current of [question("sess_2", "rpl_0"), announcement("You accepted this.", { critical: true, first: true })]) {
    const queue = new AnnouncementQueue(180);
    queue.add(current);
    queue.next(0);
    queue.add(question("sess_1"));
    assert.equal(queue.next(1), undefined, text(current));
    assert.equal(text(queue.next(queue.wakeAt(1))), "question rpl_1");
  }
});

test("an interrupted step is not repeated", () => {
  const queue = new AnnouncementQueue(180);
  queue.add(announcement("looking around", { session: "sess_1", isStep: true }));
  queue.next(0);
  queue.add(question("sess_1"));
  assert.equal(text(queue.next(1)), "question rpl_1");
  assert.deepEqual(drain(queue, 1), []);
});

test("agent text skips the waiting steps of its session and goes before those of others", () => {
  const queue = new AnnouncementQueue(180);
  queue.add(announcement("has started", { session: "sess_1" }));
  queue.next(0);
  queue.add(announcement("looking", { session: "sess_1", isStep: true }));
  queue.add(announcement("other step", { session: "sess_2", isStep: true }));
  queue.add(announcement("other end", { session: "sess_3", isEnd: true }));
  queue.add(announcement("the result", { session: "sess_1", isAgentText: true }));
  assert.deepEqual(drain(queue).map(([, one]) => one), ["the result", "other end", "other step"]);
});

test("agent text cuts off a start, a step or a state, which is not repeated", () => {
  for (const kind of ["isStart", "isStep", "isState"]) {
    const queue = new AnnouncementQueue(180);
    queue.add(announcement("Bank is looking for the balance", { session: "sess_1", [kind]: true }));
    queue.next(0);
    queue.add(announcement("another step", { session: "sess_2", isStep: true }));
    assert.equal(queue.next(1), undefined, "a step waits");
    queue.add(announcement("the result", { session: "sess_2", isAgentText: true }));
    queue.add(announcement("and more", { session: "sess_2", isAgentText: true }));
    const released = queue.next(queue.wakeAt(1));
    assert.deepEqual([text(released), released.cutsOff], ["the result", true]);
    assert.equal(queue.next(2), undefined, "text does not cut off text");
    assert.deepEqual(drain(queue, 2).map(([, one]) => one), ["and more"], "nothing but the step is lost");
  }
});

test("agent text that is repeated after an interruption cuts nothing off", () => {
  const queue = new AnnouncementQueue(180);
  queue.add(announcement("Bank is looking for the balance", { session: "sess_1", isStep: true }));
  queue.next(0);
  queue.add(announcement("the result", { session: "sess_1", isAgentText: true }));
  assert.equal(queue.next(queue.wakeAt(1)).cutsOff, true);
  queue.add(announcement("an alarm", { session: "sess_2", critical: true }));
  assert.equal(text(queue.next(2)), "an alarm");
  const repeated = queue.next(queue.wakeAt(2));
  assert.deepEqual([text(repeated), repeated.cutsOff], ["the result", undefined]);
});

test("agent text waits for an end, an error, an answer, and a step that is nearly over", () => {
  const others = [{ isEnd: true }, {}, { critical: true }, { critical: true, first: true }, { isStep: true, critical: true }];
  for (const current of others) {
    const queue = new AnnouncementQueue(180);
    queue.add(announcement("Bank has finished its work", { session: "sess_2", ...current }));
    queue.next(0);
    queue.add(announcement("the result", { session: "sess_1", isAgentText: true }));
    assert.equal(queue.next(1), undefined, JSON.stringify(current));
    assert.equal(queue.next(queue.wakeAt(1)).cutsOff, undefined);
  }
  const queue = new AnnouncementQueue(180);
  queue.add(announcement("Bank has finished its work", { session: "sess_1", isStep: true }));
  queue.next(0);
  const endsAt = speakingTimeMs(announcement("Bank has finished its work").parts, 180);
  queue.add(announcement("the result", { session: "sess_1", isAgentText: true }));
  assert.equal(queue.next(endsAt - 50), undefined, "the step is nearly over");
});

test("an announcement marked first goes before critical ones", () => {
  const queue = new AnnouncementQueue(180);
  queue.add(announcement("b", { critical: true }));
  queue.add(announcement("a", { critical: true, first: true }));
  assert.deepEqual(drain(queue).map(([, one]) => one), ["a", "b"]);
});

test("a critical announcement does not interrupt another critical one", () => {
  const queue = new AnnouncementQueue(180);
  queue.add(announcement("x ".repeat(40), { critical: true }));
  queue.next(0);
  queue.add(announcement("now", { critical: true }));
  assert.equal(queue.next(1), undefined);
  assert.equal(drain(queue, 1).length, 1);
});

test("an announcement replaces a waiting one with the same key", () => {
  const queue = new AnnouncementQueue(180);
  queue.add(announcement("begin"));
  queue.next(0);
  for (const percent of [1, 2, 3]) queue.add(announcement(`${percent} percent`, { key: "progress" }));
  assert.deepEqual(drain(queue).map(([, one]) => one), ["3 percent"]);
});

test("a flood drops no critical announcement and reports the number dropped", () => {
  const queue = new AnnouncementQueue(180);
  for (let number = 0; number < 1000; number += 1) {
    queue.add(announcement(`normal ${number}`));
    if (number % 10 === 0) queue.add(announcement(`critical ${number}`, { critical: true }));
  }
  const spoken = drain(queue).map(([, one]) => one);
  for (let number = 0; number < 1000; number += 10) assert.ok(spoken.includes(`critical ${number}`), String(number));
  assert.equal(spoken.filter((one) => one.includes("skipped, because too many came at once")).length, 1);
  assert.ok(spoken.filter((one) => one.startsWith("normal")).length <= MAX_WAITING);
  const withoutCritical = new AnnouncementQueue(180);
  for (let number = 0; number < 100; number += 1) withoutCritical.add(announcement(`normal ${number}`));
  const released = drain(withoutCritical).map(([, one]) => one);
  assert.equal(released[0], "60 messages were skipped, because too many came at once. They are in the log.");
  assert.equal(released.length, MAX_WAITING + 1);
  assert.equal(released.at(-1), "normal 99");
});

test("a long text is split without losing a word", () => {
  const long = Array.from({ length: 3000 }, (_, number) => `word${number}${number % 17 === 0 ? "." : ""}`).join(" ");
  const segments = splitLongAnnouncement(announcement(long));
  assert.ok(segments.length > 1 && segments.every((segment) => text(segment).length <= MAX_SEGMENT_CHARS));
  assert.equal(segments.map(text).join(" "), long);
  const unbroken = `x${"😀".repeat(1000)}`;
  assert.equal(splitLongAnnouncement(announcement(unbroken)).map(text).join(""), unbroken);
  assert.ok(splitLongAnnouncement(announcement(unbroken)).every((segment) => text(segment).isWellFormed()));
});

test("dropped announcements are counted and not released", () => {
  const queue = new AnnouncementQueue(180);
  for (const token of ["rpl_1", "rpl_2"]) queue.add(announcement(token, { critical: true, questionToken: token }));
  queue.add(announcement("a tool"));
  assert.equal(queue.removeWaiting((one) => one.questionToken !== undefined), 2);
  assert.deepEqual(drain(queue).map(([, one]) => one), ["a tool"]);
});

test("an announcement that is not due does not delay others", () => {
  const queue = new AnnouncementQueue(180);
  queue.add(announcement("state", { notBefore: 5000 }));
  queue.add(announcement("tool"));
  assert.deepEqual(drain(queue).map(([, one]) => one), ["tool", "state"]);
});

test("an expired announcement is not released", () => {
  const queue = new AnnouncementQueue(180);
  queue.add(announcement("a ".repeat(30)));
  queue.next(0);
  queue.add(announcement("for a moment", { notAfter: 1000 }));
  queue.add(announcement("always"));
  assert.deepEqual(drain(queue).map(([, one]) => one), ["always"]);
});

test("the name in front is left out only directly after an announcement about the same session", () => {
  const queue = new AnnouncementQueue(180);
  const add = (session, text) => queue.add({ parts: [{ text: `${session}:` }, { text }], nameParts: 1, session, isAgentText: true });
  const next = (now) => queue.next(now)?.parts.map(({ text }) => text).join(" ");
  add("bank", "One.");
  assert.equal(next(0), "bank: One.");
  add("bank", "Two.");
  add("shop", "Three.");
  assert.equal(next(2000), "Two.");
  // A question interrupts the text, which is then repeated with its name.
  queue.add({ parts: [{ text: "A question?" }], critical: true, questionToken: "rpl_1", session: "shop" });
  assert.equal(next(2001), "A question?");
  assert.equal(next(20_000), "bank: Two.");
  assert.equal(next(22_000), "shop: Three.");
  // After a silence, the agent's name is announced again.
  add("shop", "Four.");
  assert.equal(next(60_000), "shop: Four.");
});
