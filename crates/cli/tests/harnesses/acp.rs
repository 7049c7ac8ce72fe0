//! Real agents of the Agent Client Protocol behind `sayso acp`. The test plays the editor.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use testing::cli::KillTimer;

use crate::fixture::{HarnessFixture, Person, borrowed, sayso};
use crate::{claude, others};

/// An agent's command, its environment, and the prompt that makes a file.
type AgentSetup = (Vec<String>, Vec<(&'static str, String)>, String);

/// An agent that speaks ACP.
struct Agent {
    name: &'static str,
    configure: fn(&HarnessFixture) -> AgentSetup,
}

const ADAPTER: Agent = Agent {
    name: "Claude Code's adapter",
    configure: |fixture| {
        let environment = claude::configure_without_hooks(fixture);
        let folder = HarnessFixture::folder("adapter").join("node_modules");
        let command = vec![
            HarnessFixture::folder("claude").join("node_modules/.bin/node").display().to_string(),
            folder.join("@agentclientprotocol/claude-agent-acp/dist/index.js").display().to_string(),
        ];
        (command, environment, claude::prompt_for(&format!("touch {}", fixture.marker().display())))
    },
};

const GEMINI: Agent = Agent {
    name: "Gemini CLI",
    configure: |fixture| {
        // Its hooks do not run in this mode.
        let environment = others::configure_gemini(fixture, None);
        let program = HarnessFixture::program("gemini").display().to_string();
        let command = [&program, "--acp", "-m", "gemini-2.5-flash"].map(str::to_owned).to_vec();
        let prompt = others::script(fixture, "run_shell_command", json!({"description": "Make a file"}));
        (command, environment, prompt)
    },
};

const OPENCODE: Agent = Agent {
    name: "opencode",
    configure: |fixture| {
        let environment = others::configure_opencode(fixture, None, "ask");
        let program = HarnessFixture::program("opencode").display().to_string();
        let prompt = others::script(fixture, "bash", json!({"description": "Make a file"}));
        (vec![program, "acp".to_owned()], environment, prompt)
    },
};

/// The editor at the other end of the gate.
struct Editor<'a> {
    fixture: &'a HarnessFixture,
    gate: Child,
    to_gate: ChildStdin,
    from_gate: BufReader<ChildStdout>,
    /// The kind of option that the editor's dialog selects after the listener, if there is one, was asked. Without a kind, the
    /// dialog stays open.
    answer: Option<&'static str>,
    has_listener: bool,
    /// How many permission requests were shown.
    dialogs: usize,
    _timer: KillTimer,
}

impl<'a> Editor<'a> {
    fn start(
        fixture: &'a HarnessFixture,
        agent: &Agent,
        answer: Option<&'static str>,
        has_listener: bool,
    ) -> (Self, String) {
        let (command, environment, prompt) = (agent.configure)(fixture);
        let mut gate = Command::new(sayso())
            .args(["acp", "--"])
            .args(command)
            .env_clear()
            .envs(fixture.environment(&borrowed(&environment)))
            .current_dir(fixture.project())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let timer = KillTimer::start(gate.id());
        let (to_gate, from_gate) = (gate.stdin.take().unwrap(), BufReader::new(gate.stdout.take().unwrap()));
        (Self { fixture, gate, to_gate, from_gate, answer, has_listener, dialogs: 0, _timer: timer }, prompt)
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.to_gate, "{message}").unwrap();
    }

    /// Sends a request and answers the agent's requests until its response arrives.
    fn request(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.from_gate.read_line(&mut line).unwrap() > 0, "the agent ended during {method}");
            // Agents also print lines that are not messages.
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            if message["method"] == "session/request_permission" {
                self.dialogs += 1;
                if let Some(kind) = self.answer {
                    while self.has_listener && self.fixture.questions() == 0 {
                        std::thread::sleep(Duration::from_millis(50));
                    }
                    let options = message["params"]["options"].as_array().unwrap();
                    let option = options.iter().find(|option| option["kind"] == kind).unwrap();
                    let outcome = json!({"outcome": "selected", "optionId": option["optionId"]});
                    self.send(
                        &json!({"jsonrpc": "2.0", "id": message["id"], "result": {"outcome": outcome}}),
                    );
                }
            } else if message["method"].is_string() && !message["id"].is_null() {
                let error = json!({"code": -32601, "message": "Method not found"});
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
            } else if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    /// Runs one turn and ends the agent. Returns why the turn ended.
    fn run(mut self, prompt: &str) -> (String, usize) {
        let capabilities = json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        let client = json!({"name": "test", "version": "1"});
        self.request(
            1,
            "initialize",
            &json!({"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": client}),
        );
        let session =
            self.request(2, "session/new", &json!({"cwd": self.fixture.project(), "mcpServers": []}));
        let prompt = json!([{"type": "text", "text": prompt}]);
        let params = json!({"sessionId": session["sessionId"], "prompt": prompt});
        let turn = self.request(3, "session/prompt", &params);
        drop(self.to_gate);
        self.gate.wait().unwrap();
        (turn["stopReason"].as_str().unwrap_or_default().to_owned(), self.dialogs)
    }
}

/// A person's answer counts. If nobody listens or answers, the answer from the editor's dialog counts.
fn check(agent: &Agent) {
    for (person, answer, is_executed) in [
        (Person::SaysYes, None, true),
        (Person::SaysNo, None, false),
        (Person::IsSilent, Some("allow_once"), true),
        (Person::IsSilent, Some("reject_once"), false),
        (Person::IsAbsent, Some("allow_once"), true),
        (Person::IsAbsent, Some("reject_once"), false),
    ] {
        let fixture = HarnessFixture::start(person);
        let (editor, prompt) = Editor::start(&fixture, agent, answer, person != Person::IsAbsent);
        let (reason, dialogs) = editor.run(&prompt);
        let name = agent.name;
        assert_eq!(dialogs, 1, "{name} {person:?} {answer:?}: {reason}");
        assert_eq!(fixture.marker().exists(), is_executed, "{name} {person:?} {answer:?}: {reason}");
        assert_eq!(
            fixture.questions(),
            usize::from(person != Person::IsAbsent),
            "{name} {person:?} {answer:?}"
        );
    }
}

#[test]
#[ignore = "needs Claude Code's ACP adapter; run `cargo xtask gates`"]
fn adapter_executes_a_command_only_after_a_yes() {
    check(&ADAPTER);
}

#[test]
#[ignore = "needs Gemini CLI; run `cargo xtask gates`"]
fn gemini_as_an_acp_agent_executes_a_command_only_after_a_yes() {
    check(&GEMINI);
}

#[test]
#[ignore = "needs opencode; run `cargo xtask gates`"]
fn opencode_as_an_acp_agent_executes_a_command_only_after_a_yes() {
    check(&OPENCODE);
}
