//! `sayso token`: access tokens for agents and listeners.

use std::path::PathBuf;

use clap::Subcommand;
use hub::{AgentNaming, Role, Scope};
use seal::{Timestamp, UnixMillis};
use wire::auth::{NewToken, TokenEntry, Tokens};

use crate::ExitStatus;
use crate::file::{CommandError, create_private_dir};
use crate::output::{print_stderr, print_stdout, printable};
use crate::serve::parse_duration_ms;

#[derive(Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token, print it once, and store its hash.
    New(NewTokenArgs),
    /// List the tokens: their names, roles, scopes and dates. The tokens themselves are not stored.
    List(TokenFileArgs),
    /// Remove a token from the file.
    Revoke(RevokeTokenArgs),
}

#[derive(clap::Args)]
pub(crate) struct TokenFileArgs {
    /// Token file. The default is the token file of a hub started in this folder.
    #[arg(long, value_name = "FILE", default_value = "sayso-data/tokens")]
    tokens: PathBuf,
    /// Postgres database of a cluster, as in sayso serve --journal. Its tokens are used instead of a file.
    #[arg(long, value_name = "URL", conflicts_with = "tokens")]
    journal: Option<String>,
}

#[derive(clap::Args)]
pub(crate) struct RevokeTokenArgs {
    /// Name of the token.
    name: String,
    #[command(flatten)]
    file: TokenFileArgs,
}

#[derive(clap::Args)]
pub(crate) struct NewTokenArgs {
    /// Role of the token: agent, listener, receiver (a listener who may take over from agents), observer or admin.
    #[arg(long, value_parser = parse_role)]
    role: Role,
    /// Name of the person or program that will use the token.
    #[arg(long)]
    name: String,
    /// Agent id that the holder of an agent token may use.
    #[arg(long, value_name = "ID")]
    agent_id: Option<String>,
    /// Let this token use an agent id that belongs to another token, if both belong to the same agent.
    #[arg(long, requires = "agent_id")]
    share_agent_id: bool,
    /// Name that people hear for the agent. Without it the agent names itself, and the name counts as unverified.
    #[arg(long, value_name = "TEXT", requires = "agent_id")]
    display_name: Option<String>,
    /// Agents or people that a listener may hear, as agent:NAME or person:NAME. Can be repeated. Default: everything.
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// How long the token is valid, such as 12h or 90d. Default: until it is revoked.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_ms)]
    expires: Option<i64>,
    #[command(flatten)]
    file: TokenFileArgs,
}

fn parse_role(text: &str) -> Result<Role, String> {
    Role::parse(text).ok_or_else(|| "it must be agent, listener, receiver, observer or admin".to_owned())
}

pub(crate) fn run(command: &TokenCommand) -> Result<ExitStatus, CommandError> {
    match command {
        TokenCommand::New(arguments) => create(arguments),
        TokenCommand::List(arguments) => list(arguments),
        TokenCommand::Revoke(arguments) => revoke(&arguments.name, &arguments.file),
    }
}

/// How to make a running hub use a changed file.
const RELOAD_HINT: &str =
    "A running hub reads the file again after SIGHUP: kill -HUP PID, or systemctl reload sayso.";

fn create(arguments: &NewTokenArgs) -> Result<ExitStatus, CommandError> {
    let mut scope = Scope::default();
    for part in &arguments.scope {
        scope.add(part).map_err(|error| error.to_string())?;
    }
    let now = wire::unix_now();
    let new_token = NewToken {
        agent_id: arguments.agent_id.clone(),
        shares_agent_id: arguments.share_agent_id,
        display_name: arguments.display_name.clone(),
        scope,
        expires_at: arguments.expires.map(|duration_ms| now.saturating_add(duration_ms)),
        ..NewToken::new(&arguments.name, arguments.role, now)
    };
    if let Some(address) = &arguments.file.journal {
        let token = change_shared(address, |tokens| {
            let (token, _) =
                tokens.add(&new_token, &mut seal::SystemRandom).map_err(|error| error.to_string())?;
            Ok((tokens.clone(), token))
        })?;
        let printed = print_stdout(&format!("{token}\n"));
        print_stderr(&format!(
            "This token is not shown again; the database stores only its hash. {SHARED_HINT}"
        ));
        return Ok(printed);
    }
    let path = &arguments.file.tokens;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        // If this fails, writing the file fails too, and that error is reported.
        let _ = create_private_dir(folder);
    }
    let token =
        Tokens::append(path, &new_token, &mut seal::SystemRandom).map_err(|error| error.to_string())?;
    let printed = print_stdout(&format!("{token}\n"));
    print_stderr(&format!(
        "This token is not shown again; {} stores only its hash. {RELOAD_HINT}",
        path.display()
    ));
    Ok(printed)
}

