//! `sayso setup`: writes sayso into the configuration of other programs, and removes it again.

use std::path::PathBuf;

use clap::Subcommand;
use gate::setup::{
    ConfigFolders, Harness, HookOptions, InstalledVersion, McpClient, McpOptions, McpServer, McpServerState,
    SetupPlan, SetupScope,
};

use crate::ExitStatus;
use crate::file::{CommandError, display_name};
use crate::hub_args::build_runtime;
use crate::output::{describe_io_error, print_stderr, print_stdout, printable};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    target: SetupTarget,
    /// Change the configuration of the project in the current folder, instead of your own for all projects.
    #[arg(long, global = true)]
    project: bool,
    /// Remove sayso from the configuration again.
    #[arg(long, global = true)]
    remove: bool,
    /// Print the change as a diff, and change nothing.
    #[arg(long, global = true)]
    dry_run: bool,
}

#[derive(Subcommand)]
enum SetupTarget {
    /// Claude Code.
    Claude(HookArgs),
    /// Codex CLI.
    Codex(HookArgs),
    /// Cursor.
    Cursor(HookArgs),
    /// Gemini CLI.
    Gemini(HookArgs),
    /// Visual Studio Code with Copilot.
    Vscode(HookArgs),
    /// opencode.
    Opencode(HookArgs),
    /// Start the MCP servers of a program through `sayso mcp`.
    Mcp(McpArgs),
}

/// Options that the hooks pass to `sayso hook`.
#[derive(clap::Args)]
struct HookArgs {
    /// Which calls need your consent: only those for which the agent itself asks (requests), risky ones as well, or all.
    #[arg(long, value_name = "WHICH", value_parser = ["requests", "risky", "all"])]
    gate: Option<String>,
    /// Address of the hub. The default is the one in SAYSO_URL, else your personal hub.
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    /// Deny calls that need consent if there is no hub. Without this option, the agent asks on its own screen.
    #[arg(long)]
    required: bool,
}

#[derive(clap::Args)]
struct McpArgs {
    /// The program whose servers are wrapped.
    #[arg(value_name = "CLIENT", value_parser = parse_client)]
    client: McpClient,
    /// Address of the hub. The default is the one in SAYSO_URL, else your personal hub.
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    /// File that says which tools need no question.
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Offer questions from the servers (elicitations) to listeners as well.
    #[arg(long)]
    elicit: bool,
}

fn parse_client(text: &str) -> Result<McpClient, String> {
    McpClient::ALL.into_iter().find(|client| client.name() == text).ok_or_else(|| {
        let names: Vec<_> = McpClient::ALL.into_iter().map(McpClient::name).collect();
        format!("it must be one of {}", names.join(", "))
    })
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    let folders = ConfigFolders::from_env().map_err(|error| error.to_string())?;
    let scope = arguments.scope()?;
    let (harness, options) = match arguments.target.harness() {
        Ok(hooks) => hooks,
        Err(target) => return set_up_servers(arguments, target, &folders, &scope),
    };
    let program = program(&scope)?;
    let plan = if arguments.remove {
        SetupPlan::remove_hooks(harness, &folders, &scope)
    } else {
        SetupPlan::install_hooks(harness, &folders, &scope, &program, &options)
    };
    let plan = plan.map_err(|error| error.to_string())?;
    if arguments.remove {
        return arguments.finish(plan, &harness.to_string());
    }
    let version = build_runtime(0)?.block_on(gate::setup::installed_version(harness.program()));
    if let Some(problem) = gate::setup::unsupported_version(harness, &version) {
        return Err(CommandError::cannot_run(problem));
    }
    let status = arguments.finish(plan, &harness.to_string())?;
    let advice = advice(harness, &version, &folders, &scope, &options);
    if arguments.dry_run {
        // Standard output has only the diff.
        for line in &advice {
            print_stderr(line);
        }
        return Ok(status);
    }
    Ok(status.max(print_stdout(&format!("{}\n", advice.join("\n")))))
}

/// Wraps the MCP servers of a client, or unwraps them.
fn set_up_servers(
    arguments: &Arguments,
    target: &McpArgs,
    folders: &ConfigFolders,
    scope: &SetupScope,
) -> Result<ExitStatus, CommandError> {
    let client = target.client;
    let plan = if arguments.remove {
        SetupPlan::unwrap_servers(client, folders, scope)
    } else {
        SetupPlan::wrap_servers(client, folders, scope, &program(scope)?, &target.options()?)
    };
    let Some(plan) = plan.map_err(|error| error.to_string())? else {
        return Err(CommandError::cannot_run(format!("{client} has no configuration for projects")));
    };
    let path = plan.path().to_owned();
    if !plan.has_file() {
        return Err(CommandError::cannot_run(format!(
            "{client} has no configuration at {}",
            display_name(&path)
        )));
    }
    if arguments.dry_run {
        return Ok(print_stdout(&plan.diff()));
    }
    let is_change = plan.is_change();
    plan.apply().map_err(|error| error.to_string())?;
    let servers = gate::setup::mcp_servers(client, folders, scope).map_err(|error| error.to_string())?;
    let heading = format!("{client}, in {}:\n", display_name(&path));
    let lines = servers.unwrap_or_default().into_iter().map(|McpServer { name, state }| {
        let name = printable(&name);
        match state {
            McpServerState::Wrapped { .. } => format!("{name} starts through sayso.\n"),
            McpServerState::Unsupported(reason) => format!("{name} starts directly, because {reason}.\n"),
            _ => format!("{name} starts directly.\n"),
        }
    });
    let ending = if is_change {
        "Restart the program, so that it reads its configuration again.\n"
    } else {
        "Nothing had to be changed.\n"
    };
    let report: String = std::iter::once(heading).chain(lines).chain([ending.to_owned()]).collect();
    Ok(print_stdout(&report))
}

