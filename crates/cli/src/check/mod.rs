//! `sayso check`: checks a running hub or another producer of AAEP by talking to it.
//!
//! - `handshake`: how it answers requests, and its manifest (level 3).
//! - `questions`: what replies do (level 2).
//! - `test_agent`: the agent that gives the check something to hear, with `--agent`.
//! - `conversation`: one subscription. Everything that was exchanged is checked with the rules of `sayso validate`.
//! - `behaviour`: requirements that a recording alone cannot show to be met.
//! - `report`: the findings, and which parts were checked.

pub(crate) mod behaviour;
mod conversation;
mod handshake;
mod questions;
mod report;
mod test_agent;

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use aaep::event::Decision;
use aaep::message::{Capabilities, EventFilters};
use aaep::rule::Rule;
use listen::ManifestPolicy;
use listen::client::ConnectionError;
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::behaviour::Behaviour;
use self::conversation::{Arrival, Conversation, ReceivedEvent, SubscribeAnswer, Target};
use self::handshake::{full_capabilities, request};
use self::questions::QuestionCheck;
use self::report::{CheckOutcome, CheckReport};
use self::test_agent::{AgentAccess, AgentCommand, AgentResult};
use crate::ExitStatus;
use crate::file::{CommandError, create_private_dir};
use crate::hub_args::{HubArgs, build_runtime};
use crate::manifest::load_trusted_keys;
use crate::output::{describe_io_error, print_stderr};

#[derive(clap::Args)]
#[command(
    after_help = "Each finding names the part of the check and the message, as FILE:LINE does in `sayso validate`. The exit code is 0 without errors, 1 with errors, and 2 if the producer cannot be checked."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    hub: HubArgs,
    /// Highest conformance level to check: 1 (events), 2 (adds questions) or 3 (adds the handshake).
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=3))]
    level: u8,
    /// Also act as an agent of this hub: report harmless events and ask three questions. People who listen to the hub hear them, and should not answer.
    #[arg(long)]
    agent: bool,
    /// Address at which the agent of the check connects: http, https, ws, wss or unix. Default: the address of the check. gRPC needs it, because agents cannot connect over gRPC.
    #[arg(long, value_name = "URL", requires = "agent")]
    agent_url: Option<String>,
    /// File that contains the access token of the agent. Default: the token of the check.
    #[arg(long, value_name = "FILE", requires = "agent")]
    agent_token_file: Option<PathBuf>,
    /// Seconds to listen to other agents; 0 to 86400. Default: 10, and 0 with --agent.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=86_400))]
    listen: Option<u64>,
    /// Seconds that the producer may take to answer, and to send an event that must follow; 1 to 600.
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
    /// Public keys trusted to sign the manifest: a JWK or JWK Set. Without it, signatures are not verified.
    #[arg(long, value_name = "FILE")]
    jwk: Option<PathBuf>,
    /// Folder to write what was exchanged to, one recording for each part of the check.
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Print each finding as a JSON object, and then the summary as a JSON object.
    #[arg(long)]
    json: bool,
}

