//! `sayso doctor`, with a real hub and without one.

use std::process::Command;

use testing::cli::binary;
use testing::hub::HubProcess;
use testing::terminal::ListenProcess;

use super::{Home, run_command};

/// Starts the personal hub of this home folder, without a listener.
fn start_hub(home: &Home) -> HubProcess {
    let mut command = Command::new(binary());
    command.args(["serve", "--personal"]);
    for (name, value) in [("HOME", home.path("")), ("XDG_RUNTIME_DIR", home.runtime())] {
        command.env(name, value);
    }
    for name in ["SAYSO_URL", "SAYSO_TOKEN", "XDG_DATA_HOME"] {
        command.env_remove(name);
    }
    HubProcess::start_command(&mut command)
}

/// Returns the lines with the given severity.
fn lines<'o>(stdout: &'o str, severity: &str) -> Vec<&'o str> {
    stdout.lines().filter_map(|line| line.strip_prefix(severity)?.strip_prefix(": ")).collect()
}

#[test]
fn without_a_hub_and_without_agents_doctor_says_what_to_do() {
    let home = Home::new();
    let output = home.run(&["doctor"]);
    assert_eq!(output.exit_code, 1, "{}", output.stderr);
    let problems = lines(&output.stdout, "problem");
    assert_eq!(problems.len(), 2, "{}", output.stdout);
    let socket = home.runtime().join("aaep/sayso-hub.sock");
    assert!(
        problems[0].starts_with(&format!("Hub: your personal hub at unix:{}", socket.display())),
        "{}",
        problems[0]
    );
    assert!(problems[0].ends_with(
        "Run `sayso listen` in a terminal, or `sayso service install` to have a hub all the time."
    ));
    assert!(problems[1].contains("Run `sayso setup claude`"), "{}", problems[1]);
    assert_eq!(output.summary(), "2 problems found.");
    assert!(lines(&output.stdout, "note").contains(&"Claude Code is not installed."));
    assert_eq!(home.files(), Vec::<String>::new(), "doctor writes nothing");
}

#[test]
fn with_a_hub_a_listener_and_an_agent_all_is_well() {
    let home = Home::new();
    home.add_program("claude", "echo '2.1.325 (Claude Code)'");
    home.add_program("espeak-ng", "exit 0");
    assert_eq!(home.run(&["setup", "claude"]).exit_code, 0);
    let _hub = start_hub(&home);
    let output = home.run(&["doctor"]);
    assert_eq!(output.exit_code, 1);
    let problems = lines(&output.stdout, "problem");
    assert_eq!(problems.len(), 1, "{}", output.stdout);
    assert!(problems[0].starts_with("Listener: nobody is listening"), "{}", problems[0]);

    let mut listener = ListenProcess::start_command(&["listen"], |command| {
        command.env("HOME", home.path("")).env("XDG_RUNTIME_DIR", home.runtime()).env_remove("SAYSO_URL")
    });
    listener.read_until("Listening to your personal hub.");
    let output = home.run(&["doctor"]);
    assert_eq!((output.exit_code, output.summary()), (0, "All is well."), "{}", output.stdout);
    let well = lines(&output.stdout, "ok");
    assert!(well.contains(&"Listener: 1 is connected."), "{}", output.stdout);
    assert!(
        well.iter().any(|line| line.starts_with("Claude Code is set up, in")
            && line.ends_with("Version 2.1.325 is installed.")),
        "{}",
        output.stdout
    );
    assert!(well.contains(&"Speech: `sayso listen --speech` can speak with espeak-ng."), "{}", output.stdout);
}

#[test]
fn the_listener_that_runs_the_hub_counts() {
    let home = Home::new();
    assert_eq!(home.run(&["setup", "claude"]).exit_code, 0);
    let mut listener = ListenProcess::start_command(&["listen"], |command| {
        command.env("HOME", home.path("")).env("XDG_RUNTIME_DIR", home.runtime()).env_remove("SAYSO_URL")
    });
    listener.read_until("Listening to your personal hub.");
    let output = home.run(&["doctor"]);
    assert_eq!((output.exit_code, output.summary()), (0, "All is well."), "{}", output.stdout);
}

