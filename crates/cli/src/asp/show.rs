//! `sayso asp show`, `watch` and `transcript`: what a running node knows about a session.

use std::path::PathBuf;
use std::time::Duration;

use asp::message::{Body, InformType};
use asp::{AgentUri, SessionId};
use sayso::asp::{
    AspSession, Node, NodeError, SessionMessage, SessionSummary, SessionView, State, WaitingFor,
};

use super::narration::{describe_message, format_clock, to_sentence};
use super::node_client::{ClientFailure, NodeArgs, open_session, parse_session_id};
use super::transcript_file::{is_same_file, write_file};
use crate::ExitStatus;
use crate::file::CommandError;
use crate::output::{print_stderr, print_stdout, printable};

#[derive(clap::Args)]
pub(crate) struct ShowArguments {
    /// The session. Without it, the open sessions are listed.
    #[arg(value_parser = parse_session_id)]
    session: Option<SessionId>,
    /// List the ended sessions, the latest first.
    #[arg(long, conflicts_with = "session")]
    ended: bool,
    /// Print the node's JSON.
    #[arg(long, requires = "session")]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(clap::Args)]
pub(crate) struct WatchArguments {
    /// The session.
    #[arg(value_parser = parse_session_id)]
    session: SessionId,
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(clap::Args)]
pub(crate) struct TranscriptArguments {
    /// The session.
    #[arg(value_parser = parse_session_id)]
    session: SessionId,
    /// File for the transcript. Default: standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write the cards of both agents to this file.
    #[arg(long, value_name = "FILE")]
    cards: Option<PathBuf>,
    #[command(flatten)]
    node: NodeArgs,
}

/// How many times in a row `watch` tries to reach a node before it gives up.
const RECONNECT_ATTEMPTS: u32 = 60;
/// The time between two such attempts.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

pub(crate) fn run_show(arguments: &ShowArguments) -> Result<ExitStatus, CommandError> {
    arguments.node.run(async |node| match arguments.session {
        None if arguments.ended => list_ended(&node).await,
        None => list(&node).await,
        Some(id) if arguments.json => {
            let view = open_session(&node, id)?.view().await?;
            Ok(print_stdout(&format!("{}\n", view.as_json())))
        }
        Some(id) => {
            let session = open_session(&node, id)?;
            let view = session.view().await?;
            let messages = remaining_messages(&session, &view).await?;
            let mut narrator = Narrator::new(&view);
            let mut lines = describe_session(&view);
            for (number, message) in (1..).zip(view.messages.iter().chain(&messages)) {
                lines.push(format!("{number}. {}", narrator.describe(message)));
            }
            for refusal in &view.refusals {
                lines.push(format!(
                    "The {} was refused: {} ({}).",
                    refusal.performative, refusal.reason, refusal.code
                ));
            }
            lines.extend(describe_end(&view));
            Ok(print_lines(&lines))
        }
    })
}

/// Returns the messages that do not fit into the first view.
async fn remaining_messages(
    session: &AspSession,
    first: &SessionView,
) -> Result<Vec<SessionMessage>, NodeError> {
    let (mut messages, mut next, mut count) = (Vec::new(), first.next, first.message_count);
    while next < count {
        let page = session.view_after(next).await?;
        if page.next == next {
            break;
        }
        (next, count) = (page.next, page.message_count);
        messages.extend(page.messages);
    }
    Ok(messages)
}

async fn list(node: &Node) -> Result<ExitStatus, ClientFailure> {
    let sessions = node.sessions().await?;
    if sessions.is_empty() {
        print_stderr("There are no open sessions.");
    }
    let lines: Vec<_> = sessions.iter().map(describe_summary).collect();
    Ok(print_lines(&lines))
}

async fn list_ended(node: &Node) -> Result<ExitStatus, ClientFailure> {
    let mut before = None;
    loop {
        let sessions = node.ended_sessions(before).await?;
        if sessions.is_empty() && before.is_none() {
            print_stderr("There are no ended sessions.");
        }
        let lines: Vec<_> = sessions.iter().map(describe_summary).collect();
        let printed = print_lines(&lines);
        before = sessions.last().map(|session| session.id);
        if before.is_none() || printed != ExitStatus::Success {
            return Ok(printed);
        }
    }
}

fn describe_summary(summary: &SessionSummary) -> String {
    let direction = if summary.is_inviter { "with" } else { "invited by" };
    format!(
        "{} {} {direction} {}: {}",
        summary.id,
        summary.state,
        agent_name(&summary.peer_name, &summary.peer),
        summary.subject
    )
}

pub(crate) fn run_watch(arguments: &WatchArguments) -> Result<ExitStatus, CommandError> {
    arguments.node.run(async |node| {
        let mut session = open_session(&node, arguments.session)?;
        let mut watcher: Option<Watcher> = None;
        let mut failures = 0;
        loop {
            let view = match session.next_change().await {
                // The node may be restarting.
                Err(NodeError::Unreachable(_) | NodeError::Unavailable(_))
                    if watcher.is_some() && failures < RECONNECT_ATTEMPTS =>
                {
                    if failures == 0 {
                        print_stderr("The node cannot be reached. Trying again.");
                    }
                    failures += 1;
                    tokio::time::sleep(RECONNECT_DELAY).await;
                    continue;
                }
                view => view?,
            };
            failures = 0;
            let watcher = watcher.get_or_insert_with(|| Watcher::new(&view));
            if print_lines(&watcher.describe_change(&view)) != ExitStatus::Success {
                return Ok(ExitStatus::CannotRun);
            }
            if view.next >= view.message_count && view.state.is_terminal() {
                let printed = print_lines(&describe_end(&view));
                let status =
                    if view.state == State::Failed { ExitStatus::Negative } else { ExitStatus::Success };
                return Ok(printed.max(status));
            }
        }
    })
}

/// The progress of `watch`: what it has already printed.
struct Watcher {
    narrator: Narrator,
    state: Option<State>,
    consent: Option<String>,
    overdue: Option<String>,
    refusals: usize,
}

impl Watcher {
    fn new(view: &SessionView) -> Self {
        Self {
            narrator: Narrator::new(view),
            state: None,
            consent: None,
            overdue: None,
            refusals: view.refusals.len(),
        }
    }

