// The subscriber core: drops duplicate events, tracks sessions and questions, and turns events into announcements and log entries.
// It has no clock and no DOM. `receive` takes an event and the time, and returns effects that the caller performs in order:
//
//   { log: entry }                an entry for the log: `parts`, `category`, `session`, `at`
//   { announce: announcement }    an announcement for the queue (queue.js)
//   { dropStates: sessionId }     the queued state announcements of this session are stale
//   { opened: question }          a question was asked
//   { extended: question }        the deadline of a question was extended
//   { closed: question }          a question was closed; `question.outcome` holds the result as parts
//   { session: session }          a session is new or has changed

import { phrases } from "./phrases.js";
import { MAX_SHORT_CALL_CHARS, exactCallText, readCall } from "./question_call.js";
import { agentName, asObject, describeEvent, eventKind, formatDuration, hubText, isNameVerified, nameText, ownLeadIn, ownText, producerText, stateLabel, summaryText, verifiedAgentId } from "./wording.js";

/** Maximum number of event ids that are remembered to detect duplicates. */
export const MAX_REMEMBERED_IDS = 20000;
/** Maximum number of open questions. The hub has the same limit. */
export const MAX_QUESTIONS = 4096;
/** Number of sessions above which the oldest ended session is dropped. */
export const MAX_SESSIONS = 200;
/** Maximum number of characters of one output that are held until the end of a sentence, of a paragraph or of the output arrives. */
const MAX_HELD_CHARS = 16384;
/** How long a state must last before it is announced, by verbosity, in milliseconds. Any later announcement of the session, except progress, replaces it. */
const STATE_DELAY_MS = { terse: 4000, normal: 1500, detailed: 0 };
/** Minimum time between a session's last announcement and its next state announcement in quiet mode, in milliseconds. */
const QUIET_INTERVAL_MS = 60000;
/** Maximum number of missed announcements that are announced one by one after a reconnect. */
const MAX_INDIVIDUAL_CATCH_UP_ANNOUNCEMENTS = 3;

export class Subscriber {
  sessions = new Map();
  questions = new Map();
  verbosity = "normal";
  quiet = false;
  #seenIds = new Set();
  #outputs = new Map();
  /** Extended deadlines by reply token that arrived before their questions. */
  #earlyDeadlines = new Map();
  /** The smallest observed difference between the local clock and the hub's, in milliseconds. A delayed event can only increase the difference. */
  #skew;
  /** The state of a catch-up after (re)connecting, with the announcements held back so far. */
  #catchUp;

