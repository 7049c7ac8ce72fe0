// The listening page: passes hub messages to the subscriber, and passes the subscriber's effects to the announcer, the questions, the
// sessions and the log.

import { Settings, setUpRequestForm, byId, toCapabilities, setUpPanel, setUpSignInForm } from "./controls.js";
import { Countdowns } from "./countdown.js";
import { Handoffs } from "./handoffs.js";
import { Log } from "./log.js";
import { LossNotice } from "./loss_notice.js";
import { parseMarkdown } from "./markdown.js";
import { Notifications } from "./notifications.js";
import { isAvailable, phrases, selectLanguage, translate } from "./phrases.js";
import { Questions } from "./questions.js";
import { AnnouncementQueue } from "./queue.js";
import { Sessions } from "./sessions.js";
import { HubStream } from "./stream.js";
import { Subscriber } from "./subscriber.js";
import { Announcer, setParts } from "./announcer.js";
import { errorText, mergeParts, ownText } from "./wording.js";

/** For this long after a key press, in milliseconds, the person counts as typing and no dialog opens. */
const TYPING_WINDOW_MS = 1500;
/** How often the estimates on the cards of sessions are updated, in milliseconds. */
const REFRESH_MS = 15000;
const SIGNED_IN_KEY = "sayso.signed-in";

const clock = () => Date.now();
const settings = new Settings((current) => onSettingsChanged(current));
const subscriber = new Subscriber();
const queue = new AnnouncementQueue(settings.current.pace);
const announcer = new Announcer(queue, { clock, show: (token) => questions.show(token), isTyping });
const time = () => subscriber.hubTime(clock());
const countdowns = new Countdowns(time);
const questions = new Questions({ reply, extend, stop, time }, { announcer, countdowns, onCount: showSummary });
const handoffs = new Handoffs(answerHandoff, { announcer, countdowns });
const sessions = new Sessions(byId("session-list"), byId("no-sessions"), { stop, time, onCount: showSummary });
const notifications = new Notifications(() => settings.current.notify);
const log = new Log(byId("log-list"), byId("log-dropped"));
/** The parsing of Markdown that is under way. Outputs are parsed one after another. */
let parsing = Promise.resolve();
let summaryTimer;

let lastKeyAt = 0;
let connection = { name: "notConnected", error: undefined };
const lossNotice = new LossNotice((name) => {
  if (name === "lost") announceAndLog(describeConnection(), "hub", { critical: true, key: "connection" });
  else announceAndLog([ownText(phrases.reconnected)], "hub", { key: "connection" });
});

const stream = new HubStream(
  {
    ...toCapabilities(settings.current),
    supports_confirmation_reply: true,
    supports_clarification_reply: true,
    supported_conformance_levels: [1, 2, 3],
    coalesce_boundaries: ["sentence", "completion"],
    // The person takes over from agents here, if the hub allows it.
    sayso: { handoffs: true },
  },
  {
    event: onEvent,
    message: (message) => performEffects(subscriber.receiveMessage(message, clock())),
    unreadable: () => announceAndLog([ownText(phrases.unreadableMessage)], "hub"),
    catchUp: (mode) => subscriber.startCatchUp(mode, clock(), lossNotice.wasAnnounced),
    caughtUp: () => performEffects(subscriber.endCatchUp(clock())),
    accepted: onAccepted,
    state: onConnectionState,
  },
);

applySettings(settings.current);
setUpPanel("help");
setUpPanel("settings");
setUpRequestForm((error) => announcer.announce({ parts: [error], critical: true }));
setUpSignInForm(
  () => {
    storeSignedIn(true);
    showSignIn(false);
    byId("questions-title").focus();
    announcer.announce({ parts: [ownText(phrases.signedIn)], notAfter: clock() + 5000 });
    stream.wake();
  },
  (error) => announcer.announce({ parts: [error], critical: true }),
);
byId("sign-out").addEventListener("click", async () => {
  await fetch("/logout", { method: "POST" });
  storeSignedIn(false);
  location.reload();
});
byId("sign-out").hidden = !isSignedIn();
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, textarea, select")) lastKeyAt = clock();
});
byId("log-details").addEventListener("toggle", () => log.scrollToEnd());
setInterval(() => sessions.refresh(), REFRESH_MS);
sayUnavailableLanguage();
stream.run();

