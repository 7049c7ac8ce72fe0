//! Claude Code, not interactive (`claude -p`).

use serde_json::json;
use testing::cli::KillTimer;
use testing::scripted_model::prompt;
use testing::terminal::ListenProcess;

use crate::fixture::{HarnessFixture, Person, borrowed};

/// Configures Claude Code with our hook. Returns its environment.
pub(crate) fn configure(fixture: &HarnessFixture, hook_options: &[&str]) -> Vec<(&'static str, String)> {
    let environment = configure_without_hooks(fixture);
    fixture.set_up("claude", ".claude/settings.json", hook_options);
    environment
}

/// Configures Claude Code without our hook. Returns its environment.
pub(crate) fn configure_without_hooks(fixture: &HarnessFixture) -> Vec<(&'static str, String)> {
    fixture.write(
        ".claude/settings.json",
        &json!({"permissions": {"disableAutoMode": "disable", "defaultMode": "default"}}),
    );
    let mut projects = json!({});
    projects[fixture.project().to_str().unwrap()] =
        json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true});
    let state =
        json!({"hasCompletedOnboarding": true, "theme": "dark", "numStartups": 5, "projects": projects});
    fixture.write(".claude.json", &state);
    vec![
        ("ANTHROPIC_BASE_URL", fixture.model.clone()),
        ("ANTHROPIC_AUTH_TOKEN", "scripted".to_owned()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ("DISABLE_AUTOUPDATER", "1".to_owned()),
        // Claude Code bypasses permissions as root only in a sandbox.
        ("IS_SANDBOX", "1".to_owned()),
    ]
}

/// Returns a prompt with which the model executes one command.
pub(crate) fn prompt_for(command: &str) -> String {
    prompt(&json!([
        {"text": "I will make a file.", "tool": "Bash", "input": {"command": command, "description": "Make a file"}},
        {"text": "All done."}
    ]))
}

/// Runs a session in which the model executes one command. Returns the fixture and what Claude Code printed.
fn run(
    person: Person,
    hook_options: &[&str],
    claude_options: &[&str],
    command: impl Fn(&str) -> String,
) -> (HarnessFixture, String) {
    let fixture = HarnessFixture::start(person);
    let environment = configure(&fixture, hook_options);
    let prompt = prompt_for(&command(fixture.marker().to_str().unwrap()));
    let mut options = vec!["-p", "--output-format", "stream-json", "--verbose"];
    options.extend(claude_options);
    options.push(&prompt);
    let output = fixture.run(&HarnessFixture::program("claude"), &options, &borrowed(&environment));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains("All done."), "{printed} {}", String::from_utf8_lossy(&output.stderr));
    (fixture, printed)
}

fn touch(marker: &str) -> String {
    format!("touch {marker}")
}

#[test]
#[ignore = "needs Claude Code; run `cargo xtask gates`"]
fn claude_executes_a_command_only_after_a_yes() {
    for (person, options, is_executed, reason) in [
        (Person::SaysYes, &[][..], true, ""),
        (Person::SaysNo, &[], false, "Not permitted: the user said no."),
        (Person::IsSilent, &["--deadline", "5"], false, "Not permitted: nobody answered in time."),
        (Person::IsAbsent, &[], false, ""),
        (Person::IsAbsent, &["--required"], false, "Not permitted: nobody is listening"),
    ] {
        let (fixture, printed) = run(person, options, &[], touch);
        assert_eq!(fixture.marker().exists(), is_executed, "{person:?} {options:?}: {printed}");
        assert!(printed.contains(reason), "{person:?}: {printed}");
    }
}

#[test]
#[ignore = "needs Claude Code; run `cargo xtask gates`"]
fn claude_in_bypass_mode_executes_a_risky_command_only_after_a_yes() {
    let bypass = ["--permission-mode", "bypassPermissions"];
    for (person, options, is_executed) in [
        (Person::SaysYes, &["--gate", "risky"][..], true),
        (Person::SaysNo, &["--gate", "risky"], false),
        (Person::IsSilent, &["--gate", "risky", "--deadline", "5"], false),
        (Person::IsAbsent, &["--gate", "risky"], false),
        (Person::SaysNo, &["--gate", "all"], false),
    ] {
        let (fixture, printed) = run(person, options, &bypass, touch);
        assert_eq!(fixture.marker().exists(), is_executed, "{person:?} {options:?}: {printed}");
    }
}

#[test]
#[ignore = "needs Claude Code; run `cargo xtask gates`"]
fn everything_that_claude_does_is_heard_once() {
    let (fixture, _) = run(Person::SaysYes, &[], &[], |marker| format!("touch {marker} && echo made"));
    let heard = fixture.heard();
    let spoken: Vec<&str> = heard
        .iter()
        .filter(|(kind, text)| kind != "state.changed" && !text.is_empty())
        .map(|(_, text)| text.as_str())
        .collect();
    let run = format!("Run: touch {} && echo made.", fixture.marker().display());
    assert_eq!(
        spoken,
        ["Working in project.", "I will make a file.", &run, &run, "made", "All done.", "Done."],
        "{heard:?}"
    );
}

/// A user runs `sayso setup claude` once, and `sayso listen` in a terminal.
#[test]
#[ignore = "needs Claude Code; run `cargo xtask gates`"]
fn claude_asks_a_user_who_listens_to_the_personal_hub() {
    for (typed, is_executed) in [("yes 1", true), ("no 1", false)] {
        let fixture = HarnessFixture::start(Person::IsAbsent);
        let mut environment = configure(&fixture, &[]);
        // Without an address, the hook and the listener use the personal hub.
        environment.push(("SAYSO_URL", String::new()));
        let environment = borrowed(&environment);
        let mut listener = ListenProcess::start_command(&["listen"], |command| {
            command.env_clear().envs(fixture.environment(&environment))
        });
        listener.read_until("Listening to your personal hub.");
        let prompt = prompt_for(&touch(fixture.marker().to_str().unwrap()));
        let claude = fixture.spawn(&HarnessFixture::program("claude"), &["-p", &prompt], &environment);
        let _timer = KillTimer::start(claude.id());
        let heard = listener.read_until("ask: Yes or no?");
        assert!(heard.iter().any(|line| line.contains("Run: touch")), "{heard:#?}");
        assert!(!fixture.marker().exists());
        listener.type_line(typed);
        let output = claude.wait_with_output().unwrap();
        assert_eq!(fixture.marker().exists(), is_executed, "{typed}: {output:?}");
        listener.read_until("All done.");
    }
}
