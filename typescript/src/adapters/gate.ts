/** Shared code of all adapters: which tools need consent, and how a refusal reaches the model. */

import { ASK, checkPolicy, type Policy } from "../consent.js";
import { refusalForModel } from "../errors.js";
import type { Session } from "../session.js";
import { callTool } from "../tool.js";

/** The policies of tools, by name. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Policies = { readonly [tool: string]: Policy | Policy<any> };

export interface GateOptions {
  /** The policy of tools without one. The default is {@link ASK}: the person is asked. `"refuse"` never runs them. */
  undeclared?: Policy | "refuse";
}

/** The outcome of a call: it ran, or it did not run and the text tells the model why. */
export type GatedResult<R> = { readonly ran: true; readonly value: R } | { readonly ran: false; readonly refusal: string };

export function policyFor(name: string, policies: Policies, options: GateOptions): Policy | "refuse" {
  const policy = Object.hasOwn(policies, name) ? (policies[name] as Policy) : (options.undeclared ?? ASK);
  if (policy !== "refuse") checkPolicy(policy);
  return policy;
}

/**
 * Runs a tool behind the gate. Never throws because of the gate itself, because some frameworks then run the other calls of the same
 * step, or run the tool anyway. An error of the tool itself is thrown unchanged.
 */
export async function runGated<R>(
  session: Session,
  name: string,
  policy: Policy | "refuse",
  args: unknown,
  call: { signal?: AbortSignal | undefined; toolCallId?: string | undefined },
  run: (args: unknown, signal: AbortSignal) => R | Promise<R>,
): Promise<GatedResult<R>> {
  if (policy === "refuse") return { ran: false, refusal: refusalForModel(`${name} is not an allowed tool`) };
  let isStarted = false;
  try {
    const value = await callTool(
      session,
      name,
      policy,
      args,
      (permittedInput, context) => {
        isStarted = true;
        return run(permittedInput, context.signal);
      },
      call,
    );
    return { ran: true, value };
  } catch (error) {
    if (isStarted) throw error;
    return { ran: false, refusal: refusalForModel(error) };
  }
}

/** Returns a copy of an object with other members. Getters, methods and the prototype stay. */
export function copyWith<T extends object>(object: T, members: Record<string, unknown>): T {
  const copy = Object.create(Object.getPrototypeOf(object) as object | null, Object.getOwnPropertyDescriptors(object)) as T;
  for (const [name, value] of Object.entries(members)) {
    Object.defineProperty(copy, name, { value, writable: true, enumerable: true, configurable: true });
  }
  return copy;
}
