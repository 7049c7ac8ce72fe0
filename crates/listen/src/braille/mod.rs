//! Braille output through brltty.
//!
//! - `reader`: decides what the display shows and what its keys do, with `cells`, which divides text into lines. No I/O, no clock.
//! - `brlapi`: the connection to brltty.
//! - `contraction`: contracted braille, by liblouis.
//! - This module: the task that connects them. An answer leaves it as the words that a person would have typed, so the rules about
//!   answers exist only once.

mod brlapi;
mod cells;
mod contraction;
mod reader;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;
use tokio::time::sleep;

pub use brlapi::BrlapiAddress;
use brlapi::{BrlapiConnection, BrlapiError};
use reader::BrailleReader;
pub(crate) use reader::{BrailleAnswer, BrailleQuestion};

use crate::Phrases;

/// How long to wait before brltty is tried again, or asked for its display again.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Capacity of the channel for what the display reports.
const EVENT_CAPACITY: usize = 64;

/// The settings of a braille display.
#[derive(Clone, Debug)]
pub struct BrailleSettings {
    /// The address of brltty's BrlAPI server.
    pub address: BrlapiAddress,
    /// The table of liblouis for contracted braille. Without one, brltty's own text table applies.
    pub table: Option<String>,
}

/// A braille display. Its task ends when it is dropped.
pub struct BrailleDisplay {
    messages: mpsc::UnboundedSender<BrailleMessage>,
    events: Option<mpsc::Receiver<BrailleEvent>>,
}

/// A message to the display's task.
#[derive(Debug)]
pub(crate) enum BrailleMessage {
    Announcement(Vec<String>),
    OpenQuestion(BrailleQuestion),
    CloseQuestion(u32),
}

/// A report from the display's task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BrailleEvent {
    /// A command, as it would have been typed.
    Command(String),
    /// The state of the display.
    Notice(String),
    /// Why there is no braille.
    Error(String),
}

impl BrailleDisplay {
    /// Starts the task that connects to brltty, and connects again whenever the connection is lost. Needs a tokio runtime.
    pub fn start(settings: BrailleSettings, phrases: &'static Phrases) -> Self {
        let (messages, message_receiver) = mpsc::unbounded_channel();
        let (event_sender, events) = mpsc::channel(EVENT_CAPACITY);
        let task = BrailleTask {
            key_file: brlapi::key_file(std::env::var("BRLAPI_AUTH").ok().as_deref()),
            tty_path: brlapi::tty_path(
                |name| std::env::var(name).ok(),
                std::fs::read_link("/proc/self/fd/0").ok().as_deref(),
            ),
            reader: BrailleReader::new(phrases),
            table: settings.table,
            address: settings.address,
            messages: message_receiver,
            events: event_sender,
            phrases,
        };
        tokio::spawn(task.run());
        Self { messages, events: Some(events) }
    }

    /// Takes the channel with what the display reports.
    pub(crate) fn take_events(&mut self) -> Option<mpsc::Receiver<BrailleEvent>> {
        self.events.take()
    }

    /// Passes a message to the display. Does nothing after the task has ended.
    pub(crate) fn send(&self, message: BrailleMessage) {
        let _ = self.messages.send(message);
    }
}

/// The listener has ended.
struct ListenerGone;

struct BrailleTask {
    address: BrlapiAddress,
    key_file: PathBuf,
    tty_path: Vec<u32>,
    /// The table for contraction, until a translation fails.
    table: Option<String>,
    reader: BrailleReader,
    messages: mpsc::UnboundedReceiver<BrailleMessage>,
    events: mpsc::Sender<BrailleEvent>,
    phrases: &'static Phrases,
}

impl BrailleTask {
    async fn run(mut self) {
        let mut last_report = None;
        loop {
            let mut was_connected = false;
            let Err(error) = self.serve(&mut was_connected).await else { return };
            // Every reason is reported once, not with every attempt.
            let report = Some(self.describe_failure(&error, was_connected));
            if was_connected || report != last_report {
                last_report.clone_from(&report);
                if let Some(event) = report {
                    let _ = self.events.send(event).await;
                }
            }
            if self.pause().await.is_err() {
                return;
            }
        }
    }

