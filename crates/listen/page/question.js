// A question as the page shows and announces it, and the wording of its outcome.

import { phrases } from "./phrases.js";
import { describeContext, exactCallText, isSaidBy, isShort, readCall } from "./question_call.js";
import { asObject, eventKind, labelled, ownText, phraseAround, producerText, sanitize, shorten, summaryText, verifiedAgentId, wordsOf } from "./wording.js";

/** Creates a question from its event. What it says takes about twelve seconds; everything else is in its details. */
export function createQuestion(event, session, verbosity) {
  const isConfirmation = eventKind(event) === "awaiting.confirmation";
  const subject = String((isConfirmation ? event.action : event.question) ?? "");
  const title = [producerText(event, subject)];
  const call = isConfirmation ? readCall(event) : undefined;
  const explanation = isConfirmation ? event.consequence : event.context;
  const consequence = explanation && !isRepeated(event, explanation, subject) ? producerText(event, explanation) : undefined;
  const risks = isConfirmation ? readRisks(event) : [];
  // The agent's text may differ from the call that the answer is bound to, so the person hears both, unless they are the same.
  const statesCall = call?.isBound && !isSaidBy(call, subject);
  // The strongest warning is the label of the call, which is shorter than two sentences. Then the badges are only seen.
  const callLabel = statesCall && isShort(call) && isDangerous(event) ? strongestRisk(risks) : undefined;
  const exactCall = statesCall ? (isShort(call) ? exactCallText(call, callLabel?.text) : ownText(phrases.exactCallInDetails)) : undefined;
  const warning = isConfirmation && isDangerous(event) && call?.isBound !== true ? ownText(phrases.answerNotBound) : undefined;
  const text = [...title];
  if (consequence !== undefined) text.push(consequence);
  if (exactCall !== undefined) text.push(exactCall);
  if (risks.length > 0 && callLabel === undefined) text.push(ownText(risks.map((risk) => risk.text).join(" ")));
  if (warning !== undefined) text.push(warning);
  const choices = (Array.isArray(event.choices) ? event.choices : [])
    .map(asObject)
    .filter((choice) => typeof choice.value === "string")
    .map((choice) => ({ value: choice.value, label: producerText(event, choice.label ?? choice.value) }));
  const responseKinds = Array.isArray(event.accepted_response_kinds) ? event.accepted_response_kinds : [];
  const defaultOutcome = describeDefault(event, choices);
  const unspokenRisks = callLabel === undefined ? [] : risks.filter((risk) => risk !== callLabel);
  return {
    token: event.reply_token,
    session: session.id,
    agent: session.agent,
    isConfirmation,
    isDangerous: isConfirmation && isDangerous(event),
    title,
    consequence,
    exactCall,
    risks,
    areRisksSpoken: callLabel === undefined,
    warning,
    text,
    lang: phrases.lang,
    // The question itself mentions its default only if that is yes.
    defaultNotice: isConfirmation && event.default_decision === "accept" ? defaultOutcome : [],
    details: describeDetails(event, session, { call, exactCall, text, verbosity, defaultOutcome, unspokenRisks }),
    timeoutSeconds: Number.isFinite(event.timeout_seconds) ? event.timeout_seconds : 60,
    allowedReplies: Array.isArray(event.allowed_replies) ? event.allowed_replies : ["accept", "reject"],
    choices,
    responseKinds: responseKinds.length > 0 ? responseKinds : [choices.length > 0 ? "multiple_choice" : "freetext"],
    sentAnswer: undefined,
    extensionRequested: false,
    outcome: undefined,
  };
}

/** Returns the parts that say what happens without an answer. */
export function describeDefault(event, choices = []) {
  if (eventKind(event) === "awaiting.confirmation") return [ownText(phrases.withoutAnswer[event.default_decision === "accept" ? "accept" : "reject"])];
  const { default_response: response } = event;
  if (response === undefined || response === null || response === "") return [ownText(phrases.withoutAnswer.none)];
  if (typeof response === "boolean") return labelled(phrases.withoutAnswer.use, ownText(response ? phrases.yes : phrases.no));
  const choice = choices.find(({ value }) => value === response);
  return labelled(phrases.withoutAnswer.use, choice?.label ?? (typeof response === "object" ? describeContext(response) : producerText(event, shorten(response))));
}

