import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { createMarkdown, isMarkdown } from "../markdown.js";
import { parseWebAddress } from "../uri.js";

/** A DOM element that has only a name, attributes and children. */
class FakeElement {
  children = [];
  attributes = {};
  constructor(name) {
    this.name = name;
  }
  setAttribute(name, value) {
    this.attributes[name] = value;
  }
  append(...children) {
    this.children.push(...children);
  }
  get textContent() {
    return this.children.map((child) => (typeof child === "string" ? child : child.textContent)).join("");
  }
}

beforeEach(() => (globalThis.document = { createElement: (name) => new FakeElement(name) }));
afterEach(() => delete globalThis.document);

const all = (elements) => elements.filter((one) => typeof one !== "string").flatMap((one) => [one, ...all(one.children)]);
const paragraph = (...children) => ({ kind: "paragraph", children });

test("only labelled outputs are Markdown", () => {
  assert.deepEqual(["text/markdown", "Text/X-Markdown", "text/plain", undefined, 7].map(isMarkdown), [true, true, false, false, false]);
});

test("each kind of node becomes its element", () => {
  const blocks = [
    { kind: "heading", level: 1, children: ["Result"] },
    paragraph({ kind: "strong", children: ["bold"] }, " and ", { kind: "code", text: "x < 1" }),
    { kind: "list", start: 3, children: [{ kind: "item", children: [{ kind: "task", done: true }, "one"] }] },
    { kind: "table", children: [{ kind: "head", children: [{ kind: "cell", children: ["Name"] }] }, { kind: "row", children: [{ kind: "cell", children: ["Apple"] }] }] },
    { kind: "code_block", number: 1, language: "Rust", text: "fn main() {}" },
    { kind: "rule" },
  ];
  const elements = createMarkdown(blocks, "ltr");
  assert.deepEqual(elements.map((one) => one.name), ["p", "p", "ol", "div", "figure", "hr"]);
  assert.deepEqual([elements[0].attributes.role, elements[0].attributes["aria-level"], elements[2].start], ["heading", "4", 3]);
  assert.equal(elements[1].textContent, "bold and x < 1");
  assert.equal(elements[2].textContent, "Done: one");
  assert.equal(all(elements).find((one) => one.name === "th").scope, "col");
  assert.equal(all(elements).find((one) => one.name === "pre").attributes["aria-label"], "Code 1, Rust");
});

test("a link shows its host, and only web addresses are links", () => {
  const create = (href, ...children) => createMarkdown([paragraph({ kind: "link", href, children })], "ltr");
  const [found] = create("https://example.org/a?b", "the site");
  const link = all([found]).find((one) => one.name === "a");
  assert.deepEqual([link.href, link.rel, link.target], ["https://example.org/a?b", "noopener noreferrer", "_blank"]);
  assert.equal(found.textContent, "the site (example.org)");
  assert.equal(create("https://ex\u00e4mple.org/", "x")[0].textContent, "x (xn--exmple-cua.org)", "a host with look-alike letters is in ASCII");
  for (const href of ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "/relative", "", undefined, "https://bank.example@evil.example/", "java\nscript:x"]) {
    const elements = create(href, "text");
    assert.equal(elements[0].textContent, "text", String(href));
    assert.deepEqual(all(elements).filter((one) => one.name === "a"), [], String(href));
    assert.equal(parseWebAddress(href), undefined);
  }
});

test("an image becomes its alternative text, and an unknown node its content", () => {
  const [one] = createMarkdown([paragraph({ kind: "image", href: "https://example.org/x.png", children: ["our ", { kind: "strong", children: ["logo"] }] })], "ltr");
  assert.equal(one.textContent, "Image: our logo");
  const elements = createMarkdown([{ kind: "script", text: "harm()", children: ["text"] }, { kind: "image" }], "ltr");
  assert.deepEqual([elements[0], elements[1].textContent], ["text", "Image without a description"]);
  assert.deepEqual(all([one, ...elements]).filter((element) => ["img", "script"].includes(element.name)), []);
});

test("texts are sanitized, and if the direction is auto, each block has dir=auto", () => {
  const [one] = createMarkdown([paragraph("a\u202eb\u0007")], "auto");
  assert.deepEqual([one.textContent, one.dir], ["ab ", "auto"]);
});
