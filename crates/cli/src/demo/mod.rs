//! The demo's assistant: a scripted bank and household assistant that shows every event there is, by plain words.
//!
//! It is an agent like any other: it says what it does to the hub, asks before it acts, and waits. Nothing that it says it
//! does is done; its texts say so.
//!
//! - `request`: which scene somebody wants, by the words of the request.
//! - `scenes`: the scenes.
//! - `agent`: an agent's side of a session.
//! - `draft`: an event in the making.
//! - `phrases`: all that it says, in three lengths and, by `language`, in three languages.

mod agent;
mod draft;
mod language;
mod phrases;
mod request;
mod scenes;

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use wire::{Bridge, Wish};

use agent::Agent;

/// So many wishes may wait to be looked at.
const WAITING: usize = 16;
/// So many sessions go on at once; whoever wants one more is told that it is busy.
const SESSIONS: usize = 64;

/// Starts the assistant; what it is sent, it does.
pub(crate) fn start(bridge: Bridge) -> mpsc::Sender<Wish> {
    let (sender, mut wishes) = mpsc::channel::<Wish>(WAITING);
    tokio::spawn(async move {
        let places = Arc::new(Semaphore::new(SESSIONS));
        while let Some(Wish { text, user, begun }) = wishes.recv().await {
            let Ok(place) = places.clone().try_acquire_owned() else {
                let _ = begun.send(Err("The assistant is busy; try again later.".to_owned()));
                continue;
            };
            let bridge = bridge.clone();
            tokio::spawn(async move {
                let (scene, language) = request::read(&text);
                match Agent::begin(bridge, scene, language, user.as_deref()).await {
                    Err(why) => drop(begun.send(Err(why))),
                    Ok(agent) => {
                        let _ = begun.send(Ok(agent.session().to_owned()));
                        // Whoever stops a session, or a hub that cannot go on, ends a scene early; the hub says so.
                        let _ = scenes::play(&agent, scene).await;
                    }
                }
                drop(place);
            });
        }
    });
    sender
}
