//! The programs whose MCP servers are started through `sayso mcp`, and how a server is wrapped.

use std::fmt;
use std::path::PathBuf;

use super::command_words::is_sayso;
use super::{ConfigFolders, SetupScope};

/// Maximum length of a name that `sayso mcp --name` accepts, in characters.
const MAX_NAME_CHARS: usize = 100;

/// A program that uses MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpClient {
    /// Claude Desktop.
    ClaudeDesktop,
    /// Claude Code.
    Claude,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// Codex CLI.
    Codex,
}

/// Options that are passed to `sayso mcp`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpOptions {
    /// Address of the hub. The default is that of `sayso mcp`.
    pub hub: Option<String>,
    /// The file that says which tools need no question.
    pub trust: Option<String>,
    /// Whether the servers' own questions are offered to listeners, too.
    pub elicits: bool,
}

/// A server in a client's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// How it is started.
    pub state: McpServerState,
}

/// How a server is started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpServerState {
    /// Through `sayso mcp`, with this program.
    Wrapped {
        /// The path or name of `sayso`.
        program: String,
    },
    /// Directly, although it could be wrapped.
    Direct,
    /// Directly. It cannot be wrapped for this reason.
    Unsupported(&'static str),
}

/// The command in a server's configuration, independent of its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerCommand {
    Stdio { command: String, arguments: Vec<String> },
    Http { url: String },
    Unsupported(&'static str),
}

/// The members of a server's configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerMembers {
    pub(crate) command: Option<String>,
    /// The arguments; `None` if they are not a list of strings.
    pub(crate) arguments: Option<Vec<String>>,
    pub(crate) url: Option<String>,
    pub(crate) transport: Option<String>,
    /// Whether it has credentials for HTTP that `sayso mcp` cannot pass on.
    pub(crate) has_credentials: bool,
}

impl McpClient {
    /// All clients.
    pub const ALL: [Self; 5] = [Self::ClaudeDesktop, Self::Claude, Self::Cursor, Self::VsCode, Self::Codex];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "claude-desktop",
            Self::Claude => "claude",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Codex => "codex",
        }
    }

    /// Returns the file that lists the servers, or `None` if the client has no such file for projects.
    pub fn server_file(self, folders: &ConfigFolders, scope: &SetupScope) -> Option<PathBuf> {
        Some(match (self, scope) {
            (Self::ClaudeDesktop, SetupScope::User) => {
                folders.claude_desktop().join("claude_desktop_config.json")
            }
            (Self::ClaudeDesktop, SetupScope::Project(_)) => return None,
            (Self::Claude, SetupScope::User) => folders.claude_state(),
            (Self::Cursor, SetupScope::User) => folders.cursor().join("mcp.json"),
            (Self::VsCode, SetupScope::User) => folders.vscode_user().join("mcp.json"),
            (Self::Codex, SetupScope::User) => folders.codex().join("config.toml"),
            (Self::Claude, SetupScope::Project(folder)) => folder.join(".mcp.json"),
            (Self::Cursor, SetupScope::Project(folder)) => folder.join(".cursor/mcp.json"),
            (Self::VsCode, SetupScope::Project(folder)) => folder.join(".vscode/mcp.json"),
            (Self::Codex, SetupScope::Project(folder)) => folder.join(".codex/config.toml"),
        })
    }
}

impl fmt::Display for McpClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Claude => "Claude Code",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Codex => "Codex",
        })
    }
}

impl ServerMembers {
    pub(crate) fn to_command(&self) -> ServerCommand {
        match (&self.command, &self.url, self.transport.as_deref()) {
            (Some(command), None, None | Some("stdio")) => match &self.arguments {
                Some(arguments) => {
                    ServerCommand::Stdio { command: command.clone(), arguments: arguments.clone() }
                }
                None => ServerCommand::Unsupported("its arguments are not a list of strings"),
            },
            (None, Some(_), Some("sse")) => {
                ServerCommand::Unsupported("its transport is SSE, which `sayso mcp` does not speak")
            }
            (None, Some(_), _) if self.has_credentials => {
                ServerCommand::Unsupported("it needs credentials, which would be visible on a command line")
            }
            (None, Some(url), None | Some("http" | "streamable-http" | "streamableHttp")) => {
                ServerCommand::Http { url: url.clone() }
            }
            _ => ServerCommand::Unsupported("it has neither just a command nor just a URL"),
        }
    }
}

impl ServerCommand {
    /// Returns whether the server is started through sayso.
    pub(crate) fn state(&self) -> McpServerState {
        match self {
            Self::Unsupported(reason) => McpServerState::Unsupported(reason),
            Self::Stdio { command, .. } if self.unwrap().is_some() => {
                McpServerState::Wrapped { program: command.clone() }
            }
            _ => McpServerState::Direct,
        }
    }

    /// Returns the arguments of `sayso` that start this server through a gate. Those of the server itself follow them.
    pub(crate) fn wrapping_arguments(&self, name: &str, options: &McpOptions) -> Option<Vec<String>> {
        let mut words = vec!["mcp".to_owned()];
        let is_valid_name = !name.trim().is_empty()
            && name.chars().count() <= MAX_NAME_CHARS
            && !name.chars().any(char::is_control);
        if is_valid_name && name.starts_with('-') {
            words.push(format!("--name={name}"));
        } else if is_valid_name {
            words.extend(["--name".to_owned(), name.to_owned()]);
        }
        for (option, value) in [("--hub", &options.hub), ("--trust", &options.trust)] {
            if let Some(value) = value {
                words.extend([option.to_owned(), value.clone()]);
            }
        }
        if options.elicits {
            words.push("--elicit".to_owned());
        }
        match self {
            Self::Stdio { command, .. } => words.extend(["--".to_owned(), command.clone()]),
            Self::Http { url } => words.extend(["--url".to_owned(), url.clone()]),
            Self::Unsupported(_) => return None,
        }
        Some(words)
    }

    /// Returns the server that a wrapped one starts, and how many of its arguments belong to `sayso mcp`.
    pub(crate) fn unwrap(&self) -> Option<(Self, usize)> {
        let Self::Stdio { command, arguments } = self else { return None };
        if !is_sayso(command) || arguments.first().is_none_or(|word| word != "mcp") {
            return None;
        }
        let mut index = 1;
        loop {
            match arguments.get(index)?.as_str() {
                "--" => {
                    let command = arguments.get(index + 1)?.clone();
                    let own = index + 2;
                    return Some((Self::Stdio { command, arguments: arguments.get(own..)?.to_vec() }, own));
                }
                "--url" => {
                    let url = arguments.get(index + 1)?.clone();
                    return (arguments.len() == index + 2).then_some((Self::Http { url }, index + 2));
                }
                "--name" | "--hub" | "--trust" => index += 2,
                "--elicit" => index += 1,
                word if word.starts_with("--name=") => index += 1,
                // Somebody wrote this by hand, so it is not ours to change.
                _ => return None,
            }
        }
    }
}
