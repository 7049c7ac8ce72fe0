//! A hub with a listener, a scripted model, a home folder and a project folder, for one run of a coding agent.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testing::cli::{KillTimer, binary};
use testing::hub::HubProcess;
use testing::messages::{REPLY_CAPABILITIES, clarification_reply};

pub(crate) struct HarnessFixture {
    pub(crate) hub: HubProcess,
    pub(crate) model: String,
    folder: tempfile::TempDir,
    heard: Arc<Mutex<Vec<Value>>>,
    subscription: Option<String>,
}

/// How long to wait for something that must happen.
const MAX_WAIT: Duration = Duration::from_mins(2);
const POLL_PAUSE: Duration = Duration::from_millis(50);

/// How the person answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Person {
    SaysYes,
    SaysNo,
    IsSilent,
    IsAbsent,
}

/// What a process of a harness is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessKind {
    Hook,
    /// The process that watches a hook.
    Watchdog,
    /// The shell in which the harness runs the hook.
    HookShell,
    Other,
}

impl ProcessKind {
    /// Returns the kind of a process with this command line, whose words are separated by NUL.
    fn of(command: &str) -> Self {
        let mut words = command.split('\0');
        match (words.next() == Some(&sayso()), words.next()) {
            (true, Some("hook")) => Self::Hook,
            (true, Some("hook-watchdog")) => Self::Watchdog,
            (false, _) if command.contains(&format!("\0{} hook ", sayso())) => Self::HookShell,
            _ => Self::Other,
        }
    }
}

impl HarnessFixture {
    pub(crate) fn start(person: Person) -> Self {
        let hub = HubProcess::start_in_memory();
        let heard = Arc::<Mutex<Vec<Value>>>::default();
        let subscription = (person != Person::IsAbsent).then(|| hub.client().subscribe(REPLY_CAPABILITIES));
        if let Some(subscription) = subscription.clone() {
            let client = hub.client();
            let mut stream = client.open_event_stream(&subscription, None);
            let heard = heard.clone();
            std::thread::spawn(move || {
                loop {
                    let (kind, _, event) = stream.next();
                    let token = event["reply_token"].as_str().unwrap_or_default().to_owned();
                    // The decision, and the start of the label of the choice with the same meaning.
                    let answer = match person {
                        Person::SaysYes => Some(("accept", "Allow once")),
                        Person::SaysNo => Some(("reject", "Reject once")),
                        Person::IsSilent | Person::IsAbsent => None,
                    };
                    if let Some((decision, label_prefix)) = answer {
                        if kind == "awaiting.confirmation" {
                            drop(client.try_reply(&subscription, &token, decision));
                        }
                        // A request with more options than yes and no.
                        let mut choices = event["choices"].as_array().into_iter().flatten();
                        let matches_answer = |choice: &&Value| {
                            choice["label"].as_str().unwrap_or_default().starts_with(label_prefix)
                        };
                        if let Some(choice) = choices.find(matches_answer) {
                            let value = choice["value"].as_str().unwrap_or_default();
                            drop(client.try_send(
                                "POST",
                                "/aaep/v1/replies",
                                &clarification_reply(&subscription, &token, value),
                            ));
                        }
                    }
                    heard.lock().unwrap().push(event);
                }
            });
        }
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "project", "runtime"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { hub, model: testing::scripted_model::start(), folder, heard, subscription }
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

    /// Returns the events that the person heard.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.heard.lock().unwrap().clone()
    }

    /// Returns the events that the person heard, as type and text.
    pub(crate) fn heard(&self) -> Vec<(String, String)> {
        let text = |event: &Value| {
            let text = event["summary_normal"].as_str().or(event["chunk"].as_str());
            (testing::messages::short_type(event).to_owned(), text.unwrap_or_default().to_owned())
        };
        self.heard.lock().unwrap().iter().map(text).collect()
    }

    /// Returns how often the person was asked.
    pub(crate) fn questions(&self) -> usize {
        self.heard().iter().filter(|(kind, _)| kind.starts_with("awaiting.")).count()
    }

    /// Waits until a condition is met. `what` names it.
    pub(crate) fn wait_until(&self, what: &str, is_met: impl Fn() -> bool) {
        let deadline = Instant::now() + MAX_WAIT;
        while !is_met() {
            assert!(Instant::now() < deadline, "no {what}: {:#?}", self.heard());
            std::thread::sleep(POLL_PAUSE);
        }
    }

    /// Says yes to every question that the person heard, whether it is still open or not.
    pub(crate) fn say_yes(&self) {
        let subscription = self.subscription.as_deref().unwrap();
        for event in self.events() {
            if testing::messages::short_type(&event).starts_with("awaiting.") {
                let token = event["reply_token"].as_str().unwrap_or_default();
                // A hub that was killed cannot hear it.
                drop(self.hub.client().try_reply(subscription, token, "accept"));
            }
        }
    }

