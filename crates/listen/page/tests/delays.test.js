// How long a person waits for important announcements: the subscriber, the queue, the announcer and the loss notice together, with a clock that only
// the test moves. The regions of the page are stand-ins that record what is written into them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Announcer } from "../announcer.js";
import { LOST_NOTICE_DELAY_MS, LossNotice } from "../loss_notice.js";
import { phrases } from "../phrases.js";
import { AnnouncementQueue } from "../queue.js";
import { Subscriber } from "../subscriber.js";
import { ownText } from "../wording.js";
import { confirmation, event, started } from "./samples.js";

globalThis.addEventListener ??= () => {};
const { HubStream } = await import("../stream.js");

/** The default pace of the page, in words per minute. */
const PACE = 180;

/** Replaces the browser's document. Everything that is written into a live region is added to `heard`, with its time. */
function fakeDocument(heard, clock) {
  const element = () => ({ children: [], append(...children) { this.children.push(...children); }, dir: "" });
  const textOf = (one) => (typeof one === "string" ? one : (one.textContent ?? "") + (one.children ?? []).map(textOf).join(""));
  const region = { querySelectorAll: () => [], append: (...written) => written.forEach((one) => heard.push([clock(), textOf(one)])) };
  return { createElement: element, querySelector: () => region };
}

/** Starts the listening part of the page, and returns what is heard and functions that drive it. */
function openPage(context) {
  context.mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  const clock = () => Date.now();
  const heard = [];
  globalThis.document = fakeDocument(heard, clock);
  const subscriber = new Subscriber();
  const opened = [];
  const show = (token) => {
    opened.push([clock(), token]);
    return undefined;
  };
  const announcer = new Announcer(new AnnouncementQueue(PACE), { clock, show, isTyping: () => false });
  const receive = (...events) => {
    for (const effect of events.flatMap((one) => subscriber.receive(one, clock()))) {
      if (effect.dropStates !== undefined) announcer.drop((one) => one.isState && one.session === effect.dropStates);
      if (effect.announce !== undefined) announcer.announce(effect.announce);
    }
  };
  const wait = (milliseconds) => {
    // Timers that a timer starts are due as well.
    for (let passed = 0; passed < milliseconds; passed += 10) context.mock.timers.tick(10);
  };
  return { heard, opened, announcer, receive, wait, clock };
}

/** Returns when a text was first heard. */
const heardAt = (heard, text) => heard.find(([, one]) => one.includes(text))?.[0];

const tool = (name) => event("tool.invoked", { tool: name, summary_normal: `Calling the tool ${name} with a long description.` });
const answer = (chunk) => event("output.streaming", { chunk, position: 0, complete: true, coalesce_hint: "completion", output_id: "out_1" });

test("a question opens immediately, whatever is being spoken", (context) => {
  const page = openPage(context);
  page.receive(started(), answer("This is a long answer. ".repeat(10)));
  page.wait(2000);
  const askedAt = page.clock();
  page.receive(confirmation());
  assert.deepEqual(page.opened, [[askedAt, "rpl_1"]]);
});

test("the agent's text cuts off the start of its session, and is heard before the steps that wait", (context) => {
  const page = openPage(context);
  page.receive(started(), tool("first"), tool("second"), tool("third"));
  page.wait(100);
  const knownAt = page.clock();
  page.receive(answer("The balance is 40 euros."));
  page.wait(60_000);
  assert.equal(heardAt(page.heard, "The balance is 40 euros."), knownAt, JSON.stringify(page.heard));
  for (const name of ["first", "second", "third"]) assert.equal(heardAt(page.heard, name), undefined, name);
});

test("the agent's text waits for text of another session, and for what is urgent", (context) => {
  const page = openPage(context);
  const other = { session_id: "sess_2" };
  page.receive(started(), started(other), answer("The balance is 40 euros."), { ...answer("It is raining."), ...other });
  page.wait(60_000);
  const [first, second] = ["The balance is 40 euros.", "It is raining."].map((text) => page.heard.filter(([, one]) => one.includes(text)));
  assert.deepEqual([first.length, second.length], [1, 1], "no text is lost or repeated");
  assert.ok(second[0][0] - first[0][0] > 2000, JSON.stringify(page.heard));
});

