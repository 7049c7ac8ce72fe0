// A hand-off: an agent asks somebody to take over. What the page shows about it, and the wording of its outcome.

import { phrases } from "./phrases.js";
import { describeContext } from "./question_call.js";
import { describeUri } from "./uri.js";
import { asObject, labelled, phraseAround, producerText, sanitize, shorten } from "./wording.js";

/** Urgencies, the most urgent first. The page lists hand-offs in this order. */
const URGENCIES = ["high", "medium", "low"];

/** Creates a hand-off from its event, or returns `undefined` if the hub does not say that it can be answered. */
export function createHandoff(event, agent, askedAt) {
  const { reply_token: token, deadline } = asObject(asObject(asObject(event.extensions).sayso).handoff);
  const until = Date.parse(deadline);
  if (typeof token !== "string" || !Number.isFinite(until)) return undefined;
  const rank = URGENCIES.indexOf(event.urgency_for_handoff);
  return {
    token,
    session: event.session_id,
    agent,
    reason: producerText(event, shorten(event.reason ?? "")),
    isUrgent: event.urgency_for_handoff === "high",
    rank: rank < 0 ? 1 : rank,
    details: [labelled(phrases.handoffTarget, describeUri(event.target_uri)), labelled(phrases.handoffContext, describeContext(event.packaged_context))].filter((line) => line.length > 0),
    askedAt,
    deadline: until,
    sentAnswer: undefined,
  };
}

/** Describes the outcome of a hand-off. `isOwn` says whether this person's answer counted. */
export function describeHandoffOutcome(event, agent, { outcome, note }, isOwn) {
  const { handoffOutcome } = phrases;
  const phrase = {
    acknowledged: isOwn ? handoffOutcome.takenByYou : handoffOutcome.taken,
    rejected: isOwn ? handoffOutcome.declinedByYou : handoffOutcome.declined,
    timeout: handoffOutcome.timeout,
    unreachable: handoffOutcome.unreachable,
  }[outcome];
  // The note was written by a person, in a language that the hub does not know.
  const said = typeof note === "string" && !isOwn ? { text: shorten(sanitize(note)), lang: "", dir: "auto" } : undefined;
  return [...phraseAround(phrase ?? handoffOutcome.withdrawn, agent), ...labelled(phrases.handoffNote, said)];
}
