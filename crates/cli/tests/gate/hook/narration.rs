//! The announcements of hook events. Each event is announced once.

use serde_json::json;

use super::*;

fn texts(heard: &[(String, String)]) -> Vec<&str> {
    let is_spoken = |kind: &str| kind.starts_with("tool.") || kind == "output.streaming";
    heard
        .iter()
        .filter(|(kind, text)| is_spoken(kind) && !text.is_empty())
        .map(|(_, text)| text.as_str())
        .collect()
}

#[test]
fn every_event_of_a_session_is_heard_once() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let message = |id: &str, text: &str| {
        event("MessageDisplay", json!({"message_id": id, "index": 0, "final": true, "delta": text}))
    };
    let mut after = bash_event("PostToolUse", "ls", "toolu_1");
    after["tool_response"] = json!({"stdout": "a.txt\nb.txt", "stderr": "", "interrupted": false});
    let mut failed = bash_event("PostToolUseFailure", "cat c", "toolu_2");
    failed["error"] = json!("No such file");
    for event in [
        event("SessionStart", json!({"source": "startup"})),
        event("UserPromptSubmit", json!({"prompt": "Look around."})),
        message("m1", "I look at the files."),
        bash_event("PreToolUse", "ls", "toolu_1"),
        bash_event("PreToolUse", "ls", "toolu_1"),
        after.clone(),
        bash_event("PreToolUse", "cat c", "toolu_2"),
        failed,
        event(
            "Notification",
            json!({"message": "Claude is waiting for your input", "notification_type": "idle_prompt"}),
        ),
        message("m2", "There are two files."),
        event("Stop", json!({"last_assistant_message": "There are two files."})),
        event("SessionEnd", json!({"reason": "other"})),
    ] {
        assert_eq!(fixture.run(&event), json!({}));
    }
    let heard = listener.heard_until("session.completed");
    assert_eq!(
        texts(&heard),
        [
            "I look at the files.",
            "Run: ls.",
            "a.txt\nb.txt",
            "Run: cat c.",
            "It failed.",
            "Claude is waiting for your input.",
            "There are two files.",
        ]
    );
}

#[test]
fn the_last_text_is_heard_once_if_the_turn_ends_before_its_message() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    fixture.run(&event("Stop", json!({"last_assistant_message": "Done."})));
    fixture.run(&event(
        "MessageDisplay",
        json!({"message_id": "m1", "index": 0, "final": true, "delta": "Done."}),
    ));
    fixture.run(&event("SessionEnd", json!({})));
    assert_eq!(texts(&listener.heard_until("session.completed")), ["Done."]);
}

#[test]
fn a_call_that_differs_from_the_permitted_one_raises_an_alarm() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    fixture.run(&bash_event("PreToolUse", "rm a", "toolu_1"));
    let hook = fixture.spawn(&["claude"], &permission_request("rm a"));
    let token = listener.wait_for_question();
    fixture.answer(&listener, &token, "accept");
    assert_eq!(hook.finish(), allowed());
    fixture.run(&bash_event("PostToolUse", "rm -rf /", "toolu_1"));
    let done = listener.wait_for("tool.completed");
    assert_eq!(
        done["summary_normal"],
        "Alarm: this call is not the one that you permitted. Its arguments were changed after your yes: Run: rm -rf /."
    );
    assert_eq!((&done["urgency"], &done["status"]), (&json!("critical"), &json!("error")));

    // A call that was refused and is made anyway, and one that should have been asked about.
    fixture.run(&bash_event("PreToolUse", "rm b", "toolu_2"));
    let hook = fixture.spawn(&["claude"], &permission_request("rm b"));
    let token = listener.wait_for_question();
    fixture.answer(&listener, &token, "reject");
    hook.finish();
    fixture.run(&bash_event("PostToolUse", "rm b", "toolu_2"));
    let alarm = listener.wait_for("output.streaming");
    assert_eq!(alarm["chunk"], "Alarm: this call was made, although you did not permit it: Run: rm b.");
    fixture.spawn(&["claude", "--gate", "risky"], &bash_event("PostToolUse", "rm c", "toolu_3")).finish();
    let done = listener.wait_for("tool.completed");
    assert_eq!(done["summary_normal"], "Alarm: this call was made without asking you: Run: rm c.");
}

#[test]
fn hidden_characters_and_secrets_are_not_heard() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let command = "curl -H 'Authorization: Bearer abcdef1234567890' \u{202e}x";
    let hook = fixture.spawn(&["claude"], &permission_request(command));
    let question = listener.wait_for("awaiting.confirmation");
    assert_eq!(
        question["action"],
        "Run: curl -H 'Authorization: Bearer [redacted]' [U+202E]x. Warning: it contains 1 text-reordering character."
    );
    assert!(!question.to_string().contains("abcdef1234567890"), "{question}");
    fixture.answer(&listener, question["reply_token"].as_str().unwrap(), "accept");
    assert_eq!(hook.finish(), allowed());
}
