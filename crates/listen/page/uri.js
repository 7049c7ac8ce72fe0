// The speakable form of URIs, and the check whether one may become a link.

import { sanitize } from "./wording.js";

/** Maximum length of the spoken part of a URI, in characters. */
const MAX_SPOKEN_CHARS = 80;

/**
 * Returns the speakable form of a URI: the host, the number or address of `tel:`, `sip:` and `mailto:`, or otherwise the last path segment.
 * Adds `href` if it is a web address.
 */
export function describeUri(uri) {
  const [, scheme, rest] = /^([A-Za-z][A-Za-z0-9+.-]*):([^?#]*)/.exec(typeof uri === "string" ? uri : "") ?? [];
  if (scheme === undefined) return undefined;
  const lastSegment = (path) => path.replace(/\/+$/, "").split(/[/:]/).at(-1);
  const [, authority, path] = /^\/\/([^/]*)(.*)$/.exec(rest) ?? [];
  let spokenPart;
  // The text before an @ could look like another host.
  if (authority) spokenPart = authority.split("@").at(-1).replace(/:\d*$/, "");
  else if (["tel", "mailto", "sip"].includes(scheme)) spokenPart = rest;
  else spokenPart = lastSegment(path ?? rest);
  const text = [...sanitize(spokenPart)].slice(0, MAX_SPOKEN_CHARS).join("");
  const href = parseWebAddress(uri)?.href;
  return text === "" ? undefined : { text, lang: "", dir: "auto", ...(href === undefined ? {} : { href }) };
}

/** Returns the parsed address if it is an `http` or `https` address without a user name or password, which could look like a host. */
export function parseWebAddress(href) {
  if (typeof href !== "string" || !URL.canParse(href)) return undefined;
  const url = new URL(href);
  return ["http:", "https:"].includes(url.protocol) && url.username === "" && url.password === "" ? url : undefined;
}
