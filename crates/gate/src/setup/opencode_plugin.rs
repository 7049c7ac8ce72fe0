//! The plugin file of opencode, which belongs entirely to sayso.

use seal::json::{JsonWriter, Tape};

use super::owned_file::OwnedFile;
use crate::hook::OPENCODE_PLUGIN;

/// The start of the line that names the command. The installation replaces the rest of it.
const COMMAND_LINE: &str = "const COMMAND = ";

/// Returns the plugin that starts this command.
pub(crate) fn plugin(words: &[String]) -> OwnedFile {
    let mut writer = JsonWriter::with_capacity(128);
    writer.array(|writer| words.iter().for_each(|word| writer.text(word)));
    let command = format!("{COMMAND_LINE}{};", writer.finish());
    let lines = OPENCODE_PLUGIN
        .lines()
        .map(|line| if line.starts_with(COMMAND_LINE) { command.as_str() } else { line });
    OwnedFile { text: lines.flat_map(|line| [line, "\n"]).collect(), variable_line: COMMAND_LINE }
}

/// Returns the program that a plugin starts.
pub(crate) fn program(text: &str) -> Option<String> {
    let command = text.lines().find_map(|line| line.strip_prefix(COMMAND_LINE)?.strip_suffix(';'))?;
    let mut tape = Tape::default();
    let document = tape.read(command).ok()?;
    Some(document.root().items().next()?.text()?.into_owned())
}
