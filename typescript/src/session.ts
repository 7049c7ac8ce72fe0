/** A session: one task that a person requested, from its start to exactly one end. */

import type { CancelledBy, CoalesceHint, ErrorCategory, HandOffTarget, QuestionOpened, Reply, ResponseKind, Risk, ToolStatus, Urgency, Verbosity } from "./agent-api.generated.js";
import { actionDigest } from "./canonical.js";
import {
  BoundCall,
  createGranted,
  DEFAULT_ANSWER_TIMEOUT_MS,
  describe,
  effectiveRisk,
  isIrreversible,
  needsConsent,
  spendGranted,
  type Granted,
  type Policy,
  type TextOf,
} from "./consent.js";
import { within } from "./current.js";
import {
  ConsentMismatchError,
  ConsentRefusedError,
  errorText,
  InvalidInputError,
  MalformedResponseError,
  SessionStoppedError,
  ToolTimeoutError,
  UnansweredError,
  type Receipt,
  type ResolvedBy,
} from "./errors.js";
import type { Json } from "./canonical.js";
import { StreamRedactor, type Redactor } from "./redact/redactor.js";
import { orAborted } from "./runtime.js";
import { humanizeName, localizedName, RedactedText, redactReason, truncateText, type Text } from "./text.js";
import { bindTool, type Tool, type ToolFunction, type ToolOptions } from "./tool.js";
import type { Params, Transport } from "./transport/transport.js";

/** Members that all events of a session can have. */
export interface EventOptions {
  urgency?: Urgency;
  verbosity?: Verbosity;
  correlationId?: string;
  /** Extensions of AAEP, by prefix. */
  extensions?: { readonly [prefix: string]: { readonly context: string; readonly body: Json } };
}

export interface SignalOption {
  signal?: AbortSignal;
}

/** An agent that speaks in a session. */
export interface Producer {
  agentId: string;
  agentName?: string;
  agentVersion?: string;
  model?: string;
  manifestUri?: string;
}

export interface OutputOptions {
  /** The output's id: `out_` and 1 to 64 letters or digits. Outputs with different ids can be open at the same time. */
  outputId?: string;
  /** The language, if it is not the session's. */
  language?: string;
  /** The media type, such as `text/markdown`. */
  contentType?: string;
  /**
   * What ends with each piece. The end of an output always has `completion`. End the piece with a space or a line break: a last word may
   * be the start of a secret, so it waits for the next piece, and then the piece has no hint.
   */
  coalesceHint?: CoalesceHint;
}

/** How an output ends. */
export interface OutputEnd {
  /** The hub does not report that the agent is thinking again. Report the next state yourself. */
  stays?: boolean;
}

export interface Progress {
  percent?: number;
  step?: number;
  totalSteps?: number;
  description?: string;
  etaMs?: number;
}

export interface Clarification extends SignalOption {
  /** Possible answers: values, or values with labels. */
  choices?: readonly (string | { value: string; label: Text })[];
  /** Kinds of answers besides the choices. Without any, the hub accepts free text. */
  accept?: readonly Exclude<ResponseKind, "multiple_choice">[];
  context?: Text;
  defaultResponse?: Text;
  /** The default is five minutes. */
  answerTimeoutMs?: number;
}

export interface HandOff extends SignalOption {
  summary?: Text;
  /** The default is `human`. */
  target?: HandOffTarget;
  targetUri?: string;
  urgency?: Risk;
  packagedContext?: { readonly [key: string]: Json };
  timeoutMs?: number;
}

export type HandOffOutcome =
  | { readonly outcome: "acknowledged" | "rejected"; readonly note: string | undefined; readonly principal: string | undefined }
  | { readonly outcome: "timeout" | "unreachable" | "withdrawn" };

/** The action that a person is asked to allow. */
export interface Action<Args = never> extends Policy<Args>, SignalOption {
  tool: string;
  arguments: Args;
  /** The id that the model gave the call. */
  toolCallId?: string;
}

/** Options for running a call that was announced. */
export interface CallOptions extends SignalOption {
  timeoutMs?: number | undefined;
  success?: TextOf<never> | undefined;
  toolCallId?: string | undefined;
}

/** The context that a tool's function gets besides its arguments. */
export interface ToolContext {
  /** Aborted when the caller aborts, the time limit is over, or the session is stopped. */
  readonly signal: AbortSignal;
  readonly session: Session;
  readonly toolCallId: string;
}

export interface Completion {
  outputSummary?: Text;
  resultUri?: string;
}

export interface Failure {
  category?: ErrorCategory;
  code?: string;
  remediationHint?: Text;
  recoverable?: boolean;
  errorUri?: string;
}

export interface Cancellation {
  cancelledBy?: CancelledBy;
  /** A short name of the reason, such as `user_pressed_escape`. */
  reason?: string;
  partialResult?: Text;
}

export type ReportedState = "thinking" | "deciding" | "calling_tool" | "writing_output" | "handing_off" | "idle" | (string & {});