/** Handles an event. Returns a promise if the next event must wait for the Markdown parser. */
function onEvent(event) {
  const held = subscriber.releaseBefore(event);
  if (held.length === 0) return performEffects(subscriber.receive(event, clock()));
  const release = held.map((output) => parse(output));
  return Promise.all(release).then(() => performEffects(subscriber.receive(event, clock())));
}

/** Performs the effects of an event. Returns a promise if the next event must wait. */
function performEffects(effects) {
  let pending;
  for (const effect of effects) {
    if (effect.dropStates !== undefined) announcer.drop((one) => one.isState && one.session === effect.dropStates);
    if (effect.dropAgentText !== undefined) announcer.drop((one) => one.isAgentText && one.session === effect.dropAgentText);
    if (effect.session !== undefined) sessions.update(effect.session);
    if (effect.log !== undefined) addLogEntry(effect.log);
    if (effect.output !== undefined) sessions.card(effect.output.session)?.showOutput(effect.output);
    if (effect.opened !== undefined) addQuestion(effect.opened);
    if (effect.extended !== undefined) questions.onExtended(effect.extended);
    if (effect.closed !== undefined) closeQuestion(effect.closed);
    if (effect.handoffOpened !== undefined) addHandoff(effect.handoffOpened);
    if (effect.handoffClosed !== undefined) closeHandoff(effect.handoffClosed);
    if (effect.announce !== undefined) announcer.announce(effect.announce);
    if (effect.parse !== undefined) pending = parse(effect.parse);
  }
  return pending;
}

/** Parses an output in Markdown, then shows and announces it. Text that is held for too long is released. */
function parse(output) {
  parsing = parsing.then(async () => {
    const result = await parseMarkdown(output);
    performEffects(subscriber.onParsed(output, result, clock()));
    clearTimeout(output.timer);
    const releaseDeadline = subscriber.releaseDeadline(output);
    if (releaseDeadline === undefined) return;
    output.timer = setTimeout(() => {
      subscriber.release(output);
      parse(output);
    }, releaseDeadline - clock());
  });
  return parsing;
}

function addQuestion(question) {
  const card = questions.add(question);
  sessions.card(question.session)?.addQuestion(card);
  notifications.show(question);
}

function closeQuestion(question) {
  questions.onQuestionClosed(question);
  notifications.close(question);
}

function addHandoff(handoff) {
  handoffs.add(handoff);
  notifications.showHandoff(handoff);
}

function closeHandoff(handoff) {
  handoffs.remove(handoff);
  notifications.close(handoff);
}

/** Adds an entry to the log and, if it is a step or a note, to the timeline of its session. Outputs and questions have their own place there. */
function addLogEntry(entry) {
  log.add(entry);
  if (!["agent", "ask", "answer"].includes(entry.category)) sessions.card(entry.session)?.add(entry);
}

/** Shows how many questions are open and how many agents are working. A burst of events causes one update. */
function showSummary() {
  summaryTimer ??= setTimeout(() => {
    summaryTimer = undefined;
    byId("summary").textContent = phrases.summary(questions.size, sessions.openCount);
  }, 50);
}

function announceAndLog(parts, category, options = {}) {
  log.add({ parts, category, at: clock() });
  announcer.announce({ parts, ...options });
}

function isTyping() {
  return clock() - lastKeyAt < TYPING_WINDOW_MS && document.activeElement?.matches("input, textarea, select") === true;
}

async function reply(question, { decision, response }) {
  const timestamp = new Date(subscriber.hubTime(clock())).toISOString();
  const answer = question.isConfirmation ? { type: "confirmation.reply", decision } : { type: "clarification.reply", response };
  await stream.send({ ...answer, reply_token: question.token, timestamp });
}

async function extend(question) {
  const timestamp = new Date(subscriber.hubTime(clock())).toISOString();
  await stream.send({ type: "sayso:deadline.extend", reply_token: question.token, timestamp, seconds: question.timeoutSeconds });
}

