//! `sayso asp trace`: the states of a session, line by line or as a picture.

mod svg;

use std::path::PathBuf;

use asp::machine::{Role, State};
use asp::message::{Authenticator, Body, Envelope};
use asp::session::{Effect, Incoming, Judgement, Party, Rules, Session, Step};
use asp::{AgentUri, Level, Limits, SessionId};
use seal::UnixMillis;

use super::file::Stop;
use super::{file, story};
use crate::Outcome;
use crate::print::{print, printable, tell};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The transcript: one message a line; - reads standard input.
    file: PathBuf,
    /// Draws a picture into this file as well.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// The longest transcript that is read, in bytes.
    #[arg(long, value_name = "N", default_value_t = 1 << 30)]
    max_bytes: u64,
}

struct Moment {
    at: UnixMillis,
    line: u64,
    /// `None` for what no message did, and for what neither side sent.
    sender: Option<Role>,
    label: String,
    text: String,
    from: State,
    to: State,
    /// Why it is not lawful, if it is not.
    fault: Option<String>,
}

impl Moment {
    fn who(&self) -> &'static str {
        match (self.sender, &self.fault) {
            (Some(role), _) => role.word(),
            (None, Some(_)) => "somebody else",
            (None, None) => "nobody",
        }
    }
}

struct Trace {
    id: SessionId,
    parties: [AgentUri; 2],
    moments: Vec<Moment>,
    session: Session,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Stop> {
    if arguments.svg.as_ref().is_some_and(|svg| file::is_same(svg, &arguments.file)) {
        return Err(Stop::failed("--svg would overwrite the transcript"));
    }
    let bytes = file::read(&arguments.file, arguments.max_bytes, file::MORE)?;
    let name = file::name(&arguments.file);
    let (trace, faults) = follow(&bytes, &name);
    let Some(trace) = trace else {
        let nothing = format!("{name}:1: error there is no message in it");
        return Err(Stop::fault(if faults.is_empty() { nothing } else { faults.join("\n") }));
    };
    if let Some(path) = &arguments.svg {
        file::write(path, &svg::draw(&trace))?;
    }
    let unlawful = trace.moments.iter().any(|moment| moment.fault.is_some());
    let mut text = lines(&trace);
    for fault in &faults {
        text += fault;
        text.push('\n');
    }
    let printed = print(&text);
    tell(
        "Only the moves are checked here. sayso asp verify checks the chain, the signatures and the proofs.",
    );
    Ok(if unlawful || !faults.is_empty() { printed.max(Outcome::Faults) } else { printed })
}

/// Follows the messages by their own times; lines that are no messages are noted and passed over.
fn follow(bytes: &[u8], name: &str) -> (Option<Trace>, Vec<String>) {
    let mut authenticator = Authenticator::default();
    let mut trace: Option<Trace> = None;
    let mut faults = Vec::new();
    for (line, text) in file::lines(bytes) {
        let envelope = file::text(text)
            .and_then(|text| authenticator.read_unproven(text).map_err(|why| why.to_string()));
        match (envelope, &mut trace) {
            (Ok(envelope), Some(trace)) => trace.take(line, &envelope),
            (Ok(envelope), none) => none.insert(Trace::beginning(&envelope, bytes)).take(line, &envelope),
            (Err(why), _) => faults.push(format!("{name}:{line}: error {}", printable(&why))),
        }
    }
    (trace, faults)
}

impl Trace {
    /// Whoever speaks first invites; whom, the first message says, or else the first that somebody else sent.
    fn beginning(first: &Envelope, bytes: &[u8]) -> Self {
        let inviter = first.sender.agent_id.clone();
        let invited = match &first.recipient {
            Some(recipient) => recipient.0.clone(),
            None => another_sender(bytes, &inviter).unwrap_or_else(|| inviter.clone()),
        };
        // Without cards the levels are not known; the trace shows what the messages say.
        let party = |agent: &AgentUri| Party { agent: agent.clone(), level: Level::Full };
        let session = Session::new(party(&inviter), party(&invited), Rules::default(), &Limits::default());
        Self { id: first.session_id, parties: [inviter, invited], moments: Vec::new(), session }
    }

