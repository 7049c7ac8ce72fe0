//! The Python package: its own tests and checks, and each adapter against its real framework in an environment of its own.
//!
//! `python/requirements/NAME.txt` pins every package of an environment by version and hash. An environment is created again when its file changes.

use std::path::PathBuf;
use std::process::Command;

use crate::stage::{Plan, StageLane, StageLog, StageResult, root};

/// An environment, and the adapters that are tested in it.
struct Environment {
    name: &'static str,
    /// The names in `python/tests/adapters/test_adapters.py`, separated by commas.
    adapters: &'static str,
}

const ENVIRONMENTS: [Environment; 13] = [
    Environment { name: "langchain", adapters: "langchain,langchain_blocking,langgraph,langgraph_blocking" },
    Environment { name: "openai-agents", adapters: "openai_agents" },
    Environment { name: "anthropic", adapters: "anthropic,anthropic_blocking" },
    Environment {
        name: "openai",
        adapters: "openai_chat,openai_responses,openai_responses_loop,openai_assistants",
    },
    Environment { name: "agent-framework", adapters: "agent_framework" },
    Environment { name: "autogen", adapters: "autogen" },
    Environment { name: "semantic-kernel", adapters: "semantic_kernel" },
    Environment { name: "claude-agent", adapters: "claude_agent,claude_agent_gate" },
    Environment { name: "pydantic-ai", adapters: "pydantic_ai" },
    Environment { name: "google-adk", adapters: "google_adk" },
    Environment { name: "crewai", adapters: "crewai" },
    Environment { name: "strands", adapters: "strands" },
    Environment { name: "smolagents", adapters: "smolagents" },
];

/// The environment of the package's own tests.
const CORE: &str = "core";

/// The environment of the tests that run AAEP's own producers beside our adapters.
const PEERS: &str = "peers";

/// Adds the wanted stages, and returns how many they are.
pub(super) fn add_stages(
    plan: &mut Plan<'_>,
    is_wanted: &dyn Fn(&str) -> bool,
    lane: StageLane,
    after: &'static [&'static str],
) -> usize {
    let mut added = 0;
    if is_wanted("python-core") {
        plan.add("python-core", lane, after, test_core);
        added += 1;
    }
    for environment in ENVIRONMENTS.iter().filter(|it| is_wanted(it.name)) {
        plan.add(environment.name, lane, after, |log| test_adapters(log, environment));
        added += 1;
    }
    if is_wanted(PEERS) {
        plan.add(PEERS, lane, after, test_peers);
        added += 1;
    }
    added
}

fn test_core(log: &StageLog) -> StageResult {
    let folder = install(log, CORE)?;
    let run = |arguments: &[&str]| log.run(python(&folder).args(["-m"]).args(arguments));
    run(&["ruff", "check", "src", "tests", "examples", "scripts"])?;
    run(&["mypy"])?;
    run(&["pytest", "-q", "tests", "--ignore=tests/adapters", "--ignore=tests/peers"])?;
    Ok(().into())
}

fn test_adapters(log: &StageLog, environment: &Environment) -> StageResult {
    let folder = install(log, environment.name)?;
    let arguments = ["-m", "pytest", "-q", "tests/adapters", "tests/test_examples.py"];
    log.run(python(&folder).args(arguments).env("TEST_ADAPTER", environment.adapters))?;
    Ok(().into())
}

fn test_peers(log: &StageLog) -> StageResult {
    let folder = install(log, PEERS)?;
    log.run(python(&folder).args(["-m", "pytest", "-q", "tests/peers"]))?;
    Ok(().into())
}

/// Returns the Python of an environment, in the folder of the package.
fn python(folder: &std::path::Path) -> Command {
    let mut command = Command::new(folder.join("bin/python"));
    command.current_dir(root().join("python"));
    command
}

/// Creates an environment from its pins, with the package as a user installs it from a checkout. Returns its folder.
fn install(log: &StageLog, name: &str) -> Result<PathBuf, String> {
    let pins = root().join(format!("python/requirements/{name}.txt"));
    let folder = root().join("target/packages/python").join(name);
    let install_error = |error: std::io::Error| format!("cannot create the environment {name}: {error}");
    let wanted = std::fs::read_to_string(&pins).map_err(install_error)?;
    let marker = folder.join("installed");
    if std::fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    log.run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    log.run(python(&folder).args(pip).arg("-r").arg(&pins))?;
    log.run(python(&folder).args(pip).args(["--editable", "."]))?;
    std::fs::write(marker, wanted).map_err(install_error)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test reports a failure by panicking")]

    use super::*;

    #[test]
    fn every_package_of_every_environment_is_pinned() {
        for name in ENVIRONMENTS.iter().map(|it| it.name).chain([CORE, PEERS]) {
            let pins =
                std::fs::read_to_string(root().join(format!("python/requirements/{name}.txt"))).expect(name);
            assert!(pins.lines().count() > 2, "{name}");
            for line in pins.lines().filter(|line| !line.starts_with("    --hash=sha256:")) {
                assert!(line.contains("==") && !line.contains("://"), "{name}: {line}");
            }
        }
    }

    #[test]
    fn every_package_of_every_environment_has_a_hash() {
        for name in ENVIRONMENTS.iter().map(|it| it.name).chain([CORE, PEERS]) {
            let pins =
                std::fs::read_to_string(root().join(format!("python/requirements/{name}.txt"))).expect(name);
            let lines: Vec<_> = pins.lines().collect();
            for (line, next) in lines.iter().zip(lines.iter().skip(1).chain([&""])) {
                assert!(!line.contains("==") || next.starts_with("    --hash=sha256:"), "{name}: {line}");
            }
        }
    }
}