  /** Returns the time of the hub's clock, in milliseconds. */
  hubTime(now) {
    return now - (this.#skew ?? 0);
  }

  /** Handles an event from the stream and returns its effects. */
  receive(event, now) {
    const id = event.event_id;
    if (typeof id !== "string" || typeof event.type !== "string") return [];
    if (this.#seenIds.has(id)) return [];
    this.#seenIds.add(id);
    if (this.#seenIds.size > MAX_REMEMBERED_IDS) this.#seenIds.delete(this.#seenIds.values().next().value);
    this.#updateSkew(event, now);
    const effects = [];
    const session = this.#trackSession(event, now, effects);
    switch (eventKind(event)) {
      case "awaiting.confirmation":
      case "awaiting.clarification":
        this.#onQuestion(event, session, now, effects);
        break;
      case "state.changed":
        this.#onStateChanged(event, session, now, effects);
        break;
      case "progress.updated":
        this.#onProgress(event, session, now, effects);
        break;
      case "output.streaming":
        this.#onOutput(event, session, now, effects);
        break;
      case "session.completed":
      case "session.errored":
      case "session.cancelled":
        this.#onSessionEnd(event, session, now, effects);
        break;
      default:
        this.#report(event, session, now, effects, categoryOf(event));
    }
    return this.#catchUp === undefined ? effects : this.#holdBackAnnouncements(effects);
  }

  /** Handles a hub message that is not an event and returns its effects. */
  receiveMessage(message, now) {
    if (!["sayso:gap", "subscription.close"].includes(message.type)) return [];
    const parts = [describeHubMessage(message)];
    return [{ log: { parts, category: "hub", at: now } }, { announce: { parts } }];
  }

  /**
   * Starts a catch-up. The events that follow were missed (`resumed`), or describe the current state (`first` on the first connection,
   * `snapshot` on a later one). If the person was notified that the connection was lost, `endCatchUp` announces the questions that are still open.
   */
  startCatchUp(mode, now, wasLossAnnounced = false) {
    const openBefore = wasLossAnnounced ? [...this.questions.values()] : [];
    this.#catchUp = { mode, since: now, announcements: new Map(), count: 0, questions: new Set(), sessions: new Set(), openBefore };
  }

  /** Ends the catch-up. Returns the announcements that were held back, or one that gives their number if there are many. */
  endCatchUp(now) {
    const catchUp = this.#catchUp;
    this.#catchUp = undefined;
    if (catchUp === undefined) return [];
    const effects = [];
    if (catchUp.mode === "snapshot") this.#closeUnlisted(catchUp, now, effects);
    const announcements = [...catchUp.announcements.values()];
    const stillOpen = this.#announceStillOpen(catchUp, now);
    if (announcements.length <= MAX_INDIVIDUAL_CATCH_UP_ANNOUNCEMENTS) return [...effects, ...announcements.map((announce) => ({ announce })), ...stillOpen];
    const sessions = new Set(announcements.map(({ session }) => session));
    const text =
      catchUp.mode === "resumed"
        ? phrases.missedMessages(announcements.length, sessions.size)
        : phrases.sessionsRunning(sessions.size);
    return [...effects, { announce: { parts: [ownText(text)] } }, ...stillOpen];
  }

  /** Returns an announcement of the questions that were open before the connection was lost and are still open. */
  #announceStillOpen({ openBefore }, now) {
    const stillOpen = openBefore.filter((question) => this.questions.has(question.token) && question.sentAnswer === undefined);
    if (stillOpen.length === 0) return [];
    const [{ deadline, title }] = stillOpen;
    const timeLeft = ownText(phrases.timeLeft(formatDuration((deadline - this.hubTime(now)) / 1000)));
    const parts = stillOpen.length === 1 ? [ownText(phrases.questionStillOpen), ...title, timeLeft] : [ownText(phrases.questionsStillOpen(stillOpen.length))];
    return [{ announce: { parts, key: "still open" } }];
  }

  /** Records that the person has sent an answer. It counts only once the hub confirms it. */
  recordSentAnswer(token, decision) {
    const question = this.questions.get(token);
    if (question !== undefined) question.sentAnswer = decision ?? "answer";
  }

  #updateSkew(event, now) {
    const at = Date.parse(event.timestamp);
    if (Number.isFinite(at)) this.#skew = Math.min(this.#skew ?? Infinity, now - at);
  }

  #trackSession(event, now, effects) {
    const id = String(event.session_id ?? "");
    let session = this.sessions.get(id);
    if (session === undefined) {
      session = { id, agent: agentName(event), title: undefined, state: undefined, ended: undefined, lastAnnouncedAt: now };
      this.sessions.set(id, session);
      if (this.sessions.size > MAX_SESSIONS) {
        const oldestEnded = [...this.sessions.values()].find((one) => one.ended !== undefined);
        if (oldestEnded !== undefined) {
          this.sessions.delete(oldestEnded.id);
          effects.push({ session: { ...oldestEnded, removed: true } });
        }
      }
    }
    this.#catchUp?.sessions.add(id);
    if (eventKind(event) === "session.started") {
      session.title = producerText(event, summaryText(event, "normal") ?? "");
    }
    if (eventKind(event) === "session.started" || isNameVerified(event)) {
      session.agent = agentName(event);
      session.agentId = verifiedAgentId(event);
    }
    if (isNameVerified(event)) session.verifiedProducer = producerKey(event);
    effects.push({ session });
    return session;
  }

