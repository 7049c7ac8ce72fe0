//! Whatever breaks, the output is valid and nothing is permitted.

use serde_json::json;
use testing::cli::send_signal;

use super::*;

const NO_HUB: &str = "there is no connection to sayso's hub";

#[test]
fn without_a_hub_the_harness_asks_the_person_itself_or_the_call_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str], event: &Value| {
        let mut command = Command::new(binary());
        command.arg("hook").args(arguments).env_remove("SAYSO_TOKEN").env_remove("SAYSO_URL");
        RunningHook::spawn(command.env("XDG_RUNTIME_DIR", folder.path()), event.to_string().as_bytes())
            .finish()
    };
    let request = permission_request("rm a");
    let call = bash_event("PreToolUse", "rm a", "toolu_1");
    let mut bypassing = call.clone();
    bypassing["permission_mode"] = json!("bypassPermissions");
    let required = format!("Not permitted: {NO_HUB}, and the user's consent is required.");
    let own_prompt = format!("sayso could not ask: {NO_HUB}.");
    assert_eq!(run(&["claude"], &request), json!({}));
    assert_eq!(run(&["claude", "--required"], &request), denied(&required));
    assert_eq!(run(&["claude"], &call), json!({}));
    assert_eq!(run(&["claude", "--gate", "all"], &call), pre_tool("ask", &own_prompt));
    assert_eq!(run(&["claude", "--gate", "all"], &bypassing), pre_tool("deny", &own_prompt));
    assert_eq!(run(&["claude", "--gate", "risky", "--required"], &call), pre_tool("deny", &required));
    assert_eq!(run(&["codex", "--gate", "all"], &call), pre_tool("deny", &own_prompt));
    assert_eq!(run(&["claude"], &event("Stop", json!({"last_assistant_message": "Done."}))), json!({}));
}

#[test]
fn without_a_listener_the_harness_asks_the_person_itself_or_the_call_is_refused() {
    let fixture = HookFixture::start();
    assert_eq!(fixture.run(&permission_request("rm a")), json!({}));
    let required = fixture.spawn(&["claude", "--required"], &permission_request("rm a"));
    let reason = "Not permitted: nobody is listening, and the user's consent is required.";
    assert_eq!(required.finish(), denied(reason));
    let gated = fixture.spawn(&["claude", "--gate", "all"], &bash_event("PreToolUse", "ls", "toolu_1"));
    assert_eq!(gated.finish(), pre_tool("ask", "sayso could not ask: nobody is listening."));
}

#[test]
fn a_hub_that_is_killed_during_the_question_permits_nothing() {
    for (arguments, expected) in [
        (&["claude"][..], json!({})),
        (
            &["claude", "--required"],
            denied(&format!("Not permitted: {NO_HUB}, and the user's consent is required.")),
        ),
    ] {
        let mut fixture = HookFixture::start();
        let mut listener = fixture.listen();
        let hook = fixture.spawn(arguments, &permission_request("rm a"));
        listener.wait_for_question();
        fixture.hub.kill();
        assert_eq!(hook.finish(), expected);
    }
}

#[test]
fn a_hub_that_restarts_during_the_question_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let address = testing::hub::reserved_address();
    let start =
        || HubProcess::start(&["--open", "--listen", &address, "--data", folder.path().to_str().unwrap()]);
    let mut fixture = HookFixture { hub: start(), runtime: tempfile::tempdir().unwrap() };
    let mut listener = fixture.listen();
    let hook = fixture.spawn(&["claude"], &permission_request("rm a"));
    let (_, question_id, question) = loop {
        let next = listener.stream.next();
        if next.0 == "awaiting.confirmation" {
            break next;
        }
    };
    let token = question["reply_token"].as_str().unwrap();
    fixture.hub.kill();
    fixture.hub = start();
    let stream = fixture.hub.client().open_event_stream(&listener.subscription, Some(&question_id));
    listener.stream = stream;
    fixture.answer(&listener, token, "accept");
    assert_eq!(hook.finish(), allowed());
}

