//! `sayso listen`: prints labelled lines, one after another. It never repaints the screen.
//!
//! - `input_parser`: parses a typed line; `input_handler`: decides what the line does now; `answer_detector`: recognizes lines
//!   that only sound like an answer.
//! - `handoff_commands`: the commands about hand-offs.
//! - `history`: earlier announcements.
//! - `listener`: handles events, input and announcements, one at a time; `reconnect`: catches up after a lost connection.
//! - `subscription_terms`: describes the hub's terms; `announcement_format`: formats announcements as lines or JSON; `speech_output`: speaks
//!   them; `braille_output`: shows them on a braille display.
//! - `violation_log`: logs which rules the received events break.

mod announcement_format;
mod answer_detector;
mod braille_output;
mod handoff_commands;
mod history;
mod input_handler;
mod input_parser;
mod listener;
mod reconnect;
mod speech_output;
mod subscription_terms;
#[cfg(test)]
mod tests;
mod violation_log;

use std::io::{self, BufRead, Read, Write};
use std::time::Duration;

use aaep::SessionId;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep_until, timeout};

use crate::braille::BrailleDisplay;
use crate::client::{self, Address};
use crate::{Announcement, ManifestPolicy, Phrases, Preferences, SpeechSynthesizer, SubscriberLimits};
use listener::TerminalListener;

/// The settings of a terminal listener.
#[derive(Clone, Debug)]
pub struct TerminalSettings {
    /// The hub's address.
    pub address: Address,
    /// The person's preferences.
    pub preferences: Preferences,
    /// Whether to print one JSON object per line, for programs.
    pub json: bool,
    /// Whether to print the time in front of each line.
    pub times: bool,
    /// Whether and how questions are answered automatically.
    pub auto_answer: AutoAnswerMode,
    /// Limits on what is stored.
    pub limits: SubscriberLimits,
    /// How to check the hub's manifest. `None` if the hub's identity is known.
    pub manifest_policy: Option<ManifestPolicy>,
    /// The address of the page of the person's own hub, if it runs in this process. It is announced at the start.
    pub personal_page: Option<String>,
}

impl TerminalSettings {
    /// Creates the default settings for a hub.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            preferences: Preferences::default(),
            json: false,
            times: false,
            auto_answer: AutoAnswerMode::Off,
            limits: SubscriberLimits::default(),
            manifest_policy: None,
            personal_page: None,
        }
    }
}

/// Whether and how questions are answered automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoAnswerMode {
    /// The person is asked.
    Off,
    /// Every confirmation is accepted. A clarification is answered with its first choice, with yes or with its default.
    Accept,
    /// Every confirmation is rejected. A clarification is answered with no or with its default.
    Reject,
    /// Nothing is answered, whatever is typed. Each question times out.
    LetExpire,
}

impl AutoAnswerMode {
    /// Returns the warning that the person must hear first.
    pub fn warning(self, phrases: &Phrases) -> Option<&'static str> {
        match self {
            Self::Off => None,
            Self::Accept => Some(phrases.auto_accept_warning),
            Self::Reject => Some(phrases.auto_reject_warning),
            Self::LetExpire => Some(phrases.auto_none_warning),
        }
    }
}

/// Connections between a terminal listener and the rest of the program. All are optional.
#[derive(Default)]
pub struct TerminalHooks {
    /// Receives the lines that the person types. If the channel closes, the listener continues without input. See [`stdin_lines`].
    pub input: Option<mpsc::Receiver<String>>,
    /// Receives lines that are neither a command nor an answer. Without it, such lines are reported as not understood.
    pub requests: Option<mpsc::Sender<String>>,
    /// Returns whether a line is a known request. If it is `None`, every line counts as one. While a question is open, only known
    /// requests that do not sound like an answer are passed on.
    pub is_known_request: Option<fn(&str) -> bool>,
    /// Receives commands from other parts of the program.
    pub commands: Option<mpsc::Receiver<TerminalCommand>>,
    /// Notified when the first stream is open. No event is missed from then on.
    pub ready: Option<oneshot::Sender<()>>,
    /// Receives the lines for people that a program prints, sanitized. Without it, they are dropped.
    pub diagnostics: Option<fn(&str)>,
    /// Receives a line for each rule that a received event breaks, sanitized.
    pub violations: Option<fn(&str)>,
    /// Speaks what is printed.
    pub synthesizer: Option<Box<dyn SpeechSynthesizer>>,
    /// Shows what is printed on a braille display, whose keys can answer questions.
    pub braille: Option<BrailleDisplay>,
}

