//! Codex (`codex exec`), Gemini CLI (`gemini -p`) and opencode (`opencode run`), with risky calls gated before they are made.

use serde_json::{Value, json};
use testing::scripted_model::prompt;

use crate::fixture::{HarnessFixture, Person, borrowed};

/// The person's answers, the options of the hook, and whether the command is executed.
const CASES: [(Person, &[&str], bool); 4] = [
    (Person::SaysYes, &["--gate", "risky"], true),
    (Person::SaysNo, &["--gate", "risky"], false),
    (Person::IsSilent, &["--gate", "risky", "--deadline", "5"], false),
    (Person::IsAbsent, &["--gate", "risky", "--required"], false),
];

fn check(harness: &str, run: impl Fn(&HarnessFixture, &[&str]) -> String) {
    for (person, options, is_executed) in CASES {
        let fixture = HarnessFixture::start(person);
        let printed = run(&fixture, options);
        assert_eq!(fixture.marker().exists(), is_executed, "{harness} {person:?}: {printed}");
        assert_eq!(
            fixture.questions(),
            usize::from(person != Person::IsAbsent),
            "{harness} {person:?}: {printed}"
        );
    }
}

pub(crate) fn script(fixture: &HarnessFixture, tool: &str, mut input: Value) -> String {
    let argument = if tool == "exec_command" { "cmd" } else { "command" };
    input[argument] = json!(format!("touch {}", fixture.marker().display()));
    prompt(&json!([{"text": "I will make a file.", "tool": tool, "input": input}, {"text": "All done."}]))
}

