//! Random configurations with MCP servers survive wrapping and unwrapping.

use proptest::prelude::*;

use super::install_record::{InstallRecord, OriginalFile};
use super::mcp_client::{McpClient, McpOptions, McpServerState};
use super::plan::{Editor, McpEditor};
use super::{mcp_json, mcp_toml};

/// Pieces of a server in JSON, and whether it can be wrapped.
const JSON_SERVERS: [(&str, bool); 10] = [
    (r#"{"command": "npx", "args": ["-y", "server"], "env": {"KEY": "secret"}}"#, true),
    (r#"{ "command" : "npx" }"#, true),
    (
        "{\n      // why\n      \"args\": [ // first\n        \"a b\", /* c */\n      ],\n      \"command\": \"/opt/x\", // last\n    }",
        true,
    ),
    (r#"{"command":"a","args":[]}"#, true),
    (r#"{"type": "stdio", "command": "a", "args": ["--", "mcp", "--url"]}"#, true),
    (r#"{"type": "http", "url": "https://example.com/mcp"}"#, true),
    (r#"{"url": "http://localhost:1/mcp" /* c */ , "timeout": 3}"#, true),
    (r#"{"type": "sse", "url": "https://example.com/sse"}"#, false),
    (r#"{"url": "https://example.com", "headers": {"Authorization": "Bearer x"}}"#, false),
    (r#"{"command": "a", "args": [1]}"#, false),
];

const TOML_SERVERS: [(&str, bool); 9] = [
    (
        "[mcp_servers.NAME]\ncommand = \"npx\" # why\nargs = [\"-y\", \"server\"]\nenv = { KEY = \"secret\" }\n",
        true,
    ),
    ("[mcp_servers.NAME]\ncommand = 'npx'\n", true),
    (
        "# before\n[mcp_servers.NAME] # here\n  command = \"a\"\n  args = [\n    \"x\", # first\n    \"y\",\n  ]\n\n",
        true,
    ),
    ("[mcp_servers.NAME]\nurl = \"https://example.com/mcp\" # c\nstartup_timeout_sec = 3\n", true),
    ("[mcp_servers.NAME]\n# before the address\nurl = 'http://localhost/mcp'\n", true),
    ("[mcp_servers.NAME]\nurl = \"https://example.com\"\nbearer_token_env_var = \"T\"\n", false),
    ("[mcp_servers]\nNAME = { command = \"a\", args = [] }\n", true),
    ("[mcp_servers]\nNAME.command = \"a\"\nNAME.args = [\"x\"]\n", true),
    ("[mcp_servers.NAME]\ncommand = \"a\"\n[mcp_servers.NAME.env]\nKEY = \"v\" # secret\n", true),
];

const TOML_OTHERS: [&str; 5] = [
    "",
    "# comment\n",
    "\n\n[[list]]\na = 1_000 # n\n[[list]]\n",
    "[features]\nhooks = true\n",
    "[other.\"a b\"]\nd = 2026-11-18T12:00:00Z\nx = { y = [1, 2, ], }\n",
];

fn wrapped_count(servers: &[super::McpServer]) -> usize {
    servers.iter().filter(|server| matches!(server.state, McpServerState::Wrapped { .. })).count()
}

fn check(client: McpClient, text: &str, supported: usize) -> Result<(), TestCaseError> {
    let servers = |text: &str| match client {
        McpClient::Codex => mcp_toml::servers(text).unwrap(),
        client => mcp_json::servers(client, text).unwrap(),
    };
    let options = McpOptions { hub: Some("unix:/a".to_owned()), trust: None, elicits: true };
    let editor = McpEditor { client, program: "/opt/s p/sayso", options: &options };
    let wrapped = editor.install(text).map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
    prop_assert_eq!(wrapped_count(&servers(&wrapped)), supported, "{}", wrapped);
    prop_assert_eq!(editor.install(&wrapped).unwrap(), wrapped.clone(), "a second run changes nothing");
    let other = McpEditor { client, program: "sayso", options: &McpOptions::default() };
    let rewrapped = other.install(&wrapped).unwrap();
    prop_assert_eq!(wrapped_count(&servers(&rewrapped)), supported);
    for wrapped in [&wrapped, &rewrapped] {
        // The editor itself checks that no other value changed. Comments stay, too.
        let unwrapped = editor.remove(wrapped).unwrap();
        prop_assert_eq!(wrapped_count(&servers(&unwrapped)), 0);
        prop_assert_eq!(editor.install(&unwrapped).unwrap().contains("sayso"), supported > 0);
        prop_assert!(!unwrapped.contains("sayso"), "{}", unwrapped);
        for comment in [
            "# why",
            "# here",
            "# before",
            "# first",
            "# c",
            "# secret",
            "# comment",
            "# n",
            "// why",
            "// first",
            "/* c */",
            "// last",
        ] {
            for edited in [wrapped, &unwrapped] {
                prop_assert_eq!(
                    edited.matches(comment).count(),
                    text.matches(comment).count(),
                    "{}\n{}\n{}",
                    comment,
                    text,
                    edited
                );
            }
        }
    }
    let record = InstallRecord::new(Some(text), &wrapped, Vec::new());
    prop_assert_eq!(record.restore(&wrapped), Some(OriginalFile { text: Some(text.to_owned()) }));
    Ok(())
}

proptest! {
    #![proptest_config(testing::property::cases(300))]

    #[test]
    fn json_survives_wrapping_and_unwrapping(
        choices in prop::collection::vec(0..JSON_SERVERS.len(), 0..5),
        client in prop::sample::select(vec![McpClient::ClaudeDesktop, McpClient::Claude, McpClient::Cursor, McpClient::VsCode]),
        is_windows in any::<bool>(),
        in_project in any::<bool>(),
    ) {
        let servers: Vec<_> = choices.iter().enumerate().map(|(index, choice)| format!("    \"-s {index}\": {}", JSON_SERVERS[*choice].0)).collect();
        let list = if client == McpClient::VsCode { "servers" } else { "mcpServers" };
        let list = format!("\"{list}\": {{\n{}\n  }}", servers.join(",\n"));
        let text = if client == McpClient::Claude && in_project {
            format!("{{\n  \"projects\": {{\"/p\": {{{list}, \"x\": 1}}, \"/q\": {{}}}}\n}}\n")
        } else {
            format!("{{\n  \"other\": {{\"command\": \"a\", \"n\": 1.0}},\n  {list},\n}}\n")
        };
        let text = if is_windows { text.replace('\n', "\r\n") } else { text };
        check(client, &text, choices.iter().filter(|choice| JSON_SERVERS[**choice].1).count())?;
    }

    #[test]
    fn toml_survives_wrapping_and_unwrapping(
        choices in prop::collection::vec((0..TOML_SERVERS.len(), 0..TOML_OTHERS.len()), 0..4),
        is_windows in any::<bool>(),
    ) {
        let mut text = "model = \"gpt\" # mine\n".to_owned();
        let (mut supported, mut has_table) = (0, false);
        for (index, (server, other)) in choices.into_iter().enumerate() {
            let (server, is_supported) = TOML_SERVERS[server];
            // The table of all servers can be opened once.
            if server.starts_with("[mcp_servers]\n") && std::mem::replace(&mut has_table, true) {
                continue;
            }
            supported += usize::from(is_supported);
            text += &server.replace("NAME", &format!("s{index}"));
            if !text.contains(TOML_OTHERS[other]) {
                text += TOML_OTHERS[other];
            }
        }
        let text = if is_windows { text.replace('\n', "\r\n") } else { text };
        check(McpClient::Codex, &text, supported)?;
    }

    #[test]
    fn any_text_is_edited_or_refused(text in "[{}\\[\\]\"=#.,:/* \n\ra-z0-9]{0,60}") {
        for client in McpClient::ALL {
            let editor = McpEditor { client, program: "sayso", options: &McpOptions::default() };
            if let Ok(wrapped) = editor.install(&text) {
                prop_assert_eq!(wrapped, text.clone(), "there are no servers");
            }
        }
    }
}

#[test]
fn a_server_is_started_through_sayso_with_its_name() {
    let text = r#"{"mcpServers": {"files": {"command": "npx", "args": ["-y", "x"], "env": {}}, "-odd": {"url": "http://h/"}}}"#;
    let expected = r#"{"mcpServers": {"files": {"command": "/bin/sayso", "args": ["mcp", "--name", "files", "--", "npx", "-y", "x"], "env": {}}, "-odd": {"command": "/bin/sayso", "args": ["mcp", "--name=-odd", "--url", "http://h/"]}}}"#;
    let wrapped = mcp_json::wrap(McpClient::Cursor, text, "/bin/sayso", &McpOptions::default()).unwrap();
    assert_eq!(wrapped, expected);
    assert_eq!(mcp_json::unwrap(McpClient::Cursor, &wrapped).unwrap(), text);

    let toml = "[mcp_servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"x\"]\n";
    let wrapped = mcp_toml::wrap(toml, "/bin/sayso", &McpOptions::default()).unwrap();
    let args = "args = [\"mcp\", \"--name\", \"files\", \"--\", \"npx\", \"-y\", \"x\"]";
    assert_eq!(wrapped, format!("[mcp_servers.files]\ncommand = \"/bin/sayso\"\n{args}\n"));
    assert_eq!(mcp_toml::unwrap(&wrapped).unwrap(), toml);
}

#[test]
fn a_gate_that_somebody_wrote_by_hand_is_left_alone() {
    for args in [
        r#"["mcp"]"#,
        r#"["mcp", "--"]"#,
        r#"["mcp", "--new-option", "--", "a"]"#,
        r#"["mcp", "--url", "x", "y"]"#,
        r#"["ask", "--", "a"]"#,
    ] {
        let text = format!(r#"{{"mcpServers": {{"a": {{"command": "sayso", "args": {args}}}}}}}"#);
        assert_eq!(mcp_json::unwrap(McpClient::Cursor, &text).unwrap(), text);
    }
}

#[test]
fn toml_that_cannot_be_kept_is_refused() {
    for (text, reason) in [
        ("a = ", "it is not valid TOML (line 1"),
        ("a = 1\nb = \n", "it is not valid TOML (line 2"),
        ("a = 1\r\nb = 2\n", "its line ends or other white space would change"),
    ] {
        let refusal = mcp_toml::wrap(text, "sayso", &McpOptions::default()).unwrap_err();
        assert!(refusal.starts_with(reason), "{refusal}");
    }
}
