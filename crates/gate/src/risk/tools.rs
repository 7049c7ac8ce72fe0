//! The risk of tools other than shells.

use std::io::ErrorKind;
use std::path::{Component, Path};

use seal::json::JsonValue;

use super::{Assessment, RiskClass};
use crate::phrases::texts;

/// Tools that only read, or that only change the agent's own notes. Subagents are here because their calls are gated
/// themselves.
const READING_TOOLS: &[&str] = &[
    "Read",
    "Grep",
    "Glob",
    "LS",
    "NotebookRead",
    "TodoWrite",
    "TodoRead",
    "TaskCreate",
    "TaskUpdate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "BashOutput",
    "ToolSearch",
    "AskUserQuestion",
    "EnterPlanMode",
    "WebSearch",
    "Task",
    "Agent",
    "read_file",
    "read_many_files",
    "list_directory",
    "glob",
    "search_file_content",
    "grep_search",
    "google_web_search",
    "write_todos",
    "read",
    "grep",
    "list",
    "todowrite",
    "todoread",
    "task",
    "codebase_search",
    "readFile",
    "file_search",
    "list_dir",
    "semantic_search",
    "update_plan",
    "view_image",
];

/// Tools that replace a part of a file.
pub(crate) const EDITING_TOOLS: &[&str] =
    &["Edit", "MultiEdit", "NotebookEdit", "replace", "edit", "StrReplace"];

/// Tools that replace whole files.
pub(crate) const WRITING_TOOLS: &[&str] = &[
    "Write",
    "write_file",
    "write",
    "create_file",
    "createFile",
    "apply_patch",
    "patch",
    "editFiles",
    "insert_edit_into_file",
];

/// Tools that send something to a server of the agent's choice.
pub(crate) const FETCHING_TOOLS: &[&str] = &["WebFetch", "web_fetch", "webfetch", "fetch"];

/// Other names of one argument of an editing tool. Harnesses differ in which one they use if there are several.
const PATH_NAMES: &[&str] = &["file_path", "filePath", "notebook_path", "path"];
const OLD_NAMES: &[&str] = &["old_string", "oldString", "old_str"];
const NEW_NAMES: &[&str] = &["new_string", "newString", "new_str", "new_source"];

/// Other arguments of editing tools.
const EDIT_NAMES: &[&str] = &[
    "edits",
    "replace_all",
    "replaceAll",
    "expected_replacements",
    "allow_multiple",
    "instruction",
    "cell_id",
    "cell_type",
    "edit_mode",
];

/// Whether each argument is known, and none is given twice or under two names. Each group holds the names of one argument.
pub(super) fn has_only_known_members(input: &JsonValue<'_>, groups: &[&[&str]], others: &[&str]) -> bool {
    let names: Option<Vec<_>> = input.members().map(|(name, _)| name.text()).collect();
    let Some(names) = names else { return false };
    let count = |group: &[&str]| names.iter().filter(|name| group.contains(&name.as_ref())).count();
    groups.iter().all(|group| count(group) <= 1)
        && others.iter().all(|name| count(&[name]) <= 1)
        && names.iter().all(|name| {
            others.contains(&name.as_ref()) || groups.iter().any(|group| group.contains(&name.as_ref()))
        })
}

fn is_known_edit(input: &JsonValue<'_>) -> bool {
    let is_known_part = |edit: JsonValue<'_>| {
        has_only_known_members(&edit, &[OLD_NAMES, NEW_NAMES], &["replace_all", "replaceAll"])
    };
    has_only_known_members(input, &[PATH_NAMES, OLD_NAMES, NEW_NAMES], EDIT_NAMES)
        && input.member("edits").is_none_or(|edits| edits.items().all(is_known_part))
}

pub(super) fn assess(tool: &str, input: &JsonValue<'_>, working_folder: Option<&str>) -> Assessment {
    if READING_TOOLS.contains(&tool) {
        return Assessment::harmless();
    }
    if EDITING_TOOLS.contains(&tool) {
        if !is_known_edit(input) {
            return Assessment::irreversible(&texts::UNKNOWN_ARGUMENTS);
        }
        let path = PATH_NAMES.iter().find_map(|name| input.member(name)?.text()).unwrap_or_default();
        return if is_in_project(&path, working_folder) {
            Assessment::new(RiskClass::Harmless, &texts::CHANGES_PART)
        } else {
            Assessment::new(RiskClass::Risky, &texts::CHANGES_OUTSIDE)
        };
    }
    if WRITING_TOOLS.contains(&tool) {
        return Assessment::new(RiskClass::Risky, &texts::WRITES_FILES);
    }
    if FETCHING_TOOLS.contains(&tool) {
        return Assessment::new(RiskClass::Risky, &texts::CONTACTS_SERVER);
    }
    if tool == "ExitPlanMode" {
        return Assessment::new(RiskClass::Risky, &texts::BEGINS_PLAN);
    }
    Assessment::irreversible(&texts::UNKNOWN_TOOL)
}

/// Whether a path is below the working folder, and no part of it, including the working folder, is hidden or a symbolic
/// link. Hidden files configure programs, so a change to them can have effects elsewhere. Returns
/// `false` if the file system cannot tell.
fn is_in_project(path: &str, working_folder: Option<&str>) -> bool {
    let Some(folder) = working_folder.map(Path::new).filter(|folder| folder.is_absolute()) else {
        return false;
    };
    let path = Path::new(path);
    let relative = if path.is_absolute() {
        let Ok(relative) = path.strip_prefix(folder) else { return false };
        relative
    } else {
        path
    };
    let is_plain = |part: Component<'_>| match part {
        Component::Normal(name) => {
            !name.as_encoded_bytes().starts_with(b".") && !name.as_encoded_bytes().starts_with(b"~")
        }
        Component::CurDir | Component::RootDir => true,
        Component::ParentDir | Component::Prefix(_) => false,
    };
    if relative.file_name().is_none() || !relative.components().all(is_plain) {
        return false;
    }
    if !folder.canonicalize().is_ok_and(|canonical| canonical == folder) {
        return false;
    }
    if folder.parent().is_none() || !folder.components().all(is_plain) {
        return false;
    }
    let file = folder.join(relative);
    let Some(parent) = file.parent() else { return false };
    if !parent.canonicalize().is_ok_and(|canonical| canonical == parent) {
        return false;
    }
    match file.symlink_metadata() {
        Ok(metadata) => !metadata.is_symlink(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}