fn printed(output: &std::process::Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Configures Codex with our hook. Returns its environment.
pub(crate) fn configure_codex(
    fixture: &HarnessFixture,
    hook_options: &[&str],
    approval_policy: &str,
    sandbox_mode: &str,
) -> Vec<(&'static str, String)> {
    let config = format!(
        "model = \"scripted\"\nmodel_provider = \"scripted\"\napproval_policy = \"{approval_policy}\"\n\
         sandbox_mode = \"{sandbox_mode}\"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n\
         [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{}/v1\"\nwire_api = \"responses\"\n\
         request_max_retries = 0\nstream_max_retries = 0\nsupports_websockets = false\n\
         [projects.\"{}\"]\ntrust_level = \"trusted\"\n",
        fixture.model,
        fixture.project().display()
    );
    let home = fixture.home().join(".codex");
    std::fs::create_dir_all(&home).unwrap();
    fixture.set_up("codex", ".codex/hooks.json", hook_options);
    std::fs::write(home.join("config.toml"), config).unwrap();
    vec![("CODEX_HOME", home.display().to_string())]
}

/// Configures Gemini CLI, with our hook if there are options for it. Returns its environment.
pub(crate) fn configure_gemini(
    fixture: &HarnessFixture,
    hook_options: Option<&[&str]>,
) -> Vec<(&'static str, String)> {
    fixture.write(
        ".gemini/settings.json",
        &json!({
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
            "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
            "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
            "ide": {"hasSeenNudge": true}
        }),
    );
    if let Some(options) = hook_options {
        fixture.set_up("gemini", ".gemini/settings.json", options);
    }
    vec![
        ("GEMINI_API_KEY", "scripted".to_owned()),
        ("GOOGLE_GEMINI_BASE_URL", fixture.model.clone()),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
    ]
}

/// Configures opencode, with our plugin if there are options for its hook. Returns its environment.
pub(crate) fn configure_opencode(
    fixture: &HarnessFixture,
    hook_options: Option<&[&str]>,
    permission: &str,
) -> Vec<(&'static str, String)> {
    if let Some(options) = hook_options {
        fixture.set_up("opencode", ".config/opencode/plugins/sayso.js", options);
    }
    let model = json!({"name": "Scripted", "tool_call": true, "limit": {"context": 100_000, "output": 4000}});
    let options = json!({"baseURL": format!("{}/v1", fixture.model), "apiKey": "x"});
    fixture.write(
        ".config/opencode/opencode.json",
        &json!({
            "autoupdate": false, "share": "disabled", "model": "scripted/scripted", "small_model": "scripted/scripted",
            "provider": {"scripted": {
                "npm": "@ai-sdk/openai-compatible", "name": "Scripted", "options": options,
                "models": {"scripted": model}
            }},
            "permission": {"bash": permission, "external_directory": "allow"}
        }),
    );
    ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD"]
        .map(|name| (name, "1".to_owned()))
        .to_vec()
}

#[test]
#[ignore = "needs Codex; run `cargo xtask gates`"]
fn codex_executes_a_risky_command_only_after_a_yes() {
    check("codex", |fixture, options| {
        let environment = configure_codex(fixture, options, "never", "danger-full-access");
        let script = script(fixture, "exec_command", json!({}));
        let arguments =
            ["exec", "--skip-git-repo-check", "--json", "--dangerously-bypass-hook-trust", &script];
        printed(&fixture.run(&HarnessFixture::program("codex"), &arguments, &borrowed(&environment)))
    });
}

#[test]
#[ignore = "needs Gemini CLI; run `cargo xtask gates`"]
fn gemini_executes_a_risky_command_only_after_a_yes() {
    check("gemini", |fixture, options| {
        let environment = configure_gemini(fixture, Some(options));
        let script = script(fixture, "run_shell_command", json!({"description": "Make a file"}));
        let arguments =
            ["-m", "gemini-2.5-flash", "-o", "stream-json", "--approval-mode", "yolo", "-p", script.as_str()];
        printed(&fixture.run(&HarnessFixture::program("gemini"), &arguments, &borrowed(&environment)))
    });
}

#[test]
#[ignore = "needs opencode; run `cargo xtask gates`"]
fn opencode_executes_a_risky_command_only_after_a_yes() {
    check("opencode", |fixture, options| {
        let environment = configure_opencode(fixture, Some(options), "allow");
        let script = script(fixture, "bash", json!({"description": "Make a file"}));
        let arguments = ["run", "--format", "json", script.as_str()];
        printed(&fixture.run(&HarnessFixture::program("opencode"), &arguments, &borrowed(&environment)))
    });
}

#[test]
#[ignore = "needs opencode; run `cargo xtask gates`"]
fn opencode_subagents_and_failed_calls_are_heard() {
    let fixture = HarnessFixture::start(Person::SaysYes);
    let environment = configure_opencode(&fixture, Some(&[]), "allow");
    let missing = fixture.project().join("missing");
    let task = prompt(&json!([{"text": "I am the subagent."}]));
    let script = prompt(&json!([
        {"text": "I will read a file.", "tool": "read", "input": {"filePath": missing}},
        {"tool": "task", "input": {"description": "Help", "prompt": task, "subagent_type": "general"}},
        {"text": "All done."}
    ]));
    let arguments = ["run", "--format", "json", script.as_str()];
    let output = fixture.run(&HarnessFixture::program("opencode"), &arguments, &borrowed(&environment));
    let events = fixture.events();
    let failed = |event: &&Value| event["status"] == "error" && event["tool"] == "read";
    assert_eq!(events.iter().filter(failed).count(), 1, "{} {events:#?}", printed(&output));
    let session_of = |text: &str| {
        let said = events.iter().find(|event| event["chunk"] == text);
        said.unwrap_or_else(|| panic!("{text} {events:#?}"))["session_id"].clone()
    };
    assert_ne!(session_of("I am the subagent."), session_of("All done."));
    assert_eq!(session_of("I will read a file."), session_of("All done."));
    let ended = |event: &&Value| testing::messages::short_type(event) == "session.completed";
    let ended = events.iter().find(ended).unwrap_or_else(|| panic!("{events:#?}"));
    assert_eq!(ended["session_id"], session_of("I am the subagent."));
}
