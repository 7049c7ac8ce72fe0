/** The behaviours that every adapter must show, with the real framework, the real hub and a fake model. */

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";

import { hub as connectHub, type Hub, type Policy, type Session } from "../../src/index.js";
import { decide, Listener, Recording, TestHub, type AaepEvent } from "./hub.js";
import { FakeModel, prompt } from "./model.js";

/** What the agent's tools do, and a record of their calls. */
export class World {
  /** The arguments of each call of the dangerous tool. */
  readonly wiped: string[] = [];
  readonly looked: string[] = [];

  look(what: string): string {
    this.looked.push(what);
    return "ten";
  }

  wipe(what: string): string {
    this.wiped.push(what);
    if (what === "broken") throw new Error("the disk is broken");
    return "wiped";
  }
}

export interface RunOptions {
  session: Session;
  model: FakeModel;
  prompt: string;
  world: World;
  policies: { [tool: string]: Policy };
  signal?: AbortSignal;
  /** Changes the arguments of calls with a hook of the framework that runs before the gate, if the framework has one. */
  rewrite?: (args: Record<string, unknown>) => Record<string, unknown>;
}

export interface Adapter {
  name: string;
  /** Runs an agent with the tools `look` and `wipe`, each with the argument `what`, to its end. */
  run(options: RunOptions): Promise<void>;
  /** How the model's scripts name a tool. */
  toolName?: (tool: "look" | "wipe") => string;
  canRewrite?: boolean;
  /** What people hear about an error of a tool, if the framework hides the error. */
  toolError?: string;
  /** What the framework says about an error of the model, if it does not pass on the text of the model's server. */
  modelError?: string;
}