  /** Logs an event and announces it. */
  #report(event, session, now, effects, category) {
    const parts = describeEvent(event, this.verbosity);
    if (parts.length === 0) return;
    // The log shows the category in front of each entry, so a first part that repeats it is left out.
    const repeatsCategory = parts.length > 1 && parts[0].text.toLowerCase() === `${phrases.categoryLabels[category]}:`;
    effects.push({ log: createLogEntry(event, session, category, this.#withAgentName(session, repeatsCategory ? parts.slice(1) : parts), now) });
    session.lastAnnouncedAt = now;
    effects.push({ dropStates: session.id });
    const critical = event.urgency === "critical";
    effects.push({ announce: { parts: this.#withAgentName(session, parts), critical, session: session.id } });
  }

  #onStateChanged(event, session, now, effects) {
    const resolution = asObject(asObject(event.extensions).sayso);
    const question = this.questions.get(resolution.reply_token);
    const isUnchanged = event.from_state === event.to_state;
    const previousState = session.state;
    session.state = String(event.to_state ?? "");
    if (question !== undefined) {
      this.#closeQuestion(question, resolution, now, effects);
      return;
    }
    // To a listener that joins late, the hub reports the current state with the same from_state and to_state.
    const isLateJoin = isUnchanged && previousState === undefined;
    if (isUnchanged && !isLateJoin) return;
    const parts = isLateJoin
      ? [ownLeadIn(phrases.sessionOf), nameText(session.agent), ownText(phrases.isRunning(stateLabel(session.state)))]
      : this.#withAgentName(session, describeEvent(event, this.verbosity));
    effects.push({ log: createLogEntry(event, session, "state", parts, now) });
    effects.push({ dropStates: session.id });
    if (session.state === "awaiting_input" && !isLateJoin) return;
    const delay = this.quiet ? Math.max(0, session.lastAnnouncedAt + QUIET_INTERVAL_MS - now) : STATE_DELAY_MS[this.verbosity];
    const notBefore = isLateJoin ? 0 : now + delay;
    effects.push({ announce: { parts, session: session.id, key: `state ${session.id}`, isState: true, isLateJoin, notBefore } });
  }

  #onProgress(event, session, now, effects) {
    // Only the hub can set this extension; agents cannot.
    const hubExtension = asObject(asObject(event.extensions).sayso);
    if (typeof hubExtension.extended === "string") {
      this.#onExtension(event, hubExtension, session, now, effects);
      return;
    }
    const question = this.questions.get(hubExtension.reminds_of);
    const parts = question === undefined ? describeEvent(event, this.verbosity) : describeReminder(event, question, this.verbosity);
    if (parts.length === 0) return;
    effects.push({ log: createLogEntry(event, session, "progress", this.#withAgentName(session, parts), now) });
    if (question !== undefined) {
      const announce = { parts: [...parts, ...question.title], session: session.id, critical: true, key: `time ${question.token}` };
      if (question.sentAnswer === undefined) effects.push({ announce });
      return;
    }
    const announce = { parts: this.#withAgentName(session, parts), session: session.id, key: `progress ${session.id}` };
    if (!this.quiet || event.urgency === "critical") effects.push({ announce });
  }

  /** Handles a deadline extension, which any listener may have requested. */
  #onExtension(event, { extended, deadline }, session, now, effects) {
    const newDeadline = Date.parse(deadline);
    if (!Number.isFinite(newDeadline)) return;
    const question = this.questions.get(extended);
    if (question === undefined) {
      // To a listener that joins late, the hub sends the extension before the question.
      if (this.#earlyDeadlines.size >= MAX_QUESTIONS) this.#earlyDeadlines.delete(this.#earlyDeadlines.keys().next().value);
      this.#earlyDeadlines.set(extended, newDeadline);
      return;
    }
    const wasRequestedHere = question.extensionRequested === true;
    question.extensionRequested = false;
    if (newDeadline <= question.deadline) return;
    question.deadline = newDeadline;
    const timeLeft = formatDuration((newDeadline - this.hubTime(now)) / 1000);
    const parts = wasRequestedHere
      ? [ownText(`${phrases.extensionGranted} ${phrases.timeLeft(timeLeft)}`)]
      : [ownText(`${phrases.deadlineExtended} ${phrases.timeLeftToAnswer(timeLeft)}`), ...question.title];
    effects.push({ log: createLogEntry(event, session, "ask", parts, now) }, { extended: question });
    if (question.sentAnswer === undefined) effects.push({ announce: { parts, session: session.id, key: `time ${question.token}` } });
  }

  #onOutput(event, session, now, effects) {
    const id = `${session.id} ${event.output_id ?? ""}`;
    const held = (this.#outputs.get(id) ?? "") + String(event.chunk ?? "");
    const isReadyToAnnounce = event.complete === true || !["none", "word"].includes(event.coalesce_hint) || held.length > MAX_HELD_CHARS;
    this.#outputs.delete(id);
    if (!isReadyToAnnounce) {
      this.#outputs.set(id, held);
      return;
    }
    if (held.trim() !== "") this.#report({ ...event, chunk: held.trim() }, session, now, effects, "agent");
  }

  #onQuestion(event, session, now, effects) {
    const token = event.reply_token;
    if (typeof token !== "string" || this.questions.has(token)) {
      this.#catchUp?.questions.add(token);
      return;
    }
    if (this.questions.size >= MAX_QUESTIONS) {
      const parts = [ownText(`${phrases.tooManyQuestions(MAX_QUESTIONS)} ${phrases.withoutAnswer[readDefaultDecision(event)]}`)];
      effects.push({ log: createLogEntry(event, session, "ask", parts, now) }, { announce: { parts, critical: true, key: "too many questions" } });
      return;
    }
    const question = createQuestion(event, session, this.verbosity);
    question.agent = this.#isSameVerifiedAgent(event, session) ? session.agent : agentName(event);
    const askedAt = Date.parse(event.timestamp);
    question.askedAt = Number.isFinite(askedAt) ? askedAt : this.hubTime(now);
    question.deadline = Math.max(question.askedAt + question.timeoutSeconds * 1000, this.#earlyDeadlines.get(token) ?? 0);
    this.#earlyDeadlines.delete(token);
    question.text.push(ownText(`${phrases.timeLimit(formatDuration((question.deadline - this.hubTime(now)) / 1000))} ${phrases.withoutAnswer[question.defaultDecision]}`));
    this.questions.set(token, question);
    this.#catchUp?.questions.add(token);
    session.state = "awaiting_input";
    session.lastAnnouncedAt = now;
    effects.push({ log: createLogEntry(event, session, "ask", question.text, now) }, { dropStates: session.id }, { opened: question });
    effects.push({ announce: { parts: question.text, critical: true, questionToken: token, session: session.id } });
  }

  /** Whether an event comes from the agent whose name the hub has verified for the session. */
  #isSameVerifiedAgent(event, session) {
    return session.verifiedProducer !== undefined && session.verifiedProducer === producerKey(event);
  }

  #closeQuestion(question, { decision, by }, now, effects) {
    this.questions.delete(question.token);
    question.outcome = [ownText(describeOutcome(question, decision, by)), ...question.title];
    const session = this.sessions.get(question.session);
    effects.push({ log: { parts: question.outcome, category: "answer", session: question.session, at: now } });
    // The person's own decision is confirmed before the next question is asked.
    const announce = { parts: question.outcome, session: question.session, critical: true, first: question.sentAnswer !== undefined };
    effects.push({ dropStates: question.session }, { closed: question, announce });
    if (session !== undefined) session.lastAnnouncedAt = now;
  }

  #onSessionEnd(event, session, now, effects) {
    session.state = undefined;
    session.ended = { "session.completed": "done", "session.errored": "failed", "session.cancelled": "stopped" }[eventKind(event)];
    for (const question of [...this.questions.values()].filter((one) => one.session === session.id)) {
      this.#closeQuestion(question, { by: "cancelled" }, now, effects);
    }
    for (const id of [...this.#outputs.keys()].filter((id) => id.startsWith(`${session.id} `))) this.#outputs.delete(id);
    this.#report(event, session, now, effects, eventKind(event) === "session.errored" ? "error" : "session");
  }

  /** During a catch-up: moves announcements that are not critical from the effects into the catch-up. */
  #holdBackAnnouncements(effects) {
    return effects.map((effect) => {
      const { announce, ...rest } = effect;
      const { announcements } = this.#catchUp;
      if (effect.dropStates !== undefined) announcements.delete(`state ${effect.dropStates}`);
      if (announce === undefined || announce.critical) return effect;
      // In a snapshot, only the current states of sessions are held back; everything else is new.
      if (this.#catchUp.mode !== "resumed" && !announce.isLateJoin) return effect;
      this.#catchUp.count += 1;
      const key = announce.key ?? this.#catchUp.count;
      announcements.delete(key);
      announcements.set(key, { ...announce, notBefore: 0 });
      return rest;
    });
  }

  /** Closes the questions and sessions that a snapshot did not list. */
  #closeUnlisted(catchUp, now, effects) {
    for (const question of [...this.questions.values()]) {
      if (!catchUp.questions.has(question.token)) this.#closeQuestion(question, { by: "elsewhere" }, now, effects);
    }
    for (const session of this.sessions.values()) {
      if (session.ended === undefined && !catchUp.sessions.has(session.id)) {
        session.ended = "missed";
        effects.push({ session });
      }
    }
  }

  /** Adds the agent's name in front if several sessions are open. If open sessions share that name, also adds the session's title. */
  #withAgentName(session, parts) {
    const open = [...this.sessions.values()].filter((one) => one.ended === undefined || one === session);
    if (open.length < 2 || parts[0]?.text === session.agent) return parts;
    const isNameShared = open.filter((one) => one.agent === session.agent).length > 1;
    const title = isNameShared && session.title ? [session.title] : [];
    return [nameText(session.agent, ": "), ...title, ...parts];
  }
}

/** Creates a question from its event. */
function createQuestion(event, session, verbosity) {
  const isConfirmation = eventKind(event) === "awaiting.confirmation";
  const subject = isConfirmation ? event.action : event.question;
  const title = [producerText(event, subject ?? "")];
  const timeoutSeconds = Number.isFinite(event.timeout_seconds) ? event.timeout_seconds : 60;
  const text = [...title];
  const call = isConfirmation ? readCall(event) : undefined;
  const exactCall = call && exactCallText(call);
  const isShort = call !== undefined && [...call.text].length <= MAX_SHORT_CALL_CHARS;
  if (isConfirmation) {
    if (event.consequence) text.push(producerText(event, event.consequence));
    if (call?.isBound) text.push(isShort ? exactCall : ownText(phrases.exactCallInDialog));
    text.push(ownText(describeRisk(event)));
    if (isDangerous(event) && !call?.isBound) text.push(ownText(phrases.answerNotBound));
  } else if (event.context) {
    text.push(producerText(event, event.context));
  }
  const body = [...text];
  // The dialog shows the whole call, even if it is too long to be announced.
  if (call?.isBound && !isShort) body.splice(-1, 0, exactCall);
  const summary = summaryText(event, verbosity);
  // The summary repeats the question in other words, so it is shown only at the verbosity `detailed`.
  const details = verbosity !== "detailed" || summary === undefined || summary === subject ? [] : [producerText(event, summary)];
  const allowedReplies = Array.isArray(event.allowed_replies) ? event.allowed_replies : ["accept", "reject"];
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
    title,
    body,
    text,
    defaultDecision: readDefaultDecision(event),
    details,
    timeoutSeconds,
    allowedReplies,
    choices,
    responseKinds: responseKinds.length > 0 ? responseKinds : [choices.length > 0 ? "multiple_choice" : "freetext"],
    sentAnswer: undefined,
    extensionRequested: false,
    outcome: undefined,
  };
}

/** Returns the name of the phrase in `withoutAnswer` for the default of a question. */
function readDefaultDecision(event) {
  if (eventKind(event) !== "awaiting.confirmation") return "other";
  return event.default_decision === "accept" ? "accept" : "reject";
}

function isDangerous(event) {
  return event.risk_level === "high" || event.irreversible === true || event.reversibility === "irreversible";
}

function producerKey(event) {
  const { agent_id: id, agent_name: name } = asObject(event.producer);
  return JSON.stringify([id, name]);
}

/** Returns the risk. No text of the agent replaces the statement that an action cannot be undone, unless the consequence is nothing but this sentence. */
function describeRisk(event) {
  const levelText = Object.hasOwn(phrases.risk, event.risk_level) ? phrases.risk[event.risk_level] : "";
  const isIrreversible = event.irreversible === true || event.reversibility === "irreversible";
  const reversibilityText = isIrreversible
    ? String(event.consequence ?? "").trim() === phrases.reversibility.irreversible ? "" : phrases.reversibility.irreversible
    : { reversible: phrases.reversibility.reversible, reversible_with_effort: phrases.reversibility.withEffort }[event.reversibility] ?? "";
  return [levelText, reversibilityText].filter(Boolean).join(" ") || phrases.riskUnknown;
}

function describeOutcome(question, decision, by) {
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

function categoryOf(event) {
  const categories = { tool: "tool", session: "session", handoff: "handoff" };
  return categories[eventKind(event).split(".")[0]] ?? "other";
}

function createLogEntry(event, session, category, parts, now) {
  const at = Date.parse(event.timestamp);
  return { parts, category, session: session.id, agent: session.agent, at: Number.isFinite(at) ? at : now };
}

/** Returns the reminder that a deadline is near. The hub's text is English; in other languages the page uses its own text. */
function describeReminder(event, question, verbosity) {
  const parts = describeEvent(event, verbosity);
  const at = Date.parse(event.timestamp);
  if (!Number.isFinite(at) || parts.every((part) => part.lang.split("-")[0].toLowerCase() === phrases.lang)) return parts;
  return [ownText(phrases.timeLeftToAnswer(formatDuration((question.deadline - at) / 1000)))];
}

/** Returns the text of a hub message. The hub's text is English; in other languages the page uses its own text where it has one. */
function describeHubMessage({ type, reason_code: reasonCode, reason_message: reasonMessage }) {
  const key = type === "sayso:gap" ? "gap" : reasonCode;
  if (phrases.lang !== "en" && Object.hasOwn(phrases.hubMessages, key)) return ownText(phrases.hubMessages[key]);
  return reasonMessage ? hubText(reasonMessage) : ownText(phrases.hubClosedConnection);
}

