// A question as the page shows and announces it, and the wording of its outcome.

import { phrases } from "./phrases.js";
import { MAX_SHORT_CALL_CHARS, exactCallText, readCall } from "./question_call.js";
import { asObject, eventKind, ownText, producerText, summaryText } from "./wording.js";

/** Creates a question from its event. */
export function createQuestion(event, session, verbosity) {
  const isConfirmation = eventKind(event) === "awaiting.confirmation";
  const subject = isConfirmation ? event.action : event.question;
  const title = [producerText(event, subject ?? "")];
  const call = isConfirmation ? readCall(event) : undefined;
  const explanation = isConfirmation ? event.consequence : event.context;
  const consequence = explanation ? producerText(event, explanation) : undefined;
  // The dialog shows the whole call, even if it is too long to be announced.
  const exactCall = call?.isBound ? exactCallText(call) : undefined;
  const warning = isConfirmation && isDangerous(event) && exactCall === undefined ? ownText(phrases.answerNotBound) : undefined;
  const text = [...title];
  if (consequence !== undefined) text.push(consequence);
  if (exactCall !== undefined) text.push([...call.text].length <= MAX_SHORT_CALL_CHARS ? exactCall : ownText(phrases.exactCallInDialog));
  if (isConfirmation) text.push(ownText(describeRisk(event)));
  if (warning !== undefined) text.push(warning);
  const summary = summaryText(event, verbosity);
  // The summary repeats the question in other words, so it is shown only at the verbosity `detailed`.
  const details = verbosity !== "detailed" || summary === undefined || summary === subject ? [] : [producerText(event, summary)];
  const choices = (Array.isArray(event.choices) ? event.choices : [])
    .map(asObject)
    .filter((choice) => typeof choice.value === "string")
    .map((choice) => ({ value: choice.value, label: producerText(event, choice.label ?? choice.value) }));
  const responseKinds = Array.isArray(event.accepted_response_kinds) ? event.accepted_response_kinds : [];
  return {
    token: event.reply_token,
    session: session.id,
    agent: session.agent,
    isConfirmation,
    isDangerous: isConfirmation && isDangerous(event),
    title,
    consequence,
    exactCall,
    risks: isConfirmation ? readRisks(event) : [],
    warning,
    text,
    lang: phrases.lang,
    defaultDecision: readDefaultDecision(event),
    details,
    timeoutSeconds: Number.isFinite(event.timeout_seconds) ? event.timeout_seconds : 60,
    allowedReplies: Array.isArray(event.allowed_replies) ? event.allowed_replies : ["accept", "reject"],
    choices,
    responseKinds: responseKinds.length > 0 ? responseKinds : [choices.length > 0 ? "multiple_choice" : "freetext"],
    sentAnswer: undefined,
    extensionRequested: false,
    outcome: undefined,
  };
}

/** Returns the name of the phrase in `withoutAnswer` for the default of a question. */
export function readDefaultDecision(event) {
  if (eventKind(event) !== "awaiting.confirmation") return "other";
  return event.default_decision === "accept" ? "accept" : "reject";
}

function isDangerous(event) {
  return event.risk_level === "high" || isIrreversible(event);
}

function isIrreversible(event) {
  return event.irreversible === true || event.reversibility === "irreversible";
}

/** Returns the badges of a question: the risk, and whether the action can be undone, each with a `kind` and a `text`. */
function readRisks(event) {
  const { risk, reversibility } = phrases;
  const risks = Object.hasOwn(risk, event.risk_level) ? [{ kind: `risk-${event.risk_level}`, text: risk[event.risk_level] }] : [];
  if (isIrreversible(event)) risks.push({ kind: "irreversible", text: reversibility.irreversible });
  else if (event.reversibility === "reversible") risks.push({ kind: "reversible", text: reversibility.reversible });
  else if (event.reversibility === "reversible_with_effort") risks.push({ kind: "irreversible", text: reversibility.withEffort });
  return risks.length > 0 ? risks : [{ kind: "risk-unknown", text: phrases.riskUnknown }];
}

/** Describes the risk. No text of the agent replaces the statement that an action cannot be undone, unless the consequence is exactly this sentence. */
function describeRisk(event) {
  const isStated = String(event.consequence ?? "").trim() === phrases.reversibility.irreversible;
  const risks = readRisks(event).filter(({ kind, text }) => !(isStated && kind === "irreversible" && text === phrases.reversibility.irreversible));
  return risks.map(({ text }) => text).join(" ") || phrases.riskUnknown;
}

export function describeOutcome(question, decision, by) {
  const result = question.isConfirmation ? (decision === "accept" ? "accepted" : "rejected") : "answered";
  const isOwnAnswer = question.sentAnswer !== undefined && (!question.isConfirmation || question.sentAnswer === decision);
  switch (by) {
    case "reply":
      return isOwnAnswer ? phrases[result].byYou : phrases[result].bySomeoneElse;
    case "timeout":
      return phrases.timedOut[result] ?? phrases.timedOut.other;
    case "closure":
    case "unreachable":
      return phrases.nobodyLeft[result] ?? phrases.nobodyLeft.other;
    case "cancelled":
      return phrases.withdrawn;
    case "elsewhere":
      return phrases.decidedWhileDisconnected;
    default:
      return question.isConfirmation && decision !== undefined ? phrases[result].other : phrases.answered.other;
  }
}
