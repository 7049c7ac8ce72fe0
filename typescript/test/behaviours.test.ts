/** Runs the behaviours of `docs/contract/behaviours.json`, which every client package shows, over each transport. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";

import {
  actionDigest,
  canonicalize,
  ConsentMismatchError,
  ConsentRefusedError,
  hub as connectHub,
  HubUnreachableError,
  NoSessionError,
  RuleViolationError,
  SessionStoppedError,
  tool,
  UnansweredError,
  type Granted,
  type Hub,
  type Session,
  type Text,
} from "../src/index.js";
import { BINARY, Listener, TestHub, type AaepEvent, type Answer } from "./support/hub.js";

type Arguments = Record<string, unknown>;
type ContractText = string | { normal: string; translations: Record<string, string> };
type Expected = { error?: string; result?: string } & Record<string, unknown>;
type Call = { tool: string; arguments: Arguments };

interface Step {
  do: string;
  request: string;
  says: ContractText;
  percent: number;
  step: number;
  total_steps: number;
  pieces: string[];
  event: AaepEvent;
  message: string;
  question: string;
  choices?: Record<string, string>;
  reason: string;
  calls: Step[];
  tool: string;
  arguments: Arguments;
  action?: string;
  consequence?: string;
  irreversible?: boolean;
  answer_timeout?: number;
  confidential?: string[];
  fails?: string;
  mutate?: Arguments;
  cancel?: string;
  expect?: Expected;
}

interface Behaviour {
  name: string;
  listener: string | { accept_if?: string; response?: unknown };
  languages?: string[];
  steps: Step[];
  ran: Call[];
  events?: string[];
  absent?: string[];
  final?: Arguments;
  text?: string;
  heard?: string[];
  not_heard?: string[];
  heard_questions?: string[];
  digests?: string[];
}

const FILE = new URL("../../../docs/contract/behaviours.json", import.meta.url);
const BEHAVIOURS = JSON.parse(readFileSync(FILE, "utf8")) as Behaviour[];

class Thrown extends Error {}
class ToolFailure extends Error {}

const ERRORS: Record<string, (error: unknown) => boolean> = {
  refused: (error) => error instanceof ConsentRefusedError,
  // Over a WebSocket, the loss of the hub also stops the session.
  unreachable: (error) => error instanceof HubUnreachableError || (error instanceof SessionStoppedError && error.reason === "unreachable"),
  stopped: (error) => error instanceof SessionStoppedError,
  no_session: (error) => error instanceof NoSessionError,
  cancelled: (error) => error instanceof Error && error.name === "AbortError",
  used: (error) => error instanceof ConsentMismatchError && error.reason === "already_used",
  unanswered: (error) => error instanceof UnansweredError,
  rules: (error) => error instanceof RuleViolationError && error.violations.length > 0,
  tool: (error) => error instanceof ToolFailure,
};

const toText = (text: ContractText): Text => (typeof text === "string" ? text : { normal: text.normal, in: text.translations });
const isEnd = (event: AaepEvent) => /^aaep:agent\.session\.(completed|errored|cancelled)$/.test(event.type);

/** Executes the steps of one behaviour. */
class Runner {
  readonly ran: Call[] = [];
  readonly digests: string[] = [];
  listener: Listener | undefined;
  private session: Session | undefined;
  private granted: Granted | undefined;
  private readonly mutations: (() => void)[] = [];

  constructor(
    private readonly behaviour: Behaviour,
    private readonly server: TestHub,
    private readonly hub: Hub,
  ) {}

  answer(question: AaepEvent): Answer {
    const kind = this.behaviour.listener;
    for (const mutate of this.mutations) mutate();
    if (typeof kind === "object") {
      if (kind.accept_if === undefined) return { response: kind.response };
      return { decision: String(question["action"]).includes(kind.accept_if) ? "accept" : "reject" };
    }
    if (kind === "kill_hub") void this.server.kill();
    if (kind === "stop") void this.listener?.stopSession(String(question["session_id"]));
    if (kind === "modify") return { decision: "accept", modified_action: { amount: "1" } };
    return kind === "accept" || kind === "reject" ? { decision: kind } : undefined;
  }