/// A command for a terminal listener.
#[derive(Debug)]
pub enum TerminalCommand {
    /// Announces a text that sayso wrote.
    Announce(Announcement),
    /// Quits when this session has ended.
    QuitAfterSession(SessionId),
    /// Notifies the channel when everything that was received before this command has been processed.
    NotifyProcessed(oneshot::Sender<()>),
    /// Sends `true` when the end of this session was announced, or `false` when the session has an unanswered question.
    NotifyAfterSession(SessionId, oneshot::Sender<bool>),
    /// Notifies the channel when the end of this session was announced, even if the session has an unanswered question.
    NotifyAfterSessionEnd(SessionId, oneshot::Sender<()>),
    /// Quits now.
    Quit,
}

/// How listening ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalExit {
    /// The person or a command quit.
    Quit,
    /// The program that was listened to has ended.
    ProgramEnded {
        /// Whether it reported success.
        is_success: bool,
    },
}

/// Why listening failed, as text for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalError(pub String);

/// Maximum length of a typed line, in bytes.
const MAX_LINE_BYTES: u64 = 64 * 1024;
/// Capacity of the channels for events and typed lines.
const CHANNEL_CAPACITY: usize = 64;
/// How long each step of the shutdown may take. Waiting for pending sends is one of them.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// How long ending the connection may take. A program that was listened to has five seconds to exit before it is killed.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// Reads the lines of standard input on a separate thread.
pub fn stdin_lines() -> mpsc::Receiver<String> {
    let (lines, input) = mpsc::channel(CHANNEL_CAPACITY);
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

/// Reads the next line. A line that is too long is replaced by a text that is not a command, so that no part of it is executed.
fn next_line(input: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    let read = input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
    if read.is_ok_and(|read| read > 0) {
        if !line.ends_with(b"\n") && line.len() as u64 >= MAX_LINE_BYTES {
            while input.skip_until(b'\n').is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {}
            return Some("a line that is too long".to_owned());
        }
        // Invalid UTF-8 is replaced and then matches no answer.
        return Some(String::from_utf8_lossy(&line).into_owned());
    }
    None
}

/// Listens until the person or a command quits, or the hub refuses the connection.
pub async fn run(
    settings: TerminalSettings,
    mut hooks: TerminalHooks,
    output: impl Write,
) -> Result<TerminalExit, TerminalError> {
    let (event_sender, mut events) = mpsc::channel(CHANNEL_CAPACITY);
    let (preference_sender, preferences) = watch::channel(settings.preferences.clone());
    let (address, policy) = (settings.address.clone(), settings.manifest_policy.clone());
    let signed_only = policy.as_ref().is_some_and(|policy| policy.signed_only);
    let request = move |context| client::subscription_request(&preferences.borrow(), signed_only, &context);
    let mut follow_task = tokio::spawn(client::follow(address, policy, request, event_sender));
    let (mut input, mut commands) = (hooks.input.take(), hooks.commands.take());
    let mut braille_events = hooks.braille.as_mut().and_then(BrailleDisplay::take_events);
    let mut listener = TerminalListener::new(settings, hooks, preference_sender, output);
    let mut failure = None;
    while failure.is_none() && !listener.is_over {
        let next = listener.next_poll();
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => failure = listener.handle_event(event),
                None => listener.is_over = true,
            },
            line = recv_or_pending(&mut input) => match line {
                Some(line) => listener.handle_line(&line),
                None => input = None,
            },
            command = recv_or_pending(&mut commands) => match command {
                Some(TerminalCommand::Announce(announcement)) => listener.announce(&announcement),
                Some(TerminalCommand::QuitAfterSession(session)) => listener.quit_after = Some(session),
                Some(TerminalCommand::NotifyProcessed(done)) => drop(done.send(())),
                Some(TerminalCommand::NotifyAfterSession(session, done)) => listener.session_waiters.push((session, done)),
                Some(TerminalCommand::NotifyAfterSessionEnd(session, done)) => listener.session_end_waiters.push((session, done)),
                Some(TerminalCommand::Quit) => listener.quit(),
                None => commands = None,
            },
            event = recv_or_pending(&mut braille_events) => match event {
                Some(event) => listener.handle_braille_event(event),
                None => braille_events = None,
            },
            Some(Ok(outcome)) = listener.pending_sends.join_next() => listener.handle_send_outcome(outcome),
            () = sleep_until(next) => {}
        }
        listener.poll();
    }
    if let Some(TerminalError(reason)) = &failure {
        listener.speak_failure(reason).await;
    }
    if listener.exit != TerminalExit::Quit {
        listener.drain_speech().await;
    }
    listener.close_subscription().await;
    drop(events);
    if timeout(DISCONNECT_TIMEOUT, &mut follow_task).await.is_err() {
        follow_task.abort();
    }
    listener.finish_speech().await;
    failure.map_or(Ok(listener.exit), Err)
}

/// Receives from an optional channel. Without a channel, it waits forever.
async fn recv_or_pending<T>(channel: &mut Option<mpsc::Receiver<T>>) -> Option<T> {
    match channel {
        Some(channel) => channel.recv().await,
        None => std::future::pending().await,
    }
}
