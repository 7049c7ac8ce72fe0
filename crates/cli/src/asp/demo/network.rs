//! `sayso asp demo --network`: two real nodes and a hub on this machine, with the person at the terminal.
//!
//! The nodes and the hub are child processes of this program on free ports. Two scripted agents negotiate through them with
//! the `sayso` crate, like any other agents. The buyer's node asks the person before it commits.

use std::fmt::Write;
use std::io::{BufRead, BufReader, IsTerminal};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use asp::message::{
    Accept, Close, Commit, CommitTerms, Counter, Inform, InformType, Obligation, Percent, Propose,
};
use asp::{AgentEndpoints, AgentProfile, AgentUri, CommitmentId, ConformanceLevel, ProposalId, Reference};
use listen::client::Address;
use listen::terminal::{self, AutoAnswerMode, TerminalCommand, TerminalHooks, TerminalSettings};
use listen::{Announcement, AnnouncementKind};
use node::Identity;
use sayso::asp::{AspSession, Node, NodeError, SendStatus, State};
use seal::json::{RawJson, write_object};
use seal::{Random, SystemRandom, Timestamp, UnixMillis};
use tokio::sync::{Notify, mpsc as channel, oneshot};

use super::super::transcript_file::{self, CommandError};
use super::super::verify;
use super::Arguments;
use crate::ExitStatus;
use crate::file::create_private_dir;
use crate::hub_args::{build_runtime, shutdown_signal};
use crate::listen::AutoAnswer;
use crate::output::{describe_io_error, print_stderr, print_stdout, printable};

/// How long the nodes and the hub may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a scripted agent waits for the other one.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a person at a terminal has to answer.
const ANSWER_SECONDS: u32 = 300;
/// How long the question stays open if the answers come through a pipe.
const PIPED_ANSWER_SECONDS: u32 = 30;
/// How long the question stays open with `--auto reject` or `--auto none`, because nobody will accept it.
const UNATTENDED_ANSWER_SECONDS: u32 = 5;
/// How long to wait for announcements to arrive: before piped input is sent, and at the end.
const ANNOUNCEMENT_DELAY: Duration = Duration::from_millis(500);
/// Maximum number of queued announcements.
const ANNOUNCEMENT_QUEUE: usize = 16;
/// The deadline of the obligations, counted from now.
const TEN_DAYS_MS: i64 = 10 * 86_400_000;

/// The hub's data folder, and the file in it that contains the hub's public key.
const HUB_DATA: &str = "hub";
const HUB_KEY: &str = "manifest.jwk";

const SUBJECT: &str = "40 menus in braille";
const INTRODUCTION: &str = "Two agents negotiate over the network, each through a node of its own on this machine. Nothing is real.\n\
Marisol's buyer wants menus in braille; the Braille Press prints them.\n";

pub(super) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    print_stdout(INTRODUCTION);
    if !arguments.no_person {
        print_stdout(match arguments.auto {
            None => "You are Marisol. Before the buyer commits, you are asked: type \"yes\" or \"no\".\n",
            Some(AutoAnswer::Accept) => "Every question is answered automatically: yes.\n",
            Some(AutoAnswer::Reject) => "Every question is answered automatically: no.\n",
            Some(AutoAnswer::LetExpire) => {
                "No question is answered: each one times out after a few seconds, which means no.\n"
            }
        });
    }
    let folder = TemporaryFolder::create()?;
    let runtime = build_runtime(2)?;
    let result = runtime.block_on(async {
        let stop = shutdown_signal();
        let network = Network::start(&folder.0, arguments)?;
        tokio::select! {
            result = network.run(arguments) => result,
            () = stop => Err(CommandError::cannot_run("interrupted")),
        }
    });
    // The thread that reads standard input does not end by itself.
    runtime.shutdown_background();
    result
}

/// A folder that is removed at the end.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn create() -> Result<Self, CommandError> {
        let mut bytes = [0; 8];
        SystemRandom.fill(&mut bytes);
        let path = std::env::temp_dir().join(format!("sayso-asp-demo-{:016x}", u64::from_le_bytes(bytes)));
        create_private_dir(&path)
            .map_err(|error| format!("cannot create {}: {}", path.display(), describe_io_error(&error)))?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process of this program that is stopped at the end.
