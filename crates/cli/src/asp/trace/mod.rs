//! `sayso asp trace`: the states of a session, as text or as an SVG.

mod svg;

use std::path::PathBuf;

use asp::message::{Authenticator, Body, Envelope};
use asp::session::{AspSession, Effect, IncomingMessage, Party, ReceiverChecks, SessionRules, Transition};
use asp::state_machine::{Role, State};
use asp::{AgentUri, AspLimits, ConformanceLevel, SessionId};
use seal::UnixMillis;

use super::transcript_file::CommandError;
use super::{narration, transcript_file};
use crate::ExitStatus;
use crate::output::{print_stderr, print_stdout, printable};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Transcript with one message per line; - reads standard input.
    file: PathBuf,
    /// Also draw the session as an SVG and write it to this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Maximum size of the transcript, in bytes.
    #[arg(long, value_name = "N", default_value_t = 1 << 30)]
    max_bytes: u64,
}

struct TraceEntry {
    at: UnixMillis,
    /// The line of the message. For a timeout, the line of the message that follows.
    line: u64,
    /// `None` for a timeout, and for a message from an agent that is not in the session.
    sender: Option<Role>,
    label: String,
    text: String,
    from: State,
    to: State,
    /// Why the step is invalid, if it is.
    fault: Option<String>,
}

impl TraceEntry {
    /// Returns the name of the sender, or `None` for a timeout.
    fn sender_name(&self) -> Option<&'static str> {
        match (self.sender, &self.fault) {
            (Some(role), _) => Some(role.as_str()),
            (None, Some(_)) => Some("someone else"),
            (None, None) => None,
        }
    }
}

struct Trace {
    id: SessionId,
    parties: [AgentUri; 2],
    entries: Vec<TraceEntry>,
    session: AspSession,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    if arguments.svg.as_ref().is_some_and(|svg| transcript_file::is_same_file(svg, &arguments.file)) {
        return Err(CommandError::cannot_run("--svg would overwrite the transcript"));
    }
    let bytes = transcript_file::read(&arguments.file, arguments.max_bytes, transcript_file::MAX_BYTES_HINT)?;
    let name = transcript_file::display_name(&arguments.file);
    let (trace, faults) = build_trace(&bytes, &name);
    let Some(trace) = trace else {
        let no_messages = format!("{name}:1: error: the transcript contains no messages");
        return Err(CommandError::fault(if faults.is_empty() { no_messages } else { faults.join("\n") }));
    };
    if let Some(path) = &arguments.svg {
        transcript_file::write_file(path, &svg::draw(&trace))?;
    }
    let has_invalid_step = trace.entries.iter().any(|entry| entry.fault.is_some());
    let mut text = format_trace(&trace);
    for fault in &faults {
        text += fault;
        text.push('\n');
    }
    let printed = print_stdout(&text);
    print_stderr(
        "Only state transitions were checked. sayso asp verify checks the hash chain, the signatures and the proofs.",
    );
    Ok(if has_invalid_step || !faults.is_empty() { printed.max(ExitStatus::Negative) } else { printed })
}

/// Applies the messages in file order. Before each message, applies the timeouts that have expired. Lines that are not
/// messages are reported and skipped.
fn build_trace(bytes: &[u8], name: &str) -> (Option<Trace>, Vec<String>) {
    let mut authenticator = Authenticator::default();
    let mut trace: Option<Trace> = None;
    let mut faults = Vec::new();
    for (number, line) in transcript_file::numbered_lines(bytes) {
        let envelope = transcript_file::line_text(line)
            .and_then(|text| authenticator.parse_unauthenticated(text).map_err(|reason| reason.to_string()));
        match (envelope, &mut trace) {
            (Ok(envelope), Some(trace)) => trace.add_message(number, &envelope),
            (Ok(envelope), empty_trace) => {
                empty_trace
                    .insert(Trace::from_first_message(&envelope, bytes))
                    .add_message(number, &envelope);
            }
            (Err(reason), _) => faults.push(format!("{name}:{number}: error: {}", printable(&reason))),
        }
    }
    (trace, faults)
}

impl Trace {
    /// The first sender is the inviter. The invited agent is the recipient of the first message. If the message names no
    /// recipient, it is the first sender other than the inviter.
    fn from_first_message(first: &Envelope, bytes: &[u8]) -> Self {
        let inviter = first.sender.agent_id.clone();
        let invited = match &first.recipient {
            Some(recipient) => recipient.0.clone(),
            None => find_other_sender(bytes, &inviter).unwrap_or_else(|| inviter.clone()),
        };
        // Without cards the conformance levels are unknown, so the highest is assumed.
        let party = |agent: &AgentUri| Party { agent: agent.clone(), level: ConformanceLevel::Full };
        let session =
            AspSession::new(party(&inviter), party(&invited), SessionRules::default(), &AspLimits::default());
        Self { id: first.session_id, parties: [inviter, invited], entries: Vec::new(), session }
    }