/** Returns the lines of the details, each a list of parts: what the question itself does not say. */
function describeDetails(event, session, { call, exactCall, text, verbosity, defaultOutcome, unspokenRisks }) {
  const said = new Set(text.flatMap((part) => wordsOf(part.text)));
  const lines = [];
  const summary = summaryText(event, verbosity);
  if (summary !== undefined && addsInformation(summary, said)) lines.push(labelled(phrases.agentAdds, producerText(event, shorten(summary))));
  lines.push(labelled(phrases.agentAdds, describeContext(event.extra_context)));
  if (unspokenRisks.length > 0) lines.push([ownText(unspokenRisks.map((risk) => risk.text).join(" "))]);
  if (call?.isBound && (exactCall === undefined || !isShort(call))) lines.push([exactCallText(call)]);
  if (call !== undefined && !call.isBound) lines.push(phraseAround(phrases.wouldUse, call.text));
  lines.push(...(session.facts?.agentLines() ?? []));
  const id = verifiedAgentId(event);
  if (id !== undefined) lines.push([ownText(phrases.agentIdIs(id))]);
  lines.push(defaultOutcome);
  return lines.filter((line) => line.length > 0);
}

/** Articles, pronouns and words that turn an action into a question, in the supported languages. */
const QUESTION_WORDS = new Set(["may", "i", "shall", "should", "can", "could", "please", "it", "this", "a", "an", "the", "puedo", "debo", "el", "la", "un", "una", "ṣé", "kí", "n"]);

/** Whether a text contains a word that was not said. Words such as "May I" do not count. */
function addsInformation(text, said) {
  return wordsOf(text).some((word) => !said.has(word) && !QUESTION_WORDS.has(word));
}

/** Sentences that mean exactly `phrases.reversibility.irreversible`. */
const IRREVERSIBLE_SENTENCES = [/^(this|it) (cannot|can not|can['’]t) be undone$/i, /^((esto )?no se puede deshacer|(esto )?(es )?irreversible)$/i, /^a kò lè dá (èyí|a) padà$/i];

/** Whether a consequence only repeats the action, or the badge that says that the action cannot be undone. */
function isRepeated(event, consequence, action) {
  const sentence = String(consequence).trim().replace(/[.!]$/, "").normalize("NFC");
  return sentence === action.trim().replace(/[.!?]$/, "") || (isIrreversible(event) && IRREVERSIBLE_SENTENCES.some((known) => known.test(sentence)));
}

function isDangerous(event) {
  return event.risk_level === "high" || isIrreversible(event);
}

function isIrreversible(event) {
  return event.irreversible === true || event.reversibility === "irreversible";
}

/**
 * Returns the badges of a question: the risk, and whether the action can be undone, each with a `kind` and a `text`. No text from the agent
 * replaces them.
 */
function readRisks(event) {
  const { risk, reversibility } = phrases;
  const risks = Object.hasOwn(risk, event.risk_level) ? [{ kind: `risk-${event.risk_level}`, text: risk[event.risk_level] }] : [];
  if (isIrreversible(event)) risks.push({ kind: "irreversible", text: reversibility.irreversible });
  else if (event.reversibility === "reversible") risks.push({ kind: "reversible", text: reversibility.reversible });
  else if (event.reversibility === "reversible_with_effort") risks.push({ kind: "irreversible", text: reversibility.withEffort });
  return risks.length > 0 ? risks : [{ kind: "risk-unknown", text: phrases.riskUnknown }];
}

/** Returns the badge of a dangerous question that warns most: that the action cannot be undone, or else the risk. */
function strongestRisk(risks) {
  return risks.find((risk) => risk.text === phrases.reversibility.irreversible) ?? risks[0];
}

/** Maximum length of an answer that is announced again, in characters. */
const MAX_ANSWER_CHARS = 80;

/** Returns the outcome of a question as parts. The question follows them. */
export function describeOutcome(question, decision, by) {
  const result = question.isConfirmation ? (decision === "accept" ? "accepted" : "rejected") : "answered";
  const isOwnAnswer = question.sentAnswer !== undefined && (!question.isConfirmation || question.sentAnswer === decision);
  switch (by) {
    case "reply":
      // The person also hears which answer counted.
      if (isOwnAnswer && question.sentText !== undefined) return phraseAround(phrases.youAnswered, shorten(sanitize(question.sentText), MAX_ANSWER_CHARS));
      return [ownText(isOwnAnswer ? phrases[result].byYou : phrases[result].bySomeoneElse)];
    case "timeout":
      return [ownText(phrases.timedOut[result] ?? phrases.timedOut.other)];
    case "closure":
    case "unreachable":
      return [ownText(phrases.nobodyLeft[result] ?? phrases.nobodyLeft.other)];
    case "cancelled":
      return [ownText(phrases.withdrawn)];
    case "elsewhere":
      return [ownText(phrases.decidedWhileDisconnected)];
    default:
      return [ownText(question.isConfirmation && decision !== undefined ? phrases[result].other : phrases.answered.other)];
  }
}
