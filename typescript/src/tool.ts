/** Wrapping a function: the gate around an irreversible call. */

import { checkPolicy, needsConsent, type Policy } from "./consent.js";
import { currentSession } from "./current.js";
import { NoSessionError } from "./errors.js";
import type { Session, SignalOption, ToolContext } from "./session.js";

/** A function that an agent calls. It gets a copy of its arguments that nobody else holds. */
export type ToolFunction<Args, R> = (args: Args, context: ToolContext) => R | Promise<R>;

export interface ToolOptions<Args> extends Policy<Args> {
  /** The tool's name. The default is the function's name. */
  name?: string;
  /** The session. The default is the current one. */
  session?: Session;
}

export interface ToolCallOptions extends SignalOption {
  session?: Session | undefined;
  /** The id that the model gave the call. */
  toolCallId?: string | undefined;
}

/** A wrapped function. */
export interface Tool<Args, R> {
  (args: Args, options?: ToolCallOptions): Promise<Awaited<R>>;
  readonly toolName: string;
  readonly policy: Policy<Args>;
}

/**
 * Wraps a function. Before it runs, the person is asked if the policy says so, and the call is announced; afterwards its outcome is
 * reported.
 *
 * The function runs only after a yes to exactly these arguments. If there is no hub or no answer, if an error occurs, or if the signal
 * is aborted, it does not run, and a typed error says why.
 */
export function tool<Args, R>(options: ToolOptions<Args>, run: ToolFunction<Args, R>): Tool<Args, R> {
  return bindTool(options, run);
}

/** @internal */
export function bindTool<Args, R>(options: ToolOptions<Args>, run: ToolFunction<Args, R>): Tool<Args, R> {
  const { name, session: ownSession, ...policy } = options;
  checkPolicy(policy as Policy);
  const toolName = name ?? run.name;
  const wrapped = async (args: Args, { session = ownSession, signal, toolCallId }: ToolCallOptions = {}): Promise<Awaited<R>> => {
    const used = session ?? currentSession();
    if (used === undefined) throw new NoSessionError();
    return (await callTool(used, toolName, policy as Policy, args, run as ToolFunction<unknown, R>, { signal, toolCallId })) as Awaited<R>;
  };
  return Object.assign(wrapped, { toolName, policy: Object.freeze(policy) as Policy<Args> });
}

/** Asks if needed, announces, runs and reports. */
export async function callTool<R>(
  session: Session,
  name: string,
  policy: Policy,
  args: unknown,
  run: ToolFunction<unknown, R>,
  { signal, toolCallId }: { signal?: AbortSignal | undefined; toolCallId?: string | undefined },
): Promise<R> {
  const options = {
    timeoutMs: policy.timeoutMs,
    success: policy.success,
    toolCallId,
    ...(signal === undefined ? {} : { signal }),
  };
  if (!needsConsent(policy)) {
    return session.run(name, (context) => run(args, context), { ...policy, ...options, arguments: args } as Parameters<Session["run"]>[2]);
  }
  const granted = await session.ask({
    ...(policy as Policy<unknown>),
    tool: name,
    arguments: args,
    ...(toolCallId === undefined ? {} : { toolCallId }),
    ...(signal === undefined ? {} : { signal }),
  });
  return session.call(granted, run as (args: never, context: ToolContext) => R, options);
}
