// What a listener makes of the stream: each event once, sessions and questions as they stand, and what is to be said and logged of it.
// No clock and no page here: `hear` takes an event and the time, and gives effects for others to carry out, in their order:
//
//   { log: entry }            a line for the log: `parts`, `word` (what kind of line), `session`, `at`
//   { say: announcement }     something for the queue (queue.js)
//   { hush: session }         states of that session that wait to be said are stale
//   { ask: question }         a question is open
//   { moved: question }       a question can be answered for longer
//   { settled: question }     a question is over; `question.outcome` says how, in parts
//   { session: session }      a session is new, or has changed

import { phrases } from "./phrases.js";
import { agent, begin, duration, hubs, kind, named, object, own, plain, state, summary, tell, theirs } from "./words.js";

/** Ids that are remembered, so that what comes twice is heard once. */
export const REMEMBERED = 20000;
/** Questions that are kept open at once. The hub itself has no more than so many. */
export const MOST_QUESTIONS = 4096;
/** Sessions that are kept; of those that have ended, the oldest is forgotten first. */
export const MOST_SESSIONS = 200;
/** Letters of one output that are held for their boundary. */
const MOST_HELD = 16384;
/** A state is told if it lasts: by then nothing else was said of that session. */
const LASTS = { terse: 4000, normal: 1500, detailed: 0 };
/** A session that is quiet is heard of once in so long. */
const QUIET_FOR = 60000;
/** Of what came while the connection was lost, so much is said one by one. */
const FEW = 3;

export class Ear {
  sessions = new Map();
  questions = new Map();
  verbosity = "normal";
  quiet = false;
  #heard = new Set();
  #outputs = new Map();
  /** Deadlines that were told of questions before the questions themselves. */
  #moved = new Map();
  /** The least distance of our clock from the hub's that was seen: late events only make it larger. */
  #skew;
  /** While it is heard what was missed: what would have been said. */
  #missed;

  /** What the hub's clock says. */
  hubTime(now) {
    return now - (this.#skew ?? 0);
  }

  /** An event of the stream. */
  hear(event, now) {
    const id = event.event_id;
    if (typeof id !== "string" || typeof event.type !== "string") return [];
    if (this.#heard.has(id)) return [];
    this.#heard.add(id);
    if (this.#heard.size > REMEMBERED) this.#heard.delete(this.#heard.values().next().value);
    this.#setClock(event, now);
    const effects = [];
    const session = this.#session(event, now, effects);
    switch (kind(event)) {
      case "awaiting.confirmation":
      case "awaiting.clarification":
        this.#asked(event, session, now, effects);
        break;
      case "state.changed":
        this.#changed(event, session, now, effects);
        break;
      case "progress.updated":
        this.#progressed(event, session, now, effects);
        break;
      case "output.streaming":
        this.#wrote(event, session, now, effects);
        break;
      case "session.completed":
      case "session.errored":
      case "session.cancelled":
        this.#ended(event, session, now, effects);
        break;
      default:
        this.#told(event, session, now, effects, wordOf(event));
    }
    return this.#missed === undefined ? effects : this.#setAside(effects);
  }

  /** A message of the hub that is no event. */
  message(message, now) {
    if (!["sayso:gap", "subscription.close"].includes(message.type)) return [];
    const parts = [hubMessage(message)];
    return [{ log: { parts, word: "hub", at: now } }, { say: { parts } }];
  }

  /**
   * From here on it is heard what was missed (`again`), or how things stand (`anew`, `first`). Who was `told` that the connection was lost
   * is told which questions are still open.
   */
  catchUp(how, now, told = false) {
    const open = told ? [...this.questions.values()] : [];
    this.#missed = { how, since: now, said: new Map(), count: 0, questions: new Set(), sessions: new Set(), open };
  }

  /** That was all of it. */
  caughtUp(now) {
    const missed = this.#missed;
    this.#missed = undefined;
    if (missed === undefined) return [];
    const effects = [];
    if (missed.how === "anew") this.#forget(missed, now, effects);
    const said = [...missed.said.values()];
    const open = this.#stillOpen(missed, now);
    if (said.length <= FEW) return [...effects, ...said.map((one) => ({ say: one })), ...open];
    const sessions = new Set(said.map((one) => one.session));
    const text =
      missed.how === "again"
        ? phrases.meanwhile(said.length, sessions.size)
        : phrases.underWay(sessions.size);
    return [...effects, { say: { parts: [own(text)] } }, ...open];
  }

  /** The questions of before that are open after a return. */
  #stillOpen({ open }, now) {
    const still = open.filter((question) => this.questions.has(question.token) && question.mine === undefined);
    if (still.length === 0) return [];
    const [{ deadline, title }] = still;
    const left = own(phrases.left(duration((deadline - this.hubTime(now)) / 1000)));
    const parts = still.length === 1 ? [own(phrases.isStillOpen), ...title, left] : [own(phrases.areStillOpen(still.length))];
    return [{ say: { parts, key: "still open" } }];
  }

  /** The person's own answer is on its way; nothing holds until the hub says so. */
  answered(token, decision) {
    const question = this.questions.get(token);
    if (question !== undefined) question.mine = decision ?? "answer";
  }

  #setClock(event, now) {
    const at = Date.parse(event.timestamp);
    if (Number.isFinite(at)) this.#skew = Math.min(this.#skew ?? Infinity, now - at);
  }

  #session(event, now, effects) {
    const id = String(event.session_id ?? "");
    let session = this.sessions.get(id);
    if (session === undefined) {
      session = { id, agent: agent(event), title: undefined, state: undefined, ended: undefined, spoken: now, begun: now };
      this.sessions.set(id, session);
      if (this.sessions.size > MOST_SESSIONS) {
        const old = [...this.sessions.values()].find((one) => one.ended !== undefined);
        if (old !== undefined) {
          this.sessions.delete(old.id);
          effects.push({ session: { ...old, gone: true } });
        }
      }
    }
    this.#missed?.sessions.add(id);
    if (kind(event) === "session.started") {
      session.title = theirs(event, summary(event, "normal") ?? "");
      session.agent = agent(event);
    }
    effects.push({ session });
    return session;
  }

