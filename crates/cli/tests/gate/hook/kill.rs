//! Whatever is killed or suspended during a question, nothing is permitted without a yes in time.

use serde_json::json;
use testing::cli::send_signal;

use super::*;

#[test]
fn a_hook_that_was_suspended_when_the_answer_came_passes_it_on_after_resuming() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    for (decision, expected) in
        [("accept", allowed()), ("reject", denied("Not permitted: the user said no."))]
    {
        let hook = fixture.spawn(&["claude"], &permission_request("rm a"));
        let token = listener.wait_for_question();
        send_signal(&hook.pid(), "-STOP");
        fixture.answer(&listener, &token, decision);
        listener.wait_for_resolution(&token);
        send_signal(&hook.pid(), "-CONT");
        assert_eq!(hook.finish(), expected);
    }
}

#[test]
fn a_hook_that_was_suspended_beyond_its_deadline_permits_nothing() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let hook = fixture.spawn(&["claude", "--deadline", "5"], &permission_request("rm a"));
    let token = listener.wait_for_question();
    send_signal(&hook.pid(), "-STOP");
    // The hub ends the question by itself, so the yes is late.
    assert!(listener.wait_for_resolution(&token).to_string().contains("timeout"));
    drop(fixture.hub.client().try_reply(&listener.subscription, &token, "accept"));
    // On a busy machine, its watchdog may have killed it already. Then it says nothing.
    let _ = Command::new("kill").args(["-CONT", &hook.pid()]).status();
    let output = hook.child.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    if output.status.success() || !printed.is_empty() {
        let printed: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(printed, denied("Not permitted: nobody answered in time."));
    }
}

#[test]
fn a_question_is_withdrawn_when_the_program_that_started_the_hook_is_killed() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    // Codex and Gemini CLI start their hooks in a shell.
    let mut command = Command::new("sh");
    command.args(["-c", "\"$0\" hook claude || exit 2"]).arg(binary());
    command.env_remove("SAYSO_TOKEN").env("XDG_RUNTIME_DIR", fixture.runtime.path());
    command.env("SAYSO_URL", format!("http://{}", fixture.hub.address));
    let shell = RunningHook::spawn(&mut command, permission_request("rm a").to_string().as_bytes());
    let token = listener.wait_for_question();
    send_signal(&shell.pid(), "-KILL");
    let resolution = listener.wait_for_resolution(&token).to_string();
    assert!(resolution.contains("cancelled"), "{resolution}");
    let output = shell.child.wait_with_output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stdout).contains("allow"), "{output:?}");
}

#[test]
fn a_yes_to_the_question_of_a_killed_hook_permits_no_later_call() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let hook = fixture.spawn(&["claude"], &permission_request("rm a"));
    let token = listener.wait_for_question();
    send_signal(&hook.pid(), "-KILL");
    let output = hook.child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "a killed hook says nothing");
    fixture.answer(&listener, &token, "accept");
    let hook = fixture.spawn(&["claude"], &permission_request("rm a"));
    let later = listener.wait_for_question();
    assert_ne!(token, later);
    fixture.answer(&listener, &later, "reject");
    assert_eq!(hook.finish(), denied("Not permitted: the user said no."));
}

#[test]
fn a_hub_that_is_suspended_before_or_during_the_question_permits_nothing() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let required = ["claude", "--required", "--deadline", "5"];
    let during = fixture.spawn(&required, &permission_request("rm a"));
    let own_prompt = fixture.spawn(&["claude", "--deadline", "5"], &permission_request("rm b"));
    let tokens = [listener.wait_for_question(), listener.wait_for_question()];
    fixture.hub.signal("-STOP");
    let before = fixture.spawn(&required, &permission_request("rm c"));
    // It does not wait for the hub beyond its deadline, which is before the timeout of the harness.
    assert_eq!(during.finish(), denied("Not permitted: sayso's hub did not answer in time."));
    assert_eq!(own_prompt.finish(), json!({}));
    let decision = &before.finish()["hookSpecificOutput"]["decision"];
    assert_eq!(decision["behavior"], "deny", "{decision}");
    fixture.hub.signal("-CONT");
    // A yes now comes too late for the hooks. A new call is asked about again.
    for token in tokens {
        drop(fixture.hub.client().try_reply(&listener.subscription, &token, "accept"));
    }
    let next = fixture.spawn(&["claude"], &permission_request("rm a"));
    let token = loop {
        let token = listener.wait_for("awaiting.confirmation");
        if token["action"] == "Run: rm a." {
            break token["reply_token"].as_str().unwrap().to_owned();
        }
    };
    fixture.answer(&listener, &token, "reject");
    assert_eq!(next.finish(), denied("Not permitted: the user said no."));
}
