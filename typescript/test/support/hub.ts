/** A real hub, and listeners that answer as the test specifies. */

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The binary that the tests run against. */
export const BINARY = process.env["TEST_SAYSO_BINARY"] ?? "sayso";

export class TestHub {
  private constructor(
    readonly url: string,
    readonly socketPath: string,
    /** The variables by which programs find the personal hub. */
    readonly environment: Readonly<Record<string, string>>,
    private readonly child: ChildProcess,
    private readonly folder: string,
  ) {}

  /** Starts a hub. Its Unix socket is in a temporary folder. */
  static start(options: readonly string[] = ["--open"]): Promise<TestHub> {
    const folder = mkdtempSync(join(tmpdir(), "sayso-ts-"));
    const socketPath = join(folder, "hub.sock");
    return TestHub.spawn(["--memory", "--listen", "127.0.0.1:0", "--unix", socketPath, ...options], folder, socketPath, {});
  }

  /** Starts the personal hub of an environment in a temporary folder. */
  static startPersonal(): Promise<TestHub> {
    const folder = mkdtempSync(join(tmpdir(), "sayso-ts-"));
    const folders = { XDG_RUNTIME_DIR: "run", XDG_DATA_HOME: "data", XDG_CONFIG_HOME: "config", HOME: "home" };
    const environment = Object.fromEntries(Object.entries(folders).map(([name, short]) => [name, join(folder, short)]));
    for (const path of Object.values(environment)) mkdirSync(path, { mode: 0o700 });
    return TestHub.spawn(["--personal"], folder, join(folder, "run", "aaep", "sayso-hub.sock"), environment);
  }

  private static async spawn(options: readonly string[], folder: string, socketPath: string, environment: Record<string, string>): Promise<TestHub> {
    // The hub reads its settings from variables that start with SAYSO_, and those of the tests are not for it.
    const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("SAYSO_")));
    const child = spawn(BINARY, ["serve", ...options], { stdio: ["ignore", "ignore", "pipe"], env: { ...inherited, ...environment } });
    let printed = "";
    const url = await new Promise<string>((resolve, reject) => {
      child.stderr?.setEncoding("utf8");
      child.stderr?.on("data", (text: string) => {
        printed += text;
        const found = /listening on (http:\/\/\S+)/.exec(printed);
        if (found) resolve(found[1] as string);
      });
      child.on("error", reject);
      child.on("exit", (code) => reject(new Error(`the hub ended with ${code}: ${printed}`)));
    });
    return new TestHub(url, socketPath, environment, child, folder);
  }

  /** Kills the hub, so that it cannot shut down properly. */
  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await exited;
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export type AaepEvent = Record<string, unknown> & { type: string };

/** How a listener answers a question. `undefined` leaves it open. */
export type Answer = Record<string, unknown> | undefined;

/** A listener that records all events and answers questions. */
export class Listener {
  readonly events: AaepEvent[] = [];
  private readonly waiting: { matches: (event: AaepEvent) => boolean; resolve: (event: AaepEvent) => void }[] = [];
  private readonly aborter = new AbortController();

  private constructor(
    private readonly url: string,
    private readonly subscription: string,
    private readonly answer: (question: AaepEvent) => Answer,
  ) {}

  /** Connects a listener that is closed at the end of the test. */
  static async connect(test: { after(close: () => void): void }, url: string, answer: (question: AaepEvent) => Answer = () => undefined, languages: readonly string[] = ["en"], capabilities: object = {}): Promise<Listener> {
    const response = await fetch(`${url}/aaep/v1/subscriptions`, {
      method: "POST",
      body: JSON.stringify({
        type: "subscription.request",
        aaep_version: "1.0.0",
        subscriber_id: "person",
        capabilities: { supports_confirmation_reply: true, supports_clarification_reply: true, languages, ...capabilities },
        preferences: { verbosity: "detailed" },
      }),
    });
    const accepted = (await response.json()) as { subscription_id?: string };
    if (accepted.subscription_id === undefined) throw new Error(JSON.stringify(accepted));
    const listener = new Listener(url, accepted.subscription_id, answer);
    test.after(() => listener.close());
    await listener.listen();
    return listener;
  }

  private async listen(): Promise<void> {
    const response = await fetch(`${this.url}/aaep/v1/events?subscription_id=${this.subscription}`, {
      headers: { Accept: "text/event-stream" },
      signal: this.aborter.signal,
    });
    const body = response.body;
    if (body === null) throw new Error("the hub sends no stream");
    void this.read(body).catch(() => {});
  }

