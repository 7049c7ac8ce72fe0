//! `sayso setup HARNESS`: what it writes, and that its removal restores the file.

use serde_json::{Value, json};
use testing::cli::binary;

use super::Home;

/// Each harness with its file, the file's former text and the event at which a person is asked.
const HARNESSES: [(&str, &str, &str, &str); 5] = [
    ("claude", ".claude/settings.json", CLAUDE, "PreToolUse"),
    ("codex", ".codex/hooks.json", "{ }", "PermissionRequest"),
    (
        "cursor",
        ".cursor/hooks.json",
        "{\"version\": 1, \"hooks\": {\"stop\": [{\"command\": \"./audit.sh\"}]}}\n",
        "beforeShellExecution",
    ),
    ("gemini", ".gemini/settings.json", "{\n\t\"ui\": {\"theme\": \"x\"} // mine\n}", "BeforeTool"),
    ("vscode", ".copilot/hooks/sayso.json", "", "PreToolUse"),
];

const CLAUDE: &str = r#"{
  // A comment.
  "model": "opus",
  "hooks": {
    "PreToolUse": [
      { "matcher": "Bash", "hooks": [{ "type": "command", "command": "echo" }] }, // audit
    ],
  },
}
"#;

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn claude_code_gets_hooks_that_fail_closed() {
    let home = Home::new();
    let output = home.run(&["setup", "claude"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let hooks = &parse(&home.read(".claude/settings.json"))["hooks"];
    let mut events: Vec<&String> = hooks.as_object().unwrap().keys().collect();
    events.sort_unstable();
    let mut expected = [
        "SessionStart",
        "SessionEnd",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PostToolBatch",
        "PermissionRequest",
        "PermissionDenied",
        "Notification",
        "Elicitation",
        "ElicitationResult",
        "MessageDisplay",
        "Stop",
        "StopFailure",
        "SubagentStart",
        "SubagentStop",
    ];
    expected.sort_unstable();
    assert_eq!(events, expected);
    let program = binary().canonicalize().unwrap();
    let gate = json!([{"hooks": [{
        "type": "command", "command": program, "args": ["hook", "claude"], "timeout": 600, "onFailure": "block",
    }]}]);
    assert_eq!((&hooks["PreToolUse"], &hooks["PermissionRequest"]), (&gate, &gate));
    // A hook that only narrates must not block anything.
    let narration = json!([{"hooks": [{"type": "command", "command": program, "args": ["hook", "claude"], "timeout": 30}]}]);
    assert_eq!(hooks["Stop"], narration);
}

#[test]
fn each_harness_gets_hooks_in_its_own_dialect() {
    let program = binary().canonicalize().unwrap().display().to_string();
    for (harness, file, _, event) in HARNESSES {
        let home = Home::new();
        assert_eq!(
            home.run(&["setup", harness, "--gate", "all", "--required", "--hub", "unix:/a b"]).exit_code,
            0
        );
        let document = parse(&home.read(file));
        let line = format!("{program} hook {harness} --gate all --hub 'unix:/a b' --required");
        let hook = &document["hooks"][event][0];
        // These harnesses make a call whose hook cannot run, except after exit code 2 and a reason.
        let refusing = format!("{line} || sh -c 'echo \"Not permitted: sayso could not run.\" >&2; exit 2'");
        let expected = match harness {
            "claude" => {
                json!({"hooks": [{"type": "command", "command": program, "timeout": 600, "onFailure": "block",
                "args": ["hook", "claude", "--gate", "all", "--hub", "unix:/a b", "--required"]}]})
            }
            "codex" => {
                let call = &document["hooks"]["PreToolUse"][0];
                assert_eq!(
                    *call,
                    json!({"hooks": [{"type": "command", "command": refusing, "timeout": 86_400}]})
                );
                // Without an answer to its own request, Codex shows its dialog.
                json!({"hooks": [{"type": "command", "command": line, "timeout": 86_400}]})
            }
            "gemini" => {
                json!({"hooks": [{"name": "sayso", "type": "command", "command": refusing, "timeout": 86_400_000}]})
            }
            "cursor" => json!({"command": line, "timeout": 600, "failClosed": true}),
            _ => json!({"type": "command", "command": line, "timeout": 600}),
        };
        assert_eq!(*hook, expected, "{harness}");
        assert_eq!(document["version"], if harness == "cursor" { json!(1) } else { Value::Null });
    }
}

#[test]
fn a_hook_that_cannot_run_refuses_the_call_where_only_an_exit_code_can() {
    for (harness, file, event) in
        [("codex", ".codex/hooks.json", "PreToolUse"), ("gemini", ".gemini/settings.json", "BeforeTool")]
    {
        let home = Home::new();
        assert_eq!(home.run(&["setup", harness, "--required"]).exit_code, 0);
        let document = parse(&home.read(file));
        let line = document["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap();
        let program = binary().canonicalize().unwrap().display().to_string();
        // Missing, or killed.
        for program_that_fails in ["/missing/sayso", "sh -c 'kill -KILL $$' sayso"] {
            let line = line.replace(&program, program_that_fails);
            let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
            let reason = String::from_utf8_lossy(&output.stderr);
            assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{harness}: {reason}");
            assert!(reason.contains("Not permitted: sayso could not run."), "{reason}");
        }
        let narration = document["hooks"]["SessionStart"][0]["hooks"][0]["command"].as_str().unwrap();
        assert!(!narration.contains("exit 2"), "{narration}");
    }
}

#[test]
fn removal_restores_the_file_byte_for_byte() {
    for (harness, file, text, _) in HARNESSES {
        let home = Home::new();
        home.write(file, text);
        let diff = home.run(&["setup", harness, "--dry-run"]);
        assert!(diff.stdout.contains("\n+++ ") && diff.stdout.contains("hook"), "{}", diff.stdout);
        assert_eq!(home.read(file), text, "a dry run changes nothing");
        assert_eq!(home.files(), [file]);

        let first = home.run(&["setup", harness]);
        assert_eq!(first.exit_code, 0, "{}", first.stderr);
        let installed = home.read(file);
        assert_ne!(installed, text);
        assert_eq!(home.run(&["setup", harness, "--dry-run"]).stdout, "");
        let second = home.run(&["setup", harness]);
        assert!(second.stdout.contains("is set up already"), "{}", second.stdout);
        assert_eq!(home.read(file), installed, "a second run changes nothing");
        // Changing the options and changing them back still leads to the original.
        assert_eq!(home.run(&["setup", harness, "--gate", "risky"]).exit_code, 0);
        assert_ne!(home.read(file), installed);
        assert_eq!(home.run(&["setup", harness]).exit_code, 0);
        assert_eq!(home.read(file), installed);

        let removed = home.run(&["setup", harness, "--remove"]);
        assert_eq!(removed.exit_code, 0, "{}", removed.stderr);
        assert_eq!(home.read(file), text, "{harness}");
        let again = home.run(&["setup", harness, "--remove"]);
        assert_eq!((again.exit_code, home.read(file).as_str()), (0, text));
        assert!(again.stdout.contains("was not set up"), "{}", again.stdout);
        assert_eq!(home.files(), [file], "nothing is left behind");
    }
}

#[test]
fn a_file_that_setup_created_is_deleted_with_its_folders() {
    for harness in ["claude", "codex", "cursor", "gemini", "vscode", "opencode"] {
        let home = Home::new();
        assert_eq!(home.run(&["setup", harness]).exit_code, 0);
        assert_eq!(home.files().len(), 1, "{harness}");
        let removed = home.run(&["setup", harness, "--remove"]);
        assert!(removed.stdout.contains("is deleted"), "{}", removed.stdout);
        assert_eq!(home.files(), Vec::<String>::new());
        let folders: Vec<_> =
            std::fs::read_dir(home.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(folders, [".local"], "{harness}");
    }
}

#[test]
fn later_edits_of_other_people_stay() {
    for (harness, file, text, event) in HARNESSES {
        let home = Home::new();
        home.write(file, text);
        assert_eq!(home.run(&["setup", harness]).exit_code, 0);
        let installed = home.read(file);
        let edited = installed.replacen('{', "{ /* later */ \"later\": [1, 2], ", 1);
        home.write(file, &edited);
        let again = home.run(&["setup", harness]);
        assert!(again.stdout.contains("is set up already"), "{}", again.stdout);
        assert_eq!(home.run(&["setup", harness, "--remove"]).exit_code, 0);
        let rest = home.read(file);
        assert!(rest.contains("/* later */ \"later\": [1, 2]"), "{rest}");
        assert!(!rest.contains("sayso"), "{rest}");
        for kept in [
            "// A comment.",
            "\"model\": \"opus\"",
            "echo",
            "// audit",
            "./audit.sh",
            "\"theme\": \"x\"",
            "// mine",
        ] {
            assert_eq!(rest.contains(kept), text.contains(kept), "{harness} {kept}: {rest}");
        }
        assert_eq!(rest.contains(event), text.contains(event));
    }
}

#[test]
fn an_installation_without_its_record_is_still_removed() {
    let home = Home::new();
    home.write(".claude/settings.json", CLAUDE);
    assert_eq!(home.run(&["setup", "claude"]).exit_code, 0);
    std::fs::remove_dir_all(home.path(".local")).unwrap();
    assert_eq!(home.run(&["setup", "claude", "--remove"]).exit_code, 0);
    assert_eq!(home.read(".claude/settings.json"), CLAUDE);
}

#[test]
fn a_project_is_set_up_with_the_program_on_the_path() {
    let home = Home::new();
    let output = home.run(&["setup", "--project", "claude"]);
    assert!(output.stdout.contains("Everybody who works in this project needs sayso"), "{}", output.stdout);
    let file = home.project().join(".claude/settings.json");
    let document = parse(&std::fs::read_to_string(&file).unwrap());
    assert_eq!(document["hooks"]["Stop"][0]["hooks"][0]["command"], "sayso");
    assert_eq!(home.files(), Vec::<String>::new());
    assert_eq!(home.run(&["setup", "claude", "--project", "--remove"]).exit_code, 0);
    assert!(!file.exists());
}

#[test]
fn a_file_that_cannot_be_parsed_is_refused_and_stays() {
    for text in ["{ \"a\": ", "[]", "{\"hooks\": 1}", "\u{0}"] {
        let home = Home::new();
        home.write(".claude/settings.json", text);
        for arguments in
            [&["setup", "claude"][..], &["setup", "claude", "--remove"], &["setup", "claude", "--dry-run"]]
        {
            let output = home.run(arguments);
            assert_eq!(output.exit_code, 2, "{text} {arguments:?}");
            assert!(output.stderr.contains("settings.json is not changed: "), "{}", output.stderr);
            assert_eq!(home.read(".claude/settings.json"), text);
        }
    }
    let home = Home::new();
    std::fs::create_dir_all(home.path(".claude/settings.json")).unwrap();
    assert_eq!(home.run(&["setup", "claude"]).exit_code, 2);
    std::fs::remove_dir(home.path(".claude/settings.json")).unwrap();
    std::fs::write(home.path(".claude/settings.json"), b"\xff").unwrap();
    assert!(home.run(&["setup", "claude"]).stderr.contains("it is not UTF-8"));
}

#[test]
fn setup_says_what_a_version_cannot_do() {
    let home = Home::new();
    assert!(home.run(&["setup", "claude"]).stdout.contains("Claude Code was not found on the path"));
    for (printed, expected, is_old) in [
        ("2.1.197 (Claude Code)", "Claude Code 2.1.197 makes the call anyway, and you do not hear it.", true),
        ("2.1.295 (Claude Code)", "Claude Code 2.1.295 is installed", false),
    ] {
        home.add_program("claude", &format!("echo '{printed}'"));
        let output = home.run(&["setup", "claude"]);
        assert!(output.stdout.contains(expected), "{}", output.stdout);
        assert_eq!(output.stdout.contains("makes the call anyway"), is_old);
        assert!(output.stdout.contains("--bare"));
    }
    // This version would start sayso without its arguments, and block every call.
    home.add_program("claude", "echo '2.1.138 (Claude Code)'");
    assert_eq!(home.run(&["setup", "claude", "--remove"]).exit_code, 0);
    let output = home.run(&["setup", "claude"]);
    assert_eq!((output.exit_code, output.stderr.contains("Claude Code 2.1.138 is too old")), (2, true));
    assert_eq!(home.files(), Vec::<String>::new());
    home.add_program("claude", "exit 3");
    assert!(home.run(&["setup", "claude"]).stdout.contains("version of Claude Code could not be determined"));
    for (harness, arguments, expected) in [
        ("codex", &[][..], "type /hooks"),
        ("codex", &[], "`codex exec` never asks"),
        ("codex", &[], "types into a program that is already running"),
        ("cursor", &[], "File changes in Cursor are only heard."),
        ("gemini", &[], "In ACP mode"),
        ("gemini", &[], "does not pass its own permission questions to hooks"),
        ("gemini", &[], "With -p, Gemini CLI waits without end"),
        ("opencode", &[], "`opencode run` rejects"),
        ("opencode", &[], "`opencode --pure` runs no plugins"),
        ("vscode", &[], "chat.hookFilesLocations"),
    ] {
        let output = home.run(&[&["setup", harness], arguments].concat());
        assert!(output.stdout.contains(expected), "{harness}: {}", output.stdout);
    }
    for (arguments, unexpected) in [
        (["setup", "codex", "--gate=all"], "`codex exec` never asks"),
        (["setup", "gemini", "--required"], "waits without end"),
    ] {
        let output = home.run(&arguments).stdout;
        assert!(!output.contains(unexpected), "{output}");
    }
    home.add_program("claude", "echo '2.1.325 (Claude Code)'");
    for (gate, is_expected) in [("requests", true), ("risky", false), ("all", false)] {
        let output = home.run(&["setup", "claude", "--gate", gate]).stdout;
        assert_eq!(
            output.contains("in the mode bypassPermissions without any check"),
            is_expected,
            "{output}"
        );
    }
}

#[test]
fn setup_says_that_hooks_are_switched_off() {
    let home = Home::new();
    for (harness, file, text) in [
        ("claude", ".claude/settings.json", "{\"disableAllHooks\": true}"),
        ("gemini", ".gemini/settings.json", "{\"hooksConfig\": {\"enabled\": false}}"),
        ("codex", ".codex/config.toml", "[features]\nhooks = false\n"),
    ] {
        assert!(!home.run(&["setup", harness]).stdout.contains("switches hooks off"), "{harness}");
        assert_eq!(home.run(&["setup", harness, "--remove"]).exit_code, 0);
        home.write(file, text);
        let output = home.run(&["setup", harness]);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        assert!(output.stdout.contains("switches hooks off, so sayso hears nothing"), "{}", output.stdout);
    }
}

#[test]
fn the_folders_that_programs_use_can_be_moved() {
    let home = Home::new();
    let moved = home.project();
    for (harness, variable, file) in [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("vscode", "COPILOT_HOME", "hooks/sayso.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/plugins/sayso.js"),
    ] {
        let folder = moved.join(harness);
        let mut command = home.command(binary());
        let output = super::run_command(command.args(["setup", harness]).env(variable, &folder));
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        assert!(folder.join(file).is_file(), "{harness}");
    }
    let mut command = home.command(binary());
    let output = super::run_command(command.args(["setup", "claude"]).env_remove("HOME"));
    assert_eq!((output.exit_code, output.stderr.contains("HOME is not set")), (2, true));
}

#[test]
fn a_changed_plugin_of_opencode_is_left_alone() {
    let home = Home::new();
    let file = ".config/opencode/plugins/sayso.js";
    assert_eq!(home.run(&["setup", "opencode", "--hub", "http://x/\"</"]).exit_code, 0);
    let plugin = home.read(file);
    assert!(
        plugin.contains(r#""hook", "opencode", "--hub", "http://x/\"</"]"#)
            || plugin.contains(r#""hook","opencode","--hub","http://x/\"</"]"#),
        "{plugin}"
    );
    assert!(home.run(&["setup", "opencode"]).stdout.contains("opencode is set up, in"));
    let changed = format!("{plugin}// mine\n");
    home.write(file, &changed);
    for arguments in [&["setup", "opencode"][..], &["setup", "opencode", "--remove"]] {
        let output = home.run(arguments);
        assert_eq!(
            (output.exit_code, output.stderr.contains("or it was changed")),
            (2, true),
            "{}",
            output.stderr
        );
        assert_eq!(home.read(file), changed);
    }
}
