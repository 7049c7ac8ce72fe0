//! The plugin file of opencode, which belongs to sayso as a whole.

use seal::json::JsonWriter;

use super::HookOptions;
use super::plan::Editor;
use crate::setup::Harness;

/// The plugin. `sayso hook` defines what it does, and its constant replaces this one: `crate::hook::OPENCODE_PLUGIN`.
const PLUGIN: &str = include_str!("opencode_plugin.js");

/// The line of the plugin that names the command. The installation replaces it.
const COMMAND_LINE: &str = "const COMMAND = [\"sayso\", \"hook\", \"opencode\"];";

pub(crate) struct PluginEditor {
    pub(crate) words: Vec<String>,
}

impl PluginEditor {
    pub(crate) fn new(program: &str, options: &HookOptions) -> Self {
        Self { words: Harness::OpenCode.hook_words(program, options) }
    }

    fn source(&self) -> String {
        let mut writer = JsonWriter::with_capacity(128);
        writer.array(|writer| self.words.iter().for_each(|word| writer.text(word)));
        PLUGIN.replacen(COMMAND_LINE, &format!("const COMMAND = {};", writer.finish()), 1)
    }
}

impl Editor for PluginEditor {
    fn install(&self, text: &str) -> Result<String, String> {
        if text.is_empty() || is_unchanged(text) {
            return Ok(self.source());
        }
        Err("it is not the plugin that sayso wrote, or it was changed; move it away first".to_owned())
    }

    fn remove(&self, text: &str) -> Result<String, String> {
        if is_unchanged(text) {
            return Ok(String::new());
        }
        Err("it is not the plugin that sayso wrote, or it was changed; delete it yourself".to_owned())
    }

    fn is_empty(&self, text: &str) -> bool {
        text.is_empty()
    }

    fn owns_file(&self) -> bool {
        true
    }
}

/// Returns the program that a plugin starts, if it is the one that sayso wrote.
pub(crate) fn program(text: &str) -> Option<String> {
    let command = text.lines().find_map(|line| line.strip_prefix("const COMMAND = ")?.strip_suffix(';'))?;
    let mut tape = seal::json::Tape::default();
    let document = tape.read(command).ok()?;
    let program = document.root().items().next()?.text()?.into_owned();
    is_unchanged(text).then_some(program)
}

/// Returns whether a text is the plugin, with any command.
fn is_unchanged(text: &str) -> bool {
    let without_command = |text: &str| -> String {
        text.split_inclusive('\n').filter(|line| !line.starts_with("const COMMAND = ")).collect()
    };
    without_command(text) == without_command(PLUGIN)
}