/// The hint after a change of a cluster's tokens.
const SHARED_HINT: &str = "The cluster uses the change within a second.";

/// Changes the tokens of a cluster. If somebody else changes them at the same time, the change is made again.
#[cfg(feature = "postgres")]
fn change_shared<T>(
    address: &str,
    change: impl Fn(&mut Tokens) -> Result<(Tokens, T), String>,
) -> Result<T, String> {
    use crate::serve::cluster_texts::{TOKENS_TEXT, parse_tokens};

    let mut texts = journal::SharedTexts::new(&crate::cluster::open_database(address)?);
    loop {
        let text = texts.read(TOKENS_TEXT, None).map_err(|error| error.to_string())?;
        let text =
            text.ok_or("the database has no tokens yet; the first node of the cluster creates them")?;
        let (changed, value) = change(&mut parse_tokens(&text.content)?)?;
        let was_stored = texts.replace(TOKENS_TEXT, &changed.to_text(), Some(text.version));
        if was_stored.map_err(|error| error.to_string())? {
            return Ok(value);
        }
    }
}

#[cfg(not(feature = "postgres"))]
fn change_shared<T>(
    _address: &str,
    _change: impl Fn(&mut Tokens) -> Result<(Tokens, T), String>,
) -> Result<T, String> {
    Err(crate::cluster::WITHOUT_POSTGRES.to_owned())
}

/// Reads the tokens of a cluster.
#[cfg(feature = "postgres")]
fn load_shared(address: &str) -> Result<Tokens, String> {
    use crate::serve::cluster_texts::{TOKENS_TEXT, parse_tokens};

    let mut texts = journal::SharedTexts::new(&crate::cluster::open_database(address)?);
    let text = texts.read(TOKENS_TEXT, None).map_err(|error| error.to_string())?;
    parse_tokens(
        &text.ok_or("the database has no tokens yet; the first node of the cluster creates them")?.content,
    )
}

#[cfg(not(feature = "postgres"))]
fn load_shared(_address: &str) -> Result<Tokens, String> {
    Err(crate::cluster::WITHOUT_POSTGRES.to_owned())
}

fn list(arguments: &TokenFileArgs) -> Result<ExitStatus, CommandError> {
    let tokens = match &arguments.journal {
        Some(address) => load_shared(address)?,
        None => Tokens::load(&arguments.tokens).map_err(|error| error.to_string())?,
    };
    let now = wire::unix_now();
    let header =
        ["NAME", "ROLE", "AGENT ID", "DISPLAY NAME", "SCOPE", "CREATED", "EXPIRES"].map(str::to_owned);
    let rows: Vec<_> =
        std::iter::once(header).chain(tokens.entries().iter().map(|entry| format_row(entry, now))).collect();
    let width_of = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; COLUMNS] = std::array::from_fn(width_of);
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    Ok(print_stdout(&text))
}

const COLUMNS: usize = 7;

fn format_row(entry: &TokenEntry, now: UnixMillis) -> [String; COLUMNS] {
    let principal = &entry.principal;
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let format_time = |at: UnixMillis| Timestamp::from_unix_millis(at).map(|at| at.to_string());
    let expiry = principal.expires_at.map(|at| {
        let note = if entry.is_expired(now) { " (expired)" } else { "" };
        or_dash(format_time(at)) + note
    });
    let agent_id = principal.agent_id.as_deref().map(|id| {
        let note = if entry.shares_agent_id { " (shared)" } else { "" };
        printable(id) + note
    });
    let display_name = match &principal.naming {
        AgentNaming::Token(name) => Some(printable(name)),
        _ => None,
    };
    let scope: Vec<_> = principal.scope.entries().map(|entry| printable(&entry)).collect();
    [
        printable(&principal.name),
        principal.role.as_str().to_owned(),
        or_dash(agent_id),
        or_dash(display_name),
        if scope.is_empty() { "everything".to_owned() } else { scope.join(",") },
        or_dash(entry.created_at.and_then(format_time)),
        expiry.unwrap_or_else(|| "never".to_owned()),
    ]
}

fn revoke(name: &str, arguments: &TokenFileArgs) -> Result<ExitStatus, CommandError> {
    if let Some(address) = &arguments.journal {
        change_shared(address, |tokens| {
            Ok((tokens.without(name).ok_or_else(|| format!("no token is named {name:?}"))?, ()))
        })?;
        print_stderr(&format!("The token {name:?} was removed from the database. {SHARED_HINT}"));
        return Ok(ExitStatus::Success);
    }
    let path = &arguments.tokens;
    Tokens::revoke(path, name).map_err(|error| error.to_string())?;
    print_stderr(&format!("The token {name:?} was removed from {}. {RELOAD_HINT}", path.display()));
    Ok(ExitStatus::Success)
}
