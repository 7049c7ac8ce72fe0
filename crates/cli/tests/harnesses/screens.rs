//! The permission requests of harnesses on their interactive screens.

use serde_json::json;

use crate::fixture::{HarnessFixture, Person, borrowed};
use crate::screen::Screen;
use crate::{claude, others};

/// A harness on its screen.
struct Interactive {
    name: &'static str,
    /// A text from the harness's own dialog.
    dialog: &'static str,
    /// Starts the harness with these options of the hook.
    start: fn(&HarnessFixture, &[&str]) -> Screen,
    /// Whether a listener's yes closes the harness's own dialog, or prevents it.
    is_yes_enough: bool,
}

const DONE: &str = "All done.";

/// Hides the model's last text in the prompt, which is on the screen, too.
fn without_done(prompt: &str) -> String {
    prompt.replace(DONE, "All d\\u006fne.")
}

const CLAUDE: Interactive = Interactive {
    name: "claude",
    dialog: "Do you want to proceed?",
    start: |fixture, options| {
        let environment = claude::configure(fixture, options);
        let prompt = claude::prompt_for(&format!("touch {}", fixture.marker().display()));
        let arguments = ["--permission-mode", "default", &without_done(&prompt)];
        Screen::start(fixture, &HarnessFixture::program("claude"), &arguments, &borrowed(&environment))
    },
    is_yes_enough: true,
};

const CODEX: Interactive = Interactive {
    name: "codex",
    dialog: "Would you like to run the following command?",
    start: |fixture, options| {
        let environment = others::configure_codex(fixture, options, "on-request", "workspace-write");
        let input = json!({"sandbox_permissions": "require_escalated", "justification": "May I?"});
        let prompt = others::script(fixture, "exec_command", input);
        let arguments = ["--dangerously-bypass-hook-trust", &without_done(&prompt)];
        Screen::start(fixture, &HarnessFixture::program("codex"), &arguments, &borrowed(&environment))
    },
    is_yes_enough: true,
};

const OPENCODE: Interactive = Interactive {
    name: "opencode",
    dialog: "Permission required",
    start: |fixture, options| {
        let options = [&["--gate", "requests"], options].concat();
        let environment = others::configure_opencode(fixture, Some(&options), "ask");
        let prompt = others::script(fixture, "bash", json!({"description": "Make a file"}));
        let arguments = ["--prompt", &without_done(&prompt)];
        Screen::start(fixture, &HarnessFixture::program("opencode"), &arguments, &borrowed(&environment))
    },
    is_yes_enough: true,
};

const GEMINI: Interactive = Interactive {
    name: "gemini",
    dialog: "Allow execution of",
    start: |fixture, options| {
        let environment = others::configure_gemini(fixture, Some(options));
        let prompt = others::script(fixture, "run_shell_command", json!({"description": "Make a file"}));
        let arguments =
            ["-m", "gemini-2.5-flash", "--approval-mode", "default", "-i", &without_done(&prompt)];
        Screen::start(fixture, &HarnessFixture::program("gemini"), &arguments, &borrowed(&environment))
    },
    is_yes_enough: false,
};

fn check(harness: &Interactive) {
    for (person, options, is_executed) in [
        (Person::SaysYes, &[][..], true),
        (Person::SaysNo, &[], false),
        (Person::IsSilent, &["--deadline", "8"], false),
    ] {
        let fixture = HarnessFixture::start(person);
        let screen = (harness.start)(&fixture, options);
        if person == Person::SaysYes && !harness.is_yes_enough {
            screen.wait_for(harness.dialog);
            assert!(!fixture.marker().exists());
            screen.press("Enter");
        }
        screen.wait_for(DONE);
        assert_eq!(fixture.marker().exists(), is_executed, "{} {person:?}: {}", harness.name, screen.text());
        assert_eq!(fixture.questions(), 1, "{} {person:?}", harness.name);
    }
}

/// Nobody listens, so the harness's own dialog decides.
fn check_alone(harness: &Interactive) {
    for (key, is_executed) in [("Enter", true), ("Escape", false)] {
        let fixture = HarnessFixture::start(Person::IsAbsent);
        let screen = (harness.start)(&fixture, &[]);
        screen.wait_for(harness.dialog);
        assert!(!fixture.marker().exists(), "{} {}", harness.name, screen.text());
        screen.press(key);
        screen.wait_until("the dialog is closed", || !screen.text().contains(harness.dialog));
        if is_executed {
            screen.wait_for(DONE);
        }
        assert_eq!(fixture.marker().exists(), is_executed, "{} {key}: {}", harness.name, screen.text());
    }
}

/// The dialog on the screen is answered before the listener answers: the question is withdrawn.
fn check_withdrawal(harness: &Interactive) {
    for (key, is_executed) in [("Enter", true), ("Escape", false)] {
        let fixture = HarnessFixture::start(Person::IsSilent);
        let screen = (harness.start)(&fixture, &[]);
        screen.wait_for(harness.dialog);
        screen.wait_until("question", || fixture.questions() == 1);
        assert!(!fixture.marker().exists());
        screen.press(key);
        screen.wait_until("withdrawal", || fixture.was_withdrawn());
        assert_eq!(fixture.marker().exists(), is_executed, "{} {key}: {}", harness.name, screen.text());
    }
}

#[test]
#[ignore = "needs Claude Code; run `cargo xtask gates`"]
fn claude_on_its_screen_executes_a_command_only_after_a_yes() {
    check(&CLAUDE);
}

#[test]
#[ignore = "needs Claude Code; run `cargo xtask gates`"]
fn claude_on_its_screen_asks_the_person_itself_if_nobody_listens() {
    check_alone(&CLAUDE);
}

#[test]
#[ignore = "needs Claude Code; run `cargo xtask gates`"]
fn claude_on_its_screen_can_be_answered_first() {
    check_withdrawal(&CLAUDE);
}

#[test]
#[ignore = "needs Codex; run `cargo xtask gates`"]
fn codex_on_its_screen_executes_a_command_only_after_a_yes() {
    check(&CODEX);
}

#[test]
#[ignore = "needs Codex; run `cargo xtask gates`"]
fn codex_on_its_screen_asks_the_person_itself_if_nobody_listens() {
    check_alone(&CODEX);
}

#[test]
#[ignore = "needs opencode; run `cargo xtask gates`"]
fn opencode_on_its_screen_executes_a_command_only_after_a_yes() {
    check(&OPENCODE);
}

#[test]
#[ignore = "needs opencode; run `cargo xtask gates`"]
fn opencode_on_its_screen_asks_the_person_itself_if_nobody_listens() {
    check_alone(&OPENCODE);
}

#[test]
#[ignore = "needs opencode; run `cargo xtask gates`"]
fn opencode_on_its_screen_can_be_answered_first() {
    check_withdrawal(&OPENCODE);
}

#[test]
#[ignore = "needs Gemini CLI; run `cargo xtask gates`"]
fn gemini_on_its_screen_executes_a_risky_command_only_after_both_answers() {
    check(&GEMINI);
}

#[test]
#[ignore = "needs Gemini CLI; run `cargo xtask gates`"]
fn gemini_on_its_screen_asks_the_person_itself_if_nobody_listens() {
    check_alone(&GEMINI);
}
