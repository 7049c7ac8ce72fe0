//! Subscribes, hears, and comes back after every loss.

use std::time::Duration;

use ::http::header::{ACCEPT, CACHE_CONTROL, HeaderName};
use aaep::SubscriptionId;
use aaep::json::Tape;
use aaep::message::{Message, ReasonCode, SubscriptionAccepted, SubscriptionRejected};
use client::sse::{Block, Fault as BlockFault, Parser};
use client::{Backoff, Response};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::address::Wire;
use super::{Address, SAYSO_PREFIX, Why, http, manifest, messages};
use crate::{Checks, Fault, Standing};

/// What comes of following a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Heard {
    /// The stream is open, by this subscription. `notes` are the hub's, about what it does not give.
    Open {
        /// The subscription; nothing where the producer knows none: then it is no hub, and takes answers elsewhere
        /// ([`Address::without_hub`]).
        subscription: Option<SubscriptionId>,
        /// What the hub says about its terms.
        notes: Option<String>,
        /// It goes on where it was: by the subscription that was there before, or by one that begins after the last event.
        resumed: bool,
    },
    /// What is known of who the hub is; told before the stream is open, and again only when it has changed.
    Manifest(Standing),
    /// The hub could not give what was asked for, for this reason of its own; it was asked for less.
    AskedForLess(Why),
    /// A new subscription was made: what was asked for, and the answer, as JSON. It comes before the stream is open.
    Terms {
        /// `subscription.request`
        request: String,
        /// `subscription.accepted`
        accepted: String,
    },
    /// An event or a message, as JSON.
    Text(String),
    /// Something came that is longer than can be taken; it is left out.
    TooLong,
    /// The connection is lost; it is tried again.
    Lost(Lost),
    /// It is over, for this reason: nothing else will come.
    Over(Lost),
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lost {
    /// Nobody answers, or it hung up.
    Unreachable(Why),
    /// The hub does not want us.
    Refused(Why),
}

impl Lost {
    /// The reason.
    pub fn why(&self) -> &Why {
        match self {
            Self::Unreachable(why) | Self::Refused(why) => why,
        }
    }
}

/// Between two attempts: from this, …
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
/// …doubled each time up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// A connection that has lasted so long was a good one.
const LASTS: Duration = Duration::from_secs(5);
/// The hub gives a sign of life every 15 seconds; one that is silent for so long is not there.
pub(super) const SILENCE: Duration = Duration::from_mins(1);
/// No block is longer: an event may have 1 MiB.
pub(super) const LONGEST_BLOCK: usize = 2 * 1024 * 1024;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// What became of asking before, for whoever writes a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asking {
    /// How often the hub has let go because more came than was taken (§5.6.2).
    pub times_slow: u32,
    /// The hub could not give what was asked for (`capabilities_incompatible`): only what is needed is asked for now, and
    /// nothing of extensions (§7.3.1).
    pub plainly: bool,
    /// The event after which it goes on, where an earlier subscription is over.
    pub after: Option<String>,
    /// The wire does not tell with each event where one is, so that it is asked for.
    pub places: bool,
}

impl Asking {
    /// The rate to ask for, where this one was wished for: half of it for each time that it was too much.
    pub fn rate(&self, wished: Option<u64>) -> Option<u64> {
        if self.times_slow == 0 {
            return wished;
        }
        Some(wished.unwrap_or(TOO_FAST).checked_shr(self.times_slow).unwrap_or(0).max(1))
    }
}

/// Without a wish, this many events in a second are taken for what was too much.
const TOO_FAST: u64 = 100;

/// Follows a hub until it refuses or nobody hears any more. `request` says what is wanted whenever a new subscription is made.
/// With `checks`, who the hub is is looked at before each stream (HTTP and SSE only).
///
/// The first attempt must succeed, or it is over at once; after that every loss is tried again: after a pause that grows, or
/// as soon as there is a reason to ([`Address::try_now`]).
pub async fn follow(
    to: Address,
    checks: Option<Checks>,
    request: impl Fn(Asking) -> String,
    tell: mpsc::Sender<Heard>,
) {
    follow_from(to, checks, request, tell, SHORTEST_PAUSE).await;
}

