// URIs as a person can hear them, and which of them may become links.

import { sanitize } from "./wording.js";

/** Maximum length of the spoken part of a URI, in characters. */
const MAX_PLACE_CHARS = 80;

/**
 * Returns a part for a URI: what a person can listen to (the host, the number or address of `tel:` and `mailto:`, or else the last part of the
 * path), with the web address if it is one.
 */
export function placeOf(uri) {
  const [, scheme, rest] = /^([A-Za-z][A-Za-z0-9+.-]*):([^?#]*)/.exec(typeof uri === "string" ? uri : "") ?? [];
  if (scheme === undefined) return undefined;
  const lastSegment = (path) => path.replace(/\/+$/, "").split(/[/:]/).at(-1);
  const [, authority, path] = /^\/\/([^/]*)(.*)$/.exec(rest) ?? [];
  let place;
  // What precedes an @ could look like another host.
  if (authority) place = authority.split("@").at(-1).replace(/:\d*$/, "");
  else if (["tel", "mailto", "sip"].includes(scheme)) place = rest;
  else place = lastSegment(path ?? rest);
  const text = [...sanitize(place)].slice(0, MAX_PLACE_CHARS).join("");
  const href = parseWebAddress(uri)?.href;
  return text === "" ? undefined : { text, lang: "", dir: "auto", ...(href === undefined ? {} : { href }) };
}

/** Returns the parsed address if it is an `http` or `https` address without a user name or password, which could look like a host. */
export function parseWebAddress(href) {
  if (typeof href !== "string" || !URL.canParse(href)) return undefined;
  const url = new URL(href);
  return ["http:", "https:"].includes(url.protocol) && url.username === "" && url.password === "" ? url : undefined;
}
