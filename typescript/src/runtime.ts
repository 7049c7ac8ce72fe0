/** Differences between Node, Deno, Bun and browsers. No Node module is imported statically, so bundlers for browsers work. */

interface ProcessLike {
  readonly platform: string;
  readonly env: Record<string, string | undefined>;
  readonly versions: Record<string, string | undefined>;
  getBuiltinModule?(name: string): unknown;
}

/** Returns `process`, unless this is a browser. */
export function processInfo(): ProcessLike | undefined {
  const found = (globalThis as { process?: Partial<ProcessLike> }).process;
  return found?.versions?.["node"] === undefined ? undefined : (found as ProcessLike);
}

/** Returns an environment variable. Deno may deny access; then there is none. */
export function environment(name: string): string | undefined {
  try {
    return processInfo()?.env[name];
  } catch {
    return undefined;
  }
}

/** Loads a module of Node. */
export async function builtin<T>(name: string): Promise<T> {
  const loaded = builtinSync<T>(name);
  if (loaded !== undefined) return loaded;
  // The name is not a literal, so that bundlers leave it alone.
  return (await import(/* @vite-ignore */ /* webpackIgnore: true */ name)) as T;
}

/** Loads a module of Node, if this runtime can do so synchronously: Node 20.16 and later, Deno and Bun. */
export function builtinSync<T>(name: string): T | undefined {
  return processInfo()?.getBuiltinModule?.(name) as T | undefined;
}

/** Lets the process exit although this timer is running. Browsers have no such timers. */
export function unref(timer: unknown): void {
  (timer as { unref?: () => void }).unref?.();
}

/** Rejects when the signal is aborted. Otherwise it settles like `promise`. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  if (signal.aborted) {
    promise.catch(() => {});
    throw signal.reason;
  }
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    if (onAbort) signal.removeEventListener("abort", onAbort);
    promise.catch(() => {});
  }
}

/** Waits. The timer does not keep the process alive beyond other work. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
