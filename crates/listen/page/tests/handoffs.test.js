import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { sha256 } from "../sha256.js";
import { MAX_HANDOFFS, Subscriber } from "../subscriber.js";
import { joinParts } from "../wording.js";
import { announcedTexts, event, now, receive, started } from "./samples.js";

const hash = (text) => createHash("sha256").update(text).digest("hex");
const requested = (token, more) =>
  event("handoff.requested", {
    reason: "The refund needs a person.",
    target_kind: "human",
    urgency: "critical",
    extensions: { sayso: { handoff: { reply_token: token, deadline: new Date(now() + 600000).toISOString() } } },
    ...more,
  });
const settled = (token, handoff, more) =>
  event("state.changed", { from_state: "handing_off", to_state: "thinking", summary_normal: "The hub's words.", extensions: { sayso: { handoff: { reply_token: token, ...handoff } } }, ...more });

function listener({ takesHandoffs = true } = {}) {
  const subscriber = new Subscriber();
  Object.assign(subscriber, { takesHandoffs, subscription: "sub_own" });
  receive(subscriber, started());
  return subscriber;
}

test("the hash is SHA-256", () => {
  for (const text of ["", "abc", "sub_0123", "é".repeat(80), ...[55, 56, 63, 64, 65, 119, 120].map((length) => "x".repeat(length))]) assert.equal(sha256(text), hash(text));
});

test("a hand-off is announced, and can be taken if the hub allows it", () => {
  const subscriber = listener();
  const context = { order: 17, open: ["refund"] };
  const effects = receive(subscriber, requested("rpl_1", { urgency_for_handoff: "high", packaged_context: context, target_uri: "queue://service/advisor" }));
  assert.deepEqual(announcedTexts(effects), ["Bank is handing over to a person. It is urgent. Reason: The refund needs a person. You can take over: see the list of hand-offs."]);
  const { handoffOpened: handoff } = effects.find((effect) => effect.handoffOpened);
  assert.deepEqual([handoff.token, handoff.agent, handoff.reason.text, handoff.isUrgent, handoff.rank], ["rpl_1", "Bank", "The refund needs a person.", true, 0]);
  assert.deepEqual(handoff.details.map(joinParts), ["It goes to: service", "It passes on: order 17, open (refund)"]);
  assert.equal(handoff.deadline - handoff.askedAt, 599000);
  assert.equal(effects.find((effect) => effect.log).log.isNote, true, "it is a note in the timeline");
  assert.deepEqual(receive(subscriber, requested("rpl_1")).filter((effect) => effect.announce ?? effect.handoffOpened), [], "it is announced once");
  const without = receive(listener({ takesHandoffs: false }), requested("rpl_1"));
  assert.deepEqual(announcedTexts(without), ["Bank is handing over to a person. Reason: The refund needs a person."]);
  assert.ok(!without.some((effect) => effect.handoffOpened));
  assert.ok(!receive(subscriber, requested("rpl_2", { extensions: {} })).some((effect) => effect.handoffOpened), "the hub does not wait for an answer");
});

test("every outcome of a hand-off is announced, and closes it", () => {
  const own = `sha256:${hash("sub_own")}`;
  const other = `sha256:${hash("sub_other")}`;
  const cases = [
    [{ outcome: "acknowledged", replier: own, note: "Mine." }, "You have taken over from Bank."],
    [{ outcome: "acknowledged", replier: other, note: "I am\u202e calling." }, "Someone has taken over from Bank. They say: I am calling."],
    [{ outcome: "acknowledged" }, "Someone has taken over from Bank."],
    [{ outcome: "rejected", replier: own }, "You declined to take over from Bank."],
    [{ outcome: "rejected", replier: other, note: "I am busy." }, "Someone declined to take over from Bank. They say: I am busy."],
    [{ outcome: "timeout" }, "Nobody took over from Bank in time."],
    [{ outcome: "unreachable" }, "Nobody who could take over from Bank is connected."],
    [{ outcome: "withdrawn" }, "Bank no longer wants to hand over."],
  ];
  for (const [outcome, expected] of cases) {
    const subscriber = listener();
    receive(subscriber, requested("rpl_1"));
    const effects = receive(subscriber, settled("rpl_1", outcome));
    assert.deepEqual(announcedTexts(effects), [expected]);
    assert.equal(effects.filter((effect) => effect.handoffClosed).length, 1);
    const { log } = effects.find((effect) => effect.log);
    assert.deepEqual([joinParts(log.ownParts), log.isNote, log.category], [expected, true, "handoff"]);
    assert.equal(subscriber.handoffs.size, 0);
    assert.equal(subscriber.sessions.get("sess_1").state, "thinking", "the card no longer says that it is handing over");
  }
});

test("a hand-off closes with its session, and after a snapshot that does not list it", () => {
  const subscriber = listener();
  receive(subscriber, requested("rpl_1"), started({ session_id: "sess_2" }), requested("rpl_2", { session_id: "sess_2" }));
  assert.deepEqual(receive(subscriber, event("session.completed")).flatMap((effect) => effect.handoffClosed?.token ?? []), ["rpl_1"]);
  subscriber.startCatchUp("snapshot", now());
  assert.deepEqual(subscriber.endCatchUp(now()).flatMap((effect) => effect.handoffClosed?.token ?? []), ["rpl_2"]);
});

test("the number of hand-offs is bounded, and all of them are announced", () => {
  const subscriber = listener();
  for (let number = 0; number < MAX_HANDOFFS; number += 1) receive(subscriber, requested(`rpl_n${number}`));
  const effects = receive(subscriber, requested("rpl_more"));
  assert.equal(subscriber.handoffs.size, MAX_HANDOFFS);
  assert.deepEqual(announcedTexts(effects), ["Bank is handing over to a person. Reason: The refund needs a person."]);
});
