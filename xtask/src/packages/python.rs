//! The Python package: its own tests and checks, and each adapter against its real framework in an environment of its own.
//! The wheel of the command `sayso` is built and installed, too.
//!
//! `python/requirements/NAME.txt` pins every package of an environment by version and hash. An environment is created again when its file changes.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::{Plan, StageLane, StageLog, StageOutcome, StageResult, root, succeeds, target_folder};
use crate::test_programs;

/// An environment, and the adapters that are tested in it.
struct Environment {
    name: &'static str,
    /// The modules of the adapters. The extra of each has the same name, with hyphens.
    modules: &'static [&'static str],
    /// The names in `python/tests/adapters/test_adapters.py`, separated by commas.
    adapters: &'static str,
}

const ENVIRONMENTS: [Environment; 13] = [
    Environment {
        name: "langchain",
        modules: &["langchain", "langgraph"],
        adapters: "langchain,langchain_blocking,langgraph,langgraph_blocking",
    },
    Environment {
        name: "openai-agents",
        modules: &["openai_agents"],
        adapters: "openai_agents,openai_agents_hooks",
    },
    Environment { name: "anthropic", modules: &["anthropic"], adapters: "anthropic,anthropic_blocking" },
    Environment {
        name: "openai",
        modules: &["openai"],
        adapters: "openai_chat,openai_responses,openai_responses_loop,openai_assistants",
    },
    Environment { name: "agent-framework", modules: &["agent_framework"], adapters: "agent_framework" },
    Environment { name: "autogen", modules: &["autogen"], adapters: "autogen" },
    Environment { name: "semantic-kernel", modules: &["semantic_kernel"], adapters: "semantic_kernel" },
    Environment {
        name: "claude-agent",
        modules: &["claude_agent"],
        adapters: "claude_agent,claude_agent_gate",
    },
    Environment { name: "pydantic-ai", modules: &["pydantic_ai"], adapters: "pydantic_ai" },
    Environment { name: "google-adk", modules: &["google_adk"], adapters: "google_adk" },
    Environment { name: "crewai", modules: &["crewai"], adapters: "crewai" },
    Environment { name: "strands", modules: &["strands"], adapters: "strands" },
    Environment { name: "smolagents", modules: &["smolagents"], adapters: "smolagents" },
];

/// The versions of Python that the package promises. All other stages use `python3`.
const VERSIONS: [(&str, &str); 4] =
    [("python-3.10", "3.10"), ("python-3.11", "3.11"), ("python-3.12", "3.12"), ("python-3.13", "3.13")];

/// The pins of the environments that test these versions.
const VERSION_PINS: &str = "versions";

/// The environment of the package's own tests.
const CORE: &str = "core";

/// The environment of maturin, which builds the wheel of the command.
const HUB: &str = "hub";

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
    for (stage, version) in VERSIONS.iter().filter(|(stage, _)| is_wanted(stage)) {
        plan.add(stage, lane, after, |log| test_version(log, stage, version));
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
    if is_wanted("python-types") {
        plan.add("python-types", lane, after, check_types);
        added += 1;
    }
    if is_wanted("python-hub") {
        plan.add("python-hub", lane, after, test_hub_wheel);
        added += 1;
    }
    added
}

/// Runs the benchmark of the client with this number of calls.
pub(super) fn bench(log: &StageLog, calls: &str) -> StageResult {
    let folder = install(log, CORE)?;
    let binary = target_folder().join("release/sayso");
    log.run(python_with_hub(&folder, &binary).args(["benches/bench_client.py", calls]))?;
    Ok(().into())
}

fn test_core(log: &StageLog) -> StageResult {
    let folder = install(log, CORE)?;
    let binary = test_programs::sayso_binary(log)?;
    let run = |arguments: &[&str]| log.run(python_with_hub(&folder, &binary).arg("-m").args(arguments));
    run(&["ruff", "check", "src", "tests", "examples", "scripts"])?;
    run(&["mypy"])?;
    run(&["pytest", "-q", "tests", "--ignore=tests/adapters", "--ignore=tests/peers"])?;
    Ok(().into())
}

/// Runs the contract suite with another version of Python.
fn test_version(log: &StageLog, name: &str, version: &str) -> StageResult {
    let Some(interpreter) = find_python(version) else {
        return Ok(StageOutcome::Skipped(format!("Python {version} is not installed")));
    };
    let folder = install_with(log, &interpreter, name, VERSION_PINS)?;
    let arguments = ["-m", "pytest", "-q", "tests/test_contract.py", "tests/test_fallback.py"];
    log.run(python_with_hub(&folder, &test_programs::sayso_binary(log)?).args(arguments))?;
    Ok(().into())
}

/// Returns the interpreter of a version, such as 3.12: in `PATH`, or installed by pyenv.
fn find_python(version: &str) -> Option<PathBuf> {
    let in_path = PathBuf::from(format!("python{version}"));
    if succeeds(Command::new(&in_path).arg("--version")) {
        return Some(in_path);
    }
    let folder = std::env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".pyenv")))?;
    let prefix = format!("{version}.");
    std::fs::read_dir(folder.join("versions"))
        .ok()?
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .map(|entry| entry.path().join("bin/python"))
        .find(|interpreter| succeeds(Command::new(interpreter).arg("--version")))
}

/// Checks the types of each adapter against those of its framework.
fn check_types(log: &StageLog) -> StageResult {
    let core = install(log, CORE)?;
    for environment in &ENVIRONMENTS {
        let folder = install(log, environment.name)?;
        let modules = environment.modules.iter().map(|module| format!("src/sayso/{module}.py"));
        log.run(
            python(&core)
                // Where the framework is installed, the comments that silence its absence are not needed.
                .args(["-m", "mypy", "--no-warn-unused-ignores", "--python-executable"])
                .arg(folder.join("bin/python"))
                .arg("--cache-dir")
                .arg(folder.join("mypy"))
                .args(modules),
        )?;
    }
    Ok(().into())
}

