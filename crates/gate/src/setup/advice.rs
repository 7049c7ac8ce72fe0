//! Explains in plain language what sayso cannot do with a harness.

use super::{Harness, InstalledVersion, Version};

/// The first version of Claude Code that blocks a call if a hook fails (`onFailure`).
pub const CLAUDE_ON_FAILURE: Version = Version::new(2, 1, 295);

/// The first version of Claude Code whose hooks start a program without a shell (`args`). Older ones would start `sayso`
/// without its arguments, which fails, and a failed hook can block every call.
pub const CLAUDE_HOOK_ARGS: Version = Version::new(2, 1, 139);

/// Returns why a version cannot be set up at all.
pub fn unsupported_version(harness: Harness, version: &InstalledVersion) -> Option<String> {
    match (harness, version) {
        (Harness::Claude, InstalledVersion::Known(version)) if *version < CLAUDE_HOOK_ARGS => Some(format!(
            "Claude Code {version} is too old for the hooks of sayso. \
             Update to {CLAUDE_ON_FAILURE} or later; {CLAUDE_HOOK_ARGS} is the oldest version that works."
        )),
        _ => None,
    }
}

/// Returns what a version can only advise, or nothing if it can be gated fully or is not known.
pub fn version_problem(harness: Harness, version: &InstalledVersion) -> Option<String> {
    if let Some(problem) = unsupported_version(harness, version) {
        return Some(problem);
    }
    match (harness, version) {
        (Harness::Claude, InstalledVersion::Known(version)) if *version < CLAUDE_ON_FAILURE => Some(format!(
            "Claude Code {version} can only be advised: if sayso cannot run, a call goes ahead unheard. \
             Update to {CLAUDE_ON_FAILURE} or later, which blocks the call instead."
        )),
        _ => None,
    }
}

/// Returns the limits of a harness, whatever its version. `gate` is the option of its hooks, if there is one.
pub fn limits(harness: Harness, gate: Option<&str>) -> Vec<&'static str> {
    let gates_only_requests = gate.is_none_or(|gate| gate == "requests");
    match harness {
        Harness::Claude => vec![
            "Claude Code starts without these hooks if you use --bare, or --setting-sources without their source, or set disableAllHooks.",
        ],
        Harness::Codex => {
            let mut limits = vec![
                "Codex skips new and changed hooks until you trust them: start codex, type /hooks, and trust the hooks of sayso.",
                "If sayso takes longer than the timeout of its hook, for example because it is suspended, Codex makes the call without your yes.",
            ];
            if gates_only_requests {
                limits.push(
                    "`codex exec` never asks for permission, so sayso only narrates there. To be asked, set it up with --gate risky or --gate all.",
                );
            }
            limits
        }
        Harness::Cursor => vec![
            "Versions of Cursor that do not know failClosed let a call go ahead unheard if sayso cannot run.",
        ],
        Harness::Gemini => vec![
            "In ACP mode, which editors use, Gemini CLI calls no hooks: sayso hears nothing there. Use `sayso acp` instead.",
            "If sayso takes longer than the timeout of its hook, for example because it is suspended, Gemini CLI makes the call without your yes.",
            "A yes does not replace Gemini CLI's own question on the screen.",
        ],
        Harness::VsCode => vec![
            "Hooks are a preview feature of VS Code. If sayso cannot run, a call goes ahead unheard.",
            "VS Code also reads the hooks in .claude/settings.json. If Claude Code is set up too, switch them off for VS Code in its setting chat.hookFilesLocations.",
        ],
        Harness::OpenCode => vec![
            "`opencode run` rejects opencode's own permission questions by itself, without asking anybody. On its screen and as a server, you can answer them in sayso, too.",
        ],
    }
}