#[test]
fn a_signal_withdraws_the_question_and_permits_nothing() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    for signal in ["-TERM", "-INT", "-HUP"] {
        let hook = fixture.spawn(&["claude"], &permission_request("rm a"));
        let token = listener.wait_for_question();
        send_signal(&hook.pid(), signal);
        assert_eq!(hook.finish(), json!({}));
        let resolution = listener.wait_for_resolution(&token);
        assert!(resolution.to_string().contains("cancelled"), "{resolution}");
        let hook = fixture.spawn(&["claude", "--required"], &permission_request("rm a"));
        listener.wait_for_question();
        send_signal(&hook.pid(), signal);
        assert_eq!(hook.finish(), denied("Not permitted: the hook was interrupted."));
        let gated = ["claude", "--gate", "all"];
        let hook = fixture.spawn(&gated, &bash_event("PreToolUse", "rm a", &format!("toolu{signal}")));
        listener.wait_for_question();
        send_signal(&hook.pid(), signal);
        assert_eq!(hook.finish(), pre_tool("deny", "Not permitted: the hook was interrupted."));
    }
}

/// Only a debug build can be made to panic.
#[cfg(debug_assertions)]
#[test]
fn a_panic_still_prints_an_answer() {
    let fixture = HookFixture::start();
    for (arguments, event, expected) in [
        (&["claude"][..], permission_request("rm a"), json!({})),
        (
            &["claude", "--gate", "all"],
            bash_event("PreToolUse", "ls", "toolu_1"),
            pre_tool("deny", "Not permitted: sayso hook failed."),
        ),
        (&["claude"], bash_event("PostToolUse", "ls", "toolu_1"), json!({})),
        (&["claude", "--required"], permission_request("rm a"), denied("Not permitted: sayso hook failed.")),
        (&["claude", "--required"], bash_event("PostToolUse", "ls", "toolu_1"), json!({})),
    ] {
        let mut command = fixture.command(arguments);
        let hook = RunningHook::spawn(command.env("SAYSO_HOOK_PANIC", "1"), event.to_string().as_bytes());
        assert_eq!(hook.finish(), expected);
    }
}

#[test]
fn a_harness_that_does_not_close_standard_input_gets_an_answer() {
    let fixture = HookFixture::start();
    let mut command = fixture.command(&["claude", "--gate", "all", "--deadline", "5"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _timer = KillTimer::start(child.id());
    let stdin = child.stdin.take().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), b"{}\n".as_slice()));
    drop(stdin);
}

/// Arguments that are nested too deeply are an example.
#[test]
fn with_required_a_permission_request_that_cannot_be_read_is_refused() {
    let fixture = HookFixture::start();
    let nested = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let unreadable = |event: &Value| event.to_string().replace(r#""rm a""#, &nested);
    let run = |arguments: &[&str], event: &str| {
        RunningHook::spawn(&mut fixture.command(arguments), event.as_bytes()).finish_with_code()
    };
    let request = unreadable(&permission_request("rm a"));
    let call = unreadable(&bash_event("PreToolUse", "rm a", "toolu_1"));
    let blocked = (json!({}), Some(2));
    // Claude Code ignores the exit code for permission requests.
    let reason = "Not permitted: sayso could not read the event of this hook.";
    assert_eq!(run(&["claude", "--required"], &request), (denied(reason), Some(0)));
    assert_eq!(run(&["codex", "--required"], &request), blocked);
    assert_eq!(run(&["claude", "--required"], &call), blocked);
    assert_eq!(run(&["claude", "--required"], "{"), blocked);
    assert_eq!(run(&["claude"], &request), (json!({}), Some(0)));
    // Arguments that imitate a permission request do not change the answer to a call.
    let hidden = call.replace(r#""command""#, r#""hook_event_name":"PermissionRequest","command""#);
    assert_eq!(run(&["claude", "--required", "--gate", "all"], &hidden), blocked);
}

#[test]
fn a_wrong_option_blocks_and_prints_json() {
    let fixture = HookFixture::start();
    for arguments in [&["emacs"][..], &[], &["claude", "--gate", "none"], &["claude", "--deadline", "1"]] {
        let hook = RunningHook::spawn(&mut fixture.command(arguments), b"{}");
        assert_eq!(hook.finish_with_code(), (json!({}), Some(2)), "{arguments:?}");
    }
}
