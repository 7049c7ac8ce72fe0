/** The connection to a hub. */

import type { SessionStarted } from "./agent-api.generated.js";
import { within } from "./current.js";
import { ConsentRefusedError, errorText, SessionStoppedError } from "./errors.js";
import { findHub } from "./location.js";
import { Redactor, redactSecrets, type Redact } from "./redact/redactor.js";
import { environment, orAborted } from "./runtime.js";
import { Session, writeOptions, type EventOptions, type Invitation, type Producer, type SignalOption } from "./session.js";
import { RedactedText, type Text } from "./text.js";
import { connect } from "./transport/connect.js";
import type { Params, Transport } from "./transport/transport.js";

export interface HubOptions {
  /** `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`. The default is `SAYSO_URL`, else the socket of the personal hub. */
  url?: string;
  /** The default is `SAYSO_TOKEN`. */
  token?: string;
  /** Describes this agent. */
  producer?: Partial<Producer>;
  /** The language of texts without another one. The default is English. */
  language?: string;
  /** Removes secrets. The default removes keys, tokens, passwords and card numbers. */
  redact?: Redact;
  /** `auto` uses a WebSocket, and HTTP where WebSockets are blocked. */
  transport?: "auto" | "websocket" | "http";
  /** How long to try to reach the hub. The default is 10 seconds. */
  connectTimeoutMs?: number;
  /** The function for HTTP requests. The default is the global `fetch`. */
  fetch?: typeof fetch;
}

export interface SessionOptions extends EventOptions, SignalOption {
  /** What listeners hear at the start. The default is the request. */
  summary?: Text;
  /** False keeps the request from listeners. */
  publishRequest?: boolean;
  /** The person who requested the task. */
  person?: string;
  expectedDurationMs?: number;
  tools?: readonly string[];
  /** States of this agent, with words for them. */
  states?: { readonly [state: string]: Text };
  language?: string;
  textDirection?: "ltr" | "rtl" | "auto";
  availableLanguages?: readonly string[];
  fallbackLanguages?: readonly string[];
  script?: string;
  calendar?: string;
  /** Describes this agent, in addition to the hub's options. */
  producer?: Partial<Producer>;
  /** Other agents that speak in this session. */
  producers?: readonly Producer[];
  /** The session of which this one is a part. */
  parent?: Session | string;
}

