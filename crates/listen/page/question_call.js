// The call that a question is about, as the hub reports it, in a form that a person can hear.

import { asObject, sanitize } from "./wording.js";

/** Maximum length of a call that is announced with the question, in characters. A longer one is only shown in the dialog. */
export const MAX_SHORT_CALL_CHARS = 120;

/** A number with its digits as the agent wrote them. */
class NumberText {
  constructor(digits) {
    this.digits = digits;
  }
}

/** Parses an event. In the arguments of a call, numbers keep their digits if the browser reports them. */
export function parseEvent(text) {
  const event = JSON.parse(text);
  const sayso = asObject(asObject(event?.extensions).sayso);
  if (sayso.arguments !== undefined) {
    const keepDigits = (name, value, context) => (typeof value === "number" && context?.source ? new NumberText(context.source) : value);
    sayso.arguments = JSON.parse(text, keepDigits).extensions.sayso.arguments;
  }
  return event;
}

/** Returns the call that a question is about as `{ text, isBound, hasArguments }`, or `undefined` if the hub reports none. */
export function readCall(event) {
  const { tool, arguments: bound, action_digest: digest } = asObject(asObject(event.extensions).sayso);
  if (typeof tool !== "string") return undefined;
  const details = bound === undefined ? "" : describeItems(bound);
  const name = describeText(tool.replaceAll("_", " "));
  return { text: details === "" ? name : `${name}, ${details}`, isBound: typeof digest === "string", hasArguments: details !== "" };
}

/** Describes the content of a value: the members of an object, the items of a list, or the value itself. */
function describeItems(value) {
  if (Array.isArray(value)) return value.map(describeValue).join(", ");
  if (value === null || typeof value !== "object" || value instanceof NumberText) return describeValue(value);
  return Object.entries(value).map(([name, member]) => `${describeName(name)} ${describeValue(member)}`).join(", ");
}

/** Describes one value. An object or a list is put in parentheses. */
function describeValue(value) {
  if (typeof value === "string") return describeText(value);
  if (value instanceof NumberText) return value.digits;
  return value === null || typeof value !== "object" ? String(value) : `(${describeItems(value)})`;
}

/** Quotes a text that contains a separator, so that it cannot look like several members. */
function describeText(text) {
  const line = sanitize(text).replace(/\s+/g, " ").trim();
  return line === "" || /[,;()"\uff0c]/.test(line) ? quote(line) : line;
}

/** Quotes a name that could be mistaken for a name with a value. */
function describeName(name) {
  const line = sanitize(name);
  return /^[\p{L}\p{M}\p{N}_.-]+$/u.test(line) ? line.replaceAll("_", " ") : quote(line);
}

function quote(text) {
  return `"${text.replaceAll('"', "'")}"`;
}
