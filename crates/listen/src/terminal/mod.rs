//! `sayso listen`: lines, one after the other, each with a word in front. Nothing is repainted.
//!
//! - `typed`: what a line means by itself; `conversation`: what it means now, and what follows from it; `answerlike`: what only
//!   sounds like an answer.
//! - `talk`: what is heard, typed and said, one thing at a time; `back`: the connection is there again.
//! - `terms`: what is said of what a hub gives; `printed`: announcements as lines or as JSON; `aloud`: given to a voice.

mod aloud;
mod answerlike;
mod back;
mod conversation;
mod printed;
mod talk;
mod terms;
#[cfg(test)]
mod tests;
mod typed;

use std::io::{self, BufRead, Read, Write};

use aaep::SessionId;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep_until;

use crate::client::{self, Address};
use crate::{Announcement, Checks, Limits, Phrases, Tastes, Voice};
use talk::Talk;

/// How somebody listens.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the hub is.
    pub address: Address,
    /// What the person wants to hear.
    pub tastes: Tastes,
    /// One JSON object a line, for programs.
    pub json: bool,
    /// Whether questions are answered without a person.
    pub auto: Auto,
    /// How much is kept.
    pub limits: Limits,
    /// How it is looked at who the hub is; nothing where that is known.
    pub checks: Option<Checks>,
}

impl Settings {
    /// The usual way to listen to a hub.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            tastes: Tastes::default(),
            json: false,
            auto: Auto::Off,
            limits: Limits::default(),
            checks: None,
        }
    }
}

/// Whether questions are answered without a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auto {
    /// The person is asked.
    Off,
    /// Everything is allowed; of choices the first is taken.
    Accept,
    /// Everything is refused.
    Reject,
    /// Nothing is answered, whatever is typed: each question runs out of time.
    None,
}

impl Auto {
    /// What the person should know before it begins.
    pub fn warning(self, phrases: &Phrases) -> Option<&'static str> {
        match self {
            Self::Off => None,
            Self::Accept => Some(phrases.auto_accepts),
            Self::Reject => Some(phrases.auto_rejects),
            Self::None => Some(phrases.auto_is_silent),
        }
    }
}

/// What others have to do with a terminal that listens. Everything may be left out.
#[derive(Default)]
pub struct Hooks {
    /// Lines that the person types. When it ends, listening goes on without answers. See [`stdin`].
    pub input: Option<mpsc::Receiver<String>>,
    /// Gets the lines that are neither a command nor an answer; without it they are not understood.
    pub requests: Option<mpsc::Sender<String>>,
    /// Whether a line is a request that is understood. While a question is open nothing else is one, nor what sounds like an
    /// answer.
    pub understood: Option<fn(&str) -> bool>,
    /// Takes orders from elsewhere.
    pub orders: Option<mpsc::Receiver<Order>>,
    /// Told when the first stream is open: from then on nothing is missed.
    pub ready: Option<oneshot::Sender<()>>,
    /// Says what is printed, too.
    pub voice: Option<Box<dyn Voice>>,
}

/// An order for a terminal that listens.
#[derive(Debug)]
pub enum Order {
    /// Says this, in sayso's own words.
    Say(Announcement),
    /// Ends when this session has ended.
    EndAfter(SessionId),
    /// Tells when what was taken before is dealt with.
    Tell(oneshot::Sender<()>),
    /// Tells when this session was told to its end, which is `true`, or what it asks was told and is not answered.
    TellAfter(SessionId, oneshot::Sender<bool>),
    /// Ends now.
    End,
}

/// Why it could not listen, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

/// Bytes of a line that is typed.
const LONGEST_LINE: u64 = 64 * 1024;
/// Announcements and answers that wait for each other.
const WAITING: usize = 64;

/// The lines of standard input, read by a thread of their own.
pub fn stdin() -> mpsc::Receiver<String> {
    let (lines, input) = mpsc::channel(WAITING);
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        while let Some(line) = next_line(&mut stdin) {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    input
}

/// The next line; one that is too long becomes a text that means nothing, so that no part of it does.
fn next_line(input: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    let read = input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
    if read.is_ok_and(|read| read > 0) {
        if !line.ends_with(b"\n") && line.len() as u64 >= LONGEST_LINE {
            while input.skip_until(b'\n').is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {}
            return Some("a line that is too long".to_owned());
        }
        // What is no text is shown as such, and answers nothing.
        return Some(String::from_utf8_lossy(&line).into_owned());
    }
    None
}

/// Listens until the person or an order ends it, or the hub refuses.
pub async fn run(settings: Settings, mut hooks: Hooks, out: impl Write) -> Result<(), Failure> {
    let (tell, mut heard) = mpsc::channel(WAITING);
    let (wishes, wanted) = watch::channel(settings.tastes.clone());
    let (address, checks) = (settings.address.clone(), settings.checks.clone());
    let signed_only = checks.as_ref().is_some_and(|checks| checks.signed_only);
    let request = move |asking| client::request(&wanted.borrow(), signed_only, &asking);
    let following = tokio::spawn(client::follow(address, checks, request, tell));
    let (mut input, mut orders) = (hooks.input.take(), hooks.orders.take());
    let mut talk = Talk::new(settings, hooks, wishes, out);
    let mut failure = None;
    while failure.is_none() && !talk.is_over {
        let next = talk.next_look();
        tokio::select! {
            one = heard.recv() => match one {
                Some(one) => failure = talk.hear(one),
                None => talk.is_over = true,
            },
            line = next_of(&mut input) => match line {
                Some(line) => talk.typed(&line),
                None => input = None,
            },
            order = next_of(&mut orders) => match order {
                Some(Order::Say(announcement)) => talk.say(&announcement),
                Some(Order::EndAfter(session)) => talk.until = Some(session),
                Some(Order::Tell(who)) => drop(who.send(())),
                Some(Order::TellAfter(session, who)) => talk.told_after.push((session, who)),
                Some(Order::End) => talk.quit(),
                None => orders = None,
            },
            Some(Ok(sent)) = talk.sends.join_next() => talk.was_sent(sent),
            () = sleep_until(next) => {}
        }
        talk.look();
    }
    following.abort();
    if let Some(Failure(why)) = &failure {
        talk.last_words(why).await;
    }
    talk.leave().await;
    failure.map_or(Ok(()), Err)
}

/// The next of a channel that may not be there.
async fn next_of<T>(channel: &mut Option<mpsc::Receiver<T>>) -> Option<T> {
    match channel {
        Some(channel) => channel.recv().await,
        None => std::future::pending().await,
    }
}
