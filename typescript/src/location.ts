/** Where a program finds the hub of the person it works for. */

import { builtin, environment, processInfo } from "./runtime.js";
import { AccessDeniedError, InvalidInputError } from "./errors.js";

/** The address of a hub: an http(s) address, or the path of a Unix socket. */
export type HubAddress = { readonly kind: "tcp"; readonly url: URL } | { readonly kind: "unix"; readonly path: string; readonly isPersonal: boolean };

/** Returns the given address, else the one in `SAYSO_URL`, else the socket of the user's personal hub. Does not connect. */
export async function findHub(url: string | undefined): Promise<HubAddress> {
  const given = url ?? (environment("SAYSO_URL") || undefined);
  if (given !== undefined) return parseAddress(given);
  const info = processInfo();
  if (info === undefined) throw new InvalidInputError("there is no hub address; pass `url`");
  const path = await defaultSocketPath(info.platform);
  return { kind: "unix", path, isPersonal: true };
}

/** Parses `http://HOST:PORT`, `https://HOST:PORT`, `HOST:PORT` of this machine or `unix:PATH`. */
export function parseAddress(text: string): HubAddress {
  if (text.startsWith("unix:")) {
    const path = text.slice("unix:".length);
    if (path === "") throw invalid(text, "the path is missing");
    return { kind: "unix", path, isPersonal: false };
  }
  let url: URL;
  try {
    url = new URL(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`);
  } catch {
    throw invalid(text, "it is not a URL");
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") throw invalid(text, "it must start with http:, https: or unix:");
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw invalid(text, "it must not contain a user, a query or a fragment; pass the token as `token`");
  }
  if (url.pathname !== "/") throw invalid(text, "it must not contain a path");
  return { kind: "tcp", url };
}

/**
 * Checks that the hub's socket belongs to this user, and that nobody else can replace it.
 *
 * Otherwise another user of the machine could put a program of their own there, and answer the questions. No runtime of JavaScript tells
 * which user serves a connected socket, so only its file and folder are checked.
 */
export async function checkSocketOwner(path: string): Promise<void> {
  const fs = await builtin<typeof import("node:fs/promises")>("node:fs/promises");
  const nodePath = await builtin<typeof import("node:path")>("node:path");
  const uid = await currentUid();
  const socket = await fs.lstat(path);
  if (!socket.isSocket()) throw new AccessDeniedError(`${path} is not a socket`);
  if (uid !== undefined && socket.uid !== uid) throw new AccessDeniedError(`${path} belongs to another user, so it is not your hub`);
  const folder = await fs.stat(nodePath.dirname(path));
  const isSticky = (folder.mode & 0o1000) !== 0;
  if (uid !== undefined && ((folder.uid !== uid && folder.uid !== 0) || ((folder.mode & 0o022) !== 0 && !isSticky))) {
    throw new AccessDeniedError(`other users can replace files in the folder of ${path}, so it is not used`);
  }
}

/** Returns where programs of this user look for the hub's socket (AAEP §B.4.1). */
async function defaultSocketPath(platform: string): Promise<string> {
  const path = await builtin<typeof import("node:path")>("node:path");
  const os = await builtin<typeof import("node:os")>("node:os");
  const home = environment("HOME");
  const runtime = environment("XDG_RUNTIME_DIR");
  let folder: string;
  if (platform === "darwin" && home) folder = path.join(home, "Library/Application Support/AAEP");
  else if (platform !== "darwin" && runtime) folder = path.join(runtime, "aaep");
  else folder = path.join(os.tmpdir(), `aaep-${(await currentUid()) ?? 0}`);
  return path.join(folder, "sayso-hub.sock");
}

async function currentUid(): Promise<number | undefined> {
  const os = await builtin<typeof import("node:os")>("node:os");
  const { uid } = os.userInfo();
  return uid >= 0 ? uid : undefined;
}

function invalid(text: string, reason: string): InvalidInputError {
  return new InvalidInputError(`${JSON.stringify(text)} is not the address of a hub: ${reason}`);
}