struct ServerProcess {
    child: Child,
    url: String,
}

impl ServerProcess {
    /// Starts this program and waits until it accepts connections.
    fn start(arguments: &[&str], folder: &Path) -> Result<Self, String> {
        let failed =
            |error: &std::io::Error| format!("cannot start a server process: {}", describe_io_error(error));
        let program = std::env::current_exe().map_err(|error| failed(&error))?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Settings for other hubs and nodes do not apply to these.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SAYSO_"))
        {
            command.env_remove(name);
        }
        let mut child = command.spawn().map_err(|error| failed(&error))?;
        let stderr = child.stderr.take();
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            // The rest of the log is read and dropped, so that the process never waits for this one.
            for line in
                stderr.into_iter().flat_map(|stderr| BufReader::new(stderr).lines()).map_while(Result::ok)
            {
                let _ = sender.send(line);
            }
        });
        let mut server = Self { child, url: String::new() };
        let mut log = Vec::new();
        while let Ok(line) = lines.recv_timeout(START_TIMEOUT) {
            if let Some(url) = line.strip_prefix("listening on ") {
                url.clone_into(&mut server.url);
                return Ok(server);
            }
            log.push(line);
        }
        Err(format!("{} did not start: {}", arguments.join(" "), printable(&log.join("; "))))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The running processes.
struct Network {
    hub: Option<ServerProcess>,
    buyer: ServerProcess,
    press: ServerProcess,
    press_agent: AgentUri,
    buyer_agent: AgentUri,
    folder: PathBuf,
    /// Notified when the person is asked.
    question_asked: Arc<Notify>,
}

impl Network {
    fn start(folder: &Path, arguments: &Arguments) -> Result<Self, CommandError> {
        let hub = if arguments.no_person {
            None
        } else {
            let options = ["serve", "--open", "--data", HUB_DATA, "--listen", "127.0.0.1:0"];
            Some(ServerProcess::start(&options, folder)?)
        };
        let ports = free_ports()?;
        let buyer_agent = create_identity(folder, "buyer", "Marisol's buyer", ports[0])?;
        let press_agent = create_identity(folder, "press", "The Braille Press", ports[1])?;
        let answer_seconds = match arguments.auto {
            Some(AutoAnswer::Reject | AutoAnswer::LetExpire) => UNATTENDED_ANSWER_SECONDS,
            None if !std::io::stdin().is_terminal() => PIPED_ANSWER_SECONDS,
            None | Some(AutoAnswer::Accept) => ANSWER_SECONDS,
        };
        let policy = format!("[consent]\ntimeout_seconds = {answer_seconds}\n");
        transcript_file::write_file(&folder.join("policy.toml"), &policy)?;
        let start_node = |name: &str, peer: &str, port: u16, hub: Option<&str>| {
            transcript_file::write_file(
                &folder.join(format!("{name}-peers.txt")),
                &format!("{peer}/card.json\n"),
            )?;
            let (listen, peers) = (format!("127.0.0.1:{port}"), format!("{name}-peers.txt"));
            let mut options = vec!["asp", "serve", "--open", "--memory", "--policy", "policy.toml"];
            options.extend(["--identity", name, "--peers", &peers, "--listen", &listen]);
            options.extend(hub.iter().flat_map(|url| ["--hub", url]));
            Ok::<_, CommandError>(ServerProcess::start(&options, folder)?)
        };
        let hub_url = hub.as_ref().map(|hub| hub.url.as_str());
        let buyer = start_node("buyer", "press", ports[0], hub_url)?;
        let press = start_node("press", "buyer", ports[1], None)?;
        Ok(Self {
            buyer,
            press,
            press_agent,
            buyer_agent,
            folder: folder.to_owned(),
            hub,
            question_asked: Arc::default(),
        })
    }