#[test]
fn an_argument_or_a_variable_selects_the_hub() {
    let home = Home::new();
    assert_eq!(home.run(&["setup", "claude"]).exit_code, 0);
    let hub = HubProcess::start_in_memory();
    let url = format!("http://{}", hub.address);
    let by_argument = home.run(&["doctor", "--hub", &url]);
    let well = format!("ok: Hub: the hub at {url} answers.");
    assert!(by_argument.stdout.contains(&well), "{}", by_argument.stdout);
    let by_variable = run_command(home.command(binary()).arg("doctor").env("SAYSO_URL", &url));
    assert!(by_variable.stdout.contains("from SAYSO_URL, answers."), "{}", by_variable.stdout);
    // A hub with tokens, where only an admin token may read whether somebody is listening.
    let folder = tempfile::tempdir().unwrap();
    let hub = HubProcess::start(&["--listen", "127.0.0.1:0", "--data", folder.path().to_str().unwrap()]);
    let url = format!("http://{}", hub.address);
    let output = home.run(&["doctor", "--hub", &url]);
    assert!(
        output.stdout.contains("note: Listener: only an admin token may read whether somebody is listening"),
        "{}",
        output.stdout
    );
    let output = run_command(
        home.command(binary()).args(["doctor", "--hub", &url]).env("SAYSO_TOKEN", hub.admin_token()),
    );
    assert!(output.stdout.contains("problem: Listener: nobody is listening"), "{}", output.stdout);
    let output = home.run(&["doctor", "--hub", "ftp://x"]);
    assert_eq!(
        (output.exit_code, output.stdout.contains("problem: Hub: \"ftp://x\" is not the address")),
        (1, true),
        "{}",
        output.stdout
    );
}

#[test]
fn something_else_at_the_address_is_not_a_hub() {
    let home = Home::new();
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", server.local_addr().unwrap());
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = server.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").unwrap();
    });
    let output = home.run(&["doctor", "--hub", &url]);
    assert!(output.stdout.contains("is not a hub. Check the address."), "{}", output.stdout);
}

#[test]
fn broken_configurations_are_problems() {
    let home = Home::new();
    let expect = |expected: &str| {
        let output = home.run(&["doctor"]);
        assert_eq!(output.exit_code, 1);
        assert!(
            lines(&output.stdout, "problem").iter().any(|line| line.contains(expected)),
            "{expected}: {}",
            output.stdout
        );
    };
    home.write(".claude/settings.json", "{");
    expect("Claude Code: ");
    let hook = |program: &str| {
        format!("{{\"hooks\": {{\"Stop\": [{{\"hooks\": [{{\"command\": \"{program} hook claude\"}}]}}]}}}}")
    };
    home.write(".claude/settings.json", &hook("sayso"));
    expect("hooks are missing for SessionStart, ");
    expect("the configuration starts sayso, which is not there");
    home.write(".claude/settings.json", &hook("/nowhere/sayso"));
    expect("the configuration starts /nowhere/sayso, which is not there");
    assert_eq!(home.run(&["setup", "claude"]).exit_code, 0);
    let settings = home.read(".claude/settings.json").replacen('{', "{\"disableAllHooks\": true,", 1);
    home.write(".claude/settings.json", &settings);
    expect("Claude Code: disableAllHooks switches all hooks off.");
    home.add_program("claude", "echo 2.1.197");
    expect(
        "Claude Code: If sayso cannot run, Claude Code 2.1.197 makes the call anyway, and you do not hear it.",
    );

    assert_eq!(home.run(&["setup", "gemini"]).exit_code, 0);
    let settings = home.read(".gemini/settings.json");
    home.write(".gemini/settings.json", &settings.replace("86400000", "599000"));
    expect(
        "Gemini CLI: the timeout of the hooks for BeforeTool is too short. When it is over, Gemini CLI makes",
    );
    home.write(".gemini/settings.json", &settings.replace("86400000", "600000"));
    assert!(!home.run(&["doctor"]).stdout.contains("too short"));

    assert_eq!(home.run(&["setup", "codex"]).exit_code, 0);
    expect("Codex: the hooks are not trusted yet, so Codex skips them.");
    home.write(".codex/config.toml", "[features]\nhooks = false\n");
    expect("Codex: hooks are switched off under [features]");
    // Codex 0.166.0 writes this when the user trusts the hooks.
    let events = [
        "session_start",
        "session_end",
        "user_prompt_submit",
        "pre_tool_use",
        "permission_request",
        "post_tool_use",
        "stop",
        "subagent_start",
        "subagent_stop",
    ];
    let trust = |event: &str| {
        let key = home.path(&format!(".codex/hooks.json:{event}:0:0"));
        format!("[hooks.state.\"{}\"]\ntrusted_hash = \"sha256:x\"\n", key.display())
    };
    home.write(".codex/config.toml", &events[1..].iter().map(|event| trust(event)).collect::<String>());
    expect("Codex: the hooks are not trusted yet");
    home.write(".codex/config.toml", &events.iter().map(|event| trust(event)).collect::<String>());
    let output = home.run(&["doctor"]);
    assert!(
        lines(&output.stdout, "ok").iter().any(|line| line.starts_with("Codex is set up")),
        "{}",
        output.stdout
    );

    assert_eq!(home.run(&["setup", "gemini"]).exit_code, 0);
    let settings =
        home.read(".gemini/settings.json").replacen('{', "{\"hooksConfig\": {\"enabled\": false},", 1);
    home.write(".gemini/settings.json", &settings);
    expect("Gemini CLI: hooksConfig switches the hooks off.");
    home.write(
        ".gemini/settings.json",
        &settings.replacen("\"enabled\": false", "\"disabled\": [\"sayso\"]", 1),
    );
    expect("Gemini CLI: hooksConfig switches the hooks off.");

    home.write(".cursor/mcp.json", "{\"mcpServers\": {\"files\": {\"command\": \"/nowhere/sayso\", \"args\": [\"mcp\", \"--\", \"x\"]}}}");
    expect("MCP servers of Cursor: the configuration starts /nowhere/sayso");
    home.write(".cursor/mcp.json", "{\"mcpServers\": ");
    expect("MCP servers of Cursor: ");
}