  private async read(body: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true });
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const message = text.slice(0, end);
        text = text.slice(end + 2);
        const data = message.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).join("\n");
        if (data !== "") await this.receive(JSON.parse(data) as AaepEvent);
      }
    }
  }

  private async receive(event: AaepEvent): Promise<void> {
    this.events.push(event);
    for (const waiter of [...this.waiting]) {
      if (waiter.matches(event)) {
        this.waiting.splice(this.waiting.indexOf(waiter), 1);
        waiter.resolve(event);
      }
    }
    if (event.type !== "aaep:agent.awaiting.confirmation" && event.type !== "aaep:agent.awaiting.clarification") return;
    const answer = this.answer(event);
    if (answer !== undefined) await this.reply(event, answer);
  }

  /** Answers a question. */
  async reply(question: AaepEvent, answer: Record<string, unknown>): Promise<void> {
    const type = question.type === "aaep:agent.awaiting.confirmation" ? "confirmation.reply" : "clarification.reply";
    await this.send({ type, reply_token: question["reply_token"], ...answer });
  }

  /** Stops a session. */
  async stopSession(sessionId: string): Promise<void> {
    await this.send({ type: "sayso:session.stop", session_id: sessionId });
  }

  private async send(message: Record<string, unknown>): Promise<void> {
    await fetch(`${this.url}/aaep/v1/replies`, {
      method: "POST",
      body: JSON.stringify({ timestamp: new Date().toISOString(), subscription_id: this.subscription, ...message }),
    });
  }

  /** Waits for the next event that matches, or finds one that has already arrived. */
  wait(type: string, matches: (event: AaepEvent) => boolean = () => true): Promise<AaepEvent> {
    const isWanted = (event: AaepEvent) => event.type === `aaep:agent.${type}` && matches(event);
    const found = this.events.find(isWanted);
    if (found !== undefined) return Promise.resolve(found);
    return new Promise((resolve) => this.waiting.push({ matches: isWanted, resolve }));
  }

  types(): string[] {
    return this.events.map((event) => event.type.replace("aaep:agent.", ""));
  }

  of(type: string): AaepEvent[] {
    return this.events.filter((event) => event.type === `aaep:agent.${type}`);
  }

  close(): void {
    this.aborter.abort();
  }
}

/** Answers all questions with the same decision. */
export const decide = (decision: "accept" | "reject") => (question: AaepEvent): Answer =>
  question.type === "aaep:agent.awaiting.confirmation" ? { decision } : undefined;

/** Runs `sayso capture`, and checks with `sayso validate` that everything that was recorded follows the protocol. */
export class Recording {
  private readonly lines: string[] = [];
  private onLine: () => void = () => {};

  private constructor(private readonly child: ChildProcess) {
    let rest = "";
    child.stdout?.setEncoding("utf8");
    child.stdout?.on("data", (text: string) => {
      const parts = (rest + text).split("\n");
      rest = parts.pop() ?? "";
      this.lines.push(...parts);
      this.onLine();
    });
  }

  static async start(test: { after(close: () => void): void }, url: string): Promise<Recording> {
    const child = spawn(BINARY, ["capture", url, "--output", "-"], { stdio: ["ignore", "pipe", "pipe"] });
    test.after(() => void child.kill("SIGKILL"));
    await new Promise<void>((resolve, reject) => {
      child.stderr?.once("data", () => resolve());
      child.once("exit", (code) => reject(new Error(`capture ended with ${code}`)));
    });
    return new Recording(child);
  }

  /** Waits until an event of a type is recorded. */
  async wait(type: string): Promise<void> {
    await this.until(() => this.lines.some((line) => line.includes(`"type":"aaep:agent.${type}"`)));
  }

  /** Waits for the end of all recorded sessions, and returns what `sayso validate` says: its exit code and its output. */
  async validate(): Promise<{ code: number | null; output: string }> {
    const count = (pattern: RegExp) => this.lines.filter((line) => pattern.test(line)).length;
    await this.until(() => {
      const started = count(/"type":"aaep:agent\.session\.started"/);
      return started > 0 && started === count(/"type":"aaep:agent\.session\.(completed|errored|cancelled)"/);
    });
    return this.validateSoFar("--sequence", "always");
  }

  private async until(isTrue: () => boolean): Promise<void> {
    await new Promise<void>((resolve) => {
      this.onLine = () => isTrue() && resolve();
      this.onLine();
    });
    this.onLine = () => {};
  }

  /** Ends the recording, even if its sessions are open, and returns what `sayso validate` says of what is recorded. */
  async validateSoFar(...options: readonly string[]): Promise<{ code: number | null; output: string }> {
    this.child.kill("SIGKILL");
    const folder = mkdtempSync(join(tmpdir(), "sayso-ts-rec-"));
    const file = join(folder, "recording.jsonl");
    writeFileSync(file, `${this.lines.join("\n")}\n`);
    const validate = spawn(BINARY, ["validate", file, ...options], { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    validate.stdout.on("data", (text: Buffer) => (output += text.toString()));
    validate.stderr.on("data", (text: Buffer) => (output += text.toString()));
    const [code] = (await once(validate, "close")) as [number | null];
    rmSync(folder, { recursive: true, force: true });
    return { code, output };
  }
}
