// The subscriber core: drops duplicate events, tracks sessions and questions, and turns events into announcements and log entries.
// It has no clock and no DOM. `receive` takes an event and the time, and returns effects that the caller performs in order:
//
//   { log: entry }                an entry for the log: `parts`, `category`, `session`, `at`, `ownParts` for the timeline of its session (which
//                                 names the session already), and `isNote` if it is more than a step
//   { announce: announcement }    an announcement for the queue (queue.js)
//   { dropStates: sessionId }     the queued state announcements of this session are stale
//   { opened: question }          a question was asked
//   { extended: question }        the deadline of a question was extended
//   { closed: question }          a question was closed; `question.outcome` holds the result as parts
//   { session: session }          a session is new or has changed
//   { dropAgentText: sessionId }  the queued text of this session is not needed, because the agent has summarized it
//   { handoffOpened: handoff }    an agent asks somebody to take over; `handoffClosed` when that is settled
//   { output: output }            the text of an output is new or has grown: `session`, `text`, `blocks` (of Markdown), `lang`, `dir`, `speaker`
//   { parse: output }             an output in Markdown has grown: parse it, then call `onParsed`

import { phrases } from "./phrases.js";
import { isMarkdown } from "./markdown.js";
import { isEvent } from "./envelope.js";
import { describeEvent, isText } from "./event_text.js";
import { SessionFacts } from "./facts.js";
import { createHandoff, describeHandoffOutcome } from "./handoff.js";
import { createQuestion, describeDefault, describeOutcome } from "./question.js";
import { sha256 } from "./sha256.js";
import { agentName, asObject, eventKind, formatDuration, hubText, isNameVerified, nameText, ownText, phraseAround, producerText, sanitize, stateLabel, summaryText, verifiedAgentId } from "./wording.js";

/** Maximum number of event ids that are remembered to detect duplicates. */
export const MAX_REMEMBERED_IDS = 20000;
/** Maximum number of open questions. The hub has the same limit. */
export const MAX_QUESTIONS = 4096;
/** Maximum number of hand-offs that wait for somebody. Above it, a new one is announced but not listed. */
export const MAX_HANDOFFS = 100;
/** Maximum number of agents of one session that are told apart. */
const MAX_PRODUCERS = 64;
/** Number of sessions above which the oldest ended session is dropped. */
export const MAX_SESSIONS = 200;
/** Maximum number of characters of one output that are held until the end of a sentence, of a paragraph or of the output arrives. */
const MAX_HELD_CHARS = 16384;
/** Maximum number of characters of one output in the timeline. The rest is only in the log. */
export const MAX_OUTPUT_CHARS = 262144;
/** How long a list, a table, code or a quote in Markdown is held until it is complete, in milliseconds. */
const MARKDOWN_HOLD_MS = 5000;
/** How long a state must last before it is announced, by verbosity, in milliseconds. Any later announcement of the session, except progress, replaces it. */
const STATE_DELAY_MS = { terse: 4000, normal: 1500, detailed: 0 };
/** Minimum time between a session's last announcement and its next state announcement in quiet mode, in milliseconds. */
const QUIET_INTERVAL_MS = 60000;
/** Maximum number of missed announcements that are announced one by one after a reconnect. */
const MAX_INDIVIDUAL_CATCH_UP_ANNOUNCEMENTS = 3;