export function testAdapter(adapter: Adapter): void {
  const name = adapter.toolName ?? ((tool: string) => tool);
  const policies: { [tool: string]: Policy } = {
    [name("look")]: { action: "Looking at {what}." },
    [name("wipe")]: { irreversible: true, action: "Wipe {what}.", consequence: "It is gone." },
  };
  const call = (tool: "look" | "wipe", what: string) => ({ tool: name(tool), input: { what } });

  describe(adapter.name, () => {
    let server: TestHub;
    let model: FakeModel;
    let hub: Hub;
    // Each test has its own hub, so that no listener of another test can answer.
    beforeEach(async () => {
      server = await TestHub.start();
      model = await FakeModel.start();
      hub = connectHub({ url: server.url, connectTimeoutMs: 1000 });
    });
    afterEach(async () => {
      await hub.close();
      model.close();
      await server.stop();
    });
    const run = async (options: Partial<RunOptions> & { prompt: string; session: Session }): Promise<World> => {
      const world = options.world ?? new World();
      await adapter.run({ model, policies, ...options, world });
      return world;
    };
    const wipePhotos = prompt({ text: "I will wipe the photos. One moment.", calls: [call("wipe", "photos")] }, { text: "All done now." });

    test("a harmless tool runs, and its text and calls are heard", async (t) => {
      const listener = await Listener.connect(t, server.url);
      const recording = await Recording.start(t, server.url);
      const world = await hub.session("Looking", (session) =>
        run({ session, prompt: prompt({ text: "I will look. Just a second.", calls: [call("look", "photos")] }, { text: "There are ten photos." }) }),
      );
      await listener.wait("session.completed");
      assert.deepEqual(world.looked, ["photos"]);
      assert.equal(listener.of("awaiting.confirmation").length, 0);
      assert.equal((await listener.wait("tool.invoked"))["summary_normal"], "Looking at photos.");
      assert.equal((await listener.wait("tool.completed"))["status"], "success");
      const text = JSON.stringify(listener.of("output.streaming"));
      assert.ok(text.includes("I will look.") && text.includes("There are ten photos."), text);
      await assertValid(recording);
    });

    test("a dangerous tool runs after a yes", async (t) => {
      const listener = await Listener.connect(t, server.url, decide("accept"));
      const recording = await Recording.start(t, server.url);
      const world = await hub.session("Wiping", (session) => run({ session, prompt: wipePhotos }));
      await listener.wait("session.completed");
      assert.deepEqual(world.wiped, ["photos"]);
      const types = listener.types();
      assert.ok(types.indexOf("awaiting.confirmation") < types.indexOf("tool.invoked"), types.join());
      assert.equal((await listener.wait("awaiting.confirmation"))["action"], "Wipe photos.");
      await assertValid(recording);
    });

    test("a refused tool does not run, and the model is told", async (t) => {
      const listener = await Listener.connect(t, server.url, decide("reject"));
      const recording = await Recording.start(t, server.url);
      const world = await hub.session("Wiping", (session) => run({ session, prompt: wipePhotos }));
      await listener.wait("session.completed");
      assert.deepEqual(world.wiped, []);
      assert.ok(model.requests.some((request) => request.includes("The person refused. The tool was not run.")), model.lastRequest);
      await assertValid(recording);
    });

    test("an unanswered tool does not run", async (t) => {
      await Listener.connect(t, server.url);
      const recording = await Recording.start(t, server.url);
      const slow = { ...policies, [name("wipe")]: { ...policies[name("wipe")], answerTimeoutMs: 1000 } };
      const world = await hub.session("Wiping", (session) => run({ session, prompt: wipePhotos, policies: slow }));
      assert.deepEqual(world.wiped, []);
      assert.ok(model.requests.some((request) => request.includes("Nobody answered in time.")));
      await assertValid(recording);
    });

    test("an edited acceptance is not a yes", async (t) => {
      await Listener.connect(t, server.url, () => ({ decision: "accept", modified_action: { what: "drafts" } }));
      const recording = await Recording.start(t, server.url);
      const world = await hub.session("Wiping", (session) => run({ session, prompt: wipePhotos }));
      assert.deepEqual(world.wiped, []);
      await assertValid(recording);
    });

    test("an edited action is asked about again", async (t) => {
      const answer = (question: AaepEvent) => ({ decision: "accept", ...(String(question["action"]).includes("photos") ? { modified_action: { what: "drafts" } } : {}) });
      const listener = await Listener.connect(t, server.url, answer);
      const recording = await Recording.start(t, server.url);
      const again = prompt({ text: "I will wipe the photos.", calls: [call("wipe", "photos")] }, { text: "Drafts, then.", calls: [call("wipe", "drafts")] }, { text: "All done now." });
      const world = await hub.session("Wiping", (session) => run({ session, prompt: again }));
      await listener.wait("session.completed");
      assert.deepEqual(world.wiped, ["drafts"]);
      assert.deepEqual(listener.of("awaiting.confirmation").map((question) => question["action"]), ["Wipe photos.", "Wipe drafts."]);
      assert.ok(model.requests.some((request) => request.includes("The tool was not run.")));
      await assertValid(recording);
    });

    test("an error of a tool is heard", async (t) => {
      const listener = await Listener.connect(t, server.url, decide("accept"));
      const recording = await Recording.start(t, server.url);
      const world = new World();
      const broken = prompt({ text: "I will wipe it.", calls: [call("wipe", "broken")] }, { text: "It failed." });
      // Whether an error of a tool ends the run is up to the framework.
      await hub.session("Wiping", (session) => run({ session, prompt: broken, world }).catch(() => {}));
      await listener.wait("session.completed");
      assert.deepEqual(world.wiped, ["broken"]);
      const outcome = await listener.wait("tool.completed");
      assert.equal(outcome["status"], "error");
      assert.ok(String(outcome["error_message"]).includes(adapter.toolError ?? "the disk is broken"), String(outcome["error_message"]));
      await assertValid(recording);
    });

    test("a session that ends while the question is open means no, even after a late yes", async (t) => {
      const listener = await Listener.connect(t, server.url);
      const recording = await Recording.start(t, server.url);
      const session = await hub.session("Wiping");
      const world = new World();
      const running = run({ session, prompt: wipePhotos, world }).catch(() => {});
      const question = await listener.wait("awaiting.confirmation");
      await session.cancel("Never mind.");
      await listener.reply(question, { decision: "accept" });
      await running;
      assert.deepEqual(world.wiped, []);
      assert.deepEqual(listener.of("tool.invoked"), []);
      await assertValid(recording);
    });

    test("an undeclared tool asks", async (t) => {
      const listener = await Listener.connect(t, server.url, decide("reject"));
      const recording = await Recording.start(t, server.url);
      const world = await hub.session("Wiping", (session) => run({ session, prompt: wipePhotos, policies: {} }));
      await listener.wait("awaiting.confirmation");
      assert.deepEqual(world.wiped, []);
      await assertValid(recording);
    });

    test("only the allowed one of two parallel calls runs", async (t) => {
      const answer = (question: AaepEvent) => ({ decision: String(question["action"]).includes("drafts") ? "accept" : "reject" });
      const listener = await Listener.connect(t, server.url, answer);
      const recording = await Recording.start(t, server.url);
      const both = prompt({ text: "Both.", calls: [call("wipe", "photos"), call("wipe", "drafts")] }, { text: "Done." });
      const world = await hub.session("Wiping", (session) => run({ session, prompt: both }));
      await listener.wait("session.completed");
      assert.deepEqual(world.wiped, ["drafts"]);
      await assertValid(recording);
    });

    test("a run that is cancelled while the question is open does not run the tool, even after a late yes", async (t) => {
      const listener = await Listener.connect(t, server.url);
      const recording = await Recording.start(t, server.url);
      const aborter = new AbortController();
      const world = new World();
      const session = await hub.session("Wiping");
      const running = run({ session, prompt: wipePhotos, signal: aborter.signal, world }).catch(() => {});
      const question = await listener.wait("awaiting.confirmation", (event) => event["session_id"] === session.id);
      aborter.abort();
      await listener.wait("state.changed", (event) => JSON.stringify(event["extensions"] ?? {}).includes(String(question["reply_token"])));
      await listener.reply(question, { decision: "accept" });
      await running;
      await session.cancel("Cancelled.");
      assert.deepEqual(world.wiped, []);
      await assertValid(recording);
    });

    test("arguments that a hook of the framework changes are those that the person hears", { skip: adapter.canRewrite !== true }, async (t) => {
      const listener = await Listener.connect(t, server.url, decide("accept"));
      const recording = await Recording.start(t, server.url);
      const world = await hub.session("Wiping", (session) => run({ session, prompt: wipePhotos, rewrite: () => ({ what: "everything" }) }));
      const question = await listener.wait("awaiting.confirmation");
      t.diagnostic(`asked: ${String(question["action"])}`);
      assert.equal(`Wipe ${world.wiped.join()}.`, question["action"]);
      await assertValid(recording);
    });

    test("an error of the model is heard without its secrets", async (t) => {
      const listener = await Listener.connect(t, server.url);
      const recording = await Recording.start(t, server.url);
      const refused = prompt({ text: "", error: "The quota is used up. password: hunter2" });
      // Whether the error ends the run is up to the framework.
      await hub.session("Wiping", (session) => run({ session, prompt: refused }).catch(() => {}));
      await listener.wait("session.completed");
      const heard = JSON.stringify(listener.events);
      assert.ok(heard.includes(adapter.modelError ?? "The quota is used up."), heard);
      assert.ok(!heard.includes("hunter2"), heard);
      await assertValid(recording);
    });

    test("a gate that raises does not run the tool", async (t) => {
      await Listener.connect(t, server.url, decide("accept"));
      const recording = await Recording.start(t, server.url);
      const broken = { ...policies, [name("wipe")]: { irreversible: true, action: () => { throw new Error("no text"); } } as Policy };
      const world = await hub.session("Wiping", (session) => run({ session, prompt: wipePhotos, policies: broken }));
      assert.deepEqual(world.wiped, []);
      assert.ok(model.requests.some((request) => request.includes("No text. The tool was not run.")));
      await assertValid(recording);
    });

    test("a hub that is killed while the question is open means no", async (t) => {
      const own = await TestHub.start();
      t.after(() => own.stop());
      const listener = await Listener.connect(t, own.url);
      const recording = await Recording.start(t, own.url);
      const ownHub = connectHub({ url: own.url, connectTimeoutMs: 200 });
      const session = await ownHub.session("Wiping");
      const world = new World();
      const running = run({ session, prompt: wipePhotos, world }).catch(() => {});
      await listener.wait("awaiting.confirmation");
      await recording.wait("awaiting.confirmation");
      await own.kill();
      await running;
      assert.deepEqual(world.wiped, []);
      assert.deepEqual(listener.of("tool.invoked"), []);
      await ownHub.close();
      // The hub can no longer end the session.
      const { code, output } = await recording.validateSoFar();
      assert.equal(code, 0, output);
    });
  });
}

/** Asserts that the sequence of events is valid, however the run ends. */
async function assertValid(recording: Recording): Promise<void> {
  const { code, output } = await recording.validate();
  assert.equal(code, 0, output);
}