    /// Runs the negotiation, with a listener if there is a hub.
    async fn run(&self, arguments: &Arguments) -> Result<ExitStatus, CommandError> {
        let Some(hub) = &self.hub else {
            let mut say = async |text: String| {
                print_stdout(&format!("{}\n", printable(&text)));
            };
            return self.negotiate(arguments, &mut say).await;
        };
        let address = Address::parse(&hub.url, None).map_err(|error| error.to_string())?;
        let mut settings = TerminalSettings::new(address);
        settings.auto_answer = match arguments.auto {
            None => AutoAnswerMode::Off,
            Some(AutoAnswer::Accept) => AutoAnswerMode::Accept,
            Some(AutoAnswer::Reject) => AutoAnswerMode::Reject,
            Some(AutoAnswer::LetExpire) => AutoAnswerMode::LetExpire,
        };
        if !std::io::stdin().is_terminal() {
            settings.preferences.answer_grace = Duration::ZERO;
        }
        let (commands, command_receiver) = channel::channel(ANNOUNCEMENT_QUEUE);
        let (ready_sender, ready_receiver) = oneshot::channel();
        let hooks = TerminalHooks {
            input: Some(self.typed_lines()),
            commands: Some(command_receiver),
            ready: Some(ready_sender),
            ..TerminalHooks::default()
        };
        let listener = terminal::run(settings, hooks, std::io::stdout());
        let negotiation = async {
            let _ = ready_receiver.await;
            let mut say = async |text: String| {
                let announcement = Announcement::new(AnnouncementKind::Notice, printable(&text));
                let _ = commands.send(TerminalCommand::Announce(announcement)).await;
            };
            let result = self.negotiate(arguments, &mut say).await;
            tokio::time::sleep(ANNOUNCEMENT_DELAY).await;
            let _ = commands.send(TerminalCommand::Quit).await;
            result
        };
        let (mut listener, mut negotiation) = (std::pin::pin!(listener), std::pin::pin!(negotiation));
        tokio::select! {
            result = &mut negotiation => {
                let _ = listener.await;
                result
            }
            // The person has quit.
            ended = &mut listener => match ended {
                Ok(_) => Ok(ExitStatus::Success),
                Err(failure) => Err(CommandError::cannot_run(failure.0)),
            },
        }
    }

    /// Returns the lines of standard input. Those of a pipe are held until the question is announced.
    fn typed_lines(&self) -> channel::Receiver<String> {
        let mut lines = terminal::stdin_lines();
        if std::io::stdin().is_terminal() {
            return lines;
        }
        let (sender, input) = channel::channel(ANNOUNCEMENT_QUEUE);
        let question_asked = self.question_asked.clone();
        tokio::spawn(async move {
            question_asked.notified().await;
            tokio::time::sleep(ANNOUNCEMENT_DELAY).await;
            while let Some(line) = lines.recv().await {
                if sender.send(line).await.is_err() {
                    return;
                }
            }
        });
        input
    }

    async fn negotiate(
        &self,
        arguments: &Arguments,
        say: &mut impl AsyncFnMut(String),
    ) -> Result<ExitStatus, CommandError> {
        let failed = |error: NodeError| format!("the demo failed: {}", printable(&error.to_string()));
        let buyer_node = Node::connect(&self.buyer.url).open().map_err(failed)?;
        let press_node = Node::connect(&self.press.url).open().map_err(failed)?;
        let sessions = self.play(&buyer_node, &press_node, say).await?;
        self.check_transcripts(arguments, &sessions, say).await
    }

