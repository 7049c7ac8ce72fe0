//! `sayso token`: access tokens for agents and listeners.

use std::path::PathBuf;

use clap::Subcommand;
use hub::{Role, Scope};
use wire::auth::{NewToken, Tokens};

use crate::ExitStatus;
use crate::file::{CommandError, create_private_dir};
use crate::output::{print_stderr, print_stdout};

#[derive(Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token, print it once, and store its hash.
    New(NewTokenArgs),
}

#[derive(clap::Args)]
pub(crate) struct NewTokenArgs {
    /// Role of the token: agent, listener, observer or admin.
    #[arg(long, value_parser = parse_role)]
    role: Role,
    /// Name of the person or program that will use the token.
    #[arg(long)]
    name: String,
    /// Agent id that the holder of an agent token may use.
    #[arg(long, value_name = "ID")]
    agent_id: Option<String>,
    /// What a listener may hear, as agent:NAME or person:NAME. Can be repeated. Default: everything.
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// Token file. The default is the token file of a hub started in this folder.
    #[arg(long, value_name = "FILE", default_value = "sayso-data/tokens")]
    tokens: PathBuf,
}

fn parse_role(text: &str) -> Result<Role, String> {
    Role::parse(text).ok_or_else(|| "it must be agent, listener, observer or admin".to_owned())
}

pub(crate) fn run(command: &TokenCommand) -> Result<ExitStatus, CommandError> {
    let TokenCommand::New(arguments) = command;
    let mut scope = Scope::default();
    for part in &arguments.scope {
        scope.add(part).map_err(|why| why.to_string())?;
    }
    let new_token = NewToken {
        name: arguments.name.clone(),
        role: arguments.role,
        agent_id: arguments.agent_id.clone(),
        scope,
    };
    if let Some(folder) = arguments.tokens.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        // If this fails, writing the file fails too, and that error is reported.
        let _ = create_private_dir(folder);
    }
    let token = Tokens::append(&arguments.tokens, &new_token, &mut seal::SystemRandom)
        .map_err(|why| why.to_string())?;
    let printed = print_stdout(&format!("{token}\n"));
    print_stderr(&format!(
        "This token is not shown again; {} stores only its hash. A running hub reads the file again after SIGHUP: \
        kill -HUP PID, or systemctl reload sayso.",
        arguments.tokens.display()
    ));
    Ok(printed)
}