  /** Returns whether there was a session. */
  async run(): Promise<boolean> {
    const [first, ...rest] = this.behaviour.steps;
    if (first?.do !== "session") {
      for (const step of this.behaviour.steps) await this.step(step);
      return false;
    }
    const options = first.says === undefined ? {} : { summary: toText(first.says) };
    const work = async (session: Session) => {
      this.session = session;
      for (const step of rest) await this.step(step);
    };
    await this.hub.session(first.request, options, work).catch((error: unknown) => {
      if (!(error instanceof Thrown)) throw error;
    });
    return true;
  }

  private async step(step: Step): Promise<void> {
    const expected = step.expect;
    if (expected?.error === undefined) {
      const value = await this.do(step);
      if (expected?.result === "answer") assert.equal(value, expected["value"]);
      if (expected?.result === "hand_off") assert.equal((value as { outcome: string }).outcome, expected["outcome"]);
      return;
    }
    const { error: name, ...members } = expected;
    const error: unknown = await this.do(step).then(
      () => assert.fail(`${step.do} did not fail`),
      (thrown: unknown) => thrown,
    );
    assert.ok(ERRORS[name]?.(error), `${step.do} must fail with ${name}, but failed with ${String(error)}`);
    for (const [member, value] of Object.entries(members)) assert.equal((error as Arguments)[member], value, member);
  }

  private get open(): Session {
    assert.ok(this.session);
    return this.session;
  }

  private async do(step: Step): Promise<unknown> {
    switch (step.do) {
      case "think":
        return this.open.think(toText(step.says));
      case "progress":
        return this.open.progress(toText(step.says), { percent: step.percent, step: step.step, totalSteps: step.total_steps });
      case "say":
        return this.open.say(step.pieces);
      case "event":
        return this.open.event(step.event);
      case "finish":
        return this.open.complete(toText(step.says));
      case "leave":
        return undefined;
      case "throw":
        throw new Thrown(step.message);
      case "clarify": {
        const choices = Object.entries(step.choices ?? {}).map(([value, label]) => ({ value, label }));
        return this.open.clarify(step.question, { choices, ...timeoutOf(step) });
      }
      case "hand_off":
        return this.open.handOff(step.reason);
      case "ask":
        this.granted = await this.open.ask({ tool: step.tool, arguments: step.arguments, ...policyOf(step) });
        this.digests.push(await actionDigest(step.tool, canonicalize(step.arguments)));
        assert.equal(this.granted.receipt.receipt["action_digest"], this.digests.at(-1));
        return undefined;
      case "call": {
        assert.ok(this.granted);
        const { tool: name } = this.granted;
        return this.open.call(this.granted, (args: Arguments) => void this.ran.push({ tool: name, arguments: args }));
      }
      case "parallel":
        return Promise.all(step.calls.map((call) => this.step(call)));
      case "tool":
        return this.tool(step);
      default:
        return assert.fail(`this runner does not know the step ${step.do}`);
    }
  }

  private async tool(step: Step): Promise<void> {
    const call = tool({ name: step.tool, ...policyOf(step) }, (args: Arguments) => {
      this.ran.push({ tool: step.tool, arguments: args });
      if (step.fails !== undefined) throw new ToolFailure(step.fails);
    });
    const args = structuredClone(step.arguments);
    if (step.mutate !== undefined) this.mutations.push(() => Object.assign(args, step.mutate));
    if (step.cancel !== "while_asked") return call(args);
    const aborter = new AbortController();
    const running = call(args, { signal: aborter.signal });
    const question = await this.listener?.wait("awaiting.confirmation");
    assert.ok(question);
    aborter.abort();
    await running.catch(() => {});
    await this.listener?.reply(question, { decision: "accept" });
    return running;
  }
}

function timeoutOf({ answer_timeout: seconds }: Step): { answerTimeoutMs?: number } {
  return seconds === undefined ? {} : { answerTimeoutMs: seconds * 1000 };
}

