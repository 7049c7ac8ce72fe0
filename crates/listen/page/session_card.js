// The card of one session: who works on what, what the agent does now, and a timeline. What the agent wrote and asked is shown; its steps and
// everything else that it said about the session are collapsed.

import { createSpans } from "./announcer.js";
import { createBadge, createElement, createTime } from "./element.js";
import { createMarkdown } from "./markdown.js";
import { phrases } from "./phrases.js";
import { formatDuration, joinParts, nameText, ownText } from "./wording.js";

/** Maximum number of outputs, questions and notes in a timeline. Older ones are only in the log. */
const MAX_ITEMS = 50;
/** Maximum number of steps in a timeline. Older ones are only in the log. */
const MAX_STEPS = 200;
/** How long changes are collected before they are drawn, in milliseconds. A burst of events then causes one layout. */
const BATCH_DELAY_MS = 50;

export class SessionCard {
  #heading;
  #meta = createElement("p", { className: "meta" });
  #position = createElement("span");
  #activity = createElement("p", { className: "activity", hidden: true });
  #timeline = createElement("ol", { className: "timeline" });
  #older = createElement("p", { className: "notice", hidden: true });
  #steps = [];
  #stepCount = 0;
  #drawnSteps = 0;
  #stepSummary = createElement("summary");
  #stepList = createElement("ol");
  #stepDetails;
  #factSummary = createElement("summary");
  #factList = createElement("ul");
  #facts;
  #time;
  #children;
  #button;
  /** The outputs whose text has changed since they were drawn, and the element of each output. */
  #changedOutputs = new Set();
  #outputs = new Map();
  #timer;
  #drawnHead;