/// How long to listen without `--agent`, in seconds.
const DEFAULT_LISTEN_SECONDS: u64 = 10;
/// What is printed if a producer sends more than a conversation may have.
const TOO_MUCH: &str = "the producer sent too much, so the check stopped listening";
/// How long the other subscriptions must be silent before the check ends.
const QUIET_TIME: Duration = Duration::from_millis(500);
/// Maximum number of commands that wait for the agent of the check.
const COMMAND_CAPACITY: usize = 8;

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    let address = arguments.hub.address()?;
    let response_timeout = Duration::from_secs(arguments.timeout);
    let target = Target { address: address.clone(), response_timeout };
    if let Some(folder) = &arguments.output {
        create_private_dir(folder)
            .map_err(|error| format!("cannot create {}: {}", folder.display(), describe_io_error(&error)))?;
    }
    let trusted_keys = arguments.jwk.as_deref().map(load_trusted_keys).transpose()?;
    let agent = if arguments.agent { Some(arguments.agent_access()?) } else { None };
    let mut report = CheckReport::new(arguments.json, address.url(), arguments.output.clone());
    let runtime = build_runtime(0)?;
    let checked = runtime.block_on(async {
        if arguments.level >= 3 {
            handshake::check(&target, arguments.hub.has_token()?, &mut report).await?;
            if trusted_keys.is_some() {
                let policy = ManifestPolicy { trusted_keys, ..ManifestPolicy::default() };
                handshake::check_signature(&target, &policy, &mut report).await?;
            }
        }
        let check = EventCheck { target: &target, level: arguments.level, report: &mut report };
        check.run(agent, arguments.listen_time()).await
    });
    runtime.shutdown_background();
    if let Err(failure) = checked {
        let message = match failure {
            CheckFailure::Unreachable(error) => format!("cannot check {}: {error}", address.url()),
            CheckFailure::Agent(reason) => format!("the agent of the check failed: {reason}"),
        };
        // The earlier findings may be the reason.
        if !report.has_errors() {
            return Err(CommandError::cannot_run(message));
        }
        print_stderr(&format!("sayso: {message}"));
    }
    Ok(if report.finish() { ExitStatus::Negative } else { ExitStatus::Success })
}

/// Why the check could not go on.
enum CheckFailure {
    Unreachable(ConnectionError),
    Agent(String),
}

impl From<ConnectionError> for CheckFailure {
    fn from(error: ConnectionError) -> Self {
        Self::Unreachable(error)
    }
}

impl From<String> for CheckFailure {
    fn from(reason: String) -> Self {
        Self::Agent(reason)
    }
}

impl Arguments {
    fn listen_time(&self) -> Duration {
        let default = if self.agent { 0 } else { DEFAULT_LISTEN_SECONDS };
        Duration::from_secs(self.listen.unwrap_or(default))
    }

    fn agent_access(&self) -> Result<AgentAccess, CommandError> {
        let token = match &self.agent_token_file {
            None => self.hub.token()?,
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    format!("cannot read {}: {}", path.display(), describe_io_error(&error))
                })?;
                Some(text.trim().to_owned())
            }
        };
        let url = self.hub.agent_url(self.agent_url.as_deref())?;
        let certificate = self.hub.client_certificate();
        let client_certificate =
            certificate.map(|(certificate, key)| (certificate.to_owned(), key.to_owned()));
        Ok(AgentAccess { url, token, ca: self.hub.ca().cloned(), client_certificate })
    }
}

/// The check of events and questions.
struct EventCheck<'c> {
    target: &'c Target,
    level: u8,
    report: &'c mut CheckReport,
}

/// The subscriptions of the check.
struct Subscriptions {
    /// Receives everything, and may answer.
    main: Conversation,
    /// Wants no event and may answer, so it receives critical events only.
    filtered: Conversation,
    /// May not answer, so it receives no questions.
    silent: Conversation,
}

/// The tokens of the questions that were asked.
#[derive(Default)]
struct Questions {
    all: Vec<String>,
    /// Those that reached the subscription that wants no event.
    filtered: HashSet<String>,
}

impl EventCheck<'_> {
    async fn run(self, agent: Option<AgentAccess>, listen_time: Duration) -> Result<(), CheckFailure> {
        let mut all = Subscriptions {
            main: subscribe("events", self.target, full_capabilities()).await?,
            filtered: subscribe("filtered", self.target, filtered_capabilities()).await?,
            // It sees calls without the questions that were asked about them.
            silent: subscribe("no questions", self.target, silent_capabilities())
                .await?
                .without_rules(&[Rule::IRREVERSIBLE_CONSENT]),
        };
        let mut questions = Questions::default();
        // Whatever goes wrong, the findings so far are reported.
        let outcome = examine(&mut all, agent, listen_time, self.level, &mut questions).await;
        let Subscriptions { main, filtered, silent } = all;
        self.report.add(main, 1, CheckOutcome::Done);
        if self.level >= 2 {
            if questions.all.is_empty() {
                self.report.skip(
                    "questions",
                    2,
                    "no agent asked a question; with --agent, the check asks one itself",
                );
            }
            self.report.add(silent, 2, CheckOutcome::Done);
        }
        if self.level >= 3 {
            self.report.add(filtered, 3, CheckOutcome::Done);
        }
        outcome
    }
}