    fn describe_failure(&self, error: &BrlapiError, was_connected: bool) -> BrailleEvent {
        let phrases = self.phrases;
        match error {
            BrlapiError::Unauthorized(file) => {
                BrailleEvent::Error(phrases.braille_unauthorized(&file.display().to_string()))
            }
            error if was_connected => BrailleEvent::Notice(phrases.braille_lost(&error.to_string())),
            error => BrailleEvent::Error(
                phrases.braille_unreachable(&self.address.to_string(), &error.to_string()),
            ),
        }
    }

    /// Connects, and shows and handles everything until the connection is lost or the listener ends.
    async fn serve(&mut self, was_connected: &mut bool) -> Result<ListenerGone, BrlapiError> {
        let mut connection = BrlapiConnection::open(&self.address, &self.key_file).await?;
        let mut was_missing = false;
        let size = loop {
            if let Some(size) = connection.display_size().await? {
                break size;
            }
            if !std::mem::replace(&mut was_missing, true) {
                self.report(self.phrases.braille_no_display.to_owned()).await;
            }
            if self.pause().await.is_err() {
                return Ok(ListenerGone);
            }
        };
        connection.enter_tty(&self.tty_path).await?;
        self.reader.set_size(size);
        *was_connected = true;
        self.report(self.phrases.braille_connected(size.columns * size.rows)).await;
        let mut shown = String::new();
        loop {
            let window = self.reader.window();
            if window != shown {
                connection.write(&window).await?;
                shown = window;
            }
            tokio::select! {
                message = self.messages.recv() => match message {
                    Some(message) => self.receive(message).await,
                    None => return Ok(ListenerGone),
                },
                key = connection.next_key() => {
                    if let Some(command) = self.reader.press(key?, SystemTime::now().into()) {
                        let _ = self.events.send(BrailleEvent::Command(command)).await;
                    }
                }
            }
        }
    }

    /// Waits before the next attempt. Messages are still received.
    async fn pause(&mut self) -> Result<(), ListenerGone> {
        let mut retry = std::pin::pin!(sleep(RETRY_INTERVAL));
        loop {
            tokio::select! {
                () = &mut retry => return Ok(()),
                message = self.messages.recv() => match message {
                    Some(message) => self.receive(message).await,
                    None => return Err(ListenerGone),
                },
            }
        }
    }

    async fn receive(&mut self, message: BrailleMessage) {
        match message {
            BrailleMessage::Announcement(mut paragraphs) => {
                self.contract(paragraphs.iter_mut().collect()).await;
                self.reader.add_announcement(paragraphs);
            }
            BrailleMessage::OpenQuestion(mut question) => {
                let answers = question.answers.iter_mut();
                let answer_texts = answers.flat_map(|answer| [&mut answer.label, &mut answer.confirm_hint]);
                let texts = question.paragraphs.iter_mut().chain(answer_texts);
                self.contract(texts.chain([&mut question.hint, &mut question.cancel]).collect()).await;
                self.reader.open_question(question);
            }
            BrailleMessage::CloseQuestion(number) => self.reader.close_question(number),
        }
    }

    /// Contracts texts in place, if a table is set. If that fails, the person is informed and braille stays uncontracted.
    async fn contract(&mut self, texts: Vec<&mut String>) {
        let Some(table) = &self.table else { return };
        let originals: Vec<String> = texts.iter().map(|text| text.as_str().to_owned()).collect();
        match contraction::contract(table, &originals).await {
            Ok(contracted) => {
                for (text, contracted) in texts.into_iter().zip(contracted) {
                    *text = contracted;
                }
            }
            Err(error) => {
                let text = self.phrases.braille_not_contracted(table, &error.to_string());
                self.table = None;
                let _ = self.events.send(BrailleEvent::Error(text)).await;
            }
        }
    }

    async fn report(&self, text: String) {
        let _ = self.events.send(BrailleEvent::Notice(text)).await;
    }
}
