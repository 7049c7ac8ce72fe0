//! A change to one configuration file: computed first, then shown or applied.

use std::path::{Path, PathBuf};

use super::config_file::{ConfigFile, create_folders};
use super::install_record::{InstallRecord, RecordFolder};
use super::text_edits::unified_diff;
use super::{
    ConfigFolders, Harness, HookOptions, HookState, McpClient, McpOptions, McpServer, SetupError, SetupScope,
    hook_entries, mcp_json, mcp_toml, opencode_plugin,
};

/// A change to one configuration file.
#[derive(Debug)]
pub struct SetupPlan {
    file: ConfigFile,
    new_text: Option<String>,
    records: RecordFolder,
    record: RecordChange,
}

#[derive(Debug)]
enum RecordChange {
    /// Nothing changes.
    Keep,
    /// The file is written. Before the installation it had this text.
    Install { original: Option<String>, new_folders: Vec<PathBuf> },
    /// The entries are removed.
    Remove { new_folders: Vec<PathBuf> },
}

/// How entries are put into a file and removed from it.
pub(crate) trait Editor {
    /// Returns the text with the entries.
    fn install(&self, text: &str) -> Result<String, String>;
    /// Returns the text without the entries.
    fn remove(&self, text: &str) -> Result<String, String>;
    /// Returns whether a file that the installation created can be deleted when it has this text.
    fn is_empty(&self, text: &str) -> bool;
    /// Returns whether the file belongs to sayso, so that it is deleted even if no record says that sayso created it.
    fn owns_file(&self) -> bool {
        false
    }
}

impl SetupPlan {
    /// Plans the installation of a harness's hooks. `program` is the path or name of `sayso` for the hooks.
    pub fn install_hooks(
        harness: Harness,
        folders: &ConfigFolders,
        scope: &SetupScope,
        program: &str,
        options: &HookOptions,
    ) -> Result<Self, SetupError> {
        let path = harness.hook_file(folders, scope);
        if harness == Harness::OpenCode {
            return Self::install(
                &path,
                folders,
                &opencode_plugin::plugin(&harness.hook_words(program, options)),
            );
        }
        let editor = HookEditor { harness, words: harness.hook_words(program, options) };
        Self::install(&path, folders, &editor)
    }

    /// Plans the removal of a harness's hooks.
    pub fn remove_hooks(
        harness: Harness,
        folders: &ConfigFolders,
        scope: &SetupScope,
    ) -> Result<Self, SetupError> {
        let path = harness.hook_file(folders, scope);
        if harness == Harness::OpenCode {
            return Self::remove(&path, folders, &opencode_plugin::plugin(&[]));
        }
        Self::remove(&path, folders, &HookEditor { harness, words: Vec::new() })
    }

    /// Plans to start a client's servers through `sayso mcp`. Returns `None` if the client has no file for projects.
    pub fn wrap_servers(
        client: McpClient,
        folders: &ConfigFolders,
        scope: &SetupScope,
        program: &str,
        options: &McpOptions,
    ) -> Result<Option<Self>, SetupError> {
        let Some(path) = client.server_file(folders, scope) else { return Ok(None) };
        let editor = McpEditor { client, program, options };
        // Without a file there are no servers.
        if ConfigFile::read(&path)?.text.is_none() {
            Self::remove(&path, folders, &editor)
        } else {
            Self::install(&path, folders, &editor)
        }
        .map(Some)
    }

    /// Plans to start a client's servers directly again. Returns `None` if the client has no file for projects.
    pub fn unwrap_servers(
        client: McpClient,
        folders: &ConfigFolders,
        scope: &SetupScope,
    ) -> Result<Option<Self>, SetupError> {
        let Some(path) = client.server_file(folders, scope) else { return Ok(None) };
        let editor = McpEditor { client, program: "", options: &McpOptions::default() };
        Self::remove(&path, folders, &editor).map(Some)
    }

