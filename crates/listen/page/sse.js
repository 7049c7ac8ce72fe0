// A stream of server-sent events, cut into blocks. Bytes may be cut anywhere; so may what is pushed here.

/** So long a line is no event of ours; the stream is given up rather than the memory. */
export const LONGEST = 4 * 1024 * 1024;

export class Blocks {
  #rest = "";
  #block = fresh();

  /** Takes a piece of the stream; gives the blocks that it completes. An `id` without `data` is a block too. */
  push(text) {
    const blocks = [];
    this.#rest += text;
    let from = 0;
    for (;;) {
      const end = this.#lineEnd(from);
      if (end === undefined) break;
      const line = this.#rest.slice(from, end.at);
      from = end.next;
      if (line === "") {
        if (this.#block.id !== undefined || this.#block.data.length > 0) {
          blocks.push({ ...this.#block, data: this.#block.data.join("\n") });
        }
        this.#block = fresh();
      } else {
        this.#field(line);
      }
    }
    this.#rest = this.#rest.slice(from);
    if (this.#rest.length > LONGEST) throw new Error("The hub sent a line that is too long.");
    return blocks;
  }

  /** A CR at the very end may be half of a CRLF. */
  #lineEnd(from) {
    for (let at = from; at < this.#rest.length; at += 1) {
      const letter = this.#rest[at];
      if (letter === "\n") return { at, next: at + 1 };
      if (letter === "\r") {
        if (at + 1 === this.#rest.length) return undefined;
        return { at, next: this.#rest[at + 1] === "\n" ? at + 2 : at + 1 };
      }
    }
    return undefined;
  }

  #field(line) {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#block.data.push(value);
    else if (name === "event") this.#block.event = value;
    else if (name === "id" && !value.includes("\0")) this.#block.id = value;
  }
}

function fresh() {
  return { event: "message", id: undefined, data: [] };
}