    /// Plays both agents. Returns the session on both sides.
    async fn play(
        &self,
        buyer_node: &Node,
        press_node: &Node,
        say: &mut impl AsyncFnMut(String),
    ) -> Result<[AspSession; 2], CommandError> {
        say("Marisol's buyer invites the Braille Press.".to_owned()).await;
        let mut buyer = in_time(buyer_node.invite(self.press_agent.as_str(), SUBJECT)).await?;
        in_time(buyer.wait_for_delivery()).await?;
        let mut press = in_time(press_node.next_invitation(&[])).await?;
        say("The Braille Press accepts the invitation.".to_owned()).await;
        let accepted = reference(&format!("prop_{}", press.id()))?;
        send(&press, Accept::new(accepted)).await?;
        reach(&mut buyer, State::Introduced).await?;
        reach(&mut press, State::Introduced).await?;

        say("The buyer offers 400 euros.".to_owned()).await;
        let first = Propose::new(proposal("prop_1")?, "service", SUBJECT, terms("400.00 EUR", "in 10 days")?);
        send(&buyer, first).await?;
        say("The press wants 520 euros.".to_owned()).await;
        let second = Counter::new(
            proposal("prop_2")?,
            reference("prop_1")?,
            SUBJECT,
            terms("520.00 EUR", "in 10 days")?,
        );
        send(&press, second).await?;
        say("The buyer offers 480 euros.".to_owned()).await;
        let third = Counter::new(
            proposal("prop_3")?,
            reference("prop_2")?,
            SUBJECT,
            terms("480.00 EUR", "in 10 days")?,
        );
        send(&buyer, third).await?;
        say("The press agrees to 480 euros.".to_owned()).await;
        send(&press, Accept::new(reference("prop_3")?)).await?;

        say("The buyer wants to commit.".to_owned()).await;
        match in_time(buyer.send(self.commitment()?)).await? {
            SendStatus::AwaitingConsent { reply_token } => {
                self.question_asked.notify_one();
                let consent =
                    buyer.wait_for_consent(&reply_token).await.map_err(|error| error.to_string())?;
                if !consent.is_accepted() {
                    let reason = consent.refusal_reason().unwrap_or("the person refused").to_owned();
                    say(format!("The commitment was not sent: {reason}. The buyer closes the session."))
                        .await;
                    send(&buyer, Close::new("the person did not agree")).await?;
                    reach(&mut press, State::Closed).await?;
                    return Ok([buyer, press]);
                }
            }
            _ => {
                in_time(buyer.wait_for_delivery()).await?;
            }
        }
        reach(&mut press, State::Agreeing).await?;
        say("The press accepts the commitment. Now it binds both.".to_owned()).await;
        send(&press, Accept::new(reference("cmt_1")?)).await?;
        say("The press prints, and reports that it has delivered.".to_owned()).await;
        let mut progress = Inform::new(InformType::Progress);
        progress.percent = Percent::new(50);
        send(&press, progress).await?;
        send(&press, Inform::new(InformType::Result)).await?;
        say("The buyer pays, and both close the session.".to_owned()).await;
        send(&buyer, Inform::new(InformType::Result)).await?;
        send(&buyer, Close::new("completed")).await?;
        send(&press, Close::new("completed")).await?;
        reach(&mut buyer, State::Closed).await?;
        reach(&mut press, State::Closed).await?;
        Ok([buyer, press])
    }

    fn commitment(&self) -> Result<Commit, CommandError> {
        let deadline = UnixMillis::from(std::time::SystemTime::now()).saturating_add(TEN_DAYS_MS);
        let deadline =
            Timestamp::from_unix_millis(deadline).ok_or_else(|| "the clock is wrong".to_owned())?;
        let obligations = vec![
            Obligation::new(self.press_agent.clone(), "print and deliver 40 menus in braille", deadline),
            Obligation::new(self.buyer_agent.clone(), "pay 480.00 EUR", deadline),
        ];
        let id = CommitmentId::parse("cmt_1").map_err(|error| error.to_string())?;
        let mut commit = Commit::new(id, CommitTerms::new(obligations));
        commit.proposal_id = Some(proposal("prop_3")?);
        Ok(commit)
    }

