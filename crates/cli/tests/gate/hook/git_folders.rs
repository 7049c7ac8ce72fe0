//! `git` is harmless only if it certainly uses the repository of the project.

use std::path::Path;

use serde_json::json;

use super::*;

/// Runs a hook that refuses risky calls, because it has no hub. Returns whether `git status` is risky.
fn is_risky(harness: &str, event: &Value, started_in: &Path, environment: &[(&str, &Path)]) -> bool {
    let runtime = tempfile::tempdir().unwrap();
    let mut command = Command::new(binary());
    command.args(["hook", harness, "--gate", "risky", "--required"]).current_dir(started_in);
    command.env_remove("SAYSO_TOKEN").env_remove("SAYSO_URL").env("XDG_RUNTIME_DIR", runtime.path());
    command.env_remove("CLAUDE_PROJECT_DIR");
    command.envs(environment.iter().copied());
    let printed = RunningHook::spawn(&mut command, event.to_string().as_bytes()).finish();
    printed.to_string().contains("deny")
}

#[test]
fn git_is_risky_outside_the_repository_of_the_project_and_where_the_folder_is_not_certain() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().canonicalize().unwrap();
    let other = project.join("vendor");
    for name in [".git", "src", "vendor/.git"] {
        std::fs::create_dir_all(project.join(name)).unwrap();
    }
    let source = project.join("src");
    let call = |event: &str, tool: &str, cwd: &Path| {
        json!({
            "session_id": "s", "cwd": cwd, "hook_event_name": event, "tool_name": tool,
            "tool_input": {"command": "git status"}
        })
    };
    let claude: &[(&str, &Path)] = &[("CLAUDE_PROJECT_DIR", &project)];
    for (working, expected) in [(&project, false), (&source, false), (&other, true)] {
        let event = call("PreToolUse", "Bash", working);
        assert_eq!(is_risky("claude", &event, &project, claude), expected, "{working:?}");
    }
    // Not all versions of Codex name the folder that the model chose.
    assert!(is_risky("codex", &call("PreToolUse", "Bash", &project), &project, &[]));
    assert!(is_risky("claude", &call("PreToolUse", "Bash", &project), &project, &[]));
    // The folder of a call of these harnesses is an argument.
    for (harness, event, tool, argument) in [
        ("gemini", "BeforeTool", "run_shell_command", "dir_path"),
        ("opencode", "PreToolUse", "bash", "workdir"),
    ] {
        let mut event = call(event, tool, &project);
        assert!(!is_risky(harness, &event, &project, &[]), "{harness}");
        event["tool_input"][argument] = json!(other);
        assert!(is_risky(harness, &event, &project, &[]), "{harness}");
    }
    // The terminal of VS Code keeps its folder, and the event does not name it.
    let event = call("PreToolUse", "run_in_terminal", &project);
    assert!(is_risky("vscode", &event, &project, &[]));
    // Cursor names it, except for a new terminal.
    let cursor = |cwd: &str| {
        json!({
            "conversation_id": "s", "hook_event_name": "beforeShellExecution", "command": "git status", "cwd": cwd,
            "workspace_roots": [project]
        })
    };
    for (working, expected) in
        [(source.to_str().unwrap(), false), (other.to_str().unwrap(), true), ("", true)]
    {
        assert_eq!(is_risky("cursor", &cursor(working), &project, &[]), expected, "{working}");
    }
}