    fn add_message(&mut self, line: u64, envelope: &Envelope) {
        let at = envelope.timestamp.unix_millis();
        while let Some(due) = self.session.next_deadline().filter(|due| *due <= at) {
            let transitions = self.session.handle_timeout(due);
            for transition in &transitions {
                self.add_timeout(line, due, transition);
            }
            if transitions.is_empty() {
                break;
            }
        }
        let sender = self.session.role_of(&envelope.sender.agent_id);
        let from = self.session.state();
        let fault = match sender {
            _ if envelope.session_id != self.id => Some("the message belongs to another session".to_owned()),
            None => Some(format!("{} is not in this session", envelope.sender.agent_id)),
            Some(sender) => {
                let message = IncomingMessage {
                    message_id: envelope.message_id,
                    sender,
                    body: &envelope.body,
                    sent_at: at,
                    response_timeout_ms: None,
                    constraints: envelope.constraints.as_ref(),
                    tokens_used: envelope.tokens_used(),
                    checks: ReceiverChecks::PASSED,
                };
                self.session.handle_message(&message).err().map(|refusal| refusal.to_string())
            }
        };
        self.entries.push(TraceEntry {
            at,
            line,
            sender,
            label: message_label(&envelope.body),
            text: narration::describe_message(&envelope.body, from, "the other side", |agent| {
                self.name(agent)
            }),
            from,
            to: self.session.state(),
            fault,
        });
    }

    /// Returns a short name for an agent. The full names are in the first line of the trace.
    fn name(&self, agent: &AgentUri) -> String {
        match &self.parties {
            [inviter, _] if inviter == agent => "the inviter".to_owned(),
            [_, invited] if invited == agent => "the invited side".to_owned(),
            _ => agent.to_string(),
        }
    }

    fn add_timeout(&mut self, line: u64, at: UnixMillis, transition: &Transition) {
        let timer = transition.effects.iter().find_map(|effect| match effect {
            Effect::TimerExpired { timer, .. } => Some(*timer),
            _ => None,
        });
        self.entries.push(TraceEntry {
            at,
            line,
            sender: None,
            label: "timeout".to_owned(),
            text: timer.map_or_else(String::new, |timer| format!("the {timer} timeout expired")),
            from: transition.from,
            to: transition.to,
            fault: None,
        });
    }
}

fn find_other_sender(bytes: &[u8], inviter: &AgentUri) -> Option<AgentUri> {
    let mut authenticator = Authenticator::default();
    let texts =
        transcript_file::numbered_lines(bytes).filter_map(|(_, line)| transcript_file::line_text(line).ok());
    let mut senders =
        texts.filter_map(|text| Some(authenticator.parse_unauthenticated(text).ok()?.sender.agent_id));
    senders.find(|sender| sender != inviter)
}

fn message_label(body: &Body) -> String {
    match body {
        Body::Inform(inform) => format!("INFORM {}", inform.kind.as_str()),
        other => other.performative().as_str().to_owned(),
    }
}

fn format_trace(trace: &Trace) -> String {
    let [inviter, invited] = &trace.parties;
    let mut lines = vec![format!("{inviter} (inviter) invites {invited} (invited).")];
    for entry in &trace.entries {
        let sender = entry.sender_name().map(|name| format!("{name} ")).unwrap_or_default();
        let (line, clock, label) = (entry.line, narration::format_clock(entry.at), &entry.label);
        let states = if entry.fault.is_some() {
            format!("refused in {}", entry.from)
        } else if entry.from == entry.to {
            format!("still {}", entry.from)
        } else {
            format!("{} to {}", entry.from, entry.to)
        };
        let fault = entry.fault.as_ref().map(|reason| format!(" Not allowed: {reason}.")).unwrap_or_default();
        let text = narration::to_sentence(&entry.text);
        lines.push(format!("{line}. {clock} {sender}{label}: {states}. {text}{fault}"));
    }
    match trace.session.outcome() {
        Some(outcome) => {
            lines.extend(narration::describe_outcome(outcome, &trace.session, |agent| trace.name(agent)));
        }
        None => lines.push(format!("The session is still open: {}.", trace.session.state())),
    }
    lines.iter().map(|line| printable(line) + "\n").collect()
}