    fn describe_change(&mut self, view: &SessionView) -> Vec<String> {
        let mut lines = Vec::new();
        for id in &view.rolled_back {
            lines.push(format!("Message {id} no longer counts: the other side did not accept it."));
        }
        for message in &view.messages {
            lines.push(self.narrator.describe(message));
        }
        let first_new = self.refusals.min(view.refusals.len());
        for refusal in view.refusals.iter().skip(first_new) {
            lines.push(format!(
                "The {} was refused: {} ({}).",
                refusal.performative, refusal.reason, refusal.code
            ));
        }
        self.refusals = view.refusals.len();
        let overdue = describe_overdue(view);
        if overdue != self.overdue {
            lines.extend(overdue.clone());
            self.overdue = overdue;
        }
        let consent = describe_consent(view);
        if consent != self.consent {
            lines.extend(consent.clone());
            self.consent = consent;
        }
        if self.state != Some(view.state) && view.next >= view.message_count {
            lines.push(format!("State: {}.", view.state));
            self.state = Some(view.state);
        }
        lines
    }
}

pub(crate) fn run_transcript(arguments: &TranscriptArguments) -> Result<ExitStatus, CommandError> {
    if let (Some(output), Some(cards)) = (&arguments.output, &arguments.cards)
        && is_same_file(output, cards)
    {
        return Err(CommandError::cannot_run("the transcript and the cards cannot be the same file"));
    }
    arguments.node.run(async |node| {
        let session = open_session(&node, arguments.session)?;
        let transcript = session.transcript().await?;
        if let Some(path) = &arguments.cards {
            write_file(path, &session.cards().await?)?;
        }
        let Some(path) = &arguments.output else { return Ok(print_stdout(&transcript)) };
        write_file(path, &transcript)?;
        if let Some(cards) = &arguments.cards {
            print_stderr(&format!(
                "Check it: sayso asp verify {} --cards {}. The cards are those that the node has pinned.",
                printable(&path.to_string_lossy()),
                printable(&cards.to_string_lossy())
            ));
        }
        Ok(ExitStatus::Success)
    })
}

/// Describes messages one after the other.
struct Narrator {
    peer: AgentUri,
    peer_name: String,
    /// The number of identities that were shown so far. After two, the introductions are over.
    identity_count: usize,
}

impl Narrator {
    fn new(view: &SessionView) -> Self {
        Self { peer: view.peer.clone(), peer_name: view.peer_name.clone(), identity_count: 0 }
    }

