//! `sayso capture`: records the events and messages that a hub sends, so that they can be checked and replayed.
//!
//! - `recording_file`: the recording on disk.

mod recording_file;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aaep::SubscriptionId;
use aaep::event::Verbosity;
use aaep::json::{Doc, JsonKind, Tape};
use listen::client::{self, Address, ConnectionEvent, ConnectionLoss, SubscribeContext};
use listen::{Preferences, RecentIds};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::ExitStatus;
use crate::file::CommandError;
use crate::hub_args::{HubArgs, build_runtime, shutdown_signal};
use crate::listen::{parse_language_tag, verbosity_parser};
use crate::output::{describe_io_error, pluralize, print_stderr, printable};
use crate::validate::item_reader::ItemReader;
use recording_file::{RecordingFile, WriteFailure};

#[derive(clap::Args)]
#[command(after_help = "After a lost connection, the recording continues where it stopped.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    hub: HubArgs,
    /// File to write the recording to, as JSON Lines. `sayso validate` and `sayso replay` read it. `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Append to an existing recording.
    #[arg(long, conflicts_with = "force")]
    append: bool,
    /// Overwrite an existing file.
    #[arg(long)]
    force: bool,
    /// How much detail to request from agents.
    #[arg(long, default_value = "detailed", value_parser = verbosity_parser())]
    verbosity: Verbosity,
    /// Languages to record, in order of preference. Example: --lang es,en
    #[arg(long = "lang", value_name = "TAG", value_delimiter = ',', default_value = "en", value_parser = parse_language_tag)]
    languages: Vec<String>,
    /// Subscribe without offering to answer. The hub then sends no questions, so the recording contains none.
    #[arg(long)]
    no_questions: bool,
}

/// Maximum number of received updates that wait to be written.
const QUEUE_CAPACITY: usize = 64;
/// Maximum number of remembered event ids. After a lost connection, a hub repeats far fewer events: by default at most 1024.
const MAX_SEEN_IDS: usize = 65_536;
/// How long to wait for the subscription to be closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    let address = arguments.hub.address()?;
    let mut seen_ids = RecentIds::new(MAX_SEEN_IDS);
    let file = if arguments.append {
        let file = RecordingFile::append(&arguments.output)?;
        load_seen_ids(&arguments.output, &mut seen_ids)?;
        file
    } else {
        RecordingFile::create(&arguments.output, arguments.force)?
    };
    let preferences = Preferences {
        verbosity: arguments.verbosity.clone(),
        languages: arguments.languages.clone(),
        ..Preferences::default()
    };
    let can_answer = !arguments.no_questions;
    let request = move |context| client::recording_request(&preferences, can_answer, &context);
    build_runtime(0)?.block_on(Capture::new(address, file, seen_ids, arguments.append).run(request))?;
    Ok(ExitStatus::Success)
}

/// Loads the event ids of an existing recording, because a hub repeats the events of open sessions, with the same ids, to
/// each new subscriber.
fn load_seen_ids(path: &Path, seen_ids: &mut RecentIds) -> Result<(), String> {
    let read_error = |error: &io::Error| {
        format!("cannot read {}: {}", printable(&path.to_string_lossy()), describe_io_error(error))
    };
    let mut items = ItemReader::new(std::fs::File::open(path).map_err(|error| read_error(&error))?);
    let mut tape = Tape::default();
    while let Some(item) = items.next().map_err(|error| read_error(&error))? {
        let text = item.bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        if let Some(doc) = text.as_deref().and_then(|text| tape.read(text).ok())
            && let Some(id) = doc.root().member("event_id").and_then(|id| id.text())
        {
            seen_ids.insert((agent_id(&doc), id));
        }
    }
    Ok(())
}

/// Returns the agent id of an event, or an empty string.
fn agent_id<'d>(doc: &Doc<'d>) -> Cow<'d, str> {
    let agent = doc.root().member("producer").and_then(|producer| producer.member("agent_id")?.text());
    agent.unwrap_or_default()
}