    pub(crate) fn install(
        path: &Path,
        folders: &ConfigFolders,
        editor: &impl Editor,
    ) -> Result<Self, SetupError> {
        let records = folders.records();
        let file = ConfigFile::read(path)?;
        let refuse = |reason| SetupError::unusable(path, reason);
        let record = records.load(&file.real_path);
        let is_as_written = record
            .as_ref()
            .zip(file.text.as_ref())
            .is_some_and(|(record, text)| record.restore(text).is_some());
        // A file that is not as sayso left it can contain the entries in another place or form.
        if !is_as_written
            && let Some(text) = &file.text
            && editor.install(text).map_err(refuse)? == *text
        {
            return Ok(Self { new_text: file.text.clone(), file, records, record: RecordChange::Keep });
        }
        // Entries of an earlier installation are removed first, so that the record describes the file without them.
        let (original, new_folders) = match &file.text {
            None => (None, Vec::new()),
            Some(text) => without_entries(text, record.as_ref(), editor).map_err(refuse)?,
        };
        let new_text = editor.install(original.as_deref().unwrap_or_default()).map_err(refuse)?;
        let is_change = file.text.as_ref() != Some(&new_text);
        let record =
            if is_change { RecordChange::Install { original, new_folders } } else { RecordChange::Keep };
        Ok(Self { new_text: Some(new_text), file, records, record })
    }

