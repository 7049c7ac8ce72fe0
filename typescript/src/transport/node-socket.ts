/**
 * A WebSocket client (RFC 6455) over `node:http`, for Unix sockets and for Node 20, which has no global WebSocket.
 *
 * It sends text messages and pongs only, and offers no extensions.
 */

import type { ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import type { Duplex } from "node:stream";

import type { HubAddress } from "../location.js";
import { AccessDeniedError, HubUnreachableError } from "../errors.js";
import { builtin } from "../runtime.js";
import { AGENT_PATH, AGENT_PROTOCOL, type TextSocket } from "./socket.js";

/** The largest message that is accepted from the hub. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

enum Opcode {
  Continuation = 0,
  Text = 1,
  Binary = 2,
  Close = 8,
  Ping = 9,
  Pong = 10,
}

export async function openNodeSocket(address: HubAddress, token: string | undefined, timeoutMs: number): Promise<TextSocket> {
  const isTls = address.kind === "tcp" && address.url.protocol === "https:";
  const http = await builtin<{ request(options: RequestOptions): ClientRequest }>(isTls ? "node:https" : "node:http");
  const crypto = await builtin<typeof import("node:crypto")>("node:crypto");
  const key = crypto.randomBytes(16).toString("base64");
  const expected = crypto.createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  const headers: Record<string, string> = {
    Connection: "Upgrade",
    Upgrade: "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": key,
    "Sec-WebSocket-Protocol": AGENT_PROTOCOL,
  };
  if (token !== undefined) headers["Authorization"] = `Bearer ${token}`;
  const target: RequestOptions =
    address.kind === "unix"
      ? { socketPath: address.path, host: "localhost" }
      : { host: address.url.hostname.replace(/^\[|\]$/g, ""), port: address.url.port || (isTls ? 443 : 80) };
  return new Promise((resolve, reject) => {
    const request = http.request({ ...target, path: AGENT_PATH, headers, agent: false, timeout: timeoutMs });
    const fail = (error: Error) => {
      reject(error);
      request.destroy();
    };
    request.on("timeout", () => fail(new HubUnreachableError("it did not answer in time")));
    request.on("error", (error: Error) => fail(new HubUnreachableError(error.message, { cause: error })));
    request.on("response", (response: IncomingMessage) => {
      response.resume();
      const isDenied = response.statusCode === 401 || response.statusCode === 403;
      fail(isDenied ? new AccessDeniedError("the token is missing or does not allow this") : new HubUnreachableError(`the WebSocket was refused with status ${response.statusCode}`));
    });
    request.on("upgrade", (response: IncomingMessage, socket: Duplex, head: Uint8Array) => {
      if (response.headers["sec-websocket-accept"] !== expected) {
        socket.destroy();
        return fail(new HubUnreachableError("the server is not a WebSocket server"));
      }
      (socket as Duplex & { setTimeout?(ms: number): void }).setTimeout?.(0);
      resolve(new NodeSocket(socket, head, (size) => crypto.randomBytes(size)));
    });
    request.end();
  });
}

class NodeSocket implements TextSocket {
  onMessage: (text: string) => void = () => {};
  onClose: () => void = () => {};
  private buffer: Uint8Array;
  private fragments: Uint8Array[] = [];
  private isClosed = false;

  constructor(
    private readonly socket: Duplex,
    head: Uint8Array,
    private readonly random: (size: number) => Uint8Array,
  ) {
    this.buffer = head;
    socket.on("data", (data: Uint8Array) => this.receive(data));
    socket.on("error", () => this.lose());
    socket.on("close", () => this.lose());
    socket.on("end", () => this.lose());
    // The caller sets its handlers first.
    if (head.length > 0) queueMicrotask(() => this.receive(new Uint8Array()));
  }

  send(text: string): void {
    this.write(Opcode.Text, new TextEncoder().encode(text));
  }

  close(): void {
    if (this.isClosed) return;
    this.onClose = () => {};
    this.write(Opcode.Close, new Uint8Array([0x03, 0xe8]));
    this.socket.end();
    this.isClosed = true;
  }

  private lose(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.socket.destroy();
    this.onClose();
  }

  private write(opcode: Opcode, payload: Uint8Array): void {
    if (this.isClosed) return;
    const size = payload.length;
    const lengthBytes = size < 126 ? 0 : size < 65536 ? 2 : 8;
    const frame = new Uint8Array(6 + lengthBytes + size);
    const view = new DataView(frame.buffer);
    frame[0] = 0x80 | opcode;
    frame[1] = 0x80 | (lengthBytes === 0 ? size : lengthBytes === 2 ? 126 : 127);
    if (lengthBytes === 2) view.setUint16(2, size);
    if (lengthBytes === 8) view.setBigUint64(2, BigInt(size));
    const mask = this.random(4);
    const start = 6 + lengthBytes;
    frame.set(mask, start - 4);
    for (let at = 0; at < size; at += 1) frame[start + at] = payload[at]! ^ mask[at & 3]!;
    this.socket.write(frame);
  }

  private receive(data: Uint8Array): void {
    this.buffer = this.buffer.length === 0 ? data : concat([this.buffer, data]);
    while (!this.isClosed) {
      const frame = readFrame(this.buffer);
      if (frame === undefined) return;
      // The hub sends no masked or larger frames. Anything else is not a WebSocket server.
      if (frame === "invalid") return this.lose();
      this.buffer = this.buffer.subarray(frame.end);
      this.handle(frame);
    }
  }

  private handle(frame: Frame): void {
    switch (frame.opcode) {
      case Opcode.Ping:
        return this.write(Opcode.Pong, frame.payload);
      case Opcode.Pong:
        return;
      case Opcode.Text:
      case Opcode.Continuation: {
        this.fragments.push(frame.payload);
        if (!frame.isFinal) {
          const size = this.fragments.reduce((sum, part) => sum + part.length, 0);
          return size > MAX_MESSAGE_BYTES ? this.lose() : undefined;
        }
        const message = this.fragments.length === 1 ? frame.payload : concat(this.fragments);
        this.fragments = [];
        return this.onMessage(new TextDecoder().decode(message));
      }
      default:
        return this.lose();
    }
  }
}

interface Frame {
  readonly opcode: number;
  readonly isFinal: boolean;
  readonly payload: Uint8Array;
  readonly end: number;
}

function readFrame(buffer: Uint8Array): Frame | "invalid" | undefined {
  if (buffer.length < 2) return undefined;
  const view = new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
  const first = view.getUint8(0);
  const second = view.getUint8(1);
  if ((first & 0x70) !== 0 || (second & 0x80) !== 0) return "invalid";
  let size = second & 0x7f;
  let start = 2;
  if (size === 126) {
    if (buffer.length < 4) return undefined;
    size = view.getUint16(2);
    start = 4;
  } else if (size === 127) {
    if (buffer.length < 10) return undefined;
    const large = view.getBigUint64(2);
    if (large > BigInt(MAX_MESSAGE_BYTES)) return "invalid";
    size = Number(large);
    start = 10;
  }
  if (buffer.length < start + size) return undefined;
  return { opcode: first & 0x0f, isFinal: (first & 0x80) !== 0, payload: buffer.subarray(start, start + size), end: start + size };
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
