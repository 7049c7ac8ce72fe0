// Markdown as elements. The hub parses it with the parser of `sayso listen` and sends a tree; text from the agent only becomes text nodes.

import { createElement } from "./element.js";
import { phrases } from "./phrases.js";
import { parseWebAddress } from "./uri.js";
import { sanitize } from "./wording.js";

/** How long to wait for the hub to parse an output, in milliseconds. After that, the text is announced as it was written. */
const PARSE_TIMEOUT_MS = 1000;
/** Maximum length of an output that is parsed, in characters. A longer one is shown as it was written. */
export const MAX_MARKDOWN_CHARS = 65536;

/** Whether an output with this content type is Markdown. An output without a content type is plain text (§4.3.3). */
export function isMarkdown(contentType) {
  return typeof contentType === "string" && ["text/markdown", "text/x-markdown"].includes(contentType.toLowerCase());
}

/**
 * Asks the hub to parse an output. `parts` is its text so far, split wherever another event of the agent came in between. Returns
 * `blocks` (the tree), `spoken` (the text to announce so far) and `isHeld` (whether more text waits for the end of its block), or `undefined`.
 */
export async function parseMarkdown({ parts, complete }) {
  if (parts.reduce((sum, part) => sum + part.length, 0) > MAX_MARKDOWN_CHARS) return undefined;
  const body = JSON.stringify({ parts, complete, language: phrases.lang });
  try {
    const response = await fetch("/page/markdown", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body,
      signal: AbortSignal.timeout(PARSE_TIMEOUT_MS),
    });
    if (!response.ok) return undefined;
    const { blocks, spoken, held } = await response.json();
    return Array.isArray(blocks) && typeof spoken === "string" ? { blocks, spoken, isHeld: held === true } : undefined;
  } catch {
    return undefined;
  }
}

/** Creates the elements of blocks. `dir` is the direction of the output; `auto` applies to each block on its own. */
export function createMarkdown(blocks, dir) {
  return blocks.flatMap((block) => createNode(block, dir));
}

const INLINE_ELEMENTS = { emphasis: "em", strong: "strong", deleted: "del" };

/** Creates the DOM nodes for a node of the tree, `{ kind, children, … }`, or for a text. An unknown kind is replaced by its content. */
function createNode(node, dir) {
  if (typeof node === "string") return [sanitize(node)];
  const { kind, children = [] } = node;
  const inner = () => children.flatMap((child) => createNode(child, dir));
  const block = (name, properties, content = inner()) => [createElement(name, dir === "auto" ? { dir: "auto", ...properties } : properties, content)];
  switch (kind) {
    case "paragraph":
      return block("p", {});
    case "quote":
      return block("blockquote", {});
    case "item":
      return block("li", {});
    case "task":
      return [createElement("span", { lang: phrases.lang }, [`${node.done ? phrases.taskDone : phrases.taskOpen} `])];
    case "emphasis":
    case "strong":
    case "deleted":
      return [createElement(INLINE_ELEMENTS[kind], {}, inner())];
    case "heading":
      // The heading of a session has level 3, and the first level of an output comes below it.
      return block("p", { role: "heading", "aria-level": String(Math.min(Number(node.level) + 3 || 4, 9)), className: `heading level-${Number(node.level) || 1}` });
    case "list":
      return block(Number.isInteger(node.start) ? "ol" : "ul", Number.isInteger(node.start) ? { start: node.start } : {});
    case "code_block":
      return [createCodeBlock(node)];
    case "code":
      return [createElement("code", {}, [sanitize(String(node.text ?? ""))])];
    case "table":
      return [createTable(children, dir)];
    case "rule":
      return [createElement("hr")];
    case "break":
      return [createElement("br")];
    case "link":
      return createLink(node, inner());
    case "image": {
      const text = children.map(plainText).join("").trim();
      return [createElement("span", { className: "image" }, [text === "" ? phrases.imageWithoutText : phrases.image(sanitize(text))])];
    }
    default:
      return inner();
  }
}

function createCodeBlock({ text, number, language }) {
  const label = language ? phrases.codeIn(String(number), sanitize(String(language))) : phrases.code(String(number));
  // A block with a scroll bar must be reachable by keyboard.
  const code = createElement("pre", { tabIndex: 0, dir: "ltr", role: "region", "aria-label": label }, [createElement("code", {}, [sanitize(String(text ?? ""))])]);
  return createElement("figure", { className: "code" }, [createElement("figcaption", { lang: phrases.lang, "aria-hidden": "true" }, [label]), code]);
}

function createTable(lines, dir) {
  const cells = (line, name, properties) =>
    (line.children ?? []).map((cell) => createElement(name, { ...properties, dir }, (cell.children ?? []).flatMap((node) => createNode(node, dir))));
  const [head, rows] = [lines.filter((line) => line.kind === "head"), lines.filter((line) => line.kind === "row")];
  const createRows = (all, name, properties) => all.map((line) => createElement("tr", {}, cells(line, name, properties)));
  const parts = [createElement("thead", {}, createRows(head, "th", { scope: "col" })), createElement("tbody", {}, createRows(rows, "td", {}))];
  const label = phrases.table(rows.length, head[0]?.children?.length ?? 0);
  // A table with a scroll bar must be reachable by keyboard.
  return createElement("div", { className: "table", tabIndex: 0, role: "region", "aria-label": label }, [createElement("table", {}, parts)]);
}

function plainText(node) {
  return typeof node === "string" ? node : String(node.text ?? "") + (node.children ?? []).map(plainText).join("");
}

/** Creates a link followed by its host. Only links to web pages work; any other link is shown as its text. */
function createLink({ href }, content) {
  const url = parseWebAddress(href);
  if (url === undefined) return content;
  const link = createElement("a", { href: url.href, target: "_blank", rel: "noopener noreferrer" }, content.length > 0 ? content : [url.host]);
  return [link, createElement("span", { className: "host" }, [" (", createElement("bdi", {}, [url.host]), ")"])];
}
