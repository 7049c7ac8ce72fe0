//! `sayso demo`: a hub, the demo agent and a terminal listener in one process.

use std::io::{BufRead, IsTerminal, Read};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aaep::SessionId;
use aaep::event::Verbosity;
use hub::Core;
use journal::MemoryJournal;
use listen::client::Address;
use listen::terminal::{
    self, AutoAnswerMode, TerminalCommand, TerminalExit, TerminalHooks, TerminalSettings,
};
use listen::{Announcement, AnnouncementKind, Preferences};
use seal::{Random, SystemRandom};
use tokio::sync::{mpsc, oneshot};
use wire::{AuthPolicy, HubHandle, Server};

use super::activity::ActivityTracker;
use super::input_pacer::InputPacer;
use super::language::Language;
use super::welcome::{self, AnswerMode};
use super::{Assistant, DemoLimits, request, start_with_activity};
use crate::ExitStatus;
use crate::file::CommandError;
use crate::hub_args::{build_runtime, parse_listen_address_arg, shutdown_signal};
use crate::listen::{AutoAnswer, parse_language_tag, verbosity_parser};
use crate::output::{describe_io_error, print_stdout};
use crate::serve::manifest;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run one request and exit.
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    once: Option<String>,
    /// Handle every question automatically, without asking a person.
    #[arg(long, value_enum, value_name = "HOW")]
    auto: Option<AutoAnswer>,
    /// How much detail to announce.
    #[arg(long, default_value = "normal", value_parser = verbosity_parser())]
    verbosity: Verbosity,
    /// Languages to hear, in order of preference. The agent answers in the first one, if it knows that language. Example: --lang es,en
    #[arg(long = "lang", value_name = "TAG", value_delimiter = ',', value_parser = parse_language_tag)]
    languages: Vec<String>,
    /// Address where other listeners on this machine can connect; port 0 picks a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", value_parser = parse_listen_address_arg)]
    listen: SocketAddr,
}

/// The answer timeout if nobody can type an answer any more, or with `--auto none`.
const UNATTENDED_ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum length of an input line. Longer lines are skipped.
const MAX_LINE_BYTES: u64 = 64 * 1024;
/// Maximum number of queued input lines.
const LINE_QUEUE_CAPACITY: usize = 16;
/// How long to wait until listeners have been informed that the hub is shutting down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    if !arguments.listen.ip().is_loopback() {
        return Err(CommandError::cannot_run(
            "the demo accepts listeners without a token, so --listen must be a loopback address such as 127.0.0.1:0",
        ));
    }
    let listen_error = |error: std::io::Error| {
        format!("cannot listen on {}: {}", arguments.listen, describe_io_error(&error))
    };
    let listener = std::net::TcpListener::bind(arguments.listen).map_err(listen_error)?;
    let address = listener.local_addr().map_err(listen_error)?;
    let preferred = arguments.languages.first().and_then(|tag| Language::from_tag(tag));
    let once = arguments.once.as_deref();
    let language =
        preferred.or_else(|| Some(request::parse_request(once?, None).language)).unwrap_or(Language::English);
    let (answer_mode, auto) = match arguments.auto {
        None => (AnswerMode::Person, AutoAnswerMode::Off),
        Some(AutoAnswer::Accept) => (AnswerMode::Accept, AutoAnswerMode::Accept),
        Some(AutoAnswer::Reject) => (AnswerMode::Reject, AutoAnswerMode::Reject),
        Some(AutoAnswer::LetExpire) => (AnswerMode::LetExpire, AutoAnswerMode::LetExpire),
    };
    let url = format!("http://{address}");
    print_stdout(&welcome::welcome_text(language, answer_mode, once.is_some(), &url));
    let mut settings = TerminalSettings::new(Address::parse(&url, None).map_err(|error| error.to_string())?);
    settings.auto_answer = auto;
    settings.preferences.verbosity = arguments.verbosity.clone();
    settings.preferences.languages = match arguments.languages.as_slice() {
        [] if language == Language::English => Preferences::default().languages,
        [] => vec![language.as_str().to_owned(), "en".to_owned()],
        languages => languages.to_vec(),
    };
    let is_interactive = std::io::stdin().is_terminal();
    if !is_interactive {
        // The input pacer sends each line only after the question was announced.
        settings.preferences.answer_grace = Duration::ZERO;
    }
    let answer_timeout = match answer_mode {
        AnswerMode::Person | AnswerMode::Accept | AnswerMode::Reject => DemoLimits::default().answer_timeout,
        AnswerMode::LetExpire => UNATTENDED_ANSWER_TIMEOUT,
    };
    let runtime = build_runtime(2)?;
    let result = runtime.block_on(async {
        listener.set_nonblocking(true).map_err(listen_error)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(listen_error)?;
        let activity = Arc::new(ActivityTracker::new(answer_timeout));
        let (hub_handle, assistant) = start_hub(listener, address, &activity)?;
        let language_tag = preferred.map(|language| language.as_str().to_owned());
        let run = DemoRun {
            assistant,
            activity,
            language_tag,
            once: arguments.once.clone(),
            answer_mode,
            is_interactive,
        };
        let result = run.run(settings).await;
        hub_handle.announce_shutdown(SHUTDOWN_TIMEOUT).await;
        result
    });
    // Does not wait for tasks that still run.
    runtime.shutdown_background();
    result?;
    print_stdout(&welcome::ended_text(language));
    Ok(ExitStatus::Success)
}

