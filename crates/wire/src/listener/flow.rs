//! What is said, on whatever wire.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::time::Duration;

use aaep::SubscriptionId;
use aaep::json::{Tape, Value, Writer};
use aaep::message::Message;
use hub::Principal;
use hub::command::{Command, Reply, SubscriberMessage};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout};

use super::places::Places;
use super::{Ear, Ending, FAREWELL, Heard, Manners, Mouth, Word};
use crate::inbox::Inbox;
use crate::server::Bridge;

/// One subscription from its request to its end.
pub(crate) async fn listen(
    bridge: &Bridge,
    who: &Principal,
    manners: &Manners,
    ear: &mut (impl Ear + Send),
    mouth: &mut (impl Mouth + Send),
) -> Ending {
    let caller = Caller { bridge, who, manners };
    match caller.handshake(ear, mouth).await {
        Ok(subscribed) => {
            let _talk = bridge.talk();
            caller.converse(subscribed, ear, mouth).await
        }
        Err(ending) => {
            let _ = timeout(FAREWELL, mouth.say(Word::End { ending, subscription: None })).await;
            ending
        }
    }
}

struct Caller<'c> {
    bridge: &'c Bridge,
    who: &'c Principal,
    manners: &'c Manners,
}

/// The hub has let go, and why if it said so.
#[derive(Default)]
struct Over {
    noticed: Notify,
    why: OnceLock<Ending>,
}

/// A subscription, and where its frames come out.
struct Subscribed {
    id: SubscriptionId,
    frames: Inbox,
    places: Places,
}