/// The same, with another shortest pause.
pub(super) async fn follow_from(
    to: Address,
    checks: Option<Checks>,
    request: impl Fn(Asking) -> String,
    tell: mpsc::Sender<Heard>,
    shortest: Duration,
) {
    let address = to.clone();
    let mut way = match to.wire {
        Wire::Sse => Ways::Stream(Box::new(Way {
            to,
            checks,
            bare: false,
            asking: Asking::default(),
            subscription: None,
            offer: None,
            standing: None,
            proven: false,
            last: None,
            goes_on: false,
            parting: None,
        })),
        Wire::WebSocket | Wire::Unix(_) => Ways::Messages(to, Asking { places: true, ..Asking::default() }),
    };
    let from_shortest = Backoff::new(shortest, LONGEST_PAUSE);
    let mut backoff = from_shortest;
    let mut before = false;
    loop {
        let since = Instant::now();
        let ended = match &mut way {
            Ways::Stream(way) => way.hear(&request, &tell, before).await,
            Ways::Messages(to, asking) => messages::hear(to, &request, asking, &tell, before).await,
        };
        if tell.is_closed() {
            return;
        }
        let lost = match ended {
            Ended::Heard(lost) => {
                before = true;
                // One that lets in and hangs up at once is not tried all the time.
                if since.elapsed() >= LASTS {
                    backoff = from_shortest;
                }
                lost
            }
            Ended::NotHeard(lost) => lost,
        };
        if matches!(lost, Lost::Refused(_)) || !before {
            let _ = tell.send(Heard::Over(lost)).await;
            return;
        }
        if tell.send(Heard::Lost(lost)).await.is_err() {
            return;
        }
        tokio::select! {
            () = sleep(backoff.delay()) => backoff.grow(),
            // Nobody can make it try again and again without a pause.
            () = async { address.sooner().await; sleep(SHORTEST_PAUSE).await } => {}
        }
    }
}

enum Ways {
    Stream(Box<Way>),
    /// A wire of messages, on which every connection is a new subscription.
    Messages(Address, Asking),
}

struct Way {
    to: Address,
    checks: Option<Checks>,
    /// It is no hub but a producer by itself, which knows no handshake (`docs/interop.md`).
    bare: bool,
    asking: Asking,
    subscription: Option<SubscriptionId>,
    /// What the subscription was made by.
    offer: Option<Box<SubscriptionAccepted>>,
    /// Who the hub is, as it was told.
    standing: Option<Standing>,
    /// It has proven who it is. Whoever comes without a proof after that is somebody else.
    proven: bool,
    /// The id of the latest block.
    last: Option<String>,
    /// The subscription begins after the last event of an earlier one.
    goes_on: bool,
    /// The hub has said why it does not want us back.
    parting: Option<Why>,
}

/// The notes of an answer, and the answer.
type Accepted = (Option<String>, String);

enum NotMade {
    /// Nobody answers.
    Unreachable(Why),
    /// It may be otherwise later.
    Passing(Why),
    /// The hub cannot give what was asked for.
    TooMuch(Why),
    Refused(Why),
}

/// How an attempt ended: whether the stream was open.
pub(super) enum Ended {
    Heard(Lost),
    NotHeard(Lost),
}

