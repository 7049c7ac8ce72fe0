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

/// Returns what sayso cannot do with a version, or nothing if it can be gated fully or is not known.
pub fn version_problem(harness: Harness, version: &InstalledVersion) -> Option<String> {
    if let Some(problem) = unsupported_version(harness, version) {
        return Some(problem);
    }
    match (harness, version) {
        (Harness::Claude, InstalledVersion::Known(version)) if *version < CLAUDE_ON_FAILURE => Some(format!(
            "If sayso cannot run, Claude Code {version} makes the call anyway, and you do not hear it. \
             Update to {CLAUDE_ON_FAILURE} or later, which blocks the call instead."
        )),
        _ => None,
    }
}

/// Returns the limits of a harness, whatever its version. `gate` is the option of its hooks, if there is one, and `is_required` whether
/// they have the option `--required`.
pub fn limits(harness: Harness, gate: Option<&str>, is_required: bool) -> Vec<&'static str> {
    let gates_only_requests = gate.is_none_or(|gate| gate == "requests");
    let limits: &[(bool, &'static str)] = match harness {
        Harness::Claude => &[
            (
                true,
                "Claude Code starts without these hooks if you use --bare, or --setting-sources without their source, or set disableAllHooks.",
            ),
            (
                gates_only_requests,
                "In its mode auto, Claude Code permits calls after its own check, and in the mode bypassPermissions without any check. To be asked about them, set it up with --gate risky or --gate all.",
            ),
        ],
        Harness::Codex => &[
            (
                true,
                "Codex skips new and changed hooks until you trust them: start codex, type /hooks, and trust the hooks of sayso.",
            ),
            (true, "Codex does not tell its hooks what it types into a program that is already running."),
            (
                gates_only_requests,
                "`codex exec` never asks for permission, so sayso only narrates there. To be asked, set it up with --gate risky or --gate all.",
            ),
        ],
        Harness::Cursor => &[
            (true, "File changes in Cursor are only heard. sayso cannot stop them."),
            (
                true,
                "Versions of Cursor that do not know failClosed let a call go ahead unheard if sayso cannot run.",
            ),
        ],
        Harness::Gemini => &[
            (
                true,
                "In ACP mode, which editors use, Gemini CLI calls no hooks: sayso hears nothing there. Use `sayso acp` instead.",
            ),
            (
                true,
                "Gemini CLI does not pass its own permission questions to hooks. You answer them on its screen, also after a yes in sayso.",
            ),
            (
                !is_required,
                "With -p, Gemini CLI waits without end if nobody can be asked. To refuse the call instead, set it up with --required.",
            ),
        ],
        Harness::VsCode => &[
            (true, "Hooks are a preview feature of VS Code. If sayso cannot run, a call goes ahead unheard."),
            (
                true,
                "VS Code also reads the hooks in .claude/settings.json. If Claude Code is set up too, switch them off for VS Code in its setting chat.hookFilesLocations.",
            ),
        ],
        Harness::OpenCode => &[
            (
                true,
                "`opencode run` rejects opencode's own permission questions by itself, without asking anybody. On its screen and as a server, you can answer them in sayso, too.",
            ),
            (true, "`opencode --pure` runs no plugins, so sayso hears nothing there."),
        ],
    };
    limits.iter().filter(|(applies, _)| *applies).map(|(_, limit)| *limit).collect()
}