impl Caller<'_> {
    /// The first message and its answer: the subscription, or why there is none.
    async fn handshake(&self, ear: &mut impl Ear, mouth: &mut impl Mouth) -> Result<Subscribed, Ending> {
        let until = self.manners.first.map(|time| Instant::now() + time);
        loop {
            let heard = match until {
                Some(until) => {
                    tokio::time::timeout_at(until, ear.hear()).await.map_err(|_| Ending::Silent)?
                }
                None => ear.hear().await,
            };
            let word = match heard {
                Heard::Alive => continue,
                Heard::End(ending) => return Err(ending),
                Heard::Aside(text) => Word::Aside(text),
                Heard::Malformed => Word::Refused { to: None },
                Heard::Message { text, to } if let Some(request) = read_request(&text) => {
                    let (json, outcome) = self.subscribe(request).await;
                    // It listens before it is told so: whatever is said after the answer is heard.
                    let subscribed = match outcome {
                        Ok((subscription, places)) => Ok(self.attach(subscription, places).await),
                        Err(ending) => Err(ending),
                    };
                    return match (say(self.manners, mouth, Word::Answer { json, to }).await, subscribed) {
                        (Ok(()), subscribed) => subscribed,
                        (Err(ending), subscribed) => {
                            if let Ok(Subscribed { id, .. }) = subscribed {
                                self.close(&id).await;
                            }
                            Err(ending)
                        }
                    };
                }
                Heard::Message { to, .. } => Word::Refused { to },
            };
            // Whoever begins with something else does not speak this protocol.
            if matches!(word, Word::Refused { .. }) && self.manners.malformed.is_some() {
                return Err(Ending::Violation);
            }
            say(self.manners, mouth, word).await?;
        }
    }

    /// The answer to a request, and the subscription or the end that it means.
    async fn subscribe(&self, request: Command) -> (String, Result<(SubscriptionId, Places), Ending>) {
        let reply = self.bridge.ask(self.who.clone(), request).await;
        match &reply {
            Reply::Subscribed { accepted, tells_places } => {
                let subscription = (accepted.subscription_id.clone(), Places::new(*tells_places));
                (reply.to_json().unwrap_or_default(), Ok(subscription))
            }
            other => {
                let (json, code) = refusal(other);
                let ending = match code.as_str() {
                    "authentication_required" => Ending::Unauthenticated,
                    "authorization_denied" => Ending::Denied,
                    _ => Ending::Rejected,
                };
                (json, Err(ending))
            }
        }
    }

    async fn attach(&self, id: SubscriptionId, places: Places) -> Subscribed {
        let listener = self.bridge.new_listener();
        let attach = Command::Attach { subscription: id.clone(), last_event_id: None, listener };
        let (frames, sink) = Inbox::new(self.bridge, listener);
        // Without a place in the fan-out the sink is dropped, and that is the end too.
        if self.bridge.ask(self.who.clone(), attach).await == Reply::Done {
            self.bridge.connect(listener, sink);
        }
        Subscribed { id, frames, places }
    }

    /// Hears and says, until one of the two ends.
    async fn converse(
        &self,
        subscribed: Subscribed,
        ear: &mut (impl Ear + Send),
        mouth: &mut (impl Mouth + Send),
    ) -> Ending {
        let Subscribed { id: subscription, frames, places } = subscribed;
        let subscription = &subscription;
        let (say, words) = mpsc::channel(4);
        let over = Over::default();
        let hearing = async {
            let ending = self.hear(subscription, ear, &say, &over).await;
            let is_theirs = !matches!(
                ending,
                Ending::Over
                    | Ending::Replaced
                    | Ending::Dismissed
                    | Ending::Closed
                    | Ending::Slow
                    | Ending::Stopping
            );
            if is_theirs {
                self.close(subscription).await;
            }
            let last = Word::End { ending, subscription: Some(subscription.clone()) };
            let _ = say.send(last).await;
            ending
        };
        let saying = self.say(mouth, words, frames, places, &over);
        tokio::pin!(hearing, saying);
        tokio::select! {
            biased;
            ending = &mut hearing => {
                let _ = timeout(FAREWELL, saying).await;
                ending
            }
            () = &mut saying => {
                self.close(subscription).await;
                Ending::Gone
            }
        }
    }

    /// Takes messages one after the other, until there is a reason to end.
    async fn hear(
        &self,
        subscription: &SubscriptionId,
        ear: &mut impl Ear,
        say: &mpsc::Sender<Word>,
        over: &Over,
    ) -> Ending {
        // The third sign of life that was asked for has its time to come, too.
        let silence = self.manners.ping.map_or(Duration::MAX, |ping| ping * 4);
        let mut malformed = 0;
        loop {
            let heard = tokio::select! {
                heard = timeout(silence, ear.hear()) => heard.unwrap_or(Heard::End(Ending::Silent)),
                () = over.noticed.notified() => return over.why.get().copied().unwrap_or(Ending::Over),
            };
            let (word, ending) = match heard {
                Heard::Alive => continue,
                Heard::End(ending) => return ending,
                Heard::Aside(text) => (Some(Word::Aside(text)), None),
                Heard::Malformed => (Some(Word::Refused { to: None }), None),
                Heard::Message { text, to } => self.message(subscription, &text, to).await,
            };
            if matches!(word, Some(Word::Refused { .. })) {
                malformed += 1;
            }
            if let Some(word) = word
                && say.send(word).await.is_err()
            {
                return Ending::Gone;
            }
            if let Some(ending) = ending {
                return ending;
            }
            if self.manners.malformed.is_some_and(|most| malformed >= most) {
                return Ending::Violation;
            }
        }
    }

    /// A message after the handshake. A wire speaks for its own subscription only; whatever else it says goes to the hub,
    /// which tells nobody what came of it (C-D1).
    async fn message(
        &self,
        subscription: &SubscriptionId,
        text: &str,
        to: Option<String>,
    ) -> (Option<Word>, Option<Ending>) {
        match read_message(text, subscription) {
            None => (Some(Word::Refused { to }), None),
            Some(Received::Close) => {
                self.close(subscription).await;
                (None, Some(Ending::Closed))
            }
            Some(Received::Renegotiate(message)) => match self.say_to_hub(subscription, message).await {
                reply @ (Reply::Renegotiated(_) | Reply::SubscriptionRejected(_)) => {
                    let json = reply.to_json().unwrap_or_default();
                    let ending = matches!(reply, Reply::SubscriptionRejected(_)).then_some(Ending::Rejected);
                    (Some(Word::Answer { json, to }), ending)
                }
                _ => (Some(Word::Refused { to }), None),
            },
            Some(Received::Other(message)) => {
                self.say_to_hub(subscription, message).await;
                (None, None)
            }
        }
    }

    async fn say_to_hub(&self, subscription: &SubscriptionId, message: SubscriberMessage) -> Reply {
        let subscription = subscription.clone();
        self.bridge.ask(self.who.clone(), Command::SayOver { subscription, message }).await
    }

    async fn close(&self, subscription: &SubscriptionId) {
        self.say_to_hub(subscription, SubscriberMessage::Close(subscription.clone())).await;
    }

    /// Says what there is to say, answers first, until the last word or until nobody hears it.
    async fn say(
        &self,
        mouth: &mut impl Mouth,
        mut words: mpsc::Receiver<Word>,
        mut frames: Inbox,
        mut places: Places,
        over: &Over,
    ) {
        let mut pings = tokio::time::interval(self.manners.ping.unwrap_or(FAREWELL));
        pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        pings.reset();
        let mut open = true;
        loop {
            let word = tokio::select! {
                biased;
                word = words.recv() => match word {
                    Some(word) => word,
                    None => return,
                },
                _ = pings.tick(), if self.manners.ping.is_some() => Word::Ping,
                frame = frames.next(), if open => {
                    let Some(frame) = frame else {
                        open = false;
                        over.noticed.notify_one();
                        continue;
                    };
                    if let Some(reason) = frame.closes() {
                        let _ = over.why.set(Ending::because(reason));
                        continue;
                    }
                    Word::Event(frame)
                }
            };
            let last = matches!(word, Word::End { .. });
            // A heartbeat of SSE has no event in it.
            let frame = if let Word::Event(frame) = &word { Some(frame.clone()) } else { None };
            let empty = frame.as_ref().is_some_and(|frame| frame.json().is_empty());
            if !empty && say(self.manners, mouth, word).await.is_err() || last {
                return;
            }
            let Some(frame) = frame else { continue };
            places.note(&frame);
            if let Some(place) = places.due(frames.is_empty())
                && say(self.manners, mouth, Word::Event(place)).await.is_err()
            {
                return;
            }
        }
    }
}

