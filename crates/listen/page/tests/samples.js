// Events as a hub sends them, a second apart, and what an ear makes of them.

import { plain } from "../words.js";

let last = 0;

/** The time of the latest event. */
export const now = () => 1000 * last;

/** So many seconds pass. */
export function pass(seconds) {
  last += seconds;
}

export function event(type, more = {}) {
  last += 1;
  return {
    type: `aaep:agent.${type}`,
    event_id: `evt_${last}`,
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
    action: "Send 5 euro to Ben.",
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

export const says = (effects) => effects.filter((effect) => effect.say).map((effect) => plain(effect.say.parts));
export const logs = (effects) => effects.filter((effect) => effect.log).map((effect) => plain(effect.log.parts));
export const hear = (ear, ...events) => events.flatMap((one) => ear.hear(one, now()));