impl Way {
    async fn hear(
        &mut self,
        request: &impl Fn(Asking) -> String,
        tell: &mpsc::Sender<Heard>,
        before: bool,
    ) -> Ended {
        let is_old = self.subscription.is_some();
        // Who has heard nothing yet cannot say where to go on: what was said until now is lost.
        let mut resumed = self.subscription.is_some() && (self.last.is_some() || self.goes_on);
        let mut notes = None;
        if self.subscription.is_none() && !self.bare {
            let mut asked = request(self.asking.clone());
            let mut answer = self.subscribe(&asked).await;
            if let Err(NotMade::TooMuch(why)) = &answer
                && !std::mem::replace(&mut self.asking.plainly, true)
            {
                if tell.send(Heard::AskedForLess(why.clone())).await.is_err() {
                    return Ended::NotHeard(Lost::Unreachable(Why::Nobody));
                }
                asked = request(self.asking.clone());
                answer = self.subscribe(&asked).await;
            }
            match answer {
                Ok(None) => {}
                Ok(Some((said, accepted))) => {
                    notes = said;
                    resumed = self.goes_on;
                    if tell.send(Heard::Terms { request: asked, accepted }).await.is_err() {
                        return Ended::NotHeard(Lost::Unreachable(Why::Nobody));
                    }
                }
                // A hub that has no room now may have some later, for who was there before.
                Err(NotMade::Passing(why)) if before => return Ended::NotHeard(Lost::Unreachable(why)),
                Err(NotMade::Unreachable(why)) => return Ended::NotHeard(Lost::Unreachable(why)),
                Err(NotMade::Passing(why) | NotMade::TooMuch(why) | NotMade::Refused(why)) => {
                    return Ended::NotHeard(Lost::Refused(why));
                }
            }
        }
        if let Err(lost) = self.look_at_manifest(tell).await {
            return Ended::NotHeard(lost);
        }
        let path = match &self.subscription {
            Some(subscription) => format!("/aaep/v1/events?subscription_id={subscription}"),
            None => "/events".to_owned(),
        };
        let mut headers = vec![(ACCEPT, "text/event-stream"), (CACHE_CONTROL, "no-cache")];
        headers.extend(self.last.as_deref().map(|last| (LAST_EVENT_ID, last)));
        let mut answer = match http::get(&self.to, &path, &headers).await {
            Ok(answer) => answer,
            Err(why) => return Ended::NotHeard(Lost::Unreachable(why)),
        };
        if answer.status != 200 || !answer.is_event_stream() {
            let lost = self.not_let_in(answer.status);
            if is_old && lost == Lost::Unreachable(Why::Forgotten) {
                // The hub is there, and a new subscription is all that is needed.
                self.to.try_now();
            }
            return Ended::NotHeard(lost);
        }
        let open = Heard::Open { subscription: self.subscription.clone(), notes, resumed };
        if tell.send(open).await.is_err() {
            return Ended::Heard(Lost::Unreachable(Why::Nobody));
        }
        Ended::Heard(self.blocks(&mut answer, tell).await)
    }

    /// Makes a subscription: the hub's notes, and its whole answer; nothing where it is no hub.
    async fn subscribe(&mut self, request: &str) -> Result<Option<Accepted>, NotMade> {
        let answer = http::post(&self.to, "/aaep/v1/subscriptions", request).await;
        let answer = answer.map_err(NotMade::Unreachable)?;
        let (status, wait) = (answer.status, answer.retry_after().map(|wait| wait.as_secs()));
        let body = http::body(answer).await.map_err(NotMade::Unreachable)?;
        match Message::parse(&body) {
            Some(Message::SubscriptionAccepted(accepted)) => {
                self.subscription = Some(accepted.subscription_id.clone());
                self.last = None;
                self.goes_on = goes_on(&accepted, &self.asking);
                let notes = accepted.negotiation_notes.clone();
                self.offer = Some(Box::new(accepted));
                Ok(Some((notes, body)))
            }
            Some(Message::SubscriptionRejected(rejected)) => {
                let why = Why::refusal(&rejected, wait);
                Err(match rejected.reason_code {
                    ReasonCode::CapabilitiesIncompatible => NotMade::TooMuch(why),
                    _ if passes(&rejected) => NotMade::Passing(why),
                    _ => NotMade::Refused(why),
                })
            }
            _ if matches!(status, 404 | 405) => {
                self.bare = true;
                Ok(None)
            }
            _ if status / 100 == 5 => Err(NotMade::Unreachable(Why::Answered(status))),
            _ => Err(NotMade::Refused(Why::NoHub(Some(status)))),
        }
    }

    /// Looks at who the hub is, and tells it if that is news. Where only signed manifests will do, it is over with another.
    async fn look_at_manifest(&mut self, tell: &mpsc::Sender<Heard>) -> Result<(), Lost> {
        let Some(checks) = &self.checks else { return Ok(()) };
        let looked = manifest::look(&self.to, self.offer.as_deref(), checks).await;
        let standing = match (looked, &self.standing) {
            (Ok(standing), _) => standing,
            (Err(why), _) if checks.signed_only => return Err(Lost::Unreachable(why)),
            (Err(why), None) => Standing::Unread(why),
            // It was never known who it is.
            (
                Err(_),
                Some(Standing::Unread(_) | Standing::Absent | Standing::Elsewhere | Standing::NotUnderstood),
            ) => return Ok(()),
            // It was; whoever is there now has to say so again.
            (Err(why), Some(_)) => return Err(Lost::Unreachable(why)),
        };
        self.proven |= matches!(standing, Standing::Proven(_));
        let standing = match standing {
            Standing::Proven(_) | Standing::Wrong(_) => standing,
            _ if self.proven => Standing::Wrong(Fault::NoLonger),
            _ => standing,
        };
        if checks.signed_only && !matches!(standing, Standing::Proven(_)) {
            if let Some(subscription) = self.subscription.take() {
                let close = super::farewell(&subscription);
                let _ = http::post(&self.to, self.to.messages, &close).await;
            }
            return Err(Lost::Refused(Why::NotProven(Box::new(standing))));
        }
        if self.standing.as_ref() == Some(&standing) {
            return Ok(());
        }
        self.standing = Some(standing.clone());
        tell.send(Heard::Manifest(standing)).await.map_err(|_| Lost::Unreachable(Why::Nobody))
    }