test("if three sessions answer at once, the first answer is heard immediately, and the last one within ten seconds", (context) => {
  // Answers of agents with the same name also say what their session is about, which takes longer.
  for (const [names, longest] of [[["Bank", "Shop", "Post"], 7000], [["Demo assistant", "Demo assistant", "Demo assistant"], 10_000]]) {
    const page = openPage(context);
    const sessions = names.map((agent_name, index) => ({ session_id: `sess_${index}`, producer: { agent_id: agent_name, agent_name } }));
    for (const one of sessions) page.receive(started({ ...one, summary_normal: "Looking up the demo balance." }));
    page.wait(100);
    const answeredAt = page.clock();
    for (const one of sessions) page.receive({ ...answer("The demo account holds 1250 euros."), ...one }, event("session.completed", { ...one, summary_normal: "That is all." }));
    page.wait(60_000);
    const answers = page.heard.filter(([, text]) => text.includes("1250"));
    assert.equal(answers.length, 3);
    assert.equal(answers[0][0], answeredAt, JSON.stringify(page.heard));
    const delay = answers[2][0] - answeredAt;
    context.diagnostic(`${names[0]}: the last answer is heard after ${delay} ms`);
    assert.ok(delay <= longest, `heard after ${delay} ms: ${JSON.stringify(page.heard)}`);
    // The start of its session was cut off, so the answer says whose it is.
    assert.match(answers[0][1], new RegExp(`^${names[0]}: .*The demo account holds 1250 euros.$`));
    context.mock.timers.reset();
  }
});

test("only the latest of several waiting steps is heard", (context) => {
  const page = openPage(context);
  page.receive(started());
  page.receive(tool("first"), tool("second"), tool("third"));
  page.wait(60_000);
  assert.deepEqual(page.heard.map(([, text]) => ["first", "second", "third"].find((name) => text.includes(`tool ${name}`))).filter(Boolean), ["third"]);
});

test("without anything to wait for, nothing is delayed", (context) => {
  const page = openPage(context);
  const at = page.clock();
  page.receive(started());
  assert.equal(heardAt(page.heard, "Paying Ben."), at);
});

/** Starts a stream that the hub closes when `close` is called, and that nobody answers afterwards. */
async function openStream(state) {
  let controller;
  let isGone = false;
  globalThis.fetch = async (url) => {
    if (isGone) throw new TypeError("the hub is gone");
    if (url.startsWith("/aaep/v1/subscriptions")) return new Response(JSON.stringify({ subscription_id: "sub_1" }), { status: 201 });
    return new Response(new ReadableStream({ start: (one) => void (controller = one) }), { status: 200 });
  };
  const nothing = () => {};
  const isOpen = new Promise((resolve) => {
    const handlers = { event: nothing, message: nothing, unreadable: nothing, accepted: nothing, catchUp: nothing, caughtUp: nothing };
    new HubStream({}, { ...handlers, state: (name) => (state(name), name === "connected" && resolve()) }).run();
  });
  await isOpen;
  return () => {
    isGone = true;
    controller.close();
  };
}

/** Runs all pending tasks that do not wait for a timer. */
const settle = () => new Promise((done) => setImmediate(done));

test("the loss of the hub is heard within two seconds, although an answer is being read", async (context) => {
  const page = openPage(context);
  let isLost = false;
  const notice = new LossNotice((name) => page.announcer.announce({ parts: [ownText(phrases[name])], critical: name === "lost" }));
  const close = await openStream((name) => {
    isLost ||= name === "lost";
    notice.onState(name);
  });
  await settle();
  page.receive(answer("This is a long answer. ".repeat(20)));
  const lostAt = page.clock();
  close();
  for (let round = 0; round < 10 && !isLost; round += 1) await settle();
  assert.ok(isLost, "the stream must notice that it has ended without waiting for a timer");
  page.wait(LOST_NOTICE_DELAY_MS + 10);
  const delay = heardAt(page.heard, phrases.lost) - lostAt;
  assert.ok(delay >= LOST_NOTICE_DELAY_MS && delay <= 2000, `heard after ${delay} ms: ${JSON.stringify(page.heard)}`);
});

test("a loss that ends at once is not mentioned, and the return only after a loss that was", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const said = [];
  const notice = new LossNotice((name) => said.push(name));
  for (const name of ["connecting", "connected", "lost"]) notice.onState(name);
  context.mock.timers.tick(LOST_NOTICE_DELAY_MS - 1);
  notice.onState("connected");
  context.mock.timers.tick(60_000);
  assert.deepEqual([said, notice.wasAnnounced], [[], false]);
  notice.onState("lost");
  // Every failed attempt reports the loss again.
  context.mock.timers.tick(LOST_NOTICE_DELAY_MS / 2);
  notice.onState("lost");
  context.mock.timers.tick(LOST_NOTICE_DELAY_MS / 2);
  notice.onState("connecting");
  notice.onState("lost");
  context.mock.timers.tick(60_000);
  assert.deepEqual(said, ["lost"]);
  notice.onState("connected");
  assert.deepEqual([said, notice.wasAnnounced], [["lost", "reconnected"], true]);
});
