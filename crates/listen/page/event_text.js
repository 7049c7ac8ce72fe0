// The text of every event that is not a question.

import { phrases } from "./phrases.js";
import { describeUri } from "./uri.js";
import { agentName, asObject, eventKind, formatDuration, joinParts, labelled, nameText, ownText, phraseAround, producerText, sanitize, shorten, stateLabel, summaryText, toolName, wordsOf } from "./wording.js";

/**
 * Describes an event that is not a question. Returns no parts if there is nothing to announce. `known` says what the page knows about the
 * session: `agent`, `hasOutput`, `isPermitted` (for a call), `expectedMs` (for a completed call) and `isOwnStop`.
 */
export function describeEvent(event, verbosity, known = {}) {
  const text = isHubWording(event) ? undefined : summaryText(event, verbosity);
  const summary = text === undefined ? [] : [producerText(event, text)];
  const summaryOr = (fallback) => (summary.length > 0 ? summary : [ownText(fallback)]);
  const says = (field) => typeof event[field] === "string" && event[field] !== "" && !(text ?? "").includes(event[field]);
  const field = (label, name, isSaid = true) => (isSaid && says(name) ? labelled(label, producerText(event, shorten(event[name]))) : []);
  const place = (label, name) => (verbosity === "terse" ? [] : labelled(label, describeUri(event[name])));
  const isDetailed = verbosity === "detailed";
  const agent = known.agent ?? agentName(event);
  switch (eventKind(event)) {
    case "session.started":
      return [nameText(agent), ownText(phrases.hasStarted), ...summaryOr(phrases.newSession), ...aboutTime(event.expected_duration_ms, verbosity)];
    case "session.completed":
      return [
        ...phraseAround(phrases.hasFinished, agent),
        ...summary,
        // If the result was heard as text, its summary is announced only to those who want few words.
        ...field(phrases.result, "output_summary", known.hasOutput !== true || verbosity === "terse"),
        ...place(phrases.resultPlace, "result_uri"),
        ...(isDetailed ? describeTotals(event) : []),
      ];
    case "session.errored":
      return [
        ownText(phrases.error),
        ...summaryOr(phrases.sessionFailed),
        ...retryAdvice(event),
        ...field(phrases.whatYouCanDo, "remediation_hint"),
        ...field(phrases.errorCode, "error_code", isDetailed),
        ...place(phrases.helpPlace, "error_uri"),
      ];
    case "session.cancelled":
      // The hub's own text about a stop adds nothing.
      return [...describeCancelled(event, agent, known.isOwnStop), ...(isStoppedByPerson(event) ? [] : summary), ...field(phrases.partialResult, "partial_result", verbosity !== "terse")];
    case "state.changed":
      return [...(summary.length > 0 ? summary : [describeState(event)]), ...aboutTime(event.expected_duration_ms, verbosity)];
    case "progress.updated":
      return describeProgress(event, text, verbosity);
    case "tool.invoked":
      return describeCall(event, summaryOr(phrases.usingTool(toolName(event))), verbosity, known.isPermitted === true);
    case "tool.completed":
      return [...describeCompletedTool(event, summary), ...callDuration(event, known.expectedMs, verbosity)];
    case "output.streaming":
      if (isText(event)) return [producerText(event, event.chunk ?? "", event.language)];
      return event.complete === true ? [...phraseAround(phrases.sentData, agent), nameText(sanitize(event.content_type))] : [];
    case "handoff.requested":
      return describeHandoff(event, agent, summary);
    default:
      return [ownText(phrases.unknownEvent(sanitize(eventKind(event)).replaceAll(/[._:]/g, " "))), ...summaryOr(phrases.unknownEventSummary)];
  }
}

/** Whether an output is text. Other data cannot be announced. */
export function isText(event) {
  return typeof event.content_type !== "string" || event.content_type.startsWith("text/");
}

/**
 * Whether the summary of a state change comes from the hub. The hub marks such summaries with `text_by: "hub"` or with the reply token of a closed
 * question. The page then uses its own text.
 */
function isHubWording(event) {
  const { text_by: textBy, reply_token } = asObject(asObject(event.extensions).sayso);
  return eventKind(event) === "state.changed" && (textBy === "hub" || reply_token !== undefined);
}