    fn not_let_in(&mut self, status: u16) -> Lost {
        match status {
            _ if self.bare => Lost::Refused(Why::NoHub(Some(status))),
            401 | 403 => Lost::Refused(Why::TokenEnded),
            // It is forgotten, or its time to come back is over: a new one is made.
            404 | 410 => {
                self.forget();
                Lost::Unreachable(Why::Forgotten)
            }
            other => Lost::Unreachable(Why::Answered(other)),
        }
    }

    async fn blocks(&mut self, answer: &mut Response, tell: &mpsc::Sender<Heard>) -> Lost {
        let mut parser = Parser::new(LONGEST_BLOCK);
        let mut blocks = Vec::new();
        loop {
            let more = tokio::select! {
                more = timeout(SILENCE, answer.chunk()) => more,
                () = tell.closed() => return Lost::Unreachable(Why::Nobody),
            };
            match more {
                Ok(Ok(Some(bytes))) => parser.take(&bytes, &mut blocks),
                Ok(Ok(None)) => return self.ended(Why::Ended),
                Ok(Err(error)) => return self.ended(error.into()),
                Err(_) => return self.ended(Why::Lifeless),
            }
            for block in blocks.drain(..) {
                let heard = (block.fault == Some(BlockFault::TooLong)).then_some(Heard::TooLong);
                let said = self.take(block).map(Heard::Text);
                if let Some(heard) = heard.or(said)
                    && tell.send(heard).await.is_err()
                {
                    return Lost::Unreachable(Why::Nobody);
                }
            }
        }
    }

    fn ended(&self, why: Why) -> Lost {
        match &self.parting {
            Some(parting) => Lost::Refused(parting.clone()),
            None => Lost::Unreachable(why),
        }
    }

    /// What a block says; its id is remembered, also where it says nothing.
    fn take(&mut self, block: Block) -> Option<String> {
        if let Some(id) = block.id {
            self.last =
                Some(id).filter(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic()));
        }
        let text = block.data?;
        if block.event == "aaep.message"
            && let Some(Message::SubscriptionClose(close)) = Message::parse(&text)
        {
            match close.reason_code.as_deref() {
                // It can be come back to.
                Some("producer_shutdown") => {}
                Some("replaced") => self.parting = Some(Why::Replaced),
                Some("token_removed") => self.parting = Some(Why::TokenEnded),
                reason => {
                    if reason == Some("slow_consumer") {
                        self.asking.times_slow = self.asking.times_slow.saturating_add(1);
                    }
                    self.forget();
                }
            }
        }
        Some(text)
    }

    /// The subscription is over; a new one may go on where it was.
    fn forget(&mut self) {
        self.subscription = None;
        self.asking.after = self.last.take().or(self.asking.after.take());
    }
}

/// Whether a new subscription begins after the event that was asked for. A hub that does not know of that says nothing.
pub(super) fn goes_on(accepted: &SubscriptionAccepted, asking: &Asking) -> bool {
    let mut tape = Tape::default();
    let granted = accepted.honored_capabilities.other.get(SAYSO_PREFIX);
    let root = granted.and_then(|granted| Some(tape.read(granted.as_str()).ok()?.root()));
    match (root.and_then(|root| root.member("after")?.text()), &asking.after) {
        (Some(granted), Some(asked)) => granted == *asked,
        _ => false,
    }
}

/// Whether it may be otherwise later.
pub(super) fn passes(rejected: &SubscriptionRejected) -> bool {
    matches!(rejected.reason_code, ReasonCode::RateLimit | ReasonCode::TransportUnavailable)
}
