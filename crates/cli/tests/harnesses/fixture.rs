//! A hub with a listener, a scripted model, and a home and a project for one run of a coding agent.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use testing::cli::{KillTimer, binary};
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;

pub(crate) struct HarnessFixture {
    pub(crate) hub: HubProcess,
    pub(crate) model: String,
    folder: tempfile::TempDir,
    heard: Arc<Mutex<Vec<Value>>>,
}

/// How the person answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Person {
    SaysYes,
    SaysNo,
    IsSilent,
    IsAbsent,
}

impl HarnessFixture {
    pub(crate) fn start(person: Person) -> Self {
        let hub = HubProcess::start_in_memory();
        let heard = Arc::<Mutex<Vec<Value>>>::default();
        if person != Person::IsAbsent {
            let client = hub.client();
            let subscription = client.subscribe(REPLY_CAPABILITIES);
            let mut stream = client.open_event_stream(&subscription, None);
            let heard = heard.clone();
            std::thread::spawn(move || {
                loop {
                    let (kind, _, event) = stream.next();
                    let token = event["reply_token"].as_str().unwrap_or_default().to_owned();
                    heard.lock().unwrap().push(event);
                    if kind == "awaiting.confirmation" {
                        match person {
                            Person::SaysYes => drop(client.try_reply(&subscription, &token, "accept")),
                            Person::SaysNo => drop(client.try_reply(&subscription, &token, "reject")),
                            Person::IsSilent | Person::IsAbsent => {}
                        }
                    }
                }
            });
        }
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "project", "runtime"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { hub, model: testing::scripted_model::start(), folder, heard }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// The file whose existence shows that a command was executed. It is outside the project.
    pub(crate) fn marker(&self) -> PathBuf {
        self.folder.path().join("marker")
    }

    /// Returns the events that the person heard, as type and text.
    pub(crate) fn heard(&self) -> Vec<(String, String)> {
        let text = |event: &Value| {
            let text = event["summary_normal"].as_str().or(event["chunk"].as_str());
            (testing::messages::short_type(event).to_owned(), text.unwrap_or_default().to_owned())
        };
        self.heard.lock().unwrap().iter().map(text).collect()
    }

    pub(crate) fn write(&self, path: &str, content: &Value) {
        let path = self.home().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content.to_string()).unwrap();
    }

    /// Returns the program of an installed harness. `HARNESSES` is set by `cargo xtask gates`.
    pub(crate) fn program(harness: &str, name: &str) -> PathBuf {
        let folder = std::env::var("HARNESSES").expect("run `cargo xtask gates`");
        Path::new(&folder).join(harness).join("node_modules/.bin").join(name)
    }

    /// Runs a program in the project, with an empty environment except for the given variables.
    pub(crate) fn run(&self, program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        let mut path = std::env::var("PATH").unwrap_or_default();
        if let Some(folder) = program.parent() {
            path = format!("{}:{path}", folder.display());
        }
        let mut command = Command::new(program);
        command.args(arguments).env_clear().current_dir(self.project());
        command
            .env("PATH", path)
            .env("HOME", self.home())
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color");
        command.env("SHELL", "/bin/bash").env("XDG_RUNTIME_DIR", self.folder.path().join("runtime"));
        command.env("SAYSO_URL", format!("http://{}", self.hub.address)).envs(environment.iter().copied());
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _timer = KillTimer::start(child.id());
        child.wait_with_output().unwrap()
    }
}

pub(crate) fn sayso() -> String {
    binary().to_str().unwrap().to_owned()
}