/** Returns how long an agent expects something to take, if that is worth saying. */
function aboutTime(ms, verbosity, phrase = phrases.about) {
  return isWorthSaying(ms, verbosity) ? [ownText(phrase(formatDuration(ms / 1000)))] : [];
}

/** Whether a duration is long enough to be announced: ten seconds, a minute at the verbosity `terse` and a second at `detailed`. */
function isWorthSaying(ms, verbosity) {
  return Number.isFinite(ms) && ms >= ({ terse: 60000, detailed: 1000 }[verbosity] ?? 10000);
}

/** Returns how long a session took and how many tools it used, if the agent reports it. */
export function describeTotals({ duration_ms: ms, tool_invocations_count: count }) {
  const took = Number.isFinite(ms) && ms >= 1000 ? [ownText(phrases.took(formatDuration(ms / 1000)))] : [];
  return [...took, ...(Number.isFinite(count) && count > 0 ? [ownText(phrases.usedTools(count))] : [])];
}

/** Returns how long a call took, if it took much longer than the agent expected. At the verbosity `detailed` always. */
function callDuration({ duration_ms: ms }, expectedMs, verbosity) {
  if (!isWorthSaying(ms, verbosity)) return [];
  if (expectedMs >= 1000 && ms >= 2 * expectedMs) return [ownText(phrases.tookLonger(formatDuration(ms / 1000), formatDuration(expectedMs / 1000)))];
  return verbosity === "detailed" ? [ownText(phrases.took(formatDuration(ms / 1000)))] : [];
}

function retryAdvice({ error_category: category, recoverable }) {
  if (category === "requires_user") return [ownText(phrases.retry.actionRequired)];
  if (recoverable === true || (category === "transient" && recoverable === undefined)) return [ownText(phrases.retry.mayHelp)];
  return category === "permanent" || (category === "transient" && recoverable === false) ? [ownText(phrases.retry.willNotHelp)] : [];
}

/** Describes what an agent does now, after its last change of state, call or progress. */
export function describeActivity(event) {
  const text = isHubWording(event) ? undefined : summaryText(event, "normal");
  if (text !== undefined) return [producerText(event, text)];
  switch (eventKind(event)) {
    case "tool.invoked":
      return [ownText(capitalize(phrases.usingTool(toolName(event))))];
    case "progress.updated":
      return [producerText(event, asObject(event.progress).description)];
    default:
      return [describeState(event)];
  }
}

/** Whether progress says what the agent does, and not only how far it is. */
export function hasText(event) {
  const { description } = asObject(event.progress);
  return summaryText(event, "normal") !== undefined || (typeof description === "string" && description !== "");
}

