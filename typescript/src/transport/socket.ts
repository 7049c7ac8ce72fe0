/** A WebSocket with text messages, from whatever the runtime offers. */

import type { HubAddress } from "../location.js";
import { HubUnreachableError } from "../errors.js";
import { processInfo } from "../runtime.js";
import { openNodeSocket } from "./node-socket.js";

/** An open WebSocket. Handlers are set before the next message can arrive. */
export interface TextSocket {
  onMessage: (text: string) => void;
  /** Called once, when the connection is lost or closed by the hub. */
  onClose: () => void;
  send(text: string): void;
  close(): void;
}

export const AGENT_PATH = "/agent/v1/ws";
export const AGENT_PROTOCOL = "sayso.agent.v1";

/** Opens a WebSocket to the hub. Rejects if this runtime cannot open one with these settings. */
export async function openSocket(address: HubAddress, token: string | undefined, timeoutMs: number): Promise<TextSocket> {
  const isBrowser = processInfo() === undefined;
  // Browsers cannot send a token with a WebSocket, and the hub refuses tokens in URLs.
  if (isBrowser && token !== undefined) throw new HubUnreachableError("browsers cannot send a token over a WebSocket");
  if (address.kind === "tcp" && typeof globalThis.WebSocket === "function") return openGlobalSocket(address.url, token, timeoutMs);
  if (isBrowser) throw new HubUnreachableError("this runtime has no WebSocket");
  return openNodeSocket(address, token, timeoutMs);
}

type HeaderOptions = { headers: Record<string, string>; protocols: string[] };

function openGlobalSocket(hub: URL, token: string | undefined, timeoutMs: number): Promise<TextSocket> {
  const url = new URL(AGENT_PATH, hub);
  url.protocol = hub.protocol === "https:" ? "wss:" : "ws:";
  const withHeaders: HeaderOptions | undefined =
    token === undefined ? undefined : { headers: { Authorization: `Bearer ${token}` }, protocols: [AGENT_PROTOCOL] };
  return new Promise((resolve, reject) => {
    // Node, Deno and Bun take headers in the second argument.
    const socket = new WebSocket(url, (withHeaders as unknown as string[] | undefined) ?? [AGENT_PROTOCOL]);
    let isOpen = false;
    const timer = setTimeout(() => {
      fail("it did not answer in time");
      socket.close();
    }, timeoutMs);
    const fail = (reason: string) => {
      clearTimeout(timer);
      if (!isOpen) reject(new HubUnreachableError(reason));
    };
    const opened: TextSocket = {
      onMessage: () => {},
      onClose: () => {},
      send: (text) => socket.send(text),
      close: () => socket.close(),
    };
    socket.addEventListener("open", () => {
      clearTimeout(timer);
      isOpen = true;
      resolve(opened);
    });
    socket.addEventListener("error", () => fail("the WebSocket was refused"));
    socket.addEventListener("close", () => (isOpen ? opened.onClose() : fail("the WebSocket was refused")));
    socket.addEventListener("message", (event: MessageEvent) => {
      if (typeof event.data === "string") opened.onMessage(event.data);
    });
  });
}
