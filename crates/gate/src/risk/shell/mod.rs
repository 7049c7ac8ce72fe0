//! The risk of shell commands.
//!
//! `parser` splits a command line into simple commands, through pipes, lists, subshells and command substitutions.
//! `programs` knows what single programs do. A command line that cannot be parsed is risky.

mod parser;
mod programs;

use super::Assessment;

/// Maximum length of a command line that is parsed, in bytes. Longer ones are risky.
const MAX_COMMAND_BYTES: usize = 64 * 1024;
/// Maximum nesting depth of subshells, substitutions and `sh -c`.
const MAX_DEPTH: usize = 16;

pub(super) fn assess(command: &str) -> Assessment {
    assess_nested(command, 0)
}

fn assess_nested(command: &str, depth: usize) -> Assessment {
    if command.len() > MAX_COMMAND_BYTES || depth > MAX_DEPTH {
        return Assessment::unknown("what such a long or deeply nested command does");
    }
    let Some(script) = parser::parse(command, MAX_DEPTH - depth) else {
        return Assessment::unknown("how the shell reads this command");
    };
    // The configuration of a repository in another folder can name programs that git runs.
    let mut words =
        script.commands.iter().flat_map(|command| &command.words).filter_map(parser::Word::literal);
    let has_cd = words.clone().any(|word| matches!(word, "cd" | "pushd" | "popd"));
    if has_cd && words.any(|word| word.contains("git")) {
        return Assessment::unknown("what git does in the other folder");
    }
    script
        .commands
        .iter()
        .map(|command| programs::assess(command, depth))
        .fold(Assessment::harmless(), Assessment::max)
}