struct Capture {
    address: Address,
    file: RecordingFile,
    seen_ids: RecentIds,
    tape: Tape,
    subscription: Option<SubscriptionId>,
    /// A message that closes the subscription. It is written only if the subscription is not resumed.
    pending_close: Option<String>,
    is_disconnected: bool,
    /// Whether the file already contained a recording.
    is_appending: bool,
    /// Whether a connection was ever established.
    was_connected: bool,
    recorded_events: u64,
    repeated_events: u64,
    gaps: u64,
}

impl Capture {
    fn new(address: Address, file: RecordingFile, seen_ids: RecentIds, is_appending: bool) -> Self {
        Self {
            address,
            is_appending,
            seen_ids,
            tape: Tape::default(),
            subscription: None,
            pending_close: None,
            is_disconnected: false,
            was_connected: false,
            recorded_events: 0,
            repeated_events: 0,
            gaps: 0,
            file,
        }
    }

    async fn run(
        mut self,
        request: impl Fn(SubscribeContext) -> String + Send + Sync + 'static,
    ) -> Result<(), String> {
        let shutdown = shutdown_signal();
        let (sender, mut updates) = mpsc::channel(QUEUE_CAPACITY);
        let follow_task = tokio::spawn(client::follow(self.address.clone(), None, request, sender));
        tokio::pin!(shutdown);
        let result = loop {
            tokio::select! {
                () = &mut shutdown => break Ok(()),
                update = updates.recv() => match update.map(|update| self.handle_update(update)) {
                    None => break Ok(()),
                    Some(Ok(())) => {}
                    Some(Err(reason)) => break Err(reason),
                },
            }
        };
        // Updates that arrived before the signal are still recorded.
        let mut result = result;
        while result.is_ok()
            && let Ok(update) = updates.try_recv()
        {
            result = self.handle_update(update);
        }
        follow_task.abort();
        let unsubscribe_result = self.unsubscribe().await;
        let result = match (result, unsubscribe_result) {
            (Err(CaptureError::WriteFailed(failure)), _) | (Ok(()), Err(failure)) => {
                Err(self.describe_write_failure(&failure))
            }
            (Err(CaptureError::ConnectionFailed(reason)), _) => Err(reason),
            (Ok(()), Ok(())) => Ok(()),
        };
        if self.was_connected {
            self.print_summary();
        } else {
            self.file.remove_if_created_and_empty();
        }
        result
    }

    fn handle_update(&mut self, update: ConnectionEvent) -> Result<(), CaptureError> {
        match update {
            ConnectionEvent::Subscribed { request, accepted } => {
                self.write_pending_close()?;
                self.file.write_line(&request)?;
                self.file.write_line(&accepted)?;
            }
            ConnectionEvent::Open { subscription, notes, resumed } => {
                self.handle_open(subscription, resumed);
                if let Some(notes) = notes {
                    print_stderr(&format!("Note from the hub: {}", listen::sanitize(&notes, true)));
                }
            }
            ConnectionEvent::Text(text) => self.record_text(&text)?,
            ConnectionEvent::Lost(lost) if !std::mem::replace(&mut self.is_disconnected, true) => {
                print_stderr(&format!("Connection lost: {}. Trying to reconnect.", lost.error()));
            }
            ConnectionEvent::Ended(ConnectionLoss::Unreachable(reason)) => {
                return Err(CaptureError::ConnectionFailed(format!(
                    "cannot reach {}: {reason}",
                    self.address.url()
                )));
            }
            ConnectionEvent::Ended(ConnectionLoss::Refused(reason)) => {
                return Err(CaptureError::ConnectionFailed(reason.to_string()));
            }
            _ => {}
        }
        Ok(())
    }

