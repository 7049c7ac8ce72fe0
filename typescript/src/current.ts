/** The current session of a chain of asynchronous calls. */

import { builtin, builtinSync, processInfo } from "./runtime.js";
import type { Session } from "./session.js";

interface Storage {
  getStore(): Session | undefined;
  run<T>(session: Session, work: () => T): T;
}

type Module = { AsyncLocalStorage: new () => Storage };

let storage: Storage | undefined;

function load(module: Module | undefined): Storage | undefined {
  if (module !== undefined) storage ??= new module.AsyncLocalStorage();
  return storage;
}

/** Returns the session of the innermost {@link within}, if there is one. Browsers have none: pass the session instead. */
export function currentSession(): Session | undefined {
  return storage?.getStore();
}

/** Calls a function with this session as the current one. Tools that the function calls use it. */
export async function within<T>(session: Session, work: () => T | Promise<T>): Promise<T> {
  if (storage === undefined && processInfo() !== undefined) {
    load(builtinSync<Module>("node:async_hooks") ?? (await builtin<Module>("node:async_hooks")));
  }
  return storage === undefined ? work() : storage.run(session, work);
}
