/** Chooses the transport: one WebSocket where possible, else HTTP. */

import { AccessDeniedError, HubUnreachableError, InvalidInputError } from "../errors.js";
import { checkSocketOwner, type HubAddress } from "../location.js";
import { sleep } from "../runtime.js";
import { httpClient, HttpTransport, unreachable } from "./http.js";
import { openSocket, type TextSocket } from "./socket.js";
import { backoffMs, type Transport } from "./transport.js";
import { WebSocketTransport } from "./websocket.js";

export interface ConnectSettings {
  readonly address: HubAddress;
  readonly token: string | undefined;
  /** `auto` uses a WebSocket, and HTTP if the hub answers over HTTP but not over a WebSocket. */
  readonly transport: "auto" | "websocket" | "http";
  readonly connectTimeoutMs: number;
  readonly fetch: typeof fetch;
}

/** How long the upgrade to WebSocket may take before HTTP is tried. Some proxies never answer an upgrade. */
const UPGRADE_MS = 5_000;

/** Connects to the hub. Retries until the connect timeout is over. */
export async function connect(settings: ConnectSettings): Promise<Transport> {
  const { address, token, transport, connectTimeoutMs } = settings;
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) throw new InvalidInputError("the token contains characters that a token cannot have");
  const http = await httpClient(address, token, settings.fetch);
  const deadline = Date.now() + connectTimeoutMs;
  const open = async (timeoutMs: number): Promise<TextSocket> => {
    if (address.kind === "unix") await checkOwner(address);
    return openSocket(address, token, timeoutMs);
  };
  const reopen = () => open(connectTimeoutMs / 2);
  for (let attempt = 0; ; attempt += 1) {
    let failure: unknown;
    if (transport !== "http") {
      try {
        const limit = transport === "auto" ? Math.min(UPGRADE_MS, connectTimeoutMs / 2) : Math.max(deadline - Date.now(), connectTimeoutMs / 2);
        return new WebSocketTransport(reopen, connectTimeoutMs, await open(limit));
      } catch (error) {
        if (error instanceof AccessDeniedError || error instanceof InvalidInputError) throw error;
        failure = error;
      }
    }
    if (transport !== "websocket") {
      try {
        if (address.kind === "unix") await checkOwner(address);
        const { status } = await http({ method: "GET", path: "/healthz" }, AbortSignal.timeout(Math.max(1, deadline - Date.now())));
        if (status !== 200) throw new HubUnreachableError(`the server at this address answers with status ${status}`);
        return new HttpTransport(http, connectTimeoutMs);
      } catch (error) {
        if (error instanceof AccessDeniedError) throw error;
        failure = error;
      }
    }
    if (Date.now() + backoffMs(attempt) >= deadline) throw failure instanceof HubUnreachableError ? failure : unreachable(failure);
    await sleep(backoffMs(attempt));
  }
}

async function checkOwner({ path, isPersonal }: HubAddress & { kind: "unix" }): Promise<void> {
  try {
    await checkSocketOwner(path);
  } catch (error) {
    if (error instanceof AccessDeniedError) throw error;
    const message = isPersonal ? `there is no personal hub at ${path}; start \`sayso listen\`, or set SAYSO_URL` : `there is no hub at ${path}`;
    throw new HubUnreachableError(message, { cause: error });
  }
}
