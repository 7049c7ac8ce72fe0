//! `sayso asp verify`: checks the hash chain, signatures, proofs, state transitions and consents of a transcript.

use std::path::{Path, PathBuf};

use asp::message::{AuthenticatedMessage, Authenticator, PinnedCards};
use asp::session::{ReceiverChecks, SessionRules};
use asp::state_machine::Role;
use asp::{Admission, AspError, AspLimits, AuthenticationError, SessionRecord};

use super::consent_check::ConsentCheck;
use super::transcript_file::CommandError;
use super::{narration, transcript_file};
use crate::ExitStatus;
use crate::output::{pluralize, print_stdout, printable};

#[derive(clap::Args)]
#[command(override_usage = "sayso asp verify --cards CARDS [OPTIONS] FILE")]
pub(crate) struct Arguments {
    /// Transcript with one message per line, as sent; - reads standard input.
    file: PathBuf,
    /// File with the agents' cards, from a source you trust: a JSON array, or one card per line. Required, because the keys in
    /// the cards verify the signatures.
    #[arg(long, value_name = "CARDS")]
    cards: Option<PathBuf>,
    /// Public key of a hub, as in the hub's manifest.jwk. It verifies people's consents in the transcript. Can be repeated.
    #[arg(long, value_name = "JWK")]
    hub_key: Vec<PathBuf>,
    /// Report a fault if a commitment was sent or accepted without a person's valid consent.
    #[arg(long, requires = "hub_key")]
    require_consent: bool,
    /// Number of threads. Default: the number of cores, at most 16.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,
    /// Maximum size of a message, in bytes.
    #[arg(long, value_name = "N", default_value_t = AspLimits::default().max_message_bytes)]
    max_message_bytes: usize,
    /// Maximum size of the transcript, in bytes.
    #[arg(long, value_name = "N", default_value_t = 1 << 30)]
    max_bytes: u64,
    /// Maximum number of messages in the session.
    #[arg(long, value_name = "N", default_value_t = AspLimits::default().max_messages)]
    max_messages: usize,
}

/// Verifies a transcript with the default limits, and describes it. Given the key of a hub, it also verifies the consents.
pub(super) fn verify_files(
    file: &Path,
    cards: &Path,
    hub_key: Option<&Path>,
) -> Result<String, CommandError> {
    let limits = AspLimits::default();
    verify(&Arguments {
        file: file.to_owned(),
        cards: Some(cards.to_owned()),
        hub_key: hub_key.map(Path::to_owned).into_iter().collect(),
        require_consent: false,
        jobs: None,
        max_message_bytes: limits.max_message_bytes,
        max_bytes: 1 << 30,
        max_messages: limits.max_messages,
    })
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    verify(arguments).map(|text| print_stdout(&text))
}

/// Shown if `--cards` is missing.
const MISSING_CARDS: &str = "--cards is required: a file with the agents' cards, from a source you trust. The keys in the cards verify the \
signatures; keys from the transcript itself would prove nothing. \
`sayso asp demo --transcript FILE` writes its agents' cards next to the transcript";