/** Events that are always critical, as questions are. The hub sets their urgency, and refuses another one. */
const ALWAYS_CRITICAL: ReadonlySet<string> = new Set(["aaep:agent.session.errored", "aaep:agent.handoff.requested"]);

/** The largest piece of an output in one request, in characters. */
const MAX_OUTPUT_PIECE = 16 * 1024;

interface OpenOutput {
  readonly id: string;
  readonly redactor: StreamRedactor;
  readonly language: string | undefined;
  readonly contentType: string | undefined;
  isSent: boolean;
}

interface UnsentOutput {
  readonly key: string;
  readonly options: OutputOptions & SignalOption;
  text: string;
  hint: CoalesceHint | undefined;
  done: Promise<void>;
}

/** @internal */
export interface SessionSettings {
  readonly redactor: Redactor;
  readonly language: string;
  readonly options: EventOptions;
  readonly states: ReadonlySet<string>;
  /** What all producers of this program have done in the session. */
  readonly activity: { readonly startedAt: number; calls: number };
  /** Aborts the tools of the session. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * An open session. Each method reports something to the listeners and resolves when the hub has stored it. Methods that are called at
 * the same time are sent in the order of the calls.
 */
export class Session {
  readonly id: string;
  /** @internal */
  readonly redactor: Redactor;
  readonly #transport: Transport;
  readonly #settings: SessionSettings;
  readonly #producer: string | undefined;
  readonly #stop = new AbortController();
  readonly #outputs = new Map<string, OpenOutput>();
  /** Questions that are being withdrawn. The hub does not end a session with an open one. */
  readonly #withdrawals = new Set<Promise<void>>();
  /** The tokens of all questions. An answer to one of them is never an answer to a later question. */
  readonly #replyTokens = new Set<string>();
  readonly #unwatch: () => void;
  #queue: Promise<unknown> = Promise.resolve();
  /** Text that waits while an earlier request is on its way. */
  #unsent: UnsentOutput | undefined;
  #outputCount = 0;
  #isEnded = false;
  /** Whether the end was requested. No function starts after that. */
  #isEnding = false;
  /** Whether this object may end the session. */
  readonly #isMain: boolean;

  /** @internal */
  constructor(id: string, transport: Transport, settings: SessionSettings, producer?: string, isMain = true) {
    this.id = id;
    this.redactor = settings.redactor;
    this.#transport = transport;
    this.#settings = settings;
    this.#producer = producer;
    this.#isMain = isMain;
    this.#unwatch = isMain ? transport.watch(id, (reason) => this.#stop.abort(new SessionStoppedError(reason))) : () => {};
  }

  /** Aborted when somebody other than the agent stops the session. Its reason is a {@link SessionStoppedError}. */
  get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  /** Whether the session was ended by this program. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** How many secrets were removed from texts of this session. */
  get redactionCount(): number {
    return this.redactor.count;
  }

  /** Reports that the agent is thinking, and about what. */
  think(text: Text, options?: SignalOption): Promise<void> {
    return this.state("thinking", text, options);
  }

  /** Reports a state: one of AAEP's, or one that was defined when the session started. */
  async state(state: ReportedState, text?: Text, options: { expectedDurationMs?: number } & SignalOption = {}): Promise<void> {
    const event: Params = { type: "aaep:agent.state.changed", to_state: state };
    if (text !== undefined) this.#text(text).writeSummaries(event);
    else if (!this.#settings.states.has(state)) event["summary_normal"] = `${humanizeName(state)}.`;
    optional(event, "expected_duration_ms", options.expectedDurationMs);
    await this.#enqueue(options.signal, async () => {
      await this.#finishOpenOutputs();
      await this.#sendEvents([event]);
    });
  }

  /** Reports progress of a long task. */
  async progress(text: Text, progress: Progress & SignalOption = {}): Promise<void> {
    const summary = this.#text(text);
    const members: Params = {};
    optional(members, "percent", progress.percent);
    optional(members, "step", progress.step);
    optional(members, "total_steps", progress.totalSteps);
    members["description"] = this.redactor.redact(truncateText(this.redactor.redact(progress.description ?? summary.normal)));
    const event: Params & { type: string } = { type: "aaep:agent.progress.updated", progress: members };
    summary.writeSummaries(event);
    optional(event, "eta_ms", progress.etaMs);
    await this.event(event, progress);
  }

  /** Sends an event as it is, without its envelope. Secrets are removed from its texts. */
  async event(event: { readonly type: string; readonly [member: string]: unknown }, options: SignalOption = {}): Promise<void> {
    await this.#enqueue(options.signal, () => this.#sendEvents([this.redactor.redactJson(event) as Params]));
  }