    /// Describes a message in one line: time, sentence, performative, and the id that an answer names.
    fn describe(&mut self, message: &SessionMessage) -> String {
        let is_from_peer = message.sender() == &self.peer;
        let peer_name = if self.peer_name.is_empty() { self.peer.as_str() } else { &self.peer_name };
        let (sender, receiver) =
            if is_from_peer { (peer_name, "your agent") } else { ("your agent", peer_name) };
        let state = if self.identity_count < 2 { State::Invited } else { State::Conversing };
        let name = |agent: &AgentUri| {
            if agent == &self.peer { peer_name.to_owned() } else { "your agent".to_owned() }
        };
        let text = describe_message(message.body(), state, receiver, name);
        let line = format!(
            "{} {} ({}{})",
            format_clock(message.timestamp().unix_millis()),
            to_sentence(&format!("{sender} {text}")),
            message.performative(),
            answer_id(message.body()).map(|id| format!(" {id}")).unwrap_or_default()
        );
        if matches!(message.body(), Body::Inform(body) if body.kind == InformType::Identity) {
            self.identity_count += 1;
        }
        line
    }
}

/// Returns the id that an answer to this message names.
fn answer_id(body: &Body) -> Option<String> {
    match body {
        Body::Propose(body) => Some(body.proposal_id.to_string()),
        Body::Counter(body) => Some(body.proposal_id.to_string()),
        Body::Commit(body) => Some(body.commitment_id.to_string()),
        Body::Query(body) => Some(body.query_id.to_string()),
        _ => None,
    }
}

fn describe_session(view: &SessionView) -> Vec<String> {
    let peer = agent_name(&view.peer_name, &view.peer);
    let who = if view.is_inviter {
        format!("Your agent invited {peer}: {}", view.subject)
    } else {
        format!("{peer} invited your agent: {}", view.subject)
    };
    let waiting_for = match view.waiting_for {
        WaitingFor::You => "Your agent must act.",
        WaitingFor::Peer => "The other side must act.",
        WaitingFor::Person => "Waiting for a person's answer.",
        WaitingFor::Delivery => "A message is being delivered.",
        WaitingFor::Nothing => "The session has ended.",
        _ if view.state == State::Invited && !view.is_inviter => {
            "Your agent can accept or reject the invitation."
        }
        _ => "Either side can act.",
    };
    let mut lines = vec![
        format!("Session {}", view.id),
        to_sentence(&who),
        format!(
            "Trust in the other side: {:.0} of 100, level {}.",
            view.peer_trust_score, view.peer_trust_level
        ),
        format!("State: {}. {waiting_for}", view.state),
    ];
    lines.extend(describe_consent(view));
    for (timer, at) in &view.deadlines {
        lines.push(format!("Deadline ({timer}): {at}."));
    }
    lines.extend(describe_overdue(view));
    lines
}

fn describe_overdue(view: &SessionView) -> Option<String> {
    let awaited = view.awaited_response.as_ref().filter(|awaited| awaited.is_overdue)?;
    let who = if awaited.is_from_peer { "The other side" } else { "Your agent" };
    Some(format!("{who} has not answered message {} in time.", awaited.message_id))
}

fn describe_consent(view: &SessionView) -> Option<String> {
    let consent = view.consent.as_ref()?;
    let performative = consent.performative();
    Some(if consent.is_pending() {
        format!("Waiting for a person's answer about the {performative}.")
    } else if consent.is_accepted() {
        format!("The person said yes to the {performative}.")
    } else {
        let reason = consent.refusal_reason().unwrap_or("no reason was given");
        format!("The {performative} was not sent, because nobody said yes: {reason}.")
    })
}

/// Describes how a session ended, if it has ended.
fn describe_end(view: &SessionView) -> Vec<String> {
    let Some(outcome) = &view.outcome else { return Vec::new() };
    let mut lines =
        vec![to_sentence(&format!("The session ended in state {}: {}", view.state, outcome.reason))];
    lines.extend(outcome.commitment_status.iter().map(|status| format!("The commitment is {status}.")));
    for obligation in &outcome.obligations {
        let party = if obligation.party == view.peer {
            agent_name(&view.peer_name, &view.peer)
        } else {
            "Your agent".to_owned()
        };
        lines.push(format!("{party}: \"{}\" was {}.", obligation.action, obligation.outcome));
    }
    if outcome.is_broken_by_this_side {
        lines.push("Your agent broke the agreement.".to_owned());
    }
    if outcome.is_broken_by_peer {
        lines.push("The other side broke the agreement.".to_owned());
    }
    lines
}

fn agent_name(name: &str, agent: &AgentUri) -> String {
    if name.is_empty() { agent.to_string() } else { format!("{name} ({agent})") }
}

/// Prints lines, with the control characters in them made visible.
fn print_lines(lines: &[String]) -> ExitStatus {
    let text: String = lines.iter().map(|line| printable(line) + "\n").collect();
    print_stdout(&text)
}