/// Examines events and questions, and closes the subscriptions.
async fn examine(
    all: &mut Subscriptions,
    agent: Option<AgentAccess>,
    listen_time: Duration,
    level: u8,
    questions: &mut Questions,
) -> Result<(), CheckFailure> {
    let forges = agent.is_none() && level >= 2;
    if let Some(access) = agent {
        questions.all = run_agent(all, &access, level).await?;
    }
    listen(all, listen_time, forges, questions).await?;
    check_critical_events(&mut all.filtered, questions).await?;
    for conversation in [&mut all.main, &mut all.silent, &mut all.filtered] {
        conversation.close(QUIET_TIME).await?;
    }
    Ok(())
}

/// Subscribes with these capabilities. Fails if the producer refuses.
async fn subscribe(
    name: &'static str,
    target: &Target,
    capabilities: Capabilities,
) -> Result<Conversation, CheckFailure> {
    let mut conversation = Conversation::open(name, target).await?;
    match conversation.subscribe(&request("1.0.0", capabilities)).await? {
        SubscribeAnswer::Accepted(_) => Ok(conversation),
        SubscribeAnswer::Rejected(rejected) => {
            Err(ConnectionError::Rejected(rejected.reason_code, rejected.reason_message, None).into())
        }
        SubscribeAnswer::Other(_) => Err(ConnectionError::NotAHub(None).into()),
    }
}

fn filtered_capabilities() -> Capabilities {
    let mut capabilities = full_capabilities();
    capabilities.max_events_per_second = Some(1);
    let mut filters = EventFilters::new();
    filters.exclude = Some(vec!["aaep:agent.*".to_owned()]);
    capabilities.event_filters = Some(filters);
    capabilities
}

fn silent_capabilities() -> Capabilities {
    let mut capabilities = full_capabilities();
    capabilities.supports_confirmation_reply = Some(false);
    capabilities.supports_clarification_reply = Some(false);
    capabilities.supported_conformance_levels = Some(vec![1]);
    capabilities
}

/// Runs the agent of the check, and examines its questions. Returns the tokens of the questions.
async fn run_agent(
    all: &mut Subscriptions,
    access: &AgentAccess,
    level: u8,
) -> Result<Vec<String>, CheckFailure> {
    let hub = test_agent::connect(access).await.map_err(|error| error.to_string())?;
    let session = test_agent::start(&hub, access).await.map_err(|error| error.to_string())?;
    let id = session.id().to_owned();
    let (commands, receiver) = mpsc::channel(COMMAND_CAPACITY);
    let agent = test_agent::run(session, receiver);
    let listener = examine_agent(all, &id, commands, level);
    let (result, questions) = tokio::join!(agent, listener);
    hub.close().await;
    let questions = questions?;
    report_agent_result(&mut all.main, &result.map_err(|error| error.to_string())?);
    Ok(questions)
}