  /**
   * Reports text that the agent's model writes: a whole text, or a stream of pieces. The output is complete when the stream ends.
   * Listeners get it in the chunks that they asked for, such as sentences.
   */
  async say(source: string | AsyncIterable<string | Uint8Array> | Iterable<string> | ReadableStream<string | Uint8Array>, options: OutputOptions & OutputEnd & SignalOption = {}): Promise<void> {
    if (typeof source === "string") {
      await this.write(source, options);
    } else {
      const decoder = new TextDecoder();
      let sent: Promise<void> = Promise.resolve();
      let failure: unknown;
      for await (const piece of source as AsyncIterable<string | Uint8Array>) {
        options.signal?.throwIfAborted();
        const text = typeof piece === "string" ? piece : decoder.decode(piece, { stream: true });
        if (failure !== undefined) break;
        sent = this.write(text, options);
        sent.catch((error: unknown) => (failure ??= error));
      }
      const rest = decoder.decode();
      if (rest !== "") sent = this.write(rest, options);
      await sent;
      if (failure !== undefined) throw failure;
    }
    await this.finishOutput(options);
  }

  /** Reports a piece of text. It may be split anywhere. Pieces that are written while another one is sent go together in one request. */
  write(text: string, options: OutputOptions & SignalOption = {}): Promise<void> {
    const key = JSON.stringify([options.outputId, options.language, options.contentType]);
    const { coalesceHint: hint } = options;
    if (this.#unsent !== undefined && this.#unsent.key === key && this.#unsent.options.signal === options.signal && this.#unsent.text.length < MAX_OUTPUT_PIECE) {
      const { done } = this.#unsent;
      this.#unsent.text += text;
      this.#unsent.hint = hint;
      // The hint is about the end of this piece, so nothing is added to it.
      if (hint !== undefined) this.#unsent = undefined;
      return orAborted(done, options.signal);
    }
    const unsent: UnsentOutput = { key, options, text, hint, done: Promise.resolve() };
    unsent.done = this.#enqueue(options.signal, () => {
      if (this.#unsent === unsent) this.#unsent = undefined;
      return this.#sendOutput(unsent.text, options, false, unsent.hint);
    });
    if (hint === undefined) this.#unsent = unsent;
    return unsent.done;
  }

  /** Marks an output as complete. This also happens when the agent enters a state, calls a tool, asks, hands off or ends the session. */
  async finishOutput(options: { outputId?: string } & OutputEnd & SignalOption = {}): Promise<void> {
    await this.#enqueue(options.signal, () => this.#finishOutput(this.#outputs.get(options.outputId ?? ""), options));
  }

  /**
   * Asks the person to allow one exact call, and waits for the answer.
   *
   * Rejects with {@link ConsentRefusedError} if the person says no, or nobody says yes. Aborting the signal withdraws the question.
   */
  async ask<Args>(action: Action<Args>): Promise<Granted> {
    const call = new BoundCall(action.tool, action.arguments);
    const { body, announcement } = this.#describeCall(call.tool, inOrderOf(action.arguments, call.arguments()), action as Policy, action.toolCallId);
    const { outcome, token } = await this.#question("session.ask", body, action.signal);
    const receipt = await checkAnswer(outcome, this.id, token, call);
    return createGranted(call, this.id, announcement, receipt);
  }

  /**
   * Uses a consent: announces the call, calls the function with the arguments that the person agreed to, and reports its outcome.
   */
  async call<T>(granted: Granted, run: (args: never, context: ToolContext) => T | Promise<T>, options: CallOptions = {}): Promise<T> {
    const { call, announcement } = spendGranted(granted, this.id);
    // The arguments are a new copy of the text that the person heard, so nobody can have changed them.
    return this.#run(call.tool, call.arguments(), announcement, run as ToolFunction<unknown, T>, options);
  }

  /** Announces a call that needs no consent, makes it and reports its outcome. */
  async run<T>(tool: string, work: (context: ToolContext) => T | Promise<T>, policy: Policy & CallOptions & { arguments?: unknown } = {}): Promise<T> {
    if (needsConsent(policy)) throw new InvalidInputError("this call needs consent; use `tool`, or `ask` and `call`");
    const args = policy.arguments ?? {};
    const { announcement } = this.#describeCall(tool, args, policy, policy.toolCallId);
    return this.#run(tool, args, announcement, (_args, context) => work(context), policy);
  }

  /** Announces a call. The caller makes it and reports its outcome. For a call that needs consent, pass the consent. */
  async startCall(call: Granted | { tool: string; arguments?: unknown; policy?: Policy; toolCallId?: string }, options: SignalOption = {}): Promise<ToolCall> {
    if ("receipt" in call) {
      const spent = spendGranted(call, this.id);
      return this.#announce(spent.call.tool, spent.announcement, options.signal);
    }
    if (call.policy !== undefined && needsConsent(call.policy)) throw new InvalidInputError("this call needs consent; `ask` first");
    const { announcement } = this.#describeCall(call.tool, call.arguments ?? {}, call.policy ?? {}, call.toolCallId);
    return this.#announce(call.tool, announcement, options.signal);
  }

  /** Wraps a function: it asks if the policy says so, announces itself and reports its outcome. */
  tool<Args, R>(options: ToolOptions<Args>, run: ToolFunction<Args, R>): Tool<Args, R> {
    return bindTool({ ...options, session: this }, run);
  }

  /** Asks what the person wants. Rejects with {@link UnansweredError} if there is no answer and no default. */
  async clarify(question: Text, options: Clarification = {}): Promise<string | boolean | number> {
    const text = this.#text(question);
    const body: Params = {};
    text.writeAs(body, "question");
    text.writeSummaries(body);
    text.writeOther(body, "context", this.#optionalText(options.context));
    text.writeOther(body, "default_response", this.#optionalText(options.defaultResponse));
    body["timeout_seconds"] = toSeconds(options.answerTimeoutMs ?? DEFAULT_ANSWER_TIMEOUT_MS);
    const choices = (options.choices ?? []).map((choice) => {
      const { value, label } = typeof choice === "string" ? { value: choice, label: choice } : choice;
      return { value, label: this.#text(label) };
    });
    const kinds = [...(options.accept ?? []), ...(choices.length > 0 ? ["multiple_choice"] : [])];
    if (kinds.length > 0) body["accepted_response_kinds"] = kinds;
    if (choices.length > 0) {
      body["choices"] = choices.map(({ value, label }) => ({ value, label: label.normal }));
      for (const tag of text.languages) {
        const labels = choices.map(({ value, label }) => ({ value, label: label.forLanguage(tag) }));
        if (labels.every(({ label }) => label !== undefined)) body[localizedName("choices", tag)] = labels;
      }
    }
    this.#writeOptions(body, false);
    const { outcome } = await this.#question("session.clarify", body, options.signal);
    if (outcome.status === "stopped") throw new SessionStoppedError("person");
    const { response } = outcome;
    const isAnswer = typeof response === "string" || typeof response === "boolean" || typeof response === "number";
    if (outcome.status !== "resolved" || !isAnswer) throw new UnansweredError(toResolvedBy(outcome.by));
    return response;
  }

  /** Asks somebody else to take over, and waits for the outcome. Whatever it is, the session must still be ended. */
  async handOff(reason: Text, options: HandOff = {}): Promise<HandOffOutcome> {
    const body = this.#handOffMembers(reason, options);
    if (options.timeoutMs !== undefined) body["timeout_seconds"] = toSeconds(options.timeoutMs);
    const { outcome } = await this.#question("session.hand_off", body, options.signal);
    const text = (value: unknown) => (typeof value === "string" ? value : undefined);
    switch (outcome.outcome) {
      case "acknowledged":
      case "rejected":
        return { outcome: outcome.outcome, note: text(outcome.note), principal: text(outcome.principal) };
      case "timeout":
      case "unreachable":
        return { outcome: outcome.outcome };
      default:
        return { outcome: "withdrawn" };
    }
  }

  /** Tells listeners that somebody else takes over, without waiting for anybody. */
  async announceHandOff(reason: Text, options: HandOff = {}): Promise<void> {
    const event = { type: "aaep:agent.handoff.requested", ...this.#handOffMembers(reason, options) };
    await this.#enqueue(options.signal, async () => {
      await this.#finishOpenOutputs();
      await this.#sendEvents([event]);
    });
  }

  /** Returns a handle for another producer of this session. It cannot end the session. */
  as(agentId: string): Session {
    return new Session(this.id, this.#transport, this.#settings, agentId, false);
  }

  /** Invites the agent of another token to speak in this session. */
  async invite(agentId: string, options: { expiresInSeconds?: number } & SignalOption = {}): Promise<Invitation> {
    const params: Params = { session_id: this.id, producer: agentId };
    optional(params, "expires_in_seconds", options.expiresInSeconds);
    const result = await this.#transport.call("session.invite", params, options.signal);
    return { sessionId: this.id, invitation: result.invitation, expiresAt: result.expires_at };
  }

  /** Ends the session: the task is done. */
  complete(text: Text = "Done.", options: Completion = {}): Promise<void> {
    const { calls, startedAt } = this.#settings.activity;
    const event: Params = { type: "aaep:agent.session.completed", duration_ms: Math.max(0, Date.now() - startedAt), tool_invocations_count: calls };
    const summary = this.#text(text);
    summary.writeSummaries(event);
    summary.writeOther(event, "output_summary", this.#optionalText(options.outputSummary));
    optional(event, "result_uri", options.resultUri);
    return this.#end(event);
  }

  /** Ends the session: the agent failed. */
  fail(text: Text, options: Failure = {}): Promise<void> {
    const event: Params = { type: "aaep:agent.session.errored", error_category: options.category ?? "unknown" };
    const summary = redactReason(text, this.redactor);
    summary.writeSummaries(event);
    optional(event, "error_code", options.code);
    optional(event, "recoverable", options.recoverable);
    optional(event, "error_uri", options.errorUri);
    summary.writeOther(event, "remediation_hint", this.#optionalText(options.remediationHint));
    return this.#end(event);
  }

  /** Ends the session: the task was cancelled. */
  cancel(text: Text, options: Cancellation = {}): Promise<void> {
    const event: Params = { type: "aaep:agent.session.cancelled", cancelled_by: options.cancelledBy ?? "producer" };
    const summary = this.#text(text);
    summary.writeSummaries(event);
    optional(event, "cancellation_reason", options.reason && this.redactor.redact(options.reason));
    summary.writeOther(event, "partial_result", this.#optionalText(options.partialResult));
    return this.#end(event);
  }

  /** Ends the session, if it is still open. For `await using`: a session that was not ended before counts as abandoned. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isEnded || !this.#isMain || this.stopped.aborted) return;
    await this.fail("The agent stopped before it was done.").catch(() => {});
  }

  /** Calls a function with this session as the current one. */
  within<T>(work: () => T | Promise<T>): Promise<T> {
    return within(this, work);
  }

  /** Describes a call for the question and for its announcement. */
  #describeCall(tool: string, args: unknown, policy: Policy, toolCallId: string | undefined): { body: Params; announcement: Params } {
    const isAsked = needsConsent(policy);
    const risk = effectiveRisk(policy);
    const announcement: Params = {
      type: "aaep:agent.tool.invoked",
      tool,
      tool_call_id: toolCallId ?? newCallId(),
      risk_level: risk,
      irreversible: isIrreversible(policy),
    };
    const action = this.#actionText(tool, policy, args, isAsked);
    action.writeSummaries(announcement);
    action.writeOther(announcement, "description", this.#optionalText(policy.description));
    action.writeOther(announcement, "args_summary", policy.argsSummary === undefined ? undefined : this.#text(describe(policy.argsSummary, args).text));
    optional(announcement, "expected_duration_ms", policy.expectedDurationMs);
    if (!isAsked) return { body: {}, announcement };
    announcement["arguments"] = args;
    const consequence =
      policy.consequence === undefined
        ? this.#text(isIrreversible(policy) ? "It cannot be undone." : "The agent will do it at once.")
        : this.#text(describe(policy.consequence, args).text);
    const body: Params = {};
    action.writeAs(body, "action");
    action.writeOther(body, "consequence", consequence);
    const summary = policy.question === undefined ? action.followedBy(consequence) : this.#text(describe(policy.question, args).text);
    summary.writeSummaries(body);
    body["timeout_seconds"] = toSeconds(policy.answerTimeoutMs ?? DEFAULT_ANSWER_TIMEOUT_MS);
    body["default_decision"] = "reject";
    body["risk_level"] = risk;
    body["irreversible"] = isIrreversible(policy);
    if (policy.allowedReplies !== undefined) body["allowed_replies"] = policy.allowedReplies;
    if (policy.extraContext !== undefined) body["extra_context"] = this.redactor.redactJson(policy.extraContext);
    if (policy.reversibility !== undefined && !isIrreversible(policy)) body["reversibility"] = policy.reversibility;
    body["tool"] = tool;
    body["arguments"] = args;
    if (toolCallId !== undefined) body["tool_call_id"] = toolCallId;
    this.#writeOptions(body, false);
    return { body, announcement };
  }

  /** Returns what the call does. A person must hear everything that the answer is bound to, except confidential arguments. */
  #actionText(tool: string, policy: Policy, args: unknown, isAsked: boolean): RedactedText {
    const described = policy.action === undefined ? undefined : describe(policy.action, args);
    if (!isAsked) return this.#text(described?.text ?? `${humanizeName(tool)}.`);
    const named = new Set(described?.named ?? []);
    if (policy.consequence !== undefined) for (const name of describe(policy.consequence, args).named ?? []) named.add(name);
    const text = described?.text ?? `${humanizeName(tool)}.`;
    // A function that makes the text has read the arguments itself.
    if (described !== undefined && described.named === undefined) return this.#text(text);
    const members = typeof args === "object" && args !== null && !Array.isArray(args) ? Object.entries(args) : [["arguments", args] as const];
    const unnamed = members
      .filter(([name]) => !named.has(name) && !(policy.confidential ?? []).includes(name))
      .map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
    if (unnamed.length === 0) return this.#text(text);
    const add = (form: string) => `${form} (${unnamed.join(", ")})`;
    if (typeof text === "string") return this.#text(add(text));
    const translations = Object.entries(text.in ?? {}).map(([tag, form]) => [tag, typeof form === "string" ? add(form) : { ...form, normal: add(form.normal) }]);
    return this.#text({ ...text, normal: add(text.normal), in: Object.fromEntries(translations) });
  }

  async #announce(tool: string, announcement: Params, signal: AbortSignal | undefined): Promise<ToolCall> {
    await this.#enqueue(signal, async () => {
      await this.#finishOpenOutputs();
      await this.#sendEvents([announcement]);
    });
    this.#settings.activity.calls += 1;
    return new ToolCall(this, tool, String(announcement["tool_call_id"]), (events) => this.#enqueue(undefined, () => this.#sendEvents(events)));
  }

  async #run<T>(tool: string, args: unknown, announcement: Params, run: ToolFunction<unknown, T>, options: CallOptions): Promise<T> {
    options.signal?.throwIfAborted();
    const opened = await this.#announce(tool, announcement, undefined);
    const timeout = new AbortController();
    const signals = [this.stopped, timeout.signal, this.#settings.signal, options.signal];
    const signal = AbortSignal.any(signals.filter((one) => one !== undefined));
    const success = options.success === undefined ? undefined : describe(options.success, args).text;
    const context: ToolContext = { signal, session: this, toolCallId: opened.id };
    let timer: ReturnType<typeof setTimeout> | undefined;
    let result: T;
    try {
      signal.throwIfAborted();
      if (this.#isEnding) throw new InvalidInputError("the session has ended");
      if (options.timeoutMs !== undefined) {
        timer = setTimeout(() => timeout.abort(new ToolTimeoutError(tool, options.timeoutMs as number)), options.timeoutMs);
      }
      result = await orAborted(Promise.resolve(within(this, () => run(args, context))), signal);
    } catch (error) {
      await this.#reportFailure(opened, error).catch(() => {});
      throw error;
    } finally {
      clearTimeout(timer);
    }
    // The function has run, so its result counts even if it cannot be reported. An error here would make agents repeat the call.
    await opened.succeed(success).catch(() => {});
    return result;
  }

  async #reportFailure(opened: ToolCall, error: unknown): Promise<void> {
    if (error instanceof ToolTimeoutError) return opened.timeOut();
    if (this.stopped.aborted) return;
    return opened.fail(errorText(error));
  }

  /** Opens a question and waits for its outcome. If the signal is aborted, the question is withdrawn. */
  async #question(method: "session.ask" | "session.clarify" | "session.hand_off", body: Params, signal: AbortSignal | undefined): Promise<{ outcome: Reply; token: string }> {
    signal?.throwIfAborted();
    const opened = this.#enqueue(undefined, async () => {
      await this.#finishOpenOutputs();
      signal?.throwIfAborted();
      return this.#transport.call(method, { session_id: this.id, ...this.#withProducer(body) });
    });
    const withdraw = () => {
      const withdrawn: Promise<void> = opened
        .then((result) => this.#transport.withdraw(this.id, result.reply_token))
        .catch(() => {})
        .finally(() => this.#withdrawals.delete(withdrawn));
      this.#withdrawals.add(withdrawn);
    };
    let result: QuestionOpened;
    try {
      result = await orAborted(opened, signal);
    } catch (error) {
      if (signal?.aborted) withdraw();
      throw await this.#betterError(error);
    }
    const token = result.reply_token;
    if (this.#replyTokens.has(token)) throw new MalformedResponseError("the hub gave two questions the same reply token");
    this.#replyTokens.add(token);
    try {
      const outcome = await orAborted(this.#transport.waitForReply(this.id, token, signal), this.stopped);
      signal?.throwIfAborted();
      return { outcome, token };
    } catch (error) {
      if (signal?.aborted) {
        withdraw();
        throw signal.reason;
      }
      throw await this.#betterError(error);
    }
  }

  #handOffMembers(reason: Text, options: HandOff): Params {
    const body: Params = { target_kind: options.target ?? "human" };
    const why = this.#text(reason);
    const summary = this.#optionalText(options.summary) ?? why;
    summary.writeOther(body, "reason", why);
    summary.writeSummaries(body);
    optional(body, "urgency_for_handoff", options.urgency);
    optional(body, "target_uri", options.targetUri);
    if (options.packagedContext !== undefined) body["packaged_context"] = this.redactor.redactJson(options.packagedContext);
    this.#writeOptions(body, false);
    return body;
  }

  #end(event: Params): Promise<void> {
    if (!this.#isMain) return Promise.reject(new InvalidInputError("only the main producer can end the session"));
    if (this.#isEnded) return Promise.reject(new SessionStoppedError("other"));
    this.#isEnding = true;
    return this.#enqueue(undefined, async () => {
      await this.#finishOpenOutputs(true);
      await Promise.all(this.#withdrawals);
      await this.#sendEvents([event]);
      this.#isEnded = true;
      this.#unwatch();
    });
  }

  async #sendOutput(text: string, options: OutputOptions & OutputEnd, isComplete: boolean, hint?: CoalesceHint): Promise<void> {
    const key = options.outputId ?? "";
    let output = this.#outputs.get(key);
    if (output !== undefined && text !== "" && (output.language !== options.language || output.contentType !== options.contentType)) {
      await this.#finishOutput(output);
      output = undefined;
    }
    if (output === undefined) {
      this.#outputCount += 1;
      const id = options.outputId ?? `out_${this.#producer === undefined ? "" : newSuffix()}${this.#outputCount}`;
      output = { id, redactor: new StreamRedactor(this.redactor), language: options.language, contentType: options.contentType, isSent: false };
      this.#outputs.set(key, output);
    }
    const pending = output.redactor.push(text, isComplete);
    for (let at = 0; at < pending.length || (at === 0 && isComplete && output.isSent); ) {
      let end = Math.min(at + MAX_OUTPUT_PIECE, pending.length);
      if (end < pending.length && (pending.charCodeAt(end) & 0xfc00) === 0xdc00) end -= 1;
      const isLast = end === pending.length;
      const members: Params = {};
      if (isLast && isComplete) members["complete"] = true;
      if (isLast && isComplete && options.stays === true) members["stays"] = true;
      // If the end of the piece is held back, the hint would be about another place.
      if (isLast && !isComplete && output.redactor.isEmpty) optional(members, "coalesce_hint", hint);
      await this.#sendPiece(output, pending.slice(at, end), members);
      at = end;
      if (isLast) break;
    }
    if (isComplete) this.#outputs.delete(key);
  }

  async #sendPiece(output: OpenOutput, text: string, members: Params): Promise<void> {
    const params: Params = { session_id: this.id, text, output_id: output.id, ...members };
    optional(params, "producer", this.#producer);
    optional(params, "language", output.language);
    optional(params, "content_type", output.contentType);
    output.isSent = true;
    await this.#transport.call("session.output", params);
  }

  async #finishOutput(output: OpenOutput | undefined, end: OutputEnd = {}): Promise<void> {
    if (output === undefined) return;
    const key = [...this.#outputs].find(([, open]) => open === output)?.[0] ?? "";
    const { language, contentType } = output;
    const options: OutputOptions & OutputEnd = end.stays === true ? { stays: true } : {};
    if (key !== "") options.outputId = key;
    if (language !== undefined) options.language = language;
    if (contentType !== undefined) options.contentType = contentType;
    await this.#sendOutput("", options, true);
  }

  /** Completes the output without an id, and at the end of the session those with ids as well. */
  async #finishOpenOutputs(all = false): Promise<void> {
    for (const [key, output] of [...this.#outputs]) if (all || key === "") await this.#finishOutput(output);
  }

  async #sendEvents(events: readonly Params[]): Promise<void> {
    const complete = events.map((event) => {
      const written = { ...event };
      this.#writeOptions(written, !ALWAYS_CRITICAL.has(String(event["type"])));
      return this.#withProducer(written);
    });
    await this.#transport.call("session.event", { session_id: this.id, events: complete });
  }

  /** Runs requests one after the other, in the order of the calls. */
  #enqueue<T>(signal: AbortSignal | undefined, send: () => Promise<T>): Promise<T> {
    // Text that is written later must not go before this request.
    this.#unsent = undefined;
    const result = this.#queue.then(async () => {
      signal?.throwIfAborted();
      this.stopped.throwIfAborted();
      if (this.#isEnded) throw new SessionStoppedError("other");
      try {
        return await send();
      } catch (error) {
        throw await this.#betterError(error);
      }
    });
    this.#queue = result.catch(() => {});
    return orAborted(result, signal);
  }

  /** Replaces an error by the reason why the session was stopped, if that is known. */
  async #betterError(error: unknown): Promise<unknown> {
    if (!(error instanceof SessionStoppedError)) return error;
    if (!this.stopped.aborted) {
      // The reason arrives right after the error.
      await new Promise((resolve) => setTimeout(resolve, 20));
      if (!this.stopped.aborted) this.#stop.abort(error);
    }
    return this.stopped.reason;
  }

  #withProducer(members: Params): Params {
    return this.#producer === undefined ? members : { ...members, producer: this.#producer };
  }

  /** Questions are always critical, so the hub sets their urgency. */
  #writeOptions(out: Params, withUrgency: boolean): void {
    writeOptions(out, this.#settings.options, this.redactor, withUrgency);
  }

  #text(text: Text): RedactedText {
    return RedactedText.of(text, this.redactor);
  }

  #optionalText(text: Text | undefined): RedactedText | undefined {
    return text === undefined ? undefined : this.#text(text);
  }
}