export class Subscriber {
  sessions = new Map();
  questions = new Map();
  /** The hand-offs that wait for somebody, by reply token. */
  handoffs = new Map();
  /** The id of the subscription, and whether the hub lets this person take over from agents. */
  subscription;
  takesHandoffs = false;
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
    if (!isEvent(event)) {
      const parts = [ownText(phrases.unreadableMessage)];
      return [{ log: { parts, category: "hub", at: now } }, { announce: { parts, key: "unreadable" } }];
    }
    const id = event.event_id;
    if (this.#seenIds.has(id)) return [];
    this.#seenIds.add(id);
    if (this.#seenIds.size > MAX_REMEMBERED_IDS) this.#seenIds.delete(this.#seenIds.values().next().value);
    this.#updateSkew(event, now);
    const effects = [];
    const session = this.#trackSession(event, now, effects);
    session.facts.record(event, readTime(event, this.hubTime(now)));
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
      case "handoff.requested":
        this.#onHandoff(event, session, now, effects);
        break;
      default:
        this.#report(event, session, now, effects, categoryOf(event), isNote(event));
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
    this.#catchUp = { mode, since: now, announcements: new Map(), count: 0, questions: new Set(), handoffs: new Set(), sessions: new Set(), openBefore };
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

  /** Records that the person stops a session, or that this failed. */
  recordStop(id, isRequested) {
    const session = this.sessions.get(id);
    if (session !== undefined) session.isStopRequested = isRequested;
  }

  #updateSkew(event, now) {
    const at = Date.parse(event.timestamp);
    if (Number.isFinite(at)) this.#skew = Math.min(this.#skew ?? Infinity, now - at);
  }

  #trackSession(event, now, effects) {
    const id = String(event.session_id ?? "");
    let session = this.sessions.get(id);
    if (session === undefined) {
      // In the events of other producers, the hub names the main one.
      const { main_producer: main } = hubExtension(event);
      const isMain = typeof main !== "string";
      const agentId = isMain ? producerId(event) : main;
      session = { id, agent: isMain ? agentName(event) : sanitize(main), mainAgentId: agentId, speakerId: agentId, producers: new Set(), verifiedProducers: new Set(), facts: new SessionFacts(), lastAnnouncedAt: now };
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
    const isStart = eventKind(event) === "session.started";
    if (isStart) {
      session.title = producerText(event, summaryText(event, "normal") ?? "");
      session.startedAt = readTime(event, now);
      session.mainAgentId = producerId(event);
      session.speakerId = session.mainAgentId;
    }
    const { parent_session_id: parent } = hubExtension(event);
    if (typeof parent === "string") session.parent = parent;
    // To a listener that joins late, the hub says what the session is about.
    const { about } = hubExtension(event);
    if (typeof about === "string" && about !== "") session.title ??= producerText(event, about);
    if (session.producers.size < MAX_PRODUCERS) session.producers.add(producerId(event));
    if (isStart || (isNameVerified(event) && producerId(event) === session.mainAgentId)) {
      session.agent = agentName(event);
      session.agentId = verifiedAgentId(event);
    }
    if (isNameVerified(event) && session.verifiedProducers.size < MAX_PRODUCERS) session.verifiedProducers.add(producerKey(event));
    effects.push({ session });
    return session;
  }

  /**
   * Logs an event and announces it. `isNote` is true if the timeline must show it even while the steps are collapsed. `more` are parts that follow
   * the text of the event.
   */
  #report(event, session, now, effects, category, isNote = false, more = []) {
    const known = { agent: this.#speakerName(event, session), hasOutput: session.hasOutput, isOwnStop: session.isStopRequested };
    if (eventKind(event) === "tool.invoked") {
      known.isPermitted = session.isCallPermitted;
      session.isCallPermitted = false;
    }
    if (eventKind(event) === "tool.completed") known.expectedMs = session.facts.finishCall(event);
    const parts = [...describeEvent(event, this.verbosity, known), ...more];
    if (parts.length === 0) return;
    // The log shows the category in front of each entry, so a first part that repeats it is left out.
    const repeatsCategory = parts.length > 1 && parts[0].text.toLowerCase() === `${phrases.categoryLabels[category]}:`;
    const isNewSpeaker = producerId(event) !== session.speakerId;
    const name = this.#nameSpeaker(event, session, parts);
    const logged = repeatsCategory ? parts.slice(1) : parts;
    // The head of the card says that the session has finished. The timeline adds what the agent says about it.
    const own = eventKind(event) === "session.completed" ? parts.slice(phraseAround(phrases.hasFinished, known.agent).length) : logged.slice(0, logged.length - more.length);
    effects.push({ log: { ...createLogEntry(event, session, category, [...name, ...logged], now), ownParts: this.#timelineParts(event, session, own), isNote } });
    session.lastAnnouncedAt = now;
    effects.push({ dropStates: session.id });
    const critical = event.urgency === "critical";
    const nameParts = isNewSpeaker ? 0 : name.length;
    effects.push({ announce: { parts: [...name, ...parts], nameParts, critical, session: session.id, ...this.#queueOptions(session, category, critical || isNote) } });
  }

  /** Returns the options by which the queue decides which waiting announcements this one replaces, and which ones replace it. */
  #queueOptions(session, category, isImportant) {
    if (category === "agent") return { isAgentText: true };
    if (session.ended !== undefined) return { isEnd: true };
    if (isImportant) return {};
    // A newer step replaces a waiting one.
    if (["tool", "other"].includes(category)) return { isStep: true, key: `step ${session.id}` };
    // If several sessions are open, each text is announced with its agent's name. Then the announcement that the session has started
    // may be skipped, like a step.
    if (category !== "session") return {};
    const isOneOfSeveral = [...this.sessions.values()].filter((one) => one.ended === undefined).length > 1;
    return { isStart: true, isStep: isOneOfSeveral };
  }

  #onStateChanged(event, session, now, effects) {
    const resolution = hubExtension(event);
    const question = this.questions.get(resolution.reply_token);
    const isUnchanged = event.from_state === event.to_state;
    const previousState = session.state;
    session.state = String(event.to_state ?? "");
    if (asObject(resolution.handoff).outcome !== undefined) {
      this.#onHandoffOutcome(event, asObject(resolution.handoff), session, now, effects);
      return;
    }
    if (question !== undefined) {
      this.#closeQuestion(question, resolution, now, effects);
      return;
    }
    // To a listener that joins late, the hub reports the current state with the same from_state and to_state.
    const isLateJoin = isUnchanged && previousState === undefined;
    if (isUnchanged && !isLateJoin) return;
    const parts = isLateJoin
      ? this.#describeLateJoin(session)
      : this.#withSpeaker(event, session, describeEvent(event, this.verbosity));
    const ownParts = isLateJoin ? parts : this.#timelineParts(event, session, describeEvent(event, this.verbosity));
    effects.push({ log: { ...createLogEntry(event, session, "state", parts, now), ownParts } });
    effects.push({ dropStates: session.id });
    if (session.state === "awaiting_input" && !isLateJoin) return;
    const delay = this.quiet ? Math.max(0, session.lastAnnouncedAt + QUIET_INTERVAL_MS - now) : STATE_DELAY_MS[this.verbosity];
    const notBefore = isLateJoin ? 0 : now + delay;
    effects.push({ announce: { parts, session: session.id, key: `state ${session.id}`, isState: true, isLateJoin, notBefore } });
  }

  /** Returns what a listener that joins late hears about a session. */
  #describeLateJoin(session) {
    const title = session.title ? [session.title] : [];
    if (session.state === "awaiting_input") return [...phraseAround(phrases.isWaiting, session.agent), ...title];
    return [...phraseAround(phrases.isWorking, session.agent), ...title, ownText(`${stateLabel(session.state)}.`)];
  }

  /** Handles an agent's request to hand over. It can be answered only if the hub's extension says that the hub waits for an answer. */
  #onHandoff(event, session, now, effects) {
    const handoff = createHandoff(event, this.#speakerName(event, session), readTime(event, this.hubTime(now)));
    this.#catchUp?.handoffs.add(handoff?.token);
    if (this.handoffs.has(handoff?.token)) return;
    const isListed = handoff !== undefined && this.takesHandoffs && this.handoffs.size < MAX_HANDOFFS;
    this.#report(event, session, now, effects, "handoff", true, isListed ? [ownText(phrases.handoffInList)] : []);
    if (!isListed) return;
    this.handoffs.set(handoff.token, handoff);
    effects.push({ handoffOpened: handoff });
  }

  /** Announces who has taken over, or that nobody has. */
  #onHandoffOutcome(event, { reply_token: token, outcome, note, replier }, session, now, effects) {
    const handoff = this.handoffs.get(token);
    this.handoffs.delete(token);
    if (handoff !== undefined) effects.push({ handoffClosed: handoff });
    const isOwn = typeof replier === "string" && this.subscription !== undefined && replier === `sha256:${sha256(this.subscription)}`;
    const parts = describeHandoffOutcome(event, handoff?.agent ?? this.#speakerName(event, session), { outcome, note }, isOwn);
    effects.push({ log: { ...createLogEntry(event, session, "handoff", parts, now), ownParts: parts, isNote: true } });
    session.lastAnnouncedAt = now;
    effects.push({ dropStates: session.id }, { announce: { parts, session: session.id, critical: true, first: handoff?.sentAnswer !== undefined } });
  }

  #closeHandoffs(isClosed, effects) {
    for (const handoff of [...this.handoffs.values()].filter(isClosed)) {
      this.handoffs.delete(handoff.token);
      effects.push({ handoffClosed: handoff });
    }
  }

  #onProgress(event, session, now, effects) {
    // Only the hub can set this extension; agents cannot.
    const extension = hubExtension(event);
    if (typeof extension.extended === "string") {
      this.#onDeadlineExtended(event, extension, session, now, effects);
      return;
    }
    const question = this.questions.get(extension.reminds_of);
    const parts = question === undefined ? describeEvent(event, this.verbosity) : describeReminder(event, question, this.verbosity);
    if (parts.length === 0) return;
    const named = question === undefined ? this.#withSpeaker(event, session, parts) : parts;
    effects.push({ log: { ...createLogEntry(event, session, "progress", named, now), ownParts: this.#timelineParts(event, session, parts) } });
    if (question !== undefined) {
      const announce = { parts: [...parts, ...question.title], session: session.id, critical: true, key: `time ${question.token}` };
      if (question.sentAnswer === undefined) effects.push({ announce });
      return;
    }
    const announce = { parts: named, session: session.id, isStep: event.urgency !== "critical", key: `progress ${session.id}` };
    if (!this.quiet || event.urgency === "critical") effects.push({ announce });
  }

  /** Handles a deadline extension, which any listener may have requested. */
  #onDeadlineExtended(event, { extended, deadline }, session, now, effects) {
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
    const id = `${session.id} ${producerId(event)} ${event.output_id ?? ""}`;
    const output = this.#outputs.get(id) ?? this.#createOutput(event, session);
    // Data that is not text is only mentioned.
    const chunk = isText(event) ? String(event.chunk ?? "") : "";
    if (!isText(event)) this.#report(event, session, now, effects, "agent");
    session.hasOutput ||= chunk.trim() !== "";
    output.event = event;
    output.complete = event.complete === true;
    output.shown.text = (output.shown.text + sanitize(chunk)).slice(0, MAX_OUTPUT_CHARS);
    if (output.complete) this.#outputs.delete(id);
    else this.#outputs.set(id, output);
    if (output.shown.text.trim() !== "") effects.push({ output: output.shown });
    if (output.isMarkdown) {
      output.parts[output.parts.length - 1] += chunk;
      effects.push({ parse: output });
      return;
    }
    output.held += chunk;
    const isReadyToAnnounce = output.complete || !["none", "word"].includes(event.coalesce_hint) || output.held.length > MAX_HELD_CHARS;
    if (!isReadyToAnnounce) return;
    const text = output.held.trim();
    output.held = "";
    if (text !== "") this.#report({ ...event, chunk: text }, session, now, effects, "agent");
  }

  #createOutput(event, session) {
    const { lang, dir } = producerText(event, "", event.language);
    const speaker = session.producers.size > 1 ? this.#speakerName(event, session) : undefined;
    const shown = { session: session.id, text: "", blocks: undefined, lang, dir, speaker };
    // For Markdown. `parts`: the text, split where it was released. `announcedChars`: how much of the spoken form was announced.
    // `coveredChars`: how much of the text that corresponds to.
    const markdown = { isMarkdown: isMarkdown(event.content_type), parts: [""], announcedChars: 0, coveredChars: 0, heldSince: undefined, hasFailed: false };
    return { session: session.id, shown, held: "", complete: false, ...markdown };
  }

  /**
   * Returns the outputs in Markdown whose held text must be heard before this event: parse each, then call `receive`. Progress does not
   * interrupt an output.
   */
  releaseBefore(event) {
    if (["output.streaming", "progress.updated"].includes(eventKind(event))) return [];
    const hasEnded = ["session.completed", "session.errored", "session.cancelled"].includes(eventKind(event));
    const isHeld = (output) => output.session === event.session_id && output.isMarkdown && (output.heldSince !== undefined || hasEnded);
    const held = [...this.#outputs.values()].filter(isHeld);
    for (const output of held) this.release(output, hasEnded);
    return held;
  }

  /** Releases the held text of an output, so that it is announced the next time the output is parsed. */
  release(output, complete = false) {
    output.complete ||= complete;
    if (output.parts.at(-1) !== "") output.parts.push("");
  }

  /** Returns the time by which the held text of an output must be announced, if it has any. */
  releaseDeadline(output) {
    return output.heldSince === undefined ? undefined : output.heldSince + MARKDOWN_HOLD_MS;
  }

  /** Handles the result of parsing an output, which is `undefined` if that failed. Returns effects. */
  onParsed(output, result, now) {
    const session = this.sessions.get(output.session);
    if (session === undefined) return [];
    const text = output.parts.join("");
    let lines;
    if (result === undefined || output.hasFailed) {
      // From now on, the output is shown and announced as it was written.
      lines = [text.slice(output.coveredChars)];
      output.hasFailed = true;
      output.shown.blocks = undefined;
      output.heldSince = undefined;
    } else {
      lines = result.spoken.slice(output.announcedChars).split("\n");
      output.announcedChars = result.spoken.length;
      output.shown.blocks = result.blocks;
      output.heldSince = result.isHeld ? (output.heldSince ?? now) : undefined;
    }
    if (output.heldSince === undefined) output.coveredChars = text.length;
    const effects = [{ output: output.shown }];
    for (const line of lines.map((line) => line.trim()).filter(Boolean)) {
      this.#report({ ...output.event, chunk: line }, session, now, effects, "agent");
    }
    return this.#catchUp === undefined ? effects : this.#holdBackAnnouncements(effects);
  }

  #onQuestion(event, session, now, effects) {
    const token = event.reply_token;
    if (typeof token !== "string" || this.questions.has(token)) {
      this.#catchUp?.questions.add(token);
      return;
    }
    if (this.questions.size >= MAX_QUESTIONS) {
      const parts = [ownText(`${phrases.tooManyQuestions(MAX_QUESTIONS)}`), ...describeDefault(event)];
      effects.push({ log: createLogEntry(event, session, "ask", parts, now) }, { announce: { parts, critical: true, key: "too many questions" } });
      return;
    }
    const question = createQuestion(event, session, this.verbosity);
    question.agent = this.#speakerName(event, session);
    question.askedAt = readTime(event, this.hubTime(now));
    question.deadline = Math.max(question.askedAt + question.timeoutSeconds * 1000, this.#earlyDeadlines.get(token) ?? 0);
    this.#earlyDeadlines.delete(token);
    question.text.push(ownText(phrases.timeLimit(formatDuration((question.deadline - this.hubTime(now)) / 1000))), ...question.defaultNotice);
    this.questions.set(token, question);
    this.#catchUp?.questions.add(token);
    session.state = "awaiting_input";
    session.lastAnnouncedAt = now;
    effects.push({ log: createLogEntry(event, session, "ask", question.text, now) }, { dropStates: session.id }, { opened: question });
    effects.push({ announce: { parts: question.text, critical: true, questionToken: token, session: session.id, key: `question ${token}` } });
  }

  #closeQuestion(question, { decision, by }, now, effects) {
    this.questions.delete(question.token);
    question.outcome = [...describeOutcome(question, decision, by), ...question.title];
    question.result = question.isConfirmation && decision === "accept" ? "accepted" : question.isConfirmation || by !== "reply" ? "rejected" : "answered";
    const session = this.sessions.get(question.session);
    if (session !== undefined && question.result === "accepted" && by === "reply") session.isCallPermitted = true;
    effects.push({ log: { parts: question.outcome, category: "answer", session: question.session, at: now } });
    if (session !== undefined) session.lastAnnouncedAt = now;
    effects.push({ dropStates: question.session });
    // The person has stopped the agent, and hears that instead.
    question.isStopped = session?.isStopRequested === true;
    if (question.isStopped) {
      effects.push({ closed: question });
      return;
    }
    // The person knows which question they have just answered, unless there are several.
    const isOwnDecision = by === "reply" && question.isConfirmation && question.sentAnswer === decision;
    const parts = isOwnDecision && this.questions.size === 0 ? [ownText(phrases[decision === "accept" ? "accepted" : "rejected"].alone)] : question.outcome;
    // The person's own decision is confirmed before the next question is asked.
    effects.push({ closed: question, announce: { parts, session: question.session, critical: true, first: question.sentAnswer !== undefined } });
  }

  #onSessionEnd(event, session, now, effects) {
    session.state = undefined;
    session.endedAt = readTime(event, this.hubTime(now));
    session.ended = { "session.completed": "done", "session.errored": "failed", "session.cancelled": "stopped" }[eventKind(event)];
    for (const question of [...this.questions.values()].filter((one) => one.session === session.id)) {
      this.#closeQuestion(question, { by: "cancelled" }, now, effects);
    }
    for (const [id, output] of this.#outputs) if (output.session === session.id) this.#outputs.delete(id);
    this.#closeHandoffs((handoff) => handoff.session === session.id, effects);
    // At the terse verbosity, the agent's summary of its text is announced instead of the rest of the text.
    if (this.verbosity === "terse" && event.output_summary) effects.push({ dropAgentText: session.id });
    this.#report(event, session, now, effects, eventKind(event) === "session.errored" ? "error" : "session", true);
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
      // Every missed step is counted, although the queue would announce only the latest one.
      const key = announce.isStep || announce.key === undefined ? this.#catchUp.count : announce.key;
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
    this.#closeHandoffs((handoff) => !catchUp.handoffs.has(handoff.token), effects);
    for (const session of this.sessions.values()) {
      if (session.ended === undefined && !catchUp.sessions.has(session.id)) {
        session.ended = "missed";
        effects.push({ session });
      }
    }
  }

  /** Returns the name of the agent that sent an event. A name that the hub has verified in this session needs no id. */
  #speakerName(event, session) {
    return session.verifiedProducers.has(producerKey(event)) ? agentName(event, true) : agentName(event);
  }

  /** Returns the parts for the timeline of the session. If the session has several agents, the name of the speaker comes first. */
  #timelineParts(event, session, parts) {
    return session.producers.size > 1 && parts.length > 0 ? [nameText(this.#speakerName(event, session), ": "), ...parts] : parts;
  }

  #withSpeaker(event, session, parts) {
    return [...this.#nameSpeaker(event, session, parts), ...parts];
  }

  /**
   * Returns the name to put in front: if several sessions are open, or if the speaker in the session has changed. If open
   * sessions share the agent's name, the session's title follows.
   */
  #nameSpeaker(event, session, parts) {
    const hasChanged = producerId(event) !== session.speakerId;
    session.speakerId = producerId(event);
    const open = [...this.sessions.values()].filter((one) => one.ended === undefined || one === session);
    const name = session.speakerId === session.mainAgentId ? session.agent : this.#speakerName(event, session);
    if ((open.length < 2 && !hasChanged) || parts.slice(0, 2).some((part) => part.text === name)) return [];
    const isNameShared = open.filter((one) => one.agent === session.agent).length > 1;
    return [nameText(name, ": "), ...(isNameShared && session.title ? [session.title] : [])];
  }
}

/** Whether the timeline must show an event even while the steps are collapsed. */
function isNote(event) {
  return eventKind(event) === "tool.completed" && event.status !== "success";
}

/** Returns the extension of the hub. Agents cannot set it. */
function hubExtension(event) {
  return asObject(asObject(event.extensions).sayso);
}

/** Returns the id of the agent that sent an event, encoded. It is only for comparisons and must not be shown. */
function producerId(event) {
  return encodeURIComponent(String(asObject(event.producer).agent_id ?? "").toWellFormed());
}

function producerKey(event) {
  const { agent_id: id, agent_name: name } = asObject(event.producer);
  return JSON.stringify([id, name]);
}

function categoryOf(event) {
  const categories = { tool: "tool", session: "session", handoff: "handoff" };
  return categories[eventKind(event).split(".")[0]] ?? "other";
}

function createLogEntry(event, session, category, parts, now) {
  return { parts, category, session: session.id, at: readTime(event, now) };
}

function readTime(event, now) {
  const at = Date.parse(event.timestamp);
  return Number.isFinite(at) ? at : now;
}

/** Returns the reminder that a deadline is near, in the page's own words and language. */
function describeReminder(event, question, verbosity) {
  const at = Date.parse(event.timestamp);
  if (!Number.isFinite(at)) return describeEvent(event, verbosity);
  return [ownText(phrases.timeLeftToAnswer(formatDuration((question.deadline - at) / 1000)))];
}

/** Returns the text of a hub message. The hub's text is English; in other languages the page uses its own text where it has one. */
function describeHubMessage({ type, reason_code: reasonCode, reason_message: reasonMessage }) {
  const key = type === "sayso:gap" ? "gap" : reasonCode;
  if (phrases.lang !== "en" && Object.hasOwn(phrases.hubMessages, key)) return ownText(phrases.hubMessages[key]);
  return reasonMessage ? hubText(reasonMessage) : ownText(phrases.hubClosedConnection);
}

