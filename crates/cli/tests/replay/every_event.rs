//! Random recordings, valid or not: every item appears in the trace and in the diagram, in order and with its text.

use std::fmt::Write;

use crate::asp::xml_parser;
use testing::cli::run_sayso;
use testing::random::SplitMix64;

/// Members of each type of event. `WORD` is replaced by a word that appears nowhere else.
const EVENTS: [(&str, &str); 16] = [
    ("session.started", r#""request_text":"WORDr","summary_normal":"WORDn""#),
    ("session.completed", r#""summary_normal":"WORDn","output_summary":"WORDo""#),
    (
        "session.errored",
        r#""error_category":"permanent","remediation_hint":"WORDh","summary_normal":"WORDn""#,
    ),
    (
        "session.cancelled",
        r#""cancelled_by":"user","cancellation_reason":"WORDr","partial_result":"WORDp","summary_terse":"WORDn""#,
    ),
    ("state.changed", r#""from_state":"idle","to_state":"WORDs","summary_detailed":"WORDn""#),
    ("progress.updated", r#""progress":{"percent":40,"description":"WORDd"},"summary_normal":"WORDn""#),
    (
        "tool.invoked",
        r#""tool":"WORDt","tool_call_id":"call_1","args_summary":"WORDa","summary_normal":"WORDn""#,
    ),
    ("tool.completed", r#""tool":"WORDt","status":"error","error_message":"WORDe","summary_normal":"WORDn""#),
    ("output.streaming", r#""chunk":"WORDc","position":0,"complete":false,"output_id":"out_1""#),
    ("output.streaming", r#""chunk":" WORDc ","position":9,"complete":true,"output_id":"out_1""#),
    (
        "awaiting.confirmation",
        r#""action":"WORDa","consequence":"WORDc","reply_token":"rpl_11111111111111111111111111111111","timeout_seconds":60,"default_decision":"reject","summary_normal":"WORDn""#,
    ),
    (
        "awaiting.clarification",
        r#""question":"WORDq","choices":[{"value":"WORDv","label":"WORDl"}],"default_response":"WORDd","reply_token":"rpl_21111111111111111111111111111111","timeout_seconds":60"#,
    ),
    ("handoff.requested", r#""reason":"WORDr","target_kind":"human","summary_normal":"WORDn""#),
    // Members are missing or wrong.
    ("tool.completed", r#""summary_normal":"WORDn""#),
    ("awaiting.confirmation", r#""summary_normal":"WORDn","action":5"#),
    ("unknown.WORDk", r#""summary_normal":"WORDn""#),
];

/// Returns a recording with one item per line, and the marker words of each item.
fn random_recording(random: &mut SplitMix64) -> (String, Vec<Vec<String>>) {
    let (mut text, mut words) = (String::new(), Vec::new());
    let mut seconds = 0;
    for number in 0..=random.below(40) {
        let word = format!("zq{number}x");
        if random.one_in(12) {
            text +=
                *random.choose_one(&["nonsense\n", "{}\n", "[1]\n", "{\"type\":\"subscription.close\"}\n"]);
            words.push(Vec::new());
            continue;
        }
        let (kind, members) = random.choose_one(&EVENTS);
        seconds += *random.choose_one(&[0, 0, 1, 7, 50]);
        let at = if random.one_in(10) {
            "never".to_owned()
        } else {
            format!("2026-05-24T14:00:{:02}.000Z", seconds % 60)
        };
        let (session, agent) = (random.below(3), random.below(3));
        let parent = if session == 2 {
            r#","extensions":{"sayso":{"parent_session_id":"sess_00000000000000000000000000000000"}}"#
        } else {
            ""
        };
        let event = format!(
            r#"{{"@context":["https://aaep-protocol.org/context/v1","urn:sayso:context:v1"],"aaep_version":"1.0.0","type":"aaep:agent.{kind}","event_id":"evt_{number:032}","session_id":"sess_{session:032}","timestamp":"{at}","producer":{{"agent_id":"agent-{agent}","agent_name":"Agent {agent}"}},"urgency":"normal","localization_hints":{{"primary_language":"en"}},{members}{parent}}}"#
        );
        let own: Vec<_> =
            event.match_indices("WORD").map(|(at, _)| format!("{word}{}", &event[at + 4..=at + 4])).collect();
        let _ = writeln!(text, "{}", event.replace("WORD", &word));
        words.push(own);
    }
    (text, words)
}

#[test]
fn every_event_of_a_recording_appears_in_the_trace_with_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.svg");
    for seed in 0..60 {
        let (recording, words) = random_recording(&mut SplitMix64::new(seed));
        let output = run_sayso(&["replay", "-", "--visualize", "--svg", file.to_str().unwrap()], &recording);
        let is_finding = |line: &&str| line.contains(", rule broken: ") || line.contains(", warning: ");
        let steps: Vec<_> = output.stdout.lines().filter(|line| !is_finding(line)).collect();
        let (summary, steps) = steps.split_last().unwrap();
        assert!(summary.contains(" events, "), "{seed}: {summary}");
        assert_eq!(steps.len(), words.len(), "{seed}: {}", output.stdout);
        let svg = std::fs::read_to_string(&file).unwrap();
        let elements = xml_parser::read(&svg).unwrap_or_else(|error| panic!("{seed}: {error}"));
        let description = &elements.iter().find(|element| element.name == "desc").unwrap().text;
        for ((step, words), line) in steps.iter().zip(&words).zip(1..) {
            assert!(step.ends_with(&format!("(line {line})")), "{seed}, line {line}: {step}");
            assert!(description.contains(step), "{seed}, line {line}: {step}");
            for word in words {
                assert!(step.contains(word.as_str()), "{seed}, line {line}, {word}: {step}");
            }
        }
    }
}