impl McpArgs {
    fn options(&self) -> Result<McpOptions, CommandError> {
        let trust = self.trust.as_ref().map(|path| {
            // The program starts its servers in some other folder.
            let path = std::path::absolute(path).map_err(|error| describe_io_error(&error))?;
            path.to_str().map(str::to_owned).ok_or_else(|| "the path is not UTF-8".to_owned())
        });
        let trust = trust.transpose().map_err(|error| format!("cannot use the file for --trust: {error}"))?;
        Ok(McpOptions { hub: self.hub.clone(), trust, elicits: self.elicit })
    }
}

/// Returns what sayso cannot do with the harness, and what to do next.
fn advice(
    harness: Harness,
    version: &InstalledVersion,
    folders: &ConfigFolders,
    scope: &SetupScope,
    options: &HookOptions,
) -> Vec<String> {
    let mut lines = Vec::new();
    match version {
        InstalledVersion::NotFound => {
            lines.push(format!("{harness} was not found on the path, so its version was not checked."));
        }
        InstalledVersion::Known(version) => lines.push(format!("{harness} {version} is installed.")),
        _ => lines.push(format!("The installed version of {harness} could not be determined.")),
    }
    lines.extend(gate::setup::version_problem(harness, version));
    let file = match harness {
        Harness::Codex => Harness::codex_config(folders),
        _ => harness.hook_file(folders, scope),
    };
    // Ignores a file that cannot be read; `sayso doctor` reports it. The hooks are in a different file, or are not installed yet.
    if gate::setup::are_hooks_disabled(harness, &file).unwrap_or(false) {
        lines.push(format!(
            "{} switches hooks off, so sayso hears nothing until you change that.",
            display_name(&file)
        ));
    }
    let limits = gate::setup::limits(harness, options.gate.as_deref(), options.is_required);
    lines.extend(limits.into_iter().map(str::to_owned));
    if matches!(scope, SetupScope::Project(_)) {
        lines.push(
            "Everybody who works in this project needs sayso on the path: without it, calls can be blocked."
                .to_owned(),
        );
    }
    lines.push(
        "Run `sayso listen` in a terminal to hear the agent, and `sayso doctor` to check everything."
            .to_owned(),
    );
    lines
}

impl Arguments {
    fn scope(&self) -> Result<SetupScope, CommandError> {
        if !self.project {
            return Ok(SetupScope::User);
        }
        let folder = std::env::current_dir()
            .map_err(|error| format!("cannot find the current folder: {}", describe_io_error(&error)))?;
        Ok(SetupScope::Project(folder))
    }

    /// Shows or applies the change, and says what happened.
    fn finish(&self, plan: SetupPlan, name: &str) -> Result<ExitStatus, CommandError> {
        let path = display_name(plan.path());
        if self.dry_run {
            return Ok(print_stdout(&plan.diff()));
        }
        let report = match (plan.is_change(), self.remove) {
            (false, false) => format!("{name} is set up already, in {path}."),
            (false, true) => format!("{name} was not set up in {path}; nothing was changed."),
            (true, false) => format!("{name} is set up, in {path}."),
            (true, true) if plan.deletes_file() => {
                format!("sayso is removed from {name}: {path} is deleted.")
            }
            (true, true) => format!("sayso is removed from {name}, in {path}."),
        };
        plan.apply().map_err(|error| error.to_string())?;
        Ok(print_stdout(&format!("{report}\n")))
    }
}

impl SetupTarget {
    /// Returns the harness and the options of its hooks, or the arguments for MCP servers.
    fn harness(&self) -> Result<(Harness, HookOptions), &McpArgs> {
        let (harness, arguments) = match self {
            Self::Claude(arguments) => (Harness::Claude, arguments),
            Self::Codex(arguments) => (Harness::Codex, arguments),
            Self::Cursor(arguments) => (Harness::Cursor, arguments),
            Self::Gemini(arguments) => (Harness::Gemini, arguments),
            Self::Vscode(arguments) => (Harness::VsCode, arguments),
            Self::Opencode(arguments) => (Harness::OpenCode, arguments),
            Self::Mcp(arguments) => return Err(arguments),
        };
        let HookArgs { gate, hub, required } = arguments;
        Ok((harness, HookOptions { gate: gate.clone(), hub: hub.clone(), is_required: *required }))
    }
}

/// Returns the program that the configuration starts. A project's configuration can be shared with other people, so it
/// names the program without its folder.
fn program(scope: &SetupScope) -> Result<String, CommandError> {
    if matches!(scope, SetupScope::Project(_)) { Ok("sayso".to_owned()) } else { own_program() }
}

/// Returns the path of this program.
pub(crate) fn own_program() -> Result<String, CommandError> {
    let path: PathBuf = std::env::current_exe()
        .map_err(|error| format!("cannot find the path of sayso: {}", describe_io_error(&error)))?;
    path.to_str().map(str::to_owned).ok_or_else(|| {
        CommandError::cannot_run(format!("the path of sayso is not UTF-8: {}", display_name(&path)))
    })
}
