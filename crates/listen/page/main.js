// The listening page: passes hub messages to the subscriber, and passes the subscriber's effects to the announcer, the questions, the sessions and
// the log.

import { Settings, setUpRequestForm, byId, toCapabilities, setUpSignInForm } from "./controls.js";
import { Log } from "./log.js";
import { phrases, selectLanguage, translate } from "./phrases.js";
import { Questions } from "./questions.js";
import { AnnouncementQueue } from "./queue.js";
import { Sessions } from "./sessions.js";
import { HubStream } from "./stream.js";
import { Subscriber } from "./subscriber.js";
import { Announcer, setParts } from "./announcer.js";
import { errorText, mergeParts, ownText } from "./wording.js";

/** How long the connection must be lost before the loss is announced, in milliseconds. */
const LOST_NOTICE_DELAY_MS = 2000;
/** For this long after a key press, in milliseconds, the person counts as typing and no dialog opens. */
const TYPING_WINDOW_MS = 1500;
const SIGNED_IN_KEY = "sayso.signed-in";

const clock = () => Date.now();
const settings = new Settings((current) => onSettingsChanged(current));
const subscriber = new Subscriber();
const queue = new AnnouncementQueue(settings.current.pace);
const announcer = new Announcer(queue, { clock, show: (token) => questions.show(token), isTyping });
const questions = new Questions({ reply, extend, stop, time: () => subscriber.hubTime(clock()) }, announcer);
const sessions = new Sessions(byId("session-list"), byId("no-sessions"), stop);
const log = new Log(byId("log-list"), byId("log-dropped"));

let lastKeyAt = 0;
let connection = { name: "notConnected", error: undefined };
let lossTimer;
/** Whether the connection is lost and the loss was announced. */
let isLossAnnounced = false;
/** Whether the last loss, before the current connection, was announced. */
let wasLastLossAnnounced = false;

const stream = new HubStream(
  {
    ...toCapabilities(settings.current),
    supports_confirmation_reply: true,
    supports_clarification_reply: true,
    supported_conformance_levels: [1, 2, 3],
    coalesce_boundaries: ["sentence", "completion"],
  },
  {
    event: (event) => performEffects(subscriber.receive(event, clock())),
    message: (message) => performEffects(subscriber.receiveMessage(message, clock())),
    unreadable: () => announceAndLog([ownText(phrases.unreadableMessage)], "hub"),
    catchUp: (mode) => subscriber.startCatchUp(mode, clock(), wasLastLossAnnounced),
    caughtUp: () => performEffects(subscriber.endCatchUp(clock())),
    accepted: onAccepted,
    state: onConnectionState,
  },
);

applySettings(settings.current);
setUpRequestForm((error) => announcer.announce({ parts: [error], critical: true }));
setUpSignInForm(
  () => {
    storeSignedIn(true);
    byId("sign-in").hidden = true;
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
stream.run();

function performEffects(effects) {
  for (const effect of effects) {
    if (effect.log !== undefined) log.add(effect.log);
    if (effect.dropStates !== undefined) announcer.drop((one) => one.isState && one.session === effect.dropStates);
    if (effect.session !== undefined) sessions.update(effect.session);
    if (effect.opened !== undefined) questions.add(effect.opened);
    if (effect.extended !== undefined) questions.onExtended(effect.extended);
    if (effect.closed !== undefined) questions.onQuestionClosed(effect.closed);
    if (effect.announce !== undefined) announcer.announce(effect.announce);
  }
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
  try {
    await stream.send({ type: "sayso:session.stop", session_id: session, timestamp });
    return true;
  } catch (error) {
    announceAndLog(mergeParts([ownText(phrases.stopFailed), errorText(error)]), "hub", { critical: true });
    return false;
  }
}

function applySettings({ verbosity, pace, quiet, languages }) {
  if (selectLanguage(languages) || document.documentElement.lang !== phrases.lang) {
    translate(document);
    settings.nameLanguages();
    questions.translate();
    sessions.translate();
    log.translate();
    showConnection();
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
    parts = [ownText(phrases.settingsApplied)];
  } catch (error) {
    parts = mergeParts([ownText(phrases.settingsNotSent), errorText(error)]);
  }
  setParts(byId("settings-result"), parts);
  announcer.announce({ parts, key: "settings" });
}

/** Announces that the person can only listen, if the hub does not accept replies from this page. */
function onAccepted(honoredCapabilities) {
  if (honoredCapabilities.supports_confirmation_reply === false) {
    announceAndLog([ownText(phrases.listenOnly)], "hub");
  }
}

function onConnectionState(name, error) {
  connection = { name, error };
  showConnection();
  if (name !== "lost") {
    clearTimeout(lossTimer);
    lossTimer = undefined;
  }
  byId("sign-in").hidden = name !== "signIn";
  switch (name) {
    case "connected":
      if (isLossAnnounced) announceAndLog([ownText(phrases.reconnected)], "hub", { key: "connection" });
      wasLastLossAnnounced = isLossAnnounced;
      isLossAnnounced = false;
      break;
    case "connecting":
      break;
    case "signIn":
      storeSignedIn(false);
      byId("sign-in-title").focus();
      break;
    case "refused":
      announceAndLog(describeConnection(), "hub", { key: "refused" });
      break;
    default:
      if (!isLossAnnounced) {
        lossTimer ??= setTimeout(() => {
          isLossAnnounced = true;
          announceAndLog(describeConnection(), "hub", { critical: true, key: "connection" });
        }, LOST_NOTICE_DELAY_MS);
      }
  }
}

function showConnection() {
  setParts(byId("connection"), describeConnection());
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