    fn handle_open(&mut self, subscription: Option<SubscriptionId>, is_resumed: bool) {
        let has_subscription_id = subscription.is_some();
        let is_same_subscription = has_subscription_id && subscription == self.subscription;
        self.was_connected = true;
        // On transports that cannot resume, the subscription ends with the connection.
        self.subscription = subscription.filter(|_| self.address.can_resume());
        match (std::mem::take(&mut self.is_disconnected), is_resumed) {
            (false, _) => {
                print_stderr(&format!("Recording {} to {}.", self.address.url(), self.file.name()));
                if self.is_appending {
                    print_stderr(
                        "Appending to the existing recording. Events from the time between the two recordings are missing.",
                    );
                }
                if !has_subscription_id {
                    print_stderr(
                        "This is an agent without a hub. Events that it sends while the connection is lost are not recorded.",
                    );
                }
            }
            (true, true) => {
                self.pending_close = None;
                print_stderr("Reconnected; the recording continues where it stopped.");
            }
            (true, false) => {
                if is_same_subscription {
                    self.pending_close = None;
                }
                self.gaps += 1;
                print_stderr(
                    "Reconnected, but the hub no longer has the events that were sent in the meantime. They are missing from the recording.",
                );
            }
        }
    }

    fn record_text(&mut self, text: &str) -> Result<(), CaptureError> {
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        let Some(doc) = self.tape.read(text).ok().filter(|doc| doc.root().kind() == JsonKind::Object) else {
            // Invalid input is recorded too, so that `sayso validate` reports it.
            return Ok(self.file.write_line(text)?);
        };
        let root = doc.root();
        let member = |name: &str| root.member(name).and_then(|value| value.text());
        let kind = member("type").unwrap_or_default();
        if kind == "sayso:gap" {
            self.gaps += 1;
            print_stderr("The hub no longer has some of the events. They are missing from the recording.");
            return Ok(());
        }
        if let Some(id) = member("event_id") {
            if !self.seen_ids.insert((agent_id(&doc), id)) {
                self.repeated_events += 1;
                return Ok(());
            }
            self.file.write_line(text)?;
            self.recorded_events += 1;
            return Ok(());
        }
        if kind == "subscription.close" {
            self.pending_close = Some(text.to_owned());
            return Ok(());
        }
        self.file.write_line(text)?;
        Ok(())
    }

    /// Writes the pending close message, if there is one.
    fn write_pending_close(&mut self) -> Result<(), WriteFailure> {
        match self.pending_close.take() {
            Some(message) => self.file.write_line(&message),
            None => Ok(()),
        }
    }

    /// Closes the subscription and records the close message.
    async fn unsubscribe(&mut self) -> Result<(), WriteFailure> {
        if let Some(subscription) = self.subscription.take() {
            let close_message = client::close_message(&subscription);
            let _ = timeout(CLOSE_TIMEOUT, client::send(&self.address, &close_message)).await;
            self.pending_close.get_or_insert(close_message);
        }
        if self.file.has_failed() {
            return Ok(());
        }
        self.write_pending_close()
    }

    fn describe_write_failure(&self, failure: &WriteFailure) -> String {
        let ending = if failure.was_truncated {
            "Its last line is complete."
        } else {
            "Its last line may be incomplete."
        };
        format!("cannot write {}: {}. The recording ends here. {ending}", self.file.name(), failure.reason)
    }

    fn print_summary(&self) {
        let mut parts =
            vec![format!("{} recorded in {}.", pluralize(self.recorded_events, "event"), self.file.name())];
        if self.repeated_events > 0 {
            parts.push(format!(
                "{} received again and recorded only once.",
                pluralize(self.repeated_events, "event")
            ));
        }
        if self.gaps > 0 {
            parts.push(format!("Incomplete: {}.", pluralize(self.gaps, "gap")));
        }
        print_stderr(&parts.join(" "));
    }
}

enum CaptureError {
    WriteFailed(WriteFailure),
    ConnectionFailed(String),
}

impl From<WriteFailure> for CaptureError {
    fn from(failure: WriteFailure) -> Self {
        Self::WriteFailed(failure)
    }
}