/// Starts the demo agent and an in-memory hub that every program on this machine can use without a token.
fn start_hub(
    listener: tokio::net::TcpListener,
    address: SocketAddr,
    activity: &Arc<ActivityTracker>,
) -> Result<(HubHandle, Assistant), String> {
    let random = |bytes: &mut [u8]| SystemRandom.fill(bytes);
    let core = Core::new(
        Box::new(MemoryJournal::default()),
        manifest::hub_producer(),
        hub::HubLimits::default(),
        random,
        wire::unix_now(),
    )
    .map_err(|error| error.to_string())?;
    let hub_handle = HubHandle::start(core, wire::fanout::FanoutLimits::default(), wire::unix_now)
        .map_err(|error| error.to_string())?;
    let hosts = vec![address.to_string(), format!("localhost:{}", address.port())];
    let assistant = start_with_activity(&hub_handle, DemoLimits::default(), activity.clone())?;
    let manifest = manifest::manifest_json(&["sse", "websocket"]);
    let server =
        Server::new(hub_handle.clone(), AuthPolicy::Open, wire::ServerLimits::default(), hosts, manifest);
    let server = crate::page_assets::register(server, true);
    tokio::spawn(Arc::new(assistant.clone().register(server)).serve(listener));
    Ok((hub_handle, assistant))
}

/// One run of the demo. Input goes to the listener, which passes requests on to the agent.
struct DemoRun {
    assistant: Assistant,
    activity: Arc<ActivityTracker>,
    language_tag: Option<String>,
    once: Option<String>,
    answer_mode: AnswerMode,
    is_interactive: bool,
}

impl DemoRun {
    async fn run(self, settings: TerminalSettings) -> Result<(), String> {
        let (commands, command_receiver) = mpsc::channel(LINE_QUEUE_CAPACITY);
        let (input_sender, input_receiver) = mpsc::channel(1);
        let (request_sender, request_receiver) = mpsc::channel(1);
        let (ready_sender, ready_receiver) = oneshot::channel();
        let hooks = TerminalHooks {
            input: Some(input_receiver),
            requests: Some(request_sender),
            is_known_request: Some(request::is_known_request),
            commands: Some(command_receiver),
            ready: Some(ready_sender),
            ..TerminalHooks::default()
        };
        let is_auto_answered = self.answer_mode != AnswerMode::Person;
        let mut pacer = InputPacer::new(self.activity.subscribe(), commands.clone(), is_auto_answered);
        let mut listener = std::pin::pin!(terminal::run(settings, hooks, std::io::stdout()));
        let input_loop = async {
            let lines = read_stdin_lines(commands.clone());
            let _ = ready_receiver.await;
            if let Some(text) = &self.once {
                let session = self.start_session(text.clone(), &commands).await;
                let _ = commands
                    .send(session.map_or(TerminalCommand::Quit, TerminalCommand::QuitAfterSession))
                    .await;
            }
            let _ = if self.is_interactive {
                self.forward_interactive(lines, &input_sender, &mut pacer, request_receiver, &commands).await
            } else {
                self.forward_paced(lines, &input_sender, &mut pacer, request_receiver, &commands).await
            };
            if !is_auto_answered {
                self.activity.set_unattended(UNATTENDED_ANSWER_TIMEOUT);
            }
            // The input has ended. Running sessions still finish.
            if self.once.is_none() && pacer.wait_until_idle().await.is_some() {
                let _ = commands.send(TerminalCommand::Quit).await;
            }
            std::future::pending::<()>().await;
        };
        let result = tokio::select! {
            result = &mut listener => result,
            () = input_loop => Ok(TerminalExit::Quit),
            () = shutdown_signal() => {
                let _ = commands.send(TerminalCommand::Quit).await;
                listener.await
            }
        };
        result.map(|_| ()).map_err(|failure| failure.0)
    }