#[test]
fn doctor_says_what_cannot_be_gated() {
    let home = Home::new();
    let notes = || home.run(&["doctor"]).stdout;
    for (harness, name, limit) in [
        ("claude", "Claude Code", "starts without these hooks if you use --bare"),
        ("codex", "Codex", "`codex exec` never asks for permission"),
        ("gemini", "Gemini CLI", "In ACP mode, which editors use, Gemini CLI calls no hooks"),
        ("gemini", "Gemini CLI", "waits without end if nobody can be asked"),
        ("opencode", "opencode", "`opencode run` rejects opencode's own permission questions"),
        ("vscode", "VS Code", "Hooks are a preview feature"),
        ("cursor", "Cursor", "do not know failClosed"),
    ] {
        let has_limit = |notes: &str| {
            lines(notes, "note")
                .iter()
                .any(|line| line.starts_with(&format!("{name}: ")) && line.contains(limit))
        };
        assert!(!has_limit(&notes()), "{harness}");
        assert_eq!(home.run(&["setup", harness]).exit_code, 0);
        assert!(has_limit(&notes()), "{harness}: {}", notes());
        assert_eq!(home.run(&["setup", harness, "--remove"]).exit_code, 0);
    }
    assert_eq!(home.run(&["setup", "codex", "--gate", "risky"]).exit_code, 0);
    assert!(!notes().contains("`codex exec` never asks"));
    assert_eq!(home.run(&["setup", "gemini", "--required"]).exit_code, 0);
    assert!(!notes().contains("waits without end"));
}

#[test]
fn doctor_lists_servers_without_sayso_and_other_copies_of_sayso() {
    let home = Home::new();
    home.write(".cursor/mcp.json", "{\"mcpServers\": {\"files\": {\"command\": \"x\"}}}");
    assert_eq!(home.run(&["setup", "mcp", "cursor"]).exit_code, 0);
    let wrapped =
        home.read(".cursor/mcp.json").replacen("\"files\"", "\"later\": {\"command\": \"y\"}, \"files\"", 1);
    home.write(".cursor/mcp.json", &wrapped);
    let output = home.run(&["doctor"]);
    assert!(
        output.stdout.contains("ok: MCP servers of Cursor: connected through sayso: files."),
        "{}",
        output.stdout
    );
    assert!(
        output.stdout.contains("note: MCP servers of Cursor: not connected through sayso: later."),
        "{}",
        output.stdout
    );
    assert!(!output.stdout.contains("No agent is connected"), "{}", output.stdout);
    home.add_program("sayso", "exit 0");
    assert_eq!(home.run(&["setup", "gemini", "--project"]).exit_code, 0);
    let output = home.run(&["doctor"]);
    assert!(
        output.stdout.contains("note: Gemini CLI in this project uses another copy of sayso"),
        "{}",
        output.stdout
    );
    assert!(output.stdout.contains("but the path leads to"), "{}", output.stdout);
    home.add_program("codex", "echo codex-cli 0.166.0");
    let output = home.run(&["doctor"]);
    assert!(
        output
            .stdout
            .contains("note: Codex is installed, but not set up. To hear it, run `sayso setup codex`."),
        "{}",
        output.stdout
    );
    let output = run_command(home.command(binary()).arg("doctor").env_remove("HOME"));
    assert_eq!(output.exit_code, 2);
}