pub(super) const REQUEST: &str = "subscription.request";
pub(super) const RENEGOTIATE: &str = "subscription.renegotiate";
pub(super) const CLOSE: &str = "subscription.close";

async fn say(manners: &Manners, mouth: &mut impl Mouth, word: Word) -> Result<(), Ending> {
    if timeout(manners.patience, mouth.say(word)).await.unwrap_or(false) { Ok(()) } else { Err(Ending::Gone) }
}

/// A message after the handshake.
enum Received {
    /// It asks for other terms, or tries to.
    Renegotiate(SubscriberMessage),
    Close,
    Other(SubscriberMessage),
}

/// Reads a message after the handshake; `None` if it has no type, asks for a second subscription, or speaks for another one.
fn read_message(text: &str, subscription: &SubscriptionId) -> Option<Received> {
    let mut tape = Tape::default();
    let doc = tape.read(text).ok()?;
    let root = doc.root();
    let is_own = || root.member("subscription_id")?.text().filter(|id| *id == subscription.as_str());
    match &*type_of(root)? {
        REQUEST => None,
        RENEGOTIATE => is_own().map(|_| Received::Renegotiate(SubscriberMessage::read(&doc))),
        CLOSE => is_own().map(|_| Received::Close),
        _ => Some(Received::Other(SubscriberMessage::read(&doc))),
    }
}

/// Reads the first message; `None` if it is not meant to ask for a subscription.
fn read_request(text: &str) -> Option<Command> {
    let mut tape = Tape::default();
    let doc = tape.read(text).ok()?;
    (type_of(doc.root())? == REQUEST).then(|| Command::subscribe(Message::read(&doc)))
}

/// The type of a message; none if it is not an object that has one.
pub(super) fn type_of(message: Value<'_>) -> Option<Cow<'_, str>> {
    message.member("type")?.text()
}

/// The `subscription.rejected` of whatever keeps a request from being accepted, and its reason code.
pub(crate) fn refusal(reply: &Reply) -> (String, String) {
    let (code, why) = match reply {
        Reply::SubscriptionRejected(rejected) => {
            return (reply.to_json().unwrap_or_default(), rejected.reason_code.as_str().to_owned());
        }
        Reply::Forbidden => ("authorization_denied", "This token is not for that.".to_owned()),
        Reply::LimitReached(limit) => ("rate_limit", limit.to_string()),
        Reply::Unavailable(why) => ("transport_unavailable", why.to_string()),
        Reply::Malformed(why) => ("unknown", why.to_string()),
        _ => ("unknown", "The hub cannot answer this.".to_owned()),
    };
    (rejected(code, &why), code.to_owned())
}

/// A `subscription.rejected`.
pub(crate) fn rejected(code: &str, why: &str) -> String {
    object(&[("type", "subscription.rejected"), ("reason_code", code), ("reason_message", why)])
}

/// A `subscription.close`, with its reason.
pub(super) fn closing(subscription: &SubscriptionId, ending: Ending) -> String {
    let (code, message) = ending.reason();
    object(&[
        ("type", CLOSE),
        ("subscription_id", subscription.as_str()),
        ("reason_code", code),
        ("reason_message", message),
    ])
}

fn object(members: &[(&str, &str)]) -> String {
    let mut writer = Writer::default();
    writer.open_object();
    for (name, text) in members {
        writer.key(name);
        writer.text(text);
    }
    writer.close_object();
    writer.finish()
}
