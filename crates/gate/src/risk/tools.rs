//! The risk of tools other than shells.

use std::path::{Component, Path};

use seal::json::JsonValue;

use super::{Assessment, RiskClass};

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
    "Skill",
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
const EDITING_TOOLS: &[&str] = &["Edit", "MultiEdit", "NotebookEdit", "replace", "edit", "StrReplace"];

/// Tools that replace whole files.
const WRITING_TOOLS: &[&str] = &[
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
const FETCHING_TOOLS: &[&str] = &["WebFetch", "web_fetch", "webfetch", "fetch"];

pub(super) fn assess(tool: &str, input: &JsonValue<'_>, working_folder: Option<&str>) -> Assessment {
    if READING_TOOLS.contains(&tool) {
        return Assessment::harmless();
    }
    if EDITING_TOOLS.contains(&tool) {
        let path = ["file_path", "filePath", "notebook_path", "path"]
            .iter()
            .find_map(|name| input.member(name)?.text())
            .unwrap_or_default();
        return if is_in_project(&path, working_folder) {
            Assessment::new(RiskClass::Harmless, "It changes a part of a file in the project.")
        } else {
            Assessment::new(RiskClass::Risky, "It changes a hidden file, or a file outside the project.")
        };
    }
    if WRITING_TOOLS.contains(&tool) {
        return Assessment::new(RiskClass::Risky, "It writes files, and can replace what is in them.");
    }
    if FETCHING_TOOLS.contains(&tool) {
        return Assessment::new(RiskClass::Risky, "It contacts a server that the agent chose.");
    }
    if tool == "ExitPlanMode" {
        return Assessment::new(RiskClass::Risky, "The agent begins to carry out its plan.");
    }
    Assessment::unknown("what this tool does")
}

/// Whether a path is below the working folder, and neither it nor one of its folders is hidden. Hidden files configure
/// programs, so a change to them can have effects elsewhere.
fn is_in_project(path: &str, working_folder: Option<&str>) -> bool {
    let path = Path::new(path);
    let relative = match working_folder {
        Some(folder) if path.is_absolute() && !folder.is_empty() => match path.strip_prefix(folder) {
            Ok(relative) => relative,
            Err(_) => return false,
        },
        _ if path.is_absolute() => return false,
        _ => path,
    };
    let is_plain = |part: Component<'_>| match part {
        Component::Normal(name) => !name.as_encoded_bytes().starts_with(b"."),
        Component::CurDir => true,
        _ => false,
    };
    relative.components().next().is_some() && relative.components().all(is_plain)
}
