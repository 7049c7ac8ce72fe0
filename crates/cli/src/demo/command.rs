//! `sayso demo`: a hub, the assistant and a listener, in one process.

use std::io::{BufRead, IsTerminal, Read};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aaep::SessionId;
use aaep::event::{Producer, Verbosity};
use hub::Core;
use journal::Memory;
use listen::client::Address;
use listen::terminal::{self, Auto, Hooks, Order, Settings};
use listen::{Announcement, Kind, Tastes};
use seal::{Random, SystemRandom};
use tokio::sync::{mpsc, oneshot};
use wire::{Bridge, Door, Server};

use super::language::Language;
use super::pace::Pace;
use super::stage::Stage;
use super::welcome::{self, Answers};
use super::{Assistant, Limits, request, start_on};
use crate::Outcome;
use crate::file::Stop;
use crate::listen::{Alone, language, verbosity};
use crate::print::{in_words, print};
use crate::serve::manifest;
use crate::way::{listening, runtime, stopped};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Runs one request and ends.
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    once: Option<String>,
    /// Answers every question without a person.
    #[arg(long, value_enum, value_name = "HOW")]
    auto: Option<Alone>,
    /// How much is said.
    #[arg(long, default_value = "normal", value_parser = verbosity())]
    verbosity: Verbosity,
    /// The languages to hear, the dearest first; the assistant answers in the first if it can: --lang es,en
    #[arg(long = "lang", value_name = "TAG", value_delimiter = ',', value_parser = language)]
    languages: Vec<String>,
    /// Where others on this machine can listen; port 0 picks one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", value_parser = listening)]
    listen: SocketAddr,
}

/// Nobody is kept waiting who cannot answer anyway.
const SHORT: Duration = Duration::from_secs(5);
/// Bytes of a line; longer ones are not read on, and not done.
const LONGEST_LINE: u64 = 64 * 1024;
/// Lines that wait.
const WAITING: usize = 16;
/// Listeners are told that it stops; who does not take it in that time goes untold.
const FAREWELL: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Stop> {
    if !arguments.listen.ip().is_loopback() {
        return Err(Stop::failed("the demonstration lets everybody in, so --listen is for loopback only"));
    }
    let failed =
        |error: std::io::Error| format!("cannot listen on {}: {}", arguments.listen, in_words(&error));
    let listener = std::net::TcpListener::bind(arguments.listen).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let preferred = arguments.languages.first().and_then(|tag| Language::of_tag(tag));
    let once = arguments.once.as_deref();
    let spoken = preferred.or_else(|| Some(request::read(once?, None).language)).unwrap_or(Language::English);
    let (answers, auto) = match arguments.auto {
        None => (Answers::Person, Auto::Off),
        Some(Alone::Accept) => (Answers::Accept, Auto::Accept),
        Some(Alone::Reject) => (Answers::Reject, Auto::Reject),
        Some(Alone::None) => (Answers::None, Auto::None),
    };
    let url = format!("http://{address}");
    print(&welcome::text(spoken, answers, once.is_some(), &url));
    let mut settings = Settings::new(Address::parse(&url, None).map_err(|why| why.to_string())?);
    settings.auto = auto;
    settings.tastes.verbosity = arguments.verbosity.clone();
    settings.tastes.languages = match arguments.languages.as_slice() {
        [] if spoken == Language::English => Tastes::default().languages,
        [] => vec![spoken.tag().to_owned(), "en".to_owned()],
        languages => languages.to_vec(),
    };
    let at_keyboard = std::io::stdin().is_terminal();
    let time = match answers {
        Answers::Person | Answers::Accept => Limits::default().time,
        Answers::Reject | Answers::None => SHORT,
    };
    let runtime = runtime(2)?;
    let ended = runtime.block_on(async {
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
        let stage = Arc::new(Stage::new(time));
        let (bridge, assistant) = hub(listener, address, &stage)?;
        let language = preferred.map(|language| language.tag().to_owned());
        let play = Play { assistant, stage, language, once: arguments.once.clone(), answers, at_keyboard };
        let ended = play.run(settings).await;
        bridge.goodbye(FAREWELL).await;
        ended
    });
    // The thread that reads standard input may never hear of the end.
    runtime.shutdown_background();
    ended?;
    print(&welcome::end(spoken));
    Ok(Outcome::Good)
}

/// A hub in memory, to which everybody on this machine may listen, and the assistant.
fn hub(
    listener: tokio::net::TcpListener,
    address: SocketAddr,
    stage: &Arc<Stage>,
) -> Result<(Bridge, Assistant), String> {
    let random = |bytes: &mut [u8]| SystemRandom.fill(bytes);
    let core = Core::new(
        Box::new(Memory::default()),
        Producer::new(manifest::AGENT_ID),
        hub::Limits::default(),
        random,
        wire::clock(),
    )
    .map_err(|error| error.to_string())?;
    let bridge = Bridge::start(core, wire::fanout::Limits::default(), wire::clock)
        .map_err(|error| error.to_string())?;
    let mut hosts = vec![address.to_string()];
    hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{}", address.port())));
    let assistant = start_on(&bridge, Limits::default(), stage.clone())?;
    let manifest = manifest::text(&["sse", "websocket"]);
    let server = Server::new(bridge.clone(), Door::Open, wire::Limits::default(), hosts, manifest)
        .with_assets(crate::page::assets(true));
    tokio::spawn(Arc::new(assistant.clone().on(server)).serve(listener));
    Ok((bridge, assistant))
}