    fn take(&mut self, line: u64, envelope: &Envelope) {
        let at = envelope.timestamp.unix_millis();
        while let Some(due) = self.session.next_deadline().filter(|due| *due <= at) {
            let steps = self.session.wake(due);
            for step in &steps {
                self.passed(line, due, step);
            }
            if steps.is_empty() {
                break;
            }
        }
        let sender = self.session.role_of(&envelope.sender.agent_id);
        let from = self.session.state();
        let fault = match sender {
            _ if envelope.session_id != self.id => Some("it belongs to another session".to_owned()),
            None => Some(format!("{} is not in this session", envelope.sender.agent_id)),
            Some(sender) => {
                let message = Incoming {
                    sender,
                    body: &envelope.body,
                    at,
                    answer_within: None,
                    judgement: Judgement::default(),
                };
                self.session.feed(&message).err().map(|refusal| refusal.to_string())
            }
        };
        self.moments.push(Moment {
            at,
            line,
            sender,
            label: label(&envelope.body),
            text: story::act(&envelope.body, from, "the other side", |agent| self.name(agent)),
            from,
            to: self.session.state(),
            fault,
        });
    }

    /// A short name for the sides, whose long ones stand in the first line.
    fn name(&self, agent: &AgentUri) -> String {
        match &self.parties {
            [inviter, _] if inviter == agent => "the inviter".to_owned(),
            [_, invited] if invited == agent => "the invited side".to_owned(),
            _ => agent.to_string(),
        }
    }

    fn passed(&mut self, line: u64, at: UnixMillis, step: &Step) {
        let timer = step.effects.iter().find_map(|effect| match effect {
            Effect::Expired { timer, .. } => Some(*timer),
            _ => None,
        });
        self.moments.push(Moment {
            at,
            line,
            sender: None,
            label: "timeout".to_owned(),
            text: timer.map_or_else(String::new, |timer| format!("the {timer} time ran out")),
            from: step.from,
            to: step.to,
            fault: None,
        });
    }
}

fn another_sender(bytes: &[u8], inviter: &AgentUri) -> Option<AgentUri> {
    let mut authenticator = Authenticator::default();
    let texts = file::lines(bytes).filter_map(|(_, line)| file::text(line).ok());
    let mut senders = texts.filter_map(|text| Some(authenticator.read_unproven(text).ok()?.sender.agent_id));
    senders.find(|sender| sender != inviter)
}

fn label(body: &Body) -> String {
    match body {
        Body::Inform(inform) => format!("INFORM {}", inform.kind.word()),
        other => other.performative().word().to_owned(),
    }
}

fn lines(trace: &Trace) -> String {
    let [inviter, invited] = &trace.parties;
    let mut lines = vec![format!("{inviter} invites, {invited} is invited.")];
    for moment in &trace.moments {
        let who = moment.who();
        let (line, clock, label) = (moment.line, story::clock(moment.at), &moment.label);
        let states = if moment.fault.is_some() {
            format!("{} refuses it", moment.from)
        } else if moment.from == moment.to {
            format!("{} stays", moment.from)
        } else {
            format!("{} to {}", moment.from, moment.to)
        };
        let fault = moment.fault.as_ref().map(|why| format!(" Not lawful: {why}.")).unwrap_or_default();
        let what = story::sentence(&moment.text);
        lines.push(format!("{line}. {clock} {who} {label}: {states}. {what}{fault}"));
    }
    match trace.session.outcome() {
        Some(outcome) => lines.extend(story::outcome(outcome, &trace.session, |agent| trace.name(agent))),
        None => lines.push(format!("The session is still open: {}.", trace.session.state())),
    }
    lines.iter().map(|line| printable(line) + "\n").collect()
}
