//! `sayso asp trust`: how much a node trusts an agent, and the events behind it.

use std::fmt::Write;

use asp::AgentUri;
use asp::trust::{TrustComponent, TrustEvent, TrustEventName};
use seal::json::{JsonValue, Tape};

use super::narration::format_time;
use super::node_client::NodeArgs;
use crate::ExitStatus;
use crate::file::CommandError;
use crate::output::{capitalize, print_stdout, printable};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The agent's URI: agent://HOST:PORT/NAME.
    #[arg(value_parser = parse_agent)]
    agent: AgentUri,
    /// Print the node's JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    arguments.node.run(async |node| {
        let report = node.trust_report(&arguments.agent).await?;
        if arguments.json {
            return Ok(print_stdout(&format!("{report}\n")));
        }
        let mut tape = Tape::default();
        let lines = tape.read(&report).ok().and_then(|doc| describe_report(&doc.root()));
        let lines = lines.ok_or_else(|| CommandError::cannot_run("the node's report cannot be read"))?;
        let text: String = lines.iter().map(|line| printable(line) + "\n").collect();
        Ok(print_stdout(&text))
    })
}

fn describe_report(report: &JsonValue<'_>) -> Option<Vec<String>> {
    let mut lines = vec![format!(
        "{} has a trust score of {:.1} out of 100. That is level {}, {}.",
        report.member("agent")?.text()?,
        number(report, "score")?,
        report.member("level")?.source(),
        report.member("levelName")?.text()?
    )];
    for component in report.member("components")?.items() {
        let name = component.member("name")?.text()?.into_owned();
        let (weight, value) = (number(&component, "weight")?, number(&component, "value")?);
        lines.push(format!(
            "{}: {value:.1} of 100, with a weight of {weight:.2}, adds {:.1} points.{}",
            capitalize(component_name(&name)),
            weight * value,
            describe_parts(&component)?
        ));
        for event in component.member("events")?.items() {
            let name = event.member("name")?.text()?.into_owned();
            let count = event.member("count")?.source();
            lines.push(format!("  {}: {count}", describe_event(&name)));
        }
        let recent: Vec<_> = component
            .member("recentEvents")?
            .items()
            .filter_map(|event| TrustEvent::read(&event).ok())
            .map(|event| {
                let session =
                    event.session_id.map(|session| format!(", session {session}")).unwrap_or_default();
                format!("    {} {}{session}", format_time(event.at), event.kind.name())
            })
            .collect();
        lines.extend(recent.into_iter().rev().take(MAX_RECENT_EVENTS));
    }
    Some(lines)
}

/// Maximum number of recent events that are listed for one component, the latest first.
const MAX_RECENT_EVENTS: usize = 5;

fn describe_parts(component: &JsonValue<'_>) -> Option<String> {
    let (base, growth) = (number(component, "base")?, number(component, "growth")?);
    let penalty = number(component, "penalty")?;
    let mut text = format!(" It starts at {base:.1}");
    if growth > 0.0 {
        let _ = write!(text, "; good events add {growth:.1}");
    }
    if penalty > 0.0 {
        let _ = write!(text, "; bad events take {penalty:.1} away");
    }
    Some(text + ".")
}

fn number(value: &JsonValue<'_>, name: &str) -> Option<f64> {
    value.member(name)?.source().parse().ok()
}

fn component_name(name: &str) -> &str {
    match TrustComponent::parse(name) {
        Some(TrustComponent::IdentityVerification) => "identity",
        Some(TrustComponent::CommunicationHistory) => "past sessions",
        Some(TrustComponent::CommitmentFulfillment) => "kept commitments",
        Some(TrustComponent::BehavioralConsistency) => "consistent behaviour",
        Some(TrustComponent::ResponseQuality) => "answers in time",
        Some(TrustComponent::SecurityPosture) => "security",
        Some(TrustComponent::EconomicReliability) => "payments",
        Some(TrustComponent::PeerEndorsements) => "endorsements",
        None => name,
    }
}

fn describe_event(name: &str) -> &str {
    match TrustEventName::parse(name) {
        Some(TrustEventName::SessionCompleted) => "sessions that ended as agreed",
        Some(TrustEventName::SessionClosed) => "sessions that ended in an orderly way without an agreement",
        Some(TrustEventName::SessionAbandoned) => "sessions that it abandoned",
        Some(TrustEventName::MessageAnswered) => "messages that it answered in time",
        Some(TrustEventName::MessageAnsweredLate) => "messages that it answered late",
        Some(TrustEventName::ResponseMissed) => "messages that it never answered",
        Some(TrustEventName::CommitmentKept) => "commitments that it kept",
        Some(TrustEventName::CommitmentLate) => "commitments that it fulfilled late",
        Some(TrustEventName::CommitmentBroken) => "commitments that it broke",
        Some(TrustEventName::DisputeLost) => "disputes that it lost",
        Some(TrustEventName::ProtocolViolation) => "messages that were not allowed",
        Some(TrustEventName::ChainBroken) => "messages that link to an unknown message",
        Some(TrustEventName::AuthenticationFailed) => "messages that were not authentic",
        Some(TrustEventName::CardPinned) => "its card was pinned by the operator",
        Some(TrustEventName::CardTrustedOnFirstUse) => "its card was pinned on first contact",
        Some(TrustEventName::CardRotated) => "it replaced its keys properly",
        Some(TrustEventName::CardMismatched) => "messages with a card other than the pinned one",
        Some(TrustEventName::CardRevoked) => "its card was revoked",
        Some(TrustEventName::EscrowFunded) => "escrows that it funded",
        Some(TrustEventName::EscrowUnfunded) => "escrows that it promised but could not cover",
        Some(TrustEventName::EscrowForfeited) => "escrows that it lost",
        Some(TrustEventName::EndorsementReceived) => "endorsements by other agents",
        _ => name,
    }
}

fn parse_agent(text: &str) -> Result<AgentUri, String> {
    AgentUri::parse(text).map_err(|error| error.to_string())
}
