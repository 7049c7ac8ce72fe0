//! One hub session per harness session and subagent, across processes.

use serde_json::json;

use super::*;

#[test]
fn hooks_that_run_at_the_same_time_share_one_session_and_one_question() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let calls: Vec<RunningHook> = (0..8)
        .map(|number| {
            fixture.spawn(&["claude"], &bash_event("PostToolUse", "ls", &format!("toolu_{number}")))
        })
        .collect();
    for call in calls {
        assert_eq!(call.finish(), json!({}));
    }
    let gated = ["claude", "--gate", "all"];
    let requests = [0, 1, 2].map(|_| fixture.spawn(&gated, &bash_event("PreToolUse", "rm a", "toolu_9")));
    let token = listener.wait_for_question();
    fixture.answer(&listener, &token, "accept");
    for request in requests {
        assert_eq!(request.finish()["hookSpecificOutput"]["permissionDecision"], "allow");
    }
    let end = fixture.run(&event("SessionEnd", json!({"reason": "other"})));
    assert_eq!(end, json!({}));
    let log = fixture.hub.stop_and_collect_log();
    let count = |part: &str| log.iter().filter(|line| line.contains(part)).count();
    assert_eq!((count("session.started"), count("question.asked")), (1, 1), "{log:?}");
}

#[test]
fn the_same_call_is_asked_about_once_by_its_id() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let call = bash_event("PreToolUse", "rm a", "toolu_1");
    let gated = ["claude", "--gate", "all"];
    let hooks = [fixture.spawn(&gated, &call), fixture.spawn(&gated, &call)];
    let token = listener.wait_for_question();
    fixture.answer(&listener, &token, "accept");
    for hook in hooks {
        assert_eq!(hook.finish()["hookSpecificOutput"]["permissionDecision"], "allow");
    }
    // A call with another id is another call.
    let other = fixture.spawn(&gated, &bash_event("PreToolUse", "rm a", "toolu_2"));
    let second = listener.wait_for_question();
    assert_ne!(token, second);
    fixture.answer(&listener, &second, "reject");
    assert_eq!(other.finish()["hookSpecificOutput"]["permissionDecision"], "deny");
}

#[test]
fn a_yes_covers_no_other_arguments_with_the_same_id() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let gated = ["claude", "--gate", "all"];
    let first = fixture.spawn(&gated, &bash_event("PreToolUse", "touch a", "call_0"));
    let token = listener.wait_for_question();
    fixture.answer(&listener, &token, "accept");
    assert_eq!(first.finish()["hookSpecificOutput"]["permissionDecision"], "allow");
    let second = fixture.spawn(&gated, &bash_event("PreToolUse", "rm -rf b", "call_0"));
    let other = listener.wait_for_question();
    assert_ne!(token, other);
    fixture.answer(&listener, &other, "reject");
    assert_eq!(second.finish()["hookSpecificOutput"]["permissionDecision"], "deny");
}

#[test]
fn identical_calls_without_an_id_do_not_share_a_yes() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let call = permission_request("rm a");
    let first = fixture.spawn(&["claude"], &call);
    let token = listener.wait_for_question();
    // The hub asks about an action only once at a time, so the second call is asked about after the first.
    let second = fixture.spawn(&["claude"], &call);
    fixture.answer(&listener, &token, "accept");
    assert_eq!(first.finish(), allowed());
    let other = listener.wait_for_question();
    assert_ne!(token, other);
    fixture.answer(&listener, &other, "reject");
    assert_eq!(second.finish(), denied("Not permitted: the user said no."));
    let third = fixture.spawn(&["claude"], &call);
    let other = listener.wait_for_question();
    fixture.answer(&listener, &other, "accept");
    assert_eq!(third.finish(), allowed());
}

#[test]
fn identical_calls_that_wait_are_asked_about_one_after_the_other() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let call = permission_request("rm a");
    let hooks: Vec<_> = (0..3).map(|_| fixture.spawn(&["claude"], &call)).collect();
    for decision in ["accept", "reject", "reject"] {
        let token = listener.wait_for_question();
        fixture.answer(&listener, &token, decision);
    }
    let allowances = hooks.into_iter().map(RunningHook::finish).filter(|answer| *answer == allowed());
    assert_eq!(allowances.count(), 1);
}