    /// Compares and verifies the transcripts of both sides.
    async fn check_transcripts(
        &self,
        arguments: &Arguments,
        [buyer, press]: &[AspSession; 2],
        say: &mut impl AsyncFnMut(String),
    ) -> Result<ExitStatus, CommandError> {
        let (transcript, cards) = (in_time(buyer.transcript()).await?, in_time(buyer.cards()).await?);
        if transcript != in_time(press.transcript()).await? {
            return Err(CommandError::fault("The transcripts of the two sides differ."));
        }
        let transcript_path = arguments.transcript.clone().unwrap_or_else(|| self.folder.join("talk.jsonl"));
        let cards_path =
            arguments.cards.clone().unwrap_or_else(|| transcript_path.with_extension("cards.json"));
        transcript_file::write_file(&transcript_path, &transcript)?;
        transcript_file::write_file(&cards_path, &cards)?;
        let hub_key = self.hub.as_ref().map(|_| self.folder.join(HUB_DATA).join(HUB_KEY));
        let summary = verify::verify_files(&transcript_path, &cards_path, hub_key.as_deref())?;
        say(format!(
            "Both sides have the same transcript of {} messages, and it is valid.",
            transcript.lines().count()
        ))
        .await;
        for consent in summary.lines().filter(|line| line.contains(": a person")) {
            say(format!("The transcript proves it: {consent}")).await;
        }
        if arguments.transcript.is_some() {
            let mut hint = format!(
                "Check the transcript: sayso asp verify {} --cards {}",
                transcript_file::display_name(&transcript_path),
                transcript_file::display_name(&cards_path)
            );
            if let Some(hub_key) = hub_key {
                let copy = transcript_path.with_extension("hub.jwk");
                std::fs::copy(&hub_key, &copy).map_err(|error| {
                    format!("cannot write {}: {}", copy.display(), describe_io_error(&error))
                })?;
                let _ = write!(hint, " --hub-key {}", transcript_file::display_name(&copy));
            }
            print_stderr(&hint);
        }
        Ok(ExitStatus::Success)
    }
}

/// Returns two ports that are free now.
fn free_ports() -> Result<[u16; 2], CommandError> {
    let bind = || TcpListener::bind("127.0.0.1:0").map_err(|error| describe_io_error(&error));
    let port = |listener: &TcpListener| {
        listener.local_addr().map(|address| address.port()).map_err(|error| describe_io_error(&error))
    };
    let (first, second) = (bind()?, bind()?);
    Ok([port(&first)?, port(&second)?])
}

fn create_identity(
    folder: &Path,
    name: &str,
    display_name: &str,
    port: u16,
) -> Result<AgentUri, CommandError> {
    let agent_id =
        AgentUri::parse(&format!("agent://127.0.0.1:{port}/{name}")).map_err(|error| error.to_string())?;
    let profile = AgentProfile {
        agent_id: agent_id.clone(),
        name: display_name.to_owned(),
        description: String::new(),
        organization: String::new(),
        capabilities: Vec::new(),
        level: ConformanceLevel::Full,
        endpoints: AgentEndpoints { asp: None },
        max_transaction_value: None,
        currency: None,
    };
    Identity::create(&folder.join(name), &profile).map_err(|error| error.to_string())?;
    Ok(agent_id)
}

/// Sends a message and waits until the other side has stored it.
async fn send(session: &AspSession, body: impl Into<asp::message::Body>) -> Result<(), CommandError> {
    in_time(session.send(body)).await?;
    in_time(session.wait_for_delivery()).await?;
    Ok(())
}

/// Waits until the session is in this state. Fails if it ends first.
async fn reach(session: &mut AspSession, state: State) -> Result<(), CommandError> {
    loop {
        let change = in_time(session.next_change()).await?;
        if change.state == state {
            return Ok(());
        }
        if change.state.is_terminal() {
            return Err(CommandError::cannot_run(format!(
                "the demo failed: the session is {}",
                change.state
            )));
        }
    }
}

/// Gives up if the other side does not answer.
async fn in_time<T>(future: impl Future<Output = Result<T, NodeError>>) -> Result<T, CommandError> {
    match tokio::time::timeout(STEP_TIMEOUT, future).await {
        Ok(result) => result.map_err(|error| {
            CommandError::cannot_run(format!("the demo failed: {}", printable(&error.to_string())))
        }),
        Err(_) => Err(CommandError::cannot_run("the demo failed: a node did not answer in time")),
    }
}

fn terms(price: &str, delivery: &str) -> Result<RawJson, CommandError> {
    let json = write_object(|writer| writer.text_members([("price", price), ("delivery", delivery)]));
    Ok(RawJson::parse(&json).map_err(|error| error.to_string())?)
}

fn proposal(id: &str) -> Result<ProposalId, CommandError> {
    Ok(ProposalId::parse(id).map_err(|error| error.to_string())?)
}

fn reference(id: &str) -> Result<Reference, CommandError> {
    Ok(Reference::parse(id).map_err(|error| error.to_string())?)
}