  /**
   * `stop(id)` stops the session and returns whether that worked. `time()` returns the time of the hub's clock. `isChild` is true for a session
   * that another session started.
   */
  constructor(session, { stop, time }, isChild) {
    this.session = session;
    this.#time = time;
    this.element = createElement("li", { className: "session" });
    this.#heading = createElement(isChild ? "h4" : "h3", { tabIndex: -1, id: `title-${session.id}` });
    this.#stepDetails = createElement("details", { className: "steps", hidden: true }, [this.#stepSummary, this.#stepList]);
    this.#stepDetails.addEventListener("toggle", () => this.#drawSteps());
    this.#facts = createElement("details", { className: "facts", hidden: true }, [this.#factSummary, this.#factList]);
    this.#facts.addEventListener("toggle", () => this.#drawFacts());
    this.#button = this.#createStopButton(stop);
    const head = createElement("div", { className: "head" }, [this.#heading, this.#meta]);
    this.element.append(head, this.#activity, this.#older, this.#timeline, this.#stepDetails, this.#facts, this.#button);
    this.update(session);
  }

  get isOpen() {
    return this.#button !== undefined;
  }

  /** Updates the name, the state and the stop button. Returns whether the session has just ended. */
  update(session) {
    this.session = session;
    this.#schedule();
    // Most events change nothing else that the head shows.
    const head = JSON.stringify([phrases.lang, session.agent, session.agentId, session.title, session.state, session.ended]);
    if (head === this.#drawnHead) return false;
    this.#drawnHead = head;
    this.#drawHead();
    if (session.ended === undefined || this.#button === undefined) return false;
    if (this.#button === document.activeElement) this.#heading.focus();
    this.#button.remove();
    this.#button = undefined;
    return true;
  }

  /** Adds an entry of the log: a step, or something that must be seen, such as an error. */
  add(entry) {
    if (entry.isNote === true) {
      if (entry.ownParts.length === 0) return;
      this.#addItem(createElement("li", { className: `note note-${entry.category}` }, [createElement("p", {}, createSpans(entry.ownParts, true))]));
      return;
    }
    this.#stepCount += 1;
    this.#steps.push(entry);
    if (this.#steps.length > MAX_STEPS) this.#steps.shift();
    this.#schedule();
  }

  /** Shows the current text of an output. */
  showOutput(output) {
    if (!this.#outputs.has(output)) {
      const body = createElement("div", { className: "text", lang: output.lang, dir: output.dir });
      const speaker = output.speaker === undefined ? [] : [createElement("p", { className: "speaker" }, createSpans([nameText(`${output.speaker}:`)]))];
      this.#outputs.set(output, body);
      this.#addItem(createElement("li", { className: "output" }, [...speaker, body]));
    }
    this.#changedOutputs.add(output);
    this.#schedule();
  }

  /** Adds the card of a question. */
  addQuestion(element) {
    this.#addItem(element);
  }

  /** Adds the card of a session that this session started. */
  addChild(card) {
    if (this.#children === undefined) {
      this.#children = createElement("ul", { className: "children", "aria-label": phrases.startedByThis });
      this.element.append(this.#children);
    }
    this.#children.prepend(card.element);
  }

  /** Redraws the page's own texts in the current language. What was announced keeps its language. */
  translate() {
    this.update(this.session);
    if (this.#button !== undefined) this.#button.textContent = phrases.stop;
    this.#children?.setAttribute("aria-label", phrases.startedByThis);
    this.#older.textContent = phrases.olderInLog;
    this.#drawStepSummary();
  }

  /** Draws the agent's current activity and progress while it is working. */
  #drawActivity() {
    const { session } = this;
    const isWorking = session.ended === undefined && session.state !== "awaiting_input";
    const position = isWorking ? session.facts.position(this.#time()) : "";
    if (this.#position.textContent.trim() !== position) this.#position.textContent = position === "" ? "" : `${position} `;
    this.#position.lang = phrases.lang;
    const activity = isWorking ? session.facts.activity() : [];
    if (this.#activity.textContent === joinParts(activity)) return;
    this.#activity.hidden = activity.length === 0;
    this.#activity.replaceChildren(...createSpans(activity));
  }

  /** Draws the facts, unless they are collapsed. */
  #drawFacts() {
    const { session } = this;
    if (this.#factSummary.textContent !== phrases.details) this.#factSummary.textContent = phrases.details;
    if (!this.#facts.hidden && !this.#facts.open) return;
    const lines = session.facts.lines(session.agent);
    this.#facts.hidden = lines.length === 0;
    if (!this.#facts.open) return;
    const text = JSON.stringify(lines);
    // Lines that have not changed keep their elements, so that a reader does not lose the place.
    if (this.#factList.drawn === text) return;
    this.#factList.drawn = text;
    this.#factList.replaceChildren(...lines.map((line) => createElement("li", {}, createSpans(line, true))));
  }

  #drawHead() {
    const { session } = this;
    this.#heading.replaceChildren(...createSpans([nameText(session.agent, ": "), session.title ?? ownText(phrases.startedEarlier)]));
    const state = session.ended ?? (session.state === "awaiting_input" ? "waiting" : "working");
    this.element.dataset.state = state;
    const badge = session.ended === undefined ? phrases.sessionStates[state] : phrases.ended[state];
    const own = (text) => createElement("span", { lang: phrases.lang }, [text]);
    const parts = [this.#position];
    if (session.startedAt !== undefined) parts.push(createElement("span", { className: "since", lang: phrases.lang }, this.#describeTime()), " ");
    if (session.agentId !== undefined) parts.push(own(phrases.agentIdIs(session.agentId)));
    this.#meta.replaceChildren(createBadge(`${badge}.`, state), " ", ...parts);
  }

  /** Returns the text about the start of a running session, or about the start and the duration of an ended one. */
  #describeTime() {
    const { startedAt, endedAt } = this.session;
    const started = createTime(startedAt, false);
    if (endedAt === undefined) return [`${phrases.since} `, started, "."];
    return [started, phrases.tookAfterwards(formatDuration(Math.max(1, (endedAt - startedAt) / 1000)))];
  }

  #addItem(element) {
    this.#timeline.append(element);
    if (this.#timeline.childElementCount <= MAX_ITEMS) return;
    const [oldest] = this.#timeline.children;
    if (oldest.contains(document.activeElement)) this.#heading.focus();
    oldest.remove();
    for (const [output, body] of this.#outputs) if (oldest.contains(body)) this.#outputs.delete(output);
    this.#older.hidden = false;
    this.#older.textContent = phrases.olderInLog;
  }

  #schedule() {
    this.#timer ??= setTimeout(() => this.#draw(), BATCH_DELAY_MS);
  }

  #draw() {
    this.#timer = undefined;
    for (const output of this.#changedOutputs) {
      const body = this.#outputs.get(output);
      if (body !== undefined) drawOutput(body, output);
    }
    this.#changedOutputs.clear();
    this.#drawActivity();
    this.#drawFacts();
    this.#stepDetails.hidden = this.#stepCount === 0;
    this.#drawStepSummary();
    this.#drawSteps();
  }

  #drawStepSummary() {
    this.#stepSummary.textContent = phrases.steps(this.#stepCount);
  }

  /** Draws the steps, unless they are collapsed. */
  #drawSteps() {
    if (!this.#stepDetails.open) return;
    const missing = Math.min(this.#stepCount - this.#drawnSteps, this.#steps.length);
    if (missing <= 0) return;
    this.#stepList.append(...this.#steps.slice(-missing).map(createStep));
    this.#drawnSteps = this.#stepCount;
    while (this.#stepList.childElementCount > MAX_STEPS) this.#stepList.firstElementChild.remove();
  }

  #createStopButton(stop) {
    const { id } = this.session;
    const button = createElement("button", { type: "button", className: "danger", id: `stop-${id}` }, [phrases.stop]);
    button.setAttribute("aria-labelledby", `${button.id} ${this.#heading.id}`);
    button.addEventListener("click", async (event) => {
      if (event.detail > 1 || button.getAttribute("aria-disabled") === "true") return;
      button.setAttribute("aria-disabled", "true");
      const stopped = await stop(id);
      if (!stopped) button.removeAttribute("aria-disabled");
    });
    return button;
  }
}

function createStep(entry) {
  return createElement("li", {}, [createTime(entry.at), " ", ...createSpans(entry.ownParts)]);
}

/** Draws the text of an output. Text that has not changed keeps its elements, so that a reader does not lose the place. */
function drawOutput(body, output) {
  if (output.blocks === undefined) {
    const [node] = body.childNodes;
    if (node instanceof Text && output.text.startsWith(node.data)) node.appendData(output.text.slice(node.data.length));
    else body.replaceChildren(output.text);
    body.classList.add("plain");
    return;
  }
  body.classList.remove("plain");
  const drawn = body.drawnBlocks ?? [];
  const blocks = output.blocks.map((block) => JSON.stringify(block));
  let same = 0;
  while (same < drawn.length && drawn[same] === blocks[same]) same += 1;
  const kept = drawn.length === 0 ? [] : [...body.children].slice(0, same);
  body.replaceChildren(...kept, ...createMarkdown(output.blocks.slice(same), output.dir));
  body.drawnBlocks = blocks;
}