function policyOf({ action, consequence, irreversible, confidential, ...step }: Step) {
  return {
    ...(action === undefined ? {} : { action }),
    ...(consequence === undefined ? {} : { consequence }),
    ...(irreversible === undefined ? {} : { irreversible }),
    ...(confidential === undefined ? {} : { confidential }),
    ...timeoutOf(step as Step),
  };
}

function check(behaviour: Behaviour, events: AaepEvent[], digests: string[]): void {
  const types = events.map((event) => event.type.replace("aaep:agent.", ""));
  let position = -1;
  for (const wanted of behaviour.events ?? []) {
    position = types.indexOf(wanted, position + 1);
    assert.ok(position >= 0, `${wanted} is missing in ${types.join()}`);
  }
  for (const absent of behaviour.absent ?? []) assert.ok(!types.includes(absent), absent);
  const final = events.find(isEnd);
  for (const [name, value] of Object.entries(behaviour.final ?? {})) {
    assert.equal(final?.[name], name === "type" ? `aaep:agent.${String(value)}` : value);
  }
  const chunks = events.filter(({ type }) => type === "aaep:agent.output.streaming").map((event) => event["chunk"] ?? "");
  if (behaviour.text !== undefined) assert.equal(chunks.join(""), behaviour.text);
  const summaries = events.map((event) => event["summary_normal"]);
  for (const heard of behaviour.heard ?? []) assert.ok(summaries.includes(heard), `${heard} is missing in ${summaries.join("|")}`);
  for (const secret of behaviour.not_heard ?? []) assert.ok(!JSON.stringify(events).includes(secret), secret);
  const questions = events.filter(({ type }) => type === "aaep:agent.awaiting.confirmation");
  for (const action of behaviour.heard_questions ?? []) assert.ok(questions.some((question) => question["action"] === action), JSON.stringify(questions));
  const bound = questions.map((question) => (question["extensions"] as { sayso?: { action_digest?: string } } | undefined)?.sayso?.action_digest);
  for (const digest of behaviour.digests ?? []) {
    assert.ok(bound.includes(digest), `${digest} is missing in ${bound.join()}`);
    assert.ok(digests.length === 0 || digests.includes(digest), digests.join());
  }
}

function validate(events: AaepEvent[]): void {
  const folder = mkdtempSync(join(tmpdir(), "sayso-ts-contract-"));
  const file = join(folder, "recording.jsonl");
  writeFileSync(file, events.map((event) => `${JSON.stringify(event)}\n`).join(""));
  const { status, stdout, stderr } = spawnSync(BINARY, ["validate", file], { encoding: "utf8" });
  rmSync(folder, { recursive: true, force: true });
  assert.equal(status, 0, stdout + stderr);
}

const sorted = (calls: Call[]) => calls.map((call) => canonicalize(call)).sort();

for (const transport of ["websocket", "http"] as const) {
  describe(`behaviours over ${transport}`, () => {
    for (const behaviour of BEHAVIOURS) {
      test(behaviour.name, async (t) => {
        const server = await TestHub.start();
        t.after(() => server.stop());
        const isKilled = behaviour.listener === "kill_hub";
        const hub = connectHub({ url: server.url, transport, connectTimeoutMs: isKilled ? 500 : 30_000 });
        t.after(() => hub.close());
        const runner = new Runner(behaviour, server, hub);
        if (behaviour.listener !== "absent") {
          runner.listener = await Listener.connect(t, server.url, (question) => runner.answer(question), behaviour.languages);
        }
        const hadSession = await runner.run();
        assert.deepEqual(sorted(runner.ran), sorted(behaviour.ran));
        const { listener } = runner;
        if (listener === undefined || !hadSession) return;
        // A hub that was killed can no longer end the session, so only what was heard until then is checked.
        if (!isKilled) await Promise.race(["completed", "errored", "cancelled"].map((end) => listener.wait(`session.${end}`)));
        const events = listener.events.filter(({ type }) => type.startsWith("aaep:"));
        if (isKilled) {
          assert.equal(listener.of("awaiting.confirmation").length, 1);
          for (const absent of behaviour.absent ?? []) assert.deepEqual(listener.of(absent), []);
        } else {
          check(behaviour, events, runner.digests);
        }
        validate(events);
      });
    }
  });
}
