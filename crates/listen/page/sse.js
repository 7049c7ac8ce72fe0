// A parser for server-sent events. The pushed text may be split anywhere.

/** Maximum length of a line in characters. No event from the hub is longer; the limit only bounds memory. */
export const MAX_LINE_CHARS = 4 * 1024 * 1024;

export class SseParser {
  #buffer = "";
  #block = emptyBlock();

  /** Adds text from the stream and returns the blocks that it completes. An `id` without `data` is also a block. */
  push(text) {
    const blocks = [];
    this.#buffer += text;
    let from = 0;
    for (;;) {
      const end = this.#findLineEnd(from);
      if (end === undefined) break;
      const line = this.#buffer.slice(from, end.at);
      from = end.nextLineAt;
      if (line === "") {
        if (this.#block.id !== undefined || this.#block.data.length > 0) {
          blocks.push({ ...this.#block, data: this.#block.data.join("\n") });
        }
        this.#block = emptyBlock();
      } else {
        this.#parseField(line);
      }
    }
    this.#buffer = this.#buffer.slice(from);
    if (this.#buffer.length > MAX_LINE_CHARS) throw new Error("The hub sent a line that is too long.");
    return blocks;
  }

  /** Finds the next line end. A CR at the very end of the buffer does not count yet, because it may be half of a CRLF. */
  #findLineEnd(from) {
    for (let at = from; at < this.#buffer.length; at += 1) {
      const character = this.#buffer[at];
      if (character === "\n") return { at, nextLineAt: at + 1 };
      if (character === "\r") {
        if (at + 1 === this.#buffer.length) return undefined;
        return { at, nextLineAt: this.#buffer[at + 1] === "\n" ? at + 2 : at + 1 };
      }
    }
    return undefined;
  }

  #parseField(line) {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#block.data.push(value);
    else if (name === "event") this.#block.event = value;
    else if (name === "id" && !value.includes("\0")) this.#block.id = value;
  }
}

function emptyBlock() {
  return { event: "message", id: undefined, data: [] };
}