/** The languages whose texts run from right to left. */
const RIGHT_TO_LEFT = new Set(["ar", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi"]);

/** A connection to a hub. It connects at the first use, and again after a failure. */
export class Hub {
  readonly #options: HubOptions;
  #transport: Promise<Transport> | undefined;
  #redactionCount = 0;

  constructor(options: HubOptions = {}) {
    this.#options = options;
  }

  /** How many secrets were removed from texts of all sessions that have started. */
  get redactionCount(): number {
    return this.#redactionCount;
  }

  /**
   * Starts a session. With a function, the session is the current one while the function runs, and it ends with the function: as
   * completed, as cancelled if the person said no or the signal was aborted, else as errored.
   */
  session(request: string, options?: SessionOptions): Promise<Session>;
  session<T>(request: string, work: (session: Session) => T | Promise<T>): Promise<T>;
  session<T>(request: string, options: SessionOptions, work: (session: Session) => T | Promise<T>): Promise<T>;
  async session<T>(
    request: string,
    optionsOrWork: SessionOptions | ((session: Session) => T | Promise<T>) = {},
    maybeWork?: (session: Session) => T | Promise<T>,
  ): Promise<Session | T> {
    const options = typeof optionsOrWork === "function" ? {} : optionsOrWork;
    const work = typeof optionsOrWork === "function" ? optionsOrWork : maybeWork;
    // With a function, the signal is for the whole session; without one, only for its start.
    const session = await this.#start(request, options, work === undefined ? undefined : options.signal);
    return work === undefined ? session : runSession(session, work, options.signal);
  }

  /** Joins a session as another producer. */
  async join(invitation: Pick<Invitation, "sessionId" | "invitation">, producer: Partial<Producer> = {}, options: SignalOption = {}): Promise<Session> {
    const transport = await this.#connect(options.signal);
    const params: Params = { session_id: invitation.sessionId, invitation: invitation.invitation };
    const { agent_id: _own, ...members } = toProducer(producer);
    if (Object.keys(members).length > 0) params["producer"] = members;
    const joined = await transport.call("session.join", params, options.signal);
    return new Session(invitation.sessionId, transport, this.#settings({}), joined.producer, false);
  }

  /** Publishes the agent's manifest: an object, or the text that `sayso manifest sign` prints. A hub that does not know its own URL returns none. */
  async publishManifest(manifest: string | { readonly [member: string]: unknown }, options: SignalOption = {}): Promise<{ manifestUri: string | undefined; isVerified: boolean }> {
    const transport = await this.#connect(options.signal);
    const result = await transport.call("agent.manifest", { manifest }, options.signal);
    return { manifestUri: result.manifest_uri, isVerified: result.verified };
  }

  /** Closes the connection. Open sessions end when their lease expires. */
  async close(): Promise<void> {
    const transport = this.#transport;
    this.#transport = undefined;
    (await transport?.catch(() => undefined))?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #connect(signal: AbortSignal | undefined): Promise<Transport> {
    if (this.#transport === undefined) {
      const opened = this.#open();
      this.#transport = opened;
      opened.catch(() => {
        if (this.#transport === opened) this.#transport = undefined;
      });
    }
    return orAborted(this.#transport, signal);
  }

  async #open(): Promise<Transport> {
    const { url, token, transport = "auto", connectTimeoutMs = 10_000, fetch: fetchFunction = globalThis.fetch } = this.#options;
    return connect({
      address: await findHub(url),
      token: token ?? (environment("SAYSO_TOKEN") || undefined),
      transport,
      connectTimeoutMs,
      fetch: (...request) => fetchFunction(...request),
    });
  }

  #settings(options: SessionOptions) {
    const redact = this.#options.redact ?? redactSecrets;
    const counting: Redact = (text) => {
      const result = redact(text);
      this.#redactionCount += result.count;
      return result;
    };
    return {
      redactor: new Redactor(counting),
      language: options.language ?? this.#options.language ?? "en",
      options,
      states: new Set(Object.keys(options.states ?? {})),
      activity: { startedAt: Date.now(), calls: 0 },
    };
  }

  async #start(request: string, options: SessionOptions, signal: AbortSignal | undefined): Promise<Session> {
    const settings = { ...this.#settings(options), signal };
    const transport = await this.#connect(options.signal);
    const body = toStartBody(request, options, settings.redactor, settings.language, { ...this.#options.producer, ...options.producer });
    const started = transport.call("session.start", body);
    let result: SessionStarted;
    try {
      result = await orAborted(started, options.signal);
    } catch (error) {
      // The session may start although nobody wants it any more.
      started.then(
        (late) => new Session(late.session_id, transport, settings).cancel("The agent was cancelled.").catch(() => {}),
        () => {},
      );
      throw error;
    }
    return new Session(result.session_id, transport, settings);
  }
}

async function runSession<T>(session: Session, work: (session: Session) => T | Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  let result: T;
  try {
    result = await orAborted(within(session, () => work(session)), signal);
  } catch (error) {
    if (!session.isEnded && !session.stopped.aborted) {
      const isCancelled = error instanceof ConsentRefusedError || error instanceof SessionStoppedError || signal?.aborted === true;
      const text = errorText(error);
      const ended = isCancelled ? session.cancel(`Cancelled: ${text.replace(/[.!?]*$/, ".")}`) : session.fail(text);
      await ended.catch(() => {});
    }
    throw error;
  }
  // The work is done, so its result counts even if the end cannot be reported.
  if (!session.isEnded && !session.stopped.aborted) await session.complete().catch(() => {});
  return result;
}

function toStartBody(request: string, options: SessionOptions, redactor: Redactor, language: string, producer: Partial<Producer>): Params {
  const body: Params = {};
  const asked = RedactedText.of(request, redactor);
  const summary = options.summary === undefined ? asked : RedactedText.of(options.summary, redactor);
  summary.writeSummaries(body);
  if (options.publishRequest !== false) summary.writeOther(body, "request_text", asked);
  if (options.person !== undefined) body["requested_by"] = `user:${options.person}`;
  if (options.expectedDurationMs !== undefined) body["expected_duration_ms"] = options.expectedDurationMs;
  if (options.tools !== undefined && options.tools.length > 0) body["tools_available"] = options.tools;
  const hints: Params = { primary_language: language };
  const direction = options.textDirection ?? (RIGHT_TO_LEFT.has(language.split("-")[0]?.toLowerCase() ?? "") ? "rtl" : undefined);
  if (direction !== undefined) hints["text_direction"] = direction;
  const languages = options.availableLanguages ?? (summary.languages.length > 0 ? [language, ...summary.languages] : undefined);
  if (languages !== undefined) hints["available_languages"] = languages;
  if (options.fallbackLanguages !== undefined) hints["fallback_chain"] = options.fallbackLanguages;
  if (options.script !== undefined) hints["script"] = options.script;
  if (options.calendar !== undefined) hints["calendar"] = options.calendar;
  body["localization_hints"] = hints;
  const states = Object.entries(options.states ?? {}).map(([state, words]) => {
    const text = RedactedText.of(words, redactor);
    const translations = text.languages.map((tag) => [tag, text.forLanguage(tag)] as const);
    return { state, words: { [language]: text.normal, ...Object.fromEntries(translations) } };
  });
  if (states.length > 0) body["states"] = states;
  const own = toProducer(producer);
  if (Object.keys(own).length > 0) body["producer"] = own;
  if (options.producers !== undefined) body["producers"] = options.producers.map(toProducer);
  if (options.parent !== undefined) body["parent"] = typeof options.parent === "string" ? options.parent : options.parent.id;
  writeOptions(body, options, redactor);
  return body;
}

function toProducer({ agentId, agentName, agentVersion, model, manifestUri }: Partial<Producer>): Params {
  const members = { agent_id: agentId, agent_name: agentName, agent_version: agentVersion, model, manifest_uri: manifestUri };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

let shared: Hub | undefined;

/** Returns a connection to a hub. Without an address it is `SAYSO_URL`, else the personal hub. Connects at the first use. */
export function hub(options?: HubOptions): Hub {
  return new Hub(options);
}

/** Starts a session on the default hub; see {@link Hub.session}. */
export function session(request: string, options?: SessionOptions): Promise<Session>;
export function session<T>(request: string, work: (session: Session) => T | Promise<T>): Promise<T>;
export function session<T>(request: string, options: SessionOptions, work: (session: Session) => T | Promise<T>): Promise<T>;
export function session(request: string, ...rest: unknown[]): Promise<unknown> {
  shared ??= new Hub();
  return (shared.session as (request: string, ...rest: unknown[]) => Promise<unknown>).call(shared, request, ...rest);
}
