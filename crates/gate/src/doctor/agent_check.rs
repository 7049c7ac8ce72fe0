//! Checks whether coding agents and MCP clients are connected, and whether their configuration works.

use crate::setup::{
    Harness, HookState, InstalledVersion, McpClient, McpServerState, SetupError, SetupScope,
    are_hooks_disabled, are_hooks_trusted, forbids_user_hooks, hook_state, installed_version, limits,
    mcp_servers, version_problem,
};

use super::{Doctor, Finding, FindingLevel, program_search};

pub(super) async fn check(doctor: &Doctor) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_connected = false;
    for harness in Harness::ALL {
        let version = match doctor.search_path.find(harness.program()) {
            Some(program) => installed_version(&program).await,
            None => InstalledVersion::NotFound,
        };
        let mut is_harness_connected = false;
        for scope in [SetupScope::User, SetupScope::Project(doctor.project.clone())] {
            let checked = check_hooks(doctor, harness, &version, &scope);
            is_harness_connected |= !checked.is_empty();
            findings.extend(checked);
        }
        is_connected |= is_harness_connected;
        if !is_harness_connected {
            findings.push(match version {
                InstalledVersion::NotFound => Finding::note(format!("{harness} is not installed.")),
                _ => Finding::note(format!(
                    "{harness} is installed, but not set up. To hear it, run `sayso setup {}`.",
                    harness.name()
                )),
            });
        }
    }
    for client in McpClient::ALL {
        for scope in [SetupScope::User, SetupScope::Project(doctor.project.clone())] {
            let checked = check_servers(doctor, client, &scope);
            is_connected |= checked.iter().any(|finding| finding.level == FindingLevel::Ok);
            findings.extend(checked);
        }
    }
    if !is_connected {
        findings.push(Finding::problem(
            "No agent is connected to sayso. Run `sayso setup claude`, or see `sayso setup --help`.",
        ));
    }
    findings
}

/// Checks the hooks of a harness. Returns nothing if there are none.
fn check_hooks(
    doctor: &Doctor,
    harness: Harness,
    version: &InstalledVersion,
    scope: &SetupScope,
) -> Vec<Finding> {
    let (name, option) = match scope {
        SetupScope::User => (harness.to_string(), ""),
        SetupScope::Project(_) => (format!("{harness} in this project"), " --project"),
    };
    let repair = format!("Run `sayso setup {}{option}`", harness.name());
    let state = match hook_state(harness, &doctor.folders, scope) {
        Ok(Some(state)) => state,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![unreadable(&name, &error)],
    };
    if state.programs.is_empty() {
        return Vec::new();
    }
    let mut problems = Vec::new();
    if !state.missing.is_empty() {
        problems.push(format!("{name}: hooks are missing for {}. {repair}.", state.missing.join(", ")));
    }
    if !state.too_short.is_empty() {
        problems.push(format!(
            "{name}: the timeout of the hooks for {} is too short. When it is over, {harness} makes the call without your yes. {repair}.",
            state.too_short.join(", ")
        ));
    }
    problems.extend(program_problems(doctor, &name, &repair, &state.programs));
    problems.extend(switched_off(doctor, harness, scope, &name, &state));
    if let Some(problem) = version_problem(harness, version) {
        problems.push(format!("{name}: {problem}"));
    }
    let mut findings: Vec<_> = problems.into_iter().map(Finding::problem).collect();
    if findings.is_empty() {
        let version = match version {
            InstalledVersion::Known(version) => format!(" Version {version} is installed."),
            InstalledVersion::NotFound => format!(" {harness} itself was not found on the path."),
            InstalledVersion::Unknown => String::new(),
        };
        let file = harness.hook_file(&doctor.folders, scope);
        findings.push(Finding::ok(format!("{name} is set up, in {}.{version}", file.display())));
    }
    findings.extend(other_copies(doctor, &name, &repair, &state.programs));
    let limits = limits(harness, state.gate.as_deref(), state.is_required);
    findings.extend(limits.into_iter().map(|limit| Finding::note(format!("{name}: {limit}"))));
    findings
}

/// Returns why the hooks that are there do not run.
fn switched_off(
    doctor: &Doctor,
    harness: Harness,
    scope: &SetupScope,
    name: &str,
    state: &HookState,
) -> Vec<String> {
    let mut problems = Vec::new();
    match harness {
        Harness::Claude => {
            if state.is_disabled {
                problems.push(format!(
                    "{name}: disableAllHooks switches all hooks off. Remove it from the settings."
                ));
            }
            let managed = &doctor.managed_claude_settings;
            match forbids_user_hooks(managed) {
                Ok(true) => problems.push(format!(
                    "{name}: your administrator does not allow users' hooks (see {}).",
                    managed.display()
                )),
                Ok(false) => {}
                Err(error) => problems.push(format!("{name}: {error}.")),
            }
            // The settings of a project apply to the hooks of the user as well.
            for file in [".claude/settings.json", ".claude/settings.local.json"] {
                let path = doctor.project.join(file);
                if are_hooks_disabled(harness, &path).unwrap_or(false) && !state.is_disabled {
                    problems.push(format!(
                        "{name}: disableAllHooks in {} switches all hooks off in this project.",
                        path.display()
                    ));
                }
            }
        }
        Harness::Gemini if state.is_disabled => {
            problems.push(format!("{name}: hooksConfig switches the hooks off. Type /hooks enable-all in gemini, or remove it from the settings."));
        }
        Harness::Codex => {
            let config = Harness::codex_config(&doctor.folders);
            match are_hooks_disabled(harness, &config) {
                Ok(true) => problems.push(format!(
                    "{name}: hooks are switched off under [features] in {}.",
                    config.display()
                )),
                Ok(false) => {}
                Err(error) => problems.push(format!("{name}: {error}.")),
            }
            if !are_hooks_trusted(&doctor.folders, scope).unwrap_or(false) {
                problems.push(format!(
                    "{name}: the hooks are not trusted yet, so Codex skips them. Start codex, type /hooks, and trust the hooks of sayso."
                ));
            }
        }
        _ => {}
    }
    problems
}