#[test]
fn a_call_that_waits_for_an_identical_one_is_refused_in_time() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let call = permission_request("rm a");
    let first = fixture.spawn(&["claude"], &call);
    let token = listener.wait_for_question();
    let second = fixture.spawn(&["claude", "--deadline", "5"], &call);
    assert_eq!(second.finish(), denied("Not permitted: nobody answered in time."));
    fixture.answer(&listener, &token, "accept");
    assert_eq!(first.finish(), allowed());
}

#[test]
fn a_question_is_withdrawn_when_the_user_answered_on_the_screen() {
    let settled = |name: &str, members: Value| event(name, members);
    let after = bash_event("PostToolUse", "rm a", "toolu_1");
    for settling in [
        after,
        settled("UserPromptSubmit", json!({"prompt": "x"})),
        settled("Stop", json!({})),
        settled("SessionEnd", json!({"reason": "other"})),
        settled("PostToolBatch", json!({"tool_calls": [{"tool_name": "Bash", "tool_use_id": "toolu_1"}]})),
    ] {
        let fixture = HookFixture::start();
        let mut listener = fixture.listen();
        assert_eq!(fixture.run(&bash_event("PreToolUse", "rm a", "toolu_1")), json!({}));
        let hook = fixture.spawn(&["claude"], &permission_request("rm a"));
        let token = listener.wait_for_question();
        assert_eq!(fixture.run(&settling), json!({}));
        assert_eq!(hook.finish(), json!({}), "{settling}");
        let resolution = listener.wait_for_resolution(&token);
        assert!(resolution.to_string().contains("cancelled"), "{resolution}");
    }
}

#[test]
fn a_subagent_has_a_session_of_its_own() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let subagent = json!({"agent_id": "aa92", "agent_type": "general-purpose"});
    fixture.run(&event("SubagentStart", subagent.clone()));
    let main = listener.wait_for("session.started");
    let child = listener.wait_for("session.started");
    assert_eq!(child["extensions"]["sayso"]["parent_session_id"], main["session_id"]);
    assert_eq!(child["producer"]["agent_name"], "Claude Code (general-purpose)");
    let mut stop = event("SubagentStop", subagent);
    stop["last_assistant_message"] = json!("Found it.");
    fixture.run(&stop);
    let heard = listener.heard_until("session.completed");
    assert!(heard.iter().any(|(_, text)| text == "Found it."), "{heard:?}");
}

#[test]
fn a_session_that_is_silent_for_long_stays_open() {
    let fixture = HookFixture::start_with(&["--hub-lease", "200ms", "--hub-max-sleep", "10ms"]);
    let mut listener = fixture.listen();
    fixture.run(&event("SessionStart", json!({"source": "startup"})));
    let session = listener.wait_for("session.started")["session_id"].clone();
    // A session with the default lease ends, so more time than that has passed.
    fixture.hub.client().start_session();
    assert_ne!(listener.wait_for("session.errored")["session_id"], session);
    fixture.run(&event("Stop", json!({"last_assistant_message": "Hello."})));
    assert_eq!(listener.wait_for("output.streaming")["session_id"], session);
}

#[test]
fn a_session_continues_after_the_hub_has_forgotten_it() {
    let mut fixture = HookFixture::start();
    fixture.run(&event("SessionStart", json!({"source": "startup"})));
    fixture.hub = HubProcess::start(&["--memory", "--open", "--listen", &{
        let address = fixture.hub.address.clone();
        fixture.hub.kill();
        address
    }]);
    let mut listener = fixture.listen();
    let hook = fixture.spawn(&["claude"], &permission_request("rm a"));
    let token = listener.wait_for_question();
    fixture.answer(&listener, &token, "accept");
    assert_eq!(hook.finish(), allowed());
}
