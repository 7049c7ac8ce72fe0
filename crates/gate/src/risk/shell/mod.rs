//! The risk of shell commands.
//!
//! `parser` splits a command line into simple commands, through pipes, lists, subshells and command substitutions.
//! `programs` knows what single programs do. A command line that cannot be parsed is risky.

mod parser;
mod programs;
mod repository;

use super::{Assessment, Folders};
use crate::phrases::texts;

/// Maximum length of a command line that is parsed, in bytes. Longer ones are risky.
const MAX_COMMAND_BYTES: usize = 64 * 1024;
/// Maximum nesting depth of subshells, substitutions and `sh -c`.
const MAX_DEPTH: usize = 16;

/// The known facts about the place where a command line is executed.
#[derive(Clone, Copy, Debug)]
struct ShellContext<'a> {
    folders: Folders<'a>,
    /// Whether a command before this one, or around it, may have changed the folder.
    is_folder_changed: bool,
    /// How many shells and other programs are around the command line.
    depth: usize,
}

impl ShellContext<'_> {
    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

/// Judges a command line that a new shell executes.
pub(super) fn assess(command: &str, folders: Folders<'_>) -> Assessment {
    assess_nested(command, ShellContext { folders, is_folder_changed: false, depth: 0 })
}

/// Judges a command line that is typed into a terminal. The shell there may be any shell, for example `PowerShell`, in which a
/// backslash does not quote, and other quotation marks do. A shell that knows its history replaces `!WORD`.
pub(super) fn assess_typed(command: &str, folders: Folders<'_>) -> Assessment {
    let is_history = |pair: &[u8]| matches!(pair, [b'!', next] if !matches!(next, b' ' | b'=' | b'\n'));
    if !command.is_ascii() || command.contains('\\') || command.as_bytes().windows(2).any(is_history) {
        return Assessment::irreversible(&texts::UNKNOWN_COMMAND);
    }
    assess(command, folders)
}

fn assess_nested(command: &str, context: ShellContext<'_>) -> Assessment {
    if command.len() > MAX_COMMAND_BYTES || context.depth > MAX_DEPTH {
        return Assessment::irreversible(&texts::UNKNOWN_COMMAND);
    }
    let Some(script) = parser::parse(command, MAX_DEPTH - context.depth) else {
        return Assessment::irreversible(&texts::UNKNOWN_COMMAND);
    };
    let mut words =
        script.commands.iter().flat_map(|command| &command.words).filter_map(parser::Word::literal);
    let has_cd = words.any(|word| matches!(word, "cd" | "pushd" | "popd"));
    let context = ShellContext { is_folder_changed: context.is_folder_changed || has_cd, ..context };
    script
        .commands
        .iter()
        .map(|command| programs::assess(command, context))
        .fold(Assessment::harmless(), Assessment::max)
}
