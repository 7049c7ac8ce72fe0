//! `sayso asp verify`: whether a transcript is what two agents signed, whole and lawful.

use std::path::PathBuf;

use asp::machine::Role;
use asp::message::{Authenticator, Cards, Sealed};
use asp::session::{Judgement, Rules};
use asp::{Admission, Error, Limits, Misbehaviour, Record};

use super::file::Stop;
use super::{file, story};
use crate::Outcome;
use crate::print::{many, print, printable};

#[derive(clap::Args)]
#[command(override_usage = "sayso asp verify --cards CARDS [OPTIONS] FILE")]
pub(crate) struct Arguments {
    /// The transcript: one message a line, as sent; - reads standard input.
    file: PathBuf,
    /// The agents' cards, as you got them beforehand: a JSON array, or one a line. Needed: signatures are checked by the keys
    /// in them.
    #[arg(long, value_name = "CARDS")]
    cards: Option<PathBuf>,
    /// How many threads check signatures; the number of cores if not said.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,
    /// The longest message that is read, in bytes.
    #[arg(long, value_name = "N", default_value_t = Limits::default().message_bytes)]
    max_message_bytes: usize,
    /// The longest transcript that is read, in bytes.
    #[arg(long, value_name = "N", default_value_t = 1 << 30)]
    max_bytes: u64,
    /// The most messages that one session may have.
    #[arg(long, value_name = "N", default_value_t = Limits::default().messages)]
    max_messages: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Stop> {
    verify(arguments).map(|text| print(&text))
}

/// Whose signatures are to be believed is not for the transcript to say.
const NO_CARDS: &str = "--cards is needed: a file with the agents' cards, as you got them from the agents beforehand. The \
    signatures are checked by the keys in them; keys that came with the transcript would prove nothing. \
    `sayso asp demo --transcript FILE` writes the cards of its agents beside it";

fn verify(arguments: &Arguments) -> Result<String, Stop> {
    let cards = arguments.cards.as_ref().ok_or_else(|| Stop::failed(NO_CARDS))?;
    if [&arguments.file, cards].iter().all(|path| path.as_os_str() == "-") {
        return Err(Stop::failed("the transcript and the cards cannot both come from standard input"));
    }
    let cards = file::cards(cards)?;
    let bytes = file::read(&arguments.file, arguments.max_bytes, file::MORE)?;
    let limits = Limits {
        message_bytes: arguments.max_message_bytes,
        messages: arguments.max_messages,
        proofs: arguments.max_messages,
        ..Limits::default()
    };
    let lines: Vec<_> = file::lines(&bytes).collect();
    let name = file::name(&arguments.file);
    let fault = |line: u64, why: &str| Stop::fault(format!("{name}:{line}: error {}", printable(why)));
    if lines.is_empty() {
        return Err(fault(1, "there is no message in it"));
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(16);
    let jobs = arguments.jobs.map_or(cores, usize::from);
    let mut record: Option<Record> = None;
    for block in lines.chunks(jobs * BLOCK) {
        for (line, opened) in open_all(block, &cards, &limits, jobs) {
            let sealed = opened.map_err(|why| fault(line, &why))?;
            if record.is_none() {
                let begun = Record::beginning(&sealed.envelope, &cards, Rules::default(), &limits);
                record = Some(begun.map_err(|refusal| fault(line, &refusal.to_string()))?.forgetful());
            }
            let Some(record) = &mut record else { continue };
            match record.admit(&sealed, Judgement::default(), None) {
                Admission::Taken(_) => {}
                Admission::Refused(refusal) if record.transcript().len() >= limits.messages => {
                    return Err(fault(line, &format!("{refusal}; --max-messages takes more")));
                }
                Admission::Refused(refusal) => return Err(fault(line, &refusal.to_string())),
                Admission::Broken(_) => {
                    return Err(fault(line, "hash_chain_integrity: links to no message of this transcript"));
                }
            }
        }
    }
    record.map(|record| summary(&name, &record)).ok_or_else(|| fault(1, "there is no message in it"))
}

/// So many lines go to a thread at a time.
const BLOCK: usize = 1024;

fn words(error: &Error) -> String {
    match error {
        Error::Peer(why @ Misbehaviour::TooLong(_)) => format!("{why}; --max-message-bytes takes more"),
        Error::Peer(why @ Misbehaviour::NotJson(_)) => why.to_string(),
        Error::Peer(why) => format!("not authentic: {why}"),
        other => other.to_string(),
    }
}

type Opened = (u64, Result<Sealed, String>);

/// Authenticates lines, each thread its part of them.
fn open_all(lines: &[(u64, &[u8])], cards: &Cards, limits: &Limits, jobs: usize) -> Vec<Opened> {
    let open = |lines: &[(u64, &[u8])]| -> Vec<Opened> {
        let mut authenticator = Authenticator::default();
        let mut opened = Vec::with_capacity(lines.len());
        for (number, line) in lines {
            let sealed = file::text(line)
                .and_then(|text| authenticator.open(text, cards, limits).map_err(|why| words(&why)));
            let failed = sealed.is_err();
            opened.push((*number, sealed));
            // Only the first bad line is told.
            if failed {
                break;
            }
        }
        opened
    };
    std::thread::scope(|scope| {
        let parts: Vec<_> = lines.chunks(lines.len().div_ceil(jobs).max(1)).collect();
        let threads: Vec<_> = parts.iter().map(|part| scope.spawn(|| open(part))).collect();
        let mut opened = Vec::with_capacity(lines.len());
        for (thread, part) in threads.into_iter().zip(&parts) {
            // A thread cannot fail but by a fault of ours; its lines are then looked at again here.
            opened.extend(thread.join().unwrap_or_else(|_| open(part)));
        }
        opened
    })
}

fn summary(name: &str, record: &Record) -> String {
    let session = record.session();
    let messages = many(record.transcript().len() as u64, "message");
    let mut lines = vec![
        format!("{name}: {messages}, session {}", record.session_id()),
        format!("{} invited {}.", session.party(Role::Inviter).agent, session.party(Role::Invited).agent),
        "The chain, the signatures, the proofs, the sequence and every step hold; trust and escrow only the parties knew.".to_owned(),
    ];
    if let Some(outcome) = session.outcome() {
        lines.extend(story::outcome(outcome, session, ToString::to_string));
    } else {
        lines.push(format!("warning: the session is still open ({}).", session.state()));
        if let Some(deadline) = session.next_deadline() {
            lines.push(format!("Unless something follows, time runs out at {}.", story::time(deadline)));
        }
    }
    let lines: Vec<_> = lines.iter().map(|line| printable(line)).collect();
    lines.join("\n") + "\n"
}
