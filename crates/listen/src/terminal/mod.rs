//! `sayso listen`: lines, one after the other, each with a word in front. Nothing is repainted.
//!
//! - `typed`: what a line means by itself; `conversation`: what it means now, and what follows from it.
//! - `printed`: announcements as lines or as JSON.

mod conversation;
mod printed;
mod typed;

use std::io::{self, BufRead, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aaep::event::Decision;
use aaep::{SessionId, SubscriptionId};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::client::{self, Address, Heard, Lost};
use crate::{Announcement, Ear, Kind, Limits, Queue, Subject, Tastes, Voice};
use conversation::Act;

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
}

impl Settings {
    /// The usual way to listen to a hub.
    pub fn new(address: Address) -> Self {
        Self { address, tastes: Tastes::default(), json: false, auto: Auto::Off, limits: Limits::default() }
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

/// What others have to do with a terminal that listens. Everything may be left out.
#[derive(Default)]
pub struct Hooks {
    /// Lines that the person types. When it ends, listening goes on without answers. See [`stdin`].
    pub input: Option<mpsc::Receiver<String>>,
    /// Gets the lines that are neither a command nor an answer; without it they are not understood.
    pub requests: Option<mpsc::Sender<String>>,
    /// Takes orders from elsewhere.
    pub orders: Option<mpsc::Receiver<Order>>,
    /// Told when the first stream is open: from then on nothing is missed.
    pub ready: Option<oneshot::Sender<()>>,
    /// Says what is printed, too.
    pub voice: Option<Box<dyn Voice>>,
}

/// An order for a terminal that listens.
#[derive(Clone, Debug)]
pub enum Order {
    /// Says this, in sayso's own words.
    Say(Announcement),
    /// Ends when this session has ended.
    EndAfter(SessionId),
    /// Ends now.
    End,
}

/// Why it could not listen, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

/// Between two looks at whether a voice is free.
const VOICE: Duration = Duration::from_millis(50);
/// For what is under way, and to say good-bye.
const FAREWELL: Duration = Duration::from_secs(2);
/// Announcements and answers that wait for each other.
const WAITING: usize = 64;

/// The lines of standard input, read by a thread of their own.
pub fn stdin() -> mpsc::Receiver<String> {
    let (lines, input) = mpsc::channel(WAITING);
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut line = Vec::new();
        // What is no text is shown as such, and answers nothing.
        while stdin.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line).into_owned();
            if lines.blocking_send(text).is_err() {
                return;
            }
            line.clear();
        }
    });
    input
}

/// Listens until the person or an order ends it, or the hub refuses.
pub async fn run(settings: Settings, hooks: Hooks, out: impl Write) -> Result<(), Failure> {
    let (tell, mut heard) = mpsc::channel(WAITING);
    let (wishes, wanted) = tokio::sync::watch::channel(settings.tastes.clone());
    let address = settings.address.clone();
    let following = tokio::spawn(client::follow(
        address,
        move || client::request(&wanted.borrow(), "sayso-listen"),
        tell,
    ));
    let mut terminal = Terminal {
        ear: Ear::new(settings.tastes.clone(), settings.limits),
        queue: Queue::new(settings.limits.waiting),
        voice: hooks.voice,
        requests: hooks.requests,
        ready: hooks.ready,
        subscription: None,
        lost: false,
        until: None,
        is_over: false,
        sends: JoinSet::new(),
        wishes,
        settings,
        out,
    };
    let mut input = hooks.input;
    let mut orders = hooks.orders;
    let mut failure = None;
    while failure.is_none() && !terminal.is_over {
        let next = terminal.next_look();
        tokio::select! {
            one = heard.recv() => match one {
                Some(one) => failure = terminal.hear(one),
                None => terminal.is_over = true,
            },
            line = next_of(&mut input) => match line {
                Some(line) => terminal.typed(&line).await,
                None => input = None,
            },
            order = next_of(&mut orders) => match order {
                Some(Order::Say(announcement)) => terminal.say(&announcement),
                Some(Order::EndAfter(session)) => terminal.until = Some(session),
                Some(Order::End) => terminal.is_over = true,
                None => orders = None,
            },
            Some(Ok(sent)) = terminal.sends.join_next() => terminal.was_sent(sent),
            () = sleep_until(next) => {}
        }
        terminal.look();
    }
    following.abort();
    terminal.leave().await;
    failure.map_or(Ok(()), Err)
}