fn program_problems(doctor: &Doctor, name: &str, repair: &str, programs: &[String]) -> Vec<String> {
    let missing = programs.iter().filter(|program| doctor.search_path.find(program).is_none());
    missing
        .map(|program| {
            format!(
                "{name}: the configuration starts {program}, which is not there or not a program. {repair}."
            )
        })
        .collect()
}

/// Returns notes about programs that are a different copy of sayso.
fn other_copies(doctor: &Doctor, name: &str, repair: &str, programs: &[String]) -> Vec<Finding> {
    let found = programs.iter().filter_map(|program| doctor.search_path.find(program));
    let others = found.filter(|path| !program_search::is_same_file(path, &doctor.program));
    others
        .map(|path| {
            Finding::note(format!(
                "{name} uses another copy of sayso, at {}. {repair} to use this one.",
                path.display()
            ))
        })
        .collect()
}

/// Checks the MCP servers of a client. Returns nothing if none is wrapped.
fn check_servers(doctor: &Doctor, client: McpClient, scope: &SetupScope) -> Vec<Finding> {
    let (name, option) = match scope {
        SetupScope::User => (format!("MCP servers of {client}"), ""),
        SetupScope::Project(_) => (format!("MCP servers of {client} in this project"), " --project"),
    };
    let servers = match mcp_servers(client, &doctor.folders, scope) {
        Ok(servers) => servers.unwrap_or_default(),
        Err(error) => return vec![unreadable(&name, &error)],
    };
    let mut programs = Vec::new();
    let (mut wrapped, mut direct) = (Vec::new(), Vec::new());
    for server in servers {
        match server.state {
            McpServerState::Wrapped { program } => {
                wrapped.push(server.name);
                if !programs.contains(&program) {
                    programs.push(program);
                }
            }
            McpServerState::Direct => direct.push(server.name),
            McpServerState::Unsupported(_) => {}
        }
    }
    if wrapped.is_empty() {
        return Vec::new();
    }
    let repair = format!("Run `sayso setup mcp {}{option}`", client.name());
    let problems = program_problems(doctor, &name, &repair, &programs);
    let mut findings: Vec<_> = problems.into_iter().map(Finding::problem).collect();
    if findings.is_empty() {
        findings.push(Finding::ok(format!("{name}: connected through sayso: {}.", wrapped.join(", "))));
    }
    if !direct.is_empty() {
        findings.push(Finding::note(format!(
            "{name}: not connected through sayso: {}. {repair} to change that.",
            direct.join(", ")
        )));
    }
    findings.extend(other_copies(doctor, &name, &repair, &programs));
    findings
}

fn unreadable(name: &str, error: &SetupError) -> Finding {
    Finding::problem(format!("{name}: {error}. Correct the file."))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test reports a failure by panicking")]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::doctor::SearchPath;
    use crate::setup::{ConfigFolders, HookOptions, SetupPlan};

    fn findings(home: &Path) -> Vec<Finding> {
        let folders = ConfigFolders::new(|name| (name == "HOME").then(|| home.into())).unwrap();
        let doctor = Doctor {
            folders,
            search_path: SearchPath::new(None),
            project: home.join("project"),
            managed_claude_settings: home.join("managed.json"),
            program: "/bin/sh".into(),
            hub: None,
            token: None,
        };
        check_hooks(&doctor, Harness::Claude, &InstalledVersion::NotFound, &SetupScope::User)
    }

    #[test]
    fn hooks_that_an_administrator_forbids_are_a_problem() {
        let home = tempfile::tempdir().unwrap();
        let folders = ConfigFolders::new(|name| (name == "HOME").then(|| home.path().into())).unwrap();
        let options = HookOptions::default();
        // The program must exist and be called sayso.
        std::os::unix::fs::symlink("/bin/sh", home.path().join("sayso")).unwrap();
        let program = home.path().join("sayso").display().to_string();
        let plan = SetupPlan::install_hooks(Harness::Claude, &folders, &SetupScope::User, &program, &options)
            .unwrap();
        plan.apply().unwrap();
        let levels = |home| {
            let levels = findings(home).into_iter().map(|finding| finding.level);
            // The notes are about the limits of Claude Code.
            levels.filter(|level| *level != FindingLevel::Note).collect::<Vec<_>>()
        };
        assert_eq!(levels(home.path()), [FindingLevel::Ok], "{:?}", findings(home.path()));
        for (text, expected) in [
            ("{\"allowManagedHooksOnly\": true}", FindingLevel::Problem),
            ("{\"disableAllHooks\": true}", FindingLevel::Problem),
            ("{\"allowManagedHooksOnly\": false}", FindingLevel::Ok),
            ("{", FindingLevel::Problem),
        ] {
            std::fs::write(home.path().join("managed.json"), text).unwrap();
            assert_eq!(levels(home.path()), [expected], "{text}: {:?}", findings(home.path()));
        }
    }
}