    /// Forwards input from a keyboard without delay. Returns `None` if the listener has ended.
    async fn forward_interactive(
        &self,
        mut lines: mpsc::Receiver<String>,
        input_sender: &mpsc::Sender<String>,
        pacer: &mut InputPacer,
        mut request_receiver: mpsc::Receiver<String>,
        commands: &mpsc::Sender<TerminalCommand>,
    ) -> Option<()> {
        let mut pending_line = None;
        loop {
            tokio::select! {
                line = lines.recv(), if pending_line.is_none() => match line {
                    Some(line) => pending_line = Some(line),
                    None => break,
                },
                permit = input_sender.reserve(), if pending_line.is_some() => {
                    if let (Ok(permit), Some(line)) = (permit, pending_line.take()) {
                        permit.send(line);
                    }
                }
                Some(text) = request_receiver.recv() => self.start_tracked_session(text, pacer, commands).await,
            }
        }
        pacer.flush(input_sender).await?;
        while let Ok(text) = request_receiver.try_recv() {
            self.start_tracked_session(text, pacer, commands).await;
        }
        Some(())
    }

    /// Forwards piped input one line at a time. Each line waits until the previous line has been handled. Returns `None` if
    /// the listener has ended.
    async fn forward_paced(
        &self,
        mut lines: mpsc::Receiver<String>,
        input_sender: &mpsc::Sender<String>,
        pacer: &mut InputPacer,
        mut request_receiver: mpsc::Receiver<String>,
        commands: &mpsc::Sender<TerminalCommand>,
    ) -> Option<()> {
        while let Some(line) = lines.recv().await {
            pacer.forward_line(line, input_sender).await?;
            while let Ok(text) = request_receiver.try_recv() {
                self.start_tracked_session(text, pacer, commands).await;
            }
        }
        Some(())
    }

    /// Requests a session, and tracks it so that the next line waits until the session has been handled.
    async fn start_tracked_session(
        &self,
        text: String,
        pacer: &mut InputPacer,
        commands: &mpsc::Sender<TerminalCommand>,
    ) {
        if let Some(session) = self.start_session(text, commands).await {
            pacer.track_session(session);
        }
    }

    /// Requests a session. If none starts, announces the reason.
    async fn start_session(
        &self,
        text: String,
        commands: &mpsc::Sender<TerminalCommand>,
    ) -> Option<SessionId> {
        let error = match self.assistant.start_session(text, None, self.language_tag.clone()).await {
            Ok(session) => return SessionId::parse(&session).ok(),
            Err(error) => error,
        };
        let _ =
            commands.send(TerminalCommand::Announce(Announcement::new(AnnouncementKind::Error, error))).await;
        None
    }
}

/// Reads the lines of standard input on a separate thread.
fn read_stdin_lines(commands: mpsc::Sender<TerminalCommand>) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(LINE_QUEUE_CAPACITY);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = stdin.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
            if !read.is_ok_and(|read| read > 0) {
                return;
            }
            let is_complete = line.ends_with(b"\n") || (line.len() as u64) < MAX_LINE_BYTES;
            if !is_complete && !skip_rest_of_line(&mut stdin) {
                return;
            }
            let is_sent = if is_complete {
                sender.blocking_send(String::from_utf8_lossy(&line).into_owned()).is_ok()
            } else {
                let text = format!("That line is longer than {MAX_LINE_BYTES} bytes, so it was ignored.");
                commands
                    .blocking_send(TerminalCommand::Announce(Announcement::new(
                        AnnouncementKind::Error,
                        text,
                    )))
                    .is_ok()
            };
            if !is_sent {
                return;
            }
        }
    });
    lines
}

/// Skips the rest of a line that is too long. Returns false if the input cannot be read.
fn skip_rest_of_line(input: &mut impl BufRead) -> bool {
    loop {
        let Ok(bytes) = input.fill_buf() else { return false };
        let (length, is_end) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (bytes.len(), bytes.is_empty()),
        };
        input.consume(length);
        if is_end {
            return true;
        }
    }
}
