/**
 * Canonical JSON (RFC 8785): one text for each value, so that equal values have equal texts and equal digests.
 *
 * A value without a canonical form is an error and is never repaired: a number that JSON lacks or that a double cannot hold, an integer
 * beyond 2^53, a lone surrogate, a cycle, and anything that is not plain data (a class instance, a function, a symbol). Members that
 * are `undefined` are left out, as `JSON.stringify` does.
 */

import { InvalidInputError } from "./errors.js";

/** A value that JSON can hold. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Nesting beyond this depth is refused. The hub reads at most 64 levels, which includes the request around the arguments. */
export const MAX_JSON_DEPTH = 60;

/** Returns the canonical text of a value. Each property is read exactly once. */
export function canonicalize(value: unknown): string {
  return write(value, "arguments", 0, new Set());
}

/** Returns the digest to which the hub binds an answer: SHA-256 over `{"arguments":…,"tool":…}`. */
export async function actionDigest(tool: string, canonicalArguments: string): Promise<string> {
  const text = `{"arguments":${canonicalArguments},"tool":${canonicalize(tool)}}`;
  const subtle = globalThis.crypto?.subtle;
  if (subtle === undefined) {
    throw new InvalidInputError("this page has no Web Crypto, so answers cannot be checked; serve it over https or from localhost");
  }
  const hash = new Uint8Array(await subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return `sha256:${Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

function write(value: unknown, path: string, depth: number, open: Set<object>): string {
  switch (typeof value) {
    case "string":
      if (!value.isWellFormed()) throw new InvalidInputError(`${path} contains a lone surrogate`);
      return JSON.stringify(value);
    case "boolean":
      return value ? "true" : "false";
    case "number":
      return writeNumber(value, path);
    case "object":
      return value === null ? "null" : writeObject(value, path, depth, open);
    case "bigint":
      throw new InvalidInputError(`${path} is a bigint, which JSON cannot hold; pass it as a string`);
    default:
      throw new InvalidInputError(`${path} is ${typeof value === "undefined" ? "undefined" : `a ${typeof value}`}; a person's answer can be bound only to JSON`);
  }
}

function writeNumber(value: number, path: string): string {
  if (!Number.isFinite(value)) throw new InvalidInputError(`${path} is ${value}, which JSON cannot hold`);
  const size = Math.abs(value);
  if (size > Number.MAX_SAFE_INTEGER && size < 1e21) {
    throw new InvalidInputError(`${path} is an integer beyond 2^53; pass it as a string`);
  }
  return value === 0 ? "0" : String(value);
}

function writeObject(value: object, path: string, depth: number, open: Set<object>): string {
  if (depth >= MAX_JSON_DEPTH) throw new InvalidInputError(`${path} is nested more than ${MAX_JSON_DEPTH} levels deep`);
  if (open.has(value)) throw new InvalidInputError(`${path} contains itself`);
  open.add(value);
  let text: string;
  if (Array.isArray(value)) {
    const items: string[] = [];
    for (let at = 0; at < value.length; at += 1) items.push(write(value[at], `${path}[${at}]`, depth + 1, open));
    text = `[${items.join(",")}]`;
  } else {
    if (!isPlainObject(value)) {
      throw new InvalidInputError(`${path} is a ${value.constructor?.name ?? "class instance"}; a person's answer can be bound only to plain data`);
    }
    const members: [string, string][] = [];
    for (const key of Object.keys(value)) {
      if (!key.isWellFormed()) throw new InvalidInputError(`a key in ${path} contains a lone surrogate`);
      const member = (value as Record<string, unknown>)[key];
      if (member !== undefined) members.push([key, write(member, `${path}.${key}`, depth + 1, open)]);
    }
    // JavaScript compares strings by UTF-16 code units, which is the order of RFC 8785.
    members.sort(([a], [b]) => (a < b ? -1 : 1));
    text = `{${members.map(([key, member]) => `${JSON.stringify(key)}:${member}`).join(",")}}`;
  }
  open.delete(value);
  return text;
}

function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  // An object of another realm (a worker, an iframe, `node:vm`) has that realm's `Object.prototype`, which has no prototype itself.
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  return isPlain && Object.prototype.toString.call(value) === "[object Object]" && typeof (value as { toJSON?: unknown }).toJSON !== "function";
}
