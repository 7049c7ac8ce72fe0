/** Consent as a value: a person's yes to one exact call. */

import type { Decision, Reversibility, Risk } from "./agent-api.generated.js";
import { canonicalize } from "./canonical.js";
import { ConsentMismatchError, InvalidInputError, type Receipt } from "./errors.js";
import type { Json } from "./canonical.js";
import type { Text } from "./text.js";

/** A text, a template with `{names}` of arguments, or a function that makes the text from the arguments. */
export type TextOf<Args> = Text | ((args: Args) => Text);

/** How listeners hear about a call, and whether a person is asked first. */
export interface Policy<Args = never> {
  /** What a call does, such as `"Send {amount} euro to {to}."`. Arguments that no text names are added to the question. */
  action?: TextOf<Args>;
  /** The consequence of the call. The default says that it cannot be undone, if that is true. */
  consequence?: TextOf<Args>;
  /** The text of the question. The default is the action followed by its consequence. */
  question?: TextOf<Args>;
  /** The report on success. */
  success?: TextOf<Args>;
  /** The call cannot be undone. A person is asked first. */
  irreversible?: boolean;
  /** A person is asked before a call with the risk `high`. The default is `high` if a person is asked, else `low`. */
  risk?: Risk;
  /** A person is asked, whatever the risk. */
  ask?: boolean;
  reversibility?: Reversibility;
  /** What the tool does in general. */
  description?: Text;
  /** A readable summary of the arguments. */
  argsSummary?: TextOf<Args>;
  /** Arguments that are not read to the person unless a text names them. The answer is still bound to them. */
  confidential?: readonly string[];
  expectedDurationMs?: number;
  /** How long the person has to answer. The default is five minutes. */
  answerTimeoutMs?: number;
  /** How long the function may take. Its signal is aborted then. */
  timeoutMs?: number;
  allowedReplies?: readonly Decision[];
  /** More information to show beside the question. */
  extraContext?: { readonly [key: string]: Json };
}

/** A tool that is announced and runs without a question. */
export const HARMLESS: Policy = Object.freeze({});
/** A tool about which nothing is known: the person is asked. */
export const ASK: Policy = Object.freeze({ ask: true });

/** How long a person has to answer, unless the policy says otherwise. */
export const DEFAULT_ANSWER_TIMEOUT_MS = 300_000;

/** The option names of a policy, and of the options that are passed together with it. */
const KNOWN_NAMES = new Set([
  ...["action", "consequence", "question", "success", "irreversible", "risk", "ask", "reversibility", "description", "argsSummary"],
  ...["confidential", "expectedDurationMs", "answerTimeoutMs", "timeoutMs", "allowedReplies", "extraContext"],
  ...["name", "session", "signal", "tool", "arguments", "toolCallId"],
]);

/** Throws if a policy has an unknown name or value, because a misspelt `irreversible` must not make a tool harmless. */
export function checkPolicy(policy: Policy): void {
  if (typeof policy !== "object" || policy === null) throw new InvalidInputError("a policy must be an object");
  const isOneOf = (value: unknown, ...known: unknown[]) => value === undefined || known.includes(value);
  for (const name of Object.keys(policy)) if (!KNOWN_NAMES.has(name)) throw new InvalidInputError(`a policy has no member ${JSON.stringify(name)}`);
  for (const name of ["irreversible", "ask"] as const) {
    if (!isOneOf(policy[name], true, false)) throw new InvalidInputError(`${name} must be true or false`);
  }
  if (!isOneOf(policy.risk, "low", "medium", "high")) throw new InvalidInputError("risk must be low, medium or high");
  if (!isOneOf(policy.reversibility, "reversible", "reversible_with_effort", "irreversible")) {
    throw new InvalidInputError("reversibility must be reversible, reversible_with_effort or irreversible");
  }
}

/** Returns whether a person must be asked. Throws if the policy is malformed. */
export function needsConsent(policy: Policy): boolean {
  checkPolicy(policy);
  return policy.irreversible === true || policy.ask === true || policy.risk === "high" || policy.reversibility === "irreversible";
}

export function isIrreversible(policy: Policy): boolean {
  return policy.irreversible === true || policy.reversibility === "irreversible";
}

export function effectiveRisk(policy: Policy): Risk {
  return policy.risk ?? (needsConsent(policy) ? "high" : "low");
}

