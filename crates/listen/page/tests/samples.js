// Sample events as a hub sends them, one second apart, and helpers that read the effects of a subscriber.

import { joinParts } from "../wording.js";

let seconds = 0;

/** The time of the latest event, in milliseconds. */
export const now = () => 1000 * seconds;

/** Advances the time of the next event by this many seconds. */
export function advance(durationSeconds) {
  seconds += durationSeconds;
}

export function event(type, more = {}) {
  seconds += 1;
  return {
    "@context": "https://aaep-protocol.org/context/v1",
    type: `aaep:agent.${type}`,
    event_id: `evt_${seconds}`,
    session_id: "sess_1",
    timestamp: new Date(now()).toISOString(),
    producer: { agent_id: "bank", agent_name: "Bank" },
    localization_hints: { primary_language: "en" },
    ...more,
  };
}

export const started = (more) => event("session.started", { summary_normal: "Paying Ben.", ...more });
export const confirmation = (more) =>
  event("awaiting.confirmation", {
    action: "Send 5 euros to Ben.",
    consequence: "The money is gone.",
    reply_token: "rpl_1",
    timeout_seconds: 120,
    default_decision: "reject",
    risk_level: "high",
    irreversible: true,
    urgency: "critical",
    ...more,
  });
export const resolution = (sayso, more) =>
  event("state.changed", { from_state: "awaiting_input", to_state: "thinking", extensions: { sayso }, ...more });

export const announcedTexts = (effects) => effects.filter((effect) => effect.announce).map((effect) => joinParts(effect.announce.parts));
export const loggedTexts = (effects) => effects.filter((effect) => effect.log).map((effect) => joinParts(effect.log.parts));
export const receive = (subscriber, ...events) => events.flatMap((one) => subscriber.receive(one, now()));
