//! `/aaep/v1/ws` for clients without a subprotocol and without a handshake.

use std::sync::Arc;

use futures_util::StreamExt;
use hub::Principal;
use hub::command::{Command, SubscriberMessage};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout, timeout_at};

use super::Compat;
use super::bare::{self, Bare};
use super::words::{self, Words};
use crate::http::{Head, Response};
use crate::listener::websocket::{accept_key, switch};
use crate::listener::{Ear, Ending, FAREWELL, Heard, Mouth, Word, hang_up};
use crate::observe::Wire;
use crate::server::{Bridge, Server};

/// A request to become such a WebSocket that was found good.
pub(crate) struct Upgrade {
    compat: Arc<Compat>,
    who: Principal,
    accept: String,
}

impl Upgrade {
    pub(super) fn asked(compat: &Arc<Compat>, head: &Head, who: &Principal) -> Result<Self, Response> {
        Ok(Self { compat: compat.clone(), who: who.clone(), accept: accept_key(head)? })
    }

    /// The WebSocket, until it ends; `read` is what came after the head.
    pub(crate) async fn run(
        self,
        server: &Server,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin,
        read: Vec<u8>,
    ) {
        let Self { compat, who, accept } = self;
        let Some(socket) = switch(server, &accept, None, stream, read).await else { return };
        let (mut mouth, mut ear) = socket.split();
        let _here = server.bridge.observe().listens(Wire::WebSocket);
        let _talk = server.bridge.talk();
        let ending = match Bare::open(&server.bridge, &who, server.limits.dialect).await {
            Err(_) => Ending::Rejected,
            Ok(mut bare) => {
                let ending = converse(server, &compat, &who, &mut bare, &mut ear, &mut mouth).await;
                bare.close(&bare.subscription).await;
                ending
            }
        };
        let _ = timeout(FAREWELL, mouth.say(Word::End { ending, subscription: None })).await;
        if let Ok(socket) = ear.reunite(mouth) {
            hang_up(socket.into_inner()).await;
        }
    }
}

/// Hears and says, until there is a reason to end.
async fn converse(
    server: &Server,
    compat: &Compat,
    who: &Principal,
    bare: &mut Bare,
    ear: &mut (impl Ear + Send),
    mouth: &mut (impl Mouth + Send),
) -> Ending {
    let limits = &server.limits;
    let mut pings = tokio::time::interval(limits.ping_time);
    pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    pings.reset();
    let silence = limits.ping_time * 4;
    let mut until = Instant::now() + silence;
    let mut malformed = 0;
    loop {
        let (words, last) = tokio::select! {
            biased;
            heard = timeout_at(until, ear.hear()) => {
                until = Instant::now() + silence;
                let said = match heard {
                    Err(_) => return Ending::Silent,
                    Ok(Heard::End(ending)) => return ending,
                    Ok(Heard::Message { text, .. }) => take(&server.bridge, compat, who, bare, text).await,
                    Ok(Heard::Malformed) => Err(()),
                    Ok(Heard::Alive | Heard::Aside(_)) => Ok(None),
                };
                if said.is_err() {
                    malformed += 1;
                    if malformed >= limits.malformed {
                        return Ending::Violation;
                    }
                }
                (said.unwrap_or_default().into_iter().map(Word::Aside).collect(), false)
            }
            frame = bare.next() => {
                let Some(frame) = frame else { return Ending::Over };
                let told = bare.tell(&frame);
                (told.messages.into_iter().map(Word::Aside).collect::<Vec<_>>(), told.last)
            }
            _ = pings.tick() => (vec![Word::Ping], false),
        };
        for word in words {
            if !timeout(limits.message_time, mouth.say(word)).await.unwrap_or(false) {
                return Ending::Gone;
            }
        }
        if last {
            return Ending::Over;
        }
    }
}

/// A message, and what is said to it at once. An error is no message.
async fn take(
    bridge: &Bridge,
    compat: &Compat,
    who: &Principal,
    bare: &mut Bare,
    text: String,
) -> Result<Option<String>, ()> {
    Ok(match words::read(&text).ok_or(())? {
        Words::Request { text, user } => match compat.start(who, text, user).await {
            Ok(_) => None,
            // The dialect has no word for it; a problem is what HTTP would answer.
            Err(problem) => Some(String::from_utf8_lossy(problem.content()).into_owned()),
        },
        Words::Terms => {
            let handover = bare::terms(bridge, who, &text).await;
            if let Some(subscription) = &handover.subscription {
                bare.go_over(subscription).await;
            }
            Some(handover.answer)
        }
        Words::OtherTerms => bare::other_terms(bridge, who, &text).await.map(|handover| handover.answer),
        Words::Close => {
            bridge.ask(who.clone(), Command::Say { message: SubscriberMessage::parse(&text) }).await;
            None
        }
        Words::Reply { token } => {
            bare::reply(bridge, who, Some(bare.replier(token.as_deref())), text).await;
            None
        }
    })
}
