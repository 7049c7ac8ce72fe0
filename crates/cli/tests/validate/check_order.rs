//! The order of the nine validation steps (§3.9).

use testing::cli::run_sayso;

/// An event that breaks a rule of every step except the first, which admits only JSON objects. The defects are in
/// an order that differs from the steps, so that the findings are not in order by chance.
fn event_with_defects() -> String {
    let long = "word ".repeat(14_000);
    // 9: too long. 7: no tool. 6: a timestamp with one fraction digit. 5: not the compact form. 3: an empty agent_id. 2: no session_id.
    // 4: an item that is not a URI. 8: an undeclared prefix.
    format!(
        r#"{{"extensions":{{"sayso":{{}}}},"summary_normal":"{long}","timestamp":"2026-05-24T14:22:11.3Z","type":"https://aaep-protocol.org/types/agent.tool.invoked","@context":["https://aaep-protocol.org/context/v1","not a URI"],"event_id":"evt_8a3f5b22c91e4d7a8a3f5b22c91e4d7a","producer":{{"agent_id":""}},"urgency":"normal","localization_hints":{{"primary_language":"en"}}}}"#
    )
}

#[test]
fn findings_come_in_the_order_of_the_nine_steps() {
    // A duplicate key is a fault of the JSON itself, which is step 1.
    let event = event_with_defects().replacen('{', r#"{"urgency":"normal","#, 1);
    let output = run_sayso(&["validate"], &event);
    let rules: Vec<&str> =
        output.findings().iter().map(|finding| finding.split(' ').nth(2).unwrap_or_default()).collect();
    let step_of = |rule: &&str| aaep::rule::Rule::find(rule).unwrap().validation_step();
    let steps: Vec<u8> = rules.iter().map(step_of).collect();
    assert!(steps.is_sorted(), "{rules:?} belong to the steps {steps:?}");
    // One rule of each step, in the order of the specification, not of sayso's own table.
    let expected = [
        "AAEP-D.1-1",
        "AAEP-3.2-1",
        "AAEP-3.2.6.1-1",
        "AAEP-3.2.1s-1",
        "AAEP-3.2.2-4",
        "AAEP-3.2.5-2",
        "AAEP-4.3.1-1",
        "AAEP-3.4.3-1",
        "AAEP-3.7-1",
    ];
    let found: Vec<&str> = rules.iter().copied().filter(|rule| expected.contains(rule)).collect();
    assert_eq!(found, expected, "{rules:?}");
}

#[test]
fn a_step_that_fails_ends_the_validation_if_the_next_one_needs_it() {
    // Step 1: a value that is not an object has no members to check.
    for text in ["[1]", "\"text\"", "7", "null"] {
        let output = run_sayso(&["validate"], format!("[{text}]"));
        let [finding] = output.findings()[..] else { panic!("{}", output.stdout) };
        assert!(finding.contains(" error AAEP-3.9-1 "), "{finding}");
    }
    // Step 9: an event that is too large to be read is reported and skipped, and the next event is checked.
    let output =
        run_sayso(&["validate", "--max-event-bytes", "1000"], format!("{}\n{{}}\n", event_with_defects()));
    assert!(output.findings()[0].contains(":1: error AAEP-3.9-9 "), "{}", output.stdout);
    assert!(output.findings()[1].contains(":2: error AAEP-3.2.1-1 "), "{}", output.stdout);
}