/// The next of a channel that may not be there.
async fn next_of<T>(channel: &mut Option<mpsc::Receiver<T>>) -> Option<T> {
    match channel {
        Some(channel) => channel.recv().await,
        None => std::future::pending().await,
    }
}

/// What became of a message: the question that it answered, and why it did not arrive.
type Sent = (Option<u32>, Result<(), client::NotSent>);

struct Terminal<W> {
    ear: Ear,
    queue: Queue,
    voice: Option<Box<dyn Voice>>,
    requests: Option<mpsc::Sender<String>>,
    ready: Option<oneshot::Sender<()>>,
    subscription: Option<SubscriptionId>,
    /// The connection is lost, and that was said.
    lost: bool,
    /// It ends with this session.
    until: Option<SessionId>,
    is_over: bool,
    /// Messages that are under way.
    sends: JoinSet<Sent>,
    wishes: tokio::sync::watch::Sender<Tastes>,
    settings: Settings,
    out: W,
}

impl<W: Write> Terminal<W> {
    fn hear(&mut self, heard: Heard) -> Option<Failure> {
        match heard {
            Heard::Open { subscription, notes, resumed } => {
                if let Some(subscription) = subscription {
                    self.ear.subscribe(subscription.clone());
                    self.subscription = Some(subscription);
                }
                let text = match (std::mem::take(&mut self.lost), resumed) {
                    (false, _) => {
                        format!("Listening to {}. Type help for what you can type.", self.settings.address.url())
                    }
                    (true, true) => "Connected again. What was said meanwhile follows.".to_owned(),
                    (true, false) => "Connected again, but what was said meanwhile was not kept for you. What holds now follows.".to_owned(),
                };
                self.say(&Announcement::own(Kind::Notice, text));
                if let Some(notes) = notes {
                    self.say(&Announcement::own(
                        Kind::Notice,
                        format!("The hub says: {}", crate::plain(&notes, true)),
                    ));
                }
                if let Some(ready) = self.ready.take() {
                    let _ = ready.send(());
                }
            }
            Heard::Text(text) => self.ear.hear(&text, now()),
            Heard::Lost(lost) => {
                if !std::mem::replace(&mut self.lost, true) {
                    let why = match lost {
                        Lost::Unreachable(why) | Lost::Refused(why) => why,
                    };
                    let text = format!(
                        "The connection to the hub is lost: {why}. It is tried again until it works."
                    );
                    self.say(&Announcement::own(Kind::Notice, text));
                }
            }
            Heard::Over(Lost::Refused(why)) => return Some(Failure(why)),
            Heard::Over(Lost::Unreachable(why)) => {
                return Some(Failure(format!("cannot reach {}: {why}", self.settings.address.url())));
            }
        }
        None
    }

    async fn typed(&mut self, line: &str) {
        let acts = conversation::take(&mut self.ear, line, self.requests.is_some(), now());
        for act in acts {
            match act {
                Act::Request(text) => {
                    if let Some(requests) = &self.requests
                        && requests.send(text).await.is_err()
                    {
                        self.say(&Announcement::own(Kind::Error, "Nobody takes requests any more."));
                    }
                }
                act => self.act(act),
            }
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Say(announcement) => self.say(&announcement),
            Act::Send { message, question } => {
                if let Some(number) = question.filter(|_| self.settings.auto == Auto::None) {
                    self.ear.not_sent(number);
                    let text = "With --auto none nothing is answered. Nothing was sent.";
                    return self.say(&Announcement::own(Kind::Error, text));
                }
                let to = self.settings.address.clone();
                self.sends.spawn(async move { (question, client::send(&to, &message).await) });
            }
            Act::Retune(tastes) => {
                if let Some(subscription) = &self.subscription {
                    let message = client::renegotiation(subscription, &tastes);
                    self.act(Act::Send { message, question: None });
                }
                let _ = self.wishes.send(tastes.clone());
                self.ear.set_tastes(tastes);
            }
            Act::Hush => {
                if let Some(voice) = &mut self.voice {
                    voice.stop();
                }
            }
            Act::Quit => self.is_over = true,
            Act::Request(_) => {}
        }
    }

