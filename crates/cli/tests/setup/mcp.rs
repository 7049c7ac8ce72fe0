//! `sayso setup mcp CLIENT`: servers are started through sayso, and directly again.

use std::io::Write;
use std::process::Stdio;

use testing::cli::{KillTimer, binary};

use super::Home;

const JSON: &str = r#"{
  // My servers.
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "files"], "env": { "KEY": "secret" } },
    "remote": { "type": "http", "url": "https://example.com/mcp" },
    "private": { "type": "http", "url": "https://example.com/x", "headers": { "Authorization": "Bearer t" } }
  }
}
"#;

const TOML: &str =
    "model = \"gpt\" # mine\n\n[mcp_servers.files]\ncommand = \"npx\" # why\nargs = [\"-y\", \"files\"]\n";

#[test]
fn servers_start_through_sayso_and_directly_again() {
    for (client, file, text) in [
        ("claude-desktop", ".config/Claude/claude_desktop_config.json", JSON.to_owned()),
        ("claude", ".claude.json", JSON.to_owned()),
        ("cursor", ".cursor/mcp.json", JSON.to_owned()),
        ("vscode", ".config/Code/User/mcp.json", JSON.replace("mcpServers", "servers")),
        ("codex", ".codex/config.toml", TOML.to_owned()),
    ] {
        let home = Home::new();
        home.write(file, &text);
        let diff = home.run(&["setup", "mcp", client, "--dry-run"]);
        assert!(diff.stdout.contains("\n+") && home.read(file) == text, "{}", diff.stdout);

        let output = home.run(&["setup", "mcp", client, "--hub", "unix:/hub.sock"]);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        assert!(output.stdout.contains("files starts through sayso."), "{}", output.stdout);
        assert_eq!(
            output.stdout.contains("private starts directly, because it needs credentials"),
            client != "codex",
        );
        let wrapped = home.read(file);
        let words = r#"["mcp", "--name", "files", "--hub", "unix:/hub.sock", "--", "npx", "-y", "files"]"#;
        assert!(
            wrapped.contains(words) && wrapped.contains(binary().canonicalize().unwrap().to_str().unwrap()),
            "{wrapped}"
        );
        let second = home.run(&["setup", "mcp", client, "--hub", "unix:/hub.sock"]);
        assert!(second.stdout.contains("Nothing had to be changed."), "{}", second.stdout);
        assert_eq!(home.read(file), wrapped);

        assert_eq!(home.run(&["setup", "mcp", client, "--remove"]).exit_code, 0);
        assert_eq!(home.read(file), text, "{client}");
        assert_eq!(home.files(), [file]);

        // A server that was added later stays, and so does its neighbour's comment.
        assert_eq!(home.run(&["setup", "mcp", client]).exit_code, 0);
        let later = if client == "codex" {
            home.read(file) + "[mcp_servers.later]\ncommand = \"x\"\n"
        } else {
            home.read(file).replacen("\"files\": {", "\"later\": { \"command\": \"x\" }, \"files\": {", 1)
        };
        home.write(file, &later);
        let output = home.run(&["setup", "mcp", client, "--remove"]);
        assert!(output.stdout.contains("later starts directly."), "{}", output.stdout);
        let rest = home.read(file);
        assert!(rest.contains("later") && !rest.contains("sayso"), "{rest}");
        assert_eq!(
            (rest.contains("// My servers."), rest.contains("# why")),
            (client != "codex", client == "codex")
        );
    }
}

#[test]
fn a_wrapped_server_can_be_started() {
    let home = Home::new();
    home.add_program("echo-server", "exec /bin/cat");
    home.write(".cursor/mcp.json", r#"{"mcpServers": {"-odd name": {"command": "echo-server"}}}"#);
    assert_eq!(home.run(&["setup", "mcp", "cursor"]).exit_code, 0);
    let config: serde_json::Value = serde_json::from_str(&home.read(".cursor/mcp.json")).unwrap();
    let server = &config["mcpServers"]["-odd name"];
    let arguments = server["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let mut command = home.command(server["command"].as_str().unwrap());
    let mut child = command.args(arguments).stdin(Stdio::piped()).spawn().unwrap();
    let _timer = KillTimer::start(child.id());
    let message = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    child.stdin.take().unwrap().write_all(message.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        message,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_project_has_servers_of_its_own() {
    let home = Home::new();
    let file = home.project().join(".mcp.json");
    std::fs::write(&file, JSON).unwrap();
    let arguments = ["setup", "mcp", "claude", "--project", "--trust", "trust.toml", "--elicit"];
    assert_eq!(home.run(&arguments).exit_code, 0);
    let wrapped = std::fs::read_to_string(&file).unwrap();
    assert!(
        wrapped.contains(r#""--elicit", "--", "npx""#) && wrapped.contains(r#""--elicit", "--url""#),
        "{wrapped}"
    );
    let trust = home.project().join("trust.toml").display().to_string();
    assert!(wrapped.contains("\"command\": \"sayso\"") && wrapped.contains(&trust), "{wrapped}");
    assert_eq!(home.run(&["setup", "mcp", "claude", "--project", "--remove"]).exit_code, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), JSON);
    let output = home.run(&["setup", "mcp", "claude-desktop", "--project"]);
    assert_eq!((output.exit_code, output.stderr.contains("no configuration for projects")), (2, true));
}

#[test]
fn a_configuration_that_cannot_be_wrapped_is_an_error() {
    let home = Home::new();
    for arguments in [&["setup", "mcp", "cursor"][..], &["setup", "mcp", "cursor", "--remove"]] {
        let output = home.run(arguments);
        assert_eq!((output.exit_code, output.stderr.contains("Cursor has no configuration at")), (2, true));
    }
    assert_eq!(home.files(), Vec::<String>::new());
    for (client, file, text) in [
        ("cursor", ".cursor/mcp.json", "{\"mcpServers\": []}"),
        ("cursor", ".cursor/mcp.json", "{\"mcpServers\": {}"),
        ("codex", ".codex/config.toml", "[mcp_servers"),
    ] {
        home.write(file, text);
        let output = home.run(&["setup", "mcp", client]);
        assert_eq!(
            (output.exit_code, output.stderr.contains("is not changed: ")),
            (2, true),
            "{}",
            output.stderr
        );
        assert_eq!(home.read(file), text);
    }
    let output = home.run(&["setup", "mcp", "emacs"]);
    assert!(output.stderr.contains("claude-desktop, claude, cursor, vscode, codex"), "{}", output.stderr);
}