/// Builds the wheel of the command, and installs it as `pip install sayso[hub]` does. It is a debug build, because it has the
/// same files as a release build, which takes many times as long.
fn test_hub_wheel(log: &StageLog) -> StageResult {
    let maturin = install(log, HUB)?;
    let core = install(log, CORE)?;
    let target = root().join("target/packages/wheel");
    let wheels = target.join("dist");
    log.run(
        Command::new(maturin.join("bin/maturin"))
            .args(["build", "--profile", "dev", "--out"])
            .arg(&wheels)
            .current_dir(root().join("python/hub"))
            // Another folder than that of the tests, because the wheel's binary has other features.
            .env("CARGO_TARGET_DIR", &target),
    )?;
    log.run(
        python(&core).args(["-m", "pytest", "-q", "tests/test_hub_wheel.py"]).env("TEST_WHEELS", &wheels),
    )?;
    Ok(().into())
}

fn test_adapters(log: &StageLog, environment: &Environment) -> StageResult {
    let folder = install(log, environment.name)?;
    // Without an index, pip fails if the pinned packages do not meet what the extras require.
    let extras = environment.modules.join(",").replace('_', "-");
    let install_extras = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"];
    log.run(python(&folder).args(install_extras).arg(format!("sayso[{extras}]")))?;
    let arguments = ["-m", "pytest", "-q", "tests/adapters", "tests/test_examples.py"];
    let binary = test_programs::sayso_binary(log)?;
    log.run(python_with_hub(&folder, &binary).args(arguments).env("TEST_ADAPTER", environment.adapters))?;
    Ok(().into())
}

fn test_peers(log: &StageLog) -> StageResult {
    let folder = install(log, PEERS)?;
    let binary = test_programs::sayso_binary(log)?;
    log.run(python_with_hub(&folder, &binary).args(["-m", "pytest", "-q", "tests/peers"]))?;
    Ok(().into())
}

/// Returns the Python of an environment, in the folder of the package.
fn python(folder: &Path) -> Command {
    let mut command = Command::new(folder.join("bin/python"));
    command.current_dir(root().join("python"));
    command
}

/// Returns the Python of an environment, for tests that run this binary as the hub.
fn python_with_hub(folder: &Path, binary: &Path) -> Command {
    let mut command = python(folder);
    command.env("SAYSO_BIN", binary);
    command
}

/// Creates an environment from the pins with its name, for `python3`. Returns its folder.
fn install(log: &StageLog, name: &str) -> Result<PathBuf, String> {
    install_with(log, Path::new("python3"), name, name)
}

/// Creates an environment from its pins, with the package as a user installs it from a checkout. Returns its folder.
fn install_with(log: &StageLog, interpreter: &Path, name: &str, pins: &str) -> Result<PathBuf, String> {
    let pins = root().join(format!("python/requirements/{pins}.txt"));
    let folder = root().join("target/packages/python").join(name);
    let install_error = |error: std::io::Error| format!("cannot create the environment {name}: {error}");
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let install_if_changed = |marker: &str, source: &Path, install: &dyn Fn() -> Result<(), String>| {
        let wanted = std::fs::read_to_string(source).map_err(install_error)?;
        let marker = folder.join(marker);
        if std::fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) {
            return Ok(());
        }
        install()?;
        std::fs::write(marker, wanted).map_err(install_error)
    };
    install_if_changed("installed", &pins, &|| {
        log.run(Command::new(interpreter).args(["-m", "venv", "--clear"]).arg(&folder))?;
        log.run(python(&folder).args(pip).arg("-r").arg(&pins))
    })?;
    // The package's source is used in place, but what it requires is copied from this file.
    install_if_changed("project", &root().join("python/pyproject.toml"), &|| {
        log.run(python(&folder).args(pip).args(["--editable", "."]))
    })?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test reports a failure by panicking")]

    use super::*;

    #[test]
    fn every_package_of_every_environment_is_pinned() {
        for name in ENVIRONMENTS.iter().map(|it| it.name).chain([CORE, PEERS, HUB, VERSION_PINS]) {
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
        for name in ENVIRONMENTS.iter().map(|it| it.name).chain([CORE, PEERS, HUB, VERSION_PINS]) {
            let pins =
                std::fs::read_to_string(root().join(format!("python/requirements/{name}.txt"))).expect(name);
            let lines: Vec<_> = pins.lines().collect();
            for (line, next) in lines.iter().zip(lines.iter().skip(1).chain([&""])) {
                assert!(!line.contains("==") || next.starts_with("    --hash=sha256:"), "{name}: {line}");
            }
        }
    }

    #[test]
    fn the_tests_run_the_binary_that_was_built() {
        let command = python_with_hub(Path::new("environment"), Path::new("elsewhere/debug/sayso"));
        let variable = command.get_envs().find(|(name, _)| *name == "SAYSO_BIN");
        assert_eq!(variable.and_then(|(_, value)| value), Some("elsewhere/debug/sayso".as_ref()));
    }

    #[test]
    fn the_wheel_is_built_with_the_pinned_maturin() {
        let read = |path: &str| std::fs::read_to_string(root().join(path)).expect(path);
        let pins = read("python/requirements/hub.txt");
        let pinned = pins.lines().find(|line| line.starts_with("maturin==")).expect("maturin");
        let wanted = format!("requires = [\"{}\"]", pinned.trim_end_matches(" \\"));
        assert!(read("python/hub/pyproject.toml").contains(&wanted), "{wanted}");
    }
}