/// Receives the events of the check's agent, and examines its questions one after the other.
async fn examine_agent(
    all: &mut Subscriptions,
    session: &str,
    commands: mpsc::Sender<AgentCommand>,
    level: u8,
) -> Result<Vec<String>, CheckFailure> {
    let mut tokens = Vec::new();
    let mut last_mark = 0;
    loop {
        let event = match all.main.receive(all.main.response_timeout).await? {
            Arrival::Event(event) => event,
            Arrival::Closed => return Err("the producer closed the subscription".to_owned().into()),
            Arrival::TooMuch => return Err(TOO_MUCH.to_owned().into()),
            Arrival::Silence => {
                return Err("its events do not arrive at the subscription of the check".to_owned().into());
            }
        };
        if event.session != session {
            continue;
        }
        if event.kind.starts_with("aaep:agent.session.") && event.kind != "aaep:agent.session.started" {
            return Ok(tokens);
        }
        if event.kind != CONFIRMATION {
            continue;
        }
        let number = tokens.len();
        tokens.extend(event.reply_token.clone());
        let mut check = QuestionCheck {
            main: &mut all.main,
            silent: &mut all.silent,
            agent: Some(commands.clone()),
            last_mark,
        };
        match number {
            0 => {
                if level >= 2 {
                    check.forge(&event).await?;
                }
                check.answer(&event, Decision::Reject).await?;
                check.answer_again(&event).await?;
            }
            1 => check.answer(&event, Decision::Accept).await?,
            _ => check.answer_late(&event).await?,
        }
        last_mark = check.last_mark;
        // The agent may have ended, if the hub has ended its session.
        let _ = commands.send(AgentCommand::Continue).await;
    }
}

const CONFIRMATION: &str = "aaep:agent.awaiting.confirmation";

fn report_agent_result(main: &mut Conversation, result: &AgentResult) {
    if result.was_refusal_ignored {
        main.report(Behaviour::REPLY_HONOURED, "a question that was refused was granted to the agent");
    }
    if result.was_consent_ignored {
        main.report(Behaviour::REPLY_HONOURED, "a question that was accepted was refused to the agent");
    }
    if result.was_silence_taken_as_consent {
        main.report(Behaviour::LATE_REPLY_IGNORED, "a question that nobody answered in time was granted");
    }
}

/// Listens to other agents. Forges replies to the first question, if `forges` is set.
async fn listen(
    all: &mut Subscriptions,
    time: Duration,
    forges: bool,
    questions: &mut Questions,
) -> Result<(), CheckFailure> {
    let deadline = Instant::now() + time;
    let mut is_silent_open = true;
    let mut is_filtered_open = true;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // All subscriptions are read, because the producer may close one that is not.
        let arrival = tokio::select! {
            arrival = all.main.receive(left) => arrival?,
            arrival = all.silent.receive(left), if is_silent_open => {
                is_silent_open = matches!(arrival?, Arrival::Event(_));
                continue;
            }
            arrival = all.filtered.receive(left), if is_filtered_open => {
                match arrival? {
                    Arrival::Event(event) => questions.filtered.extend(event.reply_token),
                    _ => is_filtered_open = false,
                }
                continue;
            }
        };
        let event = match arrival {
            Arrival::Event(event) => event,
            Arrival::Silence => return Ok(()),
            Arrival::TooMuch => {
                print_stderr(&format!("sayso: {TOO_MUCH}"));
                return Ok(());
            }
            Arrival::Closed => {
                print_stderr("sayso: the producer closed the subscription");
                return Ok(());
            }
        };
        let ReceivedEvent { kind, reply_token: Some(token), .. } = &event else { continue };
        if kind == CONFIRMATION {
            if forges && questions.all.is_empty() {
                let mut check =
                    QuestionCheck { main: &mut all.main, silent: &mut all.silent, agent: None, last_mark: 0 };
                check.forge(&event).await?;
            }
            questions.all.push(token.clone());
        }
    }
}

/// Checks that the subscription without events received every question.
async fn check_critical_events(
    filtered: &mut Conversation,
    questions: &mut Questions,
) -> Result<(), ConnectionError> {
    while let Arrival::Event(event) = filtered.receive(QUIET_TIME).await? {
        questions.filtered.extend(event.reply_token);
    }
    let missing = questions.all.iter().filter(|token| !questions.filtered.contains(*token)).count();
    if missing > 0 {
        let found = format!("{missing} of {} questions did not arrive", questions.all.len());
        filtered.report(Behaviour::CRITICAL_DELIVERED, &found);
    }
    Ok(())
}