    pub(crate) fn remove(
        path: &Path,
        folders: &ConfigFolders,
        editor: &impl Editor,
    ) -> Result<Self, SetupError> {
        let records = folders.records();
        let file = ConfigFile::read(path)?;
        let Some(text) = &file.text else {
            return Ok(Self { new_text: None, file, records, record: RecordChange::Keep });
        };
        let record = records.load(&file.real_path);
        let (new_text, new_folders) = without_entries(text, record.as_ref(), editor)
            .map_err(|reason| SetupError::unusable(path, reason))?;
        let record =
            if new_text == file.text { RecordChange::Keep } else { RecordChange::Remove { new_folders } };
        Ok(Self { file, new_text, records, record })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Returns whether the file exists, before the change is applied.
    pub fn has_file(&self) -> bool {
        self.file.text.is_some()
    }

    /// Returns whether the change deletes the file.
    pub fn deletes_file(&self) -> bool {
        self.has_file() && self.new_text.is_none()
    }

    /// Returns whether anything changes.
    pub fn is_change(&self) -> bool {
        self.file.text != self.new_text
    }

    /// Returns the change as a unified diff, or an empty text if nothing changes.
    pub fn diff(&self) -> String {
        let name = self.file.path.display().to_string();
        unified_diff(&name, self.file.text.as_deref(), self.new_text.as_deref())
    }

    /// Applies the change. If it fails, the file is as before.
    pub fn apply(self) -> Result<(), SetupError> {
        let Self { file, new_text, records, record } = self;
        let path = &file.real_path;
        match record {
            RecordChange::Keep => Ok(()),
            RecordChange::Install { original, mut new_folders } => {
                let _lock = records.lock()?;
                file.check_unchanged()?;
                let former_record = records.load(path);
                new_folders.extend(create_folders(path)?);
                let written = new_text.unwrap_or_default();
                // The record comes first: without it, an installed file could not be restored exactly.
                records.store(path, &InstallRecord::new(original.as_deref(), &written, new_folders))?;
                file.replace(Some(&written)).inspect_err(|_| {
                    // The error of the file matters more than one of the record, which is not needed for a removal.
                    let _ = match &former_record {
                        Some(record) => records.store(path, record),
                        None => records.delete(path),
                    };
                })
            }
            RecordChange::Remove { new_folders } => {
                let _lock = records.lock()?;
                file.replace(new_text.as_deref())?;
                records.delete(path)?;
                if new_text.is_none() {
                    // A folder that is not empty stays.
                    for folder in new_folders {
                        if std::fs::remove_dir(folder).is_err() {
                            break;
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

/// Returns the text as it was before the installation, or `None` if there was no file; and the folders that the
/// installation created. If somebody changed the file since, only the entries are removed.
fn without_entries(
    text: &str,
    record: Option<&InstallRecord>,
    editor: &impl Editor,
) -> Result<(Option<String>, Vec<PathBuf>), String> {
    let folders = record.map(|record| record.new_folders.clone()).unwrap_or_default();
    if let Some(original) = record.and_then(|record| record.restore(text)) {
        return Ok((original.text, folders));
    }
    let stripped = editor.remove(text)?;
    let is_own = editor.owns_file() || record.is_some_and(InstallRecord::is_new_file);
    let is_file_gone = is_own && stripped != text && editor.is_empty(&stripped);
    Ok(((!is_file_gone).then_some(stripped), folders))
}

/// Returns which hooks of sayso a harness's configuration contains. Returns `None` if there is no file.
pub fn hook_state(
    harness: Harness,
    folders: &ConfigFolders,
    scope: &SetupScope,
) -> Result<Option<HookState>, SetupError> {
    let path = &harness.hook_file(folders, scope);
    let file = ConfigFile::read(path)?;
    let Some(text) = &file.text else { return Ok(None) };
    if harness == Harness::OpenCode {
        let programs = opencode_plugin::program(text).into_iter().collect();
        return Ok(Some(HookState { programs, ..HookState::default() }));
    }
    hook_entries::inspect(harness, text).map(Some).map_err(|reason| SetupError::unusable(path, reason))
}

/// Returns whether a configuration file switches all hooks of a harness off. For Codex, it is the file `config.toml`.
pub fn are_hooks_disabled(harness: Harness, path: &Path) -> Result<bool, SetupError> {
    let file = ConfigFile::read(path)?;
    let Some(text) = &file.text else { return Ok(false) };
    let is_disabled = match harness {
        Harness::Codex => mcp_toml::are_hooks_disabled(text),
        Harness::OpenCode => Ok(false),
        harness => hook_entries::inspect(harness, text).map(|state| state.is_disabled),
    };
    is_disabled.map_err(|reason| SetupError::unusable(path, reason))
}

/// Returns whether an administrator's settings for Claude Code forbid users' hooks.
pub fn forbids_user_hooks(path: &Path) -> Result<bool, SetupError> {
    let file = ConfigFile::read(path)?;
    hook_entries::forbids_user_hooks(file.text_or_empty())
        .map_err(|reason| SetupError::unusable(path, reason))
}

/// Returns whether Codex has a record that the user trusted every hook of sayso in this scope. Only Codex knows whether
/// they were changed since.
pub fn are_hooks_trusted(folders: &ConfigFolders, scope: &SetupScope) -> Result<bool, SetupError> {
    let hooks = ConfigFile::read(&Harness::Codex.hook_file(folders, scope))?;
    let name = hooks.path.to_string_lossy();
    let keys = hook_entries::codex_trust_keys(hooks.text_or_empty(), &name)
        .map_err(|reason| SetupError::unusable(&hooks.path, reason))?;
    let config = ConfigFile::read(&Harness::codex_config(folders))?;
    mcp_toml::trusts_hooks(config.text_or_empty(), &keys)
        .map_err(|reason| SetupError::unusable(&config.path, reason))
}

/// Returns the servers in a client's configuration. Returns `None` if there is no file.
pub fn mcp_servers(
    client: McpClient,
    folders: &ConfigFolders,
    scope: &SetupScope,
) -> Result<Option<Vec<McpServer>>, SetupError> {
    let Some(path) = &client.server_file(folders, scope) else { return Ok(None) };
    let file = ConfigFile::read(path)?;
    let Some(text) = &file.text else { return Ok(None) };
    let servers =
        if client == McpClient::Codex { mcp_toml::servers(text) } else { mcp_json::servers(client, text) };
    servers.map(Some).map_err(|reason| SetupError::unusable(path, reason))
}

pub(crate) struct McpEditor<'e> {
    pub(crate) client: McpClient,
    pub(crate) program: &'e str,
    pub(crate) options: &'e McpOptions,
}

impl Editor for McpEditor<'_> {
    fn install(&self, text: &str) -> Result<String, String> {
        // Servers that are wrapped with another program or with other options are wrapped again.
        let direct = self.remove(text)?;
        let wrapped = match self.client {
            McpClient::Codex => mcp_toml::wrap(&direct, self.program, self.options),
            client => mcp_json::wrap(client, &direct, self.program, self.options),
        }?;
        // An entry that another program wrote in another form, but with the same meaning, is left unchanged.
        let is_same = match self.client {
            McpClient::Codex => mcp_toml::start_commands(text)? == mcp_toml::start_commands(&wrapped)?,
            client => mcp_json::start_commands(client, text)? == mcp_json::start_commands(client, &wrapped)?,
        };
        Ok(if is_same { text.to_owned() } else { wrapped })
    }

    fn remove(&self, text: &str) -> Result<String, String> {
        match self.client {
            McpClient::Codex => mcp_toml::unwrap(text),
            client => mcp_json::unwrap(client, text),
        }
    }

    fn is_empty(&self, _text: &str) -> bool {
        false
    }
}

struct HookEditor {
    harness: Harness,
    words: Vec<String>,
}

impl Editor for HookEditor {
    fn install(&self, text: &str) -> Result<String, String> {
        hook_entries::install(self.harness, text, &self.words)
    }

    fn remove(&self, text: &str) -> Result<String, String> {
        hook_entries::remove(self.harness, text)
    }

    fn is_empty(&self, text: &str) -> bool {
        hook_entries::is_empty(self.harness, text)
    }

    fn owns_file(&self) -> bool {
        self.harness == Harness::VsCode
    }
}