/// One run: what is typed goes to the listener, and what it takes for a request to the assistant.
struct Play {
    assistant: Assistant,
    stage: Arc<Stage>,
    language: Option<String>,
    once: Option<String>,
    answers: Answers,
    at_keyboard: bool,
}

impl Play {
    async fn run(self, settings: Settings) -> Result<(), String> {
        let (orders, inbox) = mpsc::channel(WAITING);
        let (typed, input) = mpsc::channel(1);
        let (requests, requested) = mpsc::channel(1);
        let (ready, is_ready) = oneshot::channel();
        let hooks = Hooks {
            input: Some(input),
            requests: Some(requests),
            understood: Some(request::is_understood),
            orders: Some(inbox),
            ready: Some(ready),
            voice: None,
        };
        let alone = self.answers != Answers::Person;
        let mut pace = Pace::new(self.stage.now(), orders.clone(), alone);
        let mut listening = std::pin::pin!(terminal::run(settings, hooks, std::io::stdout()));
        let serving = async {
            let lines = lines(orders.clone());
            let _ = is_ready.await;
            if let Some(text) = &self.once {
                let begun = self.begin(text.clone(), &orders).await;
                let _ = orders.send(begun.map_or(Order::End, Order::EndAfter)).await;
            }
            let _ = if self.at_keyboard {
                self.at_once(lines, &typed, &mut pace, requested, &orders).await
            } else {
                self.in_turn(lines, &typed, &mut pace, requested, &orders).await
            };
            if !alone {
                self.stage.leave(SHORT);
            }
            // The input has ended; what is under way is told to its end.
            if self.once.is_none() && pace.all_told().await.is_some() {
                let _ = orders.send(Order::End).await;
            }
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! {
            ended = &mut listening => ended,
            () = serving => Ok(()),
            () = stopped() => {
                let _ = orders.send(Order::End).await;
                listening.await
            }
        };
        ended.map_err(|failure| failure.0)
    }

    /// Hands on what a person types, without delay; `None` if nobody takes it any more.
    async fn at_once(
        &self,
        mut lines: mpsc::Receiver<String>,
        typed: &mpsc::Sender<String>,
        pace: &mut Pace,
        mut requested: mpsc::Receiver<String>,
        orders: &mpsc::Sender<Order>,
    ) -> Option<()> {
        let mut held = None;
        loop {
            tokio::select! {
                line = lines.recv(), if held.is_none() => match line {
                    Some(line) => held = Some(line),
                    None => break,
                },
                permit = typed.reserve(), if held.is_some() => {
                    if let (Ok(permit), Some(line)) = (permit, held.take()) {
                        permit.send(line);
                    }
                }
                Some(text) = requested.recv() => self.ask(text, pace, orders).await,
            }
        }
        pace.dealt_with(typed).await?;
        while let Ok(text) = requested.try_recv() {
            self.ask(text, pace, orders).await;
        }
        Some(())
    }

    /// Hands on lines that no person types, each in its turn; `None` if nobody takes them any more.
    async fn in_turn(
        &self,
        mut lines: mpsc::Receiver<String>,
        typed: &mpsc::Sender<String>,
        pace: &mut Pace,
        mut requested: mpsc::Receiver<String>,
        orders: &mpsc::Sender<Order>,
    ) -> Option<()> {
        while let Some(line) = lines.recv().await {
            pace.hand_on(line, typed).await?;
            while let Ok(text) = requested.try_recv() {
                self.ask(text, pace, orders).await;
            }
        }
        Some(())
    }

    /// Asks the assistant for a session that it begins.
    async fn ask(&self, text: String, pace: &mut Pace, orders: &mpsc::Sender<Order>) {
        if let Some(session) = self.begin(text, orders).await {
            pace.begun(session);
        }
    }

    /// Asks the assistant; the session that began, or the person is told why none did.
    async fn begin(&self, text: String, orders: &mpsc::Sender<Order>) -> Option<SessionId> {
        let why = match self.assistant.ask(text, None, self.language.clone()).await {
            Ok(session) => return SessionId::parse(&session).ok(),
            Err(why) => why,
        };
        let _ = orders.send(Order::Say(Announcement::own(Kind::Error, why))).await;
        None
    }
}

/// The lines of standard input, read by a thread of their own.
fn lines(orders: mpsc::Sender<Order>) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(WAITING);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = stdin.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
            if !read.is_ok_and(|read| read > 0) {
                return;
            }
            let is_whole = line.ends_with(b"\n") || (line.len() as u64) < LONGEST_LINE;
            if !is_whole && !rest_is_passed_over(&mut stdin) {
                return;
            }
            let told = if is_whole {
                sender.blocking_send(String::from_utf8_lossy(&line).into_owned()).is_ok()
            } else {
                let text = format!("That line is longer than {LONGEST_LINE} bytes; nothing was done.");
                orders.blocking_send(Order::Say(Announcement::own(Kind::Error, text))).is_ok()
            };
            if !told {
                return;
            }
        }
    });
    lines
}

/// Reads to the end of a line that is too long, without keeping it.
fn rest_is_passed_over(input: &mut impl BufRead) -> bool {
    loop {
        let Ok(bytes) = input.fill_buf() else { return false };
        let (length, ends) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (bytes.len(), bytes.is_empty()),
        };
        input.consume(length);
        if ends {
            return true;
        }
    }
}
