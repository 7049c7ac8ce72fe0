//! `sayso mcp`: a gate in front of an MCP server.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use ::gate::mcp::{GateOptions, HubAddress, ServerTarget, ServerTrust, default_name};
use client::{HubLocation, Url};

use crate::file::CommandError;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Name of the server, which people hear and which the trust file uses. The default is the name of its program or package.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// File that says which tools need no question. Without it, a person is asked about every call.
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Address of the hub. The default is the one in SAYSO_URL, else the personal hub of this user.
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    /// Offer questions from the server (elicitations) to listeners as well. The first answer counts.
    #[arg(long)]
    elicit: bool,
    /// Address of a server that speaks streamable HTTP, instead of a command. The environment variable SAYSO_MCP_TOKEN can contain
    /// an access token for it.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<String>,
    /// Command that starts the server, with its arguments.
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["guard", "url"])]
    command: Vec<OsString>,
    /// End this process group when standard input ends. For internal use.
    #[arg(long, value_name = "GROUP", hide = true, exclusive = true)]
    guard: Option<i32>,
}

/// Maximum length of a server's name, in characters.
const MAX_NAME_CHARS: usize = 100;

/// Runs the gate. The exit code is that of the server, or 2 if it could not run.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    if let Some(group) = arguments.guard {
        ::gate::child_process::watch(group);
        return ExitCode::SUCCESS;
    }
    let result = arguments.to_options().and_then(|options| {
        ::gate::mcp::run(options).map_err(|error| CommandError::cannot_run(error.to_string()))
    });
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => ExitCode::from(error.report() as u8),
    }
}

impl Arguments {
    fn to_options(&self) -> Result<GateOptions, CommandError> {
        let (target, words, default_name) = if let Some(text) = &self.url {
            let url = Url::parse_http(text)
                .map_err(|error| CommandError::cannot_run(format!("{text:?} is not an address: {error}")))?;
            let default_name = url.host().to_owned();
            (ServerTarget::Url(url, variable("SAYSO_MCP_TOKEN")), vec![text.clone()], default_name)
        } else {
            let Some((program, arguments)) = self.command.split_first() else {
                return Err(CommandError::cannot_run("no server: write its command after --"));
            };
            let words = self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            let target = ServerTarget::Command(program.clone(), arguments.to_vec());
            (target, words, default_name(&self.command))
        };
        let name = self.name.clone().unwrap_or(default_name);
        if name.trim().is_empty()
            || name.chars().count() > MAX_NAME_CHARS
            || name.chars().any(char::is_control)
        {
            let message = format!(
                "the name of the server must have 1 to {MAX_NAME_CHARS} characters, not only spaces, and no control characters; use --name"
            );
            return Err(CommandError::cannot_run(message));
        }
        let trust = match &self.trust {
            None => ServerTrust::default(),
            Some(file) => ServerTrust::read(file, &name, &words)
                .map_err(|error| CommandError::cannot_run(error.to_string()))?,
        };
        let hub = HubLocation::find(self.hub.as_deref())
            .map_err(|error| CommandError::cannot_run(error.to_string()))?;
        Ok(GateOptions {
            target,
            name,
            trust,
            hub: HubAddress { url: hub.url.to_string(), token: variable("SAYSO_TOKEN") },
            elicit: self.elicit,
            guard_command: guard_command(),
        })
    }
}

/// Returns the command that ends the process group of a gate that was killed.
pub(crate) fn guard_command() -> Vec<OsString> {
    let own_program = std::env::current_exe().map_or_else(|_| "sayso".into(), OsString::from);
    vec![own_program, "mcp".into(), "--guard".into()]
}

/// Returns an environment variable, unless it is empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