  /** Something that is logged and said. */
  #told(event, session, now, effects, word, more = {}) {
    const parts = tell(event, this.verbosity);
    if (parts.length === 0) return;
    // In the log the word says it already.
    const doubled = parts.length > 1 && parts[0].text.toLowerCase() === `${phrases.words[word]}:`;
    effects.push({ log: entry(event, session, word, this.#named(session, doubled ? parts.slice(1) : parts), now) });
    session.spoken = now;
    effects.push({ hush: session.id });
    const critical = event.urgency === "critical";
    effects.push({ say: { parts: this.#named(session, parts), critical, session: session.id, ...more } });
  }

  #changed(event, session, now, effects) {
    const settled = object(object(event.extensions).sayso);
    const question = this.questions.get(settled.reply_token);
    const same = event.from_state === event.to_state;
    const before = session.state;
    session.state = String(event.to_state ?? "");
    if (question !== undefined) {
      this.#settle(question, settled, now, effects);
      return;
    }
    const late = same && before === undefined;
    const parts = late ? [begin(phrases.aSessionOf), named(session.agent), own(phrases.isUnderWay(state(session.state)))] : tell(event, this.verbosity);
    if (same && !late) return;
    const told = late ? parts : this.#named(session, parts);
    effects.push({ log: entry(event, session, "state", told, now) });
    effects.push({ hush: session.id });
    if (session.state === "awaiting_input" && !late) return;
    const said = { parts: told, session: session.id, key: `state ${session.id}`, stale: true, late };
    const from = late ? 0 : now + (this.quiet ? Math.max(0, session.spoken + QUIET_FOR - now) : LASTS[this.verbosity]);
    effects.push({ say: { ...said, from } });
  }

  #progressed(event, session, now, effects) {
    // The hub's own marks: no agent can set them.
    const mark = object(object(event.extensions).sayso);
    if (typeof mark.extended === "string") {
      this.#extended(event, mark, session, now, effects);
      return;
    }
    const asked = this.questions.get(mark.reminds_of);
    const parts = asked === undefined ? tell(event, this.verbosity) : reminder(event, asked, this.verbosity);
    if (parts.length === 0) return;
    effects.push({ log: entry(event, session, "progress", this.#named(session, parts), now) });
    if (asked !== undefined) {
      const said = { parts: [...parts, ...asked.title], session: session.id, critical: true, key: `time ${asked.token}` };
      if (asked.mine === undefined) effects.push({ say: said });
      return;
    }
    const said = { parts: this.#named(session, parts), session: session.id, key: `progress ${session.id}` };
    if (!this.quiet || event.urgency === "critical") effects.push({ say: said });
  }

  /** A question can be answered for longer, whoever asked for that. */
  #extended(event, { extended, deadline }, session, now, effects) {
    const until = Date.parse(deadline);
    if (!Number.isFinite(until)) return;
    const question = this.questions.get(extended);
    if (question === undefined) {
      // Who joins late is told so in front of the question.
      if (this.#moved.size >= MOST_QUESTIONS) this.#moved.delete(this.#moved.keys().next().value);
      this.#moved.set(extended, until);
      return;
    }
    const mine = question.wished === true;
    question.wished = false;
    if (until <= question.deadline) return;
    question.deadline = until;
    const left = duration((until - this.hubTime(now)) / 1000);
    const parts = mine ? [own(`${phrases.hasMoreTime} ${phrases.left(left)}`)] : [own(`${phrases.isMoreTime} ${phrases.leftToAnswer(left)}`), ...question.title];
    effects.push({ log: entry(event, session, "ask", parts, now) }, { moved: question });
    if (question.mine === undefined) effects.push({ say: { parts, session: session.id, key: `time ${question.token}` } });
  }

  #wrote(event, session, now, effects) {
    const id = `${session.id} ${event.output_id ?? ""}`;
    const held = (this.#outputs.get(id) ?? "") + String(event.chunk ?? "");
    const whole = event.complete === true || !["none", "word"].includes(event.coalesce_hint) || held.length > MOST_HELD;
    this.#outputs.delete(id);
    if (!whole) {
      this.#outputs.set(id, held);
      return;
    }
    if (held.trim() !== "") this.#told({ ...event, chunk: held.trim() }, session, now, effects, "agent");
  }

  #asked(event, session, now, effects) {
    const token = event.reply_token;
    if (typeof token !== "string" || this.questions.has(token)) {
      this.#missed?.questions.add(token);
      return;
    }
    if (this.questions.size >= MOST_QUESTIONS) {
      const parts = [own(phrases.tooManyQuestions(MOST_QUESTIONS))];
      effects.push({ log: entry(event, session, "ask", parts, now) }, { say: { parts, critical: true, key: "too many questions" } });
      return;
    }
    const question = asQuestion(event, session, this.verbosity);
    const asked = Date.parse(event.timestamp);
    question.asked = Number.isFinite(asked) ? asked : this.hubTime(now);
    question.deadline = Math.max(question.asked + question.seconds * 1000, this.#moved.get(token) ?? 0);
    this.#moved.delete(token);
    question.text.push(own(`${phrases.youHave(duration((question.deadline - this.hubTime(now)) / 1000))} ${phrases.silence[question.silence]}`));
    this.questions.set(token, question);
    this.#missed?.questions.add(token);
    session.state = "awaiting_input";
    session.spoken = now;
    effects.push({ log: entry(event, session, "ask", question.text, now) }, { hush: session.id }, { ask: question });
    effects.push({ say: { parts: question.text, critical: true, show: token, session: session.id } });
  }

  #settle(question, { decision, by }, now, effects) {
    this.questions.delete(question.token);
    question.outcome = [own(outcome(question, decision, by)), ...question.title];
    const session = this.sessions.get(question.session);
    effects.push({ log: { parts: question.outcome, word: "answer", session: question.session, at: now } });
    // What the person has just decided is confirmed before the next question is asked.
    const say = { parts: question.outcome, session: question.session, critical: true, first: question.mine !== undefined };
    effects.push({ hush: question.session }, { settled: question, say });
    if (session !== undefined) session.spoken = now;
  }

  #ended(event, session, now, effects) {
    session.state = undefined;
    session.ended = { "session.completed": "done", "session.errored": "failed", "session.cancelled": "stopped" }[kind(event)];
    for (const question of [...this.questions.values()].filter((one) => one.session === session.id)) {
      this.#settle(question, { by: "cancelled" }, now, effects);
    }
    for (const id of [...this.#outputs.keys()].filter((id) => id.startsWith(`${session.id} `))) this.#outputs.delete(id);
    this.#told(event, session, now, effects, kind(event) === "session.errored" ? "error" : "session");
  }

  /** While it is heard what was missed, only what is critical is said at once. */
  #setAside(effects) {
    return effects.map((effect) => {
      const { say, ...rest } = effect;
      const { said } = this.#missed;
      if (effect.hush !== undefined) said.delete(`state ${effect.hush}`);
      if (say === undefined || say.critical) return effect;
      // Who hears how things stand has missed nothing that is told otherwise.
      if (this.#missed.how !== "again" && !say.late) return effect;
      this.#missed.count += 1;
      const key = say.key ?? this.#missed.count;
      said.delete(key);
      said.set(key, { ...say, from: 0 });
      return rest;
    });
  }

  /** How things stand was told anew: what was not told is over. */
  #forget(missed, now, effects) {
    for (const question of [...this.questions.values()]) {
      if (!missed.questions.has(question.token)) this.#settle(question, { by: "elsewhere" }, now, effects);
    }
    for (const session of this.sessions.values()) {
      if (session.ended === undefined && !missed.sessions.has(session.id)) {
        session.ended = "missed";
        effects.push({ session });
      }
    }
  }

  /** Who speaks is said where more than one could. */
  #named(session, parts) {
    const open = [...this.sessions.values()].filter((one) => one.ended === undefined || one === session);
    if (open.length < 2 || parts[0]?.text === session.agent) return parts;
    const alike = open.filter((one) => one.agent === session.agent).length > 1;
    const title = alike && session.title ? [session.title] : [];
    return [named(session.agent, ": "), ...title, ...parts];
  }
}

/** A question as it is shown and answered. */
function asQuestion(event, session, verbosity) {
  const confirms = kind(event) === "awaiting.confirmation";
  const asked = confirms ? event.action : event.question;
  const title = [theirs(event, asked ?? "")];
  const seconds = Number.isFinite(event.timeout_seconds) ? event.timeout_seconds : 60;
  const text = [...title];
  if (confirms) {
    if (event.consequence) text.push(theirs(event, event.consequence));
    text.push(own(risk(event)));
  } else if (event.context) {
    text.push(theirs(event, event.context));
  }
  const silence = confirms ? (event.default_decision === "accept" ? "yes" : "no") : "other";
  const body = [...text];
  const words = summary(event, verbosity);
  // It says the same in other words: more to read, for those who want that.
  const details = verbosity !== "detailed" || words === undefined || words === asked ? [] : [theirs(event, words)];
  const allowed = Array.isArray(event.allowed_replies) ? event.allowed_replies : ["accept", "reject"];
  const choices = (Array.isArray(event.choices) ? event.choices : [])
    .map(object)
    .filter((choice) => typeof choice.value === "string")
    .map((choice) => ({ value: choice.value, label: theirs(event, choice.label ?? choice.value) }));
  const kinds = Array.isArray(event.accepted_response_kinds) ? event.accepted_response_kinds : [];
  return {
    token: event.reply_token,
    session: session.id,
    agent: session.agent,
    confirms,
    title,
    body,
    text,
    silence,
    details,
    seconds,
    allowed,
    choices,
    kinds: kinds.length > 0 ? kinds : [choices.length > 0 ? "multiple_choice" : "freetext"],
    mine: undefined,
    wished: false,
    outcome: undefined,
  };
}

function risk(event) {
  const level = Object.hasOwn(phrases.risk, event.risk_level) ? phrases.risk[event.risk_level] : "";
  const irreversible = event.irreversible === true || event.reversibility === "irreversible";
  const back = irreversible
    ? phrases.undone.never
    : { reversible: phrases.undone.easily, reversible_with_effort: phrases.undone.hardly }[event.reversibility] ?? "";
  return [level, back].filter(Boolean).join(" ") || phrases.riskUnsaid;
}

function outcome(question, decision, by) {
  const became = question.confirms ? (decision === "accept" ? "accepted" : "rejected") : "answered";
  const mine = question.mine !== undefined && (!question.confirms || question.mine === decision);
  switch (by) {
    case "reply":
      return mine ? phrases[became].mine : phrases[became].elses;
    case "timeout":
      return phrases.late[became] ?? phrases.late.other;
    case "closure":
    case "unreachable":
      return phrases.nobody[became] ?? phrases.nobody.other;
    case "cancelled":
      return phrases.withdrawn;
    case "elsewhere":
      return phrases.elsewhere;
    default:
      return question.confirms && decision !== undefined ? phrases[became].other : phrases.answered.other;
  }
}

function wordOf(event) {
  const word = { tool: "tool", session: "session", handoff: "handoff" };
  return word[kind(event).split(".")[0]] ?? "other";
}

function entry(event, session, word, parts, now) {
  const at = Date.parse(event.timestamp);
  return { parts, word, session: session.id, agent: session.agent, at: Number.isFinite(at) ? at : now };
}

/** That little time is left: in the hub's words, which are English, or for others in ours. */
function reminder(event, question, verbosity) {
  const parts = tell(event, verbosity);
  const at = Date.parse(event.timestamp);
  if (!Number.isFinite(at) || parts.every((part) => part.lang.split("-")[0].toLowerCase() === phrases.lang)) return parts;
  return [own(phrases.leftToAnswer(duration((question.deadline - at) / 1000)))];
}

/** What the hub says that is no event: in its own words, which are English, or for others in ours. */
function hubMessage({ type, reason_code: reason, reason_message: words }) {
  const known = type === "sayso:gap" ? "gap" : reason;
  if (phrases.lang !== "en" && Object.hasOwn(phrases.hubSays, known)) return own(phrases.hubSays[known]);
  return words ? hubs(words) : own(phrases.hubEnded);
}

export { plain };
