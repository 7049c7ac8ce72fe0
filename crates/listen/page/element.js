// Creates elements. Text becomes a text node, never markup.

import { phrases } from "./phrases.js";

/** Creates an element with properties, attributes (names with a hyphen, and `role`) and children. */
export function createElement(name, properties = {}, children = []) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role") element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children);
  return element;
}

/** Creates a badge: a few words of the page in a coloured shape. It has a direction, so that its sign stays in front of its words. */
export function createBadge(text, kind, lang = phrases.lang) {
  return createElement("span", { className: `badge ${kind}`, lang, dir: phrases.dir }, [text]);
}

/** Creates a `time` element with the time of day. */
export function createTime(at, hasSeconds = true) {
  const date = new Date(at);
  const text = date.toLocaleTimeString("en-GB", hasSeconds ? {} : { hour: "2-digit", minute: "2-digit" });
  return createElement("time", { dateTime: date.toISOString() }, [text]);
}