    /// Returns the processes of one kind that were started with the home folder of this fixture.
    pub(crate) fn processes(&self, kind: ProcessKind) -> Vec<String> {
        let home = format!("HOME={}", self.home().display());
        let folders = std::fs::read_dir("/proc").unwrap().flatten();
        folders
            .filter_map(|folder| {
                let environment = std::fs::read(folder.path().join("environ")).ok()?;
                let command = std::fs::read_to_string(folder.path().join("cmdline")).ok()?;
                let is_own = environment.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes());
                // A process without a command line has ended.
                (is_own && !command.is_empty() && ProcessKind::of(&command) == kind)
                    .then(|| folder.file_name().to_string_lossy().into_owned())
            })
            .collect()
    }

    /// Sends a signal to all processes of one kind. Some may have ended already.
    pub(crate) fn signal(&self, kind: ProcessKind, signal: &str) {
        for process in self.processes(kind) {
            drop(Command::new("kill").args([signal, &process]).stderr(Stdio::null()).status());
        }
    }

    /// Whether the person heard that a question was withdrawn.
    pub(crate) fn was_withdrawn(&self) -> bool {
        self.heard.lock().unwrap().iter().any(|event| {
            testing::messages::short_type(event) == "state.changed"
                && event.to_string().contains("\"cancelled\"")
        })
    }

    pub(crate) fn write(&self, path: &str, content: &Value) {
        let path = self.home().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content.to_string()).unwrap();
    }

    /// Connects a harness with `sayso setup`, as a user does. `file` is the file that `sayso setup` writes, relative to the home
    /// folder. Options of the hook that `sayso setup` lacks, such as the deadline, are added to the hook's commands afterwards.
    pub(crate) fn set_up(&self, harness: &str, file: &str, options: &[&str]) {
        let (mut arguments, mut others) = (vec!["setup", harness], Vec::new());
        for option in options.chunk_by(|_, next| !next.starts_with("--")) {
            let is_known = matches!(option, ["--gate" | "--required", ..]);
            (if is_known { &mut arguments } else { &mut others }).extend(option);
        }
        let output = self.run(Path::new(&sayso()), &arguments, &[]);
        assert!(output.status.success(), "{output:?}");
        let path = self.home().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let text = if let Some(line) = text.lines().find(|line| line.starts_with("const COMMAND = ")) {
            let command = line.trim_start_matches("const COMMAND = ").trim_end_matches(';');
            let mut command: Vec<&str> = serde_json::from_str(command).unwrap();
            command.extend(&others);
            text.replace(line, &format!("const COMMAND = {};", json!(command)))
        } else {
            let mut document: Value = serde_json::from_str(&text).unwrap();
            add_options(&mut document["hooks"], &others);
            document.to_string()
        };
        std::fs::write(path, text).unwrap();
    }

    /// Returns the folder of an installed harness. `HARNESSES` is set by `cargo xtask gates`.
    pub(crate) fn folder(harness: &str) -> PathBuf {
        let folder = std::env::var("HARNESSES").expect("run `cargo xtask gates`");
        Path::new(&folder).join(harness)
    }

    /// Returns the program of an installed harness.
    pub(crate) fn program(harness: &str) -> PathBuf {
        let path = match harness {
            // opencode's package for all platforms only starts the one for this platform.
            "opencode" => "node_modules/opencode-linux-x64/bin/opencode".to_owned(),
            name => format!("node_modules/.bin/{name}"),
        };
        Self::folder(harness).join(path)
    }

    /// Returns the whole environment of a harness.
    pub(crate) fn environment(&self, variables: &[(&str, &str)]) -> Vec<(String, String)> {
        let path = std::env::var("PATH").unwrap_or_default();
        // Claude Code's packages contain a newer Node.js than the machine may have.
        let node = Self::folder("claude").join("node_modules/.bin");
        let own = |name: &str| self.folder.path().join(name).display().to_string();
        let fixed = [
            ("PATH", format!("{}:{path}", node.display())),
            ("HOME", own("home")),
            ("LANG", "C.UTF-8".to_owned()),
            ("TERM", "xterm-256color".to_owned()),
            ("SHELL", "/bin/bash".to_owned()),
            ("XDG_RUNTIME_DIR", own("runtime")),
            ("SAYSO_URL", format!("http://{}", self.hub.address)),
        ];
        let fixed = fixed.map(|(name, value)| (name.to_owned(), value));
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        fixed.into_iter().chain(variables).collect()
    }

    /// Starts a program in the project, with the environment of a harness and the given variables. It inherits nothing else.
    pub(crate) fn spawn(&self, program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Child {
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(self.environment(environment)).current_dir(self.project());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs a program as [`Self::spawn`] does.
    pub(crate) fn run(&self, program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        let child = self.spawn(program, arguments, environment);
        let _timer = KillTimer::start(child.id());
        child.wait_with_output().unwrap()
    }
}

/// Adds options to the commands of hooks.
fn add_options(hooks: &mut Value, options: &[&str]) {
    match hooks {
        Value::Array(items) => items.iter_mut().for_each(|item| add_options(item, options)),
        Value::Object(members) => {
            if let Some(Value::Array(arguments)) = members.get_mut("args") {
                arguments.extend(options.iter().map(|option| json!(option)));
            } else if let Some(Value::String(command)) = members.get_mut("command") {
                // What follows if the hook fails stays at the end.
                let (hook, rest) = command
                    .split_once(" || ")
                    .map_or((command.as_str(), None), |(hook, rest)| (hook, Some(rest)));
                let line = [&[hook], options].concat().join(" ");
                *command = rest.map_or_else(|| line.clone(), |rest| format!("{line} || {rest}"));
            } else {
                members.values_mut().for_each(|member| add_options(member, options));
            }
        }
        _ => {}
    }
}

pub(crate) fn sayso() -> String {
    binary().to_str().unwrap().to_owned()
}

/// Borrows variables of an environment.
pub(crate) fn borrowed<'a>(variables: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    variables.iter().map(|(name, value)| (*name, value.as_str())).collect()
}