/** A tool and its arguments as canonical text. Nothing can change it after the person was asked. */
export class BoundCall {
  readonly tool: string;
  /** The arguments as canonical JSON. */
  readonly text: string;

  constructor(tool: string, args: unknown) {
    if (typeof tool !== "string" || tool === "") throw new InvalidInputError("a tool needs a name; set `name`, or pass a named function");
    this.tool = tool;
    this.text = canonicalize(args);
    Object.freeze(this);
  }

  /** Returns a new copy of the arguments. */
  arguments(): unknown {
    return JSON.parse(this.text);
  }
}

/** Only this module has the key, so nobody else can create a consent. */
const CREATE = Symbol("create");

/** Creates a consent. Not exported from the package. */
export function createGranted(call: BoundCall, sessionId: string, announcement: Record<string, unknown>, receipt: Receipt): Granted {
  return new Granted(CREATE, call, sessionId, announcement, receipt);
}

/** Uses a consent. Throws if it was used before, or belongs to another session. Not exported from the package. */
export let spendGranted: (granted: Granted, sessionId: string) => { call: BoundCall; announcement: Record<string, unknown> };

/**
 * A person's yes to one exact call in one session. It can be used once. Only {@link Session.ask} creates one.
 */
export class Granted {
  readonly #call: BoundCall;
  readonly #sessionId: string;
  readonly #announcement: Record<string, unknown>;
  #isUsed = false;
  readonly receipt: Receipt;

  /** @internal */
  constructor(key: symbol, call: BoundCall, sessionId: string, announcement: Record<string, unknown>, receipt: Receipt) {
    if (key !== CREATE) throw new TypeError("only Session.ask creates a consent");
    this.#call = call;
    this.#sessionId = sessionId;
    this.#announcement = announcement;
    this.receipt = receipt;
  }

  get tool(): string {
    return this.#call.tool;
  }

  /** A new copy of the arguments that the person agreed to. */
  get arguments(): unknown {
    return this.#call.arguments();
  }

  get isUsed(): boolean {
    return this.#isUsed;
  }

  /** Throws if the consent does not cover exactly this call. The consent stays unused. */
  verifyCall(tool: string, args: unknown): void {
    if (tool !== this.#call.tool || canonicalize(args) !== this.#call.text) throw new ConsentMismatchError("other_action");
  }

  static {
    spendGranted = (granted, sessionId) => {
      if (granted.#sessionId !== sessionId) throw new ConsentMismatchError("other_session");
      if (granted.#isUsed) throw new ConsentMismatchError("already_used");
      granted.#isUsed = true;
      return { call: granted.#call, announcement: granted.#announcement };
    };
  }
}

/** Fills a template, or calls the function that makes the text. */
export function describe<Args>(text: TextOf<Args>, args: unknown): { text: Text; named: ReadonlySet<string> | undefined } {
  if (typeof text === "function") return { text: text(args as Args), named: undefined };
  const named = new Set<string>();
  const fill = (template: string): string => fillTemplate(template, args, named);
  const fillForms = (forms: string | { normal: string; terse?: string; detailed?: string }) =>
    typeof forms === "string"
      ? fill(forms)
      : {
          normal: fill(forms.normal),
          ...(forms.terse === undefined ? {} : { terse: fill(forms.terse) }),
          ...(forms.detailed === undefined ? {} : { detailed: fill(forms.detailed) }),
        };
  if (typeof text === "string") return { text: fill(text), named };
  const main = fillForms(text) as { normal: string };
  const translations = Object.fromEntries(Object.entries(text.in ?? {}).map(([tag, forms]) => [tag, fillForms(forms)]));
  return { text: { ...main, in: translations }, named };
}

/** Replaces `{name}` and `{name.member}`. `{{` and `}}` are braces. */
function fillTemplate(template: string, args: unknown, named: Set<string>): string {
  return template.replace(/\{\{|\}\}|\{([^{}]*)\}/g, (match, path: string | undefined) => {
    if (match === "{{") return "{";
    if (match === "}}") return "}";
    const names = (path ?? "").split(".");
    let value = args;
    for (const name of names) {
      if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) {
        throw new InvalidInputError(`the text names {${path}}, but there is no such argument`);
      }
      value = (value as Record<string, unknown>)[name];
    }
    if (names.length === 1) named.add(names[0] as string);
    return typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  });
}
