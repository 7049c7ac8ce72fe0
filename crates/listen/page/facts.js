// Facts from the agent's events that are not announced. The cards of sessions show them under "Details".

import { describeActivity, describeTotals, hasText, stepText } from "./event_text.js";
import { phrases } from "./phrases.js";
import { describeContext } from "./question_call.js";
import { describeUri } from "./uri.js";
import { asObject, eventKind, formatDuration, labelled, nameText, ownText, phraseAround, producerText, sanitize, shorten, toolName } from "./wording.js";

/** Maximum number of agents, and of tools, that a session remembers. */
const MAX_REMEMBERED = 64;

export class SessionFacts {
  /** The event that each fact comes from. The texts are made when they are shown, in the language of that moment. */
  #started;
  #agents = new Map();
  #call;
  #handoff;
  #end;
  /** The last event about the agent's activity, and the last one about its progress. */
  #activity;
  #progress;
  /** What the tools do, by name. */
  #tools = new Map();
  /** The expected duration of each open call, by its id or else by its tool. */
  #expected = new Map();
  /** When the agent expects to be done, in milliseconds of the hub's clock. */
  #expectedEnd;

  /** Records the facts in an event that was created at this time of the hub's clock. */
  record(event, at) {
    const producer = asObject(event.producer);
    if (this.#agents.size < MAX_REMEMBERED && !this.#agents.has(producer.agent_id)) this.#agents.set(producer.agent_id, event);
    switch (eventKind(event)) {
      case "session.started":
        this.#started = event;
        for (const tool of Array.isArray(event.tools_available) ? event.tools_available : []) this.#addTool(toolName({ tool }));
        this.#expectEndIn(event.expected_duration_ms, at);
        break;
      case "state.changed":
        this.#activity = event;
        break;
      case "progress.updated":
        // The hub reports the time that is left to answer in the same form.
        if (isFromHub(event)) break;
        this.#progress = asObject(event.progress);
        if (hasText(event)) this.#activity = event;
        if (Number.isFinite(event.eta_ms)) this.#expectEndIn(event.eta_ms, at);
        break;
      case "tool.invoked":
        this.#call = event;
        this.#activity = event;
        this.#addTool(toolName(event), event);
        if (Number.isFinite(event.expected_duration_ms) && this.#expected.size < MAX_REMEMBERED) this.#expected.set(callKey(event), event.expected_duration_ms);
        break;
      case "handoff.requested":
        this.#handoff = event;
        break;
      case "session.completed":
      case "session.errored":
      case "session.cancelled":
        this.#end = event;
        this.#expectedEnd = undefined;
        break;
    }
  }

  /** Ends a call. Returns how long the agent expected it to take, in milliseconds, if it said so. */
  finishCall(event) {
    const key = callKey(event);
    const expected = this.#expected.get(key);
    this.#expected.delete(key);
    return expected;
  }

  /** Returns the time that the agent still needs at this time of the hub's clock, in seconds, if it gave an estimate that is not over. */
  secondsLeft(at) {
    const left = (this.#expectedEnd - at) / 1000;
    return left >= 1 ? left : undefined;
  }

  /** Describes what the agent does now. Returns no parts if that is not known. */
  activity() {
    return this.#activity === undefined ? [] : describeActivity(this.#activity);
  }

  /** Returns the agent's progress, if it reports it: "Step 3 of 7. About 2 minutes left." */
  position(at) {
    const { percent } = this.#progress ?? {};
    const done = stepText(this.#progress ?? {}) ?? (percent > 0 ? phrases.percent(Math.round(percent)) : undefined);
    const left = this.secondsLeft(at);
    return [done, left === undefined ? undefined : phrases.aboutLeft(formatDuration(left))].filter(Boolean).join(" ");
  }

  /** Returns the lines of the details. Each line is a list of parts. */
  lines(agent) {
    return [
      ...this.#requestLines(),
      ...this.agentLines(),
      ...this.#callLines(),
      ...this.#handoffLines(),
      ...this.#endLines(),
      ...this.#toolLines(agent),
    ].filter((line) => line.length > 0);
  }

  /** Returns what is known about the agents: version, model and manifest. */
  agentLines() {
    return [...this.#agents.values()]
      .map((event) => {
        const { agent_version: version, model, manifest_uri: manifest } = asObject(event.producer);
        return [...field(event, phrases.version, version), ...field(event, phrases.model, model), ...labelled(phrases.manifestPlace, describeUri(manifest))];
      })
      .filter((line) => line.length > 0);
  }

  #requestLines() {
    if (this.#started === undefined) return [];
    const { request_text: request, requested_by: by } = this.#started;
    return [[...field(this.#started, phrases.request, request), ...field(this.#started, phrases.requestedBy, typeof by === "string" ? by.replace(/^user:/, "") : by)]];
  }

  #callLines() {
    if (this.#call === undefined) return [];
    const { description, args_summary: args } = this.#call;
    const about = isGiven(description) ? [producerText(this.#call, shorten(description))] : [];
    return [[ownText(phrases.lastTool), { ...nameText(toolName(this.#call)), separator: undefined }, ...about, ...field(this.#call, phrases.callArguments, args)]];
  }

  #handoffLines() {
    if (this.#handoff === undefined) return [];
    return [[...labelled(phrases.handoffTarget, describeUri(this.#handoff.target_uri)), ...labelled(phrases.handoffContext, describeContext(this.#handoff.packaged_context))]];
  }

  #endLines() {
    const end = this.#end;
    if (end === undefined) return [];
    switch (eventKind(end)) {
      case "session.completed":
        return [[...field(end, phrases.result, end.output_summary), ...labelled(phrases.resultPlace, describeUri(end.result_uri)), ...describeTotals(end)]];
      case "session.errored":
        return [[...field(end, phrases.errorCode, end.error_code), ...labelled(phrases.helpPlace, describeUri(end.error_uri))]];
      default:
        return [[...field(end, phrases.reason, typeof end.cancellation_reason === "string" ? end.cancellation_reason.replaceAll("_", " ") : undefined), ...field(end, phrases.partialResult, end.partial_result)]];
    }
  }

  #toolLines(agent) {
    if (this.#tools.size === 0) return [];
    const described = [...this.#tools].filter(([, event]) => event !== undefined);
    const names = { ...nameText([...this.#tools.keys()].join(", ")), separator: undefined };
    return [[...phraseAround(phrases.hasTools, agent), names], ...described.map(([tool, event]) => [nameText(tool, ": "), producerText(event, shorten(event.description))])];
  }

  #addTool(tool, event) {
    if (tool === "" || (this.#tools.size >= MAX_REMEMBERED && !this.#tools.has(tool))) return;
    this.#tools.set(tool, this.#tools.get(tool) ?? (isGiven(event?.description) ? event : undefined));
  }

  #expectEndIn(ms, at) {
    this.#expectedEnd = Number.isFinite(ms) ? at + ms : undefined;
  }
}

function isFromHub(event) {
  const { reminds_of: reminded, extended } = asObject(asObject(event.extensions).sayso);
  return reminded !== undefined || extended !== undefined;
}

function isGiven(text) {
  return typeof text === "string" && sanitize(text).trim() !== "";
}

function field(event, label, text) {
  return isGiven(text) ? labelled(label, producerText(event, shorten(text))) : [];
}

function callKey({ tool_call_id: id, tool }) {
  return String(id ?? tool);
}
