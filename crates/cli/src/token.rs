//! `sayso token`: who may speak, hear and answer.

use std::path::PathBuf;

use clap::Subcommand;
use hub::{Role, Scope};
use wire::auth::{NewToken, Tokens};

use crate::Outcome;
use crate::file::{Stop, make_folder};
use crate::print::{print, tell};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Makes a token, prints it this once, and stores its hash.
    New(New),
}

#[derive(clap::Args)]
pub(crate) struct New {
    /// What it is for: agent, listener, observer or admin.
    #[arg(long, value_parser = role)]
    role: Role,
    /// Who has it.
    #[arg(long)]
    name: String,
    /// The agent as which an agent's token speaks.
    #[arg(long, value_name = "ID")]
    agent_id: Option<String>,
    /// What a listener may hear, agent:NAME or person:NAME; give it once for each. Everything if not said.
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// The file of tokens; if nothing is said, that of a hub that is started here.
    #[arg(long, value_name = "FILE", default_value = "sayso-data/tokens")]
    tokens: PathBuf,
}

fn role(word: &str) -> Result<Role, String> {
    Role::parse(word).ok_or_else(|| "a role is agent, listener, observer or admin".to_owned())
}

pub(crate) fn run(command: &Command) -> Result<Outcome, Stop> {
    let Command::New(new) = command;
    let mut scope = Scope::default();
    for part in &new.scope {
        scope.add(part).map_err(|why| why.to_string())?;
    }
    let token = NewToken { name: new.name.clone(), role: new.role, agent_id: new.agent_id.clone(), scope };
    if let Some(folder) = new.tokens.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        // Where it cannot be made, the file cannot be written, and that is said.
        let _ = make_folder(folder);
    }
    let token =
        Tokens::append(&new.tokens, &token, &mut seal::SystemRandom).map_err(|why| why.to_string())?;
    let printed = print(&format!("{token}\n"));
    tell(&format!(
        "It is shown this once; {} holds its hash. A hub that runs already learns of it by SIGHUP: \
         kill -HUP PID, or systemctl reload sayso.",
        new.tokens.display()
    ));
    Ok(printed)
}
