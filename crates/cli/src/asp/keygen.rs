//! `sayso asp keygen`: creates an agent's identity. `sayso asp card`: checks and registers cards.

use std::path::{Path, PathBuf};

use asp::{AgentCard, AgentEndpoints, AgentProfile, AgentUri, Amount, ConformanceLevel, Currency};
use client::TrustRoots;
use node::Identity;

use super::node_client::report_refusal;
use crate::ExitStatus;
use crate::file::CommandError;
use crate::hub_args::{build_runtime, complete_url};
use crate::output::{describe_io_error, print_stdout, printable};

#[derive(clap::Args)]
pub(crate) struct KeygenArguments {
    /// The agent's URI: agent://HOST:PORT/NAME. Other nodes reach the agent at that host and port.
    #[arg(long, value_name = "URI", value_parser = parse_agent)]
    agent: AgentUri,
    /// The agent's name, as people read and hear it.
    #[arg(long, value_name = "NAME")]
    name: String,
    /// What the agent does, in one sentence.
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
    /// The organization that operates the agent.
    #[arg(long, value_name = "NAME", default_value = "")]
    organization: String,
    /// A capability, such as negotiate.printing. Can be repeated.
    #[arg(long, value_name = "NAME")]
    capability: Vec<String>,
    /// Base URL of the agent's node, if it differs from the host and port of the URI.
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// The largest amount that the agent may commit to, such as 500.00. Needs --currency.
    #[arg(long, value_name = "AMOUNT", requires = "currency", value_parser = parse_amount)]
    max_transaction_value: Option<Amount>,
    /// The currency of that amount, such as EUR.
    #[arg(long, value_name = "CODE", value_parser = parse_currency)]
    currency: Option<Currency>,
    /// Folder for the keys and the card.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Replace the keys in the folder. The new card is signed with the old key and with the new one.
    #[arg(long)]
    rotate: bool,
}

#[derive(clap::Subcommand)]
pub(crate) enum CardCommand {
    /// Check the signature of a card, and print whose card it is.
    Verify(VerifyArguments),
    /// Register the card of an identity at a registry: a node that runs with --registry.
    Register(RegisterArguments),
}

#[derive(clap::Args)]
pub(crate) struct RegisterArguments {
    /// Address of the registry, such as https://HOST:PORT.
    registry: String,
    /// Folder with the agent's keys and card.
    #[arg(long, value_name = "DIR")]
    identity: PathBuf,
    /// PEM file with certificates to trust for https, in addition to those of the system.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct VerifyArguments {
    /// The card: a file, or an address such as https://HOST/.well-known/asp-agent-card.json.
    card: String,
    /// PEM file with certificates to trust for https, in addition to those of the system.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

pub(crate) fn run_keygen(arguments: &KeygenArguments) -> Result<ExitStatus, CommandError> {
    let profile = AgentProfile {
        agent_id: arguments.agent.clone(),
        name: arguments.name.clone(),
        description: arguments.description.clone(),
        organization: arguments.organization.clone(),
        capabilities: arguments.capability.clone(),
        level: ConformanceLevel::Full,
        endpoints: AgentEndpoints { asp: arguments.endpoint.clone() },
        max_transaction_value: arguments.max_transaction_value.clone(),
        currency: arguments.currency.clone(),
    };
    let folder = &arguments.out;
    let identity = if arguments.rotate {
        Identity::rotate(folder, &profile)
    } else {
        Identity::create(folder, &profile)
    };
    let identity = identity.map_err(|error| CommandError::cannot_run(error.to_string()))?;
    let verb = if arguments.rotate { "Replaced the keys of" } else { "Created the identity of" };
    Ok(print_stdout(&format!(
        "{verb} {}.\nThe card is {}; give it to the agents that you negotiate with.\nThe keys are in the same folder; keep them secret.\n",
        identity.card.agent_id(),
        folder.join("card.json").display()
    )))
}

pub(crate) fn run_card(command: &CardCommand) -> Result<ExitStatus, CommandError> {
    match command {
        CardCommand::Verify(arguments) => verify(arguments),
        CardCommand::Register(arguments) => register(arguments),
    }
}

fn register(arguments: &RegisterArguments) -> Result<ExitStatus, CommandError> {
    let identity =
        Identity::load(&arguments.identity).map_err(|error| CommandError::cannot_run(error.to_string()))?;
    let registry = complete_url(&arguments.registry)?;
    let trust_roots = load_trust_roots(arguments.ca.as_deref())?;
    let runtime = build_runtime(0).map_err(CommandError::cannot_run)?;
    if let Err(reason) = runtime.block_on(node::register_card(&registry, &identity, trust_roots)) {
        return Ok(report_refusal(&reason));
    }
    Ok(print_stdout(&format!("Registered {}.\n", identity.card.agent_id())))
}

fn verify(arguments: &VerifyArguments) -> Result<ExitStatus, CommandError> {
    let text = read(arguments)?;
    let card = AgentCard::parse(&text)
        .map_err(|error| CommandError::fault(format!("{}: error: {error}", printable(&arguments.card))))?;
    let mut lines = vec![
        format!("{}: the signature is valid.", arguments.card),
        format!("Agent: {}", card.agent_id()),
        format!("Name: {}", card.name()),
    ];
    if !card.organization().is_empty() {
        lines.push(format!("Organization: {}", card.organization()));
    }
    let capabilities: Vec<&str> = card.capabilities().collect();
    if !capabilities.is_empty() {
        lines.push(format!("Capabilities: {}", capabilities.join(", ")));
    }
    lines.push(format!("Node: {}", card.endpoint()));
    lines.push(
        "The signature does not prove who published the card, because it was made with the card's own key. Check that the agent is the one that you expect, and that you trust the source of the card."
            .to_owned(),
    );
    let lines: Vec<_> = lines.iter().map(|line| printable(line)).collect();
    Ok(print_stdout(&(lines.join("\n") + "\n")))
}

fn read(arguments: &VerifyArguments) -> Result<String, CommandError> {
    let source = &arguments.card;
    if !source.contains("://") {
        return std::fs::read_to_string(Path::new(source)).map_err(|error| {
            CommandError::cannot_run(format!("{}: {}", printable(source), describe_io_error(&error)))
        });
    }
    let trust_roots = load_trust_roots(arguments.ca.as_deref())?;
    let runtime = build_runtime(0).map_err(CommandError::cannot_run)?;
    runtime
        .block_on(node::fetch_card_text(source, trust_roots))
        .map_err(|error| CommandError::cannot_run(format!("{}: {error}", printable(source))))
}

fn load_trust_roots(path: Option<&Path>) -> Result<TrustRoots, CommandError> {
    let Some(path) = path else { return Ok(TrustRoots::default()) };
    let pem = std::fs::read(path).map_err(|error| {
        CommandError::cannot_run(format!("{}: {}", path.display(), describe_io_error(&error)))
    })?;
    TrustRoots::system_and_pem(&pem).map_err(|error| CommandError::cannot_run(error.to_string()))
}

pub(super) fn parse_agent(text: &str) -> Result<AgentUri, String> {
    AgentUri::parse(text).map_err(|error| error.to_string())
}

fn parse_amount(text: &str) -> Result<Amount, String> {
    Amount::parse(text).map_err(|error| error.to_string())
}

fn parse_currency(text: &str) -> Result<Currency, String> {
    Currency::parse(text).map_err(|error| error.to_string())
}
