/**
 * Lets a person hear what an AI agent does, and asks them before anything irreversible happens.
 *
 * ```ts
 * import { session, tool } from "@sayso/client";
 *
 * const send = tool({ name: "send", irreversible: true, action: "Send {amount} euro to {to}." }, sendMoney);
 * await session("Paying bills", () => send({ amount: "5.00", to: "Ben" }));
 * ```
 */

export { hub, Hub, session, type HubOptions, type SessionOptions } from "./hub.js";
export {
  Session,
  ToolCall,
  type Action,
  type CallOptions,
  type Cancellation,
  type Clarification,
  type Completion,
  type EventOptions,
  type Failure,
  type HandOff,
  type HandOffOutcome,
  type Invitation,
  type OutputEnd,
  type OutputOptions,
  type Producer,
  type Progress,
  type ReportedState,
  type ToolContext,
} from "./session.js";
export { tool, type Tool, type ToolCallOptions, type ToolFunction, type ToolOptions } from "./tool.js";
export { ASK, HARMLESS, Granted, type Policy, type TextOf } from "./consent.js";
export type { CancelledBy, CoalesceHint, Decision, ErrorCategory, HandOffTarget, ResponseKind, Reversibility, Risk, Urgency, Verbosity } from "./agent-api.generated.js";
export { currentSession, within } from "./current.js";
export { actionDigest, canonicalize, type Json } from "./canonical.js";
export { redactSecrets, type Redact } from "./redact/redactor.js";
export type { LocalizedText, Text, TextForms } from "./text.js";
export * from "./errors.js";