    fn was_sent(&mut self, (question, result): Sent) {
        let Err(client::NotSent(why)) = result else { return };
        let text = match question {
            Some(number) => {
                self.ear.not_sent(number);
                format!(
                    "Your answer to question {number} did not arrive: {why}. It is still open; answer again."
                )
            }
            None => format!("What you asked for did not reach the hub: {why}. Try again."),
        };
        self.say(&Announcement::own(Kind::Error, text));
    }

    /// What is under way arrives first, then it is said that nobody listens any more.
    async fn leave(&mut self) {
        let arrive = async {
            while let Some(sent) = self.sends.join_next().await {
                if let Ok(sent) = sent {
                    self.was_sent(sent);
                }
            }
        };
        let _ = timeout(FAREWELL, arrive).await;
        if let Some(subscription) = self.subscription.take() {
            let message = client::farewell(&subscription);
            let _ = timeout(FAREWELL, client::send(&self.settings.address, &message)).await;
        }
    }

    /// When to look again, should nothing come.
    fn next_look(&mut self) -> Instant {
        let hour = Duration::from_hours(1);
        let due = self.ear.next_deadline().map(|at| at.saturating_sub(now()).max(0));
        let due = due.map_or(hour, |millis| Duration::from_millis(millis.unsigned_abs()).min(hour));
        let speaks = self.voice.is_some() && !self.queue.is_empty();
        Instant::now() + if speaks { due.min(VOICE) } else { due }
    }

    /// Says what there is to say.
    fn look(&mut self) {
        while let Some(announcement) = self.ear.next(now()) {
            self.say(&announcement);
            if announcement.kind == Kind::Ask
                && let Some(number) = announcement.question
            {
                self.answer_by_itself(number);
            }
        }
        if let Some(until) = &self.until
            && self.ear.has_ended(until)
        {
            self.is_over = true;
        }
        if let Some(voice) = &mut self.voice {
            while self.queue.is_urgent() || !self.queue.is_empty() && voice.is_free() {
                let Some(next) = self.queue.next() else { break };
                if next.is_critical() {
                    voice.stop();
                }
                voice.say(&next);
            }
        }
    }

    /// With `--auto`, nobody is waited for.
    fn answer_by_itself(&mut self, number: u32) {
        let decision = match self.settings.auto {
            Auto::Off | Auto::None => return,
            Auto::Accept => Decision::Accept,
            Auto::Reject => Decision::Reject,
        };
        let accepts = decision == Decision::Accept;
        let Some(question) = self.ear.questions().find(|question| question.number == number) else { return };
        if question.is_answered {
            return;
        }
        let (message, word) = match &question.subject {
            Subject::Confirmation { .. } => {
                (self.ear.decide(number, decision, now()), if accepts { "yes" } else { "no" }.to_owned())
            }
            Subject::Clarification { choices, default, .. } => {
                let word = match choices.first() {
                    Some((_, label)) if accepts => label.clone(),
                    _ if question.takes(&aaep::event::ResponseKind::YesNo) => {
                        if accepts { "yes" } else { "no" }.to_owned()
                    }
                    _ => default.clone().unwrap_or_default(),
                };
                (self.ear.respond(number, &word, now()), word)
            }
        };
        match message {
            Ok(message) => {
                let text = format!("Without a person, question {number} is answered: {word}.");
                self.say(&Announcement::own(Kind::Answer, text));
                self.act(Act::Send { message, question: Some(number) });
            }
            Err(_) => {
                let text =
                    format!("Question {number} cannot be answered without a person; it runs out of time.");
                self.say(&Announcement::own(Kind::Answer, text));
            }
        }
    }

    fn say(&mut self, announcement: &Announcement) {
        let text = if self.settings.json {
            printed::json(announcement, &self.ear)
        } else {
            printed::lines(announcement)
        };
        // Whoever read this has gone: nobody listens any more.
        if self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).is_err() {
            self.is_over = true;
        }
        if self.voice.is_some() {
            self.queue.push(announcement.clone());
        }
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