/** An invitation for the agent of another token. Send it over a confidential channel. */
export interface Invitation {
  readonly sessionId: string;
  readonly invitation: string;
  readonly expiresAt: string;
}

/** An announced call whose outcome must be reported. */
export class ToolCall {
  readonly id: string;
  readonly tool: string;
  readonly #session: Session;
  readonly #send: (events: Params[]) => Promise<void>;
  readonly #startedAt = Date.now();
  #isClosed = false;

  /** @internal */
  constructor(session: Session, tool: string, id: string, send: (events: Params[]) => Promise<void>) {
    this.#session = session;
    this.tool = tool;
    this.id = id;
    this.#send = send;
  }

  /** Reports that the tool succeeded. */
  succeed(text: Text = `${humanizeName(this.tool)} has finished.`): Promise<void> {
    return this.#complete("success", RedactedText.of(text, this.#session.redactor));
  }

  /** Reports that the tool failed, and why. */
  fail(reason: Text): Promise<void> {
    const why = redactReason(reason, this.#session.redactor);
    const summary = why.isSingle ? RedactedText.of(truncateText(`${humanizeName(this.tool)} failed: ${why.normal}`), this.#session.redactor) : why;
    return this.#complete("error", summary, why);
  }

  /** Reports that the tool exceeded its time limit. */
  timeOut(): Promise<void> {
    const text = RedactedText.of(`${humanizeName(this.tool)} took too long.`, this.#session.redactor);
    return this.#complete("timeout", text, text);
  }

  async #complete(status: ToolStatus, summary: RedactedText, error?: RedactedText): Promise<void> {
    if (this.#isClosed) throw new InvalidInputError("the outcome of this call was already reported");
    this.#isClosed = true;
    const event: Params = { type: "aaep:agent.tool.completed", tool: this.tool, tool_call_id: this.id, status, duration_ms: Date.now() - this.#startedAt };
    summary.writeSummaries(event);
    summary.writeOther(event, "error_message", error);
    await this.#send([event]);
  }
}

/** Returns the receipt if the outcome is a person's yes to exactly this call. Otherwise it throws: undecided means no. */
async function checkAnswer(outcome: Reply, sessionId: string, token: string, call: BoundCall): Promise<Receipt> {
  if (outcome.status === "stopped") throw new SessionStoppedError("person");
  const record = (typeof outcome.receipt === "object" && outcome.receipt !== null ? outcome.receipt : undefined) as Record<string, unknown> | undefined;
  const receipt: Receipt | undefined =
    record && Object.freeze({ receipt: Object.freeze(record), signature: typeof outcome.receipt_signature === "string" ? outcome.receipt_signature : undefined });
  const isAccepted = outcome.status === "resolved" && outcome.decision === "accept" && outcome.by === "reply";
  if (!isAccepted) {
    // A yes that no person sent is not a person's no either.
    const by = outcome.decision === "reject" || outcome.by !== "reply" ? toResolvedBy(outcome.by) : "other";
    throw new ConsentRefusedError(by, receipt);
  }
  const isForThis =
    receipt !== undefined &&
    receipt.receipt["type"] === "sayso:receipt" &&
    receipt.receipt["decision"] === "accept" &&
    receipt.receipt["by"] === "reply" &&
    receipt.receipt["session_id"] === sessionId &&
    receipt.receipt["reply_token"] === token &&
    receipt.receipt["action_digest"] === (await actionDigest(call.tool, call.text));
  if (!isForThis) throw new ConsentMismatchError("other_receipt");
  return receipt;
}

/** Returns the copy with its members in the order of the original, so that the person hears them in the author's order. */
function inOrderOf(original: unknown, copy: unknown): unknown {
  if (typeof original !== "object" || original === null || Array.isArray(original)) return copy;
  const members = new Map(Object.entries(copy as object));
  const ordered = new Set([...Object.keys(original).filter((name) => members.has(name)), ...members.keys()]);
  return Object.fromEntries([...ordered].map((name) => [name, members.get(name)]));
}

function toResolvedBy(by: unknown): ResolvedBy {
  const known: readonly ResolvedBy[] = ["reply", "timeout", "closure", "unreachable", "cancelled", "stopped"];
  return known.find((name) => name === by) ?? "other";
}

/** @internal Writes the options that an event does not have itself. */
export function writeOptions(out: Params, options: EventOptions, redactor: Redactor, withUrgency = true): void {
  const { urgency, verbosity, correlationId, extensions } = options;
  if (withUrgency && urgency !== undefined && !("urgency" in out)) out["urgency"] = urgency;
  optional(out, "verbosity", verbosity);
  optional(out, "correlation_id", correlationId);
  if (extensions !== undefined && !("extensions" in out)) {
    const all = Object.entries(extensions);
    out["@context"] = ["https://aaep-protocol.org/context/v1", ...all.map(([, { context }]) => context)];
    out["extensions"] = Object.fromEntries(all.map(([prefix, { body }]) => [prefix, redactor.redactJson(body)]));
  }
}

function optional(out: Params, name: string, value: unknown): void {
  if (value !== undefined) out[name] = value;
}

/** Returns whole seconds, at least one. */
function toSeconds(ms: number): number {
  if (!Number.isFinite(ms) || ms <= 0) throw new InvalidInputError(`a timeout of ${ms} ms is not possible`);
  return Math.max(1, Math.ceil(ms / 1000));
}

function newSuffix(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function newCallId(): string {
  return `call_${newSuffix()}`;
}