async function stop(session) {
  const timestamp = new Date(subscriber.hubTime(clock())).toISOString();
  subscriber.recordStop(session, true);
  try {
    await stream.send({ type: "sayso:session.stop", session_id: session, timestamp });
    return true;
  } catch (error) {
    subscriber.recordStop(session, false);
    announceAndLog(mergeParts([ownText(phrases.stopFailed), errorText(error)]), "hub", { critical: true });
    return false;
  }
}

async function answerHandoff(handoff, kind, note) {
  const timestamp = new Date(subscriber.hubTime(clock())).toISOString();
  await stream.send({ type: `sayso:handoff.${kind}`, reply_token: handoff.token, timestamp, ...(note === "" ? {} : { note }) });
}

function applySettings({ verbosity, pace, quiet, languages }) {
  if (selectLanguage(languages) || document.documentElement.lang !== phrases.lang) {
    translate(document);
    questions.translate();
    handoffs.translate();
    sessions.translate();
    log.translate();
    showConnection();
    showSummary();
  }
  subscriber.verbosity = verbosity;
  subscriber.quiet = quiet;
  queue.pace = pace;
}

async function onSettingsChanged(current) {
  applySettings(current);
  let parts;
  try {
    await stream.renegotiate(toCapabilities(current));
    parts = mergeParts([ownText(phrases.settingsApplied), ...unavailableLanguage(current.language)]);
  } catch (error) {
    parts = mergeParts([ownText(phrases.settingsNotSent), errorText(error)]);
  }
  setParts(byId("settings-result"), parts);
  announcer.announce({ parts, key: "settings" });
}

/** Returns the parts that say that the page has no texts in a language, if that is so. */
function unavailableLanguage(language) {
  if (isAvailable(language)) return [];
  const names = new Intl.DisplayNames([phrases.lang, "en"], { type: "language" });
  return [ownText(phrases.languageUnavailable(names.of(language), names.of(phrases.lang)))];
}

/** Says once that the page has no texts in the browser's language. */
function sayUnavailableLanguage() {
  const { language } = settings.current;
  const parts = unavailableLanguage(language);
  if (parts.length > 0 && settings.isNewLanguage(language)) announceAndLog(parts, "hub");
}

/** Announces that the person can only listen, if the hub does not accept replies from this page. */
function onAccepted(honoredCapabilities) {
  subscriber.subscription = stream.subscription;
  subscriber.takesHandoffs = honoredCapabilities.sayso?.handoffs === true;
  if (honoredCapabilities.supports_confirmation_reply === false) {
    announceAndLog([ownText(phrases.listenOnly)], "hub");
  }
}

function onConnectionState(name, error) {
  connection = { name, error };
  showConnection();
  lossNotice.onState(name);
  showSignIn(name === "signIn");
  switch (name) {
    case "signIn":
      storeSignedIn(false);
      byId("sign-in-title").focus();
      break;
    case "refused":
      announceAndLog(describeConnection(), "hub", { key: "refused" });
      break;
    default:
  }
}

function showConnection() {
  byId("connection").dataset.state = connection.name;
  setParts(byId("connection"), describeConnection());
}

/** Shows the sign-in form instead of everything else, or the other way round. */
function showSignIn(isShown) {
  byId("sign-in").hidden = !isShown;
  byId("listening").hidden = isShown;
  for (const id of ["skip", "summary", "help-button", "settings-button"]) byId(id).hidden = isShown;
  if (isShown) for (const id of ["help", "settings"]) byId(id).hidden = true;
}

/** Describes the state of the connection. */
function describeConnection() {
  const { name, error } = connection;
  switch (name) {
    case "signIn":
      return [errorText(error)];
    case "refused":
      return mergeParts([ownText(phrases.refused), errorText(error)]);
    default:
      return [ownText(phrases[name])];
  }
}

function storeSignedIn(signedIn) {
  byId("sign-out").hidden = !signedIn;
  try {
    if (signedIn) localStorage.setItem(SIGNED_IN_KEY, "yes");
    else localStorage.removeItem(SIGNED_IN_KEY);
  } catch {
    // Without storage, the sign-out button disappears when the page is reloaded.
  }
}

function isSignedIn() {
  try {
    return localStorage.getItem(SIGNED_IN_KEY) === "yes";
  } catch {
    return false;
  }
}
