/** Typed errors. Whatever the error, the function that needed consent was not run, unless the error says otherwise. */

/** The base of all errors of this package. */
export class SaysoError extends Error {
  override name = "SaysoError";
  /** A short name of the error that does not change between versions. */
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** What resolved a question. Only `reply` means that a person answered. */
export type ResolvedBy = "reply" | "timeout" | "closure" | "unreachable" | "cancelled" | "stopped" | "other";

const REFUSAL_TEXTS: Record<ResolvedBy, string> = {
  reply: "the person refused",
  timeout: "nobody answered in time",
  closure: "everybody who could have answered has disconnected",
  unreachable: "nobody could be asked",
  cancelled: "the question was withdrawn or the session ended before the answer",
  stopped: "the person stopped the session",
  other: "it was refused",
};

/** The person said no, or nobody said yes, which counts as no. The function was not run. */
export class ConsentRefusedError extends SaysoError {
  override name = "ConsentRefusedError";
  readonly by: ResolvedBy;
  /** The hub's record of the decision, if it sent one. */
  readonly receipt: Receipt | undefined;

  /** Whether the person accepted only a different action. */
  readonly modified: boolean;

  constructor(by: ResolvedBy, receipt?: Receipt) {
    const modified = receipt?.receipt["modified"] === true;
    super("consent_refused", modified ? "the person asked for a different action" : REFUSAL_TEXTS[by]);
    this.by = by;
    this.modified = modified;
    this.receipt = receipt;
  }
}

/** Nobody answered a clarification, and it has no default. */
export class UnansweredError extends SaysoError {
  override name = "UnansweredError";
  readonly by: ResolvedBy;

  constructor(by: ResolvedBy) {
    super("unanswered", "there is no answer");
    this.by = by;
  }
}

/** The hub's record of a decision, with its signature. `docs/agent-api.md` explains the members. */
export interface Receipt {
  readonly receipt: Readonly<Record<string, unknown>>;
  /** A detached JWS over the receipt as canonical JSON. */
  readonly signature: string | undefined;
}

/** Why a session ended although the agent did not end it. */
export type StopReason = "person" | "lease_expired" | "unreachable" | "other";

const STOP_TEXTS: Record<StopReason, string> = {
  person: "the person stopped the session",
  lease_expired: "the hub ended the session because the agent was silent for too long",
  unreachable: "the hub can no longer be reached",
  other: "the session is over",
};

/** The session is over, and the agent did not end it. */
export class SessionStoppedError extends SaysoError {
  override name = "SessionStoppedError";
  readonly reason: StopReason;

  constructor(reason: StopReason, options?: ErrorOptions) {
    super("session_stopped", STOP_TEXTS[reason], options);
    this.reason = reason;
  }
}

/** The hub cannot be reached. It is not known whether it received the request. */
export class HubUnreachableError extends SaysoError {
  override name = "HubUnreachableError";

  constructor(message: string, options?: ErrorOptions) {
    super("hub_unreachable", `the hub cannot be reached: ${message}`, options);
  }
}

/** The hub's response is not a valid message of the agent API, so it counts as no answer. */
export class MalformedResponseError extends SaysoError {
  override name = "MalformedResponseError";

  constructor(message: string, options?: ErrorOptions) {
    super("malformed_response", message, options);
  }
}

/** The token is missing or does not allow the request. */
export class AccessDeniedError extends SaysoError {
  override name = "AccessDeniedError";

  constructor(message: string) {
    super("access_denied", message);
  }
}

/** A violated protocol rule. */
export interface RuleViolation {
  /** The rule's id, such as `AAEP-4.3.2-3`. */
  readonly rule: string;
  /** The violating member, as a JSON pointer. */
  readonly pointer: string;
  readonly message: string;
}

/** The request violates protocol rules. Nothing was applied. */
export class RuleViolationError extends SaysoError {
  override name = "RuleViolationError";
  readonly violations: readonly RuleViolation[];

  constructor(title: string, violations: readonly RuleViolation[]) {
    const details = violations.map(({ rule, pointer, message }) => `; ${rule} ${pointer}: ${message}`).join("");
    super("rule_violation", title + details);
    this.violations = violations;
  }
}

/** An argument, a setting or a request cannot be used. */
export class InvalidInputError extends SaysoError {
  override name = "InvalidInputError";

  constructor(message: string, options?: ErrorOptions) {
    super("invalid_input", message, options);
  }
}

/** A limit on size, count or rate is reached. */
export class LimitReachedError extends SaysoError {
  override name = "LimitReachedError";

  constructor(message: string) {
    super("limit_reached", message);
  }
}

/** The hub had an error of its own, or could not store the request. The request had no effect. */
export class HubFailedError extends SaysoError {
  override name = "HubFailedError";

  constructor(message: string) {
    super("hub_failed", message);
  }
}

/** The consent does not cover this call. */
export class ConsentMismatchError extends SaysoError {
  override name = "ConsentMismatchError";
  readonly reason: "other_session" | "other_action" | "already_used" | "other_receipt";

  constructor(reason: ConsentMismatchError["reason"]) {
    super(
      "consent_mismatch",
      {
        other_session: "the consent was given in another session",
        other_action: "the consent was given for another action",
        already_used: "the consent was already used",
        other_receipt: "the hub's receipt is not for this question",
      }[reason],
    );
    this.reason = reason;
  }
}

/** A tool needs a session, but there is none. */
export class NoSessionError extends SaysoError {
  override name = "NoSessionError";

  constructor() {
    super("no_session", "there is no current session; call the tool inside `session(…)`, or pass `session`");
  }
}

/** The function exceeded its time limit. It was started; its signal is aborted, and its result is ignored. */
export class ToolTimeoutError extends SaysoError {
  override name = "ToolTimeoutError";

  constructor(tool: string, timeoutMs: number) {
    super("tool_timeout", `${tool} did not finish within ${timeoutMs} ms`);
  }
}

/** Returns the text of anything that was thrown. */
export function errorText(error: unknown): string {
  if (error instanceof Error) return error.message || error.name;
  try {
    return String(error);
  } catch {
    return "unknown error";
  }
}

/**
 * Formats why a tool was not run, for the model that requested the call.
 *
 * The text tells the model not to try again, because models otherwise repeat refused calls.
 */
export function refusalForModel(error: unknown): string {
  const reason = errorText(error).replace(/[.!?\s]+$/u, "");
  const text = reason.charAt(0).toUpperCase() + reason.slice(1);
  return `${text}. The tool was not run. Do not call it again for this request unless the person asks for it.`;
}
