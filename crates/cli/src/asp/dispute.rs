//! `sayso asp dispute`: complaints about the agreement of a session.

use asp::dispute::{DisputeReason, Severity, Verdict};
use asp::{DisputeId, MessageId, SessionId};
use clap::{Subcommand, ValueEnum};
use sayso::asp::{Complaint, DisputeView};

use super::node_client::{NodeArgs, open_session, parse_session_id};
use crate::ExitStatus;
use crate::file::CommandError;
use crate::output::{print_stderr, print_stdout, printable};

#[derive(Subcommand)]
pub(crate) enum DisputeCommand {
    /// Complain about the agreement of a session, and print the dispute.
    File(FileArguments),
    /// List the disputes about a session.
    List(ListArguments),
    /// Show a dispute.
    Show(ShowArguments),
    /// End a dispute, or ask the person again.
    Resolve(ResolveArguments),
}

#[derive(clap::Args)]
pub(crate) struct FileArguments {
    /// The session.
    #[arg(value_parser = parse_session_id)]
    session: SessionId,
    /// The reason: deadline-passed, fulfillment-mismatch, non-delivery, release-without-fulfillment or terms-changed.
    #[arg(value_parser = parse_reason)]
    reason: DisputeReason,
    /// The severity, from 1 (minor) to 5 (fraud).
    #[arg(long, value_name = "NUMBER", default_value = "3", value_parser = parse_severity)]
    severity: Severity,
    /// An explanation for the person who decides.
    #[arg(long, value_name = "TEXT")]
    statement: Option<String>,
    /// The id of a message that supports the complaint. Can be repeated.
    #[arg(long = "message", value_name = "ID", value_parser = parse_message_id)]
    messages: Vec<MessageId>,
    /// Print the node's JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(clap::Args)]
pub(crate) struct ListArguments {
    /// The session.
    #[arg(value_parser = parse_session_id)]
    session: SessionId,
    /// Print the node's JSON, one dispute per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(clap::Args)]
pub(crate) struct ShowArguments {
    /// The dispute: dsp_…
    #[arg(value_parser = parse_dispute_id)]
    dispute: DisputeId,
    /// Print the node's JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(clap::Args)]
pub(crate) struct ResolveArguments {
    /// The dispute: dsp_…
    #[arg(value_parser = parse_dispute_id)]
    dispute: DisputeId,
    /// How it ends. If the node has a hub, its person upholds or dismisses a dispute.
    verdict: VerdictName,
    /// The severity with which it is upheld, from 1 to 5. It cannot exceed the severity of the complaint.
    #[arg(long, value_name = "NUMBER", default_value = "3", value_parser = parse_severity)]
    severity: Severity,
    /// The reason, for people.
    #[arg(long, value_name = "TEXT")]
    explanation: Option<String>,
    /// Print the node's JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum VerdictName {
    Upheld,
    Dismissed,
    Settled,
    Withdrawn,
    AskAgain,
}

pub(crate) fn run(command: &DisputeCommand) -> Result<ExitStatus, CommandError> {
    match command {
        DisputeCommand::File(arguments) => arguments.node.run(async |node| {
            let mut complaint = Complaint::new(arguments.reason)
                .severity(arguments.severity)
                .messages(arguments.messages.iter().copied());
            if let Some(statement) = &arguments.statement {
                complaint = complaint.statement(statement);
            }
            let dispute = open_session(&node, arguments.session)?.file_dispute(&complaint).await?;
            Ok(print_disputes(&[dispute], arguments.json))
        }),
        DisputeCommand::List(arguments) => arguments.node.run(async |node| {
            let disputes = open_session(&node, arguments.session)?.disputes().await?;
            if disputes.is_empty() {
                print_stderr("There are no disputes about this session.");
            }
            Ok(print_disputes(&disputes, arguments.json))
        }),
        DisputeCommand::Show(arguments) => arguments.node.run(async |node| {
            let dispute = node.dispute(&arguments.dispute).await?;
            Ok(print_disputes(&[dispute], arguments.json))
        }),
        DisputeCommand::Resolve(arguments) => arguments.node.run(async |node| {
            let verdict = match arguments.verdict {
                VerdictName::Upheld => Verdict::Upheld(arguments.severity),
                VerdictName::Dismissed => Verdict::Dismissed,
                VerdictName::Settled => Verdict::Settled,
                VerdictName::Withdrawn => Verdict::Withdrawn,
                VerdictName::AskAgain => {
                    let dispute = node.ask_again_about_dispute(&arguments.dispute).await?;
                    return Ok(print_disputes(&[dispute], arguments.json));
                }
            };
            let explanation = arguments.explanation.as_deref().unwrap_or_default();
            let dispute = node.resolve_dispute(&arguments.dispute, verdict, explanation).await?;
            Ok(print_disputes(&[dispute], arguments.json))
        }),
    }
}

fn print_disputes(disputes: &[DisputeView], is_json: bool) -> ExitStatus {
    let line = |dispute: &DisputeView| {
        if is_json { dispute.as_json().to_owned() } else { printable(&describe(dispute)) }
    };
    let text: String = disputes.iter().map(|dispute| line(dispute) + "\n").collect();
    print_stdout(&text)
}

fn describe(view: &DisputeView) -> String {
    let dispute = &view.dispute;
    let complaint = format!(
        "{} {} about {} against {}, severity {}",
        dispute.dispute_id,
        dispute.reason,
        dispute.commitment_id,
        dispute.filed_against,
        dispute.severity.get()
    );
    let status = match (&view.resolution, &view.unanswered) {
        (Some(resolution), _) => {
            let verdict = match resolution.verdict {
                Verdict::Upheld(severity) => format!("upheld with severity {}", severity.get()),
                Verdict::Dismissed => "dismissed".to_owned(),
                Verdict::Settled => "settled".to_owned(),
                Verdict::Withdrawn => "withdrawn".to_owned(),
            };
            format!("{verdict}: {}", resolution.explanation)
        }
        (None, Some(reason)) => format!("a person was asked but did not decide: {reason}"),
        (None, None) => "waiting for a person".to_owned(),
    };
    format!("{complaint}: {status}")
}

fn parse_reason(text: &str) -> Result<DisputeReason, String> {
    let names = || DisputeReason::ALL.map(DisputeReason::as_str).join(", ");
    DisputeReason::parse(text).ok_or_else(|| format!("use one of {}", names()))
}

fn parse_severity(text: &str) -> Result<Severity, String> {
    text.parse().ok().and_then(Severity::new).ok_or_else(|| "use a whole number from 1 to 5".to_owned())
}

fn parse_dispute_id(text: &str) -> Result<DisputeId, String> {
    DisputeId::parse(text).map_err(|error| error.to_string())
}

fn parse_message_id(text: &str) -> Result<MessageId, String> {
    MessageId::parse(text).map_err(|error| error.to_string())
}