function capitalize(text) {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Describes the state of an agent: the author's words for a state of its own, or else the page's label. */
function describeState(event) {
  const { states } = asObject(asObject(event.extensions).sayso);
  const own = (Array.isArray(states) ? states : []).map(asObject).find(({ state }) => state === event.to_state && !Object.hasOwn(phrases.states, state));
  const words = Object.entries(asObject(own?.words)).filter(([, text]) => typeof text === "string" && text !== "");
  const [tag, text] = words.find(([tag]) => tag.split("-")[0].toLowerCase() === phrases.lang) ?? words[0] ?? [];
  return text === undefined ? ownText(`${stateLabel(event.to_state)}.`) : producerText(event, text, tag);
}

/**
 * Describes a call: the summary, the arguments if they matter, the risk and the expected duration. A call that the person has just permitted
 * (`isPermitted`) warns of nothing, because the question did.
 */
function describeCall(event, summary, verbosity, isPermitted) {
  const { irreversible, risk_level: risk, args_summary: args } = event;
  const isRisky = !isPermitted && (irreversible === true || ["medium", "high"].includes(risk));
  const saysArguments = typeof args === "string" && args !== "" && !joinParts(summary).includes(args) && (verbosity === "detailed" || (isRisky && verbosity !== "terse"));
  // The warning that a call cannot be undone is stronger than the risk.
  const saysRisk = !isPermitted && irreversible !== true && (risk === "high" || (risk === "medium" && verbosity === "detailed"));
  return [
    ownText(phrases.tool),
    ...summary,
    ...(saysArguments ? labelled(phrases.callArguments, producerText(event, shorten(args))) : []),
    ...(saysRisk ? [ownText(phrases.risk[risk])] : []),
    ...(irreversible === true && !isPermitted ? [ownText(phrases.reversibility.irreversible)] : []),
    ...aboutTime(event.expected_duration_ms, verbosity),
  ];
}

function describeCompletedTool(event, summary) {
  const tool = toolName(event);
  if (event.status === "success") return summary.length > 0 ? [ownText(phrases.tool), ...summary] : [ownText(phrases.toolDone(tool))];
  const isTimeout = event.status === "timeout";
  const message = event.error_message ? [producerText(event, event.error_message)] : [];
  if (summary.length === 0) return [ownText(isTimeout ? phrases.toolTimedOut(tool) : phrases.toolFailed(tool)), ...message];
  // If the summary contains the error message, the summary alone is enough.
  const isRepeated = summary.some((part) => message.some(({ text }) => part.text.includes(text)));
  return [ownText(isTimeout ? phrases.timedOutLabel : phrases.failedLabel), ...summary, ...(isRepeated ? [] : message)];
}

/**
 * Describes progress: the agent's summary or description, the step, the percentage and the time left. Numbers that the agent's text contains
 * are not repeated.
 */
function describeProgress(event, summary, verbosity) {
  const progress = asObject(event.progress);
  const text = summary ?? (typeof progress.description === "string" ? progress.description : "");
  // At the verbosity `terse`, the agent's own text is enough.
  const isNew = (sentence) => text === "" || (verbosity !== "terse" && !sharesWord(text, sentence));
  const percent = Number.isFinite(progress.percent) ? Math.round(progress.percent) : 0;
  // Zero percent is not worth announcing.
  const numbers = [stepText(progress), percent > 0 || (text === "" && progress.percent === 0) ? phrases.percent(percent) : undefined];
  return [
    ...(text === "" ? [] : [producerText(event, text)]),
    ...numbers.filter((sentence) => sentence !== undefined && isNew(sentence)).map(ownText),
    ...aboutTime(event.eta_ms, verbosity, phrases.aboutLeft),
  ];
}

/** Returns the step that the agent is at, if it says so. */
export function stepText({ step, total_steps: total }) {
  if (!Number.isFinite(step)) return undefined;
  return Number.isFinite(total) ? phrases.stepOf(step, total) : phrases.step(step);
}

/** Whether a text shares a number or a word of at least four characters with a sentence, so that the sentence would repeat it. */
function sharesWord(text, sentence) {
  const known = new Set(wordsOf(text));
  return wordsOf(sentence).some((word) => (word.length >= 4 || /^\p{N}+$/u.test(word)) && known.has(word));
}

/** Describes that an agent asks somebody to take over. */
function describeHandoff(event, agent, summary) {
  const phrase = { human: phrases.handoffTo.person, specialist_agent: phrases.handoffTo.agent, escalation_queue: phrases.handoffTo.queue }[event.target_kind] ?? phrases.handoffTo.other;
  const reason = sanitize(String(event.reason ?? ""));
  return [
    ...phraseAround(phrase, agent),
    ...(event.urgency_for_handoff === "high" ? [ownText(phrases.handoffUrgent)] : []),
    ...summary.filter(({ text }) => text !== reason),
    ...labelled(phrases.reason, producerText(event, reason)),
  ];
}

/** Whether a person stopped the session. Only the hub knows that; an agent can merely say so. */
function isStoppedByPerson(event) {
  return asObject(asObject(event.extensions).sayso).ended_by === "user";
}

function describeCancelled(event, agent, isOwnStop) {
  const { cancelled } = phrases;
  if (isStoppedByPerson(event)) return phraseAround(isOwnStop ? phrases.youStopped : cancelled.user, agent);
  if (event.cancelled_by === "user") return phraseAround(cancelled.reported, agent);
  return phraseAround(Object.hasOwn(cancelled, event.cancelled_by) ? cancelled[event.cancelled_by] : cancelled.other, agent);
}