fn verify(arguments: &Arguments) -> Result<String, CommandError> {
    let cards = arguments.cards.as_ref().ok_or_else(|| CommandError::cannot_run(MISSING_CARDS))?;
    if [&arguments.file, cards].iter().all(|path| path.as_os_str() == "-") {
        return Err(CommandError::cannot_run(
            "the transcript and the cards cannot both come from standard input",
        ));
    }
    let cards = transcript_file::read_cards(cards)?;
    let mut consents = ConsentCheck::new(&arguments.hub_key, arguments.require_consent)?;
    let bytes = transcript_file::read(&arguments.file, arguments.max_bytes, transcript_file::MAX_BYTES_HINT)?;
    let limits = AspLimits {
        max_message_bytes: arguments.max_message_bytes,
        max_messages: arguments.max_messages,
        max_remembered_proofs: arguments.max_messages,
        ..AspLimits::default()
    };
    let lines: Vec<_> = transcript_file::numbered_lines(&bytes).collect();
    let name = transcript_file::display_name(&arguments.file);
    let fault =
        |line: u64, error: &str| CommandError::fault(format!("{name}:{line}: error: {}", printable(error)));
    if lines.is_empty() {
        return Err(fault(1, "the transcript contains no messages"));
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(16);
    let jobs = arguments.jobs.map_or(cores, usize::from);
    let mut record: Option<SessionRecord> = None;
    for block in lines.chunks(jobs * LINES_PER_JOB) {
        for (line, result) in authenticate_all(block, &cards, &limits, jobs) {
            let message = result.map_err(|error| fault(line, &error))?;
            if record.is_none() {
                let new_record = SessionRecord::from_invitation(
                    &message.envelope,
                    &cards,
                    SessionRules::default(),
                    &limits,
                );
                record =
                    Some(new_record.map_err(|refusal| fault(line, &refusal.to_string()))?.without_texts());
            }
            let Some(record) = &mut record else { continue };
            let accepted_commit = ConsentCheck::accepted_commit(record.session(), &message.envelope);
            match record.admit(&message, ReceiverChecks::PASSED, None) {
                Admission::Accepted(_) => {
                    consents
                        .check(&message.envelope, accepted_commit.as_ref())
                        .map_err(|error| fault(line, &error))?;
                }
                Admission::Refused(refusal) if record.transcript().len() >= limits.max_messages => {
                    return Err(fault(line, &format!("{refusal}; --max-messages raises the limit")));
                }
                Admission::Refused(refusal) => return Err(fault(line, &refusal.to_string())),
                Admission::ChainBroken(_) => {
                    return Err(fault(
                        line,
                        "the chain is broken (hash_chain_integrity): the previous hash matches no message in this transcript",
                    ));
                }
            }
        }
    }
    record
        .map(|record| format_summary(&name, &record, consents))
        .ok_or_else(|| fault(1, "the transcript contains no messages"))
}

/// Number of lines that each thread authenticates before the results are applied.
const LINES_PER_JOB: usize = 1024;

fn describe_error(error: &AspError) -> String {
    match error {
        AspError::Unauthenticated(error @ AuthenticationError::TooLong(_)) => {
            format!("{error}; --max-message-bytes raises the limit")
        }
        AspError::Unauthenticated(error @ AuthenticationError::NotJson(_)) => error.to_string(),
        AspError::Unauthenticated(error) => format!("not authentic: {error}"),
        other => other.to_string(),
    }
}

type AuthenticatedLine = (u64, Result<AuthenticatedMessage, String>);

/// Authenticates lines in parallel.
fn authenticate_all(
    lines: &[(u64, &[u8])],
    cards: &PinnedCards,
    limits: &AspLimits,
    jobs: usize,
) -> Vec<AuthenticatedLine> {
    let authenticate = |lines: &[(u64, &[u8])]| -> Vec<AuthenticatedLine> {
        let mut authenticator = Authenticator::default();
        let mut authenticated = Vec::with_capacity(lines.len());
        for (number, line) in lines {
            let message = transcript_file::line_text(line).and_then(|text| {
                authenticator.authenticate(text, cards, limits).map_err(|error| describe_error(&error))
            });
            let is_invalid = message.is_err();
            authenticated.push((*number, message));
            // Only the first bad line is reported.
            if is_invalid {
                break;
            }
        }
        authenticated
    };
    std::thread::scope(|scope| {
        let chunks: Vec<_> = lines.chunks(lines.len().div_ceil(jobs).max(1)).collect();
        let threads: Vec<_> = chunks.iter().map(|chunk| scope.spawn(|| authenticate(chunk))).collect();
        let mut authenticated = Vec::with_capacity(lines.len());
        for (thread, chunk) in threads.into_iter().zip(&chunks) {
            // A thread panics only because of a bug in this program. Its lines are then authenticated again here.
            authenticated.extend(thread.join().unwrap_or_else(|_| authenticate(chunk)));
        }
        authenticated
    })
}

fn format_summary(name: &str, record: &SessionRecord, consents: ConsentCheck) -> String {
    let session = record.session();
    let messages = pluralize(record.transcript().len() as u64, "message");
    let mut lines = vec![
        format!("{name}: {messages}, session {}", record.session_id()),
        format!("{} invited {}.", session.party(Role::Inviter).agent, session.party(Role::Invited).agent),
        "The hash chain, signatures, proofs, sequence and every state transition are valid. Trust scores and escrow cannot be checked from a transcript.".to_owned(),
    ];
    lines.extend(consents.into_sentences());
    if let Some(outcome) = session.outcome() {
        lines.extend(narration::describe_outcome(outcome, session, ToString::to_string));
    } else {
        lines.push(format!("warning: the session is still open ({}).", session.state()));
        if let Some(deadline) = session.next_deadline() {
            lines.push(format!(
                "Unless another message follows, the session times out at {}.",
                narration::format_time(deadline)
            ));
        }
    }
    let lines: Vec<_> = lines.iter().map(|line| printable(line)).collect();
    lines.join("\n") + "\n"
}
