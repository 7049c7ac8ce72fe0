//! Shared code of the commands that talk to a running node: its address, errors, and arguments.

use std::path::Path;

use asp::{Performative, SessionId};
use sayso::asp::{AspSession, Node, NodeError};

use super::transcript_file;
use crate::ExitStatus;
use crate::file::CommandError;
use crate::hub_args::{Credentials, build_runtime, complete_url};
use crate::output::{print_stderr, printable};

/// Where `sayso asp serve` listens by default.
const DEFAULT_URL: &str = "http://127.0.0.1:8788";

/// Maximum size of a body or of terms.
const MAX_BODY_BYTES: u64 = 1024 * 1024;

/// Which node to use.
#[derive(clap::Args)]
pub(super) struct NodeArgs {
    /// Address of the node. The default is the one in SAYSO_ASP_URL, or http://127.0.0.1:8788.
    #[arg(long, value_name = "URL")]
    node: Option<String>,
    #[command(flatten)]
    credentials: Credentials,
}

/// Why a command failed.
pub(super) enum ClientFailure {
    Node(NodeError),
    Command(CommandError),
}

impl From<NodeError> for ClientFailure {
    fn from(error: NodeError) -> Self {
        Self::Node(error)
    }
}

impl From<CommandError> for ClientFailure {
    fn from(error: CommandError) -> Self {
        Self::Command(error)
    }
}

impl NodeArgs {
    /// Runs a command with the node. A refusal is printed to standard error, and the exit code is 1.
    pub(super) fn run(
        &self,
        work: impl AsyncFnOnce(Node) -> Result<ExitStatus, ClientFailure>,
    ) -> Result<ExitStatus, CommandError> {
        let variable = || std::env::var("SAYSO_ASP_URL").ok().filter(|url| !url.is_empty());
        let url = self.node.clone().or_else(variable).unwrap_or_else(|| DEFAULT_URL.to_owned());
        let mut builder = Node::connect(complete_url(&url)?);
        if let Some(token) = self.credentials.token()? {
            builder = builder.token(token);
        }
        if let Some(ca) = &self.credentials.ca {
            builder = builder.ca_file(ca);
        }
        let node = builder.open().map_err(|error| printable(&error.to_string()))?;
        let result = build_runtime(0)?.block_on(work(node));
        match result {
            Ok(status) => Ok(status),
            Err(ClientFailure::Command(error)) => Err(error),
            Err(ClientFailure::Node(NodeError::Refused { code, reason })) => {
                Ok(report_refusal(&format!("{code}: {reason}")))
            }
            Err(ClientFailure::Node(error)) => Err(describe(&error, &url)),
        }
    }
}

fn describe(error: &NodeError, url: &str) -> CommandError {
    let text = match error {
        NodeError::AccessDenied => {
            format!("{url}: {error}; set SAYSO_TOKEN, or use --token-file with a token for an agent")
        }
        NodeError::Unreachable(_) | NodeError::UntrustedServer(_) | NodeError::UnexpectedResponse(_) => {
            format!("{url}: {error}")
        }
        _ => error.to_string(),
    };
    CommandError::cannot_run(printable(&text))
}

/// Reports that something was refused. The text is not data, so it goes to standard error.
pub(super) fn report_refusal(reason: &str) -> ExitStatus {
    print_stderr(&format!("sayso: refused: {}", printable(reason)));
    ExitStatus::Negative
}

/// Parses the id of a session, for clap.
pub(super) fn parse_session_id(text: &str) -> Result<SessionId, String> {
    SessionId::parse(text)
        .map_err(|_| "it must be the id of a session, as sayso asp show prints it".to_owned())
}

/// Parses a performative in upper or lower case, for clap.
pub(super) fn parse_performative(text: &str) -> Result<Performative, String> {
    Performative::parse(&text.to_ascii_uppercase()).ok_or_else(|| {
        let all: Vec<_> = Performative::ALL.iter().map(|performative| performative.as_str()).collect();
        format!("use one of {}", all.join(", "))
    })
}

/// Returns the JSON of an argument: the argument itself, or the content of a file if it starts with @.
pub(super) fn read_json(argument: &str) -> Result<String, CommandError> {
    let Some(path) = argument.strip_prefix('@') else { return Ok(argument.to_owned()) };
    let path = Path::new(path);
    let bytes = transcript_file::read(path, MAX_BODY_BYTES, "")?;
    String::from_utf8(bytes).map_err(|_| {
        CommandError::cannot_run(format!("{} is not UTF-8", transcript_file::display_name(path)))
    })
}

/// Returns a session of the node.
pub(super) fn open_session(node: &Node, id: SessionId) -> Result<AspSession, NodeError> {
    node.session(&id.to_string())
}
